"""Words of the Compare page: families, explanations, tiles."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from app.shared.numbers import interval, number
from kdcal_core.calibration import CALIBRATORS, Family
from kdcal_core.data.equal_rows import warns_of_copies
from kdcal_core.diagnostics import Estimate
from kdcal_core.evaluation import Comparison, Group, PairedDifference

FAMILIES: dict[Family, tuple[str, str]] = {
    "model": ("The model", "Its own probabilities, as they are."),
    "top-label": (
        "Confidence of the predicted class",
        "Paper 002: how often a prediction of this class is right at this score. The predicted "
        "class stays, and so does the ranking of classes.",
    ),
    "temperature": (
        "Temperature",
        "One or a few numbers soften or sharpen the probabilities.",
    ),
    "standard": (
        "Known elsewhere",
        "Calibrators known outside the five papers, one class against the rest or all at once.",
    ),
    "partition": (
        "Region by region",
        "Paper 004: the inputs are cut into regions, and each has a calibration of its own. These "
        "can change the ranking of rows, and so the AUROC.",
    ),
    "kernel density": (
        "Kernel density graph",
        "Papers 000 and 001: also knows where the data end, and says the prior outside.",
    ),
}

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
    "Inside: how far probabilities can be relied on for rows like those of the calibration set. "
    "Far outside: what is said of rows unlike all data. Ranking: which rows and classes come "
    "first, whatever the probabilities. Speed: time and size. It changes what is shown and the "
    "order at once; nothing is computed anew."
)
JUDGE = (
    "The evaluation set: fitted on the calibration set, judged on rows that no fit has seen. "
    "Cross-fitting: every calibration row is judged by calibrators fitted on the other folds; the "
    "evaluation set is left untouched for a last look."
)
NO_EVALUATION = (
    "There is no evaluation set: every calibration row is judged by calibrators that were fitted "
    "on the other folds."
)
WILL_SHOW = (
    "Here you will see whether any calibrator is better than the model as it is, beyond chance: "
    "every measure with its interval, paired differences on the same rows, a reliability diagram "
    "of each, and what each costs in time and size."
)

DOTS = """
Each line is a method, each panel a measure. The stroke is the 95% interval of the method alone;
the grey line and band are the model as it is. **Full diamonds** are the best of the measure and
all that cannot be told apart from it: the truly best one is among them with 95% probability.
Hollow ones are worse than the best beyond chance.

Intervals that overlap may still belong to methods that can be told apart, because both were judged
on the same rows: look at the paired differences below.

**Log loss** and **Brier score** count everything, and favour no way of cutting confidence into
bins. **Calibration errors** say how far stated confidence and hits lie apart: ECE in 15 bins of
equal width, the same without what noise adds to it (debiased), also in the l2 norm, smooth ECE
without bins, MCE the worst bin, classwise ECE every class's probability. **OCE** is how
far confidence lies from the prior's on rows far away. **AUROC** is how well rows are ranked.
"""
SPEED = """
Seconds to fit are those of the fit on all calibration rows, with the range of all fits where there
were several; seconds for a million rows are timed on 10,000. Both depend on the machine and on
what else it does. Bytes are those of the numbers a fitted calibrator keeps.
"""
PAIRED = """
Each method less what it is held against, on the very same rows, so that what both find hard
cancels. Means of row losses are compared by a paired t test, AUROC by DeLong's covariances, and
calibration errors by resampling rows for both at once, at the least favourable true errors that
the rows allow. **Full marks** are told apart once all methods are allowed for (Holm's correction).

Against the best, the p value is that of the joint test over all methods (Hansen 2005): who leads on
these rows was picked by them, and that is allowed for.
"""
PICTURES = """
No calibrator without its picture (paper 002 section XII). Each point is a bin: across the stated
confidence, up how often it was right, with its Clopper-Pearson interval; pale points have few
rows. The grey boxes are where a perfectly calibrated model's points would lie. The bars below count
the rows on the same scale in every panel: where they are thin, the picture says little, and a
calibrator that states one number for all rows looks perfect in its only bin.
"""


def pill(key: str) -> str:
    """What a calibrator is called where it is chosen: abbreviations are spelt out.

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
    """One line a calibrator, by family: what it does, where it is described."""
    parts = []
    for family, (name, what) in FAMILIES.items():
        entries = [CALIBRATORS[key] for key in usable if CALIBRATORS[key].family == family]
        if entries:
            lines = [f"- **{one.label}**: {one.description} ({one.reference})" for one in entries]
            parts.append("\n".join([f"**{name}.** {what}", "", *lines]))
    return "\n\n".join(parts)


def not_here(why: Mapping[str, str]) -> list[str]:
    """Which calibrators cannot be had, a sentence a reason.

    Examples
    --------
    >>> not_here({"A": "The rows have no features.", "B": "The rows have no features."})
    ['Not available here: A and B. The rows have no features.']
    """
    by_reason: dict[str, list[str]] = {}
    for label, reason in why.items():
        by_reason.setdefault(reason, []).append(label)
    sentences = []
    for reason, labels in by_reason.items():
        *first, last = labels
        names = f"{', '.join(first)} and {last}" if first else last
        sentences.append(f"Not available here: {names}. {reason}")
    return sentences


def tiles(found: Comparison, measure: str) -> tuple[list[Estimate], list[str]]:
    """The model's value, the best calibrator's, their paired difference, and the other side.

    The other side is accuracy where ranking is not looked at, so that nobody trades it unseen.
    """
    others = [one for one in found.methods if one.key != found.reference]
    lower = found.measure(measure).lower_is_better
    best = min(others, key=lambda one: one.scores[measure].value * (1 if lower else -1))
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
            "cannot be told apart": f"not told apart from the model{allowed}",
        }[change.verdict],
    ]
    side = "auc" if measure != "auc" and "auc" in model.scores else "accuracy"
    if side != measure:
        pair = _pair(found, side, best.key)
        moved = difference(found, side, pair)
        shown.append(replace(moved, label=f"{found.measure(side).title}: change"))
        value = best.scores[side]
        notes.append(f"{number(value)} ({interval(value)}) with {best.name}")
    return shown, notes


def difference(found: Comparison, measure: str, pair: PairedDifference) -> Estimate:
    """A paired difference, read as the measure itself is: of shares in percent."""
    percent = found.method(found.reference).scores[measure].percent
    return replace(pair.difference, percent=percent)


def notes_for(found: Comparison, group: Group) -> list[str]:
    """What is to be known of the comparison where this is what matters."""
    speaks_of = {"Far away means": "outside", "AUROC is": "ranking", "There is no AUROC": "ranking"}
    return [
        note
        for note in found.notes
        if all(group == other for start, other in speaks_of.items() if note.startswith(start))
        and not warns_of_copies(note)
    ]


def failed(key: str, why: str) -> str:
    """That a calibrator is not among the others, and why."""
    return f"{CALIBRATORS[key].label} is left out. {why}"


def dots_takeaway(group: Group) -> str:
    """What the marks mean, above the dots."""
    if group == "speed":
        return "Times on this machine and the size of what is fitted, on logarithmic scales."
    return (
        "Full diamonds are the best of each measure and all that cannot be told apart from it; "
        "the grey band is the model as it is."
    )


def _pair(found: Comparison, measure: str, key: str) -> PairedDifference:
    return next(one for one in found.paired[measure, "model"] if one.key == key)
