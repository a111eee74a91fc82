"""``kdcal calibrate``: held-out rows in, a calibrator file out, with what it gains."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from kdcal_core.calibration.registry import CALIBRATORS, calibrator_entry
from kdcal_core.cli.diagnose import check_files, scored_review
from kdcal_core.cli.text import printable, table
from kdcal_core.cli.writing import check_out
from kdcal_core.diagnostics import number_text
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.review import Review, Workspace, add_training

_SECONDS = 6 * 3600.0
_NEEDED = {"inputs": "the rows' columns", "parent": "the model"}


def run(options: argparse.Namespace) -> None:
    """List the calibrators, or fit one, write it to ``options.out`` and say what it gains.

    Raises
    ------
    InputError
        For what cannot be used, with its file, column and row. Nothing is written then.
    """
    if options.list:
        print(_listed())
        return
    _check(options)
    # Files are read in worker processes with limits, as hostile as an upload to the app.
    with tempfile.TemporaryDirectory(prefix="kdcal-") as folder:
        workspace = Workspace(Path(folder))
        review = scored_review(workspace, options)
        if options.training:
            training = Path(options.training)
            review = add_training(workspace, review.id, training, training.name)
        found = run_limited(
            "kdcal_core.cli.fit_in_worker:fit_and_save",
            {
                "home": folder,
                "review_id": review.id,
                "key": options.calibrator,
                "out": str(Path(options.out).absolute()),
                "seed": options.seed,
            },
            seconds=_SECONDS,
            progress=_show if sys.stderr.isatty() else None,
            what="Fitting the calibrator",
        )
    print(_report(review, found, Path(options.out).name))


def _check(options: argparse.Namespace) -> None:
    for word, value in (
        ("--calibrator", options.calibrator),
        ("--target", options.target),
        ("--out", options.out),
    ):
        if not value:
            raise InputError(f"{word} is missing", fix="See 'kdcal calibrate --help'.")
    if bool(options.data) == bool(options.predictions):
        raise InputError("Give either --data with --model, or --predictions")
    calibrator_entry(options.calibrator)
    check_files(options)
    if options.training and not Path(options.training).is_file():
        raise InputError("There is no such file", fix="Check its path.", file=options.training)
    read = (options.data, options.predictions, options.model, options.evaluation, options.training)
    check_out(options.out, read)


def _show(share: float, note: str) -> None:
    print(f"\r{note:<40}", end="", file=sys.stderr, flush=True)


def _listed() -> str:
    rows = [
        (
            key,
            entry.family,
            "yes" if entry.offered else "",
            ", ".join(_NEEDED[need] for need in entry.needs),
            entry.description,
        )
        for key, entry in CALIBRATORS.items()
    ]
    return table(("Key", "Family", "Offered", "Also reads", "What it does"), rows, left=range(5))


def _report(review: Review, found: dict[str, Any], out: str) -> str:
    title = CALIBRATORS[found["key"]].name
    lines = [f"{title}, fitted on {found['rows']:,} rows of {printable(_source(review), 80)}."]
    lines += [printable(note) for note in found["notes"]]
    parts = ["\n".join(lines)]
    if found["estimates"]:
        parts.append(f"Judged: {found['estimates'][0]['judged']}.")
        parts.append(table(("Estimate", "Before", "After", "95% interval"), _gains(found)))
    parts.append(f"Wrote {printable(out, 200)}.")
    return "\n\n".join(parts)


def _gains(found: dict[str, Any]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for one in found["estimates"]:
        width = one["high"] - one["low"]
        before, after, low, high = (
            number_text(one[name], width) for name in ("before", "after", "low", "high")
        )
        rows.append((one["label"], before, after, f"{low} to {high}"))
    return rows


def _source(review: Review) -> str:
    return review.tables["calibration"].name
