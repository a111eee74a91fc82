"""Run the papers' experiments over many seeds and write tables, pictures and a verdict.

``python -m tests.benchmarks.studies simulations`` for Dey et al., Figs. 3 and 7;
``python -m tests.benchmarks.studies tables --data FOLDER`` for real tables (a folder of Parquet
files whose column ``y`` is the class); ``depth`` for Dey et al., Fig. 2 (with ``--data FOLDER`` on
``fashion_mnist.npz`` too) and ``images`` for Dey et al., Fig. 5; ``recalibration`` for all tables
of Torres et al., their simulation study and real tables (more of them with ``--data FOLDER``), or
with ``--only`` some of these; ``heterogeneous`` for Durfee et al.'s tables on the shipped census,
or on five real tables with ``--data FOLDER`` (``--cache FOLDER`` keeps the networks' scores, so
that the calibrators can be measured again without training); ``partitions`` for which kind of
regions should be the default, depths and stages tuned (on four real tables with ``--data
FOLDER``); ``comparison`` for all offered
calibrators over the shipped samples and, with ``--data FOLDER``, further real tables, and how they
rank; ``small_samples`` for calibrators on 100 to 5,000 rows, on made-up tables and, with ``--data
FOLDER``, fifteen real ones (``--cache FOLDER`` keeps what their models say); ``watch`` for
estimates without labels under made covariate shifts, on real tables with ``--data FOLDER``;
``inside_outside`` for what falling back outside costs a kernel density graph inside;
``arena`` for every calibrator of scores and those of probmetrics over real tables, seven kinds of
models and 300 to 5,000 rows (with ``--data FOLDER``; it goes on from what ``--cache FOLDER`` has);
``dependence`` for intervals and tests of rows that depend on one another, in clusters or in time;
``folder_times`` for the intervals of folders in time beside those of one table;
``region_search`` for how often the search for regions finds made-up faults;
``unknown_images`` for Dey et al., Table 1 on ``mnist.npz`` against ``fashion_mnist.npz`` and noise
(with ``--data FOLDER``), or with ``--protocol cifar`` for CIFAR-10, CIFAR-100 and SVHN as in the
papers, from the published binary files; ``mnist_ensembles`` for Salamon et al., Figs. 16 to 19 on
``mnist.npz`` (with ``--data FOLDER``); ``kills`` for what processes that are killed at random
moments leave of audits, on both databases (``--moments`` of each case).
``--quick`` takes minutes, the whole an hour or more.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd

HERE = Path(__file__).parent
RESULTS = HERE / "results"
STUDIES = (
    *("simulations", "tables", "depth", "images"),
    *("recalibration", "heterogeneous", "partitions", "comparison", "small_samples"),
    *("watch", "inside_outside", "arena", "region_search"),
    *("unknown_images", "mnist_ensembles", "kills", "dependence", "folder_times"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.studies", description=__doc__.split("\n", 1)[0]
    )
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--only", nargs="+", help="parts of the study")
    parser.add_argument(
        "--protocol", choices=("mnist", "cifar"), default="mnist", help="sets of unknown_images"
    )
    parser.add_argument("--quick", action="store_true", help="few sizes and repetitions")
    parser.add_argument("--models", nargs="+", default=["forest", "network"])
    parser.add_argument("--data", type=Path, help="folder of the real tables and images")
    parser.add_argument("--cache", type=Path, help="folder that keeps the networks' scores")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where tables and pictures go")
    parser.add_argument("--moments", type=int, default=200, help="kills of each case")
    parser.add_argument("--minutes", type=float, default=600, help="start no task after so long")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # one process a core; the workers inherit it

    from tests.benchmarks.studies import (
        dependence,
        depth,
        folder_times,
        images,
        inside_outside,
        mnist_ensembles,
        region_search,
        simulations,
        tables,
        unknown_images,
    )

    if options.study == "recalibration":
        _recalibration(options)
        return
    if options.study == "heterogeneous":
        _heterogeneous(options)
        return
    if options.study == "partitions":
        _partitions(options)
        return
    if options.study == "comparison":
        _comparison(options)
        return
    if options.study == "small_samples":
        _small_samples(options)
        return
    if options.study == "watch":
        _watch(options)
        return
    if options.study == "arena":
        if options.data is None:
            parser.error("--data is needed for the arena")
        _arena(options)
        return
    if options.study == "kills":
        from tests.benchmarks.studies import kills

        sys.exit(0 if kills.write(options.moments, options.out, options.only or ()) else 1)
    kinds = tuple(options.models)
    if options.study == "simulations":
        tasks, run = simulations.tasks(options.quick, kinds), simulations.run
    elif options.study == "depth":
        tasks, run = depth.tasks(options.quick, options.data), depth.run
    elif options.study == "images":
        tasks, run = images.tasks(options.quick), images.run
    elif options.study == "region_search":
        tasks, run = region_search.tasks(options.quick), region_search.run
    elif options.study == "dependence":
        tasks, run = dependence.tasks(options.quick), dependence.run
    elif options.study == "folder_times":
        tasks, run = folder_times.tasks(options.quick), folder_times.run
    else:
        if options.data is None:
            parser.error("--data is needed for the study of real tables")
        if options.study in ("unknown_images", "mnist_ensembles"):
            of_images = unknown_images if options.study == "unknown_images" else mnist_ensembles
            which = {"protocol": options.protocol} if of_images is unknown_images else {}
            tasks, run = of_images.tasks(options.quick, options.data, **which), of_images.run
        else:
            study = inside_outside if options.study == "inside_outside" else tables
            tasks, run = study.tasks(options.quick, kinds, options.data), study.run
    rows = _run_all(tasks, run, options.workers, options.minutes)
    options.out.mkdir(parents=True, exist_ok=True)
    writers = {
        "dependence": dependence,
        "depth": depth,
        "folder_times": folder_times,
        "images": images,
        "inside_outside": inside_outside,
        "mnist_ensembles": mnist_ensembles,
        "region_search": region_search,
        "unknown_images": unknown_images,
    }
    if options.study in writers:
        writers[options.study].write(rows, options.out)
    else:
        _write(rows, options.study, kinds, options.out)


def _recalibration(options: argparse.Namespace) -> None:
    from tests.benchmarks.studies.recalibration.parts import PARTS

    out = options.out / "recalibration"
    out.mkdir(parents=True, exist_ok=True)
    for name in options.only or PARTS:
        part = PARTS[name]
        where = {"folder": options.data} if name in ("real", "repairs", "regularised") else {}
        tasks = part.tasks(options.quick, **where)
        rows = _run_all(tasks, part.run, options.workers, options.minutes)
        part.write(rows, out)


def _heterogeneous(options: argparse.Namespace) -> None:
    from tests.benchmarks.studies.heterogeneous import report, study

    out = options.out / "heterogeneous"
    out.mkdir(parents=True, exist_ok=True)
    tasks = study.tasks(options.quick, options.data, options.cache)
    report.write(_run_all(tasks, study.run, options.workers, options.minutes), out)


def _partitions(options: argparse.Namespace) -> None:
    from tests.benchmarks.studies.heterogeneous import partitions

    out = options.out / "heterogeneous"
    out.mkdir(parents=True, exist_ok=True)
    tasks = partitions.tasks(options.quick, options.data)
    partitions.write(_run_all(tasks, partitions.run, options.workers, options.minutes), out)


def _comparison(options: argparse.Namespace) -> None:
    from tests.benchmarks.studies.comparison import report, study

    out = options.out / "comparison"
    out.mkdir(parents=True, exist_ok=True)
    tasks = study.tasks(options.quick, options.data)
    rows = _run_all(tasks, study.run, options.workers, options.minutes)
    report.write(rows, out)


def _small_samples(options: argparse.Namespace) -> None:
    from tests.benchmarks.studies.small_samples import report, study

    if options.data is None:
        print("No --data folder: made-up tables alone", file=sys.stderr)
    out = options.out / "small_samples"
    out.mkdir(parents=True, exist_ok=True)
    tasks = study.tasks(options.quick, options.data, options.cache)
    report.write(_run_all(tasks, study.run, options.workers, options.minutes), out)


def _watch(options: argparse.Namespace) -> None:
    from tests.benchmarks.studies.watch import report, study

    out = options.out / "watch"
    out.mkdir(parents=True, exist_ok=True)
    tasks = study.tasks(options.quick, options.data, options.cache)
    report.write(_run_all(tasks, study.run, options.workers, options.minutes), out)


def _arena(options: argparse.Namespace) -> None:
    from tests.benchmarks.studies.arena import report, study

    tasks = study.tasks(options.quick, options.data, options.cache)
    rows = _run_all(tasks, study.run, options.workers, options.minutes)
    report.write(rows, HERE.parent if options.out == RESULTS else options.out)


def _run_all(tasks: list[dict[str, Any]], run: Any, workers: int, minutes: float) -> pd.DataFrame:
    """Rows of all tasks; those not begun within ``minutes`` are left out and counted."""
    began, rows, left_out = time.monotonic(), [], 0
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(run, task) for task in tasks}
        for at, done in enumerate(as_completed(list(waiting)), 1):
            if done.cancelled():
                left_out += 1
                continue
            rows += done.result()
            print(f"\r{at}/{len(tasks)}", end="", file=sys.stderr, flush=True)
            if time.monotonic() - began > 60 * minutes:
                for future in waiting:
                    future.cancel()
    print(f"\n{left_out} tasks were not begun in time", file=sys.stderr)
    return pd.DataFrame(rows)


def _write(rows: pd.DataFrame, study: str, kinds: tuple[str, ...], out: Path) -> None:
    from tests.benchmarks.studies import drawings, picture, summary

    rows.to_parquet(out / f"{study}_runs.parquet")
    table = summary.summarised(rows)
    table.to_csv(out / f"{study}.csv", index=False, float_format="%.5g")
    text = [summary.markdown(summary.verdict(rows))]
    if study == "tables":
        for kind, mine in rows.groupby("kind"):
            text += [f"Improvement, {kind}", summary.markdown(summary.improvement_tests(mine))]
    (out / f"{study}_verdict.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")
    for kind in kinds:
        if study == "simulations":
            for name, figures in drawings.simulation_figures(table, kind).items():
                picture.save(figures, out / f"{study}_{kind}_{name}.png")
        else:
            picture.save(drawings.table_figures(rows, kind), out / f"{study}_{kind}.png")
            for name, figures in drawings.pages_of_tables(table, kind).items():
                picture.save(figures, out / f"{study}_{kind}_{name}.png")


if __name__ == "__main__":
    main()
