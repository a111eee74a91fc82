"""Sets of very many rows: pages take their summary, which says what the rows say."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from workerless import working_here

from kdcal_core.audit import AuditSettings, make_audit
from kdcal_core.data import at_most
from kdcal_core.diagnostics.summaries import drawn_rows as summary_rows
from kdcal_core.errors import InputError
from kdcal_core.once import Once
from kdcal_core.review import (
    Review,
    ReviewReader,
    Workspace,
    add_table,
    create_review,
    drawn_rows,
    score,
    set_roles,
    set_summary,
)
from kdcal_core.tasks import (
    RegionQuestion,
    Sets,
    class_curves,
    class_growth,
    class_halves,
    class_histograms,
    class_method,
    counted_groups,
    decision_measures,
    method_losses,
    model_estimates,
    pit_along,
    pit_histograms,
    pit_measures,
    pit_overview,
    pit_places,
    predicted_class,
    quick_checks,
    region_columns,
    region_pit_rows,
    region_rows,
    regions_at_once,
    set_decisions,
    set_fitness,
    set_groups,
    set_overview,
    set_pit_groups,
    set_reliability,
)
from kdcal_core.tasks import drawn_sets as tasks_drawn_sets
from kdcal_core.tasks.drawn_sets import drawn_sets
from kdcal_core.tasks.pit_measures import MEAN, OUTCOME

N = 4000
SET = {"which": "calibration"}
NAMES = ("low", "middle", "high")
DRAWN_PARTS = ("position", "proba", "y")


def stated(n_classes: int, n: int = N) -> pd.DataFrame:
    """Over-confident probabilities and what happened."""
    rng = np.random.default_rng(n_classes)
    logit = rng.normal(size=(n, n_classes)) * 2.0
    proba = np.exp(1.5 * logit)
    proba /= proba.sum(axis=1, keepdims=True)
    y = (logit + rng.gumbel(size=logit.shape)).argmax(axis=1)
    columns = {f"proba_{NAMES[k]}": proba[:, k] for k in range(n_classes)}
    return pd.DataFrame({**columns, "label": np.array(NAMES)[y]})


def with_groups(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns that divide rows into groups: words, few and many numbers, truth values, gaps."""
    rng, n = np.random.default_rng(9), len(frame)
    ward = rng.choice(["north", "south", "west", "rare"], n, p=[0.5, 0.3, 0.196, 0.004])
    age = rng.gamma(9.0, 5.0, n)
    age[::50] = np.nan
    return frame.assign(
        ward=np.where(rng.random(n) < 0.02, None, ward),
        age=age,
        visits=rng.integers(0, 4, n),
        new=rng.random(n) < 0.3,
        # 230 towns, of which twelve have enough rows for a group of their own
        town=np.where(rng.random(n) < 0.6, rng.integers(0, 12, n), rng.integers(12, 230, n)).astype(
            str
        ),
        day=pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 9, n), "D"),
    )


GROUPS = [["ward"], ["age"], ["ward", "age", "new"], ["visits", "new"], ["town"], ["day", "new"]]
MANY_COMBINATIONS = ["town", "visits", "ward"]


def reviewed(workspace: Workspace, frame: pd.DataFrame) -> Review:
    path = workspace.root.parent / "rows.parquet"
    frame.to_parquet(path)
    review = create_review(workspace)
    with working_here():
        add_table(workspace, review.id, "calibration", path, path.name)
        return score(workspace, review.id)


def sets_of(workspace: Workspace, review: Review) -> Sets:
    return Sets(ReviewReader(workspace, review.id))


@pytest.fixture(scope="module", params=[2, 3])
def both(request, tmp_path_factory) -> tuple[Sets, Sets, int]:
    """The same rows, as they are and with a summary; and their number of classes."""
    workspace = Workspace(tmp_path_factory.mktemp("many") / "home")
    frame = with_groups(stated(request.param))
    plain = sets_of(workspace, reviewed(workspace, frame))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_summary, "MANY", N)
        summed = sets_of(workspace, reviewed(workspace, frame))
    assert plain.summary("calibration") is None
    assert summed.summary("calibration").n == N
    assert plain.reader.identity == summed.reader.identity
    return plain, summed, request.param


def close(one, two, least: float = 2e-4) -> None:
    """The same estimate; what is simulated may differ by a twentieth of its interval."""
    assert (one.label, one.n) == (two.label, two.n)
    assert one.value == pytest.approx(two.value, abs=least)
    room = max((two.high - two.low) / 20, least)
    assert (one.low, one.high) == pytest.approx((two.low, two.high), abs=room)


@pytest.mark.parametrize("event", [None, 1])
def test_the_overview_of_a_summary_is_that_of_its_rows(both, event) -> None:
    plain, summed, _ = both
    rows, summary = (set_overview(one, **SET, event=event) for one in (plain, summed))
    np.testing.assert_array_equal(summary.confusion.joint, rows.confusion.joint)
    np.testing.assert_array_equal(summary.scores.correct, rows.scores.correct)
    (curve,), (known) = summary.reliability.curves, rows.reliability.curves[0]
    np.testing.assert_array_equal(curve.count, known.count)
    np.testing.assert_allclose(curve.confidence, known.confidence, rtol=1e-9)
    np.testing.assert_allclose(curve.accuracy, known.accuracy, rtol=1e-12)
    for one, two in zip(summary.estimates, rows.estimates, strict=True):
        close(one, two)


@pytest.mark.parametrize("kind", ["confidence", "top-label", "class"])
def test_its_diagrams_have_the_same_bins(both, kind) -> None:
    plain, summed, n_classes = both
    asked = {**SET, "kind": kind, "n_bins": 20, "strategy": "uniform"}
    rows, summary = (set_reliability(one, **asked) for one in (plain, summed))
    assert len(summary.curves) == len(rows.curves) == (1 if kind == "confidence" else n_classes)
    for one, two in zip(summary.curves, rows.curves, strict=True):
        assert (one.label, one.n) == (two.label, two.n)
        np.testing.assert_array_equal(one.count, two.count)
        np.testing.assert_allclose(one.accuracy, two.accuracy, rtol=1e-12)


@pytest.mark.parametrize("kind", ["top-label", "class"])
def test_confidence_by_class_is_that_of_the_rows(both, kind) -> None:
    plain, summed, _ = both
    asked = {**SET, "labels": [0, 1], "kind": kind}
    rows, summary = (class_histograms(one, **asked, n_bins=12) for one in (plain, summed))
    for one, two in zip(summary.anchors, rows.anchors, strict=True):
        np.testing.assert_allclose(one.confidence, two.confidence, rtol=1e-12)
        np.testing.assert_array_equal(one.count, two.count)
    rows, summary = (class_halves(one, **asked, seed=3) for one in (plain, summed))
    for one, two in zip(summary.halves, rows.halves, strict=True):
        np.testing.assert_array_equal(one[0].count + one[1].count, two[0].count + two[1].count)
    rows, summary = (predicted_class(one, **SET, label=1) for one in (plain, summed))
    for one, two in zip(summary.estimates, rows.estimates, strict=True):
        close(one, two)
    assert summary.reliability.n == rows.reliability.n


@pytest.mark.parametrize("bandwidth", ["mon2", "loo", 0.05])
def test_its_kernel_density_curves_are_those_of_the_rows(both, bandwidth, monkeypatch) -> None:
    """To the last bit, as long as the summary holds all rows."""
    plain, summed, _ = both
    asked = {**SET, "labels": [0, 1], "bandwidth": bandwidth}
    rows = class_curves(plain, **asked)
    monkeypatch.setattr(ReviewReader, "scored", None)
    summary = class_curves(summed, **asked)
    assert summary.curves.keys() == rows.curves.keys()
    assert summary.notes == rows.notes
    for rule, curves in rows.curves.items():
        for one, two in zip(summary.curves[rule], curves, strict=True):
            assert (one.n_tp, one.n_fp) == (two.n_tp, two.n_fp)
            for part in ("score", "confidence", "rows", "safe"):
                np.testing.assert_array_equal(getattr(one, part), getattr(two, part))


def test_growing_rows_of_a_summary_end_at_the_curve_of_all(both, monkeypatch) -> None:
    plain, summed, _ = both
    asked = {**SET, "labels": [0, 1], "bandwidth": 0.05}
    known = class_curves(plain, **asked).curves["0.05"]
    monkeypatch.setattr(ReviewReader, "scored", None)
    quarter, half, every = class_growth(summed, **asked, seed=0).curves
    for one, two, three, wanted in zip(quarter, half, every, known, strict=True):
        np.testing.assert_array_equal(three.confidence, wanted.confidence)
        assert one.n_tp < two.n_tp < three.n_tp == wanted.n_tp
        assert one.n_tp == pytest.approx(wanted.n_tp / 4, rel=0.1)


def test_beyond_the_drawn_rows_curves_follow_from_the_cells(both, monkeypatch) -> None:
    plain, summed, _ = both
    known = summed.summary("calibration")
    draw = summary_rows.DrawnRows(*(getattr(known.drawn, part)[::4] for part in DRAWN_PARTS))
    monkeypatch.setattr(summary_rows, "DRAWN", len(draw))
    some = Sets(summed.reader, keep=lambda key, make: replace(known, drawn=draw))
    asked = {**SET, "labels": [0, 1], "bandwidth": 0.05}
    rows, summary = class_curves(plain, **asked), class_curves(some, **asked)
    for one, two in zip(summary.curves["0.05"], rows.curves["0.05"], strict=True):
        assert (one.n_tp, one.n_fp) == (two.n_tp, two.n_fp)
        at = np.linspace(one.lower_limit + 0.05, 1.0, 200)
        ours, theirs = (np.interp(at, each.score, each.safe) for each in (one, two))
        np.testing.assert_allclose(ours, theirs, atol=2e-2)
        ours, theirs = (np.interp(at, each.score, each.confidence) for each in (one, two))
        np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_decisions_count_the_same_rows(both) -> None:
    plain, summed, _ = both
    rows, summary = (set_decisions(one, **SET, event=1) for one in (plain, summed))
    for threshold in (0.05, 0.25, 0.5, 0.75, 0.95):  # ends of cells
        np.testing.assert_array_equal(
            summary.mass[:, summary.at(threshold)], rows.mass[:, rows.at(threshold)]
        )


@pytest.mark.parametrize("columns", GROUPS)
@pytest.mark.parametrize("event", [None, 0, 1])
def test_groups_are_those_of_the_rows(both, columns, event, monkeypatch) -> None:
    plain, summed, n_classes = both
    asked = {**SET, "event": event, "columns": columns}
    rows = set_groups(plain, **asked)
    monkeypatch.setattr(decision_measures, "measure_groups", None)
    summary = set_groups(summed, **asked)
    assert [one.name for one in summary.groups] == [one.name for one in rows.groups]
    assert (summary.target, summary.level) == (rows.target, rows.level)
    both_tables = (*summary.groups, summary.overall), (*rows.groups, rows.overall)
    for one, two in zip(*both_tables, strict=True):
        assert (one.region.n, one.region.fault) == (two.region.n, two.region.fault)
        close(one.gap, two.gap)
        close(one.rate, two.rate)
        assert one.error.value == pytest.approx(two.error.value, abs=1e-9)
        assert one.area.name == two.area.name
        # by what the cells hide of the order of the rows, which widens the interval
        assert one.area.value == pytest.approx(two.area.value, abs=5e-4)
        wide = (one.area.high - one.area.low) / (two.area.high - two.area.low)
        if n_classes == 2:
            assert 1.0 - 1e-9 < wide < 1.02
        elif one.region.n >= 30:
            assert 1.0 <= wide < 1.5
        assert (one.jeffreys is None) == (two.jeffreys is None)


@pytest.mark.parametrize("groups", [["label"], ["ward", "age"], ["town"]])
def test_all_quick_checks_are_answered_in_their_order(both, groups) -> None:
    plain, summed, n_classes = both
    asked = {**SET, "event": 1 if n_classes == 2 else None, "groups": groups}
    rows, summary = (quick_checks(one, **asked) for one in (plain, summed))
    assert [one.code for one in summary.checks] == [one.code for one in rows.checks]
    assert summary.n == rows.n == N
    for one, two in zip(summary.checks, rows.checks, strict=True):
        assert bool(one.parts) == bool(two.parts), one.code
        for mine, known in zip(one.parts, two.parts, strict=True):
            assert mine.key == known.key
            assert mine.estimate.value == pytest.approx(known.estimate.value, abs=2e-3), one.code


def test_an_audit_says_what_the_overview_says(both) -> None:
    _, summed, n_classes = both
    event = 1 if n_classes == 2 else None
    codes = ("KC001", "KC002", "KC203")
    found = quick_checks(summed, **SET, event=event, groups=[])
    settings = AuditSettings("many", "calibration", event, codes=codes)
    audited = make_audit.function(summed, settings=settings)
    assert audited.measured.checks == tuple(one for one in found.checks if one.code in codes)


def forecasts(seed: int, scale: float, n: int = N) -> pd.DataFrame:
    """Over-confident normal predictions and what happened."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(size=n) * scale
    return pd.DataFrame({"target": mean + 1.3 * rng.normal(size=n), "mean": mean, "std": 1.0})


@pytest.fixture(scope="module")
def both_forecasts(tmp_path_factory) -> tuple[Sets, Sets]:
    """The same forecasts, as they are and with summaries; the sets' outcomes differ in scale."""
    workspace = Workspace(tmp_path_factory.mktemp("forecasts") / "home")

    def made() -> Sets:
        review = create_review(workspace)
        for which, frame in (("calibration", forecasts(0, 2.0)), ("evaluation", forecasts(1, 5.0))):
            path = workspace.root.parent / f"{which}.parquet"
            with_groups(frame).to_parquet(path)
            with working_here():
                add_table(workspace, review.id, which, path, path.name)
        with working_here():
            return sets_of(workspace, score(workspace, review.id))

    plain = made()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_summary, "MANY", N)
        patch.setattr(set_summary, "_BLOCK", 1500)
        summed = made()
    assert plain.regression_summary("evaluation") is None
    assert summed.regression_summary("evaluation").n == N
    return plain, summed


@pytest.mark.parametrize("which", ["calibration", "evaluation"])
def test_the_pit_page_of_a_summary_is_that_of_its_rows(both_forecasts, which) -> None:
    rows, summary = (pit_overview(one, which=which) for one in both_forecasts)
    np.testing.assert_array_equal(summary.histogram.counts, rows.histogram.counts)
    assert summary.scale == pytest.approx(rows.scale, rel=1e-12)
    assert summary.resolution == rows.resolution
    assert summary.scores.rows.keys() == rows.scores.rows.keys()
    for key, known in rows.scores.rows.items():
        close(summary.scores.rows[key], known, least=1e-3 * abs(known.value))
    for one, two in zip(summary.coverage.rows, rows.coverage.rows, strict=True):
        assert one.coverage.value == pytest.approx(two.coverage.value, abs=1e-12)
        assert one.smis.value == pytest.approx(two.smis.value, rel=1e-9)
    for one, two in zip(summary.tests, rows.tests, strict=True):
        assert one.p_value == pytest.approx(two.p_value, abs=0.02)
    assert summary.fault.kind == rows.fault.kind
    rows, summary = (pit_histograms(one, which=which, bins=[5, 20]) for one in both_forecasts)
    for bins in (5, 20):
        np.testing.assert_array_equal(summary.with_bins(bins).counts, rows.with_bins(bins).counts)


@pytest.mark.parametrize("columns", [*GROUPS, MANY_COMBINATIONS])
def test_groups_of_forecasts_are_those_of_the_rows(both_forecasts, columns, monkeypatch) -> None:
    asked = {"which": "evaluation", "columns": columns}
    rows = set_pit_groups(both_forecasts[0], **asked)
    monkeypatch.setattr(counted_groups, "declared_pit_regions", None)
    summary = set_pit_groups(both_forecasts[1], **asked)
    assert [one.words for one in summary.regions] == [one.words for one in rows.regions]
    for one, two in zip(summary.regions, rows.regions, strict=True):
        assert (one.n, one.fault) == (two.n, two.fault)
        close(one.gap, two.gap)
        close(one.spread, two.spread, least=5e-4)
        assert one.adjusted_p == pytest.approx(two.adjusted_p, abs=0.02)


@pytest.mark.parametrize("groups", [[], ["ward", "age"], ["town"]])
def test_checks_of_a_regression_ask_its_summary(both_forecasts, groups) -> None:
    asked = {"which": "evaluation", "event": None, "groups": groups}
    rows, summary = (quick_checks(one, **asked) for one in both_forecasts)
    assert [one.code for one in summary.checks] == [one.code for one in rows.checks]
    assert summary.n == rows.n == N
    for one, two in zip(summary.checks, rows.checks, strict=True):
        assert [part.key for part in one.parts] == [part.key for part in two.parts], one.code
        for mine, known in zip(one.parts, two.parts, strict=True):
            assert mine.estimate.value == pytest.approx(known.estimate.value, abs=2e-3), one.code


def test_a_changed_summary_of_forecasts_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(set_summary, "MANY", N)
    workspace = Workspace(tmp_path / "home")
    review = reviewed(workspace, forecasts(0, 1.0))
    folder = workspace.folder(review.id) / review.sets["calibration"].folder / "summary"
    path = folder / "summary.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "impossible": 7}))
    with pytest.raises(InputError, match="damaged"):
        sets_of(workspace, review).regression_summary("calibration")


def test_a_changed_summary_is_refused(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(set_summary, "MANY", N)
    workspace = Workspace(tmp_path / "home")
    review = reviewed(workspace, stated(2))
    folder = workspace.folder(review.id) / review.sets["calibration"].folder / "summary"
    cells = np.load(folder / "cells.npy")
    cells[0, 0, 0, 0] += 1
    np.save(folder / "cells.npy", cells)
    with pytest.raises(InputError, match="damaged"):
        sets_of(workspace, review).summary("calibration")


@pytest.mark.parametrize("column", ["weight", "cluster"])
def test_rows_with_weights_or_clusters_are_not_summed(tmp_path, monkeypatch, column) -> None:
    monkeypatch.setattr(set_summary, "MANY", N)
    workspace = Workspace(tmp_path / "home")
    path = tmp_path / "rows.parquet"
    stated(2).assign(**{column: np.arange(N) % 40 + 1}).to_parquet(path)
    review = create_review(workspace)
    with working_here():
        review = add_table(workspace, review.id, "calibration", path, path.name)
        review = set_roles(
            workspace, review.id, replace(review.roles, features=(), **{column: column})
        )
        review = score(workspace, review.id)
    assert sets_of(workspace, review).summary("calibration") is None


@pytest.mark.usefixtures("real_workers")
def test_a_confined_worker_can_write_a_summary(tmp_path) -> None:
    """The compiled pass must be there before the worker may write nowhere else."""
    workspace, path = Workspace(tmp_path / "home"), tmp_path / "rows.parquet"
    p = np.random.default_rng(0).random(set_summary.MANY).round(3)
    frame = {"proba_no": 1.0 - p, "proba_yes": p, "label": np.where(p > 0.4, "yes", "no")}
    pd.DataFrame(frame).to_parquet(path)
    review = create_review(workspace)
    add_table(workspace, review.id, "calibration", path, path.name)
    review = score(workspace, review.id)
    assert sets_of(workspace, review).summary("calibration").n == len(p)


FEW = 1500
QUESTIONS = [
    RegionQuestion(max_depth=2, min_rows=60),
    RegionQuestion(max_depth=2, min_rows=60, label=1),
    RegionQuestion("classes", max_depth=2, min_rows=60),
    RegionQuestion("column", column="age"),
]


def drawn_of(workspace: Workspace, frame: pd.DataFrame) -> tuple[Sets, Sets]:
    """A set of very many rows, and the rows that were drawn from it as a set of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_summary, "MANY", N)
        patch.setattr(drawn_rows, "DRAWN_ROWS", FEW)
        many = sets_of(workspace, reviewed(workspace, frame))
    drawn = frame.iloc[at_most(N, FEW)].reset_index(drop=True)
    return many, sets_of(workspace, reviewed(workspace, drawn))


@pytest.fixture(scope="module", params=[2, 3])
def few(request, tmp_path_factory) -> tuple[Sets, Sets]:
    workspace = Workspace(tmp_path_factory.mktemp("few") / "home")
    return drawn_of(workspace, with_groups(stated(request.param)))


@pytest.fixture(scope="module")
def few_forecasts(tmp_path_factory) -> tuple[Sets, Sets]:
    workspace = Workspace(tmp_path_factory.mktemp("few") / "home")
    return drawn_of(workspace, with_groups(forecasts(1, 5.0)))


@pytest.fixture
def only_drawn(monkeypatch) -> None:
    """Let whoever reads a whole set or its table fail."""
    for name in ("scored", "distributions", "_of_table"):
        monkeypatch.setattr(ReviewReader, name, None)


def judged(found) -> list[tuple]:
    return [(one.words, one.n, one.gap, one.spread, one.fault) for one in found.regions]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda one: f"{one.purpose}-{one.label}")
def test_regions_of_very_many_rows_are_those_of_drawn_ones(few, question, only_drawn, request):
    many, drawn = few
    asked = {**SET, "asked": asdict(question)}
    columns, found = region_columns(many, **SET), regions_at_once(many, **asked)
    picked = region_rows(many, **asked, leaf=0)
    request.getfixturevalue("monkeypatch").undo()
    known = regions_at_once(drawn, **asked)
    assert asdict(columns) == asdict(region_columns(drawn, **SET))
    assert judged(found.found.search) == judged(known.found.search)
    assert repr(found.panels.fits) == repr(known.panels.fits)
    assert set(picked.rows) <= set(at_most(N, FEW))
    whole = many.frame("calibration")
    np.testing.assert_array_equal(picked.own["town"], whole["town"][picked.rows])


@pytest.mark.parametrize("question", [QUESTIONS[0], QUESTIONS[-1]], ids=["tree", "column"])
def test_regions_of_very_many_forecasts(few_forecasts, question, only_drawn, monkeypatch) -> None:
    many, drawn = few_forecasts
    asked = {**SET, "asked": asdict(question)}
    found = regions_at_once(many, **asked)
    picked = region_pit_rows(many, **asked, leaf=0, level=0.95)
    along = pit_along(many, **SET, column="age", bins=4)
    monkeypatch.undo()
    known = regions_at_once(drawn, **asked)
    assert judged(found.found.search) == judged(known.found.search)
    assert [one.fault for one in found.panels.regions] == [
        one.fault for one in known.panels.regions
    ]
    target = many.frame("calibration")["target"]
    np.testing.assert_array_equal(picked.y, target[picked.rows])
    theirs = pit_along(drawn, **SET, column="age", bins=4)
    assert [one.n for one in along.regions] == [one.n for one in theirs.regions]


def test_methods_of_very_many_rows_are_fitted_on_drawn_ones(few, only_drawn, monkeypatch) -> None:
    many, drawn = few
    asked = {**SET, "labels": [0, 1], "key": "histogram"}
    lines = class_method(many, **asked)
    losses = method_losses(many, methods=["histogram"], with_evaluation=False)
    monkeypatch.undo()
    for one, two in zip(lines.points, class_method(drawn, **asked).points, strict=True):
        np.testing.assert_array_equal(one.confidence, two.confidence)
    known = method_losses(drawn, methods=["histogram"], with_evaluation=False)
    assert losses.cross_fitted.rows == known.cross_fitted.rows


def test_a_page_says_how_many_rows_were_drawn(both, monkeypatch) -> None:
    review = both[0].reader.review
    assert drawn_rows.drawn_words(review, "calibration") == ""
    monkeypatch.setattr(drawn_rows, "MANY", N)
    assert drawn_rows.drawn_words(review, "calibration") == "500,000 rows, drawn from 4,000"
    weighted = replace(review, roles=replace(review.roles, weight="age"))
    assert drawn_rows.drawn_words(weighted, "calibration") == ""  # which are read as they are


def test_what_very_many_rows_suffice_for_is_counted_once(few, few_forecasts, only_drawn) -> None:
    for many, _ in (few, few_forecasts):
        found = set_fitness(many, **SET)
        found = found.classification or found.regression
        assert found.n_rows == N
        assert any("Missing values in " in flag and "age (" in flag for flag in found.flags)


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_it_is_what_the_rows_say(both, both_forecasts, task, monkeypatch) -> None:
    plain, summed = both[:2] if task == "classification" else both_forecasts
    rows, kept = (asdict(set_fitness(one, **SET))[task] for one in (plain, summed))
    folder = summed.reader.workspace.folder(summed.reader.review.id)
    assert (folder / summed.reader.review.sets["calibration"].folder / "fitness.json").exists()
    for name, value in rows.items():
        np.testing.assert_array_equal(kept[name], value)


def test_sets_that_were_scored_before_rows_were_kept_are_drawn_from(few, few_forecasts) -> None:
    for many, read in ((few[0], Sets.read), (few_forecasts[0], Sets.distributions)):
        kept = drawn_sets(many, 700)
        older = drawn_sets(replace(many, keep=Once()), 700)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(drawn_rows, "DRAWN_ROWS", FEW)
            patch.setattr(tasks_drawn_sets, "DRAWN_ROWS", FEW)
            patch.setattr(type(older.reader), "_drawn", lambda self, which: None)
            np.testing.assert_array_equal(read(older, "calibration").y, read(kept, "calibration").y)
            pd.testing.assert_frame_equal(older.frame("calibration"), kept.frame("calibration"))
            np.testing.assert_array_equal(
                older.reader.positions("calibration"), kept.reader.positions("calibration")
            )


def test_changed_drawn_rows_are_refused(tmp_path) -> None:
    workspace = Workspace(tmp_path / "home")
    many, _ = drawn_of(workspace, with_groups(stated(2)))
    review = many.reader.review
    folder = workspace.folder(review.id) / review.sets["calibration"].folder / "drawn"
    y = np.load(folder / "y.npy")
    np.save(folder / "y.npy", 1 - y)
    with pytest.raises(InputError, match="damaged"):
        drawn_sets(sets_of(workspace, review)).read("calibration")


def test_the_numbers_of_a_model_beside_its_regions_are_of_all_rows(both) -> None:
    plain, summed, _ = both
    for one, two in zip(
        *(asdict(model_estimates(each, **SET)).values() for each in (plain, summed)), strict=True
    ):
        assert (one is None) == (two is None)
    close(model_estimates(summed, **SET).log_loss, model_estimates(plain, **SET).log_loss)


@pytest.mark.parametrize("space", ["prediction", "inputs"])
def test_places_of_forecasts_read_drawn_rows_alone(both_forecasts, space, monkeypatch) -> None:
    monkeypatch.setattr(pit_measures, "MAX_LOCAL", 1500)
    asked = {"which": "evaluation", "space": space, "k": 60, "across": MEAN, "up": OUTCOME}
    rows = pit_places(both_forecasts[0], **asked)
    monkeypatch.setattr(Sets, "distributions", lambda self, which: self.reader.distributions(which))
    monkeypatch.setattr(ReviewReader, "frame", None)  # reads a column of all rows
    summary = pit_places(both_forecasts[1], **asked)
    assert (summary.refused, rows.refused) == (None, None)
    for name in ("rows", "xy", "y", "low", "high"):
        np.testing.assert_array_equal(getattr(summary, name), getattr(rows, name))
    np.testing.assert_allclose(summary.pit, rows.pit)
    assert len(summary.rows) == 1500
    assert summary.local.k == 60
    if space == "prediction":  # inputs are put on scales of the drawn rows
        assert summary.local.n_faulty == rows.local.n_faulty
