"""``kdcal calibrate``: fits a calibrator on held-out rows, writes it and reports its gain.

A worker process fits, judges and writes it.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdcal_core.calibration import CALIBRATORS, calibrator_entry
from kdcal_core.calibration.export import save_calibrator
from kdcal_core.calibration.fitting import check_layer
from kdcal_core.calibration.settings import configured, setting_from_text, settings_of
from kdcal_core.cli.as_json import fitted_report, json_report, plain
from kdcal_core.cli.review_of_options import (
    copies_words,
    doubts_words,
    named_files,
    outputs_words,
    table_notes,
)
from kdcal_core.cli.terminal import (
    Report,
    check_out,
    progress_line,
    table,
    temporary_folder,
    with_standard_input,
)
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.progress import Progress
from kdcal_core.review import (
    Review,
    ReviewReader,
    Workspace,
    check_files,
    note_results,
    scored_review,
)
from kdcal_core.text import number_text, printable

if TYPE_CHECKING:
    from kdcal_core.tasks.export_fit import Fitted

_HEAD = ("Estimate", "Before", "After", "Change", "95% interval", "Verdict")
SUFFIX = ".kdcal"
_SECONDS = 6 * 3600.0
_NEEDED = {"inputs": "the rows' columns", "model": "the model"}


def run(options: argparse.Namespace) -> Report:
    """List the calibrators, or fit one, write it to ``options.out`` and report its gain.

    Raises
    ------
    InputError
        For input that cannot be used, with its file, column and row. Nothing is written then.
    """
    if options.list:
        return _list(options)
    with with_standard_input(options) as given:
        return _fit(given)


def _fit(options: argparse.Namespace) -> Report:
    if _is_regression(options):
        from kdcal_core.cli.calibrate_regression import fit
        from kdcal_core.tasks.repair_file import repair_keys  # slow to import

        options.task = "regression"
        _check(options, repair_keys())
        return fit(options)
    options.task = "classification"
    _check(options)
    settings = _settings(options)
    # Files are read in worker processes with limits, because they may be hostile.
    with temporary_folder() as folder, progress_line() as progress:
        workspace = Workspace(folder)
        review = scored_review(workspace, named_files(options))
        note_results(review)
        found = run_limited(
            "kdcal_core.cli.calibrate:fit_and_save",
            {
                "home": str(folder),
                "review_id": review.id,
                "key": options.calibrator,
                "settings": settings,
                "layer": options.layer,
                "out": str(Path(options.out).absolute()),
                "seed": options.seed,
            },
            seconds=_SECONDS,
            progress=progress,
            what="Fitting the calibrator",
        )
        warnings = (*doubts_words(review), *copies_words(workspace, review))
    if options.json:
        return fitted_report(options, found, _source(review), settings, warnings)
    return Report(_report(review, found, warnings, Path(options.out).name))


def fit_and_save(
    home: str,
    review_id: str,
    key: str,
    settings: dict[str, Any],
    layer: str | None,
    out: str,
    seed: int,
    progress: Progress,
) -> dict[str, Any]:
    """Fit the calibrator of this key on a scored review, judge it and write its file.

    Parameters
    ----------
    home : str
        Folder of the workspace.
    settings : dict
        As for :func:`kdcal_core.calibration.settings.configured`.
    layer : str or None
        Hidden layer of the model on whose activations the regions are built.
    out : str
        The file to write.
    seed : int
        Seed of every draw.

    Returns
    -------
    dict
        ``title``, ``rows``, ``notes``, and ``estimates`` as in the file's card, each with its
        ``change``, ``change_low``, ``change_high`` and ``verdict``. A bound is None where there is
        no interval.

    Raises
    ------
    InputError
        The calibrator needs data that the review does not have, or there are too few rows.
    """
    # slow to import, and only the worker needs it
    from kdcal_core.tasks.export_fit import READS, Wanted, fit_and_judge

    wanted = Wanted(key, configured(key, settings, seed=seed), layer, seed=seed)
    made = fit_and_judge(ReviewReader(Workspace(Path(home)), review_id, READS), wanted, progress)
    save_calibrator(made.calibrator, out, made.card)
    return {
        "title": made.card.title,
        "rows": made.data.calibration.n_rows,
        "notes": made.card.notes,
        "estimates": plain(_with_changes(made)),
    }


def _with_changes(made: Fitted) -> list[dict[str, Any]]:
    """The card's estimates, each with its change on the same rows and its verdict."""
    if made.found is None:
        return []
    from kdcal_core.evaluation import Gain

    gain = Gain.of(made.found)
    measures = {one.title: one for one in made.found.measures if one.key in gain.pairs}
    pairs = {title: gain.pairs[one.key] for title, one in measures.items()}
    return [
        {
            **asdict(one),
            "change": pairs[one.label].difference.value,
            "change_low": pairs[one.label].difference.low,
            "change_high": pairs[one.label].difference.high,
            "percent": gain.after.scores[measures[one.label].key].percent,
            "verdict": pairs[one.label].verdict,
        }
        for one in made.card.estimates
    ]


def _is_regression(options: argparse.Namespace) -> bool:
    """Whether the options are of a regression: they say so, or only it has such a calibrator."""
    if options.task or not options.calibrator:
        return bool(options.task == "regression")
    if options.family or options.parameters:
        return True
    from kdcal_core.regression import RECALIBRATORS

    return options.calibrator in RECALIBRATORS and options.calibrator not in CALIBRATORS


def _check(options: argparse.Namespace, repairs: tuple[str, ...] = ()) -> None:
    for word, value in (
        ("--calibrator", options.calibrator),
        ("--target", options.target),
        ("--out", options.out),
    ):
        if not value:
            raise InputError(f"{word} is missing", fix="See 'kdcal calibrate --help'.")
    if bool(options.data) == bool(options.predictions):
        raise InputError("Give either --data with --model, or --predictions")
    if not repairs:
        calibrator_entry(options.calibrator)
    elif options.calibrator not in repairs:
        raise InputError(
            f"There is no recalibrator {options.calibrator[:60]!r}",
            fix=f"Choose among {', '.join(repairs)}.",
        )
    check_files(named_files(options))
    read = (options.data, options.predictions, options.model, options.evaluation, options.training)
    check_out(options.out, read, force=options.force)
    if Path(options.out).suffix.lower() != SUFFIX:
        raise InputError(
            f"A calibrator is written as a {SUFFIX} file",
            fix=f"Name it {printable(Path(options.out).with_suffix(SUFFIX).name, 80)!r}. The page "
            "Choose and export writes ONNX models, where ONNX can express the calibrator.",
            file=options.out,
        )


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """The checked settings, by name."""
    key, found = options.calibrator, dict[str, Any]()
    for name, text in options.set:
        if name in found:
            raise InputError(f"The setting {name!r} is given twice", fix="Give it once.")
        found[name] = setting_from_text(key, name, text)
    calibrator = configured(key, found, seed=options.seed)
    if options.layer is not None:
        if not options.model:
            raise InputError(
                "--layer needs --model", fix="The layer is one of the model's: give --model."
            )
        check_layer(calibrator)
    return found


def _list(options: argparse.Namespace) -> Report:
    """The calibrators, or the settings of one; --quiet leaves what was asked for."""
    from kdcal_core.cli.calibrate_regression import listed, listed_values

    key = options.calibrator
    if options.json and key is None:
        return json_report([*map(_as_values, CALIBRATORS), *listed_values()])
    if options.json:
        return json_report([_as_values(key)])
    said = f"{_listed()}\n\n{listed()}" if key is None else _described(key)
    return Report(said, asked=True)


def _as_values(key: str) -> dict[str, Any]:
    entry = calibrator_entry(key)
    return {
        "task": "classification",
        "key": key,
        "name": entry.name,
        "family": None if entry.family == "model" else entry.family,
        "offered": entry.offered,
        "needs": entry.needs,
        "description": entry.description,
        "reference": entry.reference,
        "settings": [
            {"name": one.name, "default": one.default, "allowed": one.allowed}
            for one in settings_of(key)
        ],
    }


def _listed() -> str:
    rows, below = [], []
    for key, entry in CALIBRATORS.items():
        needs = ", ".join(_NEEDED[need] for need in entry.needs)
        settings = ", ".join(one.name for one in settings_of(key))
        family = "no calibrator" if entry.family == "model" else entry.family
        rows.append((key, family, "yes" if entry.offered else "", needs))
        below.append(entry.description + (f" Settings: {settings}." if settings else ""))
    head = ("Key", "Family", "Offered", "Also reads")
    more = "Allowed values of settings: kdcal calibrate --list --calibrator KEY"
    return f"{table(head, rows, range(4), below)}\n\n{more}"


def _described(key: str) -> str:
    """A calibrator with its settings, as text."""
    entry, settings = calibrator_entry(key), settings_of(key)
    parts = [f"{entry.name}. {entry.description} Described in {entry.reference}."]
    rows = [(one.name, _text(one.default), one.allowed) for one in settings]
    if rows:
        head = ("Setting", "Default", "Allowed values")
        parts.append(table(head, rows, left=range(3)))
        parts.append("Set one with --set NAME=VALUE, once for each.")
    else:
        parts.append("It has no settings.")
    return "\n\n".join(parts)


def _text(value: Any) -> str:
    words = {None: "none", True: "yes", False: "no"}
    return words[value] if value is None or isinstance(value, bool) else str(value)


def _report(review: Review, found: dict[str, Any], warnings: tuple[str, ...], out: str) -> str:
    title, source = printable(found["title"], 300), printable(_source(review), 80)
    lines = [f"Warning: {warning}" for warning in warnings]
    lines.append(f"{title}, fitted on {found['rows']:,} rows of {source}.")
    if review.model is None:
        lines.append(outputs_words(review))
    if review.signature is not None:
        lines.append(f"{review.signature.said}.")
    notes = map(printable, (*found["notes"], *table_notes(review, "calibration")))
    lines += [note for note in notes if note not in warnings]
    parts = ["\n".join(lines)]
    if found["estimates"]:
        parts.append(
            f"Judged: {found['estimates'][0]['judged']}. The interval is that of the change."
        )
        parts.append(table(_HEAD, _gains(found), left=(0, 5)))
    parts.append(f"Wrote {printable(out, 200)}.")
    return "\n\n".join(parts)


def _gains(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """Each measure: Change is After less Before, and all three have the same decimals.

    The interval is that of the change; the file's card gives that of After.
    """
    rows: list[tuple[str, ...]] = []
    for one in found["estimates"]:
        bounds = (("low", "high"), ("change_low", "change_high"))
        given = [(low, high) for low, high in bounds if one[low] is not None]
        width = min((one[high] - one[low] for low, high in given), default=math.nan)

        def text(name: str, one: dict[str, Any] = one, width: float = width) -> str:
            return number_text(one[name], width, one["percent"])

        known = one["change_low"] is not None
        interval = f"{text('change_low')} to {text('change_high')}" if known else "none"
        cells = text("before"), text("after"), text("change"), interval
        rows.append((one["label"], *cells, one["verdict"]))
    return rows


def _source(review: Review) -> str:
    return review.tables["calibration"].name
