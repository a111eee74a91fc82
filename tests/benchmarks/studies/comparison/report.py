"""The table of scores, and the ranks it gives as a table and a picture."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pandas as pd

from kdcal_core import __version__
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts.comparison import MODEL_NAME
from kdcal_core.evaluation import (
    MEASURES,
    CriticalDifference,
    critical_difference,
)
from tests.benchmarks.studies import picture
from tests.benchmarks.studies.comparison.figure import critical_difference_figure, ranks_words
from tests.benchmarks.studies.comparison.scores import (
    ComparisonStudy,
    read_study,
    save_study,
)
from tests.benchmarks.studies.comparison.study import SEED


def write(rows: pd.DataFrame, out: Path) -> None:
    """`scores.csv`, and what follows from it: `ranks.md` and `ranks.png`."""
    place = {measure: at for at, measure in enumerate(MEASURES)}
    table = rows.sort_values(
        ["measure", "data_set", "method"],
        key=lambda column: column.map(place) if column.name == "measure" else column,
        ignore_index=True,
    )
    study = ComparisonStudy(datetime.now(UTC).date().isoformat(), __version__, SEED, table)
    save_study(study, out / "scores.csv")
    write_ranks(read_study(out / "scores.csv"), out)


def write_ranks(study: ComparisonStudy, out: Path) -> None:
    """`ranks.md`, by every measure, and `ranks.png`, by the first."""
    (out / "ranks.md").write_text(_report(study), encoding="utf-8")
    found = ranked(study, study.measures[0])
    figure = critical_difference_figure(found, dark=False, model=MODEL_NAME)
    picture.save([figure], out / "ranks.png")


def ranked(study: ComparisonStudy, measure: str) -> CriticalDifference:
    """Mean ranks of the methods by one measure, with their names."""
    values, methods = study.scores(measure)
    names = tuple(
        MODEL_NAME if key == "uncalibrated" else CALIBRATORS[key].label for key in methods
    )
    return critical_difference(values, names, lower_is_better=MEASURES[measure].lower_is_better)


def _report(study: ComparisonStudy) -> str:
    ranks, text = {}, []
    for measure in study.measures:
        found = ranked(study, measure)
        title = MEASURES[measure].title
        ranks[title] = dict(zip(found.methods, found.mean_rank, strict=True))
        text.append(
            f"- {title}, critical difference {found.critical_difference:.2f}: {ranks_words(found)}"
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
    return "\n".join([about, "", *lines, "", *text, ""])
