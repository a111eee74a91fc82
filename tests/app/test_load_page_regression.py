"""The Load page with a regression: its samples, its columns, its task, and pages for another."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, settle, words
from streamlit.testing.v1 import AppTest
from texts.pages import said

from app.load.role_form import _family_name, role_table, roles_from_table
from app.shared import navigation, session
from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.review import ColumnInfo, Workspace, create_review, read_review, samples

SAMPLES = [sample.name for sample in samples() if sample.task == "regression"]
pytestmark = pytest.mark.usefixtures("work_here", "stay_on_load")


def upload(app: AppTest, which: str, name: str, frame: pd.DataFrame) -> AppTest:
    named = f"{which} {name}" if which in ("evaluation", "training") else name
    uploader = next(u for u in app.get("file_uploader") if u.key.startswith("files_"))
    uploader.upload(named, frame.to_csv(index=False).encode())
    return app.run()


def press(app: AppTest, label: str) -> AppTest:
    next(button for button in app.button if button.label == label).click()
    return app.run()


def predictions(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "mu": x, "sigma": 1.0, "y": x + rng.normal(size=n)})


def opened(app: AppTest):
    return read_review(Workspace(), app.session_state["review"])


@pytest.mark.parametrize("name", SAMPLES)
def test_a_regression_sample_opens_in_one_click(app, name, texts) -> None:
    app.button(key=f"open_{name}").click()
    healthy(app.run())
    texts(said(app))


def test_predictions_of_a_regression_are_enough(app, texts) -> None:
    upload(app, "calibration", "predictions.csv", predictions())
    healthy(settle(app))
    texts(said(app), "before scoring")
    press(app, "Score the rows")
    healthy(settle(app))
    texts(said(app), "scored")


def test_an_outcome_of_one_value_is_named_as_what_is_wrong(app) -> None:
    upload(app, "calibration", "predictions.csv", predictions().assign(y=5.0))
    healthy(settle(app))
    assert (
        "The target holds only the value '5', so no prediction can be judged by it (column 'y'). "
        "Use rows whose outcomes vary" in words(app)
    )
    assert "no column is known to hold" not in words(app)


def test_a_page_for_classes_says_so_and_links_to_what_suits(app, texts) -> None:
    upload(app, "calibration", "predictions.csv", predictions())
    settle(app)
    for page in ("reliability", "confidence_by_class", "out_of_distribution", "posterior_map"):
        healthy(app.switch_page(f"../pages/{page}.py").run())
        texts(app, page)
    press(app.switch_page("../pages/load.py").run(), "Score the rows")
    settle(app)
    for page in ("simulation_lab", "pit"):
        healthy(app.switch_page(f"../pages/{page}.py").run())
        assert "This page is for" not in words(app)


@pytest.mark.parametrize("task", ["regression", "classification", None])
def test_the_navigation_hides_what_does_not_suit(monkeypatch, task) -> None:
    made: dict[str, str] = {}
    monkeypatch.setattr(
        navigation.st, "Page", lambda path, *, visibility, **_: made.update({path: visibility})
    )
    monkeypatch.setattr(session, "open_task", lambda: task)
    assert next(iter(navigation.pages(task))) == "Review"
    for name, place in navigation.places().items():
        visible = task is None or task in place.tasks
        assert made[f"../pages/{name}.py"] == ("visible" if visible else "hidden")
    assert ("hidden" in made.values()) or task != "regression"


def test_the_task_can_be_changed_after_and_before_the_files(app) -> None:
    choice = app.segmented_control(key="task_of_new")
    choice.set_value("classification").run()
    upload(app, "calibration", "predictions.csv", predictions())
    healthy(settle(app))
    review = opened(app)
    assert (review.task, review.chosen_task) == ("classification", "classification")
    assert "choose Regression" in words(app)
    key = f"task_{review.id}_classification"
    app.segmented_control(key=key).set_value("regression").run()
    healthy(settle(app))
    assert opened(app).roles.parameters == (("mean", "mu"), ("std", "sigma"))
    assert app.segmented_control(key=f"task_{review.id}_regression").value == "regression"


def test_a_fault_of_the_table_is_reported_with_its_place(app, texts) -> None:
    upload(app, "calibration", "mine.csv", predictions().assign(sigma=-1.0))
    settle(app)
    press(app, "Score the rows")
    settle(app)
    texts(app.error[0].value.replace("\\", ""))
    assert "sigma" in app.error[0].value


def test_an_empty_review_is_of_no_task_yet(app) -> None:
    session_id = create_review(Workspace()).id
    app.query_params["review"] = session_id
    for page in ("pit", "reliability"):
        healthy(app.switch_page(f"../pages/{page}.py").run())
        assert "This page is for" not in words(app)
        assert "is not finished" in words(app)


COLUMNS = [ColumnInfo(name, "number", 0, 9, ("1", "2")) for name in ("y", "lo", "hi", "t")]


def test_the_table_of_columns_goes_there_and_back() -> None:
    roles = Roles(
        target="y",
        task="regression",
        family="quantiles",
        parameters=(("0.1", "lo"), ("0.9", "hi")),
        true_mean="t",
    )
    edited = role_table(COLUMNS, roles)
    assert roles_from_table(edited, "probability", roles, "quantiles") == roles
    edited.loc[edited["Column"] == "lo", "Parameter"] = ""
    with pytest.raises(InputError, match="has no parameter"):
        roles_from_table(edited, "probability", roles, "quantiles")


def test_families_are_named_with_what_they_take() -> None:
    assert _family_name("gamma") == "Gamma (mean, shape)"
    assert _family_name("quantiles") == "Quantiles"
