"""``kdcal calibrate`` of a regression: fits a recalibrator, writes it and reports its gain."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdcal_core.cli.as_json import fitted_report
from kdcal_core.cli.review_of_options import named_files, table_notes
from kdcal_core.cli.terminal import Report, progress_line, table, temporary_folder
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.progress import Progress
from kdcal_core.review import Review, ReviewReader, Workspace, note_results, scored_review
from kdcal_core.text import number_text, printable

if TYPE_CHECKING:
    from kdcal_core.regression.recalibrators import RecalibratorSpec

_HEAD = ("Estimate", "Before", "After", "Change", "95% interval of the change")
_SECONDS = 6 * 3600.0
_WORDS = {
    "kernel": ("epanechnikov", "uniform"),
    "smoothing": ("auto", "kernel", "none"),
}
SETTINGS = ("k", "space", *_WORDS)


def listed() -> str:
    """The recalibrators of a regression, as a table."""
    from kdcal_core.regression import RECALIBRATORS
    from kdcal_core.tasks.repair_file import repair_keys

    specs = [RECALIBRATORS[key] for key in repair_keys()]
    rows = [(one.key, one.family, "yes" if one.needs_space else "") for one in specs]
    head = ("Key", "Family", "Searches neighbours")
    shown = table(head, rows, range(3), [one.sentence for one in specs])
    return f"For a regression:\n\n{shown}\n\nSettings: {', '.join(SETTINGS)}."


def listed_values() -> list[dict[str, Any]]:
    """The recalibrators of a regression, as JSON values."""
    from kdcal_core.regression import RECALIBRATORS
    from kdcal_core.tasks.repair_file import repair_keys

    return [
        {
            "task": "regression",
            "key": one.key,
            "name": one.title,
            "family": one.family,
            "searches_neighbours": one.needs_space,
            "description": one.sentence,
            "settings": [name for name in SETTINGS if name in _has(one)],
        }
        for one in (RECALIBRATORS[key] for key in repair_keys())
    ]


def _has(spec: RecalibratorSpec) -> tuple[str, ...]:
    """The settings that a recalibrator has."""
    return (*spec.settings, *(("space",) if spec.needs_space else ()))


def fit(options: argparse.Namespace) -> Report:
    """Fit the recalibrator of checked options, write it, and return the report.

    Raises
    ------
    InputError
        For input that cannot be used. Nothing is written then.
    """
    chosen = _settings(options)
    if options.layer is not None:
        chosen["space"] = f"layer:{options.layer}"
    _refuse_unread(options.calibrator, chosen)
    settings = {"key": options.calibrator, "seed": options.seed, **chosen}
    with temporary_folder() as folder, progress_line() as progress:
        review = scored_review(Workspace(folder), named_files(options))
        note_results(review)
        found = run_limited(
            "kdcal_core.cli.calibrate_regression:fit_and_save",
            {
                "home": str(folder),
                "review_id": review.id,
                "settings": settings,
                "out": str(Path(options.out).absolute()),
            },
            seconds=_SECONDS,
            progress=progress,
            what="Fitting the recalibrator",
        )
    if options.json:
        return fitted_report(options, found, review.tables["calibration"].name, chosen)
    return Report(_report(review, found, Path(options.out).name))


def fit_and_save(
    home: str, review_id: str, settings: dict[str, Any], out: str, progress: Progress
) -> dict[str, Any]:
    """Fit and judge a recalibrator on a scored review, and write its file.

    Parameters
    ----------
    home : str
        Folder of the workspace.
    settings : dict
        As for :class:`kdcal_core.tasks.repair_file.RepairSettings`.
    out : str
        The file to write.

    Returns
    -------
    dict
        ``title``, ``rows``, ``notes``, ``judged``, and ``estimates``, each with its change.

    Raises
    ------
    InputError
        The recalibrator cannot be fitted, or a setting is unknown.
    """
    from kdcal_core.evaluation import MEASURES
    from kdcal_core.regression import save_recalibrator
    from kdcal_core.tasks.repair_file import (
        ON_CARD,
        RepairSettings,
        fit_and_judge_repair,
        settled,
    )
    from kdcal_core.tasks.spaces import SPACE_READS

    workspace = Workspace(Path(home))
    reader = ReviewReader(workspace, review_id, SPACE_READS)
    asked = settled(reader.review, RepairSettings(**settings))
    made = fit_and_judge_repair(reader, asked, progress)
    save_recalibrator(made.recalibrator, out, made.card, made.encoding)
    before, after = made.methods[0], made.methods[1]
    rows = []
    for key in ON_CARD:
        if key not in before.scores.rows or key not in after.scores.rows:
            continue
        change = after.differences.get(key)
        rows.append(
            {
                "label": MEASURES[key].title,
                "percent": after.scores.rows[key].percent,
                "before": before.scores.rows[key].value,
                "after": after.scores.rows[key].value,
                "low": after.scores.rows[key].low,
                "high": after.scores.rows[key].high,
                "change": None if change is None else change.value,
                "change_low": None if change is None else change.low,
                "change_high": None if change is None else change.high,
            }
        )
    judged = "the evaluation set" if made.judge == "evaluation" else "cross-fitted calibration rows"
    return {
        "title": made.card.title,
        "rows": made.n_fit,
        "notes": list(made.card.notes),
        "judged": f"{judged}, {made.n_judged:,} rows",
        "estimates": rows,
    }


def _refuse_unread(key: str, chosen: dict[str, Any]) -> None:
    """Refuse a setting that the recalibrator does not have."""
    from kdcal_core.regression import RECALIBRATORS

    spec = RECALIBRATORS[key]
    has = _has(spec)
    for name in chosen:
        if name not in has:
            own = [one for one in SETTINGS if one in has]
            raise InputError(
                f"{spec.title} has no setting {name!r}",
                fix=f"It has {', '.join(own) or 'none'}.",
            )


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, text in options.set:
        if name not in SETTINGS:
            raise InputError(
                f"There is no setting {name[:60]!r}", fix=f"Choose among {', '.join(SETTINGS)}."
            )
        if name in found:
            raise InputError(f"The setting {name!r} is given twice", fix="Give it once.")
        found[name] = _value(name, text)
    return found


def _value(name: str, text: str) -> Any:
    if name in _WORDS and text not in _WORDS[name]:
        raise InputError(
            f"The setting {name} cannot be {text[:60]!r}",
            fix=f"Give one of {', '.join(_WORDS[name])}.",
        )
    if name != "k":
        return text
    if not text.isdecimal() or int(text) < 2:
        raise InputError(
            f"The number of neighbours cannot be {text[:60]!r}",
            fix="Give a whole number of at least 2, or leave it out: kdcal then chooses it.",
        )
    return int(text)


def _report(review: Review, found: dict[str, Any], out: str) -> str:
    source = printable(review.tables["calibration"].name, 80)
    lines = [f"{found['title']}, fitted on {found['rows']:,} rows of {source}."]
    if review.signature is not None:
        lines.append(f"{review.signature.said}.")
    lines += [printable(one) for one in (*found["notes"], *table_notes(review, "calibration"))]
    gains = table(_HEAD, [_gain(one) for one in found["estimates"]], left=(0,))
    parts = ["\n".join(lines), f"Judged: {found['judged']}.", gains]
    return "\n\n".join([*parts, f"Wrote {printable(out, 200)}."])


def _gain(one: dict[str, Any]) -> tuple[str, ...]:
    known = one["change"] is not None
    width = one["high"] - one["low"]
    if known:
        width = min(width, one["change_high"] - one["change_low"])

    def text(name: str) -> str:
        return number_text(one[name], width, one["percent"])

    interval = f"{text('change_low')} to {text('change_high')}" if known else "none"
    return (
        one["label"],
        text("before"),
        text("after"),
        text("change") if known else "none",
        interval,
    )
