"""A recalibration in a real browser: one click, and a box dragged over missed outcomes."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from made_reviews import line, review_of

from kdcal_core.review import Workspace

pytestmark = pytest.mark.browser

PANELS = ".st-key-recalibration_map .js-plotly-plot .nsewdrag"


def test_one_click_recalibrates_and_a_box_chooses_rows(app, home: Path, tmp_path: Path) -> None:
    review = review_of(Workspace(home), calibration=line(1000, 0), evaluation=line(1000, 1))
    app.open(f"recalibration?review={review}")
    app.page.get_by_role("button", name="Recalibrate", exact=True).click()
    panel = app.page.locator(PANELS).first
    panel.wait_for(timeout=180_000)
    app.idle()
    app.wait_for_text(re.compile("Local recalibration( where needed)? lowers CRPS from"))
    app.assert_short(
        "Along a column", "Two rows", "PIT and quantiles", "Every measure", "Intervals"
    )
    app.wait_for_text("Rows spread evenly over what was predicted")
    app.assert_healthy()
    assert app.faults_in_both() == {}

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
    assert 50 < len(table) < 1000
    assert table["row"].is_monotonic_increasing
    low, high = (
        table.filter(regex=f"^(local|where_needed)_{end}_95%").iloc[:, 0] for end in ("low", "high")
    )
    assert (low < high).all()
    assert (table["outcome"] > 0).mean() > 0.9  # the right half of the map holds large outcomes
    app.page.set_viewport_size({"width": 390, "height": 844})
    app.idle()
    for section in ("Every measure", "Along a column"):
        app.section(section)
        app.until(lambda: app.covered() == [])  # nor are the titles of the maps cut
    app.assert_healthy()
