"""Images of simple shapes and their shifts (Dey et al., section 3.2.1, Eqs. 22 to 25).

At size 100 the circle has radius 10 and the rectangle 20 by 50 pixels, as printed; other sizes
scale both. Centres are uniform over the image, so that an object may be cut by the border. Images
are grey, or have three equal channels, as in the earlier version of Dey et al. (section 5.2).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kdcal_core.data.schema import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.simulation.classification import BoolArray, check_count
from kdcal_core.text import bytes_text

INTENSITY = 127.0
SIZE = 100
_MOST_BYTES = 4 * 2**30


@dataclass(frozen=True, eq=False)
class Images:
    """Square images.

    Attributes
    ----------
    X : (n, channels * size * size) float64
        One image a row, one channel after the other: pixel (w1, w2) of the text is column
        ``w2 * size + w1`` of a channel.
    y : (n,) int64 or None
        0 for a circle, 1 for a rectangle; None where the images show neither.
    size : int
        Pixels along a side.
    """

    X: FloatArray
    y: IntArray | None
    size: int


def circles(
    n: int, *, seed: int, size: int = SIZE, channels: int = 1, intensity: float = INTENSITY
) -> Images:
    """``n`` images of a circle, Dey et al., Eq. 22.

    Parameters
    ----------
    n : int
        Number of images, from 1 on.
    seed : int
        Equal seeds give equal images.
    size : int
        Pixels along a side, from 1 on.
    channels : int
        1 for grey images, 3 for colour images, whose channels are equal.
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
    rng = _start(n, seed, size, channels, intensity)
    drawn = _ellipses(rng, n, size, intensity, 0.1)
    return Images(_tiled(drawn, channels), np.zeros(n, dtype=np.int64), size)


def rectangles(
    n: int, *, seed: int, size: int = SIZE, channels: int = 1, intensity: float = INTENSITY
) -> Images:
    """``n`` images of an upright rectangle, Dey et al., Eq. 23. Arguments as for :func:`circles`.

    Examples
    --------
    >>> rectangles(2, seed=0, size=20).y.tolist()
    [1, 1]
    """
    rng = _start(n, seed, size, channels, intensity)
    drawn = _rectangles(rng, n, size, intensity)
    return Images(_tiled(drawn, channels), np.ones(n, dtype=np.int64), size)


def shapes(
    n: int, *, seed: int, size: int = SIZE, channels: int = 1, intensity: float = INTENSITY
) -> Images:
    """Circles and rectangles, half of each, shuffled: the text's training set with its labels.

    Arguments as for :func:`circles`; where n is odd there is one circle more.

    Examples
    --------
    >>> sorted(shapes(5, seed=0, size=20).y.tolist())
    [0, 0, 0, 1, 1]
    """
    rng = _start(n, seed, size, channels, intensity)
    n_circles = n - n // 2
    X = np.empty((n, size * size))
    order = rng.permutation(n)
    X[order[:n_circles]] = _ellipses(rng, n_circles, size, intensity, 0.1)
    X[order[n_circles:]] = _rectangles(rng, n // 2, size, intensity)
    y = np.empty(n, dtype=np.int64)
    y[order] = np.arange(n) >= n_circles
    return Images(_tiled(X, channels), y, size)


def shifted_intensity(
    n: int, intensity: float, *, seed: int, size: int = SIZE, channels: int = 1
) -> Images:
    """Shift D: circles and rectangles of another grey value; ordinary at 127.

    Examples
    --------
    >>> float(shifted_intensity(4, 250.0, seed=0, size=20).X.max())
    250.0
    """
    return shapes(n, seed=seed, size=size, channels=channels, intensity=intensity)


def mixture(n: int, share: float, *, seed: int, size: int = SIZE, channels: int = 1) -> Images:
    """Shift E: ``share`` of a circle plus the rest of a rectangle, pixel by pixel (Eq. 24).

    ``share`` lies between 0 (a rectangle) and 1 (a circle), most foreign at 0.5.

    Examples
    --------
    >>> sorted(set(mixture(50, 0.25, seed=0, size=20).X.ravel().tolist()))
    [0.0, 31.75, 95.25, 127.0]
    """
    if not 0.0 <= share <= 1.0:
        raise InputError(f"share is {share!r}", fix="Choose a number from 0 to 1.")
    rng = _start(n, seed, size, channels, INTENSITY)
    round_ones = _ellipses(rng, n, size, share * INTENSITY, 0.1)
    drawn = round_ones + _rectangles(rng, n, size, (1.0 - share) * INTENSITY)
    return Images(_tiled(drawn, channels), None, size)


def ellipse(
    n: int,
    axis: float,
    *,
    seed: int,
    size: int = SIZE,
    channels: int = 1,
    intensity: float = INTENSITY,
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
    rng = _start(n, seed, size, channels, intensity)
    drawn = _ellipses(rng, n, size, intensity, axis / SIZE)
    return Images(_tiled(drawn, channels), None, size)


@dataclass(frozen=True)
class ImageShift:
    """How images change away from the ordinary ones.

    Attributes
    ----------
    title, words, place : str
        Its name, the name of its scale, and a place on it in words, with a gap for the number.
    draw : callable
        From a number of images and a place on the scale, with ``seed``, ``size`` and ``channels``,
        to images.
    places : tuple of float
        Where it is measured, ascending.
    ordinary : tuple of float
        The places whose images are those of the training set.
    farthest : float
        The place that is most foreign.
    """

    title: str
    words: str
    place: str
    draw: Callable[..., Images]
    places: tuple[float, ...]
    ordinary: tuple[float, ...]
    farthest: float


IMAGE_SHIFTS = {
    "intensity": ImageShift(
        "Brightness",
        "Intensity of the object",
        "intensity {:g}",
        shifted_intensity,
        (5.0, 30.0, 60.0, 90.0, 110.0, 127.0, 145.0, 165.0, 190.0, 220.0, 254.0),
        (INTENSITY,),
        254.0,
    ),
    "mixture": ImageShift(
        "Mixture",
        "Share of the circle",
        "a circle's share of {:g}",
        mixture,
        (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0),
        (0.0, 1.0),
        0.5,
    ),
    "ellipse": ImageShift(
        "Ellipse",
        "Horizontal half axis",
        "a half axis of {:g}",
        ellipse,
        (0.01, 2.0, 5.0, 8.0, 10.0, 13.0, 20.0, 30.0, 40.0),
        (10.0,),
        40.0,
    ),
}


def _start(n: int, seed: int, size: int, channels: int, intensity: float) -> np.random.Generator:
    check_count("n", n)
    check_count("size", size)
    if channels not in (1, 3):
        raise InputError(f"channels is {channels!r}", fix="Choose 1 (grey) or 3 (colour).")
    if not 0.0 <= intensity <= 255.0:
        raise InputError(f"intensity is {intensity!r}", fix="Choose a number from 0 to 255.")
    estimate = 8 * n * size * size * channels
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


def _tiled(X: FloatArray, channels: int) -> FloatArray:
    """The same image in every channel: shifts change all of them alike."""
    return X if channels == 1 else np.tile(X, (1, channels))
