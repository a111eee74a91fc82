"""``kdcal score``: scores a table with a model and its calibrator."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kdcal_core.cli.as_json import json_report
from kdcal_core.cli.review_of_options import named_files
from kdcal_core.cli.terminal import (
    Report,
    check_new_folder,
    check_out,
    progress_line,
    table,
    temporary_folder,
    with_standard_input,
)
from kdcal_core.data import OutputKind
from kdcal_core.data.parquet_folder import allowed_roots, is_parted, parquet_files
from kdcal_core.data.scored_rows import SUFFIXES, TablesToScore
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.progress import Progress
from kdcal_core.review import check_outputs
from kdcal_core.store.archive import new_file
from kdcal_core.text import formatted, printable, seconds_text, share_text

# A table may have any length, so the work has no time limit.
_SECONDS = 30 * 24 * 3600.0


def run(options: argparse.Namespace) -> Report:
    """Score ``options.data`` or ``options.predictions`` into ``options.out``; return the report.

    Raises
    ------
    InputError
        For input that cannot be used, with its file, column and row. Nothing is written then.
    """
    with with_standard_input(options) as given:
        return _score(given)


def _score(options: argparse.Namespace) -> Report:
    parted = is_parted(options.data or options.predictions)
    tables = _check(options, parted=parted)
    start = time.monotonic()
    out = Path(options.out)
    # Model, table and calibrator are read in a worker process with limits, as uploads are.
    with _made(out, tables, parted=parted) as (suffix, outs), progress_line() as progress:
        found = run_limited(
            "kdcal_core.cli.score:score_files",
            {
                "calibrator": str(Path(options.calibrator).absolute()),
                "tables": [
                    {"path": str(path), "name": name, "out": str(one)}
                    for (path, name), one in zip(tables, outs, strict=True)
                ],
                "suffix": suffix,
                "model": str(Path(options.model).absolute()) if options.model else None,
                "any_model": options.any_model,
                "outputs": [list(pair) for pair in options.outputs or ()],
                "output_kind": options.output_kind,
                "parameters": [list(pair) for pair in options.parameters or ()],
                "keep": list(options.keep),
            },
            seconds=_SECONDS,
            progress=progress,
            what="Scoring the table",
        )
    if options.json:
        return json_report({**_values(found), "notes": found["notes"], "out": options.out})
    return Report(_report(found, out.name, time.monotonic() - start))


@contextmanager
def _made(
    out: Path, tables: Sequence[tuple[Path, str]], *, parted: bool
) -> Iterator[tuple[str, list[Path]]]:
    """The format, and a file to write for each table, in place after the body succeeds."""
    if not parted:
        with new_file(out) as file:
            yield out.suffix.lower(), [file.absolute()]
        return
    whole = out.absolute()
    with temporary_folder(whole.parent) as folder:
        made = folder / whole.name
        places = [made / name for _, name in tables]
        for one in places:
            one.parent.mkdir(parents=True, exist_ok=True)
        yield ".parquet", places
        made.rename(whole)


def score_files(
    parameters: list[list[str]],
    outputs: list[list[str]],
    output_kind: OutputKind | None,
    calibrator: str,
    tables: list[dict[str, str]],
    suffix: str,
    keep: list[str],
    progress: Progress,
    **given: Any,
) -> dict[str, Any]:
    """Score tables with a calibrator or a recalibrator, whichever the file holds.

    Raises
    ------
    InputError
        As from `score_tables` and `recalibrate_tables`, and for columns named as of the other task.
    """
    from kdcal_core.calibration.export.score_table import score_tables
    from kdcal_core.regression.recalibrated_table import recalibrate_tables
    from kdcal_core.store.archive import archive_kind

    asked = TablesToScore(tables, suffix, keep)
    if archive_kind(calibrator) == "recalibrator":
        if outputs or output_kind:
            raise InputError(
                "The file is of a regression, and --outputs names columns of classes",
                fix="Name the columns of the forecasts: --parameters mean=COLUMN.",
            )
        return recalibrate_tables(
            calibrator, asked, parameters=parameters, progress=progress, **given
        )
    if parameters:
        raise InputError(
            "The file is of a classification, and --parameters names columns of a regression",
            fix="Name the columns of the classes: --outputs CLASS=COLUMN.",
        )
    return score_tables(
        calibrator, asked, outputs=outputs, output_kind=output_kind, progress=progress, **given
    )


def _check(options: argparse.Namespace, *, parted: bool) -> Sequence[tuple[Path, str]]:
    """The tables to score, each with its name, if all options fit."""
    if options.data and not options.model:
        raise InputError("--data needs --model", fix="Or give --predictions alone.")
    if options.predictions and options.model:
        raise InputError("--predictions takes no --model", fix="Give --data with --model.")
    check_outputs(named_files(options))
    source = options.data or options.predictions
    suffix = Path(options.out).suffix.lower()
    for path in (options.calibrator, options.model, None if parted else source):
        if path and not Path(path).is_file():
            raise InputError("There is no such file", fix="Check its path.", file=path)
    tables: Sequence[tuple[Path, str]] = [(Path(str(source)).absolute(), Path(str(source)).name)]
    if parted:
        tables = parquet_files(source, allowed_roots() or None)
    if parted and suffix in SUFFIXES:
        raise InputError(
            "Rows in many files are scored into a folder, with a file for each of theirs",
            fix="Name a folder that does not exist yet.",
            file=options.out,
        )
    if parted:
        check_new_folder(options.out)
        return tables
    if suffix not in SUFFIXES:
        raise InputError(
            f"The suffix {Path(options.out).suffix!r} names no format to write",
            fix="Name the file .csv or .parquet.",
            file=options.out,
        )
    check_out(options.out, (source, options.model, options.calibrator), force=options.force)
    return tables


def _values(found: dict[str, Any]) -> dict[str, Any]:
    """What the scored rows hold, as JSON values."""
    rows = found["rows"]
    if "classes" not in found:
        means = {"mean_forecast": found["mean"], "mean_std": found["std"]}
        return {"task": "regression", "rows": rows, "outcome": found["outcome"], **means}
    shares = [{"class": one, "rows": n, "share": n / rows} for one, n in found["classes"].items()]
    return {
        "task": "classification",
        "rows": rows,
        "mean_confidence": found["confidence"],
        "classes": shares,
    }


def _report(found: dict[str, Any], out: str, seconds: float) -> str:
    rows = found["rows"]
    if "classes" not in found:
        return _regression(found, out, seconds)
    lines = [
        f"{rows:,} rows in {seconds_text(seconds)}, mean confidence {found['confidence']:.1%}."
    ]
    lines += [printable(note) for note in found["notes"]]
    shares = [(name, f"{n:,}", share_text(n / rows)) for name, n in found["classes"].items()]
    return "\n".join(
        [*lines, "", table(("Predicted class", "Rows", "Share"), shares), "", f"Wrote {out}."]
    )


def _regression(found: dict[str, Any], out: str, seconds: float) -> str:
    """The report of a regression's table."""
    rows = found["rows"]
    what = printable(found["outcome"], 60) or "the outcome"
    lines = [
        f"{rows:,} rows in {seconds_text(seconds)}, mean forecast of {what} "
        f"{formatted(found['mean'], '.4g')}, mean standard deviation "
        f"{formatted(found['std'], '.4g')}.",
        *(printable(note) for note in found["notes"]),
    ]
    return "\n".join([*lines, "", f"Wrote {out}."])
