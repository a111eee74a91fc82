"""Run the benchmarks: ``python -m tests.benchmarks [NAME ...] [--write]``.

Every file ``bench_<name>.py`` has ``run()``, which returns rows with the keys "name", "what",
"n", "seconds", "reference", "reference_seconds", "ratio" (reference over own time) and "goal"
(seconds, or words). Values that do not apply are None. Each file runs in a process of its own, so
that one benchmark's memory and caches do not flatter or spoil the next.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "RESULTS.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
HEADER = ("name", "what", "n", "seconds", "reference", "its seconds", "ratio", "goal", "met")
SEED = "0"

Row = dict[str, Any]


def names() -> list[str]:
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def measure(name: str) -> list[Row]:
    """The rows of one benchmark, run in a process of its own."""
    command = [sys.executable, "-m", "tests.benchmarks", "--child", name]
    environment = {**os.environ, "PYTHONHASHSEED": SEED}
    done = subprocess.run(
        command, cwd=HERE.parents[1], env=environment, stdout=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"bench_{name} failed with exit code {done.returncode}")
    # A library may have printed before us; the rows are the last line.
    rows: list[Row] = json.loads(done.stdout.decode().splitlines()[-1])
    return rows


def child(name: str) -> None:
    rows = import_module(f"tests.benchmarks.bench_{name}").run()
    print("\n" + json.dumps(rows, default=float))


def cells(row: Row) -> list[str]:
    goal, seconds = row.get("goal"), row.get("seconds")
    judged = isinstance(goal, (int, float)) and seconds is not None
    met = ("yes" if seconds <= goal else "no") if judged else ""
    return [
        str(row["name"]),
        str(row["what"]),
        number(row.get("n"), ","),
        number(seconds, ".3g"),
        str(row.get("reference") or ""),
        number(row.get("reference_seconds"), ".3g"),
        number(row.get("ratio"), ".3g"),
        number(goal, "g"),
        met,
    ]


def number(value: Any, form: str) -> str:
    """A number as text; words are kept, and what does not apply stays empty."""
    if value is None:
        return ""
    return value if isinstance(value, str) else format(value, form)


def markdown(rows: list[Row]) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *(cells(row) for row in rows)]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def section(rows: list[Row]) -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d")
    machine = (
        f"Measured on {now}: {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}, seed {SEED}. Seconds of wall clock; "
        "the ratio is the reference's time over ours."
    )
    return f"{BEGIN}\n{machine}\n\n{markdown(rows)}\n{END}"


def write(rows: list[Row]) -> None:
    """Replace the measured section, and leave what people wrote around it."""
    text = RESULTS.read_text("utf-8") if RESULTS.exists() else f"# Benchmarks\n\n{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    RESULTS.write_text(before + section(rows) + after, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Run the benchmarks and print their table."
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(names())}")
    parser.add_argument("--write", action="store_true", help=f"rewrite the table in {RESULTS.name}")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child)
        return
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark named {', '.join(unknown)}; there are: {', '.join(names())}")
    rows: list[Row] = []
    for name in options.names or names():
        print(f"bench_{name} ...", file=sys.stderr)
        rows += measure(name)
    print(markdown(rows))
    if options.write:
        write(rows)


if __name__ == "__main__":
    main()
