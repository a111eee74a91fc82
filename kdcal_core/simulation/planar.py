"""The papers' five simulations in the plane (paper 000 appendix D), with their true posteriors.

Two classes with equal priors, restricted to [-1, 1]^2. Each ``log_density_*`` gives the log
density of both classes at any points (m, 2), up to a constant that they share, and minus
infinity outside the region that the simulation lives in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from math import acos, exp, pi, sqrt
from typing import Any

import numpy as np
from scipy.integrate import quad
from scipy.special import ndtr

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.simulation.base import BoolArray, Draw, Simulated, in_box, inside_box, simulate

NOISE = 0.1  # N(0, 0.01) states a variance (decision D15)
SPIRAL_NOISE = 0.3
SPIRAL_TURNS = 4.0 * pi  # angle that an arm turns between the origin and radius 1
XOR_SPREAD = 0.25
XOR_MEANS = np.array([[[-0.5, 0.5], [0.5, -0.5]], [[0.5, 0.5], [-0.5, -0.5]]])
CIRCLE_RADII = (0.75, 1.0)


def gaussian_xor(n: int, *, seed: int) -> Simulated:
    """Two Gaussians a class in opposite corners: class 0 at ±(-0.5, 0.5), class 1 at ±(0.5, 0.5).

    Standard deviation 0.25. The text prints the same means for both classes (decision D16).

    Parameters
    ----------
    n : int
        Number of points, from 1 on.
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
    """Two spiral arms of two turns, one the other's point reflection.

    Radius r uniform on [0, 1]; angle 4 pi r plus normal noise, and pi more for class 1
    (decision D14: as printed the arms would coincide). Other arguments and errors as for
    :func:`gaussian_xor`.

    Parameters
    ----------
    noise : float
        Standard deviation of the angle in radians, above 0 and up to 1. At the printed 0.3 the
        arms hardly overlap: one point in some six million lies nearer the other arm.

    Examples
    --------
    >>> bool((spiral(50, seed=1).X ** 2).sum(axis=1).max() <= 1)
    True
    """
    draws = (partial(_draw_spiral, 0.0, noise), partial(_draw_spiral, pi, noise))
    return simulate(draws, partial(log_density_spiral, noise=noise), n, seed)


def circle(n: int, *, seed: int) -> Simulated:
    """Two rings about the origin: class 0 at radius 0.75, class 1 at 1, cut off by the box.

    Normal noise of standard deviation 0.1 on the radius. A class loses what lies outside the
    box (0.2 % and 22 %), so the posterior divides by the share that stays (decisions D17, D19).
    Arguments and errors as for :func:`gaussian_xor`.

    Examples
    --------
    >>> drawn = circle(10, seed=1)
    >>> drawn.posterior.sum(axis=1).round(12).tolist() == [1.0] * 10
    True
    """
    draws = tuple(in_box(partial(_draw_circle, radius)) for radius in CIRCLE_RADII)
    return simulate((draws[0], draws[1]), log_density_circle, n, seed)


def sinewave(n: int, *, seed: int) -> Simulated:
    """Two waves: class 0 along cos(pi x), class 1 along sin(pi x).

    x uniform on (-1, 1), normal noise of standard deviation 0.1 on the height (decision D18).
    Arguments and errors as for :func:`gaussian_xor`.

    Examples
    --------
    >>> sinewave(7, seed=1).y.tolist().count(0)
    4
    """
    return simulate(_curve_draws("sinewave"), log_density_sinewave, n, seed)


def polynomial(n: int, *, seed: int) -> Simulated:
    """Two powers: class 0 along y = x, class 1 along y = x^3.

    x uniform on (-1, 1), normal noise of standard deviation 0.1 on the height. The classes lose
    4 % and 1.4 % to the box, which the posterior accounts for (decision D17). Arguments and
    errors as for :func:`gaussian_xor`.

    Examples
    --------
    >>> polynomial(7, seed=1).X.shape
    (7, 2)
    """
    return simulate(_curve_draws("polynomial"), log_density_polynomial, n, seed)


def log_density_xor(X: FloatArray) -> FloatArray:
    """Equal shares of the classes stay in the box, so its truncation cancels."""
    square = np.square(X[:, None, None, :] - XOR_MEANS).sum(axis=3)
    exponent = -0.5 * square / XOR_SPREAD**2
    return _within(inside_box(X), np.logaddexp(exponent[..., 0], exponent[..., 1]))


def log_density_spiral(X: FloatArray, noise: float = SPIRAL_NOISE) -> FloatArray:
    """The density of the angle given the radius; that of the radius is the same in both classes.

    At the origin, where the arms meet, neither is nearer: no density, hence the prior.
    """
    if not 0.0 < noise <= 1.0:
        raise InputError(f"noise is {noise!r}", fix="Choose a number above 0, up to 1.")
    radius = np.hypot(X[:, 0], X[:, 1])
    angle = np.arctan2(X[:, 1], X[:, 0])
    ahead = angle[:, None] - SPIRAL_TURNS * radius[:, None] - np.array([0.0, pi])
    # whole turns off by up to a turn and a half; the next are beyond 9 standard deviations
    turns = 2.0 * pi * np.arange(-1.0, 2.0)
    nearest = np.remainder(ahead + pi, 2.0 * pi) - pi
    exponent = -0.5 * np.square((nearest[..., None] + turns) / noise)
    supported = (radius > 0.0) & (radius <= 1.0)
    return _within(supported, np.logaddexp.reduce(exponent, axis=2))


def log_density_circle(X: FloatArray) -> FloatArray:
    """The radius's density over the share kept; the circumference it spreads over cancels."""
    radius = np.hypot(X[:, 0], X[:, 1])[:, None]
    exponent = -0.5 * np.square((radius - np.array(CIRCLE_RADII)) / NOISE)
    kept = np.array([acceptance("circle", label) for label in (0, 1)])
    return _within(inside_box(X), exponent - np.log(kept))


def log_density_sinewave(X: FloatArray) -> FloatArray:
    """The height's density about each wave; the shares kept are equal and cancel."""
    return _log_density_curves("sinewave", X)


def log_density_polynomial(X: FloatArray) -> FloatArray:
    """The height's density about each power, over the share kept."""
    return _log_density_curves("polynomial", X)


@cache
def acceptance(name: str, label: int) -> float:
    """Share Z_k of class ``label`` that falls into the box: "circle", "sinewave", "polynomial".

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
    curve = _CURVES[name][label]

    def stays(x: float) -> float:
        height = float(curve(x))
        return float(ndtr((1.0 - height) / NOISE) - ndtr((-1.0 - height) / NOISE))

    # the share varies within a few noise widths of where a curve touches the box
    return float(0.5 * quad(stays, -1.0, 1.0, points=(-0.5, 0.0, 0.5), limit=200)[0])


def _ring(radius: float, middle: float) -> float:
    return exp(-0.5 * ((radius - middle) / NOISE) ** 2) / (NOISE * sqrt(2.0 * pi))


def _cosine(x: Any) -> Any:
    return np.cos(pi * x)


def _sine(x: Any) -> Any:
    return np.sin(pi * x)


def _line(x: Any) -> Any:
    return x


def _cubic(x: Any) -> Any:
    return x**3


_CURVES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sinewave": (_cosine, _sine),
    "polynomial": (_line, _cubic),
}


def _log_density_curves(name: str, X: FloatArray) -> FloatArray:
    heights = np.column_stack([curve(X[:, 0]) for curve in _CURVES[name]])
    exponent = -0.5 * np.square((X[:, 1:] - heights) / NOISE)
    kept = np.array([acceptance(name, label) for label in (0, 1)])
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


def _draw_curve(name: str, label: int, n: int, rng: np.random.Generator) -> FloatArray:
    x = rng.uniform(-1.0, 1.0, n)
    return np.column_stack([x, _CURVES[name][label](x) + NOISE * rng.normal(size=n)])


def _curve_draws(name: str) -> tuple[Draw, Draw]:
    return in_box(partial(_draw_curve, name, 0)), in_box(partial(_draw_curve, name, 1))
