"""Processes killed without a warning at random moments, on both databases: is anything lost?

The functions are those of the tests (tests/audit), which try fewer moments. Each looks for what was
confirmed and is not there, and for what is there and is not whole, and stops at the first.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[2]
sys.path[:0] = [str(TESTS), str(TESTS / "audit")]  # as pytest finds them

import postgres  # noqa: E402
import test_backup  # noqa: E402
import test_database  # noqa: E402
import test_killed  # noqa: E402
import test_nothing_lost  # noqa: E402
from audit_place import new_place  # noqa: E402
from audits_made import quick_audit, scored_sample  # noqa: E402
from killing import Tally  # noqa: E402

from kdcal_core.review import Workspace  # noqa: E402

#: Steps into which kills of their own fall, within so many seconds of their begin
STEPS = {"draft": 0.01, "submit": 0.004, "approve": 0.004, "comment": 0.004, "delete files": 0.004}
Case = tuple[str, Callable[[], Tally]]


def write(moments: int, out: Path, only: Sequence[str] = ()) -> bool:
    """Kill so many times in each case and write the table; whether everything was kept.

    With ``only``, of the cases whose names hold one of these words.
    """
    os.environ["KDCAL_UPGRADE"] = "1"
    lines, whole = [], True
    with tempfile.TemporaryDirectory(prefix="kdcal-kills-") as name:
        folder = Path(name)
        os.environ["KDCAL_HOME"] = str(folder / "home")
        workspace = Workspace(folder / "reviews")
        content = quick_audit(workspace, scored_sample(workspace))
        has_server = postgres.programs() is not None
        with postgres.server() if has_server else nullcontext() as server:
            for number, (case, run) in enumerate(_cases(moments, folder, content, server)):
                if only and not any(words in case for words in only):
                    continue
                print(f"{number + 1}: {case}", file=sys.stderr, flush=True)
                began = time.monotonic()
                found = _line(case, run)
                whole = whole and found is not None
                lines.append(found or f"| {case} | not whole, see above | | |")
                print(f"{time.monotonic() - began:.0f} s: {lines[-1]}", file=sys.stderr, flush=True)
    out.mkdir(parents=True, exist_ok=True)
    day = datetime.now(UTC).date()
    databases = "both databases" if has_server else "SQLite alone"
    head = [f"Measured on {day} on {databases}, {moments:,} kills a case.", ""]
    head += ["| killed during | kills | confirmed, all kept | step in which the kill fell |"]
    head += ["|---|---|---|---|"]
    (out / "kills.md").write_text("\n".join([*head, *lines, ""]), encoding="utf-8")
    return whole


def _line(case: str, run: Callable[[], Tally]) -> str | None:
    """The line of a case; None if something was lost or half written."""
    try:
        tally = run()
    except AssertionError:
        traceback.print_exc()
        return None
    steps = ", ".join(f"{step} {n:,}" for step, n in tally.during.most_common())
    return f"| {case} | {tally.during.total():,} | {tally.confirmed:,} | {steps} |"


def _cases(n: int, folder: Path, content: Any, server: str | None) -> Iterator[Case]:
    """What is killed, each with the number of kills."""
    revisions = test_database.EARLIER
    for kind, address in (("SQLite", None), ("PostgreSQL", server)):
        if kind == "PostgreSQL" and server is None:
            continue
        # within so many seconds a kill falls: tests wait less, and see less of the later steps
        for words, act in {
            "audits go their way": lambda place, _: (
                test_nothing_lost.kill_while_audits_go_their_way(place, content, n, 1.0)
            ),
            **{
                f"audits go their way, at the step {step}": lambda place, _, step=step: (
                    test_nothing_lost.kill_while_audits_go_their_way(
                        place, content, n, STEPS[step], step
                    )
                )
                for step in STEPS
            },
            "the database is made": lambda place, _: (
                test_nothing_lost.kill_while_the_database_is_made(place, content, n, 0.6)
            ),
            **{
                f"schema {one} is upgraded": lambda place, _, one=one: (
                    test_database.kill_while_it_is_upgraded(place, one, n, 0.25, "upgrade")
                )
                for one in revisions
            },
            "a report is written": lambda place, here: (
                test_nothing_lost.kill_while_a_report_is_written(place, content, here, n, 1.5)
            ),
            "a project is exported or imported": lambda place, here: (
                test_nothing_lost.kill_while_a_project_is_written_or_read(
                    place, content, here, n // 2, 0.8
                )
            ),
            "a backup is written or restored": lambda place, here: (
                test_backup.kill_while_a_backup_is_written_or_restored(
                    place, content, here, n // 2, 0.8
                )
            ),
        }.items():
            yield f"{words}, {kind}", lambda act=act, address=address: _in_place(act, address)
    for words, alone in {
        "a table is uploaded": test_killed.kill_while_a_table_is_loaded,
        "a file is kept": test_killed.kill_while_a_large_file_is_kept,
    }.items():
        here = folder / words.replace(" ", "_")
        here.mkdir()
        yield words, lambda alone=alone, here=here: alone(here, n, 1.0)


def _in_place(act: Callable[..., Tally], server: str | None) -> Tally:
    with tempfile.TemporaryDirectory(prefix="kdcal-kills-") as name:
        here = Path(name)
        with new_place(here / "audits", server) as place:
            return act(place, here)
