"""A recalibration in a real browser: one click, and a box dragged over missed outcomes."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

pytestmark = pytest.mark.browser

PANELS = ".st-key-recalibration_map .js-plotly-plot .nsewdrag"


@pytest.fixture
def scheme() -> str:
    return "light"


def test_one_click_recalibrates_and_a_box_chooses_rows(app, tmp_path: Path) -> None:
    app.open()
    app.page.locator(".st-key-open_heteroscedastic button").click()
    app.wait_for_text("What these rows are fit for", 120)
    app.visit("Recalibration")
    start = app.page.get_by_role("button", name="Recalibrate", exact=True)
    panel = app.page.locator(PANELS).first
    start.or_(panel).first.wait_for(timeout=60_000)
    if start.count():
        start.click()
    panel.wait_for(timeout=180_000)
    app.idle()
    app.wait_for_text(re.compile("Local recalibration( where needed)? lowers CRPS from"))
    app.wait_for_text("Rows spread evenly over what was predicted")
    app.assert_healthy()

    panel.scroll_into_view_if_needed()
    area = panel.bounding_box()
    x, y = area["x"] + 0.5 * area["width"], area["y"] + 0.02 * area["height"]
    app.page.mouse.move(x, y)
    app.page.mouse.down()
    app.page.mouse.move(x + 0.3 * area["width"], y + 0.5 * area["height"], steps=5)
    app.page.mouse.move(x + 0.49 * area["width"], y + 0.9 * area["height"], steps=5)
    app.page.mouse.up()
    app.wait_for_text(re.compile(r"^[\d,]+ rows lie in the box on the map"))
    app.idle()
    chosen = app.page.get_by_role("button", name=re.compile(r"Intervals of these rows as CSV"))
    with app.page.expect_download() as downloading:
        chosen.click()
    path = tmp_path / "rows.csv"
    downloading.value.save_as(path)
    table = pd.read_csv(path)
    assert 100 < len(table) < 10_000
    assert table["row"].is_monotonic_increasing
    low, high = (
        table.filter(regex=f"^(local|where_needed)_{end}_95%").iloc[:, 0] for end in ("low", "high")
    )
    assert (low < high).all()
    assert (table["outcome"] > 0).mean() > 0.9  # the right half of the map holds large outcomes
    app.assert_healthy()
