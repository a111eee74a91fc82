"""Pictures of regions: one mark a region, harmless names, colours that mean what they say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from kdcal_core import figures
from kdcal_core.diagnostics import describe_regions, find_pit_regions, find_regions, paired_auc
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.figures import region_words
from kdcal_core.figures.regions import MAX_LINES

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def search():
    """Over-confident where the hostile column says a, under-confident where it says b."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 4000)
    right = rng.random(4000) < pd.Series(kind).map({"a": 0.5, "b": 0.95, "c": 0.8}).to_numpy()
    frame = pd.DataFrame({HOSTILE: kind, "age": rng.normal(size=4000)})
    return find_regions(confidence_target(np.full(4000, 0.8), right), frame)


@pytest.fixture(scope="module")
def pit_search():
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=4000), rng.random(4000)
    return find_pit_regions(np.where(x < 0, u / 2, u), pd.DataFrame({"x": x}))


def tree(search, **more):
    return figures.region_tree_figure(search.tree, figures.region_marks(search), dark=False, **more)


def test_every_region_has_its_mark_with_its_number(search):
    figure = tree(search, picked=1)
    marks = figure.data[-1]
    assert [carried[0] for carried in marks.customdata] == list(range(len(search.regions)))
    assert marks.marker.line.width[1] == 3
    assert "says 0.80" in marks.text[0]
    assert len(marks.x) == search.tree.n_leaves


def test_names_are_text_and_not_markup(search):
    json = tree(search).to_json() + figures.region_gaps_figure(search, dark=True).to_json()
    assert "<img" not in json
    assert "&lt;img" in json


def test_red_is_over_confident_and_blue_under(search):
    light = figures.palette(dark=False)
    faults = {one.words.rsplit(" ", 1)[-1]: one.fault for one in search.regions}
    assert faults["a"] == "over-confident"
    marks = tree(search).data[-1].marker.color
    over = next(one.leaf for one in search.regions if one.fault == "over-confident")
    under = next(one.leaf for one in search.regions if one.fault == "under-confident")
    red, _, blue = (int(part) for part in marks[over][4:-1].split(","))
    assert red > blue
    red, _, blue = (int(part) for part in marks[under][4:-1].split(","))
    assert blue > red
    assert figures.region_colour("none", 0.5, light) == light.surface


def test_faults_of_distributions_have_the_colours_of_the_pit_page(pit_search):
    light = figures.palette(dark=False)
    marks = tree(pit_search).data[-1].marker.color
    for region, colour in zip(pit_search.regions, marks, strict=True):
        if region.fault != "none":
            assert colour == figures.fault_colour(region.fault, light)
    assert {one.fault for one in pit_search.regions} > {"none"}


def test_one_mark_a_region_or_nothing(search):
    with pytest.raises(ValueError, match="marks for"):
        figures.region_tree_figure(search.tree, figures.region_marks(search)[1:], dark=False)


def test_of_many_regions_the_clearest_are_drawn():
    rng = np.random.default_rng(0)
    leaf = rng.integers(0, 200, 4000)
    found = describe_regions(confidence_target(np.full(4000, 0.7), rng.random(4000) < 0.7), leaf)
    shown = figures.shown_regions(found)
    assert len(shown) == MAX_LINES
    assert max(one.p_value for one in shown) <= np.sort([o.p_value for o in found.regions])[39]
    figure = figures.region_gaps_figure(found, dark=False, picked=shown[3].leaf)
    assert figure.data[1].marker.line.width[3] == 3
    np.testing.assert_allclose(figure.data[0].x, [one.stated for one in shown])


def test_a_map_is_platts_on_the_log_odds():
    one = figures.RegionMap(0, "here", 0.5, -1.0, 0.1, 0.9, 50)
    stated, mapped = one.curve()
    assert (stated[0], stated[-1]) == pytest.approx((0.1, 0.9))
    odds = np.log(stated / (1 - stated))
    np.testing.assert_allclose(np.log(mapped / (1 - mapped)), 0.5 * odds - 1.0)
    other = figures.RegionMap(1, HOSTILE, -1.0, 0.0, 0.0, 1.0, 50)
    figure = figures.region_maps_figure([one, other], dark=False, picked=0)
    assert figure.data[-1].name == "This region"
    assert "<img" not in figure.to_json()
    assert figures.region_maps_table([one, other])["slope"].tolist() == [0.5, -1.0]


def test_the_lift_is_drawn_with_its_interval():
    y = [0, 0, 0, 0, 1, 1, 1, 1]
    pair = paired_auc([1, 3, 2, 6, 4, 5, 2, 7], [1, 2, 3, 4, 4, 5, 6, 7], y)
    figure = figures.auc_lift_figure([(HOSTILE, pair)], dark=False)
    mark = figure.data[0]
    assert mark.x[0] == pytest.approx(0.96875 / 0.71875 - 1)
    assert mark.x[0] + mark.error_x.array[0] == pytest.approx(pair.lift.high)
    assert "<img" not in figure.to_json()
    assert figures.auc_lift_table([("tree", pair)])["auc_before"].tolist() == [0.71875]


def test_scores_by_label_are_shares_of_each_label():
    panel = figures.ScorePanel(
        "Training rows", np.array([0.0, 0.001, 0.5, 0.999, 1.0]), np.array([0, 0, 0, 1, 1.0])
    )
    other, mine = panel.counts
    assert other.sum() == pytest.approx(1)
    assert mine[-1] == 1.0  # beyond 99.9% stand in the outermost bar
    assert other[0] == pytest.approx(2 / 3)
    assert panel.certain == pytest.approx((2 / 3, 1.0))
    table = figures.score_panels_table([panel, panel])
    assert table.groupby("rows")["share_other"].sum().tolist() == [pytest.approx(2.0)]
    figure = figures.score_panels_figure([panel], dark=True, labels=("Other", "Class"))
    assert [trace.name for trace in figure.data] == ["Other", "Class"]


# --- words ----------------------------------------------------------------------------------------


def test_what_is_said_of_a_single_region_is_said_of_all_rows():
    rng = np.random.default_rng(0)
    right = rng.random(2000) < 0.6
    frame = pd.DataFrame({"x": rng.normal(size=2000)})
    found = find_regions(confidence_target(np.full(2000, 0.9), right), frame)
    assert len(found.regions) == 1
    assert region_words.page_finding(found).startswith("No part of the inputs stands out")
    assert "all rows are one region" in region_words.tree_words(found)


def test_words_hold_their_numbers(search):
    assert f"{search.n_grow:,} rows" in region_words.tree_words(search)
    assert f"A tree of {len(search.regions)} regions" in region_words.tree_alt(search)
    share = region_words.faulty_share(search)
    assert share == pytest.approx(sum(one.n for one in search.faulty) / search.n_judge)


@pytest.mark.parametrize(
    ("slope", "offset", "said"),
    [
        (-0.2, 0.0, "a higher score means a lower probability"),
        (0.05, 0.0, "next to nothing here"),
        (0.2, 0.0, "far too sure"),
        (0.5, 0.0, "halved or nearly"),
        (0.8, 0.0, "somewhat too sure"),
        (1.0, 0.02, "next to nothing changes"),
        (1.0, -0.5, "all probabilities move down"),
        (2.0, 0.0, "not sure enough"),
    ],
)
def test_a_map_is_told_by_its_slope(slope, offset, said):
    told = region_words.map_words(slope, offset, 0.25, ("few rows",))
    assert said in told
    assert "25% of the map is borrowed" in told
    assert told.endswith("Careful: few rows.")
    assert "borrowed" not in region_words.map_words(slope, offset, 0.0, ())


def test_a_lift_that_may_be_chance_is_called_so():
    y = [0, 0, 0, 0, 1, 1, 1, 1]
    pair = paired_auc([1, 3, 2, 6, 4, 5, 2, 7], [1, 2, 3, 4, 4, 5, 6, 7], y)
    assert "that may be chance" in region_words.lift_words("A tree", pair)
    same = paired_auc([1, 3, 2, 6, 4, 5, 2, 7], [1, 3, 2, 6, 4, 5, 2, 7], y)
    assert region_words.lift_words("One map", same).startswith("One map leaves the order")
