"""The table of the study: one value for each data set, method and measure, kept as CSV."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from kdcal_core.calibration import CALIBRATORS
from kdcal_core.data import FloatArray

TABLE = Path(__file__).parents[1] / "results" / "comparison" / "scores.csv"


@dataclass(frozen=True, eq=False)
class ComparisonStudy:
    """One value for each data set, method and measure.

    Attributes
    ----------
    date : str
        ISO date of the run.
    version : str
        Of kdcal.
    seed : int
    table : DataFrame
        Columns data_set, model, n_fit, n_judged, n_classes, method, measure, value.
    """

    date: str
    version: str
    seed: int
    table: pd.DataFrame

    @property
    def data_sets(self) -> tuple[str, ...]:
        """Names of the data sets, in the table's order."""
        return tuple(dict.fromkeys(self.table["data_set"]))

    @property
    def measures(self) -> tuple[str, ...]:
        """Keys of the measures, in the table's order."""
        return tuple(dict.fromkeys(self.table["measure"]))

    def scores(self, measure: str) -> tuple[FloatArray, tuple[str, ...]]:
        """Values (N, k) and the keys of the k methods that every data set has a value for."""
        mine = self.table[self.table["measure"] == measure]
        wide = mine.pivot(index="data_set", columns="method", values="value").dropna(axis=1)
        methods = tuple(key for key in CALIBRATORS if key in wide.columns)
        values = wide.loc[list(self.data_sets), list(methods)].to_numpy(dtype=float)
        return values, methods


def read_study(path: Path = TABLE) -> ComparisonStudy:
    """The kept table; its first line says when, with which version and seed it was made."""
    with path.open(encoding="utf-8") as file:
        about = json.loads(file.readline().removeprefix("#"))
        table = pd.read_csv(file)
    return ComparisonStudy(about["date"], about["version"], about["seed"], table)


def save_study(study: ComparisonStudy, path: Path = TABLE) -> None:
    """Write a table as `read_study` reads it."""
    about = {"date": study.date, "version": study.version, "seed": study.seed}
    text = study.table.to_csv(index=False, float_format="%.6g")
    path.write_text(f"#{json.dumps(about)}\n{text}", encoding="utf-8")
