"""What the simulations share: their result, the box, and posteriors from log densities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError

BoolArray = NDArray[np.bool_]
LogDensity = Callable[..., FloatArray]
Draw = Callable[[int, np.random.Generator], FloatArray]


@dataclass(frozen=True, eq=False)
class Simulated:
    """Points of a simulation with what only a simulation knows: their true posterior.

    Attributes
    ----------
    X : (n, d) float64
        The points, in random order.
    y : (n,) int64
        Their classes: equal numbers of each, class 0 one more where n is odd.
    posterior : (n, K) float64
        True probability of each class at each point, with equal priors.
    """

    X: FloatArray
    y: IntArray
    posterior: FloatArray


def simulate(draws: tuple[Draw, Draw], log_density: LogDensity, n: int, seed: int) -> Simulated:
    """``n`` points of two classes, half of each, shuffled, with their posterior."""
    n = check_count("n", n)
    rng = np.random.default_rng(seed)
    sizes = (n - n // 2, n // 2)
    X = np.concatenate([draw(size, rng) for draw, size in zip(draws, sizes, strict=True)])
    y = np.repeat(np.arange(2), sizes)
    order = rng.permutation(n)
    X = np.ascontiguousarray(X[order])
    return Simulated(X, y[order], posterior_of(log_density(X)))


def inside_box(X: FloatArray) -> BoolArray:
    """Which rows lie in [-1, 1]^d."""
    return np.asarray((np.abs(X) <= 1.0).all(axis=1))


def in_box(draw: Draw) -> Draw:
    """The same draw, restricted to [-1, 1]^2 by rejection (decision D17)."""

    def restricted(n: int, rng: np.random.Generator) -> FloatArray:
        kept = np.empty((0, 2))
        while len(kept) < n:
            points = draw(2 * (n - len(kept)) + 8, rng)
            kept = np.concatenate([kept, points[inside_box(points)]])
        return kept[:n]

    return restricted


def posterior_of(log_density: FloatArray) -> FloatArray:
    """Posterior with equal priors (m, K) of log densities (m, K).

    Where no class has density, nothing but the prior is known, and it is returned.
    """
    top = log_density.max(axis=1, keepdims=True)
    nowhere = np.isneginf(top)
    odds = np.exp(np.where(nowhere, 0.0, log_density - np.where(nowhere, 0.0, top)))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def check_count(name: str, value: int, least: int = 1) -> int:
    """``value`` as an int, or an InputError where it is not a whole number from ``least`` on."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is {value!r}", fix=f"Choose a whole number from {least} on.")
    return int(value)


def check_points(X: Any, n_features: int | None) -> FloatArray:
    """Points as an (m, d) float64 array without missing or infinite values.

    Raises
    ------
    InputError
        For another shape, or a value that is not finite: its row and column are named.
    """
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] < 1 or n_features not in (None, points.shape[1]):
        wanted = "d" if n_features is None else str(n_features)
        raise InputError(
            f"The points have shape {points.shape}, not (m, {wanted})",
            fix="Give one row a point and one column a feature.",
        )
    faulty = ~np.isfinite(points)
    if faulty.any():
        row, column = (int(i) for i in np.argwhere(faulty)[0])
        raise InputError(
            "A coordinate is missing or infinite",
            fix="Give finite numbers.",
            row=row + 1,
            column=str(column + 1),
        )
    return points
