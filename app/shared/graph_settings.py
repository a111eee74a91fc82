"""Prior, fixed floor and distance of the kernel density version, shared by the pages that show it.

Prior and floor take effect without a fit; another distance is another fit (`graph_results.fitted`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st

from app.shared.emphasis import quiet
from app.shared.one_of import one_of
from kdcal_core.calibration import LEAST_LOG_FLOOR, PAPERS_LOG_FLOOR
from kdcal_core.text import escape_markdown, listed

Distance = Literal["geodesic", "euclidean", "auto"]
DISTANCES: dict[Distance, str] = {
    "geodesic": "Geodesic",
    "euclidean": "Euclidean",
    "auto": "Better by held-out loss",
}
ALPHAS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
_KEPT: dict[str, Any] = {"persist_state": "session"}
_SHOWN = 12
HELP = """
* **Prior.** The probability of each class in the population that the model will meet. By default
  it is the class's share of the rows of the fit. Inside the data your own prior is applied by
  Bayes' rule; far outside it is the answer, and OCE is measured against it.
* **Fixed log b.** The constant of Dey et al. (Eq. 8) instead of a floor that alpha sets from the
  held-out rows. They print b = exp(-10^-7), which would lower the accuracy inside; their results
  agree with log b = -10^7.
* **Distance.** Which region represents a row that lies in none: the one that shares most leaves or
  activation paths with it (geodesic), or the nearest in the inputs (Euclidean).
"""


@dataclass(frozen=True)
class Further:
    """What was chosen beside alpha: None where the data decide."""

    prior: tuple[float, ...] | None = None
    log_floor: float | None = None
    distance: Distance = "geodesic"


def distance_choice(review_id: str) -> Distance:
    """The distance of the fit; another one is fitted at once, as a job."""
    return one_of("Distance between regions", DISTANCES, "geodesic", key=distance_key(review_id))


def distance_key(review_id: str) -> str:
    """Where the session keeps the chosen distance, which the fit reads before it is drawn."""
    return f"graph_distance_{review_id}"


def choose(review_id: str, classes: tuple[str, ...], shares: tuple[float, ...]) -> Further:
    """The popover with prior, floor and distance.

    Parameters
    ----------
    classes : tuple of str
        Untrusted text.
    shares : tuple of float
        Their shares among the rows of the fit.
    """
    with st.popover("Prior, floor and distance", icon=":material/tune:", type=quiet()):
        distance = distance_choice(review_id)
        log_floor = fixed_floor(f"graph_{review_id}")
        prior = own_prior(f"graph_{review_id}", classes, shares)
        with st.expander("What these settings do", icon=":material/help:"):
            st.markdown(HELP)
    return Further(prior, log_floor, distance)


def floor_is_fixed(review_id: str) -> bool:
    """Whether a fixed floor is chosen, so that alpha does nothing."""
    return bool(st.session_state.get(floor_key(f"graph_{review_id}")))


def fixed_floor(name: str) -> float | None:
    """A fixed log b, or None for a floor from the held-out rows."""
    if not st.toggle("Fixed log b instead of alpha", key=floor_key(name), **_KEPT):
        return None
    found: float = st.number_input(
        "log b",
        min_value=LEAST_LOG_FLOOR,
        max_value=0.0,
        value=PAPERS_LOG_FLOOR,
        step=1.0,
        format="%.6g",
        key=f"{name}_log_b",
        help="Natural logarithm. The lower, the farther the version stays sure.",
        **_KEPT,
    )
    return found


def floor_key(name: str) -> str:
    """Where the session keeps whether the floor is fixed."""
    return f"{name}_fixed_floor"


def own_prior(
    name: str, classes: tuple[str, ...], shares: tuple[float, ...]
) -> tuple[float, ...] | None:
    """A prior by class, scaled to sum to one; None for the shares among the rows of the fit."""
    if not st.toggle("Own prior", key=f"{name}_own_prior", **_KEPT):
        return None
    percent = [
        st.number_input(
            escape_markdown(f"Percent {label}", 60),
            min_value=0.0,
            max_value=100.0,
            value=round(100.0 * share, 2),
            format="%.6g",
            key=f"{name}_prior_{at}",
            **_KEPT,
        )
        for at, (label, share) in enumerate(zip(classes, shares, strict=True))
    ]
    total = sum(percent)
    if total <= 0.0:
        st.warning("A prior needs at least one class above zero, so the rows of the fit decide.")
        return None
    prior = tuple((np.array(percent) / total).tolist())
    if abs(total - 100.0) > 0.005:
        said = [f"{label} {share:.1%}" for label, share in zip(classes, prior, strict=True)]
        words = f"Scaled to a sum of 100%: {listed(said[:_SHOWN], len(said))}."
        st.caption(escape_markdown(words, 600))
    return prior


def keys(review_id: str, n_classes: int) -> tuple[str, ...]:
    """Where the session keeps these settings, for a button that resets them."""
    name = f"graph_{review_id}"
    priors = (f"{name}_prior_{at}" for at in range(n_classes))
    floor = (floor_key(name), f"{name}_log_b")
    return (distance_key(review_id), *floor, f"{name}_own_prior", *priors)
