"""A folder of predictions larger than memory: one pass, all estimates, and bounded memory.

The rows are those of a binary model, in Parquet files of 5 million rows that are made first.
Beside it, in the same run, the bare histogram (rows, events and sum of scores in 10,000 bins) by
NumPy over the same row groups and, where another Python has them, by polars' streaming engine and
DuckDB:

    SUMMARY_ROWS=100000000 SUMMARY_REFERENCES=/path/to/python python -m tests.benchmarks summaries

Above 100 million rows the same files are read again and again, as parts of one table, and the
references are left out. Seconds are of the clock; "what" also holds processor seconds and the
peak of memory, which a busy machine disturbs less.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = int(float(os.environ.get("SUMMARY_ROWS", 10_000_000)))
REFERENCES = os.environ.get("SUMMARY_REFERENCES")
GOAL = {100_000_000: 60.0, 1_000_000_000: 600.0}  # seconds
_FILE, _GROUP, _STORED = 5_000_000, 1_000_000, 100_000_000

_MEASURED = """
import json, resource, sys, time
from pathlib import Path
start = time.perf_counter()
{body}
seconds = time.perf_counter() - start
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
used = resource.getrusage(resource.RUSAGE_SELF)
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps([int(found), seconds, used.ru_utime + used.ru_stime, peak]))
"""

_OURS = """
from kdcal_core.data import Roles
from kdcal_core.data.parquet_folder import PartedTable, parquet_files
from kdcal_core.diagnostics.summaries import summary_estimates
from kdcal_core.review.folder_summary import summarise_table
roles = Roles(target="y", outputs=(("1", "p"),))
files = parquet_files(sys.argv[1]) * int(sys.argv[2])
summary = summarise_table(PartedTable(files), roles, ("0", "1"))
estimates = summary_estimates(summary)
found = summary.n
"""

_NUMPY = """
import numpy as np, pyarrow.parquet as pq
bins = np.zeros((3, 10_000))
for path in sorted(Path(sys.argv[1]).glob("*.parquet")):
    for batch in pq.ParquetFile(path).iter_batches(65_536):
        p, y = batch["p"].to_numpy(), batch["y"].to_numpy()
        at = np.minimum((p * 10_000).astype(np.int64), 9_999)
        for row, weight in enumerate((None, y, p)):
            bins[row] += np.bincount(at, weight, 10_000)
found = bins[0].sum()
"""

_POLARS = """
import polars as pl
table = pl.scan_parquet(sys.argv[1] + "/*.parquet")
at = (pl.col("p") * 10_000).cast(pl.Int32).clip(0, 9_999)
sums = pl.len(), pl.col("y").cast(pl.Int64).sum(), pl.col("p").sum()
grouped = table.group_by(at.alias("at")).agg(*sums)
found = grouped.collect(engine="streaming")["len"].sum()
"""

_DUCKDB = """
import duckdb
found = duckdb.sql(
    "select count(*) as n, sum(y), sum(p), least(floor(p * 10000), 9999) as place "
    f"from '{sys.argv[1]}/*.parquet' group by place"
).fetchall()
found = sum(row[0] for row in found)
"""


def run() -> list[dict[str, Any]]:
    """Our pass with every estimate, and the references' histogram, over the same files."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        stored = min(ROWS, _STORED)
        if shutil.disk_usage(folder).free < 20 * stored:
            raise SystemExit(f"{stored:,} rows need {20 * stored / 1e9:.0f} GB of disk")
        _make(folder, stored)
        times = ROWS // stored
        _measure(folder, _NUMPY)  # the files are then in the system's cache for all
        n, seconds, processor, peak = _measure(folder, _OURS, times=times)
        assert n == times * stored
        ours = f"23 estimates with intervals, {processor:.0f} s of processor, {peak:.0f} MB"
        if times > 1:
            return [
                {
                    "name": "summaries",
                    "what": f"{ours}; {stored:,} rows read {times} times",
                    "n": n,
                    "seconds": seconds,
                    "goal": GOAL.get(n),
                }
            ]
        references = {"NumPy, the bare histogram": _measure(folder, _NUMPY)}
        if REFERENCES:
            for name, body in (("polars streaming", _POLARS), ("DuckDB", _DUCKDB)):
                references[f"{name}, the bare histogram"] = _measure(folder, body, REFERENCES)
        rows = []
        for name, (theirs, other, work, most) in references.items():
            assert theirs == ROWS
            rows.append(
                {
                    "name": "summaries",
                    "what": f"{ours}; the other {work:.0f} s, {most:.0f} MB",
                    "n": ROWS,
                    "seconds": seconds,
                    "reference": name,
                    "reference_seconds": other,
                    "ratio": other / seconds,
                    "goal": GOAL.get(ROWS),
                }
            )
        return rows


def _make(folder: Path, rows: int) -> None:
    """Files of rows, each from a seed of its own."""
    schema = pa.schema([("p", pa.float64()), ("y", pa.int8())])
    for at, first in enumerate(range(0, rows, _FILE)):
        rng = np.random.default_rng([0, at])
        left = min(_FILE, rows - first)
        path = folder / f"part-{at:05d}.parquet"
        with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
            while left:
                n = min(left, _GROUP)
                left -= n
                odds = rng.normal(-1.5, 1.5, n)
                p = 1.0 / (1.0 + np.exp(-1.2 * odds))
                y = (rng.random(n) < 1.0 / (1.0 + np.exp(-odds))).astype(np.int8)
                writer.write_table(pa.table({"p": p, "y": y}), row_group_size=_GROUP)


def _measure(
    folder: Path, body: str, python: str = sys.executable, times: int = 1
) -> tuple[int, float, float, float]:
    """Rows, seconds, processor seconds and peak memory in MB of a process of its own."""
    done = subprocess.run(
        [python, "-c", _MEASURED.format(body=body), str(folder), str(times)],
        stdout=subprocess.PIPE,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    n, seconds, processor, peak = json.loads(done.stdout.decode().splitlines()[-1])
    return n, seconds, processor, peak
