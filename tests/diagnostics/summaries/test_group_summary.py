"""Declared groups from a summary are those of its rows, for any cut and order of the rows."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import ScoredSet
from kdcal_core.diagnostics import (
    column_regions,
    declared_divisions,
    describe_pit_regions,
    describe_regions,
    join_searches,
    measure_groups,
)
from kdcal_core.diagnostics.regions.shift import shift_of_cells, shift_test
from kdcal_core.diagnostics.summaries import (
    GroupSummary,
    RegressionSummary,
    class_groups,
    group_summary,
    pit_groups,
    summarise,
    summarise_regression,
    summary_group_regions,
    summary_groups,
    summary_pit_group_search,
    summary_pit_groups,
)
from kdcal_core.diagnostics.summaries.group_summary import MOST_GROUPS, MOST_VALUES
from kdcal_core.diagnostics.summaries.score_cells import ScoreCells
from kdcal_core.diagnostics.summaries.score_grid import cell_index, upper_ends
from kdcal_core.distributions import Normal
from kdcal_core.errors import InputError
from kdcal_core.store import load, save

N = 4000


def frame_of(n: int = N) -> pd.DataFrame:
    """Text with rare and missing values, truth values, few and many numbers."""
    rng = np.random.default_rng(1)
    ward = rng.choice([*"ABCDEFGHIJKLMNOP", "=1+1", "x, y"], n, p=np.array([*range(1, 19)]) / 171)
    age = rng.integers(18, 90, n).astype(float)
    return pd.DataFrame(
        {
            "ward": np.where(rng.random(n) < 0.02, None, ward),
            "old": rng.random(n) < 0.3,
            "stage": rng.integers(0, 3, n),
            "age": np.where(rng.random(n) < 0.01, np.nan, age),
        }
    )


def scored_of(k: int, n: int = N, power: float = 1.6) -> ScoredSet:
    rng = np.random.default_rng(3)
    true = rng.dirichlet(np.full(k, 0.7), n)
    said = true**power
    said /= said.sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    said[: n // 20] = np.eye(k)[y[: n // 20]]
    return ScoredSet(said, y, tuple("abcd"[:k]), "", "calibration")


def counted(frame: pd.DataFrame, scored: ScoredSet, event: int | None):
    whole = summarise(scored.proba, scored.y, scored.classes)
    return replace(whole, groups=class_groups(frame, scored, event))


COLUMNS = [["ward"], ["age"], ["old", "stage"], ["ward", "old", "stage"], ["old", "age"]]


@pytest.mark.parametrize("columns", COLUMNS)
def test_divisions_are_those_of_the_rows(columns):
    frame = frame_of()[columns]
    found = pit_groups(frame, np.full(N, 0.5))
    wanted = declared_divisions(frame)
    got = found.divisions()
    assert [names for _, names in got] == [names for _, names in wanted]
    for (label, names), (rows, _) in zip(got, wanted, strict=True):
        count = np.bincount(label, found.rows, len(names))
        assert count.tolist() == np.bincount(rows, minlength=len(names)).tolist()


@pytest.mark.parametrize("seed", range(30))
def test_cuts_of_counted_numbers_are_those_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, rng.integers(6, 60), rng.integers(5, 400)) / 7.0
    value, count = np.unique(x, return_counts=True)
    order = rng.permutation(len(value))
    labels, names = column_regions(value[order], counts=count[order])
    rows, wanted = column_regions(x)
    assert names == wanted
    assert dict(zip(value[order], labels, strict=True)) == dict(zip(x, rows, strict=True))


@pytest.mark.parametrize("columns", [["ward"], ["ward", "old", "stage"], ["old", "age"]])
@pytest.mark.parametrize(("k", "event"), [(2, 1), (2, 0), (2, None), (4, None)])
def test_any_cut_and_order_gives_the_same_bytes(columns, k, event, tmp_path: Path):
    frame, scored, rng = frame_of()[columns], scored_of(k), np.random.default_rng(0)
    whole = class_groups(frame, scored, event)
    for cuts in ([1, 2, 3, 3990], [700, 2000], rng.integers(0, N, 20)):
        ends = [0, *sorted({int(one) for one in cuts if 0 < one < N}), N]
        parts = [
            class_groups(frame[a:b], scored.only(np.arange(a, b)), event) for a, b in pairwise(ends)
        ]
        total = parts[0]
        for part in (parts[at] for at in rng.permutation(np.arange(1, len(parts)))):
            total = part + total if rng.random() < 0.5 else total + part
        assert total.digest == whole.digest
        assert (total.columns[0].words, total.rows.tolist()) == (
            whole.columns[0].words, whole.rows.tolist(),
        )  # fmt: skip
    save(tmp_path, whole)
    assert load(tmp_path, GroupSummary).digest == whole.digest


@pytest.mark.parametrize(
    ("k", "event", "level"),
    [(2, 1, 0.95), (2, 0, 0.95), (2, None, 0.9999), (4, None, 0.95)],
)
def test_gaps_and_intervals_are_those_of_the_rows(k, event, level):
    frame, scored = frame_of()[["ward", "old", "stage"]], scored_of(k)
    found = summary_group_regions(counted(frame, scored, event), event, level=level)
    target = "confidence" if event is None else event
    for regions, (labels, names) in zip(found, declared_divisions(frame), strict=True):
        wanted = describe_regions(scored, labels, names, target=target, level=level).regions
        assert len(wanted) > 1
        for ours, theirs in zip(regions, wanted, strict=True):
            assert (ours.words, ours.n, ours.fault) == (theirs.words, theirs.n, theirs.fault)
            assert ours.gap.value == pytest.approx(theirs.gap.value, abs=1e-12)
            assert ours.stated == pytest.approx(theirs.stated, abs=1e-12)
            assert ours.observed.value == pytest.approx(theirs.observed.value, abs=1e-12)
            near = 1e-5 * (theirs.gap.high - theirs.gap.low)  # accuracy of the roots: 1e-6
            assert ours.gap.low == pytest.approx(theirs.gap.low, abs=near)
            assert ours.gap.high == pytest.approx(theirs.gap.high, abs=near)
            assert ours.p_value == pytest.approx(theirs.p_value, rel=1e-4, abs=1e-12)
            assert ours.minimum_detectable == pytest.approx(theirs.minimum_detectable, rel=1e-5)


def test_stretches_stay_in_order_where_a_part_of_the_rows_has_not_all() -> None:
    words = ["5 to 9", "10 to 40", "200 to 300"]
    code = np.repeat([0, 1, 2], 40)
    frame = pd.DataFrame({"age": pd.Categorical.from_codes(code, words, ordered=True)})
    rows = ScoredSet(np.full((120, 2), 0.5), code % 2, ("no", "yes"), "", "x")

    def part(some: slice) -> GroupSummary:
        kept = replace(rows, proba=rows.proba[some], y=rows.y[some])
        return class_groups(frame.iloc[some], kept, 1)

    found = part(slice(0, 60)) + part(slice(60, None))
    assert (found.columns[0].words, found.columns[0].ordered) == (tuple(words), True)
    assert found.columns[0].at(np.arange(3)).cat.categories.tolist() == words
    assert found.rows.tolist() == [40, 40, 40]


def test_categories_count_as_their_words_and_unused_ones_not_at_all():
    words = pd.DataFrame({"ward": ["B", None, "A", "B"]})
    coded = words.astype(pd.CategoricalDtype(["A", "none", "B"]))
    pit = np.array([0.1, 0.2, 0.3, 0.4])
    assert pit_groups(coded, pit).digest == pit_groups(words, pit).digest


@pytest.mark.parametrize("n_cores", [1, 3])
def test_neither_the_cores_nor_what_is_counted_at_once_changes_a_byte(monkeypatch, n_cores):
    rng = np.random.default_rng(3)
    n = 60_000
    rows = ScoredSet(rng.dirichlet([1, 1, 1], n), rng.integers(0, 3, n), tuple("abc"), "", "x")
    frame = pd.DataFrame({"ward": pd.Categorical.from_codes(rng.integers(-1, 2, n), ["A", "B"])})
    whole = class_groups(frame, rows, every_class=True)
    monkeypatch.setattr(group_summary, "_MANY_ROWS", 1_000)
    monkeypatch.setattr(group_summary, "_MOST_CELLS", 50_000)
    monkeypatch.setattr(group_summary, "cores", lambda: n_cores)
    found = class_groups(frame, rows, every_class=True)
    assert found.digest == whole.digest
    assert found.rows.sum() == n


@pytest.mark.parametrize("n", [15, 60_000])
def test_many_rows_are_counted_as_few(n):
    """In one pass over all cells, not row by row; at the ends of cells too."""
    rng = np.random.default_rng(n)
    ends = upper_ends()
    score = np.where(rng.random(n) < 0.3, rng.choice(ends, n), rng.random(n))
    hit = (rng.random(n) < score).astype(np.int64)
    rows = ScoredSet(np.column_stack([1.0 - score, score]), hit, ("no", "yes"), "", "x")
    frame = pd.DataFrame({"ward": rng.choice(["A", "B"], n)})
    whole = class_groups(frame, rows, 1)
    cut = [slice(a, a + 7_000) for a in range(0, n, 7_000)]
    parts = [
        class_groups(frame[one], ScoredSet(rows.proba[one], hit[one], ("no", "yes"), "", "x"), 1)
        for one in cut
    ]
    total = parts[0]
    for part in parts[1:]:
        total = part + total
    assert total.digest == whole.digest
    assert whole.count.tobytes() == total.count.tobytes()


@pytest.mark.parametrize(("times", "share"), [(1.0, 1e-6), (20.0, 7e-5)])
@pytest.mark.parametrize("scale", [1e-9, 1e-5, 1e-3, 0.004, 0.02, 0.5])
def test_what_cells_hide_of_an_interval_is_bounded(scale, times, share):
    """At small scores, where cells are widest beside the scores, and in the middle."""
    rng = np.random.default_rng(0)
    score = np.clip(scale * rng.uniform(0.5, 2.0, 20_000), 0.0, 1.0)
    hit = (rng.random(20_000) < np.minimum(times * score, 0.9)).astype(float)
    hit[0] = 1.0
    dense = np.zeros((len(upper_ends()), 4), np.int64)
    found = pit_groups(pd.DataFrame({"all": np.ones(20_000)}), score)
    dense[found.place] = found.count
    np.add.at(dense[:, 1], cell_index(score), hit.astype(np.int64))
    counts = ScoreCells.of_counts(dense)
    rows = shift_test(score, hit, np.ones(20_000), 0.95, 0.05)
    cells = shift_of_cells(counts.score, counts.count, counts.hits, 0.95, 0.05)
    near = (share + 2e-6) * (rows.high - rows.low)  # with the accuracy of the roots
    assert abs(cells.low - rows.low) < near
    assert abs(cells.high - rows.high) < near


@pytest.mark.parametrize(("k", "event"), [(2, 1), (2, 0), (2, None), (4, None)])
def test_the_table_is_that_of_the_rows(k, event):
    frame, scored = frame_of()[["old", "stage"]], scored_of(k)
    found = summary_groups(counted(frame, scored, event), event)
    wanted = measure_groups(scored, declared_divisions(frame), event=event)
    assert (found.target, found.level) == (wanted.target, wanted.level)
    every = zip((*found.groups, found.overall), (*wanted.groups, wanted.overall), strict=True)
    for ours, theirs in every:
        assert (ours.name, ours.region.n, ours.region.fault) == (
            theirs.name, theirs.region.n, theirs.region.fault,
        )  # fmt: skip
        assert ours.region.adjusted_p == pytest.approx(theirs.region.adjusted_p, rel=1e-4, abs=1e-9)
        for part in ("gap", "rate", "error", "area"):
            a, b = getattr(ours, part), getattr(theirs, part)
            assert (a.name if part != "area" else a.label, a.n, a.level) == (
                b.name if part != "area" else b.label, b.n, b.level,
            )  # fmt: skip
            if part == "area" and k > 2:
                assert np.isnan(a.value)
                assert "needs the rows" in a.interval
                continue
            near = 1e-3 if part == "area" else 1e-12
            assert a.value == pytest.approx(b.value, abs=near)
            near = {"error": 0.05, "area": 0.05}.get(part, 1e-5) * (b.high - b.low) + 1e-3 * (
                part == "area"
            )
            assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=near)
        if event is not None:
            assert ours.jeffreys == pytest.approx(theirs.jeffreys, rel=1e-6, abs=1e-12)


def regression_of(columns: list[str]) -> tuple[RegressionSummary, np.ndarray, pd.DataFrame]:
    rng = np.random.default_rng(7)
    mean, std = rng.normal(size=N), rng.uniform(0.5, 2.0, N)
    y = mean + 1.3 * std * rng.normal(size=N) + 0.4 * frame_of()["old"]
    frame = frame_of()[columns]
    parts = [
        summarise_regression(Normal(mean[a:b], std[a:b]), y[a:b], first=a, groups=frame[a:b])
        for a, b in ((2000, N), (0, 1), (1, 2000))
    ]
    return parts[0] + parts[1] + parts[2], Normal(mean, std).cdf(y), frame


@pytest.mark.parametrize("columns", [["ward"], ["old", "stage"], ["ward", "age"]])
def test_groups_of_a_regression_are_those_of_the_rows(columns):
    if columns == ["ward", "age"]:
        with pytest.raises(InputError, match="combinations"):
            regression_of(columns)
        return
    summary, pit, frame = regression_of(columns)
    divisions = declared_divisions(frame)
    wanted = [describe_pit_regions(pit, *one) for one in divisions]
    looks = sum(len(names) for _, names in divisions)
    joined = join_searches([describe_pit_regions(pit, *one, looks=looks) for one in divisions])
    found = summary_pit_groups(summary)
    assert len(found) == len(wanted)
    for a, b in [*zip(found, wanted, strict=True), (summary_pit_group_search(summary), joined)]:
        assert (a.n_judge, a.regression, a.target) == (b.n_judge, b.regression, b.target)
        for ours, theirs in zip(a.regions, b.regions, strict=True):
            assert (ours.words, ours.n, ours.fault) == (theirs.words, theirs.n, theirs.fault)
            assert ours.gap.value == pytest.approx(theirs.gap.value, abs=1e-12)
            assert (ours.gap.low, ours.gap.high) == pytest.approx(
                (theirs.gap.low, theirs.gap.high), abs=1e-8
            )
            assert (ours.spread.value, ours.spread.low, ours.spread.high) == pytest.approx(
                (theirs.spread.value, theirs.spread.low, theirs.spread.high), abs=1e-7
            )
            assert ours.p_value == pytest.approx(theirs.p_value, rel=0.02, abs=1e-9)
            assert ours.minimum_detectable == pytest.approx(theirs.minimum_detectable, rel=1e-9)


def test_values_of_another_type_are_the_same_group():
    """A part with missing integers holds floats, one without any truth value nullable ones."""
    parts = [
        pit_groups(pd.DataFrame({"x": column}), np.full(len(column), 0.5))
        for column in (
            pd.Series([1, 2]), pd.Series([1.0, np.nan, -0.0]), pd.Series([0, 2]),
            pd.Series([np.nan, np.nan]),
        )
    ]  # fmt: skip
    total = parts[3] + parts[0] + parts[1] + parts[2]
    assert (total.columns[0].numbers.tolist(), total.rows.tolist()) == ([0, 1, 2], [3, 2, 2, 2])
    flags = [
        pit_groups(pd.DataFrame({"x": column}), np.full(len(column), 0.5))
        for column in (pd.Series([True, False]), pd.Series([True, None], dtype="boolean"))
    ]
    assert (flags[0] + flags[1]).columns[0].words == ("False", "True")
    words = pd.DataFrame({"x": pd.Series(["b", "a", "b"], dtype="category")})
    plain = pd.DataFrame({"x": ["b", "a", "b"]})
    pit = np.array([0.1, 0.2, 0.3])
    assert pit_groups(words, pit).digest == pit_groups(plain, pit).digest


def refused(column: pd.Series) -> InputError:
    with pytest.raises(InputError) as found:
        pit_groups(pd.DataFrame({"x": column}), np.full(len(column), 0.5))
    return found.value


def test_what_cannot_be_counted_is_refused_with_its_column():
    rng = np.random.default_rng(0)
    error = refused(pd.Series(rng.random(MOST_VALUES + 1)))
    assert (error.column, "ranges of a number" in error.fix) == ("x", True)
    assert "dates" in refused(pd.Series(pd.to_datetime(["2026-01-01"]))).what
    halves = [
        pit_groups(pd.DataFrame({"x": np.arange(a, a + 150)}), np.full(150, 0.5)) for a in (0, 150)
    ]
    with pytest.raises(InputError, match="more than 200 different values") as found:
        halves[0] + halves[1]
    assert found.value.column == "x"
    text = pit_groups(pd.DataFrame({"x": ["1"]}), np.array([0.5]))
    with pytest.raises(InputError, match="text in one part") as found:
        halves[0] + text
    assert found.value.column == "x"
    n = MOST_GROUPS + 1
    wide = pd.DataFrame({"a": np.arange(n) % 26, "b": np.arange(n) // 26})
    with pytest.raises(InputError, match="combinations of values") as found:
        pit_groups(wide, np.full(n, 0.5))
    assert found.value.column == "a"
    other = pit_groups(pd.DataFrame({"y": [1.0]}), np.array([0.5]))
    with pytest.raises(InputError, match="different groups"):
        text + other
    with pytest.raises(InputError, match="damaged"):
        replace(text, count=-text.count)
    scored = scored_of(2, 40)
    plain = summarise(scored.proba, scored.y, scored.classes)
    with pytest.raises(InputError, match="no groups"):
        summary_groups(plain)
    grouped = replace(plain, groups=class_groups(frame_of(40)[["old"]], scored, 1))
    with pytest.raises(InputError, match="different groups"):
        plain + grouped
    with pytest.raises(InputError, match="another event"):
        summary_groups(grouped)
    assert grouped.digest == plain.digest
