"""The list of calibrators that pages, reports and the command line offer.

Each module adds its calibrators to the list at its end (`CalibratorEntry.offer`), and importing the
list imports every module of `kdcal_core.calibration`. So a new calibrator is one new file: the
class, its entry, and its ONNX nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, get_args

from kdcal_core.calibration.calibrator_base import Calibrator, TopLabelCalibrator
from kdcal_core.errors import InputError
from kdcal_core.offers import offer
from kdcal_core.text import printable

Family = Literal[
    "model", "recommended", "top-label", "temperature", "standard", "partition", "kernel density"
]
Need = Literal["inputs", "model"]
CALIBRATOR_FAMILIES: dict[Family, tuple[str, str]] = {
    "model": ("The model", "Its own probabilities, as they are."),
    "recommended": (
        "Recommended",
        "kdcal chooses a calibrator by its log loss on rows that it did not see, and says why.",
    ),
    "top-label": (
        "Confidence of the predicted class",
        "Salamon et al.: how often a prediction of this class is right at this score. The "
        "predicted class and the ranking of classes do not change.",
    ),
    "temperature": (
        "Temperature",
        "One or a few numbers soften or sharpen the probabilities.",
    ),
    "standard": (
        "Standard",
        "Calibrators from outside the five papers, for one class against the rest or for all "
        "classes at once.",
    ),
    "partition": (
        "Region by region",
        "Durfee et al.: the inputs are cut into regions, and each has its own calibration. "
        "These can change the ranking of rows, and so the AUROC.",
    ),
    "kernel density": (
        "Kernel density graph",
        "Dey et al.: also knows where the data end, and states the prior outside.",
    ),
}
"""The name of each family, and what its calibrators have in common."""


@dataclass(frozen=True)
class CalibratorEntry:
    """A calibrator's entry in the list.

    Attributes
    ----------
    key : str
        Stable identifier for records and the command line.
    name : str
        Full name.
    label : str
        Short label, as in the paper.
    factory : callable
        Makes an unfitted calibrator with its default settings.
    reference : str
        Where it is described.
    description : str
        What it does, in one sentence.
    family : str
        "model" (no calibrator), "recommended" (chosen among others), "top-label" (Salamon et al.),
        "temperature", "standard" (from outside the five papers), "partition" (Durfee et al.) or
        "kernel density" (Dey et al.).
    compared : bool
        Whether the page Confidence by class offers it for comparison. The families "model",
        "top-label" and "temperature" are offered there in any case.
    offered : bool
        Whether a comparison of all families includes it by default.
    needs : tuple of str
        Data that it reads in addition to probabilities and classes: "inputs", "model".
    binary_only : bool
        Whether it calibrates only two classes.
    """

    key: str
    name: str
    label: str
    factory: Callable[[], Calibrator]
    reference: str
    description: str
    family: Family
    compared: bool = True
    offered: bool = False
    needs: tuple[Need, ...] = ()
    binary_only: bool = False

    @property
    def by_class(self) -> bool:
        """Whether it is compared by predicted class (Salamon et al., Fig. 17)."""
        return self.compared or self.family in ("model", "top-label", "temperature")

    def offer(self) -> None:
        """Add the calibrator to the list.

        Raises
        ------
        ValueError
            If another calibrator has its key.
        """
        offer(self, CALIBRATORS, get_args(Family))

    def lacks(self, *, n_classes: int, n_inputs: int, has_codes: bool) -> str | None:
        """Why a review of this kind cannot use it, as a sentence; None if it can.

        Parameters
        ----------
        n_classes : int
        n_inputs : int
            Number of feature columns of the rows.
        has_codes : bool
            Whether there is a model that can be read as a partition of its inputs.

        Examples
        --------
        >>> CALIBRATORS["kernel_density"].lacks(n_classes=2, n_inputs=3, has_codes=False)
        'There is no model that divides its inputs into polytopes.'
        """
        if self.binary_only and n_classes != 2:
            return f"It is for two classes, and there are {n_classes:,}."
        if "inputs" in self.needs and not n_inputs:
            return "The rows have no features."
        if "model" in self.needs and not has_codes:
            return "There is no model that divides its inputs into polytopes."
        return None


CALIBRATORS: dict[str, CalibratorEntry] = {}
"""Every calibrator by key, in the order shown: by family, then as added."""


def methods_by_class() -> tuple[str, ...]:
    """Keys of the methods that are compared by predicted class (Salamon et al., Fig. 17)."""
    return tuple(key for key, entry in CALIBRATORS.items() if entry.by_class)


_GUESSED = {
    "none": "uncalibrated",
    "kde": "kde_mon2",
    "temperature": "sts",
    "temperature_scaling": "sts",
    "logistic": "platt",
    **dict.fromkeys(("forest", "regions", "heterogeneous"), "heterogeneous_forest"),
    "matrix": "sms",
    "ensemble_temperature": "ets",
    "isotonic_regression": "isotonic",
    "platt_scaling": "platt",
    "beta_calibration": "beta",
    "histogram_binning": "histogram",
    "vector_scaling": "vector",
    "matrix_scaling": "sms",
}
"""Keys of a calibrator under the names that people try first."""


def calibrator_entry(key: str) -> CalibratorEntry:
    """The entry for a key, or for the name that people would guess.

    Raises
    ------
    InputError
        There is no such calibrator.

    Examples
    --------
    >>> calibrator_entry("sts").name, calibrator_entry("temperature").key
    ('Shared temperature scaling', 'sts')
    >>> calibrator_entry("Venn-Abers").key, calibrator_entry("isotonic_regression").key
    ('venn_abers', 'isotonic')
    """
    plain = key.strip().lower().replace("-", "_")
    key = plain if plain in CALIBRATORS else _GUESSED.get(plain, key)
    if key not in CALIBRATORS:
        near = get_close_matches(key, [*CALIBRATORS, *_GUESSED], 1)
        raise InputError(
            f"There is no method {printable(key[:80])!r}",
            fix=(f"Did you mean {near[0]}? " if near else "")
            + f"Methods are {', '.join(CALIBRATORS)}.",
        )
    return CALIBRATORS[key]


def score_calibrator(key: str) -> TopLabelCalibrator:
    """An unfitted calibrator that reads only probabilities.

    Raises
    ------
    InputError
        If there is no such calibrator, or it reads more than probabilities.
    """
    calibrator = calibrator_entry(key).factory()
    if not isinstance(calibrator, TopLabelCalibrator):
        raise InputError(
            f"The method {key!r} reads more than probabilities",
            fix=f"Methods that do not are {', '.join(methods_by_class())}.",
        )
    return calibrator
