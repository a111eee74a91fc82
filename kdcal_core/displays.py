"""The charts of the app in a notebook, in the manner of scikit-learn's displays.

A display computes once, with ``from_predictions`` or ``from_estimator``, and draws when asked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd

from kdcal_core.calibration import TopLabelKDE
from kdcal_core.charts import (
    Chart,
    confidence_curve_chart,
    distance_chart,
    pit_chart,
    regions_chart,
    reliability_chart,
)
from kdcal_core.data import (
    FloatArray,
    IntArray,
    ScoredSet,
    as_pandas,
    check_rows,
    classes_of,
    encode_labels,
    is_text,
)
from kdcal_core.diagnostics import (
    DistanceCurve,
    find_regions,
    histogram_anchor,
    max_confidence_by_distance,
    max_confidence_of_rows,
    reliability,
    search_finding,
)
from kdcal_core.diagnostics.regression import fault, pit_histogram
from kdcal_core.distributions import Normal, PredictiveDistribution, randomised_pit
from kdcal_core.errors import InputError

__all__ = [
    "ConfidenceDisplay",
    "Display",
    "MMCDisplay",
    "PITDisplay",
    "RegionsDisplay",
    "ReliabilityDisplay",
]

_CONFIG = {"displaylogo": False, "showSendToCloud": False}
RADII = np.linspace(0.0, 5.0, 26)


def __dir__() -> list[str]:
    return sorted(__all__)


class Display(ABC):
    """A result and its chart.

    Attributes
    ----------
    result_ : object
        What was computed, a frozen result of :mod:`kdcal_core.diagnostics`.
    """

    def __init__(self, result: Any) -> None:
        self.result_ = result

    @abstractmethod
    def _draw(self, dark: bool) -> Chart:
        """The chart of the result."""

    @cached_property
    def chart_(self) -> Chart:
        """Figure, finding, how to read it, alternative text and table."""
        return self._draw(False)

    @property
    def figure_(self) -> Any:
        """The figure of plotly, which may be changed."""
        return self.chart_.figure

    @property
    def finding_(self) -> str:
        """What the figure shows, in one sentence with its numbers."""
        return self.chart_.finding

    def plot(self, *, dark: bool = False) -> Self:
        """Draw the figure again, for a light or a dark background.

        Returns
        -------
        Display
            This one, which a notebook shows.
        """
        self.chart_ = self._draw(dark)
        return self

    def frame(self) -> pd.DataFrame:
        """The numbers of the figure."""
        return self.chart_.table()

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.finding_}"

    def _repr_mimebundle_(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = self.figure_._repr_mimebundle_(*args, **kwargs) or {}
        for kind, drawn in bundle.items():
            if kind.startswith("application/vnd.plotly"):
                drawn["config"] = {**drawn.get("config", {}), **_CONFIG}
        return {**bundle, "text/plain": repr(self)}


class _OfClasses(Display):
    """A display of a classifier's probabilities."""

    def __init__(self, result: Any, classes: Sequence[str]) -> None:
        super().__init__(result)
        self.classes_ = tuple(classes)

    @classmethod
    @abstractmethod
    def from_predictions(cls, y: Any, proba: Any, *args: Any, **settings: Any) -> Self:
        """From classes and probabilities."""

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **settings: Any) -> Self:
        """From a fitted classifier and rows that it has not seen.

        Parameters
        ----------
        estimator : classifier
            With ``predict_proba`` and ``classes_``.
        X : (n, d) array-like or DataFrame
        y : (n,) array-like
            Their classes.
        **settings
            As for ``from_predictions``.
        """
        proba = estimator.predict_proba(X)
        return cls.from_predictions(y, proba, classes=estimator.classes_, **settings)


class ReliabilityDisplay(_OfClasses):
    """A reliability diagram: what is stated against what happens, with exact intervals.

    Examples
    --------
    >>> display = ReliabilityDisplay.from_predictions(["no"] * 30 + ["yes"] * 70, [0.95] * 100)
    >>> display
    ReliabilityDisplay: Class yes: over-confident above 0.933: says 0.95, sees 0.70 ...
    >>> display.frame().shape[0]
    15
    """

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        proba: Any,
        *,
        classes: Sequence[Any] | None = None,
        event: Any = None,
        n_bins: int = 15,
        **settings: Any,
    ) -> Self:
        """From classes and probabilities.

        Parameters
        ----------
        y : (n,) array-like
            True classes, of any type.
        proba : (n, K) array-like, or (n,)
            Probabilities; a single column is that of the second class. The columns of a data frame
            that are named as the classes may stand in any order.
        classes : sequence of K, optional
            The classes in the order of the columns; by default those of ``y``, sorted as
            `numpy.unique` does.
        event : optional
            The class whose probability is judged; by default the second of two, and of more
            classes the confidence in the predicted one.
        n_bins : int
        **settings
            As for :func:`kdcal_core.diagnostics.reliability`.
        """
        _refuse_pos_label(settings)
        stated, truth, names = _classified(y, proba, classes)
        label = _event(event, names)
        kind: Any = "confidence" if label is None else "class"
        found = reliability(stated, truth, kind=kind, label=label, n_bins=n_bins, **settings)
        return cls(found, names)

    def _draw(self, dark: bool) -> Chart:
        return reliability_chart(self.result_, self.classes_, dark=dark)


class ConfidenceDisplay(_OfClasses):
    """How often the predictions of one class are right, by their score (Salamon et al., Eq. 16).

    The confidence of :class:`~kdcal_core.TopLabelKDE` over the histogram of Eq. 5.
    """

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        proba: Any,
        *,
        predicted: Any = None,
        classes: Sequence[Any] | None = None,
        n_bins: int = 10,
        **settings: Any,
    ) -> Self:
        """From classes and probabilities.

        Parameters
        ----------
        y, proba, classes
            As for :class:`ReliabilityDisplay`.
        predicted : optional
            The predicted class that is shown; by default the one that is predicted most often.
        n_bins : int
            Bins of the histogram.
        **settings
            Of :class:`~kdcal_core.TopLabelKDE`.
        """
        _refuse_pos_label(settings, "predicted")
        stated, truth, names = _classified(y, proba, classes)
        label = int(np.bincount(stated.argmax(axis=1)).argmax())
        if predicted is not None:
            label = int(encode_labels([predicted], names)[0])
        curve = TopLabelKDE(**settings).fit(stated, truth).curve(label)
        anchor = histogram_anchor(stated, truth, label=label, n_bins=n_bins)
        return cls((curve, anchor), names)

    def _draw(self, dark: bool) -> Chart:
        curve, anchor = self.result_
        return confidence_curve_chart(curve, anchor, self.classes_[curve.label], dark=dark)


class RegionsDisplay(_OfClasses):
    """Regions of the inputs where a classifier is over- or under-confident beyond chance."""

    @classmethod
    def from_predictions(
        cls,
        y: Any,
        proba: Any,
        X: Any = None,
        *,
        classes: Sequence[Any] | None = None,
        event: Any = None,
        **settings: Any,
    ) -> Self:
        """From classes, probabilities and the inputs that are searched.

        Parameters
        ----------
        y, proba, classes, event
            As for :class:`ReliabilityDisplay`.
        X : (n, d) DataFrame or array-like
            Numbers and categories, which may be missing.
        **settings
            As for :func:`kdcal_core.diagnostics.find_regions`.
        """
        _refuse_pos_label(settings)
        stated, truth, names = _classified(y, proba, classes)
        label = _event(event, names)
        rows = ScoredSet(stated, truth, names, digest="", name="calibration")
        target: Any = "confidence" if label is None else label
        return cls(find_regions(rows, _frame(X), target=target, **settings), names)

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **settings: Any) -> Self:
        """From a fitted classifier and rows that it has not seen; all their columns are searched.

        Parameters
        ----------
        estimator : classifier
            With ``predict_proba`` and ``classes_``.
        X : (n, d) DataFrame or array-like
        y : (n,) array-like
        **settings
            As for ``from_predictions``.
        """
        proba = estimator.predict_proba(X)
        return cls.from_predictions(y, proba, X, classes=estimator.classes_, **settings)

    @property
    def finding_(self) -> str:
        """Where the gaps are, with their numbers."""
        return search_finding(self.result_)

    def _draw(self, dark: bool) -> Chart:
        return regions_chart(self.result_, dark=dark)


class PITDisplay(Display):
    """Histogram of PIT values: whether predicted distributions hold (Torres et al., section 2).

    Examples
    --------
    >>> from kdcal_core.regression import Normal
    >>> y = np.random.default_rng(0).normal(size=500)
    >>> PITDisplay.from_predictions(y, Normal(np.zeros(500), 0.5)).frame().shape[0]
    20
    """

    @classmethod
    def from_predictions(
        cls, y: Any, distribution: PredictiveDistribution, *, seed: int = 0, **settings: Any
    ) -> Self:
        """From outcomes and predicted distributions.

        Parameters
        ----------
        y : (n,) array-like
            Outcomes.
        distribution : PredictiveDistribution of n rows
            Such as :class:`kdcal_core.regression.Normal`.
        seed : int
            For distributions that jump at an outcome.
        **settings
            As for :func:`kdcal_core.diagnostics.regression.pit_histogram`.
        """
        pit = randomised_pit(distribution, y, seed)
        weight = settings.get("sample_weight")
        stated = distribution.stated_levels
        found = fault(pit, sample_weight=weight, stated=stated)
        return cls((pit_histogram(pit, **settings), found))

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, **settings: Any) -> Self:
        """From a fitted regressor and rows that it has not seen.

        Parameters
        ----------
        estimator : regressor
            Whose ``predict(X, return_std=True)`` gives the mean and the standard deviation of a
            normal distribution, as those of Gaussian processes and Bayesian ridge do.
        X : (n, d) array-like or DataFrame
        y : (n,) array-like
        **settings
            As for ``from_predictions``.

        Raises
        ------
        InputError
            If ``predict`` takes no ``return_std``.
        """
        try:
            mean, std = estimator.predict(X, return_std=True)
        except TypeError as error:
            if "return_std" not in str(error):
                raise
            raise InputError(
                f"A {type(estimator).__name__} predicts no standard deviation: its predict takes "
                "no return_std",
                fix="Choose a regressor that does, such as BayesianRidge or "
                "GaussianProcessRegressor, or give the predicted distributions: "
                "PITDisplay.from_predictions(y, Normal(mean, std)).",
            ) from error
        return cls.from_predictions(y, Normal(mean, std), **settings)

    def _draw(self, dark: bool) -> Chart:
        histogram, found = self.result_
        return pit_chart(histogram, kind=found.kind, dark=dark)


class MMCDisplay(Display):
    """Mean max confidence against the distance from the data (Dey et al., section 3.1.1)."""

    def __init__(
        self,
        result: dict[str, DistanceCurve],
        prior: float,
        *,
        n_rows: int | None,
        n_features: int = 0,
    ) -> None:
        super().__init__(result)
        self.prior_ = prior
        self._n_rows, self._n_features = n_rows, n_features

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        radii: Any = RADII,
        n: int = 1000,
        seed: int = 0,
        **others: Any,
    ) -> Self:
        """From a fitted classifier and the rows that it knows.

        Parameters
        ----------
        estimator : classifier
        X : (rows, d) array-like or DataFrame
            Numbers. The spheres lie around their mean, and radius 1 is the farthest row.
        y : (rows,) array-like, optional
            Their classes, of which the largest share is drawn; by default all are equally likely.
        radii : (R,) array-like
        n, seed : int
            Points on each sphere, and the seed of their directions.
        **others
            Further classifiers by a key, such as ``graph=KernelDensityForest(...)``.
        """
        X = as_pandas(X)
        centre = np.asarray(X, dtype=np.float64).mean(axis=0)
        curves = {
            key: max_confidence_by_distance(one.predict_proba, X, radii, n, seed, centre=centre)
            for key, one in {"model": estimator, **others}.items()
        }
        prior = 1 / len(estimator.classes_)
        if y is not None:
            prior = float(np.unique(np.asarray(y), return_counts=True)[1].max() / len(y))
        return cls(curves, prior, n_rows=n, n_features=len(centre))

    @classmethod
    def from_predictions(
        cls, proba: Any, distance: Any, y: Any = None, *, groups: int = 20, **others: Any
    ) -> Self:
        """From probabilities of rows whose distances from the data are known.

        Parameters
        ----------
        proba : (n, K) array-like
        distance : (n,) array-like
            At least 0; 1 is the distance of the farthest row of the data.
        y : array-like, optional
            Classes of the data, of which the largest share is drawn; by default all are equally
            likely.
        groups : int
            Points of the line at most.
        **others
            Further probabilities of the same rows by a key.

        Raises
        ------
        InputError
            As for :func:`kdcal_core.diagnostics.max_confidence_of_rows`.

        Examples
        --------
        >>> stated = [[0.9, 0.1], [0.7, 0.3], [0.5, 0.5]]
        >>> MMCDisplay.from_predictions(stated, [0.5, 0.5, 3.0]).frame()["radius"].tolist()
        [0.5, 3.0]
        """
        curves = {
            key: max_confidence_of_rows(one, distance, groups=groups)
            for key, one in {"model": proba, **others}.items()
        }
        prior = 1 / np.asarray(proba).shape[1]
        if y is not None:
            prior = float(np.unique(np.asarray(y), return_counts=True)[1].max() / len(y))
        return cls(curves, prior, n_rows=None)

    def _draw(self, dark: bool) -> Chart:
        d = self._n_features
        return distance_chart(
            self.result_, self.prior_, n_rows=self._n_rows, n_moved=d, n_features=d, dark=dark
        )


def _classified(
    y: Any, proba: Any, classes: Sequence[Any] | None
) -> tuple[FloatArray, IntArray, tuple[str, ...]]:
    """Probabilities (n, K), class indices (n,) and names, from what people have at hand."""
    if classes is not None:
        names: tuple[str, ...] | None = tuple(map(str, classes))
    else:
        names = None if is_text(y) else classes_of(y)
    stated, truth, named = check_rows(proba, y, names)
    assert named is not None
    return stated, truth, named


def _refuse_pos_label(settings: dict[str, Any], called: str = "event") -> None:
    if "pos_label" in settings:
        label = str(settings["pos_label"])[:80]
        raise InputError(
            f"The event of interest is not called pos_label here ({label!r})",
            fix=f"Name the class with {called}={label!r}.",
        )


def _event(event: Any, names: tuple[str, ...]) -> int | None:
    if event is not None:
        return int(encode_labels([event], names)[0])
    return 1 if len(names) == 2 else None


def _frame(X: Any) -> pd.DataFrame:
    if X is None:
        raise InputError("There are no inputs to search", fix="Give X, one row for each outcome.")
    X = as_pandas(X)
    if isinstance(X, pd.DataFrame):
        return X
    values = np.asarray(X)
    return pd.DataFrame(values, columns=[f"x{at}" for at in range(values.shape[1])])
