"""The simulation lab for images: circles and rectangles that shift (Dey et al., section 3.2.1).

One run is Fig. 5 of the paper (Fig. 3 of the earlier version) for one seed: a small convolutional
network, its calibrated versions, and their confidence as the images shift.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import FloatArray, IntArray, stratified_folds
from kdcal_core.diagnostics import (
    Estimate,
    confidence_calibration_error,
    log_loss,
    mean_max_confidence,
)
from kdcal_core.diagnostics.estimate import share_estimate
from kdcal_core.progress import Progress, part_of
from kdcal_core.simulation import IMAGE_SHIFTS, shapes
from kdcal_core.tasks.decorators import check_ranges, task
from kdcal_core.tasks.lab import Estimator, FittedMethods, LabSettings, fit_methods
from kdcal_core.tasks.lab_measures import Method
from kdcal_core.tasks.lab_networks import train_image_network

N_TEST, N_SHIFTED = 500, 100
IMAGE_MEASURES = ("error", "ece", "log_loss")
_BRIGHTEST = 255.0
_RANGES: dict[str, tuple[float, float]] = {
    "n": (50, 10_000),
    "size": (10, 100),
    "seed": (0, 2**31),
}
_TEST_SEED, _SHIFT_SEED = 1_000_003, 1_000_033  # no image is drawn twice


@dataclass(frozen=True)
class ImageLabSettings:
    """What is simulated.

    Attributes
    ----------
    n : int
        Images drawn, half of them circles: the network is trained on seven tenths, and the others
        are held out.
    size : int
        Pixels along a side; the papers' images have 100.
    colour : bool
        Whether images have three equal channels, as in the earlier version of Dey et al., instead
        of one.
    seed : int
        Seed of the drawing, the training and the split.
    """

    n: int = 1000
    size: int = 28
    colour: bool = False
    seed: int = 0

    @property
    def channels(self) -> int:
        """1 for grey images, 3 for colour."""
        return 3 if self.colour else 1


@dataclass(frozen=True, eq=False)
class ShiftedImages:
    """What the methods say as images shift.

    Attributes
    ----------
    samples : (P, size, size) float64
        One image at each place, grey values from 0 to 255.
    confidence : dict
        By method, the largest probability of each image, (P, m) float64.
    unknown : (P,) float64
        Share of the images whose density lies below the geodesic graph's floor.
    """

    samples: FloatArray
    confidence: dict[Method, FloatArray]
    unknown: FloatArray


@dataclass(frozen=True, eq=False)
class ImageLabRun:
    """A network for images with its calibrated versions, on ordinary and on shifted images.

    Attributes
    ----------
    settings : ImageLabSettings
    model : str
        What the network is, in words.
    n_fit, n_holdout : int
        Numbers of images.
    y : (m,) int64
        The classes of fresh ordinary images.
    test : dict
        By method, their probabilities, (m, 2) float64.
    shifts : dict
        By the keys of `kdcal_core.simulation.IMAGE_SHIFTS`.
    """

    settings: ImageLabSettings
    model: str
    n_fit: int
    n_holdout: int
    y: IntArray
    test: dict[Method, FloatArray]
    shifts: dict[str, ShiftedImages]

    def confidence(self, shift: str, method: Method, place: float) -> Estimate:
        """The mean confidence of a method at a place of a shift."""
        at = IMAGE_SHIFTS[shift].places.index(place)
        said = self.shifts[shift].confidence[method][at]
        return mean_max_confidence(np.column_stack([said, 1.0 - said]))

    def unknown(self, shift: str, place: float) -> Estimate:
        """The share of images at a place of a shift that the geodesic graph calls unknown."""
        at = IMAGE_SHIFTS[shift].places.index(place)
        found, n = self.shifts[shift], len(self.shifts[shift].confidence["model"][at])
        share = float(found.unknown[at])
        return share_estimate("Share of unknown rows", "Unknown", share, n, n, lower_is_better=None)

    def measured(self, method: Method) -> dict[str, Estimate]:
        """Error, calibration error and log loss on fresh ordinary images, by `IMAGE_MEASURES`."""
        proba = self.test[method]
        right = proba.argmax(axis=1) == self.y
        n = len(right)
        error = share_estimate("Classification error", "Error", 1.0 - right.mean(), n, n)
        found = (
            error,
            confidence_calibration_error(proba.max(axis=1), right, n_boot=200),
            log_loss(proba, self.y),
        )
        return dict(zip(IMAGE_MEASURES, found, strict=True))


def check_image_lab(settings: ImageLabSettings) -> ImageLabSettings:
    """Return the settings, or raise where one is out of range."""
    check_ranges(settings, _RANGES)
    return settings


@task("Simulating images that shift", settle=check_image_lab)
def simulate_images(settings: ImageLabSettings, progress: Progress) -> ImageLabRun:
    """Run a simulation of images.

    Raises
    ------
    InputError
        For settings out of range, and where the network learnt nothing.

    Examples
    --------
    >>> simulate_images.request(ImageLabSettings(n=200)).title
    'Simulating images that shift'
    """
    progress(0.0, "Drawing the images")
    drawn_as = {"size": settings.size, "channels": settings.channels}
    drawn = shapes(settings.n, seed=settings.seed, **drawn_as)
    X, y = drawn.X / _BRIGHTEST, drawn.y
    assert y is not None
    held = stratified_folds(y, 10, settings.seed) < 3  # three tenths
    model = train_image_network(
        X[~held],
        y[~held],
        channels=settings.channels,
        seed=settings.seed,
        progress=part_of(progress, 0.0, 0.6),
    )
    fit, fresh = (X[~held], y[~held]), (X[held], y[held])
    network = LabSettings(model="network")
    methods = fit_methods(network, model, fit, fresh, part_of(progress, 0.6, 0.8))

    test = shapes(N_TEST, seed=settings.seed + _TEST_SEED, **drawn_as)
    assert test.y is not None
    shifts = {}
    for at, (key, shift) in enumerate(IMAGE_SHIFTS.items()):
        progress(0.8 + 0.2 * at / len(IMAGE_SHIFTS), f"{shift.words}: asking every method")
        X = np.stack(
            [
                shift.draw(N_SHIFTED, place, seed=settings.seed + _SHIFT_SEED, **drawn_as).X
                for place in shift.places
            ]
        )
        said, unknown = _asked(methods, X.reshape(-1, X.shape[2]) / _BRIGHTEST)
        shape = X.shape[:2]
        images = X[:, :, : settings.size**2].reshape(*shape, settings.size, settings.size)
        shifts[key] = ShiftedImages(
            samples=images[:, _whole(images)],
            confidence={name: proba.max(axis=1).reshape(shape) for name, proba in said.items()},
            unknown=unknown.reshape(shape).mean(axis=1),
        )
    answers, _ = _asked(methods, test.X / _BRIGHTEST)
    return ImageLabRun(
        settings, model.kind, int((~held).sum()), int(held.sum()), test.y, answers, shifts
    )


def _asked(
    methods: FittedMethods, X: FloatArray
) -> tuple[dict[Method, FloatArray], NDArray[np.bool_]]:
    """Every method's probabilities (m, 2), and whether the geodesic graph calls a row unknown."""
    proba = methods.model.predict_proba(X)
    said: dict[Method, FloatArray] = {
        "model": proba,
        "isotonic": methods.isotonic.predict_proba(proba),
        "sigmoid": methods.sigmoid.predict_proba(proba),
    }
    unknown = np.zeros(len(X), dtype=bool)
    kinds: tuple[tuple[Method, Estimator], ...] = (
        ("geodesic", methods.graphs["geodesic"]),
        ("euclidean", methods.graphs["euclidean"]),
        ("geodesic_paper", methods.papers["geodesic"]),
        ("euclidean_paper", methods.papers["euclidean"]),
    )
    for method, estimator in kinds:
        located = estimator.locate(X, proba=proba)
        said[method] = estimator.graph_.posterior(located)
        if method == "geodesic":
            unknown = estimator.graph_.unknown(located)
    return said, unknown


def _whole(images: FloatArray) -> int:
    """Of (P, m, size, size) images the index whose object is nearest to the middle, and uncut."""
    size = images.shape[-1]
    lit = images > 0
    middle = np.arange(size) - (size - 1) / 2
    total = np.maximum(lit.sum(axis=(2, 3)), 1)
    across, down = ((lit.sum(axis=axis) * middle).sum(axis=2) / total for axis in (2, 3))
    return int(np.argmin((np.abs(across) + np.abs(down)).mean(axis=0)))
