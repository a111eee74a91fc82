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
NAMES = (
    *("an estimate", "a diagram", "regions", "a chart", "a table"),
    *("a classifier", "a regressor"),
)


@pytest.fixture(scope="module")
def things():
    x, y = make_classification(2000, n_informative=5, random_state=0)
    frame = pd.DataFrame(x).rename(columns=lambda at: f"{HOSTILE}{at}")
    forest = RandomForestClassifier(20, random_state=0).fit(frame[:1000].to_numpy(), y[:1000])
    proba = forest.predict_proba(x[1000:])
    rows = ScoredSet(proba, y[1000:], (HOSTILE, "plain"), "digest", "evaluation")
    diagram = reliability(proba, y[1000:], kind="class")
    made = {
        "an estimate": calibration_error(proba, y[1000:]),
        "a diagram": diagram,
        "regions": find_regions(rows, frame[1000:], target=0),
        "a chart": reliability_chart(diagram, (HOSTILE, "plain")),
        "a table": table_from_frame(frame, name=HOSTILE),
        "a classifier": wrap_model(forest, classes=(HOSTILE, "plain"), feature_names=frame.columns),
        "a regressor": wrap_model(LinearRegression().fit(x, y)),
    }
    assert set(made) == set(NAMES)
    return made


class Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def handle_starttag(self, tag, attrs):
        self.seen.add((tag, *attrs))


@pytest.mark.parametrize("name", NAMES)
def test_few_lines_without_addresses_and_signs_that_a_terminal_obeys(things, name):
    shown = repr(things[name])
    assert 2 <= len(shown.splitlines()) <= 5
    assert len(shown) < 1000
    assert " at 0x" not in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_gets_a_table_without_foreign_elements(things, name):
    tags = Tags()
    tags.feed(things[name]._repr_html_())
    assert tags.seen == {("table",), ("tr",), ("th",), ("td",)}


def test_what_they_say(things):
    assert repr(things["a table"]).splitlines()[1] == "  Rows: 2,000"
    assert "2 classes: " in repr(things["a classifier"])
    assert repr(things["a regressor"]).splitlines() == [
        "Model: Linear regression",
        "  Outputs: 1 output: mean",
        "  Features: 20",
    ]
    assert repr(things["a diagram"]).splitlines()[1:] == [
        "  Diagram: class, 2 curves, 15 uniform bins",
        "  Rows: 1,000",
    ]
    assert np.isfinite(float(things["an estimate"]))
