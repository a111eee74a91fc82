"""The order of rows in time, of a folder: the numbers of the same rows in one table."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kdcal_core import diagnostics as of_rows
from kdcal_core.checks import Evidence, SummaryEvidence, measure_checks
from kdcal_core.data import Roles, ScoredSet, row_dependence
from kdcal_core.data.parquet_folder import PartedTable, parquet_files
from kdcal_core.data.times import dates_of
from kdcal_core.diagnostics import Estimate
from kdcal_core.diagnostics.summaries import (
    ClassSummary,
    RegressionSummary,
    Summary,
    group_times,
    judged_rows,
    summary_bias,
    summary_brier,
    summary_calibration_error,
    summary_estimates,
    summary_event_estimates,
    summary_gap,
    summary_groups,
    summary_halves,
    summary_line,
    summary_range,
    summary_regression_estimates,
    summary_scale,
    summary_tiles,
)
from kdcal_core.diagnostics.summaries.by_time import MOST_TIMES, TimeTable
from kdcal_core.diagnostics.summaries.cluster_blocks import RowClusters
from kdcal_core.diagnostics.summaries.group_times import GroupTimes
from kdcal_core.distributions import Normal, RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.evaluation import regression_scores
from kdcal_core.review.folder_summary import FolderSize, summarise_table, summary_of_folder
from kdcal_core.review.folder_tallies import DeclaredGroups
from kdcal_core.store import load, save

N, DAYS = 6000, 700  # more days than the stretches into which they are put together
CLASSES = ("no", "yes")
ROLES = {
    "classification": Roles(target="y", outputs=(("no", "p_no"), ("yes", "p_yes"))),
    "regression": Roles(
        task="regression",
        target="y",
        family="normal",
        parameters=(("mean", "mean"), ("std", "std")),
    ),
}


def rows(task: str, days: int = DAYS) -> pd.DataFrame:
    """Late rows are worse, days share noise, and some rows are certain."""
    rng = np.random.default_rng(3)
    day = rng.integers(0, days, N)
    moved = 0.3 * rng.normal(size=days)[day] + 0.8 * (day >= days - 60)
    frame = pd.DataFrame(
        {
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(day, unit="D"),
            "w": rng.integers(1, 6, N),
        }
    )
    if task == "regression":
        mean = rng.normal(size=N)
        y = mean + moved + rng.normal(size=N)
        return frame.assign(mean=mean, std=1.0, y=y)
    odds = np.where(rng.random(N) < 0.03, -60.0, rng.normal(-1.0, 1.0, N))
    p = 1.0 / (1.0 + np.exp(-odds))
    y = np.where(rng.random(N) < 1.0 / (1.0 + np.exp(-odds - moved)), "yes", "no")
    return frame.assign(p_no=1.0 - p, p_yes=p, y=y)


def width(estimate: Estimate) -> float:
    return estimate.high - estimate.low


def in_memory(frame: pd.DataFrame, task: str, roles: Roles, event: int | None) -> Evidence:
    weight = frame[roles.weight].to_numpy(float) if roles.weight else None
    together = row_dependence(frame, roles)
    if task == "regression":
        forecasts = Normal(frame["mean"].to_numpy(), 1.0)
        found = RegressionSet(forecasts, frame["y"].to_numpy(), "", "evaluation")
        return Evidence(
            replace(found, weight=weight, dependence=together), times=lambda: frame["day"]
        )
    proba = frame[["p_no", "p_yes"]].to_numpy()
    y = (frame["y"] == "yes").to_numpy().astype(np.int64)
    scored = ScoredSet(proba, y, CLASSES, "", "evaluation")
    return Evidence(
        replace(scored, weight=weight, dependence=together),
        event=event,
        times=lambda: frame["day"],
    )


def in_files(
    frame: pd.DataFrame,
    roles: Roles,
    folder: Path,
    event: int | None = None,
    columns: tuple[str, ...] = (),
    **more: int,
) -> Summary:
    folder.mkdir()
    for at, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(folder / f"{at}.parquet", row_group_size=900)
    table = PartedTable(parquet_files(folder))
    classes = CLASSES if roles.task == "classification" else ()
    return summarise_table(table, roles, classes, groups=DeclaredGroups(columns, event), **more)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("task", "event"), [("classification", 1), ("classification", None), ("regression", None)]
)
def test_the_latest_rows_have_the_numbers_of_one_table(
    task: str, event: int | None, weighted: bool, tmp_path: Path
) -> None:
    frame = rows(task)
    roles = replace(ROLES[task], time="day", weight="w" if weighted else None)
    code = "KC026" if task == "regression" else "KC012"
    (theirs,) = measure_checks(in_memory(frame, task, roles, event), [code]).checks
    mixed = frame.sample(frac=1.0, random_state=1)
    found = in_files(mixed, roles, tmp_path / "mixed", event)
    (tmp_path / "kept").mkdir()
    save(tmp_path / "kept", found)
    kept = load(tmp_path / "kept", type(found))
    (ours,) = measure_checks(SummaryEvidence(judged_rows(kept), event), [code]).checks
    assert len(ours.parts) == len(theirs.parts) == (8 if task == "regression" else 4)
    for one, other in zip(ours.parts, theirs.parts, strict=True):
        assert (one.key, one.name) == (other.key, other.name)
        assert replace(one.estimate, value=0.0, low=0.0, high=0.0) == replace(
            other.estimate, value=0.0, low=0.0, high=0.0
        )
        for mine, known in zip((*one.low, *one.high), (*other.low, *other.high), strict=True):
            assert mine == pytest.approx(known, abs=1e-9)
    assert any(part.low[0] > 0.0 for part in ours.parts) or (task, event) == (
        "classification",
        None,
    )
    again = in_files(frame, roles, tmp_path / "again", event, threads=1)
    assert found.by_time is not None
    assert again.by_time is not None
    for one, other in zip(
        (*found.by_time.arrays, found.by_time.sums),
        (*again.by_time.arrays, again.by_time.sums),
        strict=True,
    ):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("event", [1, None])
def test_the_gap_allows_for_near_times_as_in_one_table(event: int | None, tmp_path: Path) -> None:
    frame, roles = rows("classification"), replace(ROLES["classification"], time="day")
    ((theirs,),) = (
        one.parts
        for one in measure_checks(
            in_memory(frame, "classification", roles, event), ["KC002"]
        ).checks
    )
    found = in_files(frame, roles, tmp_path / "files", event)
    ours = summary_gap(found, event)  # type: ignore[arg-type]
    known = theirs.estimate
    assert ours.value == pytest.approx(known.value, abs=1e-9)
    assert ours.high - ours.low == pytest.approx(known.high - known.low, rel=1e-3)
    days = replace(roles, time=None, cluster="day")
    other = summary_gap(in_files(frame, days, tmp_path / "days", event), event)  # type: ignore[arg-type]
    assert width(ours) > 1.03 * width(other)


def pairs(
    frame: pd.DataFrame, folder: Path, task: str, **more: Any
) -> list[tuple[Estimate, Estimate]]:
    """Estimates of the rows in memory, and of the same rows in files."""
    roles = replace(ROLES[task], time="day", **more)
    found, held = (
        judged_rows(in_files(frame, roles, folder, 1)),
        in_memory(frame, task, roles, 1).rows,
    )
    if isinstance(found, RegressionSummary):
        y, said = frame["y"].to_numpy(), Normal(frame["mean"].to_numpy(), 1.0)
        scale = summary_scale(found)
        known = regression_scores(said, y, weight=held.design, scale=scale).rows
        ours = summary_regression_estimates(found)
        bias = of_rows.standardised_bias(said.mean(), y, weight=held.design)
        keys = ("crps", "log_score", "mse", "qce", "wasserstein", "coverage95", "width95", "smis95")
        return [(bias, summary_bias(found)), *((known[key], ours[key]) for key in keys)]
    assert isinstance(found, ClassSummary)
    given = {"sample_weight": held.design}
    p, y = held.proba[:, 1], held.y
    return [
        *zip(of_rows.event_summary(held, 1), summary_event_estimates(found, 1), strict=True),
        *zip(of_rows.summary(held), summary_tiles(found), strict=True),
        (of_rows.brier(held.proba, y, **given), summary_brier(found)),
        (of_rows.calibration_intercept(p, y, **given), summary_line(found, 1)[0]),
        (of_rows.calibration_slope(p, y, **given), summary_line(found, 1)[1]),
        (of_rows.score_range(p, **given), summary_range(found, 1)),
    ]


@pytest.mark.parametrize(
    ("task", "weighted", "days"),
    [
        ("classification", False, DAYS),
        ("classification", True, DAYS),
        ("classification", False, 3 * DAYS),
        ("regression", False, DAYS),
        ("regression", True, 3 * DAYS),
    ],
)
def test_all_intervals_allow_for_near_times_as_in_one_table(
    task: str, weighted: bool, days: int, tmp_path: Path
) -> None:
    frame = rows(task, days).sample(frac=1.0, random_state=2)
    more = {"weight": "w"} if weighted else {}
    for theirs, ours in pairs(frame, tmp_path / "files", task, **more):
        # of more times than blocks, stretches of them are counted
        near = 0.03 if days == DAYS and not weighted else 0.07
        assert ours.value == pytest.approx(theirs.value, abs=2e-3), ours.name
        assert width(ours) == pytest.approx(width(theirs), rel=near, abs=1e-6), ours.name


def test_groups_and_classes_allow_for_near_times_too(tmp_path: Path) -> None:
    frame = rows("classification")
    frame["place"] = np.random.default_rng(4).choice(["north", "south"], N)
    roles = replace(ROLES["classification"], time="day")
    held = in_memory(frame, "classification", roles, 1).rows
    found = judged_rows(in_files(frame, roles, tmp_path / "files", 1, columns=("place",)))
    assert isinstance(found, ClassSummary)
    divisions = of_rows.declared_divisions(frame[["place"]])
    known = of_rows.measure_groups(held, divisions, event=1)
    for one, other in zip(known.groups, summary_groups(found, 1).groups, strict=True):
        assert width(other.gap) == pytest.approx(width(one.gap), rel=0.1)
        assert width(other.area) == pytest.approx(width(one.area), rel=0.1)
    theirs = of_rows.calibration_error(held.proba, held.y, kind="class", sample_weight=held.design)
    ours = summary_calibration_error(found, kind="class")
    assert width(ours) == pytest.approx(width(theirs), rel=0.1)
    parts = of_rows.brier_decomposition(held.proba, held.y, sample_weight=held.design)
    ours_by_name = {one.name.split(",")[0]: one for one in summary_estimates(found)}
    for part in parts:
        assert width(ours_by_name[part.name]) == pytest.approx(width(part), rel=0.25), part.name
    (first, second), (one, other) = (
        of_rows.two_halves(held.proba, held.y, label=1, sample_weight=held.design),
        summary_halves(found, label=1),
    )
    for known_half, half in ((first, one), (second, other)):
        assert half.count.sum() == pytest.approx(known_half.count.sum(), rel=0.02)


@pytest.mark.parametrize(
    ("task", "event"), [("classification", 1), ("classification", None), ("regression", None)]
)
def test_the_latest_rows_of_groups_have_the_numbers_of_one_table(
    task: str, event: int | None, tmp_path: Path
) -> None:
    frame = rows(task, 365)
    rng = np.random.default_rng(5)
    place = rng.choice(["north", "south", "west"], N)
    late = (frame["day"] >= frame["day"].max() - pd.Timedelta(90, "D")) & (place == "west")
    fixed = rng.normal(3.0, 1.0, N) if task == "regression" else "yes"
    frame = frame.assign(place=place, age=rng.integers(20, 60, N))
    frame["y"] = np.where(late, fixed, frame["y"])
    roles, names = replace(ROLES[task], time="day", weight="w"), ["place", "age"]
    held = replace(in_memory(frame, task, roles, event), groups=lambda: frame[names])
    code = "KC026" if task == "regression" else "KC012"
    (theirs,) = measure_checks(held, [code]).checks
    mixed = frame.sample(frac=1.0, random_state=1)
    found, again = (
        in_files(
            one, roles, tmp_path / str(len(one) + threads), event, tuple(names), threads=threads
        )
        for one, threads in ((mixed, 2), (frame, 1))
    )
    assert found.groups is not None
    assert again.groups is not None
    assert found.groups.digest == again.groups.digest
    (ours,) = measure_checks(SummaryEvidence(judged_rows(found), event), [code]).checks
    assert any("west" in part.name for part in theirs.parts), [p.name for p in theirs.parts]
    assert [(one.key, one.name) for one in ours.parts] == [
        (one.key, one.name) for one in theirs.parts
    ]
    for one, other in zip(ours.parts, theirs.parts, strict=True):
        assert one.estimate.interval == other.estimate.interval
        for mine, known in zip((*one.low, *one.high), (*other.low, *other.high), strict=True):
            assert mine == pytest.approx(known, abs=1e-9)


def test_neighbouring_times_of_groups_are_merged_where_pairs_are_too_many(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rng = np.random.default_rng(8)
    group, day = rng.integers(0, 5, N), rng.integers(0, DAYS, N)
    seen, stated = rng.integers(0, 2, N).astype(float), rng.random(N)
    asked = (seen, stated, stated * (1.0 - stated))

    def of(some: Any, days: Any = day) -> GroupTimes:
        values = [tuple(one[some] for one in asked)]
        return GroupTimes.of(group[some], RowClusters(days[some], "day", n_times=DAYS), values)

    most = 500  # of some 2,900 pairs; eight days together make 88 of each group, or 440
    monkeypatch.setattr(group_times, "MOST_TIMES", most)
    expected = of(slice(None), day - day % 8)
    whole = of(slice(None))
    assert whole.level == 3
    for parts in (2, 40):
        mixed = np.array_split(rng.permutation(N), parts)
        found = sum((of(some) for some in mixed[1:]), of(mixed[0]))
        for one in (whole, found):
            assert one.table is not None
            assert expected.table is not None
            assert one.level == 3
            assert one.table.times.tolist() == expected.table.times.tolist()
            assert one.table.sums.tobytes() == expected.table.sums.tobytes()
    monkeypatch.setattr(group_times, "MOST_TIMES", 4)  # fewer than groups
    assert of(slice(None)).table is None
    assert (of(slice(0, 3)) + of(slice(3, N))).table is None

    frame, roles = rows("classification", 365), replace(ROLES["classification"], time="day")
    place = rng.choice(["north", "south", "west"], N)
    late = (frame["day"] >= frame["day"].max() - pd.Timedelta(90, "D")) & (place == "west")
    frame = frame.assign(place=place, y=np.where(late, "yes", frame["y"]))
    monkeypatch.setattr(group_times, "MOST_TIMES", most)
    found_in_files = in_files(frame, roles, tmp_path / "files", 1, ("place",))
    (ours,) = measure_checks(SummaryEvidence(judged_rows(found_in_files), 1), ["KC012"]).checks
    assert any("west" in part.name for part in ours.parts), [part.name for part in ours.parts]


def test_dates_are_read_as_the_rows_of_all_files_say(tmp_path: Path) -> None:
    frame, roles = rows("classification"), replace(ROLES["classification"], time="day")
    frame = frame.sort_values("day", ignore_index=True)
    expected = in_files(frame, roles, tmp_path / "dates", 1)
    for name, form in (("american", "%m/%d/%Y"), ("british", "%d/%m/%Y")):
        words = frame.assign(day=frame["day"].dt.strftime(form))
        assert dates_of(words["day"].iloc[:80]).isna().all()  # of these either may be meant
        found = in_files(words, roles, tmp_path / name, 1)
        assert found.digest == expected.digest
    early = words.iloc[:80]
    with pytest.raises(InputError, match=r"no number and no date.*parquet, row group"):
        in_files(early, roles, tmp_path / "either", 1)
    with pytest.raises(InputError, match="no number and no date"):
        row_dependence(early, roles)


def test_workers_find_the_same_times(tmp_path: Path) -> None:
    frame, roles = rows("classification"), replace(ROLES["classification"], time="day")
    words = frame.assign(day=frame["day"].dt.strftime("%m/%d/%Y"))
    expected = in_files(words, roles, tmp_path / "files", 1, threads=1)
    (tmp_path / "kept").mkdir()
    size = FolderSize(9, (N // 3,) * 3)
    with ThreadPoolExecutor(2) as executor:
        found = summary_of_folder(
            tmp_path / "files",
            roles,
            CLASSES,
            tmp_path / "kept",
            groups=DeclaredGroups((), 1),
            size=size,
            executor=executor,
        )
    assert found.digest == expected.digest


def test_words_and_numbers_are_times_too_in_whatever_file(tmp_path: Path) -> None:
    frame, roles = rows("classification"), replace(ROLES["classification"], time="day")
    dates = in_files(frame, roles, tmp_path / "dates", 1).by_time
    words = frame.assign(day=frame["day"].dt.strftime("%d.%m.%Y"))
    assert dates is not None
    zoned = frame.assign(day=frame["day"].dt.tz_localize("UTC"))
    kinds = frame.assign(day=frame["day"].astype("category"))
    for name, same in (("words", words), ("zone", zoned), ("kinds", kinds)):
        found = in_files(same, roles, tmp_path / name, 1).by_time
        assert found is not None
        assert found.times.tolist() == dates.times.tolist()
    number = frame["day"].rank(method="dense")
    found = in_files(frame.assign(day=number), roles, tmp_path / "numbers", 1).by_time
    assert found is not None
    assert found.column_of_times.tolist() == [*range(1, len(dates.times) + 1)]
    (tmp_path / "mixed").mkdir()
    words.to_parquet(tmp_path / "mixed" / "a.parquet")
    words.assign(day=number.astype(str)).to_parquet(tmp_path / "mixed" / "b.parquet")
    with pytest.raises(InputError, match=r"is no number and no date.*b\.parquet, row group 1"):
        summarise_table(PartedTable(parquet_files(tmp_path / "mixed")), roles, CLASSES)
    for other in (words.assign(day=number), frame):
        other.to_parquet(tmp_path / "mixed" / "b.parquet")
        with pytest.raises(InputError, match="numbers in some files and dates in others"):
            summarise_table(PartedTable(parquet_files(tmp_path / "mixed")), roles, CLASSES)


def test_a_faulty_time_is_named_with_its_place(tmp_path: Path) -> None:
    frame, roles = rows("classification"), replace(ROLES["classification"], time="day")
    named = r"The time is missing.*2\.parquet, row group 3', column 'day', row 2,000"
    with pytest.raises(InputError, match=named):
        in_files(frame.assign(day=frame["day"].where(frame.index < N - 1)), roles, tmp_path / "a")


def test_too_many_times_are_refused_with_the_fix() -> None:
    n = MOST_TIMES
    half = np.full(n, 0.5)
    one, other = (TimeTable.of(np.arange(n) + at, "second", [(half,) * 3]) for at in (0.0, 1.0))
    with pytest.raises(InputError, match=r"more than 100,000.*'second'.*a column of days or hours"):
        one + other
    assert (one + one).rows.tolist() == [2] * n


def test_sums_of_heavy_rows_are_exact_and_keep_their_order_out() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    when, weight = rng.integers(0, 3, n).astype(float), rng.integers(1, 2**22, n)
    seen, stated = rng.integers(0, 2, n).astype(float), rng.random(n) ** 20
    asked = (seen, stated, stated * (1.0 - stated))
    whole = TimeTable.of(when, "day", [asked], weight)
    mixed = rng.permutation(n)
    parts = [
        TimeTable.of(when[some], "day", [tuple(one[some] for one in asked)], weight[some])
        for some in np.array_split(mixed, 7)
    ]
    total = sum(parts[1:], parts[0])
    assert total.sums.tobytes() == whole.sums.tobytes()
    found, exact = whole.sums_of(0), [int(one) for one in weight]
    assert whole.squares.tolist() == [
        sum(one * one for one, at in zip(exact, when, strict=True) if at == day) for day in range(3)
    ]
    gap, w = seen - stated, weight.astype(float)
    for name, each in (
        ("stated", w * stated),
        ("root", w * asked[2] ** 0.5),
        ("own", w**2 * asked[2]),
        ("gap", w**2 * gap),
        ("spread", w**2 * gap**2),
    ):
        known = [float(each[when == day].sum()) for day in range(3)]
        assert getattr(found, name) == pytest.approx(known, rel=1e-11), name
