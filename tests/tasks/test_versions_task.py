"""Two reviews compared: which rows both have, and paired or unpaired differences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_reviews import HOSTILE_CLASS, line, review_of, too_sure
from scipy.special import expit, logit
from small_reviews import quiet
from workerless import working_here

from kdcal_core.errors import InputError
from kdcal_core.evaluation import versions
from kdcal_core.review import Workspace, score, set_roles, set_summary
from kdcal_core.tasks import ComparedReviews, compare_reviews, comparison_request
from kdcal_core.tasks.decorators import carry_out


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with working_here():
        yield Workspace(tmp_path / "home")


def compared(workspace: Workspace, after: str, before: str) -> ComparedReviews:
    """What the job stores."""
    reviews = [workspace.read(one) for one in (after, before)]
    asked = comparison_request(workspace, *reviews)
    folder = workspace.root.parent / asked.key
    folder.mkdir()
    carry_out(**asked.kwargs, folder=str(folder), progress=quiet)
    return compare_reviews.read(folder)


def tempered(table: pd.DataFrame, by: float) -> pd.DataFrame:
    """The same rows, scored by a model whose log odds are divided."""
    p = expit(logit(table["yes"].clip(1e-9, 1 - 1e-9)) / by)
    return table.assign(**{"yes": p, HOSTILE_CLASS: 1 - p})


@pytest.mark.parametrize("kept", [400, 300])
def test_very_many_rows_are_compared_by_their_summaries(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    table = too_sure(400, 0)
    tables = table, tempered(table, 3.0).sample(frac=1.0, random_state=0)[:kept]
    if kept == 400:
        tables = table, tempered(table, 3.0)
    rows = compared(workspace, *(review_of(workspace, calibration=one) for one in tables))
    monkeypatch.setattr(set_summary, "MANY", 300)
    reviews = [review_of(workspace, calibration=one) for one in tables]
    monkeypatch.setattr(versions, "scored_measures", None)
    found = compared(workspace, *reviews)
    assert found.rows == rows.rows
    assert found.rows.paired == kept
    assert directions(found) == directions(rows)
    for one, other in zip(rows.estimates, found.estimates, strict=True):
        assert one.difference.value == pytest.approx(other.difference.value, abs=1e-4)
    for one, other in zip(rows.curves, found.curves, strict=True):
        assert np.array_equal(one.curves[0].count, other.curves[0].count)


def directions(found: ComparedReviews) -> dict[str, str]:
    return {one.label: one.direction for one in found.estimates}


def test_the_same_rows_scored_by_another_model_are_paired(workspace: Workspace) -> None:
    table = too_sure(400, 0)
    before, after = (review_of(workspace, calibration=one) for one in (table, tempered(table, 3.0)))
    found = compared(workspace, after, before)
    rows = found.rows
    assert (rows.by, rows.whole, rows.paired, rows.columns) == ("columns", True, 400, ("feature",))
    assert directions(found)["Log loss"] == "better"
    assert directions(found)["AUROC"] == "not told apart"
    assert "paired" in found.estimates[0].difference.interval
    assert [curve.curves[0].count.sum() for curve in found.curves] == [400, 400]
    back = compared(workspace, before, after)
    assert directions(back)["Log loss"] == "worse"


def test_classes_in_another_order_are_the_same_classes(workspace: Workspace) -> None:
    table = too_sure(300, 0)
    first, second = (review_of(workspace, calibration=table) for _ in range(2))
    roles = workspace.read(second).roles
    set_roles(workspace, second, replace(roles, outputs=roles.outputs[::-1]))
    score(workspace, second)
    assert workspace.read(first).classes == workspace.read(second).classes[::-1]
    found = compared(workspace, first, second)
    assert found.rows.whole
    assert set(directions(found).values()) == {"not told apart"}
    assert all(one.difference.value == 0.0 for one in found.estimates)


def test_rows_in_another_order_are_paired_by_their_content(workspace: Workspace) -> None:
    table = too_sure(300, 0)
    mixed = tempered(table, 3.0).sample(frac=0.8, random_state=0)
    before, after = (review_of(workspace, calibration=one) for one in (table, mixed))
    found = compared(workspace, after, before)
    rows = found.rows
    assert (rows.by, rows.whole, rows.before, rows.after) == ("some", False, 300, 240)
    assert rows.paired == rows.matched == rows.equal.rows == 240
    counts = {one.label: one.after.n for one in found.estimates}
    assert counts.pop("Confidence on errors") < 240
    assert set(counts.values()) == {240}
    again = review_of(workspace, calibration=tempered(table, 3.0).sample(frac=1, random_state=1))
    whole = compared(workspace, again, before)
    assert (whole.rows.paired, whole.rows.whole) == (300, False)
    in_order = review_of(workspace, calibration=tempered(table, 3.0))
    same = compared(workspace, in_order, before)
    losses = [
        next(one for one in each.estimates if one.label == "Log loss") for each in (whole, same)
    ]
    assert losses[0].difference.value == pytest.approx(losses[1].difference.value)
    assert losses[0].difference.low == pytest.approx(losses[1].difference.low)


def test_other_rows_are_not_paired(workspace: Workspace) -> None:
    before, after = (
        review_of(workspace, calibration=too_sure(200, 9), evaluation=table)
        for table in (too_sure(400, 0), tempered(too_sure(400, 1), 3.0))
    )
    found = compared(workspace, after, before)
    assert (found.rows.by, found.rows.paired, found.rows.equal.rows) == ("none", 0, 0)
    assert "Zou and Donner" in found.estimates[0].difference.interval
    assert directions(found)["Log loss"] == "better"


def test_a_few_common_rows_are_counted_and_not_paired(workspace: Workspace) -> None:
    first, second = too_sure(200, 0), too_sure(200, 1)
    mixed = pd.concat([first.iloc[:40], second], ignore_index=True)
    before, after = (review_of(workspace, calibration=one) for one in (first, mixed))
    rows = compared(workspace, after, before).rows
    assert (rows.by, rows.matched, rows.paired) == ("some", 40, 0)
    assert rows.equal.beyond_chance


def test_rows_with_other_weights_are_left_out(workspace: Workspace) -> None:
    table = too_sure(300, 0).assign(weight=1.0)
    other = table.assign(weight=np.where(np.arange(300) < 100, 2.0, 1.0))
    before, after = (review_of(workspace, calibration=one) for one in (table, other))
    for one in (before, after):
        roles = workspace.read(one).roles
        set_roles(workspace, one, replace(roles, weight="weight", features=("feature",)))
        score(workspace, one)
    rows = compared(workspace, after, before).rows
    assert (rows.matched, rows.weighted_alike, rows.paired) == (300, 200, 200)


def test_forecasts_of_the_same_rows_are_paired(workspace: Workspace) -> None:
    table = line(300, 0)
    better = table.assign(mean=table["true_mean"], std=30.0 * table["x"])
    before, after = (review_of(workspace, calibration=one) for one in (table, better))
    found = compared(workspace, after, before)
    assert found.rows.whole
    assert directions(found)["CRPS"] == "better"
    assert found.unpaired == ("RMSE", "MSE against the truth", "Quantile error", "Wasserstein")
    assert len(found.quantiles) == 2
    assert not found.curves


def test_forecasts_of_other_rows_are_not(workspace: Workspace) -> None:
    before, after = (review_of(workspace, calibration=line(200, seed)) for seed in (0, 1))
    found = compared(workspace, after, before)
    assert found.rows.paired == 0
    assert found.unpaired == ()
    assert "CRPS" in directions(found)


def test_another_task_is_refused_and_a_change_is_noticed(
    workspace: Workspace, tmp_path: Path
) -> None:
    table = too_sure(200, 0)
    first, second = (review_of(workspace, calibration=table) for _ in range(2))
    other = review_of(workspace, calibration=line(200, 0))
    with pytest.raises(InputError, match="other tasks or classes"):
        comparison_request(workspace, workspace.read(first), workspace.read(other))
    asked = comparison_request(workspace, workspace.read(first), workspace.read(second))
    roles = workspace.read(second).roles
    set_roles(workspace, second, replace(roles, features=()))
    with pytest.raises(InputError, match="changed since"):
        carry_out(**asked.kwargs, folder=str(tmp_path), progress=quiet)
