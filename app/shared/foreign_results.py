"""Measures on foreign rows; see `app.shared.set_results`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from app.shared import graph_results, set_results
from app.shared.graph_results import Fit, Foreign, Version
from kdcal_core.data import FloatArray, pixel_places
from kdcal_core.diagnostics import DistanceCurve
from kdcal_core.review import Review
from kdcal_core.tasks import (
    AmongOrdinary,
    ByDistance,
    ForeignAnswers,
    ForeignPictures,
    ForeignSet,
    GraphChosen,
    SurestRows,
    among_ordinary,
    calibrated_by_distance,
    class_shares,
    confidence_far_away,
    foreign_answers,
    foreign_pictures,
    graph_chosen,
    surest_rows,
)

Method = Literal["model", "isotonic", "sigmoid", "kde_mon2", "geodesic", "euclidean"]


@dataclass(frozen=True, eq=False)
class Chosen:
    """The chosen set of foreign rows, and its run."""

    foreign: Foreign
    one: ForeignSet
    name: str

    @property
    def asked(self) -> dict[str, Any]:
        """The rows that every measure reads."""
        return {"run": str(self.foreign.folder), "start": self.one.start, "stop": self.one.stop}


@dataclass(frozen=True, eq=False)
class View:
    """The review, its foreign rows and the setting that the page shows.

    Attributes
    ----------
    review : Review
    prior : (K,) float64
    foreign : Foreign
        Spheres, uploaded rows, noise.
    version : Version or None
        None for a model without a partition.
    chosen : Chosen or None
        None while the model scores its rows.
    """

    review: Review
    prior: FloatArray
    foreign: Foreign
    version: Version | None = None
    chosen: Chosen | None = None


def far_away(review: Review, foreign: Foreign, version: Version | None) -> ByDistance | None:
    """Confidence on the spheres, of the model and of a kernel density version."""
    return set_results.of(
        review, confidence_far_away, run=str(foreign.folder), **graph_results.asked(version)
    )


def calibrated_curve(view: View, method: str) -> DistanceCurve | None:
    """Confidence on the spheres, of a calibrator fitted on the calibration set."""
    return set_results.of(
        view.review,
        calibrated_by_distance,
        which="calibration",
        key=method,
        run=str(view.foreign.folder),
    )


def answers(view: View, chosen: Chosen) -> ForeignAnswers | None:
    """Results for the chosen foreign rows, beside ordinary ones."""
    return set_results.of(
        view.review,
        foreign_answers,
        which="evaluation" if view.review.has_evaluation else "calibration",
        **chosen.asked,
        name=chosen.name,
        **graph_results.asked(view.version),
    )


def chosen_exponent(view: View, version: Version) -> GraphChosen | None:
    """Held-out log loss of every exponent at the current setting."""
    return set_results.of(view.review, graph_chosen, **graph_results.asked(version))


def ordinary(view: View, version: Version) -> AmongOrdinary | None:
    """Accuracy and calibration on the ordinary rows."""
    return set_results.of(view.review, among_ordinary, **graph_results.asked(version))


def surest(view: View, chosen: Chosen, most: int) -> SurestRows | None:
    """The rows that the model is most sure about, with their features.

    Raises
    ------
    InputError
        If an uploaded table is missing.
    """
    asked = {**chosen.asked, **graph_results.asked(view.version)}
    return set_results.of(view.review, surest_rows, **asked, most=most)


def pictures(view: View, chosen: Chosen) -> ForeignPictures | None:
    """The most and the least confident rows as pictures; None where they are none."""
    assert view.review.roles is not None
    if pixel_places(view.review.roles.features) is None:
        return None
    asked = {**chosen.asked, **graph_results.asked(view.version)}
    return set_results.of(view.review, foreign_pictures, **asked)


def every_row_of(view: View, chosen: Chosen, label: str) -> Callable[[], SurestRows] | None:
    """A function that returns all chosen rows; ``label`` is that of the button."""
    asked = {**chosen.asked, **graph_results.asked(view.version)}
    return set_results.on_demand(view.review, surest_rows, label=label, **asked)


def prior_of(review: Review, fit: Fit | None) -> FloatArray | None:
    """Class shares: of the graph's fit, or of the calibration set; None while they are counted."""
    if fit is not None:
        return np.array(fit.facts.prior)
    found = set_results.of(review, class_shares, which="calibration")
    return None if found is None else found.share
