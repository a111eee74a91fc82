"""Images of simple shapes and their shifts (Dey et al., section 3.2.1, Eqs. 22 to 25).

At size 100 the circle has radius 10 and the rectangle 20 by 50 pixels, as printed; other sizes
scale both. Centres are uniform over the image, so that an object may be cut by the border.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.simulation.classification import BoolArray, check_count
from kdcal_core.text import bytes_text

SHAPES = ("circle", "rectangle")
INTENSITY = 127.0
SIZE = 100
_MOST_BYTES = 4 * 2**30


@dataclass(frozen=True, eq=False)
class Images:
    """Square grey images.

    Attributes
    ----------
    X : (n, size * size) float64
        One image a row: pixel (w1, w2) of the text is column ``w2 * size + w1``.
    y : (n,) int64 or None
        0 for a circle, 1 for a rectangle; None where the images show neither.
    size : int
        Pixels along a side.
    """

    X: FloatArray
    y: IntArray | None
    size: int


def circles(n: int, *, seed: int, size: int = SIZE, intensity: float = INTENSITY) -> Images:
    """``n`` images of a circle, Dey et al., Eq. 22.

    Parameters
    ----------
    n : int
        Number of images, from 1 on.
    seed : int
        Equal seeds give equal images.
    size : int
        Pixels along a side, from 1 on.
    intensity : float
        Grey value of the object, from 0 to 255; the ground is 0.

    Raises
    ------
    InputError
        For numbers out of range, and for images that would take more than 4 GiB.

    Examples
    --------
    >>> images = circles(3, seed=0, size=20)
    >>> images.X.shape, images.y.tolist(), float(images.X.max())
    ((3, 400), [0, 0, 0], 127.0)
    """
    rng = _start(n, seed, size, intensity)
    return Images(_ellipses(rng, n, size, intensity, 0.1), np.zeros(n, dtype=np.int64), size)


def rectangles(n: int, *, seed: int, size: int = SIZE, intensity: float = INTENSITY) -> Images:
    """``n`` images of an upright rectangle, Dey et al., Eq. 23. Arguments as for :func:`circles`.

    Examples
    --------
    >>> rectangles(2, seed=0, size=20).y.tolist()
    [1, 1]
    """
    rng = _start(n, seed, size, intensity)
    return Images(_rectangles(rng, n, size, intensity), np.ones(n, dtype=np.int64), size)


def shapes(n: int, *, seed: int, size: int = SIZE, intensity: float = INTENSITY) -> Images:
    """Circles and rectangles, half of each, shuffled: the text's training set with its labels.

    Arguments as for :func:`circles`; where n is odd there is one circle more.

    Examples
    --------
    >>> sorted(shapes(5, seed=0, size=20).y.tolist())
    [0, 0, 0, 1, 1]
    """
    rng = _start(n, seed, size, intensity)
    n_circles = n - n // 2
    X = np.empty((n, size * size))
    order = rng.permutation(n)
    X[order[:n_circles]] = _ellipses(rng, n_circles, size, intensity, 0.1)
    X[order[n_circles:]] = _rectangles(rng, n // 2, size, intensity)
    y = np.empty(n, dtype=np.int64)
    y[order] = np.arange(n) >= n_circles
    return Images(X, y, size)


def shifted_intensity(n: int, intensity: float, *, seed: int, size: int = SIZE) -> Images:
    """Shift D: circles and rectangles of another grey value; ordinary at 127.

    Examples
    --------
    >>> float(shifted_intensity(4, 250.0, seed=0, size=20).X.max())
    250.0
    """
    return shapes(n, seed=seed, size=size, intensity=intensity)


def mixture(n: int, share: float, *, seed: int, size: int = SIZE) -> Images:
    """Shift E: ``share`` of a circle plus the rest of a rectangle, pixel by pixel (Eq. 24).

    ``share`` lies between 0 (a rectangle) and 1 (a circle), most foreign at 0.5.

    Examples
    --------
    >>> sorted(set(mixture(50, 0.25, seed=0, size=20).X.ravel().tolist()))
    [0.0, 31.75, 95.25, 127.0]
    """
    if not 0.0 <= share <= 1.0:
        raise InputError(f"share is {share!r}", fix="Choose a number from 0 to 1.")
    rng = _start(n, seed, size, INTENSITY)
    round_ones = _ellipses(rng, n, size, share * INTENSITY, 0.1)
    return Images(round_ones + _rectangles(rng, n, size, (1.0 - share) * INTENSITY), None, size)


def ellipse(
    n: int, axis: float, *, seed: int, size: int = SIZE, intensity: float = INTENSITY
) -> Images:
    """Shift F: ellipses with horizontal half axis ``axis`` and vertical half axis 10 (Eq. 25).

    ``axis`` is in pixels of an image of size 100 (other sizes scale it). At 10 it is the circle,
    and ordinary; thinner than half a pixel an ellipse may fall between the pixels' centres and
    leave the image empty.

    Examples
    --------
    >>> bool((ellipse(3, 10.0, seed=5, size=20).X == circles(3, seed=5, size=20).X).all())
    True
    """
    if not 0.0 < axis < np.inf:
        raise InputError(f"axis is {axis!r}", fix="Choose a number above 0.")
    rng = _start(n, seed, size, intensity)
    return Images(_ellipses(rng, n, size, intensity, axis / SIZE), None, size)


def _start(n: int, seed: int, size: int, intensity: float) -> np.random.Generator:
    check_count("n", n)
    check_count("size", size)
    if not 0.0 <= intensity <= 255.0:
        raise InputError(f"intensity is {intensity!r}", fix="Choose a number from 0 to 255.")
    estimate = 8 * n * size * size
    if estimate > _MOST_BYTES:
        raise InputError(
            f"{n:,} images of {size} by {size} pixels would take {bytes_text(estimate)}",
            fix="Choose fewer or smaller images.",
        )
    return np.random.default_rng(seed)


def _centres(rng: np.random.Generator, n: int, size: int) -> tuple[FloatArray, FloatArray]:
    """Distance of each pixel's column and row from each image's centre, (n, size) each."""
    centre = rng.uniform(0.0, size, (2, n, 1))
    pixel = np.arange(float(size))
    return pixel - centre[0], pixel - centre[1]


def _ellipses(
    rng: np.random.Generator, n: int, size: int, intensity: float, axis: float
) -> FloatArray:
    """Eq. 25; ``axis`` as a share of the size (0.1 is the circle of Eq. 22)."""
    across, down = _centres(rng, n, size)
    width = np.square(across / (axis * size))
    height = np.square(down / (0.1 * size))
    return _filled(width[:, None, :] + height[:, :, None] <= 1.0, intensity)


def _rectangles(rng: np.random.Generator, n: int, size: int, intensity: float) -> FloatArray:
    across, down = _centres(rng, n, size)
    wide = (across >= -0.1 * size) & (across < 0.1 * size)
    high = (down >= -0.25 * size) & (down < 0.25 * size)
    return _filled(wide[:, None, :] & high[:, :, None], intensity)


def _filled(inside: BoolArray, intensity: float) -> FloatArray:
    n, height, width = inside.shape
    return np.where(inside, intensity, 0.0).reshape(n, height * width)
