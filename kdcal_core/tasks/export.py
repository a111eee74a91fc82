"""Write a calibrator to a file, and try an existing file.

The first fits one calibrator on a review, judges it, and writes it to a file and, where possible,
as ONNX. The second shows the effect of a file on a review's rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from kdcal_core.calibration import CALIBRATORS, calibrator_entry
from kdcal_core.calibration.export import (
    CalibratorCard,
    LoadedCalibrator,
    can_export_onnx,
    export_onnx,
    load_calibrator,
    save_calibrator,
)
from kdcal_core.calibration.fitting import check_layer
from kdcal_core.calibration.settings import configured
from kdcal_core.diagnostics.calibrator_map import CalibratorMap, calibrator_map
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import Comparison, Gain, compare
from kdcal_core.progress import part_of
from kdcal_core.review import Part, Review, ReviewData, review_data
from kdcal_core.review.review import input_columns
from kdcal_core.tasks.comparison import usable_calibrators
from kdcal_core.tasks.decorators import FITTED, Sets, require_classification, review_task
from kdcal_core.tasks.export_fit import READS, AsFitted, Fitted, Wanted, fit_and_judge
from kdcal_core.text import in_sentence, listed

CALIBRATOR_FILE, ONNX_FILE = "calibrator.kdcal", "calibrated.onnx"


@dataclass(frozen=True)
class ExportSettings:
    """Which calibrator is fitted and exported.

    Attributes
    ----------
    key : str
        Key in `kdcal_core.calibration.CALIBRATORS`.
    inner : str
        The map inside a region, a key of `kdcal_core.calibration.regions.MAPS`. This and the next
        five apply only to calibrators of the family "partition".
    max_depth, min_rows : int or None
        Limits of its trees; None for the calibrator's default.
    prune : bool
        Whether a tree is cut back to the size with the best cross-validated log loss.
    columns : tuple of str
        Instead of a tree, a column whose values are the regions, or several columns whose
        combinations are. Untrusted text.
    layer : str or None
        A hidden layer of the model on which the trees are grown, instead of the inputs.
    distance, alpha, log_floor, prior
        Of the kernel density version, as in `GraphSettings` and `GraphSetting`; an alpha of None is
        the calibrator's own.
    folds, seed : int
        Number of folds where there is no evaluation set; seed of every draw.
    event : int or None
        The class whose probability calibration errors are about, with two classes; None for the
        confidence in the predicted class.
    """

    key: str
    inner: str = "platt"
    max_depth: int | None = None
    min_rows: int | None = None
    prune: bool = False
    columns: tuple[str, ...] = ()
    layer: str | None = None
    folds: int = 5
    seed: int = 0
    event: int | None = None
    distance: Literal["geodesic", "euclidean", "auto"] = "geodesic"
    alpha: float | None = None
    log_floor: float | None = None
    prior: tuple[float, ...] | None = None


@dataclass(frozen=True)
class ExportRecord:
    """The settings and facts of an export.

    Attributes
    ----------
    settings : ExportSettings
    title : str
        The calibrator's full name. Untrusted text where a column or a layer is named.
    n_fit, n_training : int
        Rows of the calibration set, and training rows on which a partition was grown.
    fit_seconds : float
    why_not_judged : str or None
        Why the calibrator was not judged; None where it was.
    onnx_difference : float or None
        Largest difference between the ONNX model and the calibrator, where one was written.
    onnx_rows : int
        Number of rows for this difference.
    why_no_onnx : str or None
    """

    settings: ExportSettings
    title: str
    n_fit: int
    n_training: int
    fit_seconds: float
    why_not_judged: str | None
    onnx_difference: float | None
    onnx_rows: int
    why_no_onnx: str | None


@dataclass(frozen=True, eq=False)
class ExportRun:
    """A fitted calibrator, its comparison with the model, and its files.

    Attributes
    ----------
    record : ExportRecord
    comparison : Comparison or None
        Comparison with the model as it is on rows that it was not fitted on; None where it could
        not be judged.
    map : CalibratorMap
    card : CalibratorCard
        Untrusted text: names of files, classes, columns.
    calibrator_file : Path
    onnx_file : Path or None
    """

    record: ExportRecord
    comparison: Comparison | None
    map: CalibratorMap
    card: CalibratorCard
    calibrator_file: Path = field(repr=False)
    onnx_file: Path | None = field(repr=False)

    @cached_property
    def gain(self) -> Gain | None:
        """The gain over the model; None where the calibrator was not judged."""
        return None if self.comparison is None else Gain.of(self.comparison)

    @property
    def fit_notes(self) -> tuple[str, ...]:
        """The card's notes about the fit, without those about the judgement."""
        why = self.record.why_not_judged
        judged = () if self.comparison is None else [one.sentence for one in self.comparison.notes]
        return tuple(
            note
            for note in self.card.notes
            if note not in judged and (why is None or not note.endswith(why))
        )


@dataclass(frozen=True, eq=False)
class TriedRun:
    """A calibrator file that was tried on a review.

    Attributes
    ----------
    card : CalibratorCard
        Untrusted.
    comparison : Comparison
        The model as it is and the calibrator on the review's rows.
    same_rows : bool
        Whether it was fitted on the same rows on which it is judged.
    has_model : bool
        Whether the file names the model that it was fitted for, which is then the review's model.
    """

    card: CalibratorCard
    comparison: Comparison
    same_rows: bool
    has_model: bool

    @cached_property
    def gain(self) -> Gain:
        """The gain over the model."""
        return Gain.of(self.comparison)


FEW_TREES = 10
_OF_MANY_TREES = ("heterogeneous_forest", "heterogeneous_boosted")
_SHOWN_NAME = 60


def partition_columns(review: Review) -> tuple[str, ...]:
    """Columns whose values can be the regions of a calibrator: all those without another role.

    Where a model does not name its columns, only those that it reads, because the model gets all
    columns of the calibrator's card. Untrusted text.
    """
    inputs = tuple(input_columns(review))
    roles, table = review.roles, review.tables["calibration"]
    if roles is None or (review.model is not None and review.model.feature_names is None):
        return inputs
    from kdcal_core.data.role_columns import used_columns

    taken = {*used_columns(roles), *inputs}
    others = [review.tables[which] for which in review.sets]
    free = tuple(
        name
        for name in table.column_names
        if name not in taken and all(name in one.column_names for one in others)
    )
    return (*inputs, *free)


def wanted_of(settings: ExportSettings) -> Wanted:
    """The unfitted calibrator that the settings describe.

    Examples
    --------
    >>> wanted_of(ExportSettings("heterogeneous_tree", inner="isotonic")).title
    'Isotonic regression in each region of a shallow tree'
    """
    calibrator = configured(settings.key, _parameters(settings), seed=settings.seed)
    return Wanted(
        settings.key, calibrator, settings.layer, settings.folds, settings.seed, settings.event
    )


def _parameters(settings: ExportSettings) -> dict[str, Any]:
    """The calibrator's parameters by name, without those left at their defaults."""
    family = calibrator_entry(settings.key).family
    if family == "kernel density":
        found: dict[str, Any] = {
            "distance": None if settings.distance == "geodesic" else settings.distance,
            "floor_quantile": settings.alpha,
            "log_floor": settings.log_floor,
            "prior": None if settings.prior is None else list(settings.prior),
        }
        return {name: value for name, value in found.items() if value is not None}
    if family != "partition":
        return {}
    found = {
        "calibrator": settings.inner,
        "max_depth": settings.max_depth,
        "min_rows": settings.min_rows,
        "prune": "cv" if settings.prune else None,
        "column": list(settings.columns) if len(settings.columns) > 1 else None,
        "n_trees": few_trees(settings.key, settings.inner),
    }
    if len(settings.columns) == 1:
        found["column"] = settings.columns[0]
    return {name: value for name, value in found.items() if value is not None}


def few_trees(key: str, inner: str) -> int | None:
    """A reduced number of trees where kernel densities in each region would take long.

    None where the calibrator's own number applies.
    """
    return FEW_TREES if inner == "kde" and key in _OF_MANY_TREES else None


def _settled(review: Review, settings: ExportSettings) -> ExportSettings:
    usable = usable_calibrators(review)
    if settings.key not in usable:
        raise InputError(
            f"There is no calibrator {settings.key[:_SHOWN_NAME]!r} to export",
            fix=f"Choose among {', '.join(usable)}.",
        )
    why = usable[settings.key]
    if why is not None:
        raise InputError(
            f"{CALIBRATORS[settings.key].name} is not available here: {in_sentence(why[:-1])}",
            fix="Choose another calibrator.",
        )
    if settings.layer is not None:
        layers = review.model.layers if review.model is not None else ()
        if settings.layer not in layers:
            raise InputError(
                f"The model has no hidden layer {settings.layer[:_SHOWN_NAME]!r}",
                fix=f"It has {', '.join(layers) or 'none'}.",
            )
    if settings.event is not None and settings.event not in range(len(review.classes)):
        raise InputError(
            f"There is no class {settings.event}", fix="Choose one of the review's classes."
        )
    wanted = wanted_of(settings)
    if settings.layer is not None:
        check_layer(wanted.calibrator)
    columns = partition_columns(review)
    for column in settings.columns:
        if column not in columns:
            raise InputError(
                "There is no such column to divide the rows by",
                fix="Choose a column that every table has.",
                column=column,
            )
    return settings


def _names(review: Review) -> dict[str, Any]:
    """The names in the file's card."""
    return {
        "names": [table.name for table in review.tables.values()],
        "training": review.training.name if review.training else None,
        "model": review.model.name if review.model else None,
    }


@review_task(
    "Fitting and writing the calibrator",
    reads=READS,
    needs=require_classification("calibrators are for classifications"),
    ranges={"folds": (2.0, 20.0), "seed": (0.0, 2.0**31), "prior": (0.0, 1.0)},
    settle=_settled,
    covers=_names,
    edition=f"typed notes, map of the event, temperature of half a nat, {FITTED}",
)
def export_calibrator(sets: Sets, settings: ExportSettings) -> ExportRun:
    """Fit a calibrator, judge it, and write its file.

    Raises
    ------
    InputError
        Where the calibrator cannot be fitted on these rows, or a file is missing. Where it can be
        fitted but not judged or not written as ONNX, the record says why.
    """
    reader, progress, path = sets.reader, sets.progress, sets.folder
    assert path is not None  # of every job
    made = fit_and_judge(reader, wanted_of(settings), part_of(progress, 0.0, 0.9))
    progress(0.9, "Writing the file")
    save_calibrator(made.calibrator, path / CALIBRATOR_FILE, made.card)
    onnx, why_no_onnx = _onnx(reader.review, made, reader.model_path, path)
    data = made.data
    judging = "evaluation" if data.evaluation is not None else "calibration"
    drawn = calibrator_map(
        made.calibrator,
        data.evaluation or data.calibration,
        data.inputs.get(judging) if made.calibrator.needs_inputs else None,
        seed=settings.seed,
        event=settings.event,
    )
    record = ExportRecord(
        settings=settings,
        title=made.card.title,
        n_fit=data.calibration.n_rows,
        n_training=made.n_training,
        fit_seconds=made.seconds,
        why_not_judged=made.why_not_judged,
        onnx_difference=None if onnx is None else onnx[0],
        onnx_rows=0 if onnx is None else onnx[1],
        why_no_onnx=why_no_onnx,
    )
    onnx_file = None if onnx is None else path / ONNX_FILE
    return ExportRun(record, made.found, drawn, made.card, path / CALIBRATOR_FILE, onnx_file)


def _onnx(
    review: Review, made: Fitted, model: Path | None, folder: Path
) -> tuple[tuple[float, int] | None, str | None]:
    """The ONNX model's largest difference with its number of rows, or why there is no model."""
    why = can_export_onnx(made.calibrator, review.model, made.card.layer)
    if why is not None or model is None:
        return None, why or "There is no model, only its predictions."
    rows = made.rows.inputs["calibration"]
    try:
        written = export_onnx(made.calibrator, model, folder / ONNX_FILE, made.card, rows)
    except InputError as error:
        return None, str(error)
    return (written.max_difference, written.n_rows), None


_KEY = "file"
_TRY_READS: tuple[Part, ...] = ("model", "calibration", "evaluation")


@review_task("Opening the calibrator file", reads=_TRY_READS, edition="typed notes")
def try_calibrator(
    sets: Sets, *, path: str, name: str, digest: str, event: int | None = None
) -> TriedRun:
    """Open a calibrator file and judge it on a review's rows.

    Parameters
    ----------
    path : str
        A copy of the file in the review's folder.
    name : str
        The file's original name. Untrusted text.
    digest : str
        The file's SHA-256.
    event : int or None
        As in `ExportSettings`.

    Raises
    ------
    InputError
        The file is cut off, altered, of a newer version, not a calibrator, or for another model,
        other classes or other columns.
    """
    reader, progress = sets.reader, sets.progress
    opened = reader.review
    progress(0.0, "Opening the file")
    data = review_data(reader, with_model=True)
    with _in_file(name):
        loaded = load_calibrator(path, model=data.model, any_model=True)
        _check_file(loaded, opened)
    data = _all_columns(data)
    judged = "evaluation" if data.evaluation is not None else "calibration"
    rows = data.evaluation or data.calibration
    progress(0.2, "Calibrating the rows")
    with _in_file(name):
        loaded.calibrated(rows.proba, data.inputs.get(judged))  # warns about other columns
    # a copy of the rows: the calibration set's own object would be cross-fitted
    inputs = {**data.inputs, "evaluation": data.inputs[judged]}
    with quiet():  # about the rows that both sets share
        found = compare(
            [(_KEY, AsFitted(loaded.calibrator, loaded.predict_proba))],
            replace(data, evaluation=replace(rows), inputs=inputs),
            far=False,
            judge="evaluation",
            event=event,
            progress=part_of(progress, 0.3, 1.0),
        )
    if found.failed:
        raise InputError(next(iter(found.failed.values())).rstrip("."), file=name)
    fitted_on = loaded.card.data.get("calibration")
    return TriedRun(
        card=loaded.card,
        comparison=found,
        same_rows=fitted_on is not None and fitted_on.digest == opened.tables[judged].digest,
        has_model=loaded.card.model is not None,
    )


@contextmanager
def _in_file(name: str) -> Iterator[None]:
    """Let errors name the original file instead of its copy."""
    try:
        yield
    except InputError as error:
        raise InputError(
            error.what, fix=error.fix, file=name, column=error.column, row=error.row
        ) from error


def _check_file(loaded: LoadedCalibrator, review: Review) -> None:
    """Refuse a file for another model or for other classes."""
    if review.model is not None:
        loaded.check_model(review.model.digest)
    if loaded.card.classes != review.classes:
        raise InputError(
            f"The calibrator was fitted for the classes {_classes(loaded.card.classes)}, and the "
            f"review has {_classes(review.classes)}",
            fix="Open the review that it belongs to, or fit a calibrator for this one.",
        )


def _classes(names: tuple[str, ...]) -> str:
    return listed(repr(name[:40]) for name in names)


def _all_columns(data: ReviewData) -> ReviewData:
    """The rows with the columns without a role next to the features: the file may read one."""
    inputs = {
        which: pd.concat([frame, data.groups[which]], axis=1)
        for which, frame in data.inputs.items()
    }
    return replace(data, inputs=inputs)
