"""The images against Eqs. 22 to 25 of Dey et al., pixel by pixel."""

import numpy as np
import pytest

from kdcal_core.errors import InputError
from kdcal_core.simulation.images import (
    IMAGE_SHIFTS,
    circles,
    ellipse,
    mixture,
    rectangles,
    shapes,
    shifted_intensity,
)


def plain(inside, size):
    """An image from an equation's condition on the pixel, one pixel at a time."""
    return np.array(
        [[127.0 if inside(w1, w2) else 0.0 for w1 in range(size)] for w2 in range(size)]
    )


def centres(n, seed, size):
    return np.random.default_rng(seed).uniform(0, size, (2, n))


def test_circles_are_equation_22():
    images = circles(3, seed=1)
    assert images.X.shape == (3, 10_000)
    for row, c1, c2 in zip(images.X, *centres(3, 1, 100), strict=True):
        wanted = plain(lambda a, b, c=c1, d=c2: (a - c) ** 2 + (b - d) ** 2 <= 100, 100)
        np.testing.assert_array_equal(row.reshape(100, 100), wanted)


def test_rectangles_are_equation_23():
    images = rectangles(3, seed=2)
    for row, c1, c2 in zip(images.X, *centres(3, 2, 100), strict=True):
        wanted = plain(lambda a, b, c=c1, d=c2: c - 10 <= a < c + 10 and d - 25 <= b < d + 25, 100)
        np.testing.assert_array_equal(row.reshape(100, 100), wanted)


@pytest.mark.parametrize("axis", [0.01, 3.0, 10.0, 30.0, 40.0])
def test_ellipses_are_equation_25(axis):
    images = ellipse(3, axis, seed=3)
    assert images.y is None
    for row, c1, c2 in zip(images.X, *centres(3, 3, 100), strict=True):
        wanted = plain(
            lambda a, b, c=c1, d=c2: (a - c) ** 2 / axis**2 + (b - d) ** 2 / 100 <= 1, 100
        )
        np.testing.assert_array_equal(row.reshape(100, 100), wanted)


def test_whole_objects_have_the_printed_areas():
    area = (rectangles(400, seed=4).X > 0).sum(axis=1)
    assert area.max() == 20 * 50
    assert (area == 1000).mean() == pytest.approx(0.8 * 0.5, abs=0.1)
    assert (circles(400, seed=4).X > 0).sum(axis=1).max() == pytest.approx(100 * np.pi, rel=0.03)


def test_the_mixture_is_equation_24():
    size = 30
    rng = np.random.default_rng(5)
    c, r = (rng.uniform(0, size, (2, 4)) for _ in range(2))
    for share in (0.0, 0.3, 0.5, 1.0):
        images = mixture(4, share, seed=5, size=size)
        assert images.y is None
        for i, row in enumerate(images.X):
            ring = plain(lambda a, b, i=i: np.hypot(a - c[0, i], b - c[1, i]) <= size / 10, size)
            block = plain(
                lambda a, b, i=i: -3 <= a - r[0, i] < 3 and -7.5 <= b - r[1, i] < 7.5, size
            )
            wanted = share * ring + (1 - share) * block
            np.testing.assert_allclose(row.reshape(size, size), wanted, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 9])
def test_shapes_carry_their_labels(n):
    images = shapes(n, seed=6, size=40)
    assert np.bincount(images.y, minlength=2).tolist() == [n - n // 2, n // 2]
    shifted = shifted_intensity(n, 200.0, seed=6, size=40)
    np.testing.assert_array_equal(shifted.X > 0, images.X > 0)
    np.testing.assert_array_equal(shifted.y, images.y)
    assert set(np.unique(shifted.X)) <= {0.0, 200.0}


def test_labels_belong_to_their_images():
    images = shapes(300, seed=7)
    lit = images.X.reshape(300, 100, 100) > 0
    tall = lit.any(axis=2).sum(axis=1)
    assert (tall[images.y == 0] <= 21).all()
    assert (tall[images.y == 1] > 21).all()
    assert np.count_nonzero(np.diff(images.y)) > 100


def test_settings_out_of_range_are_refused():
    with pytest.raises(InputError, match=r"GiB.*fewer or smaller"):
        circles(1_000_000, seed=0)
    with pytest.raises(InputError, match="intensity"):
        shapes(1, seed=0, intensity=300.0)
    with pytest.raises(InputError, match="share"):
        mixture(1, 1.1, seed=0)
    for axis in (0.0, -1.0, np.nan):
        with pytest.raises(InputError, match="axis"):
            ellipse(1, axis, seed=0)
    with pytest.raises(InputError, match="size"):
        circles(1, seed=0, size=0)
    with pytest.raises(InputError, match="channels"):
        circles(1, seed=0, channels=2)


@pytest.mark.parametrize("shift", IMAGE_SHIFTS.values(), ids=list(IMAGE_SHIFTS))
def test_colour_images_have_the_grey_image_in_each_channel(shift):
    for place in (shift.places[0], shift.farthest):
        grey = shift.draw(4, place, seed=8, size=20)
        colour = shift.draw(4, place, seed=8, size=20, channels=3)
        assert colour.X.shape == (4, 1200)
        for channel in colour.X.reshape(4, 3, 400).swapaxes(0, 1):
            np.testing.assert_array_equal(channel, grey.X)
