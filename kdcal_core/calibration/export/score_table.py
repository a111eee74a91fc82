"""Scores tables of any length with a saved calibrator, block by block in constant memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from kdcal_core.calibration.export.calibrator_file import LoadedCalibrator, load_calibrator
from kdcal_core.calibration.export.card import CalibratorCard
from kdcal_core.calibration.fitting import Calibrated
from kdcal_core.data import (
    FloatArray,
    OutputKind,
    Roles,
    check_proba,
    guess_roles,
    output_matrix,
)
from kdcal_core.data.csv_tables import safe_cell
from kdcal_core.data.labels import doubts_of_roles
from kdcal_core.data.role_guesses import output_kind_named
from kdcal_core.data.scored_rows import TablesToScore
from kdcal_core.data.tables import TableBlocks
from kdcal_core.errors import InputError
from kdcal_core.models import Model, load_model, model_info
from kdcal_core.progress import Progress, silent
from kdcal_core.text import counted, listed


def score_table(
    calibrator: str,
    data: str,
    out: str,
    suffix: str,
    model: str | None = None,
    any_model: bool = False,
    outputs: Sequence[Sequence[str]] = (),
    output_kind: OutputKind | None = None,
    keep: Sequence[str] = (),
    progress: Progress = silent,
) -> dict[str, Any]:
    """Score a table and write calibrated probabilities, predicted class and confidence of each row.

    Meant for a worker process: arguments and result are JSON values.

    Parameters
    ----------
    calibrator : str
        Path of a file of :func:`kdcal_core.calibration.export.save_calibrator`.
    data : str
        Path of a CSV or Parquet table: rows for the model or, without a model, its predictions.
    out : str
        Path of the file to write, with columns "row" (1 is the first row of data), "proba_" and the
        name of each class, "predicted", "confidence".
    suffix : {".csv", ".parquet"}
        The format to write.
    model : str, optional
        Path of the model that was calibrated.
    any_model : bool
        Whether to accept another model.
    outputs : sequence of (class, column)
        Which columns hold the predictions, of all classes or only one of two. By default those of
        the calibrator's fit, if the table has them; otherwise they are guessed by name.
    output_kind : {"probability", "percent", "logit"}, optional
        Kind of these columns, if neither their names nor the fit determine it.
    keep : sequence of str
        Columns of the table that are written too, as text, behind "row".
    progress : callable, optional
        Called with the share of rows done and their number; may raise to cancel.

    Returns
    -------
    dict
        ``rows``; ``classes`` with the number of rows predicted as each; ``confidence``, the mean;
        ``notes``, sentences; ``fitted_on``, the digest of each table that the calibrator was fitted
        on.

    Raises
    ------
    InputError
        If a file cannot be used, the calibrator is for another model, a column is missing, or a row
        cannot be scored; with file, column and row.
    """
    return score_tables(
        calibrator,
        TablesToScore.one(data, out, suffix, keep),
        model,
        any_model,
        outputs,
        output_kind,
        progress,
    )


def score_tables(
    calibrator: str,
    asked: TablesToScore,
    model: str | None = None,
    any_model: bool = False,
    outputs: Sequence[Sequence[str]] = (),
    output_kind: OutputKind | None = None,
    progress: Progress = silent,
) -> dict[str, Any]:
    """As `score_table`, of the parts of one table.

    The columns that hold the predictions follow from the first part with rows.
    """
    scorer: _Predictions | _Model
    if model is None:
        named = tuple((name, at) for name, at in outputs)
        scorer = _Predictions.of(calibrator, asked.first, named, output_kind)
    else:
        scorer = _Model.of(calibrator, asked.first, model, any_model)
    classes = scorer.loaded.card.classes
    shown = tuple(map(safe_cell, classes)) if asked.suffix == ".csv" else classes
    unseen: Counter[str] = Counter()
    counts, total = np.zeros(len(classes), dtype=np.int64), 0.0

    def answers(frame: pd.DataFrame, part: TableBlocks) -> list[pa.Array]:
        nonlocal counts, total
        found = scorer.loaded.calibrated(replace(scorer, table=part).proba(frame), frame)
        unseen.update(scorer.loaded.calibrator.unseen(frame))
        counts += np.bincount(found.predicted, minlength=len(classes))
        total += float(found.confidence.sum())
        return _answers(found, shown)

    done, notes = asked.write(scorer.columns, _columns(classes), answers, progress)
    return {
        "rows": done,
        "classes": dict(zip(classes, counts.tolist(), strict=True)),
        "confidence": total / done,
        "fitted_on": {
            part: mark.digest
            for part, mark in scorer.loaded.card.data.items()
            if part != "evaluation"
        },
        "notes": [
            *scorer.notes,
            *notes,
            *(
                f"{counted(n, 'row')} {'has' if n == 1 else 'have'} a category in "
                f"{column[:80]!r} that the calibrator's fit did not see: it treats their value as "
                "missing."
                for column, n in unseen.items()
            ),
        ],
    }


@dataclass(frozen=True, eq=False)
class _Model:
    """Scores rows with a model."""

    loaded: LoadedCalibrator
    table: TableBlocks
    columns: list[str]
    notes: list[str]
    model: Model
    inputs: list[str]

    @classmethod
    def of(cls, calibrator: str, table: TableBlocks, model: str, any_model: bool) -> _Model:
        opened = load_model(model, task="classification")
        digest = model_info(opened, model, Path(model).name).digest
        loaded = load_calibrator(calibrator, model=opened, any_model=True)
        notes = _check_model(loaded, opened, digest, any_model)
        inputs = list(opened.feature_names or loaded.card.features[: opened.n_features])
        if not inputs:
            inputs = list(table.names)
        columns = list(dict.fromkeys([*inputs, *loaded.reads]))
        return cls(loaded, table, columns, notes, opened, inputs)

    def proba(self, frame: pd.DataFrame) -> FloatArray:
        classes = self.loaded.card.classes
        return check_proba(
            self.model.predict_proba(frame[self.inputs]), n_classes=len(classes), columns=classes
        )


@dataclass(frozen=True, eq=False)
class _Predictions:
    """Scores rows that have the model's predictions in columns."""

    loaded: LoadedCalibrator
    table: TableBlocks
    columns: list[str]
    notes: list[str]
    roles: Roles

    @classmethod
    def of(
        cls,
        calibrator: str,
        table: TableBlocks,
        named: tuple[tuple[str, str], ...],
        kind: OutputKind | None,
    ) -> _Predictions:
        loaded = load_calibrator(calibrator, any_model=True)
        if loaded.card.layer is not None:
            raise InputError(
                f"The calibrator reads the model's hidden layer {loaded.card.layer[:80]!r}, which "
                "a table of predictions does not hold",
                fix="Score the rows with the model: give --model and --data.",
            )
        classes = loaded.card.classes
        roles = _roles(loaded.card, table, named)
        roles = replace(roles, output_kind=kind or roles.output_kind)
        output_matrix(table.head(), roles, classes, table.file)
        outputs = [column for _, column in roles.outputs]
        notes = list(doubts_of_roles(roles, classes))
        if (known := loaded.card.model) is not None:
            notes.append(
                f"The calibrator was fitted for the model {known.name[:80]!r}; that these "
                "predictions are that model's cannot be checked."
            )
        return cls(loaded, table, list(dict.fromkeys([*outputs, *loaded.reads])), notes, roles)

    def proba(self, frame: pd.DataFrame) -> FloatArray:
        return output_matrix(frame, self.roles, self.loaded.card.classes, self.table.file)


def _roles(card: CalibratorCard, table: TableBlocks, named: tuple[tuple[str, str], ...]) -> Roles:
    """The columns with the predictions: as named, as at the fit, or as guessed."""
    if named:
        kind = output_kind_named([column for _, column in named])
        return Roles(outputs=named, output_kind=kind)
    known = [column for _, column in card.outputs]
    lacking = [column for column in known if column not in table.names]
    if known and not lacking:
        return Roles(outputs=card.outputs, output_kind=card.output_kind)
    roles = guess_roles(table.head(), classes=card.classes)
    if lacking and not roles.outputs:
        raise InputError(
            "The table lacks a column that held the model's outputs when the calibrator was fitted",
            fix="Name the columns that do now: --outputs CLASS=COLUMN.",
            file=table.file,
            column=lacking[0],
        )
    return roles


def _check_model(loaded: LoadedCalibrator, model: Model, digest: str, any_model: bool) -> list[str]:
    """Refuse a model that the calibrator cannot be used with; return notes."""
    classes = loaded.card.classes
    fits = model.classes == classes if model.named_classes else True
    if len(model.classes) != len(classes) or (any_model and not fits):
        given, fitted = (
            listed(repr(name[:40]) for name in names) for names in (model.classes, classes)
        )
        raise InputError(
            f"The model's classes are {given}, and the calibrator was fitted for {fitted}",
            fix="Give the model that it was fitted for, or fit a calibrator for this one.",
        )
    if not any_model:
        loaded.check_model(digest)
        return []
    known = loaded.card.model
    if known is not None and known.digest == digest:
        return []
    return ["The calibrator was fitted for another model: its probabilities need not hold here."]


def _answers(found: Calibrated, shown: tuple[str, ...]) -> list[pa.Array]:
    names = pa.DictionaryArray.from_arrays(pa.array(found.predicted), pa.array(list(shown)))
    return [
        *(pa.array(np.ascontiguousarray(column)) for column in found.proba.T),
        names.cast(pa.string()),
        pa.array(found.confidence),
    ]


def _columns(classes: tuple[str, ...]) -> list[tuple[str, pa.DataType]]:
    """What is written of each row."""
    proba = [(f"proba_{name}", pa.float64()) for name in classes]
    return [*proba, ("predicted", pa.string()), ("confidence", pa.float64())]
