"""The app's long jobs, without a browser, against an earlier commit on the same machine.

The commit is that of `BEFORE`, or the one named in ``KDCAL_BENCH_COMMIT``. Goals for these jobs are
halves of what they took then, whichever the machine. The same calibrators are compared by both;
the last rows have those that are offered now.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
BEFORE = "e9e665cd"  # of 2026-11-23, as it was when the goals were set
SEEDS = (1, 2, 3)  # another seed is another job; the first compiles, and is not counted


def run() -> list[dict[str, Any]]:
    commit = os.environ.get("KDCAL_BENCH_COMMIT", BEFORE)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), commit], check=True)
        try:
            then = _measured(tree, {})
            now = _measured(ROOT, then["calibrators"])
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    rows = []
    for what, seconds in now["seconds"].items():
        reference = then["seconds"].get(what)
        rows.append(
            {
                "name": "jobs",
                "what": what,
                "seconds": seconds,
                "reference": f"commit {commit}" if reference else None,
                "reference_seconds": reference,
                "ratio": reference and reference / seconds,
                "goal": reference and round(reference / 2, 1),
            }
        )
    return rows


def _measured(tree: Path, calibrators: dict[str, Sequence[str]]) -> dict[str, Any]:
    """What this file prints as a program, which imports the code of ``tree``."""
    done = subprocess.run(
        [sys.executable, __file__, json.dumps(calibrators)],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return found


def _main() -> None:
    """Time every job; only what both commits have is used."""
    from kdcal_core.jobs import JobManager
    from kdcal_core.review import Workspace, start_sample
    from kdcal_core.tasks import (
        ComparisonSettings,
        RecalibrationSettings,
        compare_calibrators,
        default_calibrators,
        recalibrate,
    )

    _prepare()
    given = json.loads(sys.argv[1])
    workspace, manager = Workspace(Path(os.environ["KDCAL_HOME"])), JobManager(grace=600)
    seconds: dict[str, float] = {}
    calibrators: dict[str, Sequence[str]] = {}

    def measure(what: str, task: Any, review: Any, settings: Callable[[int], Any]) -> None:
        taken = []
        for seed in SEEDS:
            asked = task.request(workspace, review, settings(seed))
            begun = time.perf_counter()
            job = manager.submit(asked.target, asked.kwargs, title=asked.title, key=asked.key)
            assert manager.wait(job).state == "done"
            taken.append(time.perf_counter() - begun)
        seconds[what] = statistics.mean(taken[1:])

    def compare(what: str, review: Any, keys: Sequence[str]) -> None:
        measure(
            what,
            compare_calibrators,
            review,
            lambda seed: ComparisonSettings(tuple(keys), seed=seed),
        )

    for sample in ("digits", "adult"):
        review = start_sample(workspace, sample)
        calibrators[sample] = default_calibrators(review)
        compare(f"Compare, {sample}", review, given.get(sample, calibrators[sample]))
        if given and list(given[sample]) != list(calibrators[sample]):
            n = len(calibrators[sample])
            compare(f"Compare, {sample}, today's {n} calibrators", review, calibrators[sample])
    measure(
        "Recalibrate, heteroscedastic, neighbours chosen",
        recalibrate,
        start_sample(workspace, "heteroscedastic"),
        lambda seed: RecalibrationSettings(choose=True, seed=seed),
    )
    print("\n" + json.dumps({"seconds": seconds, "calibrators": calibrators}))


def _prepare() -> None:
    """Import what the app's workers have imported, where this commit does so ahead."""
    try:
        from app.shared.server_process import WORKERS_IMPORT
        from kdcal_core.jobs import prepare_workers
    except ImportError:
        return
    prepare_workers(WORKERS_IMPORT, seconds=60)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as _home:
        os.environ["KDCAL_HOME"] = _home
        _main()
