"""Calibrate a classification region by region, and judge it on rows not used for the fit."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from kdcal_core.calibration import Calibrator, calibrator_entry
from kdcal_core.calibration.regions import HeterogeneousCalibrator
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import Estimate, PairedAuc
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import MODEL, Note, beside_model, held_out_answers, methods_of
from kdcal_core.evaluation.overlap import overlap, overlap_note
from kdcal_core.evaluation.second_model import SecondModel
from kdcal_core.jobs.executors import chosen_executor
from kdcal_core.partition.tree import unusable_columns
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import (
    Review,
    ReviewData,
    left_out,
    left_out_words,
    review_data,
)
from kdcal_core.tasks.decorators import ALL_ROWS, FITTED, Sets, require_classification, review_task

ONE_MAP = "one_map"
"""One Platt map for all rows, that is, calibration without regions."""
SECOND_MODEL = "second_model"
"""Boosted trees from the model's logits: a second model, to compare calibration with."""
PARTITION_TITLES = {
    **{
        key: calibrator_entry(f"heterogeneous_{key}").label
        for key in ("forest", "tree", "boosted", "auc")
    },
    "column": "The chosen column",
}


@dataclass(frozen=True)
class RegionsSettings:
    """How a classification is calibrated region by region.

    Attributes
    ----------
    partitions : tuple of str
        Keys of `PARTITION_TITLES`; one map for all rows and a second model are always added.
    max_depth : int or None
        None for each partition's default, as in comparison and export.
    min_rows : int or None
        Fewest calibration rows in a region; None for the calibrator's default.
    n_trees : int
        Number of trees of a forest, or maximum number of stages of boosted trees.
    column : str or None
        For the partition "column", a column of the table that is not the target.
    folds, seed : int
        Number of folds where there is no evaluation set; seed of all draws.
    """

    partitions: tuple[str, ...] = ("forest", "tree", "boosted")
    max_depth: int | None = None
    min_rows: int | None = None
    n_trees: int = 100
    column: str | None = None
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True)
class RegionsMethod:
    """One calibration method, judged on rows that it was not fitted on.

    Attributes
    ----------
    key, title : str
    log_loss : Estimate
    difference : Estimate or None
        Log loss less the model's, paired by row; None for the model.
    auc : PairedAuc or None
        AUROC of the model (a) and of this method (b); None for the model, for more than two
        classes, and where the judged rows are all of one class.
    n_regions : int
        Number of regions in the fit on the whole calibration set, over all its partitions.
    seconds : float
        Time to fit, over all folds and the whole calibration set.
    notes : tuple of str
        Untrusted text, because they name regions.
    """

    key: str
    title: str
    log_loss: Estimate
    difference: Estimate | None
    auc: PairedAuc | None
    n_regions: int
    seconds: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class BesideSecondModel:
    """The second model compared with the best calibration, on the judged rows.

    Attributes
    ----------
    best : str
        Key of the method with the smallest log loss among the others, the model included.
    difference : Estimate
        Log loss of the second model less that of the best, paired by row.
    """

    best: str
    difference: Estimate

    @property
    def retrain(self) -> bool:
        """Whether the second model gains more than calibration does, beyond chance."""
        return self.difference.high < 0.0


@dataclass(frozen=True)
class RegionsRecord:
    """The settings and results of a calibration by regions.

    Attributes
    ----------
    settings : RegionsSettings
    judged_on : str
        "evaluation": fitted on the calibration set, judged on the evaluation set; "cross-fitted":
        each calibration row calibrated by fits on the other folds.
    n_fit, n_judged : int
    n_training : int
        Training rows on which trees of the classes are grown; 0 where there are none.
    event : str or None
        The class whose probabilities are kept, the second of two. Untrusted text.
    methods : tuple of RegionsMethod
        The model first, a second model last.
    second : BesideSecondModel or None
        None where the second model could not be fitted.
    weighted : bool
        Whether the judged rows have weights, which all results then use.
    notes : tuple of Note
        Untrusted text.
    """

    settings: RegionsSettings
    judged_on: Literal["evaluation", "cross-fitted"]
    n_fit: int
    n_judged: int
    n_training: int
    event: str | None
    methods: tuple[RegionsMethod, ...]
    second: BesideSecondModel | None = None
    weighted: bool = False
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, eq=False)
class EventScores:
    """Stated probabilities of an event and whether it happened.

    Attributes
    ----------
    score : (n,) float64
        The probability of the second of two classes, or else that of the predicted class.
    hit : (n,) float64
        1 where the row is of the second of two classes, or else where the prediction is right.
    """

    score: FloatArray
    hit: FloatArray

    def of_class(self, label: int | None) -> EventScores:
        """Scores of two classes as those of one of them, or of the predicted class if it is None.

        Examples
        --------
        >>> scores = EventScores(np.array([0.2, 0.9]), np.array([0.0, 0.0]))
        >>> scores.of_class(0).score.round(1).tolist(), scores.of_class(0).hit.tolist()
        ([0.8, 0.1], [1.0, 1.0])
        >>> scores.of_class(None).score.round(1).tolist(), scores.of_class(None).hit.tolist()
        ([0.8, 0.9], [1.0, 0.0])
        """
        mirrored = self.score <= 0.5 if label is None else np.full(self.score.shape, label == 0)
        return EventScores(
            np.where(mirrored, 1.0 - self.score, self.score),
            np.where(mirrored, 1.0 - self.hit, self.hit),
        )


@dataclass(frozen=True, eq=False)
class RegionsRun:
    """A calibration by regions, before and after.

    Attributes
    ----------
    record : RegionsRecord
    scores : mapping of str to EventScores
        Scores of the judged rows by the method's key; each is read when it is used.
    training : EventScores or None
        The model's scores for its training rows, or for a sample of 100,000 of them.
    folder : Path
        Folder of the run.
    """

    record: RegionsRecord
    scores: Mapping[str, EventScores] = field(repr=False)
    training: EventScores | None = field(repr=False)
    folder: Path = field(repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The model and every method, in the record's order."""
        return tuple(one.key for one in self.record.methods)

    def method(self, key: str) -> RegionsMethod:
        """The record of one method. Raises KeyError for an unknown one."""
        for one in self.record.methods:
            if one.key == key:
                return one
        raise KeyError(key)


_TRAINING_ROWS = 100_000  # most training rows whose scores are shown


def _settled(review: Review, settings: RegionsSettings) -> RegionsSettings:
    unknown = next((key for key in settings.partitions if key not in PARTITION_TITLES), None)
    if unknown is not None or not settings.partitions:
        raise InputError(
            f"There is no partition {unknown!r}" if unknown else "No partition is chosen",
            fix=f"Choose among {', '.join(PARTITION_TITLES)}.",
        )
    if settings.min_rows is not None and settings.min_rows < 1:
        raise InputError("A region keeps at least one row", fix="Give a larger number of rows.")
    if "column" in settings.partitions and settings.column is None:
        raise InputError("No column is named to partition by", fix="Choose a column.")
    return settings


@review_task(
    "Calibrating by regions",
    reads=ALL_ROWS,
    needs=require_classification("calibration by regions is for classifications"),
    ranges={
        "max_depth": (1.0, 12.0),
        "n_trees": (1.0, 1000.0),
        "folds": (2.0, 20.0),
        "seed": (0.0, 2.0**31),
    },
    settle=_settled,
    edition=f"a second model, scores alone, {FITTED}",
)
def calibrate_regions(sets: Sets, settings: RegionsSettings) -> RegionsRun:
    """Calibrate a review region by region: fit and judge every method.

    Raises
    ------
    InputError
        Where there are no inputs to divide, or a file is missing. A method that cannot be fitted on
        so few rows is named in the record's notes instead.
    """
    reader, progress, path = sets.reader, sets.progress, sets.folder
    assert path is not None  # of every job
    progress(0.0, "Reading the rows")
    whole = review_data(reader, with_model=True)
    data, notes = _usable(whole)
    judged = data.evaluation or data.calibration
    shared = overlap(data)
    if shared is not None and (note := overlap_note(shared)) is not None:
        notes.append(note)
    binary = len(data.classes) == 2
    with chosen_executor() as executor:
        methods, scores, second = _repaired(
            data, settings, binary, part_of(progress, 0.05, 1.0), notes, executor
        )
    if others := left_out(reader.review):
        notes.append(Note(left_out_words(others)))
    record = RegionsRecord(
        settings=settings,
        judged_on="cross-fitted" if data.evaluation is None else "evaluation",
        n_fit=data.calibration.n_rows,
        n_judged=judged.n_rows,
        n_training=0 if data.training is None else len(data.training[1]),
        event=data.classes[1] if binary else None,
        methods=tuple(methods),
        second=second,
        weighted=judged.weight is not None,
        notes=tuple(notes),
    )
    training = _training_scores(whole, binary, settings.seed)  # the model reads all its inputs
    return RegionsRun(record, scores, training, path)


def _usable(data: ReviewData) -> tuple[ReviewData, list[Note]]:
    """The rows with the inputs that trees can split, and notes on the others."""
    aside = unusable_columns(data.inputs["calibration"])
    kept = [name for name in data.inputs["calibration"].columns if name not in aside]
    if not kept:
        raise InputError(
            "The tables hold no inputs to divide into regions",
            fix="Add tables with the rows' features, or columns that describe them.",
        )
    inputs = {which: frame[kept] for which, frame in data.inputs.items()}
    return (
        replace(data, inputs=inputs),
        [Note(f"{name} is left out. {reason}.") for name, reason in aside.items()],
    )


def _title(key: str, settings: RegionsSettings) -> str:
    if key == "column":
        return f"The column {settings.column}"
    if key == SECOND_MODEL:
        return "Boosted trees on the logits, a second model"
    return "One map for all rows" if key == ONE_MAP else PARTITION_TITLES[key]


def _calibrator(key: str, settings: RegionsSettings) -> tuple[str, Calibrator] | str:
    if key == ONE_MAP:
        return "platt"
    if key == SECOND_MODEL:
        return key, SecondModel(random_state=settings.seed)
    return key, HeterogeneousCalibrator(
        key,
        max_depth=settings.max_depth,
        min_rows=settings.min_rows,
        n_trees=settings.n_trees,
        column=settings.column if key == "column" else None,
        random_state=settings.seed,
    )


def _repaired(
    data: ReviewData,
    settings: RegionsSettings,
    binary: bool,
    progress: Progress,
    notes: list[Note],
    executor: Executor | None,
) -> tuple[list[RegionsMethod], dict[str, EventScores], BesideSecondModel | None]:
    """The model and every method on rows held out from the fit; notes name the methods left out."""
    model = methods_of([])[0]
    judged = data.evaluation or data.calibration
    as_it_is = beside_model(judged.proba, judged).log_loss
    methods = [RegionsMethod(MODEL, "The model as it is", as_it_is, None, None, 0, 0.0)]
    scores = {MODEL: _event_scores(judged.proba, judged.y, binary)}
    best, smallest, of_best, second = MODEL, as_it_is.value, judged, None
    keys = (ONE_MAP, *dict.fromkeys(settings.partitions), SECOND_MODEL)
    for at, key in enumerate(keys):
        title = _title(key, settings)
        calibrator = replace(methods_of([_calibrator(key, settings)])[1], key=key, name=title)
        with quiet():  # the fit's notes say the same
            try:
                found = held_out_answers(
                    [model, calibrator],
                    _read_by(data, key, settings.column),
                    folds=settings.folds,
                    seed=settings.seed,
                    progress=part_of(progress, at / len(keys), (at + 1) / len(keys)),
                    executor=executor,
                )
            except InputError as error:
                notes.append(Note(f"{title} was left out. {error}"))
                continue
        if key in found.failed:
            notes.append(Note(f"{title} was left out. {found.failed[key]}"))
            continue
        proba = found.said[1].proba
        scores[key] = _event_scores(proba, judged.y, binary)
        fits, beside = found.fits[1], beside_model(proba, judged)
        if key == SECOND_MODEL:
            second = BesideSecondModel(best, beside_model(proba, of_best).difference)
        elif beside.log_loss.value < smallest:
            best, smallest = key, beside.log_loss.value
            of_best = replace(judged, proba=proba, digest="")
        methods.append(
            RegionsMethod(
                key=key,
                title=title,
                log_loss=beside.log_loss,
                difference=beside.difference,
                auc=beside.auc,
                n_regions=fits[-1].n_regions,
                seconds=sum(one.fit_seconds for one in fits),
                notes=fits[-1].notes,
            )
        )
    return methods, scores, second


def _read_by(data: ReviewData, key: str, column: str | None) -> ReviewData:
    """The rows as a method reads them: all inputs, or its column, which need not be an input."""
    if key != "column":
        return data
    inputs = {}
    for which in data.inputs.keys() - {"training"}:
        frames = (data.inputs[which], data.groups.get(which, pd.DataFrame()))
        frame = next((one for one in frames if column in one.columns), None)
        if frame is None:
            raise InputError(
                "A table lacks the column to partition by",
                fix="Choose a column that every table has.",
                column=column,
            )
        inputs[which] = frame[[column]]
    return replace(data, inputs=inputs, training_y=None)


def _event_scores(proba: FloatArray, y: IntArray, binary: bool) -> EventScores:
    if binary:
        score, hit = proba[:, 1], y == 1
    else:
        predicted = proba.argmax(axis=1)
        score, hit = proba[np.arange(len(y)), predicted], predicted == y
    return EventScores(np.clip(score, 0.0, 1.0), hit.astype(np.float64))


def _training_scores(data: ReviewData, binary: bool, seed: int) -> EventScores | None:
    """The model's probabilities for its training rows, where the review has both."""
    if data.training is None or data.model is None:
        return None
    frame, y = data.training
    if len(y) > _TRAINING_ROWS:
        drawn = np.random.default_rng(seed).choice(len(y), _TRAINING_ROWS, replace=False)
        frame, y = frame.iloc[drawn], y[drawn]
    return _event_scores(data.model.predict_proba(frame), y, binary)
