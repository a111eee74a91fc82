"""The two analysis pages, launched with every sample and with none."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
import pytest
from app_pages import healthy, launch, plain, specs, visit, words

from kdcal_core.review import Workspace, read_review, samples, start_sample

PAGES = ("reliability", "confidence_by_class")
SAMPLES = [sample.name for sample in samples() if sample.task == "classification"]
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


@pytest.fixture(scope="module")
def review_ids(workspace: Workspace) -> dict[str, str]:
    return {name: start_sample(workspace, name).id for name in SAMPLES}


def pictures(drawn: Sequence[Any]) -> set[str]:
    """The pictures on a page; one may have several panels and a legend."""
    return {re.sub(r"_(\d+|legend)$", "", one.key) for one in drawn}


# of two classes and of ten, with a model and without; that each sample opens and is diagnosed is
# tried with the Load page and the golden figures
@pytest.mark.parametrize("sample", ["digits", "breast_cancer", "adult", "digits_predictions"])
@pytest.mark.parametrize("page", PAGES)
def test_a_sample_fills_every_page(review_ids: dict[str, str], sample: str, page: str) -> None:
    at = healthy(launch(page, review_ids[sample]))
    # of two classes, small multiples of the event's probability would be mirror images
    mirrored = read_review(Workspace(), review_ids[sample]).event is not None
    n_charts = 5 - (mirrored and page != "confidence_by_class")
    drawn = at.get("plotly_chart")
    assert len(pictures(drawn)) == n_charts
    assert len(at.metric) == 4
    assert at.header[0].value
    for chart in drawn:
        assert chart.proto.alt
        assert "#00000" not in chart.proto.spec
    assert at.query_params["review"] in (review_ids[sample], [review_ids[sample]])


@pytest.mark.parametrize("page", PAGES)
def test_no_figure_is_built_again_where_nothing_changed(
    review_ids: dict[str, str], page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = healthy(launch(page, review_ids["digits"]))
    built = []
    init = go.Figure.__init__

    def counted(self: go.Figure, *arguments: object, **settings: object) -> None:
        built.append(self)
        init(self, *arguments, **settings)

    monkeypatch.setattr(go.Figure, "__init__", counted)
    assert len(specs(healthy(at.run()))) >= 4
    assert not built


@pytest.mark.parametrize("page", PAGES)
def test_the_dark_theme_draws_with_its_own_colours(review_ids: dict[str, str], page: str) -> None:
    light, dark = (specs(launch(page, review_ids["digits"], dark=dark)) for dark in (False, True))
    assert len(light) == len(dark)
    for one, other in zip(light, dark, strict=True):
        assert one["layout"]["font"] != other["layout"]["font"]


@pytest.mark.parametrize("page", PAGES)
def test_without_a_review_a_page_says_what_it_needs_and_opens_a_sample(page: str) -> None:
    at = healthy(launch(page))
    assert not at.get("plotly_chart")
    (button,) = at.button
    healthy(button.click().run())
    assert at.get("plotly_chart")
    assert at.session_state["review"]


@pytest.mark.parametrize("review", ["AAAAAAAAAAAAAAAA", "../../etc/passwd", "<script>"])
def test_an_unknown_review_in_the_address_is_reported(review: str) -> None:
    at = healthy(launch(PAGES[0], review))
    assert not at.get("plotly_chart")
    assert at.button
    assert "review" not in at.query_params


def test_the_review_stays_open_across_pages(review_ids: dict[str, str]) -> None:
    at = launch(PAGES[0], review_ids["adult"])
    # a change of page drops the address's query
    at.query_params.clear()
    healthy(visit(at, PAGES[1]))
    assert at.query_params["review"] in (review_ids["adult"], [review_ids["adult"]])
    assert at.get("plotly_chart")


def test_reliability_settings_change_the_diagram(review_ids: dict[str, str]) -> None:
    at = launch(PAGES[0], review_ids["digits"])
    before = specs(at)
    at.slider(key="reliability_bins").set_value(30).run()
    assert specs(healthy(at))[0] != before[0]
    for kind in ("top-label", "class"):
        at.radio(key="reliability_kind_confidence").set_value(kind).run()
        chosen = specs(healthy(at))
        assert chosen[0] != before[0]
    at.selectbox[0].set_value(7).run()
    assert specs(healthy(at))[0] != chosen[0]


def test_an_event_s_probability_comes_first_and_all_follow_the_question(
    review_ids: dict[str, str],
) -> None:
    at = healthy(launch(PAGES[0], review_ids["adult"]))
    assert [one.label for one in at.metric] == [
        "AUROC", "Probability minus rate", "ECE", "Log loss",
    ]  # fmt: skip
    assert plain(at.header[0].value).startswith("Class >50K: under-confident below")
    at.radio(key="reliability_kind_event").set_value("confidence").run()
    assert [one.label for one in healthy(at).metric][:2] == ["Accuracy", "Confidence gap"]
    at.radio(key="reliability_kind_event").set_value("top-label").run()
    assert plain(healthy(at).header[0].value).startswith("Predicted >50K: over-confident")
    assert at.metric[0].label == "Accuracy"


def test_confidence_of_two_classes_starts_from_the_event(review_ids: dict[str, str]) -> None:
    at = healthy(launch(PAGES[1], review_ids["adult"]))
    review = read_review(Workspace(), review_ids["adult"])
    assert [one.label for one in at.metric] == [
        "AUROC", "Probability minus rate", "ECE", "Log loss",
    ]  # fmt: skip
    assert plain(at.header[0].value).startswith(f"Class {review.classes[review.event]}: ")
    assert f"rows are {review.classes[review.event]} (" in plain(words(at))
    curve, *_ = specs(at)
    assert curve["layout"]["xaxis"]["title"]["text"] == "Stated probability of the event"
    assert not [one for one in at.selectbox if one.label == "Predicted class"]
    question = next(one for one in at.selectbox if one.label == "Question")
    question.select_index(1).run()
    assert [one.label for one in healthy(at).metric][:2] == ["Accuracy", "Confidence gap"]
    assert plain(at.header[0].value).startswith("Predicted <=50K: over-confident above")
    title = specs(at)[0]["layout"]["xaxis"]["title"]["text"]
    assert title == "Score: stated probability of the predicted class"


def test_confusion_table_and_set_can_be_switched(review_ids: dict[str, str]) -> None:
    at = launch(PAGES[0], review_ids["adult"])
    before = specs(at)
    at.segmented_control(key="confusion_table").set_value("joint").run()
    assert specs(healthy(at))[2] != before[2]
    at.segmented_control(key="reliability_set").set_value("calibration").run()
    assert specs(healthy(at))[0] != before[0]


@pytest.mark.parametrize("rule", ["mon", "mon4", "loo", "number"])
def test_every_bandwidth_rule_draws_a_curve(review_ids: dict[str, str], rule: str) -> None:
    at = launch(PAGES[1], review_ids["adult"])
    before = specs(at)[0]
    at.radio(key="bandwidth_rule").set_value(rule).run()
    after = specs(healthy(at))[0]
    curve = next(trace for trace in after["data"] if trace.get("name") == "Safe estimate")
    assert curve
    assert rule in ("mon", "mon4") or after != before


def test_all_methods_can_be_compared_and_none(review_ids: dict[str, str]) -> None:
    at = launch(PAGES[1], review_ids["breast_cancer"])
    methods = at.pills(key="methods")
    methods.set_value(["isotonic", "cum", "cstswa"]).run()
    assert len(pictures(healthy(at).get("plotly_chart"))) == 5
    at.pills(key="methods").set_value([]).run()
    assert len(pictures(healthy(at).get("plotly_chart"))) == 3


def test_cutting_again_draws_other_halves(review_ids: dict[str, str]) -> None:
    at = launch(PAGES[1], review_ids["digits_predictions"])
    before = specs(at)[-2]  # the last one is the legend
    at.button(key="noise_again").click().run()
    assert specs(healthy(at))[-2] != before


@pytest.mark.parametrize("sample", ["adult", "digits"])
def test_rows_that_grow_show_how_far_the_curve_has_settled(
    review_ids: dict[str, str], sample: str
) -> None:
    at = launch(PAGES[1], review_ids[sample])
    at = healthy(at.segmented_control(key="noise_how").set_value("growth").run())
    (said,) = [
        each for each in words(at).splitlines() if "the curve differs with a quarter" in each
    ]
    assert "points from that of all" in said
    names = [trace.get("name", "") for trace in specs(at)[-1]["data"]]
    assert [name for name in names if name.startswith("All rows (")]


def test_while_the_curves_are_fitted_the_page_says_so_once(
    review_ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every section waits for the same job, whose card with its button stands above them."""
    from app.confidence_by_class import confidence_parts

    asked = []
    monkeypatch.setattr(confidence_parts, "_curves", lambda *args: asked.append(args))
    at = healthy(launch("confidence_by_class", review_ids["digits"]))
    assert len(asked) == 1
    assert [one.value for one in at.header] == ["Predicted 3"]  # a heading above those below it
    assert not [one for one in at.subheader if "bandwidth" in one.value]
    assert "once the curve above is fitted" in words(at)


def test_the_bins_of_the_curve_stand_beside_it(review_ids: dict[str, str]) -> None:
    at = healthy(launch("confidence_by_class", review_ids["adult"]))
    bins = at.dataframe[0].value
    assert list(bins) == ["Says", "Sees", "Rows"]
    assert bins["Says"].tolist()[:2] == ["0.00 to 0.10", "0.10 to 0.20"]
    assert bins["Rows"].sum() == 6000
