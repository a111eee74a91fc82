"""The list of recalibrators that pages, reports and the command line offer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kdcal_core.regression.density import DensityRecalibration
from kdcal_core.regression.global_recalibration import GlobalRecalibration, IsotonicRecalibration
from kdcal_core.regression.local import LocalRecalibration, NeighbourRegression
from kdcal_core.regression.recalibrator_base import Recalibrator
from kdcal_core.regression.where_needed import WhereNeeded


@dataclass(frozen=True)
class RecalibratorSpec:
    """A recalibrator as it is offered.

    Attributes
    ----------
    key : str
        Stable identifier for records and the command line.
    title : str
        Full name.
    sentence : str
        What it does, in one sentence.
    make : callable
        Makes a fresh, unfitted recalibrator; keyword arguments are those of ``settings``.
    needs_space : bool
        Whether it searches neighbours in a space that has to be given.
    reference : str
        Where it is described.
    settings : tuple of str
        Names of the settings that may be changed.
    comparison : bool
        True for a method shown for comparison alone: it corrects nothing, it predicts itself.
    """

    key: str
    title: str
    sentence: str
    make: Callable[..., Recalibrator]
    needs_space: bool
    reference: str
    settings: tuple[str, ...] = ()
    comparison: bool = False


def _local_where_needed(
    k: int | Literal["auto"] = "auto", level: float = 0.05, seed: int = 0
) -> WhereNeeded:
    return WhereNeeded(LocalRecalibration(k=k, seed=seed), level=level, seed=seed)


_SPECS = (
    RecalibratorSpec(
        "local",
        "Local recalibration",
        "Every row is corrected by where the outcomes of its nearest calibration rows fell in "
        "their own predictions.",
        LocalRecalibration,
        needs_space=True,
        reference="Torres et al., Algorithm 1",
        settings=("k", "radius", "kernel", "smoothing", "search", "epsilon", "standardise", "seed"),
    ),
    RecalibratorSpec(
        "where_needed",
        "Local recalibration where needed",
        "Local recalibration only of rows whose neighbourhood is miscalibrated beyond "
        "chance; the others keep the model's own prediction.",
        _local_where_needed,
        needs_space=True,
        reference="Torres et al., Algorithm 1 after a local test, beyond the paper",
        settings=("k", "level", "seed"),
    ),
    RecalibratorSpec(
        "global",
        "Global recalibration",
        "Every row gets the same correction, from where the outcomes of all calibration rows fell "
        "in their own predictions.",
        GlobalRecalibration,
        needs_space=False,
        reference="Torres et al., section 3",
        settings=("seed",),
    ),
    RecalibratorSpec(
        "isotonic",
        "Isotonic recalibration",
        "One increasing map of probabilities for all rows makes the stated quantiles right on "
        "average.",
        IsotonicRecalibration,
        needs_space=False,
        reference="Kuleshov et al. 2018; Torres et al., section 2",
        settings=("ends", "smoothing", "seed"),
    ),
    RecalibratorSpec(
        "density",
        "Density estimation recalibration",
        "A small network learns the outcome's quantiles from the model's own forecast, so large "
        "and small predictions are corrected differently.",
        DensityRecalibration,
        needs_space=False,
        reference="Kuleshov and Deshpande 2022; Torres et al., section 4.3",
        settings=("seed",),
    ),
    RecalibratorSpec(
        "neighbours",
        "Nearest neighbour regression",
        "The outcomes of the nearest calibration rows are the prediction; the model's own "
        "is not used.",
        NeighbourRegression,
        needs_space=True,
        reference="Torres et al., section 4.3",
        settings=("k", "kernel"),
        comparison=True,
    ),
)

RECALIBRATORS: dict[str, RecalibratorSpec] = {spec.key: spec for spec in _SPECS}
"""Every recalibrator by key, in the order in which it is shown."""
