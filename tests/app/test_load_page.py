"""The Load page: every sample in one click, files of one's own, and bad files reported clearly."""

from __future__ import annotations

import io
import json
import pickle
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xgboost
from app_pages import settle
from made_reviews import review_of

from kdcal_core.data import guess_roles
from kdcal_core.errors import InputError
from kdcal_core.review import (
    Limit,
    Question,
    Workspace,
    note_verdict,
    samples,
    set_question,
    set_roles,
    start_sample,
)
from kdcal_core.review.samples import samples_root
from kdcal_core.tasks import verdict_edition
from kdcal_core.text import escape_markdown

SAMPLES = [sample.name for sample in samples() if sample.task == "classification"]
pytestmark = pytest.mark.usefixtures("work_here", "stay_on_load")


def _assert_healthy(app):
    assert not app.exception, app.exception[0].message


def _upload(app, which, name, content):
    """Drop a file; a model is known by its suffix, and the first table is the calibration set."""
    named = f"{which} {name}" if which in ("evaluation", "training") else name
    next(u for u in app.get("file_uploader") if u.key.startswith("files_")).upload(named, content)
    return app.run()


def _place(app, place, to):
    """Change what a table was taken for."""
    box = next(box for box in app.selectbox if f"_{place}_" in box.key)
    box.select(to)
    app.run()
    return settle(app)


def _csv(frame):
    return frame.to_csv(index=False).encode()


def _predictions(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(6)
    y = np.where(rng.random(n) < p, "sick", "well")
    return pd.DataFrame({"proba_sick": p, "proba_well": 1 - p, "diagnosis": y})


def _press(app, label):
    next(button for button in app.button if button.label == label).click()
    return app.run()


def test_it_opens_with_what_it_is_for_and_every_sample(app):
    _assert_healthy(app)
    assert app.markdown[0].value
    assert sum(button.key.startswith("open_") for button in app.button if button.key) == len(
        samples()
    )
    assert len({button.label for button in app.button}) == len(app.button)  # told apart by name


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_opens_in_one_click(app, name):
    app.button(key=f"open_{name}").click()
    app.run()
    _assert_healthy(app)
    assert any("fit for" in title.value for title in app.header)


# what the pages make of every sample is tried in test_pages_analysis.py
def test_the_sample_that_was_opened_is_on_the_pages(app):
    app.button(key="open_breast_cancer").click()
    app.run()
    for page in ("reliability", "confidence_by_class"):
        app.switch_page(f"../pages/{page}.py").run()
        _assert_healthy(app)
        assert len(app.get("plotly_chart")) >= 3


@pytest.mark.parametrize(
    ("classes", "reason"),
    [
        (lambda frame: "sick", "holds only the class 'sick'"),
        (lambda frame: frame["result"].where(frame.index % 9 > 0, "dead"), "Label 'dead' is unk"),
    ],
    ids=["one class", "a class the model does not know"],
)
@pytest.mark.usefixtures("real_workers")
def test_a_target_that_cannot_be_used_is_refused_with_its_reason(app, classes, reason):
    frame = _predictions().rename(columns={"diagnosis": "result"})
    frame["result"] = classes(frame)
    _upload(app, "calibration", "predictions.csv", _csv(frame))
    settle(app)
    _assert_healthy(app)
    _press(app, "Score the rows")
    settle(app)
    assert any(reason in unescape(error.value).replace("\\", "") for error in app.error)


@pytest.mark.usefixtures("real_workers")
def test_a_column_of_one_value_is_named_where_no_target_is_known(app, texts):
    frame = pd.DataFrame({"x": np.random.default_rng(0).normal(size=50), "outcome_1": 1})
    _upload(app, "calibration", "rows.csv", _csv(frame))
    settle(app)
    shown = [unescape(info.value).replace("\\", "") for info in app.info]
    texts(shown)
    assert any("'outcome_1'" in one for one in shown)


@pytest.mark.usefixtures("real_workers")
def test_predictions_alone_are_enough(app):
    _upload(app, "calibration", "predictions.csv", _csv(_predictions()))
    settle(app)
    _assert_healthy(app)
    _press(app, "Score the rows")
    settle(app)
    _assert_healthy(app)
    assert any("fit for" in title.value for title in app.header)


def _with(column, row, value):
    """The good table with one bad cell."""
    frame = _predictions().astype({column: object})
    frame.loc[row, column] = value
    return _csv(frame)


def _logits():
    return _csv(_predictions().assign(proba_sick=lambda f: 8 * f.proba_sick - 4, proba_well=0.5))


BAD_TABLES = {
    "empty file": b"",
    "not a table": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20,
    "one class only": _csv(_predictions().assign(diagnosis="sick")),
    "probabilities off one": _with("proba_well", 4, 3.5),
    "negative probability": _with("proba_sick", 4, -0.25),
    "logits by mistake": _logits(),
    "text in a number": _with("proba_sick", 5, "often"),
    "infinity": _with("proba_sick", 6, float("inf")),
    "missing probability": _with("proba_sick", 7, None),
    "missing label": _with("diagnosis", 8, None),
    "unknown class": _with("diagnosis", 3, "puzzled"),
    "duplicated column": b"a,a,y\n1,2,x\n3,4,z\n",
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_bad_table_is_refused_in_one_box_and_the_app_stays_up(app, kind, texts):
    _upload(app, "calibration", "bad <b>table</b>.csv", BAD_TABLES[kind])
    settle(app)
    _assert_healthy(app)
    if not app.error:
        _press(app, "Score the rows")
        settle(app)
        _assert_healthy(app)
    assert len(app.error) == 1
    assert "<b>" not in app.error[0].value
    texts([unescape(app.error[0].value).replace("\\", "")])
    # and the same session goes on
    _upload(app, "calibration", "good.csv", _csv(_predictions()))
    settle(app)
    _assert_healthy(app)
    assert not app.error


@pytest.mark.parametrize("name", ["model.pkl", "model.skops", "model.onnx", "model.joblib"])
def test_a_pickle_is_refused_whatever_it_is_called(app, name):
    _upload(app, "model", name, pickle.dumps({"a": np.arange(10)}))
    settle(app)
    _assert_healthy(app)
    assert len(app.error) == 1
    assert "kdcal convert" in app.error[0].value.replace("\\", "")


@pytest.mark.usefixtures("real_workers")
def test_a_truncated_model_is_refused(app):
    sample = next(sample for sample in samples() if sample.model)
    whole = (samples_root() / sample.name / sample.model).read_bytes()
    _upload(app, "model", sample.model, whole[: len(whole) // 2])
    settle(app)
    _assert_healthy(app)
    assert len(app.error) == 1


def test_an_unknown_review_in_the_address_is_no_accident(app):
    app.query_params["review"] = "../../etc/passwd"
    app.run()
    _assert_healthy(app)
    assert app.warning


def test_rows_deleted_behind_the_app_are_missed_on_every_page(app, tmp_path):
    app.button(key="open_digits_predictions").click()
    app.run()
    for path in (tmp_path / "workspace").rglob("proba.npy"):
        path.unlink()
    for page in ("reliability", "confidence_by_class"):
        app.switch_page(f"../pages/{page}.py").run()
        _assert_healthy(app)
        assert "no longer kept" in app.error[0].value


@pytest.mark.parametrize("by", ["a click", "their names"])
def test_a_model_that_only_counts_its_classes_can_be_given_their_names(app, tmp_path, by, texts):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    data = xgboost.DMatrix(x, x[:, 0] > 0, feature_names=["a", "b"])
    xgboost.train({"objective": "binary:logistic"}, data, 3).save_model(tmp_path / "m.json")
    table = pd.DataFrame(x, columns=["a", "b"]).assign(y=np.where(x[:, 0] > 0, "sick", "well"))
    _upload(app, "model", "m.json", (tmp_path / "m.json").read_bytes())
    settle(app)
    _upload(app, "calibration", "t.csv", _csv(table))
    settle(app)
    texts([unescape(one.value) for one in app.warning])
    if by == "a click":
        _press(app, "well then sick")
        settle(app)
    else:
        app.text_input[0].set_value("well, sick")
        _press(app, "Apply roles")
    assert not app.warning
    _press(app, "Score the rows")
    settle(app)
    _assert_healthy(app)
    assert not app.warning  # sick and well are not swapped
    assert any("fit for" in title.value for title in app.header)


def test_hostile_column_names_are_shown_as_text(app):
    frame = _predictions().rename(columns={"diagnosis": "y"})
    frame["![x](http://evil.example/x.png)<script>alert(1)</script>"] = 1.0
    _upload(app, "calibration", "![a](http://evil.example).csv", _csv(frame))
    settle(app)
    _assert_healthy(app)
    for block in (*app.markdown, *app.caption):
        assert "<script>" not in block.value
        assert "](http://evil" not in block.value


def test_parquet_is_read_as_csv_is(app):
    buffer = io.BytesIO()
    _predictions().to_parquet(buffer)
    _upload(app, "calibration", "predictions.parquet", buffer.getvalue())
    settle(app)
    _assert_healthy(app)
    assert not app.error


def test_the_page_says_what_is_still_missing(app, texts):
    _upload(app, "calibration", "only.csv", _csv(_predictions()))
    settle(app)
    _place(app, "calibration", "evaluation")
    _assert_healthy(app)
    texts([box.value for box in app.info], "the calibration set")
    _upload(app, "calibration", "features.csv", _csv(_predictions()[["diagnosis"]].assign(a=1.5)))
    settle(app)
    _assert_healthy(app)
    texts([box.value for box in app.info], "the model")
    assert not any(button.label == "Score the rows" for button in app.button)


def test_the_roles_that_matter_stand_beside_the_button(app):
    _upload(app, "calibration", "predictions.csv", _csv(_predictions()))
    settle(app)
    words = next(text.value for text in app.markdown if text.value.startswith("True class"))
    assert "**diagnosis**" in words
    assert "probabilities: 2 columns" in words


def test_a_sample_says_where_it_comes_from(app):
    app.button(key="open_adult").click()
    app.run()
    _assert_healthy(app)
    words = " ".join(text.value for text in app.markdown)
    assert "CC BY 4" in words
    assert "XGBoost" in words


def test_training_rows_come_and_go_beside_the_scores(app):
    app.button(key="open_breast_cancer").click()
    app.run()
    rows = (samples_root() / "breast_cancer" / "calibration.parquet").read_bytes()
    _upload(app, "training", "mine <b>.parquet", rows)
    settle(app)
    _assert_healthy(app)
    assert not app.error
    words = next(text.value for text in app.caption if "training" in text.value)
    assert "<b>" not in words
    assert any("fit for" in title.value for title in app.header)
    n = len(pd.read_parquet(io.BytesIO(rows)))
    copies = f"{n} rows of the calibration set are in the training set too ({n} pairs, chance"
    assert [unescape(warning.value)[: len(copies)] for warning in app.warning] == [copies]
    for page in ("reliability", "confidence_by_class", "compare", "regions", "export"):
        app.switch_page(f"../pages/{page}.py").run()
        _assert_healthy(app)
        shown = [unescape(warning.value)[: len(copies)] for warning in app.warning]
        assert shown.count(copies) == 1, page
    app.switch_page("../pages/load.py").run()
    _place(app, "training", "out")
    _assert_healthy(app)
    assert not app.warning
    assert not any("_training_" in box.key for box in app.selectbox)
    assert any("fit for" in title.value for title in app.header)


def test_training_rows_without_the_true_class_are_refused(app):
    app.button(key="open_breast_cancer").click()
    app.run()
    rows = pd.read_parquet(samples_root() / "breast_cancer" / "calibration.parquet")
    target = next(s.target for s in samples() if s.name == "breast_cancer")
    _upload(app, "training", "short.csv", _csv(rows.drop(columns=target)))
    settle(app)
    _assert_healthy(app)
    assert len(app.error) == 1
    assert target in app.error[0].value.replace("\\", "")


def _said(app):
    shown = " ".join(text.value for text in (*app.caption, *app.markdown))
    return unescape(shown).replace("\u200b", "")


def test_what_is_no_input_is_named_and_the_next_pages_are_offered(app, unfolded, texts):
    frame = _predictions().rename(columns={"proba_sick": "p_bad"}).drop(columns="proba_well")
    frame = frame.assign(
        diagnosis=(frame["diagnosis"] == "sick").astype(int),
        region=np.resize(["north", "south"], len(frame)),
        patient=[f"name {i}" for i in range(len(frame))],
    )
    _upload(app, "calibration", "predictions.csv", _csv(frame))
    settle(app)
    texts(app)
    assert "**p_bad**" in _said(app)
    _press(app, "Score the rows")
    settle(app)
    _assert_healthy(app)
    pages = {link.proto.page for link in app.get("page_link")}
    assert "overview" in pages
    app.switch_page("../pages/regions.py").run()
    _assert_healthy(app)
    assert "patient" in _said(app)


def _column_of_no_class(n=300):
    rng = np.random.default_rng(2)
    p = rng.random(n).round(6)
    return pd.DataFrame({"score": p, "label": np.where(rng.random(n) < p, "bad", "good")})


def _swaps(app):
    return [one for one in app.button if one.label.startswith("Swap the classes")]


def test_a_class_that_no_name_says_is_a_doubt_that_one_click_settles(app, texts):
    _upload(app, "calibration", "loans.csv", _csv(_column_of_no_class()))
    settle(app)
    _assert_healthy(app)
    (doubt,) = (unescape(one.value) for one in app.warning)
    texts(doubt, "guessed")
    _press(app, "Score the rows")
    settle(app)
    app.switch_page("../pages/reliability.py").run()
    assert len(app.warning) == 1  # it stays above every page
    app.switch_page("../pages/load.py").run()
    (swap,) = _swaps(app)
    swap.click()
    app.run()
    settle(app)
    _assert_healthy(app)
    (wrong,) = (unescape(one.value).replace("\u200b", "") for one in app.warning)
    texts(wrong, "the wrong way round")
    _swaps(app)[0].click()
    app.run()
    settle(app)
    _assert_healthy(app)
    assert not app.warning
    assert not _swaps(app)


def test_rows_of_one_class_are_asked_no_question_without_its_words(app):
    _upload(app, "calibration", "one.csv", b"label,proba\n" + b"yes,0.7\nyes,0.4\n" * 30)
    settle(app)
    assert not any(one.label.startswith("It is the probability") for one in app.button)
    _press(app, "Score the rows")
    settle(app)
    assert "only the class 'yes'" in unescape(app.error[0].value)


def test_a_guessed_class_can_be_confirmed_without_scoring_again(app):
    _upload(app, "calibration", "loans.csv", _csv(_column_of_no_class()))
    settle(app)
    _press(app, "Score the rows")
    settle(app)
    _press(app, "It is the probability of bad")
    _assert_healthy(app)
    assert not app.warning
    assert any("fit for" in title.value for title in app.header)


def _loans(n=400):
    rng = np.random.default_rng(0)
    p = rng.beta(0.8, 3.0, n)
    return pd.DataFrame(
        {
            "default": rng.integers(0, 2, n),
            "defaulted": (rng.random(n) < p).astype(int),
            "p_default": p,
        }
    )


def test_a_target_that_could_be_another_column_is_chosen_before_scoring(app, texts):
    _upload(app, "calibration", "loans.csv", _csv(_loans()))
    settle(app)
    _assert_healthy(app)
    shown = [one.value for one in (*app.warning, *app.caption)]
    texts([unescape(one) for one in shown if "could be it too" in one or "AUROC" in one])
    assert not [one for one in app.button if one.label == "Score the rows"]
    _press(app, "defaulted is the true class")
    settle(app)
    _assert_healthy(app)
    assert not app.warning
    _press(app, "Score the rows")
    settle(app)
    _assert_healthy(app)
    assert not app.warning
    assert any("fit for" in title.value for title in app.header)


def test_a_rate_whose_event_is_not_known_begins_as_a_sentence(app):
    rows = _loans()[["defaulted", "p_default"]]
    rows.loc[3, "p_default"] = np.nan  # scoring says so; until then only the labels are known
    _upload(app, "calibration", "loans.csv", _csv(rows))
    settle(app)
    _assert_healthy(app)
    assert [one for one in app.markdown if unescape(one.value).startswith("Class 1:")]


def test_a_doubt_stands_on_other_pages_before_the_rows_are_scored(app):
    _upload(app, "calibration", "loans.csv", _csv(_loans()))
    settle(app)
    doubts = [one.value for one in app.warning]
    assert any("could be it too" in unescape(one) for one in doubts)
    for page in ("overview", "reliability"):
        app.switch_page(f"../pages/{page}.py").run()
        _assert_healthy(app)
        assert [one.value for one in app.warning] == doubts
        assert any("is not finished" in one.value for one in app.markdown)


def test_what_the_rows_say_against_the_roles_can_be_accepted(app):
    rare = _loans().assign(defaulted=lambda f: f["defaulted"] * (np.arange(len(f)) % 8 == 0))
    _upload(app, "calibration", "loans.csv", _csv(rare.drop(columns="default")))
    settle(app)
    _press(app, "Score the rows")
    settle(app)
    assert len(app.warning) == 1
    app.switch_page("../pages/reliability.py").run()
    assert len(app.warning) == 1
    assert any(link.proto.label == "Settle it on the Load page" for link in app.get("page_link"))
    app.switch_page("../pages/load.py").run()
    _press(app, "The roles are right")
    _assert_healthy(app)
    assert not app.warning


@pytest.mark.usefixtures("real_workers")
def test_all_files_are_dropped_at_once_and_each_finds_its_place(app):
    folder = samples_root() / "breast_cancer"
    names = ("evaluation.parquet", "model.skops", "training.parquet", "calibration.parquet")
    files = [(name, (folder / name).read_bytes(), "") for name in names]
    next(u for u in app.get("file_uploader") if u.key.startswith("files_")).set_value(files)
    app.run()
    settle(app)
    _assert_healthy(app)
    assert not app.error
    places = [box.value for box in app.selectbox if box.key.startswith("place_")]
    assert places == ["calibration", "evaluation", "training"]
    _press(app, "Score the rows")
    settle(app)
    _assert_healthy(app)
    assert any("fit for" in title.value for title in app.header)


def test_two_tables_exchange_their_places(app):
    for name in ("first.csv", "second.csv"):
        _upload(app, "calibration", name, _csv(_predictions(seed=len(name))))
        settle(app)
    _place(app, "evaluation", "calibration")
    _assert_healthy(app)
    words = [text.value for text in app.caption if "rows, 3 columns" in text.value]
    assert ["second" in one for one in words] == [True, False]


def _places(app):
    return [box.value for box in app.selectbox if box.key.startswith("place_")]


def _unplaced(app):
    return [one.value for one in app.warning if "has the inputs" in one.value]


def test_a_set_without_the_true_class_is_asked_about_and_used_by_one_click(app, texts):
    frame = _predictions().assign(age=np.arange(300.0))
    _upload(app, "calibration", "cal.csv", _csv(frame))
    settle(app)
    _upload(app, "calibration", "test ![x](y).csv", _csv(frame.drop(columns="diagnosis") + 5.0))
    settle(app)
    _assert_healthy(app)
    assert not app.error
    texts([unescape(one.value) for one in app.warning])
    assert _places(app) == ["calibration", None]
    assert any(one.label == "Score the rows" for one in app.button)  # which needs no answer
    (use,) = [one for one in app.button if one.label.startswith("Use test")]
    assert "![x](y)" not in use.label
    use.click()
    app.run()
    settle(app)
    assert not _unplaced(app)
    assert _places(app) == ["calibration", "foreign"]
    _upload(app, "calibration", "eval.csv", _csv(frame.drop(columns="diagnosis") + 4.0))
    settle(app)
    assert _unplaced(app)
    _press(app, f"Leave {escape_markdown('eval.csv')} out")
    settle(app)
    _assert_healthy(app)
    assert not _unplaced(app)
    assert _places(app) == ["calibration", "foreign"]


def test_a_set_of_other_names_is_asked_about_and_used_by_one_click(app, texts):
    _upload(
        app, "calibration", "train.csv", _csv(_predictions(seed=2))
    )  # before what it belongs to
    settle(app)
    frame = _predictions()
    _upload(app, "calibration", "cal.csv", _csv(frame))
    settle(app)
    renamed = _predictions(seed=1).rename(columns={"diagnosis": "truth <b>"})
    _upload(app, "calibration", "test.csv", _csv(renamed))
    settle(app)
    _assert_healthy(app)
    assert not app.error
    assert _places(app) == ["calibration", "training", None]
    (asked,) = [unescape(one.value) for one in app.warning if "names its columns" in one.value]
    texts([asked])
    _press(app, f"They mean the same: use {escape_markdown('test.csv')} as the evaluation set")
    settle(app)
    _assert_healthy(app)
    assert _places(app) == ["calibration", "evaluation", "training"]
    assert not [one for one in app.warning if "names its columns" in one.value]
    _press(app, "Score the rows")


def test_the_order_in_time_is_asked_for_and_taken_with_one_click(app):
    days = pd.date_range("2026-01-01", periods=100).strftime("%d.%m.%Y")
    _upload(app, "calibration", "loans.csv", _csv(_predictions().assign(day=np.repeat(days, 3))))
    settle(app)
    _assert_healthy(app)
    assert "holds dates or times" in app.warning[0].value
    assert not any(one.label == "Score the rows" for one in app.button)
    _press(app, "Order the rows by day")
    settle(app)
    _assert_healthy(app)
    assert not app.warning
    (shown,) = [one.value for one in app.markdown if one.value.startswith("True class")]
    assert "order in time: **day**" in shown
    _press(app, "Score the rows")


@pytest.mark.parametrize(
    ("columns", "said", "click"),
    [
        (
            {"score_sick": 1000.0},
            "A score ranks the rows",
            "Thousandths of a probability",
        ),
        ({"probability": "list"}, "holds a list of probabilities", "well · probability[1]"),
        ({"proba": 1.0, "label": "votes"}, "as of annotators' votes", "Judge what at least half"),
        ({"proba": 1.0, "label": "votes"}, "as of annotators' votes", "Judge proba as a forecast"),
    ],
)
def test_what_is_no_plain_probability_or_class_is_scored_after_one_click(app, columns, said, click):
    frame = _predictions()
    p = frame.pop("proba_sick").to_numpy()
    made = {"list": [f"[{1 - one}, {one}]" for one in p], "votes": (5 * p).round() / 5}
    table = frame[["diagnosis"]] if "label" not in columns else pd.DataFrame(index=frame.index)
    table = table.assign(
        **{name: p * of if isinstance(of, float) else made[of] for name, of in columns.items()}
    )
    _upload(app, "calibration", "rows.csv", _csv(table))
    settle(app)
    _assert_healthy(app)
    assert said in unescape(app.warning[0].value)
    _press(app, next(one.label for one in app.button if click in unescape(one.label)))
    settle(app)
    _assert_healthy(app)
    assert not app.warning
    _press(app, "Score the rows")
    settle(app)
    _assert_healthy(app)


def test_each_question_stands_above_its_buttons_and_a_closed_one_is_named(app):
    days = pd.date_range("2026-01-01", periods=200).strftime("%d.%m.%Y")
    frame = _predictions(600).assign(day=np.repeat(days, 3), customer_id=np.tile(range(300), 2))
    _upload(app, "calibration", "loans.csv", _csv(frame))
    settle(app)
    shown = [
        one.value if one.type == "warning" else one.label
        for one in app.main
        if one.type == "warning" or (one.key or "").startswith("answer_")
    ]
    kinds = ["holds dates" in one or "what several rows" in one for one in shown]
    assert kinds == [True, False, False, True, False, False]
    _press(app, shown[1])
    settle(app)
    _assert_healthy(app)
    assert not app.warning
    (said,) = [one.value for one in app.info if "together" in one.value]
    assert "Rows of one customer" in said
    assert "an order in time cannot be given beside it. To change it" in said


@pytest.mark.parametrize(
    ("answer", "cluster"),
    [("Keep rows of one patient together", "patient"), ("Every row counts by itself", None)],
)
def test_whether_rows_of_one_patient_belong_together_is_asked(app, texts, answer, cluster):
    frame = pd.concat([_predictions().assign(patient=range(300))] * 2)
    _upload(app, "calibration", "visits.csv", _csv(frame))
    settle(app)
    _assert_healthy(app)
    texts([unescape(one.value) for one in app.warning])
    assert not any(one.label == "Score the rows" for one in app.button)
    _press(app, answer)
    settle(app)
    _assert_healthy(app)
    assert not app.warning
    (shown,) = [one.value for one in app.markdown if one.value.startswith("True class")]
    assert ("clusters: **patient**" in shown) == (cluster is not None)
    _press(app, "Score the rows")


def test_rows_without_the_true_class_are_foreign_and_a_third_table_is_placed(app, texts):
    frame = _predictions().assign(age=np.arange(300.0))
    for at, name in enumerate(("one.csv", "two.csv", "three.csv")):
        _upload(app, "calibration", name, _csv(frame.sample(frac=1.0, random_state=at)))
        settle(app)
    _upload(app, "calibration", "![far](x).csv", _csv(frame.drop(columns="diagnosis") + 5.0))
    settle(app)
    _assert_healthy(app)
    assert not app.error
    assert _places(app) == ["calibration", "evaluation", "training", "foreign"]
    texts([unescape(one.value) for one in app.caption if "was taken for" in one.value])
    _place(app, "training", "foreign")
    assert _places(app) == ["calibration", "evaluation", "foreign", "foreign"]
    _place(app, "foreign_0", "evaluation")  # it lacks the true class
    assert len(app.error) == 1
    assert _places(app) == ["calibration", "evaluation", "foreign", "foreign"]
    _place(app, "foreign_1", "out")
    _assert_healthy(app)
    assert _places(app) == ["calibration", "evaluation", "foreign"]


@pytest.fixture
def at_this_machine(monkeypatch):
    """The test runner sends no headers; a browser on this machine does."""
    from app.shared import reviews_here

    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: True)


def _kept(app):
    """The titles in the list of reviews."""
    return [one.label for one in app.button if (one.key or "").startswith("kept_open_")]


def _of(app, title, what):
    """What belongs to the review of this title: its buttons and its box."""
    opening = next(one for one in app.button if one.label == title)
    review_id = opening.key.removeprefix("kept_open_")
    every = (*app.button, *app.checkbox, *app.text_input)
    return next(one for one in every if one.key == f"kept_{what}_{review_id}")


@pytest.mark.usefixtures("at_this_machine")
def test_reviews_of_this_machine_are_opened_renamed_duplicated_and_deleted(app):
    assert _kept(app) == []
    _upload(app, "calibration", "mine *b*.csv", _csv(_predictions()))
    settle(app)
    _press(app, "Start another review")
    (title,) = _kept(app)
    assert title == escape_markdown("mine *b*.csv")
    shown = [one.value for one in app.caption]
    assert {"Predictions only", "300 rows", "Not scored yet"} <= {*shown}
    assert "1 review on this machine" in " ".join(one.value for one in app.markdown)
    app.text_input[0].set_value("March audit")
    _press(app, "Rename")
    _press(app, "Duplicate")
    copy = escape_markdown("March audit (copy)")
    assert {*_kept(app)} == {"March audit", copy}
    assert _of(app, copy, "delete").disabled
    _of(app, copy, "sure").check()
    app.run()
    assert _of(app, "March audit", "delete").disabled  # only the one that was ticked
    _of(app, copy, "delete").click()
    app.run()
    _assert_healthy(app)
    assert _kept(app) == ["March audit"]
    _press(app, "March audit")
    _assert_healthy(app)
    assert any("March audit" in one.value for one in app.caption)
    assert _kept(app) == []  # the list is of the first page


@pytest.mark.usefixtures("at_this_machine")
def test_of_samples_that_are_alike_the_last_opened_is_listed(app):
    workspace = Workspace()
    first, other = (start_sample(workspace, "digits_predictions") for _ in range(2))
    app.run()
    label = f"{first.title}, opened before"
    assert _kept(app) == [label]
    assert any(one.key == f"kept_open_{other.id}" for one in app.button)
    set_question(workspace, first.id, Question(limits={"KC001": Limit(high=0.02)}))
    app.run()
    _assert_healthy(app)
    assert _kept(app) == [label, escape_markdown(f"{label} (2)")]


@pytest.mark.usefixtures("at_this_machine")
def test_the_newest_ten_reviews_are_listed_and_ten_more_on_demand(app):
    _upload(app, "calibration", "mine.csv", _csv(_predictions()))
    settle(app)
    _press(app, "Start another review")
    workspace = Workspace()
    ((review, _),) = workspace.reviews()
    for at in range(21):
        workspace.duplicate(review.id, f"Copy {at}")
    app.run()
    _assert_healthy(app)
    assert len(_kept(app)) == 10
    assert "mine.csv" not in _kept(app)  # the oldest
    _press(app, "Show ten more")
    assert len(_kept(app)) == 20
    assert "mine.csv" not in _kept(app)
    _press(app, "Show ten more")
    assert len(_kept(app)) == 22
    assert not [one for one in app.button if one.label == "Show ten more"]


@pytest.mark.usefixtures("at_this_machine")
def test_the_verdict_of_earlier_checks_is_not_listed(app):
    workspace = Workspace()
    review_id = review_of(workspace, calibration=_predictions())
    path = workspace.folder(review_id) / "review.json"
    stored = json.loads(path.read_text("utf-8"))
    del stored["verdict_edition"]  # as before it was kept
    path.write_text(json.dumps({**stored, "verdict": "pass"}), "utf-8")
    app.run()
    _assert_healthy(app)
    assert "Not checked yet" in [one.value for one in app.caption]
    review = workspace.read(review_id)
    for edition, words in (
        (verdict_edition(workspace, review), "Fail"),
        ("an earlier one", "Not checked yet"),
    ):
        note_verdict(workspace, workspace.read(review_id), "fail", edition)
        app.run()
        _assert_healthy(app)
        assert words in [one.value for one in app.caption]


def test_a_visitor_from_elsewhere_sees_no_list_of_reviews(app):
    _upload(app, "calibration", "mine.csv", _csv(_predictions()))
    settle(app)
    _press(app, "Start another review")
    _assert_healthy(app)
    assert _kept(app) == []
    assert not any("Reviews on this machine" in title.value for title in app.header)


def _event(app):
    return next(one for one in app.button_group if one.key.startswith("event_"))


def test_the_event_stands_above_the_button_and_can_be_changed(app, texts):
    frame = _loans().drop(columns="default").rename(columns={"p_default": "p_1"})
    _upload(app, "calibration", "loans.csv", _csv(frame))
    settle(app)
    texts([unescape(one.value) for one in app.markdown if one.value.startswith("Event: ")], "first")
    _event(app).select("0")
    app.run()
    _assert_healthy(app)
    texts([unescape(one.value) for one in app.markdown if one.value.startswith("Event: ")], "then")
    _press(app, "Score the rows")
    settle(app)
    app.switch_page("../pages/overview.py").run()
    _assert_healthy(app)
    asked = [unescape(one.proto.popover.label) for one in app.get("popover")]
    assert "Event: 0" in [one.replace("\u200b", "") for one in asked]


def test_predictions_in_reverse_are_a_warning_until_the_rows_are_scored(app):
    frame = _loans().drop(columns="default").rename(columns={"p_default": "p_1"})
    frame["p_1"] = 1.0 - frame["p_1"]
    _upload(app, "calibration", "loans.csv", _csv(frame))
    settle(app)
    (said,) = [one.value for one in app.warning if one.value.startswith("Before you score: ")]
    assert "rank the rows the wrong way round" in said
    _press(app, "Score the rows")
    settle(app)
    assert not [one for one in app.warning if one.value.startswith("Before you score: ")]


def test_classes_that_begin_alike_can_both_be_the_event(app):
    begin = "the customer has not paid the instalment that was due "
    frame = _loans().drop(columns="default").rename(columns={"p_default": "p_1"})
    frame["defaulted"] = np.where(frame["defaulted"] == 1, f"{begin}yet", f"{begin}at all")
    frame = frame.rename(columns={"p_1": f"p_{begin}yet"})
    _upload(app, "calibration", "loans.csv", _csv(frame))
    settle(app)
    assert len({*_event(app).options}) == 2
    ((review, _),) = Workspace().reviews()
    for name in (*review.classes, review.classes[0]):
        _event(app).select(name)
        app.run()
        _assert_healthy(app)
        assert Workspace().read(review.id).question.event == name


def test_an_event_chosen_in_a_deleted_review_is_an_error_in_words(app):
    _upload(app, "calibration", "mine.csv", _csv(_predictions()))
    settle(app)
    ((review, _),) = Workspace().reviews()
    Workspace().delete(review.id)  # in another tab
    _event(app).select(next(one for one in review.classes if one != _event(app).value))
    app.run()
    _assert_healthy(app)
    assert any("no such review" in one.value for one in app.error)


def test_edits_of_roles_do_not_move_to_other_columns_once_they_are_applied(app):
    _upload(app, "calibration", "mine.csv", _csv(_predictions().assign(age=np.arange(300) % 7)))
    settle(app)
    before = [one.proto.id for one in app.dataframe if one.proto.editing_mode]
    ((review, _),) = Workspace().reviews()
    set_roles(Workspace(), review.id, replace(review.roles, features=()))
    app.run()  # its rows are in another order now
    _assert_healthy(app)
    after = [one.proto.id for one in app.dataframe if one.proto.editing_mode]
    assert len(before) == len(after) == 1
    assert before != after


def test_a_class_of_a_column_that_is_no_output_is_an_error():
    from app.load.role_form import role_table, roles_from_table

    roles = guess_roles(_predictions())
    columns = [SimpleNamespace(name=name, kind="number", n_missing=0, examples=())
               for name in _predictions()]  # fmt: skip
    table = role_table(columns, roles)
    at = table.index[table["Role"] != "Model output"][-1]
    table.loc[at, "Class"] = "good"
    with pytest.raises(InputError, match="has a class, and another role") as found:
        roles_from_table(table, "probability", roles)
    assert found.value.column == table.loc[at, "Column"]


def test_the_confidence_alone_of_three_classes_is_reviewed_by_one_click(app, stay_on_load):
    rng = np.random.default_rng(0)
    said = rng.dirichlet(np.ones(3), 300)
    frame = pd.DataFrame({"label": [rng.choice(3, p=row) for row in said]})
    frame = frame.assign(prediction=said.argmax(1), confidence=said.max(1).round(6))
    _upload(app, "calibration", "top.csv", _csv(frame))
    settle(app)
    assert any("nothing of the other classes" in one.value for one in app.warning)
    _press(app, "Judge whether predictions are right as often as stated")
    settle(app)
    _assert_healthy(app)
    assert not app.warning
    assert any("judges whether predictions are right" in one.value for one in app.caption)
    assert _event(app).value == "right"
    _press(app, "Score the rows")
    settle(app)
    _assert_healthy(app)
    assert "whether predictions are right" in app.caption[0].value


def test_numbers_of_the_first_rows_stand_on_the_right_wherever_their_column_is(app):
    frame = _loans().assign(missing=np.where(np.arange(len(_loans())) == 1, np.nan, 0.5))
    frame = frame.assign(note="seen")
    _upload(app, "calibration", "loans.csv", _csv(frame))
    settle(app)
    (shown,) = [one for one in app.dataframe if list(one.value) == list(frame)]
    columns = json.loads(shown.proto.columns)
    right = [name for name, one in columns.items() if one.get("alignment") == "right"]
    assert right == [name for name in frame if name != "note"]
