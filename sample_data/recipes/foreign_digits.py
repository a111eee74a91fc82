"""Images of 8 x 8 pixels that are no digits, on which a reader of digits should be unsure."""

from __future__ import annotations

import numpy as np

PIXEL_MAX = 16
SIDE = 8
#: What each table is called and what it holds, for people.
WORDS = (
    "Foreign tables: digits with dark and light exchanged, digits with their pixels shuffled, "
    "and stripes, checks, slopes and noise."
)


def foreign_digits(digits: np.ndarray, n: int, seed: int) -> dict[str, np.ndarray]:
    """Tables of foreign images by name, each (n, 64) of whole numbers from 0 to 16.

    ``digits`` (at least n, 64) are what the first two are made of.
    """
    random = np.random.RandomState(seed)
    chosen = digits[random.permutation(len(digits))[:n]].astype(np.int64)
    return {
        "inverted_digits": PIXEL_MAX - chosen,
        "shuffled_pixels": np.array([random.permutation(image) for image in chosen]),
        "textures": textures(n, random),
    }


def textures(n: int, random: np.random.RandomState) -> np.ndarray:
    """Stripes, checks, slopes and noise in turn, each with its own direction and phase."""
    rows, columns = np.indices((SIDE, SIDE))
    images = []
    for k in range(n):
        angle, phase, period = random.uniform(0, [np.pi, 2 * np.pi, 1.0])
        along = rows * np.sin(angle) + columns * np.cos(angle)
        across = rows * np.cos(angle) - columns * np.sin(angle)
        wave = 2 * np.pi / (2 + 4 * period)
        stripes = np.sin(wave * along + phase)
        image = (
            stripes,
            stripes * np.sin(wave * across),
            2 * ((along - along.min()) / np.ptp(along)) ** (0.5 + 2 * period) - 1,
            random.uniform(-1, 1, (SIDE, SIDE)),
        )[k % 4]
        images.append(np.rint((image.ravel() + 1) / 2 * PIXEL_MAX).astype(np.int64))
    return np.array(images)
