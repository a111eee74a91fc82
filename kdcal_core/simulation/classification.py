"""The papers' simulations of two classes, with their true posteriors.

Both classes are equally frequent. Five simulations are in the plane, restricted to [-1, 1]^2.
Trunk's has two Gaussians in any dimension, and each further dimension is less informative. Every
``log_density_*`` gives the log density of both classes at any points (m, d), up to a constant that
they share, and minus infinity outside the simulation's region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from math import acos, exp, pi, sqrt
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import quad
from scipy.special import ndtr

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError

NOISE = 0.1  # N(0, 0.01) states a variance
SPIRAL_NOISE = 0.3
SPIRAL_TURNS = 4.0 * pi  # angle that an arm turns between the origin and radius 1
XOR_SPREAD = 0.25
XOR_MEANS = np.array([[[-0.5, 0.5], [0.5, -0.5]], [[0.5, 0.5], [-0.5, -0.5]]])
CIRCLE_RADII = (0.75, 1.0)


def gaussian_xor(n: int, *, seed: int) -> Simulated:
    """Each class is two Gaussians: class 0 at ±(-0.5, 0.5), class 1 at ±(0.5, 0.5).

    The standard deviation is 0.25. The paper prints the same means for both classes.

    Parameters
    ----------
    n : int
        Number of points, at least 1.
    seed : int
        Equal seeds give equal points.

    Raises
    ------
    InputError
        For an ``n`` below 1.

    Examples
    --------
    >>> drawn = gaussian_xor(100, seed=0)
    >>> drawn.X.shape, int(drawn.y.sum()), bool(abs(drawn.X).max() <= 1)
    ((100, 2), 50, True)
    """
    draws = (in_box(partial(_draw_xor, 0)), in_box(partial(_draw_xor, 1)))
    return simulate(draws, log_density_xor, n, seed)


def spiral(n: int, *, seed: int, noise: float = SPIRAL_NOISE) -> Simulated:
    """Two spiral arms of two turns, point reflections of each other.

    The radius r is uniform on [0, 1]. The angle is 4 pi r plus normal noise, and pi more for class
    1 (as printed in the paper the arms would coincide). Other arguments and errors as for
    :func:`gaussian_xor`.

    Parameters
    ----------
    noise : float
        Standard deviation of the angle in radians, above 0 and up to 1. At the printed 0.3 the
        arms hardly overlap: one point in about six million is nearer to the other arm.

    Examples
    --------
    >>> bool((spiral(50, seed=1).X ** 2).sum(axis=1).max() <= 1)
    True
    """
    draws = (partial(_draw_spiral, 0.0, noise), partial(_draw_spiral, pi, noise))
    return simulate(draws, partial(log_density_spiral, noise=noise), n, seed)


def circle(n: int, *, seed: int) -> Simulated:
    """Two rings around the origin: class 0 at radius 0.75, class 1 at 1, cut off by the box.

    The radius has normal noise of standard deviation 0.1. Points outside the box are dropped (0.2%
    and 22% of the classes), so the posterior divides by the remaining share. Arguments and errors
    as for :func:`gaussian_xor`.

    Examples
    --------
    >>> drawn = circle(10, seed=1)
    >>> drawn.posterior.sum(axis=1).round(12).tolist() == [1.0] * 10
    True
    """
    draws = tuple(in_box(partial(_draw_circle, radius)) for radius in CIRCLE_RADII)
    return simulate((draws[0], draws[1]), log_density_circle, n, seed)


def sinewave(n: int, *, seed: int, frequency: float = pi, flip: bool = False) -> Simulated:
    """Two waves: class 0 along cos(pi x), class 1 along sin(pi x).

    x is uniform on (-1, 1); the height has normal noise of standard deviation 0.1. At the printed
    frequency the box drops equal shares of both classes; at others the posterior accounts for the
    shares. Other arguments and errors as for :func:`gaussian_xor`.

    Parameters
    ----------
    frequency : float
        Radians per unit of x, above 0 and up to 100. It is pi in the paper; the authors' code draws
        4.
    flip : bool
        Whether class 0 follows the sine, as in the authors' code.

    Examples
    --------
    >>> sinewave(7, seed=1).y.tolist().count(0)
    4
    >>> as_drawn = sinewave(200, seed=1, frequency=4.0, flip=True)  # as in the authors' code
    >>> bool((as_drawn.posterior[np.arange(200), as_drawn.y] > 0.5).mean() > 0.9)
    True
    """
    curves = _waves(frequency, flip)
    density = partial(log_density_sinewave, frequency=frequency, flip=flip)
    return simulate(_curve_draws(curves), density, n, seed)


def polynomial(n: int, *, seed: int) -> Simulated:
    """Two powers: class 0 along y = x, class 1 along y = x^3.

    x is uniform on (-1, 1); the height has normal noise of standard deviation 0.1. The box drops 4%
    and 1.4% of the classes, which the posterior accounts for. Arguments and errors as for
    :func:`gaussian_xor`.

    Examples
    --------
    >>> polynomial(7, seed=1).X.shape
    (7, 2)
    """
    return simulate(_curve_draws(_POWERS), log_density_polynomial, n, seed)


def log_density_xor(X: FloatArray) -> FloatArray:
    """Log densities (m, 2); the box drops equal shares of both classes, so truncation cancels."""
    square = np.square(X[:, None, None, :] - XOR_MEANS).sum(axis=3)
    exponent = -0.5 * square / XOR_SPREAD**2
    return _within(inside_box(X), np.logaddexp(exponent[..., 0], exponent[..., 1]))


def log_density_spiral(X: FloatArray, noise: float = SPIRAL_NOISE) -> FloatArray:
    """The density of the angle given the radius; both classes have the same density of the radius.

    At the origin, where the arms meet, there is no density, and the posterior is the prior.
    """
    if not 0.0 < noise <= 1.0:
        raise InputError(f"noise is {noise!r}", fix="Choose a number above 0, up to 1.")
    radius = np.hypot(X[:, 0], X[:, 1])
    angle = np.arctan2(X[:, 1], X[:, 0])
    ahead = angle[:, None] - SPIRAL_TURNS * radius[:, None] - np.array([0.0, pi])
    # differences of up to a turn and a half; the next ones are beyond 9 standard deviations
    turns = 2.0 * pi * np.arange(-1.0, 2.0)
    nearest = np.remainder(ahead + pi, 2.0 * pi) - pi
    exponent = -0.5 * np.square((nearest[..., None] + turns) / noise)
    supported = (radius > 0.0) & (radius <= 1.0)
    return _within(supported, np.logaddexp.reduce(exponent, axis=2))


def log_density_circle(X: FloatArray) -> FloatArray:
    """The density of the radius over the remaining share; the circumference cancels."""
    radius = np.hypot(X[:, 0], X[:, 1])[:, None]
    exponent = -0.5 * np.square((radius - np.array(CIRCLE_RADII)) / NOISE)
    kept = np.array([acceptance("circle", label) for label in (0, 1)])
    return _within(inside_box(X), exponent - np.log(kept))


def log_density_sinewave(X: FloatArray, frequency: float = pi, flip: bool = False) -> FloatArray:
    """The density of the height around each wave, over the remaining share."""
    return _log_density_curves(_waves(frequency, flip), X)


def log_density_polynomial(X: FloatArray) -> FloatArray:
    """The density of the height around each power, over the remaining share."""
    return _log_density_curves(_POWERS, X)


@cache
def acceptance(name: str, label: int) -> float:
    """Share Z_k of class ``label`` inside the box, for "circle", "sinewave" and "polynomial".

    Examples
    --------
    >>> [round(acceptance("circle", label), 3) for label in (0, 1)]
    [0.998, 0.775]
    """
    if name == "circle":
        middle = CIRCLE_RADII[label]
        corners = quad(
            lambda r: _ring(r, middle) * (1.0 - 4.0 / pi * acos(1.0 / r)), 1.0, sqrt(2.0)
        )
        return float(ndtr((1.0 - middle) / NOISE) + corners[0])
    return _share_inside({"sinewave": _waves(pi, False), "polynomial": _POWERS}[name][label])


@cache
def _share_inside(curve: _Curve) -> float:
    """Share of the points around a curve that the box keeps."""

    def stays(x: float) -> float:
        height = float(curve.height(x))
        return float(ndtr((1.0 - height) / NOISE) - ndtr((-1.0 - height) / NOISE))

    # the share only varies within a few noise widths of points where a curve touches the box
    return float(0.5 * quad(stays, -1.0, 1.0, points=curve.near_the_box, limit=400)[0])


def _ring(radius: float, middle: float) -> float:
    return exp(-0.5 * ((radius - middle) / NOISE) ** 2) / (NOISE * sqrt(2.0 * pi))


@dataclass(frozen=True)
class _Curve:
    """A curve over x, "cos", "sin" of a frequency or "power" of an exponent."""

    kind: str
    number: float

    def height(self, x: Any) -> Any:
        if self.kind == "power":
            return x if self.number == 1 else x**self.number
        return (np.cos if self.kind == "cos" else np.sin)(self.number * x)

    @property
    def near_the_box(self) -> tuple[float, ...]:
        """Places inside (-1, 1) where it may touch the box, or has a quarter of a wave."""
        quarter = 0.5 if self.kind == "power" else pi / (2 * self.number)
        most = int(np.ceil(1.0 / quarter)) - 1
        return tuple(quarter * step for step in range(-most, most + 1))


def _waves(frequency: float, flip: bool) -> tuple[_Curve, _Curve]:
    if not 0.0 < frequency <= 100.0:
        raise InputError(f"frequency is {frequency!r}", fix="Choose a number above 0, up to 100.")
    cosine, sine = _Curve("cos", frequency), _Curve("sin", frequency)
    return (sine, cosine) if flip else (cosine, sine)


_POWERS = (_Curve("power", 1), _Curve("power", 3))


def _log_density_curves(curves: tuple[_Curve, _Curve], X: FloatArray) -> FloatArray:
    heights = np.column_stack([curve.height(X[:, 0]) for curve in curves])
    exponent = -0.5 * np.square((X[:, 1:] - heights) / NOISE)
    kept = np.array([_share_inside(curve) for curve in curves])
    return _within(inside_box(X), exponent - np.log(kept))


def _within(supported: BoolArray, log_density: FloatArray) -> FloatArray:
    return np.asarray(np.where(supported[:, None], log_density, -np.inf))


def _draw_xor(label: int, n: int, rng: np.random.Generator) -> FloatArray:
    which = rng.integers(0, 2, n)
    return np.asarray(XOR_MEANS[label][which] + XOR_SPREAD * rng.normal(size=(n, 2)))


def _draw_spiral(start: float, noise: float, n: int, rng: np.random.Generator) -> FloatArray:
    radius = rng.random(n)
    angle = start + SPIRAL_TURNS * radius + noise * rng.normal(size=n)
    return np.asarray(radius[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))


def _draw_circle(radius: float, n: int, rng: np.random.Generator) -> FloatArray:
    angle = 2.0 * pi * rng.random(n)
    noisy = radius + NOISE * rng.normal(size=n)
    return np.asarray(noisy[:, None] * np.column_stack([np.cos(angle), np.sin(angle)]))


def _draw_curve(curve: _Curve, n: int, rng: np.random.Generator) -> FloatArray:
    x = rng.uniform(-1.0, 1.0, n)
    return np.column_stack([x, curve.height(x) + NOISE * rng.normal(size=n)])


def _curve_draws(curves: tuple[_Curve, _Curve]) -> tuple[Draw, Draw]:
    return in_box(partial(_draw_curve, curves[0])), in_box(partial(_draw_curve, curves[1]))


def trunk(n: int, *, seed: int, n_features: int = 10) -> Simulated:
    """Class 0 is N(mu, I) and class 1 N(-mu, I), with mu_i = i^(-1/2) for i = 1 to d.

    The points are not restricted to a box. The log odds of class 0 are 2 mu'x.

    Parameters
    ----------
    n : int
        Number of points, at least 1.
    seed : int
        Equal seeds give equal points.
    n_features : int
        Dimension d, at least 1.

    Raises
    ------
    InputError
        For an ``n`` or a dimension below 1.

    Examples
    --------
    >>> trunk(20, seed=0, n_features=3).X.shape
    (20, 3)
    """
    mean = _mean(check_count("n_features", n_features))

    def draw(sign: float, size: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(sign * mean + rng.normal(size=(size, n_features)))

    draws = (
        lambda size, rng: draw(1.0, size, rng),
        lambda size, rng: draw(-1.0, size, rng),
    )
    return simulate(draws, log_density_trunk, n, seed)


def log_density_trunk(X: FloatArray) -> FloatArray:
    """Log densities of both classes (m, 2), up to a shared constant: ±mu'x."""
    along = X @ _mean(X.shape[1])
    return np.column_stack([along, -along])


def _mean(n_features: int) -> FloatArray:
    return np.asarray(1.0 / np.sqrt(np.arange(1.0, n_features + 1.0)))


BoolArray = NDArray[np.bool_]
LogDensity = Callable[..., FloatArray]
Draw = Callable[[int, np.random.Generator], FloatArray]


@dataclass(frozen=True, eq=False)
class Simulated:
    """Points of a simulation with their true posterior.

    Attributes
    ----------
    X : (n, d) float64
        The points, in random order.
    y : (n,) int64
        Their classes, equal numbers of each; class 0 has one more if n is odd.
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
    """The same draw, restricted to [-1, 1]^2 by rejection."""

    def restricted(n: int, rng: np.random.Generator) -> FloatArray:
        kept = np.empty((0, 2))
        while len(kept) < n:
            points = draw(2 * (n - len(kept)) + 8, rng)
            kept = np.concatenate([kept, points[inside_box(points)]])
        return kept[:n]

    return restricted


def posterior_of(log_density: FloatArray) -> FloatArray:
    """Posterior with equal priors (m, K) of log densities (m, K).

    Where no class has density the result is the prior.
    """
    top = log_density.max(axis=1, keepdims=True)
    nowhere = np.isneginf(top)
    odds = np.exp(np.where(nowhere, 0.0, log_density - np.where(nowhere, 0.0, top)))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def check_count(name: str, value: int, least: int = 1) -> int:
    """``value`` as an int; an InputError if it is not a whole number of at least ``least``."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is {value!r}", fix=f"Choose a whole number, at least {least}.")
    return int(value)


def check_points(X: Any, n_features: int | None) -> FloatArray:
    """Points as an (m, d) float64 array without missing or infinite values.

    Raises
    ------
    InputError
        For another shape, or a value that is not finite; the message names its row and column.
    """
    points = np.asarray(X, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] < 1 or n_features not in (None, points.shape[1]):
        wanted = "d" if n_features is None else str(n_features)
        raise InputError(
            f"The points have shape {points.shape}, not (m, {wanted})",
            fix="Give one row for each point and one column for each feature.",
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


class Simulator(Protocol):
    def __call__(self, n: int, *, seed: int) -> Simulated: ...


@dataclass(frozen=True)
class Simulation:
    """One simulation as the app offers it.

    Attributes
    ----------
    name, title, sentence : str
        Key, short title, and a description in one plain sentence.
    function : callable
        ``function(n, *, seed) -> Simulated``; "trunk" also takes ``n_features``, and those in
        :data:`CODED` their settings.
    log_density : callable
        Log densities of the classes (m, K) at points (m, d), up to a constant they share; minus
        infinity outside the simulation's region.
    n_features : int
        Columns of its points; for "trunk" the default.
    in_box : bool
        Whether its points are restricted to [-1, 1]^2.
    """

    name: str
    title: str
    sentence: str
    function: Simulator
    log_density: LogDensity
    n_features: int
    in_box: bool

    def posterior(self, X: Any, **settings: float) -> FloatArray:
        """As :func:`true_posterior` for this simulation."""
        points = check_points(X, self.n_features if self.in_box else None)
        if self.in_box:
            # clipped, because the square of a large coordinate would overflow
            points = np.clip(points, -2.0, 2.0)
        return posterior_of(self.log_density(points, **settings))


SIMULATIONS: dict[str, Simulation] = {
    each.name: each
    for each in (
        Simulation(
            "gaussian_xor",
            "Gaussian XOR",
            "Each class fills two opposite corners of a square.",
            gaussian_xor,
            log_density_xor,
            2,
            True,
        ),
        Simulation(
            "spiral",
            "Spiral",
            "Two arms wind around each other for two turns.",
            spiral,
            log_density_spiral,
            2,
            True,
        ),
        Simulation(
            "circle",
            "Circle",
            "One ring lies inside the other, and the outer one is cut off by the square.",
            circle,
            log_density_circle,
            2,
            True,
        ),
        Simulation(
            "sinewave",
            "Sinewave",
            "One class follows a cosine and the other a sine, so that they cross twice.",
            sinewave,
            log_density_sinewave,
            2,
            True,
        ),
        Simulation(
            "polynomial",
            "Polynomial",
            "One class follows a line and the other a cubic, which touch in the middle.",
            polynomial,
            log_density_polynomial,
            2,
            True,
        ),
        Simulation(
            "trunk",
            "Trunk",
            "Two Gaussian clouds, which each further dimension separates less.",
            trunk,
            log_density_trunk,
            10,
            False,
        ),
    )
}


CODED: dict[str, dict[str, float]] = {
    "sinewave": {"frequency": 4.0, "flip": True},
    "spiral": {"noise": 0.8},
}
"""Settings with which the authors' code draws other rows than the paper prints."""


def true_posterior(name: str, X: Any, **settings: float) -> FloatArray:
    """True probability of each class (m, 2) at any points, with equal priors.

    Parameters
    ----------
    name : str
        A key of :data:`SIMULATIONS`.
    X : (m, d) array-like
        Points, for "trunk" in any dimension. Outside the region of a simulation ([-1, 1]^2, for
        "spiral" the unit disc) the result is the prior, one half each.
    **settings
        Settings of the draw that are not the default, as in :data:`CODED`.

    Raises
    ------
    InputError
        For an unknown name, a wrong number of columns, or a value that is not finite.

    Examples
    --------
    >>> true_posterior("gaussian_xor", [[-0.5, 0.5], [0.0, 0.0], [3.0, 3.0]]).round(2).tolist()
    [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    """
    if name not in SIMULATIONS:
        raise InputError(
            f"There is no simulation {name!r}", fix=f"Choose one of: {', '.join(SIMULATIONS)}."
        )
    return SIMULATIONS[name].posterior(X, **settings)
