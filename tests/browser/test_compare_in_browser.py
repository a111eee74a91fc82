"""A comparison in a real browser: one click, and what matters changes what is shown at once."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from made_reviews import review_of, too_sure

from kdcal_core.review import Workspace

pytestmark = pytest.mark.browser


def test_one_click_compares_and_the_switch_acts_at_once(app, home: Path, tmp_path: Path) -> None:
    rows = {"calibration": too_sure(400, 0), "evaluation": too_sure(400, 1)}
    app.open(f"compare?review={review_of(Workspace(home), **rows)}")
    app.page.get_by_role("button", name="Compare", exact=True).click()
    panel = app.page.locator(".st-key-compare_dots_inside .js-plotly-plot")
    panel.wait_for(timeout=240_000)
    app.idle()
    app.wait_for_text(re.compile("better than the model as it is"))
    app.assert_healthy()
    assert app.faults_in_both() == {}
    app.assert_short("Every measure", "Paired differences", "Reliability diagrams")
    app.section("Every measure")

    app.page.get_by_text("Ranking", exact=True).first.click()
    app.page.locator(".st-key-compare_dots_ranking .js-plotly-plot").wait_for(timeout=30_000)
    app.idle()
    app.section("All numbers")
    with app.page.expect_download() as downloading:
        app.page.locator(".st-key-compare_table_csv button").click()
    path = tmp_path / "comparison.csv"
    downloading.value.save_as(path)
    table = pd.read_csv(path)
    assert {"log_loss", "auc", "fit_seconds"} <= set(table["measure"])
    assert table.groupby("measure")["name"].nunique().eq(table["name"].nunique()).all()
    app.assert_healthy()
