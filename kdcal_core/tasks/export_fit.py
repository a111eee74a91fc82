"""Fits one calibrator on a review, judges it on rows it has not seen, and writes its card."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pandas as pd
from sklearn.utils.validation import has_fit_parameter

from kdcal_core.calibration import Calibrator, calibrated, calibrator_entry, fit_calibrator
from kdcal_core.calibration.export import CalibratorCard, CardEstimate, DataMark, make_card
from kdcal_core.calibration.fitting import check_layer, layer_inputs
from kdcal_core.calibration.settings import title_of
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError, quiet
from kdcal_core.evaluation import MEASURES, Comparison, Gain, compare
from kdcal_core.evaluation.paired import LEAST_ROWS
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import (
    Part,
    Review,
    ReviewData,
    ReviewReader,
    left_out,
    left_out_words,
    review_data,
)

READS: tuple[Part, ...] = ("model", "calibration", "evaluation", "training")


class AsFitted(Calibrator):
    """A calibrator that is already fitted; ``fit`` does nothing.

    Parameters
    ----------
    fitted : Calibrator
    answer : callable
        (proba, X) -> calibrated probabilities.
    """

    def __init__(self, fitted: Calibrator, answer: Callable[[Any, Any], FloatArray]) -> None:
        self.fitted = fitted
        self.answer = answer
        self.needs_inputs = fitted.needs_inputs  # type: ignore[misc]
        self.keeps_prediction = fitted.keeps_prediction  # type: ignore[misc]
        self.n_classes_ = fitted.n_classes_
        self.notes_ = fitted.notes_

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, proba: Any, y: Any, X: Any = None, sample_weight: Any = None) -> Self:
        """Do nothing, because the calibrator is already fitted."""
        return self

    def predict_proba(self, proba: Any, X: Any = None) -> FloatArray:
        """The fitted calibrator's probabilities."""
        return self.answer(proba, X)


@dataclass(frozen=True, eq=False)
class Wanted:
    """A calibrator to fit.

    Attributes
    ----------
    key : str
        Key in `kdcal_core.calibration.CALIBRATORS`.
    calibrator : Calibrator
        The unfitted calibrator with its settings.
    layer : str or None
        Hidden layer of the model on whose activations the regions are built.
    folds, seed : int
        Number of folds where there is no evaluation set; seed of every draw.
    event : int or None
        The class whose probability calibration errors are about, with two classes; None for the
        confidence in the predicted class.
    """

    key: str
    calibrator: Calibrator
    layer: str | None = None
    folds: int = 5
    seed: int = 0
    event: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns whose values are its regions; they need not be features."""
        named = self.calibrator.get_params(deep=False).get("column")
        return (named,) if isinstance(named, str) else tuple(named or ())

    @property
    def title(self) -> str:
        """Its full name. Untrusted text where columns or layers are named."""
        return title_of(self.key, self.calibrator, self.layer)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A fitted calibrator with its comparison with the model.

    Attributes
    ----------
    rows : ReviewData
        The rows with the columns that the calibrator or its model takes.
    data : ReviewData
        The rows as the calibrator reads them: with activations where it uses a hidden layer.
    calibrator : Calibrator
    card : CalibratorCard
    seconds : float
        Duration of the fit.
    n_training : int
        Training rows on which a partition was grown.
    found : Comparison or None
        The model against the calibrator; None where it could not be judged.
    why_not_judged : str or None
    """

    rows: ReviewData
    data: ReviewData
    calibrator: Calibrator
    card: CalibratorCard
    seconds: float
    n_training: int
    found: Comparison | None
    why_not_judged: str | None


def fit_and_judge(reader: ReviewReader, wanted: Wanted, progress: Progress) -> Fitted:
    """Fit on the calibration set, and judge on the evaluation set or by cross-fitting.

    The reader must be allowed to read `READS`.

    Raises
    ------
    InputError
        Where the calibrator cannot be fitted on these rows, or a file is missing.
    """
    review = reader.review
    progress(0.0, "Reading the rows")
    asks = "model" in calibrator_entry(wanted.key).needs or wanted.layer is not None
    read = review_data(reader, with_model=asks)
    data = rows = with_columns(read, wanted.columns)
    if wanted.layer is not None:
        check_layer(wanted.calibrator)
        progress(0.03, "Computing the model's hidden layer")
        data = at_layer(rows, wanted.layer)
    with quiet():  # the notes say the same
        fitted, seconds = _fitted(data, wanted, part_of(progress, 0.05, 0.35))
        found, why_not = _judged(data, wanted, fitted, part_of(progress, 0.35, 1.0))
    n_training = _n_training(data, wanted.calibrator)
    features = [str(name) for name in rows.inputs.get("calibration", pd.DataFrame()).columns]
    aside = _left_aside(review, features) if fitted.needs_inputs else []
    card = make_card(
        wanted.key,
        fitted,
        classes=data.classes,
        data=_marks(review, with_training=n_training > 0),
        model=review.model,
        features=features,
        estimates=[] if found is None else _estimates(Gain.of(found)),
        notes=[*aside, *_judging_notes(found, why_not)],
        seed=wanted.seed,
        layer=wanted.layer,
        predictions=review.roles,
        title=title_of(wanted.key, fitted, wanted.layer),
    )
    return Fitted(rows, data, fitted, card, seconds, n_training, found, why_not)


def with_columns(data: ReviewData, columns: Sequence[str]) -> ReviewData:
    """The rows with these columns added to their inputs, and without training rows.

    The values of a column are taken from these rows, so the training table need not have it.
    """
    if not columns:
        return data
    inputs = {
        which: frame.assign(
            **{name: _column(data, which, name) for name in columns if name not in frame.columns}
        )
        for which, frame in data.inputs.items()
        if which != "training"
    }
    return replace(data, inputs=inputs, training_y=None)


def at_layer(data: ReviewData, layer: str) -> ReviewData:
    """The rows with the activations of a hidden layer of the model instead of their inputs.

    Raises
    ------
    InputError
        There is no model, or it has no such layer.
    """
    inputs = {which: layer_inputs(data.model, frame, layer) for which, frame in data.inputs.items()}
    return replace(data, inputs=inputs)


def _column(data: ReviewData, which: str, column: str) -> Any:
    frame = data.groups.get(which, pd.DataFrame())
    if column not in frame.columns:
        raise InputError(
            "A table lacks the column that divides the rows",
            fix="Choose a column that every table has.",
            column=column,
        )
    return frame[column]


def _n_training(data: ReviewData, calibrator: Calibrator) -> int:
    grown = has_fit_parameter(calibrator, "X_partition")
    return len(data.training[1]) if grown and data.training is not None else 0


def _fitted(data: ReviewData, wanted: Wanted, progress: Progress) -> tuple[Calibrator, float]:
    progress(0.0, f"Fitting: {wanted.title}")
    start = time.perf_counter()
    fitted = fit_calibrator(
        wanted.calibrator,
        data.calibration,
        data.inputs.get("calibration"),
        training=data.training,
        model=data.model,
        progress=progress,
    )
    return fitted, time.perf_counter() - start


def _judged(
    data: ReviewData, wanted: Wanted, fitted: Calibrator, progress: Progress
) -> tuple[Comparison | None, str | None]:
    """The model against the calibrator on rows not used for its fit, or why it is not judged."""
    judged = wanted.calibrator
    if data.evaluation is not None:  # it was not used for the fit, so no other fit is needed
        judged = AsFitted(fitted, lambda proba, X: calibrated(fitted, proba, X).proba)
    try:
        found = compare(
            [(wanted.key, judged)],
            data,
            folds=wanted.folds,
            seed=wanted.seed,
            far=False,
            event=wanted.event,
            progress=progress,
        )
    except InputError as error:
        return None, str(error)
    failure = next(iter(found.failed.values()), None)
    return (found, None) if failure is None else (None, failure)


def _judging_notes(found: Comparison | None, why_not_judged: str | None) -> list[str]:
    """Notes on the judgement."""
    if found is not None:
        return [one.sentence for one in found.notes]
    return [f"Its gain was not judged: {why_not_judged}"]


def _left_aside(review: Review, read: Sequence[str]) -> list[str]:
    """A note where some columns are not read."""
    others = {name: why for name, why in left_out(review).items() if name not in read}
    return [left_out_words(others)] if others else []


def _estimates(gain: Gain) -> list[CardEstimate]:
    found = gain.comparison
    if found.n < LEAST_ROWS:  # a number without an interval could be mistaken for the gain
        return []
    judged = found.judged if found.folds == 0 else f"{found.judged}, {found.folds} folds"
    estimates = []
    for key, measure in MEASURES.items():
        if measure.on_card and key in gain.after.scores:
            before, after = gain.before.scores[key], gain.after.scores[key]
            estimates.append(
                CardEstimate(
                    after.name,
                    after.label,
                    before.value,
                    after.value,
                    after.low,
                    after.high,
                    after.n,
                    judged,
                    after.level,
                )
            )
    return estimates


def _marks(review: Review, *, with_training: bool) -> dict[str, DataMark]:
    tables = dict(review.tables)
    if with_training and review.training is not None:
        tables["training"] = review.training
    return {
        which: DataMark(table.name, table.digest, table.n_rows) for which, table in tables.items()
    }
