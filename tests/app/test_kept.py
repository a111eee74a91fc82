"""What the server keeps between runs: bounded by bytes, made once, and no rows of large reviews."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from app_pages import healthy, launch, settle, specs, started, visit
from made_reviews import line, review_of
from streamlit.testing.v1 import AppTest

from kdcal_core.data import ScoredSet
from kdcal_core.review import Workspace, start_sample

PAGES = (
    ("load", "breast_cancer"),
    ("reliability", "breast_cancer"),
    ("confidence_by_class", "breast_cancer"),
    ("compare", "breast_cancer"),
    ("pit", "diamonds"),
    ("regions", "adult"),
    ("regions", "diamonds"),
    ("recalibration", "diamonds"),
    ("out_of_distribution", "breast_cancer"),
    ("posterior_map", "breast_cancer"),
    ("export", "breast_cancer"),
)
pytestmark = pytest.mark.usefixtures("work_here", "workspace")


def test_what_is_kept_stays_below_its_bytes() -> None:
    from app.shared.kept import Kept

    kept = Kept(10_000)
    for at in range(100):
        kept.get(at, lambda: np.zeros(at_most := 200) + at_most)
        assert kept.total_bytes <= 10_000
    assert 99 in kept
    assert 0 not in kept
    kept.get("too large", lambda: np.zeros(10_000))
    assert "too large" not in kept
    assert 99 in kept


def test_the_least_recently_used_goes_first() -> None:
    from app.shared.kept import Kept

    kept = Kept(240)
    for key in "abc":
        kept.get(key, lambda: np.zeros(10))
    kept.get("a", lambda: pytest.fail("it is kept"))
    kept.get("d", lambda: np.zeros(10))
    assert ["a" in kept, "b" in kept] == [True, False]


def test_two_that_ask_at_once_compute_once() -> None:
    from app.shared.kept import Kept

    kept, made = Kept(1000), []

    def make() -> np.ndarray:
        time.sleep(0.05)
        made.append(1)
        return np.zeros(3)

    asking = [threading.Thread(target=kept.get, args=("key", make)) for _ in range(5)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()
    assert len(made) == 1


def test_a_making_that_asks_for_itself_does_not_wait_for_ever() -> None:
    from app.shared.kept import Kept

    kept = Kept(1000)
    asked = []

    def make() -> int:
        asked.append(1)
        return 7 if len(asked) > 1 else kept.get("a", make)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(kept.get, "a", make).result(timeout=20) == 7


def test_a_failure_is_not_kept() -> None:
    from app.shared.kept import Kept

    kept = Kept(1000)
    with pytest.raises(ZeroDivisionError):
        kept.get("key", lambda: 1 / 0)
    assert kept.get("key", lambda: 3) == 3


def test_bytes_of_rows_estimators_and_frames_are_counted(tmp_path: Path) -> None:
    from app.shared.kept import bytes_of
    from kdcal_core.calibration import TopLabelKDE

    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(2), 5000)
    scored = ScoredSet(proba, np.zeros(5000, dtype=np.int64), ("a", "b"), "d", "calibration")
    assert bytes_of(scored) == 5000 * 24
    assert bytes_of(scored.proba[:10]) == 5000 * 16  # a view holds the whole
    np.save(tmp_path / "a.npy", proba)
    assert bytes_of(np.load(tmp_path / "a.npy", mmap_mode="r")) == 0
    assert bytes_of(pd.DataFrame({"a": np.zeros(1000)})) >= 8000
    fitted = TopLabelKDE(0.1).fit(proba, rng.integers(0, 2, 5000))
    assert bytes_of(fitted) > 5000 * 8  # it keeps the scores


def test_what_holds_rows_is_kept_in_one_store_bounded_by_bytes() -> None:
    from app.shared.kept import Kept

    store = Kept(10_000)
    made = []

    def rows_of(digest: str) -> np.ndarray:
        def make() -> np.ndarray:
            made.append(digest)
            return np.zeros(500)

        return store.get(("rows_of", digest), make)

    for at in range(50):
        rows_of(f"set {at}")
    assert store.total_bytes <= 10_000
    assert rows_of("set 49") is rows_of("set 49")
    assert len(made) == 50
    rows_of("set 0")
    assert made[-1] == "set 0"


@pytest.fixture(scope="module")
def samples(workspace: Workspace) -> dict[str, str]:
    return {
        name: start_sample(workspace, name).id for name in ("adult", "breast_cancer", "diamonds")
    }


def figures_of(at: AppTest) -> list[dict]:
    return specs(healthy(at))


@pytest.mark.parametrize(("page", "sample"), PAGES)
def test_a_large_review_looks_the_same_and_its_rows_stay_away(
    samples: dict[str, str], page: str, sample: str, large
) -> None:
    at_once = settle(launch(page, samples[sample]))
    assert at_once.caption
    large()
    by_jobs = settle(launch(page, samples[sample]))
    assert figures_of(by_jobs) == figures_of(at_once)
    assert [one.value for one in by_jobs.metric] == [one.value for one in at_once.metric]
    for part in ("header", "caption", "markdown"):
        shown = [[one.value for one in at.main.get(part)] for at in (by_jobs, at_once)]
        assert shown[0] == shown[1]


def test_a_large_repair_and_its_rows_look_the_same(
    samples: dict[str, str], monkeypatch: pytest.MonkeyPatch, large
) -> None:
    def look() -> AppTest:
        at = started(samples["adult"])
        at.session_state["regions_rows_open"] = True
        at.session_state["regions_search"] = "thorough"
        return settle(visit(at, "regions"))

    monkeypatch.setattr("app.regions.regions_settings.REDRAWS", 20)
    monkeypatch.setattr("kdcal_core.diagnostics.regions.search.FAST", 0)
    at_once = look()
    for button in ("regions_harder", "regions_start"):
        at_once = settle(at_once.button(key=button).click().run())
    assert at_once.button_group(key="regions_search").value == "thorough"
    assert not [one for one in at_once.button if one.key == "regions_harder"]  # it has run
    figures = figures_of(at_once)
    assert len(figures) == 9  # the tree, four of the region, four of the repair
    large()
    by_jobs = look()
    assert figures_of(by_jobs) == figures
    tables = [[one.value for one in at.dataframe] for at in (by_jobs, at_once)]
    assert len(tables[0]) == len(tables[1]) == 3
    for mine, theirs in zip(*tables, strict=True):
        pd.testing.assert_frame_equal(mine, theirs)
    for part in ("header", "caption", "markdown"):
        shown = [[one.value for one in at.main.get(part)] for at in (by_jobs, at_once)]
        assert shown[0] == shown[1]
    asks = [one.label for one in by_jobs.button if (one.key or "").startswith("ask_")]
    assert len(asks) == 1
    assert asks[0].startswith("Prepare ")


def test_a_large_recalibration_looks_the_same_and_its_arrays_stay_away(
    workspace: Workspace, large
) -> None:
    review = review_of(workspace, calibration=line(300, 0), evaluation=line(200, 1))

    def look() -> AppTest:
        return settle(launch("recalibration", review))

    at_once = look()
    (button,) = (one for one in at_once.button if one.label == "Recalibrate")
    at_once = settle(button.click().run())
    figures = figures_of(at_once)
    assert len(figures) == 11
    large()
    by_jobs = look()
    assert figures_of(by_jobs) == figures
    assert [one.value for one in by_jobs.metric] == [one.value for one in at_once.metric]
    for mine, theirs in zip(by_jobs.dataframe, at_once.dataframe, strict=True):
        pd.testing.assert_frame_equal(mine.value, theirs.value)
    for part in ("header", "caption", "markdown"):
        shown = [[one.value for one in at.main.get(part)] for at in (by_jobs, at_once)]
        assert shown[0] == shown[1]
