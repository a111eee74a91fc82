"""What pages show of a set beside foreign rows: measures as in `set_measures`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kdcal_core.calibration import TopLabelCalibrator, score_calibrator
from kdcal_core.data import FloatArray
from kdcal_core.diagnostics import (
    DistanceCurve,
    Estimate,
    confidence_by_distance,
    fpr_at_95_tpr,
    ood_auroc,
)
from kdcal_core.review import Which
from kdcal_core.store import load
from kdcal_core.tasks.foreign_results import ForeignRun
from kdcal_core.tasks.set_measures import Sets, fitted

BAND = (10.0, 90.0)


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Share of each class among the rows of a set, by weight, (K,)."""

    share: FloatArray


def class_shares(sets: Sets, *, which: Which) -> ClassShares:
    """How often each class occurs."""
    scored = sets.read(which)
    count = np.bincount(scored.y, weights=scored.weight, minlength=len(scored.classes))
    return ClassShares(np.asarray(count / count.sum(), dtype=np.float64))


def calibrated_by_distance(sets: Sets, *, which: Which, key: str, run: str) -> DistanceCurve:
    """Confidence on spheres around the data of a calibrator fitted on a set.

    Parameters
    ----------
    key : str
        Of a method of the registry, which is fitted with its default settings.
    run : str
        The folder of the finished `ForeignRun` that holds the spheres.
    """
    foreign = load(run, ForeignRun)

    def make() -> TopLabelCalibrator:
        return fitted(score_calibrator(key), sets.read(which))

    calibrator: TopLabelCalibrator = sets.keep(("fitted", which, key), make)
    return by_distance(foreign, calibrator.predict_proba(foreign.rows.proba))


@dataclass(frozen=True, eq=False)
class Separated:
    """How well a model's confidence tells foreign rows from the rows of a set."""

    auroc: Estimate
    fpr_at_95_tpr: Estimate


def separated_by_confidence(
    sets: Sets, *, which: Which, run: str, start: int, stop: int
) -> Separated:
    """The rows of a set beside some rows of the `ForeignRun` in the folder ``run``."""
    return separated(sets.read(which).proba, load(run, ForeignRun).rows.proba[start:stop])


def separated(proba: FloatArray, foreign: FloatArray) -> Separated:
    """The same of a model's probabilities of ordinary rows (n, K) and of foreign ones (m, K)."""
    inner, outer = proba.max(axis=1), foreign.max(axis=1)
    return Separated(
        ood_auroc(inner, outer, by="confidence"), fpr_at_95_tpr(inner, outer, by="confidence")
    )


def by_distance(run: ForeignRun, proba: FloatArray) -> DistanceCurve:
    """Mean confidence on each sphere of whoever answers the run's rows with ``proba``."""
    return confidence_by_distance(
        run.by_radius(proba), run.radii, q=BAND, seed=run.record.settings.seed
    )
