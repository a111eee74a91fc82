from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from kdcal_core import blocks, forks
from kdcal_core.data import ScoredSet
from kdcal_core.evaluation import methods as fits
from kdcal_core.evaluation import methods_of
from kdcal_core.evaluation.held_out import HeldOut, held_out_answers
from kdcal_core.evaluation.methods import Answer, Task
from kdcal_core.forks import Shared, copies_for
from kdcal_core.review import ReviewData

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux forks safely")
HERE = os.getpid()
SCRIPT = """
import os, sys, time
from kdcal_core.forks import Shared
shared = Shared(lambda item: time.sleep(60), [0], copies=1)
print(shared._pids[0], flush=True)
if sys.argv[1] == "end":
    os._exit(1)
with shared:
    raise KeyboardInterrupt
"""


@pytest.fixture
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process may be forked, as a worker may, and there is a core for a copy."""
    monkeypatch.setattr(forks, "_allowed", True)
    monkeypatch.setattr(blocks, "cores", lambda: 3)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").split()[2] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_only_a_worker_is_forked_and_never_for_one_item(allowed: None) -> None:
    assert [copies_for(n) for n in (0, 1, 2, 3, 100, 5000)] == [0, 0, 1, 2, 2, 0]


def test_without_leave_nothing_is_forked() -> None:
    assert copies_for(100) == 0


def where(item: int) -> tuple[int, int]:
    time.sleep(0.02)
    return os.getpid(), item * item


def test_each_item_is_taken_once_by_whoever_is_free() -> None:
    with Shared(where, range(40), copies=2) as shared:
        mine = []
        for number in shared.mine():
            mine.append(number)
            time.sleep(0.02)
        assert shared.wait(30.0)
    assert sorted([*mine, *shared.results]) == list(range(40))
    assert mine
    assert len({pid for pid, _ in shared.results.values()}) == 2
    assert all(square == number**2 for number, (_, square) in shared.results.items())


def falls(item: int) -> int:
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if item == 2:
        raise MemoryError
    return item


@pytest.mark.parametrize("item", [1, 2])
def test_a_copy_that_dies_costs_its_item_alone(item: int) -> None:
    with Shared(falls, [0, item, 0, 0], copies=1) as shared:
        assert shared.wait(30.0)
        left = list(shared.mine())
    assert {*shared.results, *left} == {0, 2, 3}


def test_where_nothing_can_be_forked_this_process_does_it_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    with Shared(where, range(3), copies=2) as shared:
        assert list(shared.mine()) == [0, 1, 2]
        assert shared.wait(1.0)


def large(item: int) -> np.ndarray:
    return np.full(300_000, float(item))


def test_a_large_result_does_not_block_the_copy() -> None:
    with Shared(large, range(3), copies=1) as shared:
        while not shared.wait(0.05):
            pass
    assert [shared.results[at].sum() for at in range(3)] == [0.0, 3e5, 6e5]


@pytest.mark.parametrize("how", ["end", "raise"])
def test_no_copy_outlives_its_parent(how: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, how], capture_output=True, text=True, timeout=50
    )
    pid, until = int(found.stdout), time.monotonic() + 5
    while not gone(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert gone(pid)


def answers(folds: int) -> HeldOut:
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1.0, 2.0, 1.5], 300)
    y = np.array([rng.choice(3, p=row) for row in p])
    rows = ScoredSet(p, y, ("a", "b", "c"), "digest", "calibration")
    methods = methods_of(["histogram", "isotonic", "temperature", "heterogeneous_tree"])
    return held_out_answers(methods, ReviewData(rows, None, rows.classes, {}), folds=folds)


def same(one: HeldOut, other: HeldOut) -> bool:
    return (
        [method.key for method in one.methods] == [method.key for method in other.methods]
        and one.failed == other.failed
        and all(
            a.proba.tobytes() == b.proba.tobytes()
            for a, b in zip(one.said, other.said, strict=True)
        )
    )


def test_fits_in_copies_are_the_same_bytes(allowed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as alone:
        alone.setattr(forks, "_allowed", False)
        expected = answers(4)
    assert expected.failed  # regions need features
    assert same(answers(4), expected)


def test_a_fit_that_fails_in_a_copy_is_tried_again_here(
    allowed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    carry_out, done_here = fits.carry_out, []

    def hungry(task: Task, progress: object = None) -> Answer:
        if os.getpid() != HERE:
            return Answer(failure="no memory")
        done_here.append(task.method.key)
        return carry_out(task)

    with monkeypatch.context() as alone:
        alone.setattr(forks, "_allowed", False)
        expected = answers(2)
    monkeypatch.setattr(fits, "carry_out", hungry)
    assert same(answers(2), expected)
    assert {"isotonic", "uncalibrated", "histogram"} <= set(done_here)


def test_a_cancelled_comparison_ends_its_copies(
    allowed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    class StopError(Exception):
        pass

    made: list[Shared] = []

    class Watched(Shared):
        def __init__(self, *given: object) -> None:
            super().__init__(*given)
            made.append(self)

    def stop(share: float, note: str) -> None:
        raise StopError

    # the copy never ends its first fit, so that one is left to this process, which reports it
    monkeypatch.setattr(fits, "carry_out", lambda task: time.sleep(60))
    monkeypatch.setattr(fits, "Shared", Watched)
    rows = ScoredSet(
        np.tile([0.8, 0.2], (20, 1)), np.arange(20) % 2, ("n", "y"), "d", "calibration"
    )
    with pytest.raises(StopError):
        held_out_answers(
            methods_of(["sts"]), ReviewData(rows, None, rows.classes, {}), folds=2, progress=stop
        )
    assert all(gone(pid) for pid in made[0]._pids)
