"""What only a real browser shows: clicks, uploads, reloads, and that nothing leaves the machine."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import SCREEN
from made_reviews import review_of, too_sure

from kdcal_core.review import Workspace, samples
from kdcal_core.review.samples import samples_root

pytestmark = pytest.mark.browser

PAGES = ["Reliability", "Confidence by class", "Load"]


UPLOADER = '[data-testid="stFileUploader"] input[type=file]'


def _upload(app, *paths):
    """Give files to the uploader, once no job keeps it disabled, as a person would have to.

    Each reading begins with an uploader of a new name: until it is there, a further file would be
    given to the one that is about to go.
    """
    app.idle()
    app.page.wait_for_selector(f"{_uploader(app)}:enabled", state="attached", timeout=60_000)
    before = _uploader(app)
    app.page.set_input_files(before, [str(path) for path in paths])
    app.page.wait_for_selector(before, state="detached", timeout=60_000)
    app.idle()


def _uploader(app):
    """The uploader of all files, by the name that it has now."""
    place = app.page.locator('[class*="st-key-files_file"]').first
    (name,) = (one for one in place.get_attribute("class").split() if "files_file" in one)
    return f".{name} {UPLOADER}"


def _predictions(path, n=400):
    rng = np.random.default_rng(3)
    p = rng.random(n).round(6)
    y = np.where(rng.random(n) < p, "sick", "well")
    pd.DataFrame({"proba_sick": p, "proba_well": 1 - p, "diagnosis": y}).to_csv(path, index=False)


def test_a_sample_opens_in_one_click_and_survives_pages_themes_and_a_reload(app):
    app.open()
    app.page.locator(".st-key-open_digits button").focus()
    app.page.keyboard.press("Enter")
    app.wait_for_overview()
    app.idle()
    # the button is gone, and the keyboard goes on from the page that it opened
    app.until(lambda: app.page.evaluate("document.activeElement.textContent") == "Overview")
    app.assert_healthy()
    for title in PAGES:
        app.visit(title)
        app.wait_for_text("Handwritten digits")
        if title != "Load":
            app.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
        for _ in app.both_schemes():
            app.assert_healthy()
    assert app.scheme == "dark"  # as the reader's next visit finds it
    address = app.page.url
    assert "review=" in address
    app.page.reload()
    app.idle()
    app.wait_for_text("What these rows are fit for")
    app.assert_healthy()
    elsewhere = app.context.new_page()
    # by the name of the first page too, whose address is the app's
    elsewhere.goto(address.replace("?review=", "load?review="))
    elsewhere.get_by_text("What these rows are fit for").wait_for(timeout=60_000)
    assert elsewhere.get_by_text("Page not found").count() == 0
    assert elsewhere.url == address


def test_own_model_and_table_are_scored_and_diagnosed(app):
    folder = samples_root() / "breast_cancer"
    app.open()
    _upload(app, folder / "calibration.parquet", folder / "model.skops")
    app.wait_for_text("30 inputs")  # a sample's card speaks of a random forest too
    app.idle()
    app.page.get_by_role("button", name="Score the rows").click()
    app.wait_for_overview()
    app.assert_healthy()
    app.visit("Reliability")
    app.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
    app.assert_healthy()


def test_predictions_as_csv_and_a_refused_pickle(app, tmp_path):
    table, refused = tmp_path / "predictions.csv", tmp_path / "model.skops"
    _predictions(table)
    refused.write_bytes(pickle.dumps({"a": 1}))
    app.open()
    _upload(app, refused)
    app.page.get_by_role("alert").get_by_text("pickle").first.wait_for(timeout=60_000)
    app.assert_healthy()
    _upload(app, table)
    app.page.get_by_role("button", name="Score the rows").wait_for(timeout=60_000)
    app.idle()
    app.page.get_by_role("button", name="Score the rows").click()
    app.wait_for_overview()
    app.visit("Confidence by class")
    app.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
    app.assert_healthy()


@pytest.mark.parametrize("path", ["reliability", "confidence_by_class"])
def test_an_empty_page_offers_a_sample(app, path):
    app.open(path)
    app.page.get_by_role("button", name="Open a sample").click()
    app.page.locator(".js-plotly-plot .main-svg").first.wait_for(timeout=60_000)
    app.idle()
    app.assert_healthy()


def test_uploads_and_every_sample_are_in_the_first_screen(app):
    app.page.set_viewport_size({"width": 1366, "height": 768})
    app.open()
    app.wait_for_text("Or start with a sample")
    places = app.page.locator('[class*="st-key-open_"] button')
    app.until(lambda: places.count() == len(samples()))
    bottoms = [places.nth(at).bounding_box() for at in range(places.count())]
    assert max(box["y"] + box["height"] for box in bottoms) < 768


def test_a_target_in_doubt_is_chosen_by_one_click(app, tmp_path):
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 3.0, 400)
    loans = pd.DataFrame({"default": rng.integers(0, 2, 400), "p_default": p})
    table = tmp_path / "loans.csv"
    loans.assign(defaulted=(rng.random(400) < p).astype(int)).to_csv(table, index=False)
    app.open()
    _upload(app, table)
    app.wait_for_text("could be it too")
    app.page.get_by_role("button", name="defaulted is the true class").click()
    app.page.get_by_role("button", name="Score the rows").click()
    app.wait_for_overview()
    app.assert_healthy()
    assert app.page.get_by_text("could be it too").count() == 0
    # the list of reviews is there for whoever is at this machine
    app.visit("Load")
    app.page.get_by_role("button", name="Start another review").click()
    app.page.get_by_role("heading", name="Reviews on this machine").wait_for()
    app.page.get_by_role("button", name="loans.csv", exact=True).click()
    app.wait_for_text("What these rows are fit for")
    app.assert_healthy()


def test_an_open_doubt_opens_beside_what_is_reviewed_and_moves_no_picture(app, home: Path) -> None:
    app.page.set_viewport_size(SCREEN)
    frame = too_sure(2000, 53)
    answers = [name for name in frame.columns if name not in ("feature", "target")]
    swapped = frame.rename(columns=dict(zip(answers, reversed(answers), strict=True)))
    app.open(f"overview?review={review_of(Workspace(home), calibration=swapped)}")
    app.page.locator("[data-testid='stSidebar']").get_by_text("everything: done").wait_for()
    app.idle()
    app.page.locator(".js-plotly-plot .main-svg").first.wait_for()
    assert app.end_of_picture() <= SCREEN["height"]
    app.page.get_by_role("button", name="Open doubt").click()
    app.page.get_by_text("Most likely the classes are swapped").wait_for()
    app.assert_healthy()
    app.page.get_by_role("link", name="Settle it on the Load page").click()
    app.page.get_by_role("button", name="Swap the classes").wait_for()
    app.assert_healthy()


def test_a_window_outlives_a_run_and_stands_whole_in_the_screen(app, home: Path) -> None:
    app.page.set_viewport_size(SCREEN)
    rows = {"calibration": too_sure(400, 51), "evaluation": too_sure(400, 52)}
    app.open(f"overview?review={review_of(Workspace(home), **rows)}")
    app.page.locator("[data-testid='stSidebar']").get_by_text("everything: done").wait_for()
    app.idle()
    window = app.page.get_by_role("dialog")
    titles = app.page.locator("[class*='st-key-check_KC'] button:visible")
    limits = app.page.get_by_role("button", name="Limits:")
    for opens in (titles.first, titles.last, limits):
        opens.click()
        window.locator("canvas").first.wait_for()
        app.idle()
        place = window.bounding_box()
        assert place["y"] >= 0
        assert opens is limits or place["y"] + place["height"] <= SCREEN["height"]
        app.turn("dark")  # the page runs again, as it does when a job ends
        assert window.is_visible()
        assert app.faults() == []
        app.turn("light")
        window.get_by_role("button", name="Close").click()
        window.wait_for(state="detached")
        app.idle()
    app.assert_healthy()
