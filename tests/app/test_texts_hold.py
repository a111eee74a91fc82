"""Numbers and claims in the pages' explanations, held to what the core computes."""

import re
from dataclasses import replace

import numpy as np
import pytest

from app.out_of_distribution import foreign_details
from app.simulation_lab import lab_text
from kdcal_core.calibration import CALIBRATORS, KernelDensityGraph, Located
from kdcal_core.charts import foreign, lab
from kdcal_core.simulation.classification import acceptance
from kdcal_core.tasks.lab_measures import (
    METHODS,
    PAPER_LOG_FLOOR,
    PRINTED_LOG_FLOOR,
    switch_distances,
)


def graph(counts, masses, prior, **settings):
    p, n = len(counts), int(np.sum(counts))
    return KernelDensityGraph(
        classes=("0", "1"), n=n, centres=np.zeros((p, 2)), variances=np.zeros((p, 2)),
        counts=np.array(counts), exponents=np.array([50.0]), class_masses=masses, prior=prior,
        gamma=50.0 / np.log(n), floor_quantile=None, holdout=None, holdout_y=None, **settings,
    )  # fmt: skip


def test_where_the_printed_floor_lets_go():
    n = 10_000
    counts = np.tile([[1, 0], [0, 1]], (n // 2, 1))
    alone = graph(
        counts, counts[None].astype(float), np.array([0.5, 0.5]),
        variance_floor=1e-6, log_floor=PRINTED_LOG_FLOOR,
    )  # fmt: skip
    (radius,) = np.unique(switch_distances(alone))
    assert f"falls back to the prior {radius:.2g} from its centre" in " ".join(
        lab_text.FLAWS.split()
    )


def test_what_the_outer_ring_loses():
    assert f"{1 - acceptance('circle', 1):.0%} of the outer ring" in lab_text.FLAWS


@pytest.mark.parametrize(("below", "said"), [(0.0, "equal weight"), (4.0, "98% at four units")])
def test_how_the_prior_takes_over_below_the_floor(below, said):
    counts = [[3, 0], [0, 7]]
    prior = np.array([0.3, 0.7])
    one = graph(
        counts, np.array([counts], dtype=float), prior, variance_floor=1e-4, log_floor=-20.0
    )
    top = one.log_marginal(Located(np.zeros((1, 2)), np.array([0]), np.zeros(1, dtype=bool)))[0]
    away = np.sqrt(2e-4 * (top - one.effective_log_floor + below))
    row = Located(np.array([[away, 0.0]]), np.array([0]), np.zeros(1, dtype=bool))
    assert one.log_marginal(row)[0] == pytest.approx(one.effective_log_floor - below)
    # the region holds class 0 alone, so all of class 1 comes from the prior
    part = one.posterior(row)[0, 1] / prior[1]
    assert part == pytest.approx({0.0: 0.5, 4.0: 0.98}[below], abs=0.005)
    assert said in foreign.DENSITIES


def test_the_limit_is_one_of_distance_at_any_number_of_rows():
    """Prop. 2 of Dey et al. has no limit over rows: four of them fall to the prior as well."""
    few = graph(
        [[2, 0], [0, 2]], np.array([[[2.0, 0.0], [0.0, 2.0]]]), np.array([0.5, 0.5]),
        variance_floor=1e-2, log_floor=-1e7,
    )  # fmt: skip
    row = Located(np.array([[1e6, 0.0]]), np.array([0]), np.zeros(1, dtype=bool))
    np.testing.assert_array_equal(few.posterior(row), [[0.5, 0.5]])
    assert "endlessly many rows" not in foreign.DENSITIES + foreign_details.ADVICE


def test_where_the_papers_floor_lets_go():
    counts = np.array([[1, 0], [1, 1]])
    two = graph(
        counts, counts[None].astype(float), np.array([2, 1]) / 3,
        variance_floor=1e-6, log_floor=PAPER_LOG_FLOOR,
    )  # fmt: skip
    spread = replace(two, variances=np.array([[0.0, 0.0], [0.01, 0.01]]))
    one, several = switch_distances(spread)
    words = " ".join(lab.DISTANCE.split())
    assert f"{one:.2f} from the centre of a polytope of one row" in words
    assert several > 50 * one
    assert "much farther out if several rows of a polytope lie apart" in words


def test_a_model_is_called_a_model():
    of_the_lab = [
        text for words in (lab_text, lab) for text in vars(words).values() if isinstance(text, str)
    ]
    described = [entry.description for entry in CALIBRATORS.values()]
    shown = [*of_the_lab, *described, *METHODS.values()]
    assert [text for text in shown if re.search(r"\bparent", text, re.I)] == []
