"""What a comparison of calibrators was asked for, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdcal_core.evaluation import Comparison
from kdcal_core.evaluation.comparison import Judge


@dataclass(frozen=True)
class ComparisonSettings:
    """Which calibrators are compared, and how they are judged.

    Attributes
    ----------
    calibrators : tuple of str
        Keys of `kdcal_core.calibration.CALIBRATORS`; the model takes part always.
    judge : str or None
        "evaluation" or "cross-fitted"; None for the evaluation set where there is one.
    folds, seed : int
    n_boot : int
        Resamples behind the intervals of calibration errors.
    """

    calibrators: tuple[str, ...]
    judge: Judge | None = None
    folds: int = 5
    seed: int = 0
    n_boot: int = 1000


@dataclass(frozen=True, eq=False)
class ComparisonRun:
    """A finished comparison.

    Attributes
    ----------
    settings : ComparisonSettings
    n_fit : int
    comparison : Comparison
    """

    settings: ComparisonSettings
    n_fit: int
    comparison: Comparison = field(repr=False)
