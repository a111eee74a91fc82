"""What a watch looks at in each row: the score of a classification, the forecast of a regression.

All else is the same for both: how tables are read and counted, the frozen bins, the sequential test
and its state, the limits and their verdicts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.audit.config import WatchLimits
from kdcal_core.audit.watch_limits import (
    WatchResult,
    WithLabels,
    judged,
    judged_forecasts,
)
from kdcal_core.audit.watch_rows import UNLABELLED, NewRows
from kdcal_core.audit.watch_settings import WatchSettings
from kdcal_core.audit.watch_state import WatchState
from kdcal_core.data import FloatArray, IntArray
from kdcal_core.diagnostics import (
    CalibrationWatch,
    Estimate,
    ForecastMeasures,
    FrozenBins,
    LabelFreeForecasts,
    LabelFreePerformance,
    LabelShift,
    ScoreCounts,
    ScoreShift,
    SequentialCalibration,
    auc,
    confidence_calibration_error,
    forecast_measures,
    freeze_bins,
    freeze_bins_of_numbers,
    interval_widths,
    label_free_forecasts,
    label_free_performance,
    label_shift,
    number_counts,
    number_shift,
    score_counts,
    score_shift,
    sequential_calibration,
    sequential_uniformity,
    start_watch,
)
from kdcal_core.diagnostics.estimate import share_estimate
from kdcal_core.distributions import FAMILIES, PredictiveDistribution, distribution_of
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress
from kdcal_core.review import Review, Which
from kdcal_core.statistics import Dependence, design_of, effective_size

MEDIANS, WIDTHS = "predicted medians", "interval widths"
_MADE_LEAST = 0.2  # chance that the row with the lowest score is in the made table

Features = tuple[pd.DataFrame, pd.DataFrame | None]


@dataclass(frozen=True, eq=False)
class Reference:
    """The reference rows: what the model says of them, and their classes or outcomes.

    ``alike`` is what it would say of them as new rows, where that differs (`as_new_rows`).
    """

    said: Any
    y: NDArray[Any]
    weighted: bool
    alike: Any = None

    @property
    def as_new(self) -> Any:
        """What new rows are compared with."""
        return self.said if self.alike is None else self.alike


@dataclass(frozen=True, eq=False)
class Found:
    """What is found of a table, without the sequential test: fields of `Watch`."""

    shift: ScoreShift
    scores: ScoreCounts
    estimated: LabelFreePerformance | LabelFreeForecasts
    width: ScoreShift | None = None
    width_scores: ScoreCounts | None = None
    shares: LabelShift | None = None
    why_no_shares: str = ""
    labels: WithLabels | ForecastMeasures | None = None


class Watching(Protocol):
    """What is watched of a row, by the task."""

    def begin(self, reference: Reference) -> tuple[FrozenBins, ...]:
        """The bins of the reference rows: those of the score, or of medians and widths."""
        ...

    def start(self, bins: tuple[FrozenBins, ...], alpha: float) -> CalibrationWatch:
        """The sequential test before the first label."""
        ...

    def tested(
        self, said: Any, y: NDArray[Any], cluster: Any, state: WatchState
    ) -> SequentialCalibration:
        """The test after rows with a label."""
        ...

    def sides(self, said: Any, y: NDArray[Any]) -> IntArray:
        """Whether the event happened, or the outcome lies above its median, (m,): 0 or 1."""
        ...

    def made(self, said: Any, y: NDArray[Any], seed: int) -> tuple[Any, NDArray[Any]]:
        """A table made of rows, as `made_shift`."""
        ...

    def found(
        self,
        reference: Reference,
        rows: NewRows,
        bins: tuple[FrozenBins, ...],
        settings: WatchSettings,
        features: Features | None,
        together: Dependence | None,
        progress: Progress,
    ) -> Found:
        """Everything that is computed of the new rows."""
        ...

    def judged(self, limits: WatchLimits, found: Found, all_labelled: bool) -> list[WatchResult]:
        """A verdict for every measure that has a limit."""
        ...


def watching_of(review: Review, seed: int) -> Watching:
    """What is watched in a review."""
    if review.task == "regression":
        return WatchedForecasts(seed)
    return WatchedClasses(review.event, review.event_class)


def made_shift(
    score: FloatArray, y: NDArray[Any], none: Any, seed: int
) -> tuple[IntArray, NDArray[Any]]:
    """A table whose scores are shifted, of real rows: their places, and their labels.

    A row is taken with a chance that grows with the rank of its score, from 1 in 5 for the lowest
    to 1 for the highest, so that only the distribution of the scores changes. Rows are shuffled,
    because the set may be sorted. The first half of them has labels, as if the others, which are
    ``none``, were still to come.
    """
    rank = np.argsort(np.argsort(score, kind="stable")) / max(len(score) - 1, 1)
    chance = _MADE_LEAST + (1.0 - _MADE_LEAST) * rank
    rng = np.random.default_rng(seed)
    taken = rng.permutation(np.flatnonzero(rng.random(len(score)) < chance))
    labels = np.array(y[taken])
    labels[len(labels) // 2 :] = none
    return taken, labels


@dataclass(frozen=True)
class WatchedClasses:
    """The probability of the event (``event``), or the confidence without one.

    ``asked`` is the event of two classes, whichever is watched.
    """

    event: int | None
    asked: int | None

    def begin(self, reference: Reference) -> tuple[FrozenBins, ...]:
        return (freeze_bins(self._score(reference.said)),)

    def start(self, bins: tuple[FrozenBins, ...], alpha: float) -> CalibrationWatch:
        return start_watch(alpha, bins[0].edges)

    def tested(
        self, said: Any, y: NDArray[Any], cluster: Any, state: WatchState
    ) -> SequentialCalibration:
        return sequential_calibration(
            self._score(said), self.sides(said, y), cluster=cluster, state=state.test
        )

    def sides(self, said: Any, y: NDArray[Any]) -> IntArray:
        return _hit(said, y, self.event)

    def made(self, said: Any, y: NDArray[Any], seed: int) -> tuple[Any, NDArray[Any]]:
        taken, labels = made_shift(self._score(said), y.astype(np.int64), UNLABELLED, seed)
        return np.array(said[taken]), labels

    def found(
        self,
        reference: Reference,
        rows: NewRows,
        bins: tuple[FrozenBins, ...],
        settings: WatchSettings,
        features: Features | None,
        together: Dependence | None,
        progress: Progress,
    ) -> Found:
        proba, y, seed = rows.said, rows.y, settings.seed
        score, new = (self._score(one) for one in (reference.said, proba))
        progress(0.0, "Measuring drift")
        shift = score_shift(score, new, bins=bins[0], dependence=together, seed=seed)
        progress(0.3, "Estimating performance without labels")
        old_features, new_features = features or (None, None)
        estimated = label_free_performance(
            reference.said,
            reference.y,
            proba,
            event=self.asked,
            weighting=settings.weighted_by,
            features=old_features,
            new_features=new_features,
            dependence=together,
            seed=seed,
        )
        progress(0.7, "Estimating the classes' shares")
        shares, why_not = None, ""
        try:
            shares = label_shift(proba, reference.said, reference.y, dependence=together, seed=seed)
            # as large as the table, and unused
            shares = replace(shares, adjusted=shares.adjusted[:0])
        except InputError as error:  # few rows; the other measures stay
            why_not = str(error)
        labels, there = None, rows.labelled
        if there.any():
            of_labels = _of_labels(together, len(score), there)
            labels = self._with_labels(proba[there], y[there], of_labels, seed)
        return Found(
            shift=shift,
            scores=score_counts(score, new),
            estimated=estimated,
            shares=shares,
            why_no_shares=why_not,
            labels=labels,
        )

    def judged(self, limits: WatchLimits, found: Found, all_labelled: bool) -> list[WatchResult]:
        assert isinstance(found.estimated, LabelFreePerformance)
        assert not isinstance(found.labels, ForecastMeasures)
        return judged(limits, found.shift, found.estimated, self.event, found.labels, all_labelled)

    def _score(self, proba: FloatArray) -> FloatArray:
        """The event's probability, or the confidence; a sum may exceed 1 by rounding."""
        found = proba.max(axis=1) if self.event is None else proba[:, self.event]
        return np.asarray(np.minimum(found, 1.0))

    def _with_labels(
        self, proba: FloatArray, y: IntArray, together: Dependence | None, seed: int
    ) -> WithLabels:
        asked = self.asked
        right, of_event = _hit(proba, y, None), _hit(proba, y, asked)
        score, hit = self._score(proba), self.sides(proba, y)
        design = design_of(None, together)
        area = None if asked is None else auc(proba[:, asked], of_event, sample_weight=design)
        error = confidence_calibration_error(score, hit, seed=seed, sample_weight=design)
        return WithLabels(
            accuracy=_share(right, "Accuracy", together, lower_is_better=False),
            calibration_error=error,
            auc=area,
            rate=None if asked is None else _share(of_event, "Event rate", together),
        )


@dataclass(frozen=True)
class WatchedForecasts:
    """The predicted median and the width of the 80% interval of a regression.

    ``seed`` decides the draws within jumps of the forecasts.
    """

    seed: int

    def begin(self, reference: Reference) -> tuple[FrozenBins, ...]:
        return tuple(freeze_bins_of_numbers(one(reference.as_new)) for one in _SCALARS.values())

    def start(self, bins: tuple[FrozenBins, ...], alpha: float) -> CalibrationWatch:
        return start_watch(alpha, np.linspace(0.0, 1.0, len(bins[0].count) + 1))

    def tested(
        self, said: Any, y: NDArray[Any], cluster: Any, state: WatchState
    ) -> SequentialCalibration:
        # each row's own draw, whatever the division into tables
        draws = np.random.Generator(np.random.PCG64(self.seed).advance(state.test.n))
        pit = np.clip(said.pit(y, draws.random(len(y))), 0.0, 1.0)
        place = state.bins.places(said.ppf(0.5))
        return sequential_uniformity(pit, place, cluster=cluster, state=state.test)

    def sides(self, said: Any, y: NDArray[Any]) -> IntArray:
        if not len(y):
            return np.empty(0, dtype=np.int64)
        return np.asarray(y > said.ppf(0.5)).astype(np.int64)

    def made(self, said: Any, y: NDArray[Any], seed: int) -> tuple[Any, NDArray[Any]]:
        taken, labels = made_shift(said.ppf(0.5), y.astype(np.float64), np.nan, seed)
        return said[taken], labels

    def found(
        self,
        reference: Reference,
        rows: NewRows,
        bins: tuple[FrozenBins, ...],
        settings: WatchSettings,
        features: Features | None,
        together: Dependence | None,
        progress: Progress,
    ) -> Found:
        seed = settings.seed
        progress(0.0, "Measuring drift")
        shifts, counts = [], []
        for (noun, scalar), frozen in zip(_SCALARS.items(), bins, strict=True):
            both = scalar(reference.as_new), scalar(rows.said)
            shifts.append(
                number_shift(*both, noun=noun, bins=frozen, dependence=together, seed=seed)
            )
            counts.append(number_counts(*both))
        progress(0.5, "Estimating performance without labels")
        estimated = label_free_forecasts(
            reference.said,
            reference.y,
            rows.said,
            alike=reference.alike,
            dependence=together,
            seed=seed,
        )
        labels, there = None, rows.labelled
        if there.any():
            of_labels = _of_labels(together, len(reference.y), there)
            said = rows.said[np.flatnonzero(there)]
            labels = forecast_measures(said, rows.y[there], dependence=of_labels, seed=seed)
        return Found(
            shift=shifts[0],
            scores=counts[0],
            estimated=estimated,
            width=shifts[1],
            width_scores=counts[1],
            labels=labels,
        )

    def judged(self, limits: WatchLimits, found: Found, all_labelled: bool) -> list[WatchResult]:
        assert isinstance(found.estimated, LabelFreeForecasts)
        assert found.width is not None
        assert not isinstance(found.labels, WithLabels)
        shifts = found.shift, found.width
        return judged_forecasts(limits, shifts, found.estimated, found.labels, all_labelled)


def as_new_rows(
    review: Review, which: Which, said: PredictiveDistribution
) -> PredictiveDistribution | None:
    """Forecasts of a set with the spread that new rows have, where single numbers have none.

    The calibration set's own spread is cross-fitted, so that its rows' widths differ a little; new
    rows all have one. None where there is no such difference.
    """
    family = review.roles.family if review.roles else None
    spread = review.sets[which].spread
    if which != "calibration" or family not in ("point", "log_point") or spread is None:
        return None
    middle = said.ppf(0.5)
    name = FAMILIES[family].parameters[0]
    columns = {name: np.log(middle) if family == "log_point" else middle}
    return distribution_of(family, columns, spread=spread)


def _medians(said: PredictiveDistribution) -> FloatArray:
    return said.ppf(0.5)


_SCALARS: dict[str, Callable[[PredictiveDistribution], FloatArray]] = {
    MEDIANS: _medians,
    WIDTHS: interval_widths,
}


def _of_labels(together: Dependence | None, n: int, there: NDArray[np.bool_]) -> Dependence | None:
    """How the new rows with a label depend on one another, behind ``n`` reference rows."""
    return None if together is None else together.only(n + np.flatnonzero(there))


def _hit(proba: FloatArray, y: NDArray[Any], event: int | None) -> IntArray:
    return np.asarray(y == (proba.argmax(axis=1) if event is None else event)).astype(np.int64)


def _share(
    flags: IntArray, name: str, together: Dependence | None, lower_is_better: bool | None = None
) -> Estimate:
    value, hit = float(flags.mean()), flags.astype(np.float64)
    rows = effective_size(hit - value, np.ones(len(flags)), together)
    return share_estimate(name, name, value, rows, len(flags), lower_is_better=lower_is_better)
