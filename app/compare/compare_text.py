"""Words of the Compare page: explanations, tiles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from kdcal_core.calibration import CALIBRATOR_FAMILIES, CALIBRATORS
from kdcal_core.charts import ranked
from kdcal_core.diagnostics import Estimate, estimate_text
from kdcal_core.evaluation import Comparison, Group, PairedDifference
from kdcal_core.text import listed

GROUPS: dict[Group, str] = {
    "inside": "Inside the data",
    "outside": "Far outside",
    "ranking": "Ranking",
    "speed": "Speed",
}
LEADS: dict[Group, str] = {
    "inside": "log_loss",
    "outside": "oce",
    "ranking": "auc",
    "speed": "fit_seconds",
}
MATTERS = (
    "Inside: how far you can rely on probabilities for rows like those of the calibration set. "
    "Far outside: how confident the model is on rows unlike any in the data. Ranking: the order of "
    "rows and classes, whatever the probabilities, and how sure the errors are. Speed: time and "
    "size. A change takes effect at once, without a new computation."
)
QUESTION = (
    "What calibration errors and reliability diagrams are about. Log loss, Brier score and AUROC "
    "are the same for both."
)
JUDGE = (
    "Evaluation set: calibrators are fitted on the calibration set and judged on rows that no fit "
    "has seen. Cross-fitting: every calibration row is judged with calibrators fitted on the other "
    "folds; the evaluation set is not used and is left for a final check."
)
NO_EVALUATION = (
    "There is no evaluation set: every calibration row is judged with calibrators fitted on the "
    "other folds."
)
WILL_SHOW = (
    "Here you will see whether any calibrator is better than the model as it is, beyond chance: "
    "every measure with its interval, paired differences on the same rows, a reliability diagram "
    "for each, and its cost in time and size."
)


def pill(key: str) -> str:
    """The name of a calibrator in the choice, with abbreviations spelt out.

    Examples
    --------
    >>> pill("sts"), pill("kde_mon2"), pill("platt")
    ('Shared temperature scaling (STS)', 'KDE (b_mon2)', 'Platt')
    """
    entry = CALIBRATORS[key]
    label = entry.label.lower()
    plain = re.search(r"[a-z]{4}|\(", entry.label) or label in entry.name.lower().split()
    return entry.label if plain else f"{entry.name} ({entry.label})"


def descriptions(usable: Mapping[str, str | None]) -> str:
    """One line per calibrator, by family: what it does, and where it is described."""
    parts = []
    for family, (name, what) in CALIBRATOR_FAMILIES.items():
        entries = [CALIBRATORS[key] for key in usable if CALIBRATORS[key].family == family]
        if entries:
            lines = [f"- **{one.label}**: {one.description} ({one.reference})" for one in entries]
            parts.append("\n".join([f"**{name}.** {what}", "", *lines]))
    return "\n\n".join(parts)


def not_here(why: Mapping[str, str]) -> list[str]:
    """The calibrators that are not available, with one sentence per reason.

    Examples
    --------
    >>> not_here({"A": "The rows have no features.", "B": "The rows have no features."})
    ['Not available here: A and B. The rows have no features.']
    """
    by_reason: dict[str, list[str]] = {}
    for label, reason in why.items():
        by_reason.setdefault(reason, []).append(label)
    return [
        f"Not available here: {listed(labels, len(labels))}. {reason}"
        for reason, labels in by_reason.items()
    ]


def tiles(found: Comparison, measure: str) -> tuple[list[Estimate], list[str]]:
    """The model's value, the best calibrator's, their paired difference, and the other side.

    The other side is accuracy if the measure is not about ranking, so that a loss of accuracy is
    visible.
    """
    others = [key for key in ranked(found, measure) if key != found.reference]
    best = found.method(others[0])
    model = found.method(found.reference)
    title = found.measure(measure).title
    change = _pair(found, measure, best.key)
    shown = [
        replace(model.scores[measure], label=f"{title}: the model"),
        replace(best.scores[measure], label=f"{title}: {best.name}"),
        replace(difference(found, measure, change), label=f"{title}: change"),
    ]
    allowed = "" if len(others) == 1 else f", allowing for {len(others)} methods tried"
    notes = [
        "as it is",
        "the best calibrator on these rows",
        {
            "better": f"better beyond chance{allowed}",
            "worse": f"worse beyond chance{allowed}",
            "cannot be told apart": f"cannot be told apart from the model{allowed}",
        }[change.verdict],
    ]
    side = "auc" if measure != "auc" and "auc" in model.scores else "accuracy"
    if side != measure:
        pair = _pair(found, side, best.key)
        moved = difference(found, side, pair)
        shown.append(replace(moved, label=f"{found.measure(side).title}: change"))
        value = best.scores[side]
        notes.append(f"{estimate_text(value, chance=False)} with {best.name}")
    return shown, notes


def difference(found: Comparison, measure: str, pair: PairedDifference) -> Estimate:
    """A paired difference in the form of its measure: in percent for shares."""
    percent = found.method(found.reference).scores[measure].percent
    return replace(pair.difference, percent=percent)


def notes_for(found: Comparison, group: Group) -> list[str]:
    """Notes on the comparison that concern this group of measures."""
    return [one.sentence for one in found.notes if one.about in (None, group)]


def failed(key: str, why: str) -> str:
    """A sentence on why a calibrator is left out."""
    return f"{CALIBRATORS[key].label} is left out. {why}"


def _pair(found: Comparison, measure: str, key: str) -> PairedDifference:
    return next(one for one in found.paired[measure, "model"] if one.key == key)
