"""Decisions and groups with a calibrated version: what a fit by hand gives on the same rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from made_reviews import review_of
from scipy.special import expit

from kdcal_core.calibration import PlattScaling
from kdcal_core.diagnostics import crossed_groups, decision_counts, measure_groups
from kdcal_core.errors import InputError
from kdcal_core.review import ReviewReader, Workspace
from kdcal_core.tasks import Sets, repaired_decisions, repaired_groups, set_groups


def rows(n: int, seed: int) -> pd.DataFrame:
    """A model that states too little on the coast and too much inland, by the same amount."""
    rng = np.random.default_rng(seed)
    z, coast = rng.normal(size=n), rng.random(n) < 0.5
    happened = rng.random(n) < expit(z + np.where(coast, 0.9, -0.9))
    return pd.DataFrame(
        {
            "place": np.where(coast, "coast", "inland"),
            "no": 1 - expit(z),
            "yes": expit(z),
            "target": np.where(happened, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("decisions"))


@pytest.fixture(scope="module")
def sets(workspace: Workspace) -> Sets:
    review_id = review_of(workspace, calibration=rows(1_500, 0), evaluation=rows(1_500, 1))
    return Sets(ReviewReader(workspace, review_id))


def test_a_calibrator_is_judged_on_rows_that_it_was_not_fitted_on(sets: Sets) -> None:
    fitted, judged = sets.read("calibration"), sets.read("evaluation")
    after = PlattScaling().fit(fitted.proba, fitted.y).predict_proba(judged.proba)
    counts = repaired_decisions(sets, which="evaluation", event=1, method="platt").counts
    expected = decision_counts(after[:, 1], judged.y == 1)
    np.testing.assert_allclose(counts.mass, expected.mass, atol=1e-9)
    labels, names = crossed_groups(sets.frame("evaluation", ("place",)))
    found = repaired_groups(
        sets, which="evaluation", event=1, columns=["place"], method="platt"
    ).table
    by_hand = measure_groups(replace(judged, proba=after), [(labels, names)], event=1)
    for one, other in zip(found.groups, by_hand.groups, strict=True):
        assert one.name == other.name
        assert one.gap.value == pytest.approx(other.gap.value, abs=1e-12)
        assert one.error.value == pytest.approx(other.error.value, abs=1e-12)


def test_a_repair_of_all_rows_alike_leaves_each_group_wrong(sets: Sets) -> None:
    plain = {"which": "evaluation", "event": 1, "columns": ["place"]}
    before = set_groups(sets, **plain)
    after = repaired_groups(sets, **plain, method="platt").table
    assert {one.name: one.region.fault for one in before.groups} == {
        one.name: one.region.fault for one in after.groups
    }
    assert {one.region.fault for one in after.groups} == {"over-confident", "under-confident"}


def test_the_calibration_set_is_judged_by_cross_fitting(sets: Sets) -> None:
    rows = sets.read("calibration")
    found = repaired_groups(
        sets, which="calibration", event=1, columns=["place"], method="isotonic"
    ).table
    assert found.overall.region.n == len(rows.y)
    assert found.overall.gap.low <= 0.0 <= found.overall.gap.high


def test_a_set_that_is_not_there_is_refused(workspace: Workspace) -> None:
    reader = ReviewReader(workspace, review_of(workspace, calibration=rows(40, 3)))
    with pytest.raises(InputError):
        repaired_groups(
            Sets(reader), which="evaluation", event=1, columns=["place"], method="platt"
        )
