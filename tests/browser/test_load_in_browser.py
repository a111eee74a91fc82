"""The first page in a real browser: the list of reviews, the places of files, the tour."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from made_reviews import review_of, too_sure

from app.shared import tour
from app.shared.navigation import places
from kdcal_core.review import Workspace, rename_review
from kdcal_core.review.samples import samples_root

pytestmark = pytest.mark.browser

UPLOADER = '[class*="st-key-files_file"] [data-testid="stFileUploader"] input[type=file]'


def test_a_review_is_renamed_duplicated_and_deleted_by_keyboard_and_click(app, home: Path) -> None:
    workspace = Workspace(home)
    review_id = review_of(workspace, calibration=too_sure(200, 0))
    rename_review(workspace, review_id, "To be <b>renamed</b>")
    app.open()
    app.page.get_by_role("link", name="on this machine").click()
    row = app.page.get_by_role("button", name="To be <b>renamed</b>", exact=True)
    row.wait_for()
    change = app.page.get_by_role("button", name=re.compile("^Change "))
    dialog = app.page.locator('[data-testid="stPopoverBody"]')

    change.first.press("Enter")  # the newest review is the first
    title = dialog.get_by_label("Title")
    app.until(lambda: title.input_value() == "To be <b>renamed</b>")
    title.fill("March audit")
    dialog.get_by_role("button", name="Rename").press("Enter")
    app.page.get_by_role("button", name="March audit", exact=True).wait_for()
    row.wait_for(state="detached")

    if not dialog.count():
        change.first.click()
    dialog.get_by_role("button", name="Duplicate").click()
    copy = app.page.get_by_role("button", name="March audit (copy)", exact=True)
    copy.wait_for()
    app.idle()
    app.page.keyboard.press("Escape")
    dialog.wait_for(state="detached")

    change.first.click()
    app.until(lambda: title.input_value() == "March audit (copy)")
    delete = dialog.get_by_role("button", name="Delete", exact=True)
    assert delete.is_disabled()
    dialog.get_by_text("Delete it with all its files").click()
    app.until(delete.is_enabled)
    delete.click()
    copy.wait_for(state="detached")
    app.idle()
    app.page.keyboard.press("Escape")
    kept = app.page.get_by_role("button", name="March audit", exact=True)
    kept.press("Enter")
    app.wait_for_text("What these rows are fit for")
    app.assert_healthy()
    assert workspace.read(review_id).title == "March audit"


def place(app, name: str):
    """The choice of what a file is."""
    return app.page.get_by_role("combobox", name=f"What {name} is")


def shown_place(app, name: str) -> str:
    """Nothing while a run draws the choice anew, and the one before is still there."""
    shown = place(app, name).evaluate_all("found => found.map(one => one.value)")
    return str(shown[0]) if len(shown) == 1 else ""


def give(app, name: str, to: str) -> None:
    """Give a file another place; a run that draws the page anew closes the list."""
    option = app.page.get_by_role("option", name=to)

    def opened() -> bool:
        if not option.count():
            place(app, name).press("ArrowDown")
        return bool(option.count())

    app.idle()
    app.until(opened)
    option.click()


def signed(model: Path, folder: Path) -> list[Path]:
    """A model with its maker's signature and public key."""
    signing = pytest.importorskip("model_signing.signing", reason="pip install 'kdcal[signatures]'")
    key = ec.generate_private_key(ec.SECP256R1())
    private, public, signature = (folder / name for name in ("maker.key", "maker.pub", "model.sig"))
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    signing.Config().use_elliptic_key_signer(private_key=private).sign(model, signature)
    return [model, signature, public]


def test_files_find_their_places_and_one_is_given_another(app, tmp_path: Path) -> None:
    folder = samples_root() / "breast_cancer"
    frame = pd.read_parquet(folder / "calibration.parquet")
    half = np.arange(len(frame)) % 2 == 0
    tables = {
        "march.csv": frame[half],
        "april.csv": frame[~half],
        "may.csv": frame[half].sample(50, random_state=0),
        "elsewhere.csv": frame.drop(columns="diagnosis").mul(3.0),
    }
    for name, table in tables.items():
        table.to_csv(tmp_path / name, index=False)
    app.open()
    files = [*signed(folder / "model.skops", tmp_path), *(tmp_path / name for name in tables)]
    app.page.set_input_files(UPLOADER, [str(path) for path in files])
    app.wait_for_text("elsewhere.csv was taken for foreign rows")
    app.idle()
    app.wait_for_text("OpenSSF model signature, verified with the public key")
    wanted = ["Calibration set", "Evaluation set", "Training set", "Foreign rows"]
    app.until(lambda: [shown_place(app, name) for name in tables] == wanted)

    give(app, "may.csv", "Foreign rows")
    app.until(lambda: shown_place(app, "may.csv") == "Foreign rows")
    give(app, "april.csv", "Calibration set")  # the two sets change places
    app.until(lambda: shown_place(app, "march.csv") == "Evaluation set")
    app.until(lambda: shown_place(app, "april.csv") == "Calibration set")
    give(app, "may.csv", "Take it out")
    place(app, "may.csv").wait_for(state="detached")
    app.idle()
    app.page.get_by_role("button", name="Score the rows").click()
    app.wait_for_overview()
    app.assert_healthy()


def begin_tour(app) -> None:
    app.open()
    app.page.get_by_role("button", name="Take a tour of four steps").click()
    app.wait_for_overview()
    app.wait_for_text("Tour, step 1 of 4.")


def test_the_tour_leads_over_four_pages_and_ends(app) -> None:
    begin_tour(app)
    for step, page in enumerate(tour.STEPS, start=1):
        app.page.locator("h1").get_by_text(places()[page].title, exact=True).wait_for()
        app.wait_for_text(f"Tour, step {step} of 4.")
        app.idle(120)
        app.assert_healthy()
        last = step == len(tour.STEPS)
        app.page.get_by_role("button", name="End the tour" if last else "Next step").click()
    app.page.get_by_text("Tour, step").wait_for(state="detached")
    app.idle(120)
    app.visit("Overview")
    assert app.page.get_by_text("Tour, step").count() == 0
    app.assert_healthy()


def test_the_tour_can_be_skipped_at_once(app) -> None:
    begin_tour(app)
    app.page.get_by_role("button", name="Skip the tour").click()
    app.page.get_by_text("Tour, step").wait_for(state="detached")
    app.idle(120)
    app.visit("Reliability")
    assert app.page.get_by_text("Tour, step").count() == 0
    app.assert_healthy()
