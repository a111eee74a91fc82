"""What follows the scoring: the overview, or first the question that the rows raise."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, settle
from streamlit.testing.v1 import AppTest

pytestmark = pytest.mark.usefixtures("work_here")
ANYWAY = "Open the overview anyway"


def loans(odd: bool, n: int = 400) -> bytes:
    """Predictions of a rare event; where it is odd, rarer than they say."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 3.0, n)
    y = (rng.random(n) < p) & (~np.full(n, odd) | (np.arange(n) % 8 == 0))
    frame = pd.DataFrame({"defaulted": y.astype(int), "p_default": p})
    return frame.to_csv(index=False).encode()


def press(at: AppTest, label: str) -> AppTest:
    next(one for one in at.button if one.label == label).click()
    return at.run()


def scored(at: AppTest, *, odd: bool) -> AppTest:
    next(one for one in at.get("file_uploader") if one.key.startswith("files_")).upload(
        "loans.csv", loans(odd)
    )
    settle(at.run())
    return healthy(settle(press(at, "Score the rows")))


def title(at: AppTest) -> str:
    return at.title[0].value


def labels(at: AppTest) -> list[str]:
    return [one.label for one in at.button]


def test_rows_without_a_doubt_open_the_overview(app: AppTest) -> None:
    assert title(scored(app, odd=False)) == "Overview"


def test_rows_that_contradict_the_roles_stay_until_the_question_is_answered(app: AppTest) -> None:
    at = scored(app, odd=True)
    assert title(at) == "Load"
    assert len(at.warning) == 1
    assert ANYWAY in labels(at)
    assert title(healthy(press(at, "The roles are right"))) == "Overview"


def test_the_overview_opens_without_an_answer_where_one_asks_for_it(app: AppTest) -> None:
    at = press(scored(app, odd=True), ANYWAY)
    assert title(healthy(at)) == "Overview"
    assert len(at.warning) == 1  # the doubt stays above the page
    at = healthy(at.switch_page("../pages/load.py").run())
    assert title(at) == "Load"
    assert ANYWAY not in labels(at)
