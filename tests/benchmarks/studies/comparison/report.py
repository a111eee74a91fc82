"""The table that ships with the package, and the ranks it gives."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from kdcal_core import __version__
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.diagnostics.comparison import MEASURES, critical_difference
from kdcal_core.tasks import ComparisonStudy, save_study
from tests.benchmarks.studies.comparison.study import SEED


def write(rows: pd.DataFrame, out: Path, *, quick: bool) -> None:
    """`ranks.md`; and, unless it was a quick run, the table that ships with the package."""
    place = {measure: at for at, measure in enumerate(MEASURES)}
    table = rows.sort_values(
        ["measure", "data_set", "method"],
        key=lambda column: column.map(place) if column.name == "measure" else column,
        ignore_index=True,
    )
    study = ComparisonStudy(datetime.now(UTC).date().isoformat(), __version__, SEED, table)
    if not quick:
        save_study(study)
    (out / "ranks.md").write_text(_report(study), encoding="utf-8")


def _report(study: ComparisonStudy) -> str:
    ranks, told = {}, []
    for measure in study.measures:
        values, methods = study.scores(measure)
        found = critical_difference(
            values,
            tuple(CALIBRATORS[key].label for key in methods),
            lower_is_better=MEASURES[measure].lower_is_better,
        )
        title = MEASURES[measure].title
        ranks[title] = dict(zip(found.methods, found.mean_rank, strict=True))
        told.append(
            f"- {title}: Friedman p {found.friedman_p:.2g}, "
            f"critical difference {found.critical_difference:.2f}"
        )
    table = pd.DataFrame(ranks).sort_values(next(iter(ranks)))
    header = ["method", *table.columns]
    lines = [
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(
            f"| {name} | " + " | ".join(f"{v:.2f}" for v in row) + " |"
            for name, row in zip(table.index, table.to_numpy(), strict=True)
        ),
    ]
    about = (
        f"Mean ranks over {len(study.data_sets)} data sets ({', '.join(study.data_sets)}), "
        f"{study.date}, kdcal {study.version}, seed {study.seed}."
    )
    return "\n".join([about, "", *lines, "", *told, ""])
