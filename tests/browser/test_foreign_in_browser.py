"""Out of distribution in a real browser: from a sample to one's own foreign rows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import open_sample

pytestmark = pytest.mark.browser

CHART = ".js-plotly-plot .main-svg"
SLIDER = ".st-key-foreign_alpha input[type=range]"


def test_a_sample_is_fitted_asked_and_compared_with_own_rows(
    app, home: Path, tmp_path: Path
) -> None:
    open_sample(app, home, "xor_network", "out_of_distribution")
    fit = app.page.get_by_role("button", name="Fit the kernel density version")
    fit.or_(app.page.locator(CHART).first).first.wait_for(timeout=60_000)
    if fit.count():  # another test may have fitted the same sample in this home
        fit.click()
    app.page.locator(CHART).first.wait_for(timeout=120_000)
    app.idle()
    assert app.page.locator(".js-plotly-plot").count() == 2
    app.wait_for_text("the kernel density version falls to")
    app.assert_healthy()
    app.turn("dark")  # for what follows: charts, own rows and a reload
    assert app.page.locator(".js-plotly-plot").count() == 2
    assert app.faults() == []
    app.assert_healthy()
    app.section("Rows of the fit")
    app.page.locator(CHART).nth(2).wait_for(timeout=60_000)

    unknown = app.page.locator('[data-testid="stMetric"]').last
    before = unknown.inner_text()
    app.page.locator(SLIDER).press("End")
    app.until(lambda: unknown.inner_text() != before)
    app.idle()
    assert app.page.get_by_role("button", name="Stop").count() == 0  # nothing was fitted again
    app.assert_healthy()

    table = tmp_path / "far & <b>away.csv"
    table.write_text("x1,x2\n" + "".join(f"{5 + i},{-i}\n" for i in range(20)))
    app.page.get_by_role("button", name="Your own rows").click()
    app.page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(table)
    app.wait_for_text(re.compile("20 of 20 rows count as unknown"), 120)
    app.idle()
    app.assert_healthy()

    app.page.reload()
    app.page.locator(CHART).first.wait_for(timeout=60_000)
    app.idle()
    app.page.get_by_role("button", name="Your own rows").click()
    app.wait_for_text("20 rows")
    app.assert_healthy()
    assert app.faults() == []
