"""Recalibration by density estimation: a quantile network on features of the model's forecast.

The network's output is a whole quantile curve, trained with the check loss. A row's curve is
piecewise linear in the normal score of the level, and the network gives its offset and positive
slopes. Training starts from slopes of 1 and an offset of 0, which give the standard normal
distribution. torch trains the network, and the trained network consists of plain arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data.schema import FloatArray
from kdcal_core.distributions import PredictiveDistribution, Quantiles
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of
from kdcal_core.regression.recalibrators import (
    RecalibratorSpec,
    StoredRecalibrator,
    check_count,
    check_number,
    check_outcomes,
    count_outside,
    drawn_inside,
    given_weight,
    pit_values,
)
from kdcal_core.store import storable
from kdcal_core.store.estimators import LARGEST, check_array, checked_array, demand

# Corners of the curve, as normal scores of the level; the outer slopes continue beyond them.
CORNERS = ndtri(np.array([0.01, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.99]))
FEATURES = ("median", "width", "skewness")
_UNIT = float(np.log(np.e - 1))  # softplus of this is 1
_BATCH, _MOST_STEPS, _LEVELS = 256, 100, 32
_CHECKED_LEVELS = (np.arange(49) + 1) / 50


@storable
@dataclass(frozen=True, eq=False)
class QuantileCurves:
    """The trained network.

    Attributes
    ----------
    layers : tuple of (weight (out, in), bias (out,))
        Layers with ReLU between them; the outputs of the last one are the offset and the slopes.
    """

    layers: tuple[tuple[FloatArray, FloatArray], ...]

    def check_state(self) -> None:
        """Refuse layers, from a file, that do not follow on one another."""
        width = len(FEATURES)
        demand(len(self.layers) > 0, "curves_")
        for weight, bias in self.layers:
            units = len(bias)
            checked_array(weight, "curves_", (units, width))
            checked_array(bias, "curves_", (None,))
            width = units
        demand(width == 1 + len(CORNERS) + 1, "curves_")

    def __call__(self, features: FloatArray, score: FloatArray) -> FloatArray:
        """The curve of each row (n, d) at normal scores of the level (g,), (n, g)."""
        hidden = features
        for weight, bias in self.layers[:-1]:
            hidden = np.maximum(hidden @ weight.T + bias, 0.0)
        weight, bias = self.layers[-1]
        raw = hidden @ weight.T + bias
        slopes = np.logaddexp(0.0, raw[:, 1:] + _UNIT)
        curve: FloatArray = raw[:, :1] + slopes @ segments(score).T
        return curve


def segments(score: FloatArray) -> FloatArray:
    """Signed length of each linear piece between 0 and the score, (..., pieces).

    The slopes times these lengths sum to the rise of the curve from its offset at score 0.
    """
    bounds = np.concatenate([[-np.inf], CORNERS, [np.inf]])
    at = np.asarray(score)[..., np.newaxis]
    start, end = np.maximum(bounds[:-1], 0.0), np.maximum(bounds[1:], 0.0)
    above = np.clip(at, start, end) - start
    start, end = np.minimum(bounds[:-1], 0.0), np.minimum(bounds[1:], 0.0)
    lengths: FloatArray = above + np.clip(at, start, end) - end
    return lengths


def train_curves(
    features: FloatArray,
    target: FloatArray,
    weight: FloatArray | None = None,
    *,
    width: int,
    max_epochs: int,
    patience: int,
    learning_rate: float,
    seed: int,
    report: Progress,
) -> tuple[QuantileCurves, int, float, float]:
    """Train on 80% of the rows, and stop by the loss on the other 20%, both weighted.

    Returns
    -------
    curves, epochs until the best network, its check loss on the 20%, that of the untrained network.
    """
    import torch

    rng = np.random.default_rng(seed)
    order = rng.permutation(len(target))
    n_held = max(1, len(target) // 5)
    held, kept = order[:n_held], order[n_held:]
    x, v = torch.from_numpy(features[kept]), torch.from_numpy(target[kept])
    w = None if weight is None else torch.from_numpy(weight[kept] / weight[kept].mean())
    of_held = None if weight is None else weight[held]
    sizes = [features.shape[1], width, width, 1 + len(CORNERS) + 1]
    parameters = _start(sizes, rng)
    optimiser = torch.optim.Adam(parameters, lr=learning_rate)
    size = max(_BATCH, len(kept) // _MOST_STEPS)
    threads = torch.get_num_threads()
    # One thread: a fixed order of sums gives the same numbers with any number of cores.
    torch.set_num_threads(1)
    try:
        best = start = _held_loss(_frozen(parameters), features[held], target[held], of_held)
        found, best_epoch = _frozen(parameters), 0
        for epoch in range(1, max_epochs + 1):
            report((epoch - 1) / max_epochs, f"Quantile network: epoch {epoch:,}")
            shuffled = rng.permutation(len(kept))
            for first in range(0, len(kept), size):
                rows = torch.from_numpy(shuffled[first : first + size])
                level = rng.random(_LEVELS)
                pieces = torch.from_numpy(segments(ndtri(level)))
                raw = _forward(parameters, x[rows])
                slopes = torch.nn.functional.softplus(raw[:, 1:] + _UNIT)
                residual = v[rows, None] - (raw[:, :1] + slopes @ pieces.T)
                tau = torch.from_numpy(level)
                each = torch.maximum(tau * residual, (tau - 1) * residual)
                loss = (each if w is None else each * w[rows, None]).mean()
                optimiser.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
            now = _frozen(parameters)
            reached = _held_loss(now, features[held], target[held], of_held)
            if reached < best:
                found, best, best_epoch = now, reached, epoch
            elif epoch - best_epoch >= patience:
                break
    finally:
        torch.set_num_threads(threads)
    report(1.0, "Quantile network trained")
    return found, best_epoch, best, start


def _start(sizes: list[int], rng: np.random.Generator) -> list[Any]:
    """Weights and biases in turn; the last layer is zero, so every curve is the identity."""
    import torch

    parameters = []
    for i, (n_in, n_out) in enumerate(pairwise(sizes)):
        last = i == len(sizes) - 2
        weight, bias = rng.normal(0, np.sqrt(2 / n_in), (n_out, n_in)), rng.uniform(-1, 1, n_out)
        if last:
            weight, bias = np.zeros_like(weight), np.zeros_like(bias)
        parameters += [torch.from_numpy(weight), torch.from_numpy(bias)]
    return [parameter.requires_grad_() for parameter in parameters]


def _forward(parameters: list[Any], x: Any) -> Any:
    for i in range(0, len(parameters), 2):
        x = x @ parameters[i].T + parameters[i + 1]
        if i < len(parameters) - 2:
            x = x.relu()
    return x


def _frozen(parameters: list[Any]) -> QuantileCurves:
    arrays = [parameter.detach().numpy().copy() for parameter in parameters]
    return QuantileCurves(tuple(zip(arrays[::2], arrays[1::2], strict=True)))


def _held_loss(
    curves: QuantileCurves, features: FloatArray, target: FloatArray, weight: FloatArray | None
) -> float:
    """Mean check loss over evenly spaced levels, about half the CRPS on this scale."""
    residual = target[:, np.newaxis] - curves(features, ndtri(_CHECKED_LEVELS))
    loss = np.maximum(_CHECKED_LEVELS * residual, (_CHECKED_LEVELS - 1) * residual)
    return float(loss.mean() if weight is None else np.average(loss.mean(axis=1), weights=weight))


FEATURE_LEVELS = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
FEWEST_ROWS = 20
# PIT values of 0 and 1 have no normal score; beyond 8 doubles round 1 - p to 1
_FARTHEST = 8.0
_GRID = ndtr(np.linspace(-3.5, 3.5, 141))


@storable
class DensityRecalibration(StoredRecalibrator):
    """Quantiles of the outcome given the model's forecast (Kuleshov and Deshpande 2022).

    A small network estimates all quantiles of the outcome by the check loss, given features of the
    model's predictive distribution: the ranks of its median, width and skewness among the
    calibration rows. Unlike one map for all rows, it can therefore widen large predictions and
    narrow small ones. It is trained on 80% of the calibration rows and stopped by the other 20%
    (Torres et al., section 4.3).

    Quantiles are estimated on the scale of the normal scores of PIT values, where a calibrated
    model is the standard normal and the untrained network is the model itself. The model's quantile
    function transforms them back. The check loss has the same optimal quantiles on both scales, and
    no quantile leaves the model's support (beyond the outermost levels, 0.0002 and 0.9998, the
    tails of :class:`Quantiles` may). The curves increase in the level by construction, so quantiles
    never cross.

    Parameters
    ----------
    width : int, default=32
        Units of each of the two hidden layers. Torres et al. do not describe their network.
    max_epochs : int, default=200
    patience : int, default=20
        Training stops after this many epochs without a better loss on the 20%, and the best network
        is kept. If no epoch is better, this is the untrained one, which equals the model.
    learning_rate : float, default=0.005
    seed : int, default=0
        Seed of the split, the network and the order of rows. The same seed gives the same numbers.

    Attributes
    ----------
    n_epochs_ : int
        Epochs until the best network; 0 if the model itself was best.
    loss_, model_loss_ : float
        Mean check loss of the network and of the model on the 20%.
    reference_ : (n, 3) array
        Median, width and skewness of the calibration rows' forecasts, each column sorted.
    curves_ : QuantileCurves
    n_outside_ : int
        Outcomes outside their predictive support: PIT within 1e-16 of 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.distributions import Normal
    >>> rng = np.random.default_rng(0)
    >>> mean = rng.uniform(0, 10, 2000)
    >>> model = Normal(mean, np.full(2000, 5.0))  # the truth widens with the mean
    >>> recalibrated = DensityRecalibration(max_epochs=30).fit(model, rng.normal(mean, mean))
    >>> small, large = recalibrated.predict(Normal([2.0, 8.0], 5.0)).std()
    >>> bool(small < 4 and large > 6)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "width": [Interval(Integral, 1, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "seed": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        width: int = 32,
        max_epochs: int = 200,
        patience: int = 20,
        learning_rate: float = 0.005,
        seed: int = 0,
    ) -> None:
        self.width = width
        self.max_epochs = max_epochs
        self.patience = patience
        self.learning_rate = learning_rate
        self.seed = seed

    def fit(
        self,
        distribution: PredictiveDistribution,
        y: Any,
        space: NDArray[Any] | None = None,
        *,
        sample_weight: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Train on n rows and their outcomes (n,); ``space`` is not used.

        ``sample_weight``, (n,) or a RowDesign, weight the check loss. That a row of weight 2 counts
        as two equal rows holds about, because split and batches are drawn.

        Raises
        ------
        InputError
            If there are fewer than 20 rows, or the outcomes are not n finite numbers.
        """
        self._validate_params()
        pit = pit_values(distribution, y, self.seed)
        if len(pit) < FEWEST_ROWS:
            raise InputError(
                f"A quantile network cannot be trained on {len(pit):,} rows",
                fix=f"Give at least {FEWEST_ROWS} calibration rows, or recalibrate globally.",
            )
        self.n_outside_ = count_outside(pit)
        pit = drawn_inside(distribution, check_outcomes(y, len(pit)), pit, self.seed)
        score = np.clip(ndtri(pit), -_FARTHEST, _FARTHEST)
        shape = _shape(distribution)
        self.reference_ = np.sort(shape, axis=0)
        self.curves_: QuantileCurves
        self.curves_, self.n_epochs_, self.loss_, self.model_loss_ = train_curves(
            self._features(shape),
            score,
            given_weight(sample_weight, len(pit)),
            width=self.width,
            max_epochs=self.max_epochs,
            patience=self.patience,
            learning_rate=self.learning_rate,
            seed=self.seed,
            report=part_of(progress, 0.0, 1.0),
        )
        return self

    def predict(
        self, distribution: PredictiveDistribution, space: NDArray[Any] | None = None
    ) -> PredictiveDistribution:
        """Quantiles of m new rows at 141 levels, 0.0002 to 0.9998; ``space`` is not used."""
        check_is_fitted(self, "curves_")
        score = self.curves_(self._features(_shape(distribution)), ndtri(_GRID))
        level = np.clip(ndtr(score), np.finfo(float).tiny, 1 - np.finfo(float).epsneg)
        return Quantiles(_GRID, distribution.ppf(level))

    def check_state(self) -> None:
        super().check_state()
        reference = check_array(self, "reference_", (None, 3))
        demand(len(reference) > 0 and bool((np.diff(reference, axis=0) >= 0).all()), "reference_")
        demand(isinstance(self.curves_, QuantileCurves), "curves_")
        self.curves_.check_state()
        check_count(self, "n_outside_")
        check_count(self, "n_epochs_")
        check_number(self, "loss_", 0.0, LARGEST)
        check_number(self, "model_loss_", 0.0, LARGEST)

    def _features(self, shape: FloatArray) -> FloatArray:
        """Ranks among the calibration rows, (n, 3), clipped to [-1, 1]."""
        n = len(self.reference_)
        ranks = [
            np.searchsorted(reference, values, "left") + np.searchsorted(reference, values, "right")
            for reference, values in zip(self.reference_.T, shape.T, strict=True)
        ]
        return np.stack(ranks, axis=1) / n - 1.0


def _shape(distribution: PredictiveDistribution) -> FloatArray:
    """Median, width and skewness of each row's predictive distribution, (n, 3)."""
    q = distribution.ppf(FEATURE_LEVELS[np.newaxis])
    width = q[:, 4] - q[:, 0]
    skewness = np.divide(
        q[:, 4] + q[:, 0] - 2 * q[:, 2], width, out=np.zeros_like(width), where=width > 0
    )
    # rows with equal shapes share a rank in spite of rounding errors
    digits, exponent = np.frexp(width)
    width = np.ldexp(np.round(digits, 9), exponent)
    return np.stack([q[:, 2], width, np.round(skewness, 9)], axis=1)


RecalibratorSpec(
    "density",
    "Density estimation recalibration",
    "A small network learns the outcome's quantiles from the model's forecast, so large "
    "and small predictions are corrected differently.",
    DensityRecalibration,
    family="forecast",
    needs_space=False,
    reference="Kuleshov and Deshpande 2022; Torres et al., section 4.3",
    settings=("seed",),
).offer()
