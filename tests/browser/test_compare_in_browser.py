"""A comparison in a real browser: one click, and what matters changes what is shown at once."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.browser


@pytest.fixture
def scheme() -> str:
    return "light"


def test_one_click_compares_and_the_switch_acts_at_once(app, tmp_path: Path) -> None:
    app.open()
    app.page.locator(".st-key-open_digits_predictions button").click()
    app.wait_for_text("What these rows are fit for", 120)
    app.visit("Compare")
    start = app.page.get_by_role("button", name="Compare", exact=True)
    panel = app.page.locator(".st-key-compare_dots_inside .js-plotly-plot")
    start.or_(panel).first.wait_for(timeout=60_000)
    if start.count():
        start.click()
    panel.wait_for(timeout=240_000)
    app.idle()
    app.wait_for_text(re.compile("better than the model as it is"))
    app.assert_healthy()

    app.page.get_by_text("Ranking", exact=True).first.click()
    app.page.locator(".st-key-compare_dots_ranking .js-plotly-plot").wait_for(timeout=30_000)
    app.idle()
    with app.page.expect_download() as downloading:
        app.page.locator(".st-key-compare_table_csv button").click()
    path = tmp_path / "comparison.csv"
    downloading.value.save_as(path)
    table = pd.read_csv(path)
    assert {"log_loss", "auc", "fit_seconds"} <= set(table["measure"])
    assert table.groupby("measure")["name"].nunique().eq(table["name"].nunique()).all()
    app.assert_healthy()
