"""Results, charts, tables and models show themselves in a few lines, names made harmless."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression

from kdcal_core import calibration_error, find_regions, reliability, wrap_model
from kdcal_core.charts import reliability_chart
from kdcal_core.data import ScoredSet, table_from_frame

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"
X, Y = make_classification(2000, n_informative=5, random_state=0)
FRAME = pd.DataFrame(X).rename(columns=lambda at: f"{HOSTILE}{at}")
FOREST = RandomForestClassifier(20, random_state=0).fit(FRAME[:1000].to_numpy(), Y[:1000])
PROBA = FOREST.predict_proba(X[1000:])
SET = ScoredSet(PROBA, Y[1000:], (HOSTILE, "plain"), "digest", "evaluation")
DIAGRAM = reliability(PROBA, Y[1000:], kind="class")
THINGS = {
    "an estimate": calibration_error(PROBA, Y[1000:]),
    "a diagram": DIAGRAM,
    "regions": find_regions(SET, FRAME[1000:], target=0),
    "a chart": reliability_chart(DIAGRAM, (HOSTILE, "plain")),
    "a table": table_from_frame(FRAME, name=HOSTILE),
    "a classifier": wrap_model(FOREST, classes=(HOSTILE, "plain"), feature_names=FRAME.columns),
    "a regressor": wrap_model(LinearRegression().fit(X, Y)),
}


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add((tag, *attrs))


@pytest.mark.parametrize("thing", THINGS.values(), ids=THINGS)
def test_few_lines_without_addresses_and_signs_that_a_terminal_obeys(thing):
    shown = repr(thing)
    assert 2 <= len(shown.splitlines()) <= 5
    assert len(shown) < 1000
    assert " at 0x" not in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("thing", THINGS.values(), ids=THINGS)
def test_a_notebook_gets_a_table_without_foreign_elements(thing):
    tags = Tags()
    tags.feed(thing._repr_html_())
    assert tags.seen == {("table",), ("tr",), ("th",), ("td",)}


def test_what_they_say():
    assert repr(THINGS["a table"]).splitlines()[1] == "  Rows: 2,000"
    assert "2 classes: " in repr(THINGS["a classifier"])
    assert repr(THINGS["a regressor"]).splitlines() == [
        "Model: Linear regression",
        "  Outputs: 1 output: mean",
        "  Features: 20",
    ]
    assert repr(DIAGRAM).splitlines()[1:] == [
        "  Diagram: class, 2 curves, 15 uniform bins",
        "  Rows: 1,000",
    ]
    assert np.isfinite(float(THINGS["an estimate"]))
