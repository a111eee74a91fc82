"""Pictures of regions: one mark a region, harmless names, colours that mean what they say."""

from __future__ import annotations

import html
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core import charts
from kdcal_core.calibration.regions import RegionMap
from kdcal_core.charts.palette import palette
from kdcal_core.charts.pit import fault_colour
from kdcal_core.charts.region_repair import (
    auc_lift_figure,
    auc_lift_table,
    loss_change_figure,
    loss_change_table,
    region_maps_figure,
    region_maps_table,
)
from kdcal_core.charts.region_tree import region_colour, region_tree_figure
from kdcal_core.charts.regions import (
    MAX_LINES,
    region_caption,
    region_gaps_figure,
    region_hover,
    region_marks,
    shown_regions,
    tree_alt,
    tree_words,
)
from kdcal_core.charts.score_histograms import score_panels_figure, score_panels_table
from kdcal_core.diagnostics import (
    ScoreSpread,
    describe_regions,
    find_pit_regions,
    find_regions,
    paired_auc,
    paired_difference,
    search_finding,
)
from kdcal_core.diagnostics.targets import confidence_target
from kdcal_core.text import formatted

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def search():
    """Over-confident where the hostile column says a, under-confident where it says b."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["a", "b", "c"], 4000)
    right = rng.random(4000) < pd.Series(kind).map({"a": 0.5, "b": 0.95, "c": 0.8}).to_numpy()
    frame = pd.DataFrame({HOSTILE: kind, "age": rng.normal(size=4000)})
    return find_regions(confidence_target(np.full(4000, 0.8), right), frame, redraws=0)


@pytest.fixture(scope="module")
def pit_search():
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=4000), rng.random(4000)
    return find_pit_regions(np.where(x < 0, u / 2, u), pd.DataFrame({"x": x}))


def tree(search, **more):
    return region_tree_figure(search.tree, region_marks(search), dark=False, **more)


def test_every_region_has_its_mark_with_its_number(search):
    figure = tree(search, picked=1)
    marks = figure.data[-1]
    assert [carried[0] for carried in marks.customdata] == list(range(len(search.regions)))
    assert marks.marker.line.width[1] == 3
    assert re.match(r"\s*1: says 0\.80\b", marks.text[0])
    assert len(marks.x) == search.tree.n_leaves


def test_names_are_text_and_not_markup(search):
    json = tree(search).to_json() + region_gaps_figure(search, dark=True).to_json()
    assert "<img" not in json
    assert "&lt;img" in json


def test_red_is_over_confident_and_blue_under(search):
    light = palette(dark=False)
    faults = {one.words.rsplit(" ", 1)[-1]: one.fault for one in search.regions}
    assert faults["a"] == "over-confident"
    marks = tree(search).data[-1].marker.color
    over = next(one.leaf for one in search.regions if one.fault == "over-confident")
    under = next(one.leaf for one in search.regions if one.fault == "under-confident")
    red, _, blue = (int(part) for part in marks[over][4:-1].split(","))
    assert red > blue
    red, _, blue = (int(part) for part in marks[under][4:-1].split(","))
    assert blue > red
    assert region_colour("none", 0.5, light) == light.surface


def test_faults_of_distributions_have_the_colours_of_the_pit_page(pit_search):
    light = palette(dark=False)
    marks = tree(pit_search).data[-1].marker.color
    for region, colour in zip(pit_search.regions, marks, strict=True):
        if region.fault != "none":
            assert colour == fault_colour(region.fault, light)
    assert {one.fault for one in pit_search.regions} > {"none"}


def test_one_mark_a_region_or_nothing(search):
    with pytest.raises(ValueError, match="marks for"):
        region_tree_figure(search.tree, region_marks(search)[1:], dark=False)


def test_of_many_regions_the_clearest_are_drawn():
    rng = np.random.default_rng(0)
    leaf = rng.integers(0, 200, 4000)
    found = describe_regions(confidence_target(np.full(4000, 0.7), rng.random(4000) < 0.7), leaf)
    shown = shown_regions(found)
    assert len(shown) == MAX_LINES
    assert max(one.p_value for one in shown) <= np.sort([o.p_value for o in found.regions])[39]
    figure = region_gaps_figure(found, dark=False, picked=shown[3].leaf)
    assert figure.data[1].marker.line.width[3] == 3
    np.testing.assert_allclose(figure.data[0].x, [one.stated for one in shown])


def test_a_map_is_platts_on_the_log_odds():
    one = RegionMap.of(0, "here", 0.5, -1.0, np.array([0.1, 0.3, 0.9]), np.array([1, 1, 2]))
    stated, mapped = one.curve()
    assert (stated[0], stated[-1]) == pytest.approx((0.1, 0.9))
    odds = np.log(stated / (1 - stated))
    np.testing.assert_allclose(np.log(mapped / (1 - mapped)), 0.5 * odds - 1.0)
    assert one.mean == pytest.approx((0.1 + 0.3 + 2 * 0.9) / 4)
    assert one.mean_after == pytest.approx(one.apply([0.1, 0.3, 0.9, 0.9]).mean())


def test_maps_are_drawn_as_two_lines_however_many_they_are():
    maps = [
        RegionMap.of(leaf, f"{HOSTILE} {leaf}", -1.0, 0.0, np.array([0.0, 1.0]))
        for leaf in range(30)
    ]
    figure = region_maps_figure(maps, dark=False, picked=7)
    _, others, mine = figure.data
    assert (others.name, mine.name) == ("Other regions", "This region")
    assert np.isnan(others.x).sum() == 29
    assert len(others.x) == len(others.text) == 29 * len(mine.x)
    assert set(mine.text) == {f"8: {html.escape(HOSTILE)} 7"}
    assert "<img" not in figure.to_json()
    assert [one.name for one in region_maps_figure(maps, dark=True).data[1:]] == ["Other regions"]
    assert region_maps_table(maps)["slope"].tolist() == [-1.0] * 30


def test_the_lift_is_drawn_with_its_interval():
    y = [0, 0, 0, 0, 1, 1, 1, 1]
    pair = paired_auc([1, 3, 2, 6, 4, 5, 2, 7], [1, 2, 3, 4, 4, 5, 6, 7], y)
    figure = auc_lift_figure([(HOSTILE, pair)], dark=False)
    mark = figure.data[0]
    assert mark.x[0] == pytest.approx(0.96875 / 0.71875 - 1)
    assert mark.x[0] + mark.error_x.array[0] == pytest.approx(pair.lift.high)
    assert "<img" not in figure.to_json()
    assert auc_lift_table([("tree", pair)])["auc_before"].tolist() == [0.71875]


def test_the_change_of_the_loss_is_drawn_with_its_interval():
    change = paired_difference(np.array([0.1, 0.4, 0.2]), np.array([0.3, 0.5, 0.4]), label="Change")
    figure = loss_change_figure([(HOSTILE, change)], dark=False)
    mark = figure.data[0]
    assert mark.x[0] == pytest.approx(-0.5 / 3)
    assert mark.x[0] - mark.error_x.arrayminus[0] == pytest.approx(change.low)
    low, high = figure.layout.xaxis.range
    assert low < change.low
    assert high >= 0
    assert "<img" not in figure.to_json()
    table = loss_change_table([("tree", change)])
    assert table.loc[0, ["low", "high"]].tolist() == [change.low, change.high]


def test_scores_by_label_are_shares_of_each_label():
    spread = ScoreSpread.of(np.array([0.0, 0.001, 0.5, 0.999, 1.0]), np.array([0, 0, 0, 1, 1.0]))
    assert spread.other.sum() == pytest.approx(1)
    assert spread.mine[-1] == 1.0  # beyond 99.9% stand in the outermost bar
    assert spread.other[0] == pytest.approx(2 / 3)
    assert spread.certain == pytest.approx((2 / 3, 1.0))
    assert spread.n == 5
    panel = charts.ScorePanel("Training rows", spread)
    table = score_panels_table([panel, panel])
    assert table.groupby("rows")["share_other"].sum().tolist() == [pytest.approx(2.0)]
    figure = score_panels_figure([panel], dark=True, labels=("Other", "Class"))
    assert [trace.name for trace in figure.data] == ["Other", "Class"]


# --- words ----------------------------------------------------------------------------------------


def test_what_is_said_of_a_single_region_is_said_of_all_rows(texts):
    rng = np.random.default_rng(0)
    right = rng.random(2000) < 0.6
    frame = pd.DataFrame({"x": rng.normal(size=2000)})
    found = find_regions(confidence_target(np.full(2000, 0.9), right), frame, redraws=0)
    assert len(found.regions) == 1
    assert found.faulty
    texts(search_finding(found), "finding")
    assert found.standing_out == ()
    assert charts.standing_out_words(found) == ("none", "none")
    texts(tree_words(found), "tree")


def test_words_hold_their_numbers(search):
    assert f"{search.n_grow:,} rows" in tree_words(search)
    assert f"A tree of {len(search.regions)} regions" in tree_alt(search)
    share = sum(one.n for one in search.faulty) / search.n_judge
    count = f"{len(search.faulty)} of {sum(one.n > 0 for one in search.regions)}"
    assert charts.standing_out_words(search) == (count, f"{share:.0%}")


WIDE = np.array([0.01, 0.2, 0.5, 0.8, 0.99])


@pytest.mark.parametrize(
    ("slope", "offset"),
    [
        (-0.5, 0.0),
        (-0.5, 2.0),
        (0.05, 0.0),
        (0.0, -1.0),
        (0.5, 0.0),
        (0.86, 1.01),
        (0.86, -1.01),
        (1.0, 0.02),
        (1.0, 0.5),
        (1.0, -0.5),
        (2.0, 0.0),
        (1.3, 2.0),
        (1.3, -2.0),
    ],
)
def test_a_map_is_described_by_what_it_does(slope, offset, texts):
    one = RegionMap.of(0, "here", slope, offset, WIDE)
    described = charts.region_map_words(one, "yes", 0.25, ("few rows",))
    texts(described)
    assert f"(slope {formatted(slope, '.2f')}, offset {formatted(offset, '.2f')})" in described
    for stated in (0.2, 0.8):
        now = 100 / (1 + np.exp(-slope * np.log(stated / (1 - stated)) - offset))
        assert re.search(rf"\b{stated:.0%} becomes (?:{now:.0f}|{now:.1f})%", described)
    assert "borrowed" not in charts.region_map_words(one, "yes", 0.0, ())


@given(st.floats(-2, 3), st.floats(-3, 3), st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_the_side_that_is_named_is_that_of_the_ends_and_of_the_mean(slope, offset, stated):
    one = RegionMap.of(0, "here", slope, offset, np.array(stated))
    described = charts.region_map_words(one, "yes", 0.0, ())
    ends = [p if one.low <= p <= one.high else end for p, end in ((0.2, one.low), (0.8, one.high))]
    before = np.clip([*ends, one.mean], 0.001, 0.999)
    after = np.clip([*one.apply(before[:2]), one.mean_after], 0.001, 0.999)
    moved = np.log(after / (1 - after)) - np.log(before / (1 - before))
    if slope >= 0.1:
        assert ("stated too low:" in described) == (moved.max() > 0.1 and moved.min() >= -0.1)
        assert ("stated too high:" in described) == (moved.min() < -0.1 and moved.max() <= 0.1)
        assert ("Almost nothing changes" in described) == (abs(moved).max() <= 0.1)


def test_only_probabilities_that_a_region_states_are_named(texts):
    one = RegionMap.of(0, "here", 1.0, 1.0, np.array([0.01, 0.05]))
    texts(charts.region_map_words(one, "yes", 0.0, ()), "low ones")
    sure = RegionMap.of(0, "here", 5.0, 0.0, np.array([0.0, 1.0]))
    texts(charts.region_map_words(sure, "yes", 0.0, ()), "a steep map")
    alone = RegionMap.of(0, "here", 1.0, 1.0, np.array([0.5, 0.5]))
    texts(charts.region_map_words(alone, "yes", 0.0, ()), "one half alone")


def test_regions_of_pit_show_what_was_tested_and_their_number(pit_search):
    for one in pit_search.regions:
        said = region_caption(one, regression=True)
        kind = "within chance" if one.fault == "none" else one.fault
        assert said.startswith(f"{one.leaf + 1}: {kind}, ")
        assert ("PIT spread" in said) == (one.fault in ("too narrow", "too wide"))
        assert any(
            line.startswith("Spread of PIT: ") for line in region_hover(one, regression=True)
        )


def test_rules_in_the_tree_are_short_and_whole_on_hover():
    rng = np.random.default_rng(0)
    kind = rng.choice([f"country {i}" for i in range(20)], 6000)
    odd = np.isin(kind, [f"country {i}" for i in range(6)])
    frame = pd.DataFrame({"from": kind})
    found = find_regions(
        confidence_target(np.full(6000, 0.8), rng.random(6000) < np.where(odd, 0.4, 0.8)), frame
    )
    words = tree(found).data[1]
    assert any("or 4 more" in text.replace("<br>", " ") for text in words.text)
    assert any("or 3 more" in text for text in words.customdata)


def test_an_outline_has_no_two_texts_in_one_place_and_fits_a_phone(search):
    figure = tree(search, narrow=True)
    words, marks = figure.data[1], figure.data[-1]
    ends = [(y - 15, y + 15) for y in marks.y]  # a caption has two lines
    for x, y, text in zip(words.x, words.y, words.text, strict=True):
        lines = html.unescape(text).split("<br>")
        assert all(x + 6.4 * len(line) <= 290 for line in lines)
        ends.append((y, y + 15 * len(lines)))
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(sorted(ends)))
    assert all(text.count("<br>") == 1 for text in marks.text)
    np.testing.assert_array_equal(marks.customdata, tree(search).data[-1].customdata)


def test_captions_have_two_lines_only_where_the_page_may_end(search):
    figure = tree(search)
    marks = figure.data[-1]
    for depth, text in zip(marks.x, marks.text, strict=True):
        assert ("<br>" in text) == (depth == max(marks.x))


def test_the_legend_has_the_colour_that_the_marks_have(search):
    figure = tree(search)
    marks = figure.data[-1].marker.color
    for fault in ("over-confident", "under-confident"):
        mine = [marks[one.leaf] for one in search.regions if one.fault == fault]
        entry = next(t for t in figure.data if t.name and t.name.lower().startswith(fault))
        if len(set(mine)) == 1:
            assert entry.marker.color == mine[0]


def test_two_regions_are_both(search, texts):
    two = describe_regions(confidence_target([0.5] * 8, [0, 1] * 4), [0] * 4 + [1] * 4)
    texts(tree_words(two), "two")
    texts(tree_words(search), "more")
    assert f"all {len(search.regions)} of them" in tree_words(search)


def test_a_lift_that_may_be_chance_is_called_so(texts):
    y = [0, 0, 0, 0, 1, 1, 1, 1]
    pair = paired_auc([1, 3, 2, 6, 4, 5, 2, 7], [1, 2, 3, 4, 4, 5, 6, 7], y)
    assert "that may be chance" in charts.lift_words("A tree", pair)
    same = paired_auc([1, 3, 2, 6, 4, 5, 2, 7], [1, 3, 2, 6, 4, 5, 2, 7], y)
    texts(charts.lift_words("One map", same))
