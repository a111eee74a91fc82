"""Recalibrate a review's predictive distributions by several methods, and judge each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray, IntArray
from kdcal_core.errors import InputError
from kdcal_core.evaluation import (
    MEASURES,
    MODEL,
    STATED,
    Judge,
    RecalibratorScores,
    RepairChoice,
    RowAnswers,
    Space,
    choose_neighbours,
    judge_recalibrators,
)
from kdcal_core.progress import part_of, silent
from kdcal_core.regression import RECALIBRATORS, NeighbourSelection
from kdcal_core.regression.spaces import INPUTS
from kdcal_core.review import Review
from kdcal_core.store import keep_array
from kdcal_core.tasks.decorators import Sets, require_regression, review_task
from kdcal_core.tasks.spaces import (
    SPACE_READS,
    principal_axes,
    read_space,
    space_names,
    space_title,
)
from kdcal_core.text import formatted

WEIGHTED = (
    "Fits and measures use the rows' weights. Numbers of neighbours, and the test of where local "
    "recalibration is needed, count every row once."
)
"""The note where rows have weights."""
_FEW_NEIGHBOURS = 100  # with fewer, 99% intervals covered 97% on real tables


@dataclass(frozen=True)
class RecalibrationSettings:
    """What a recalibration depends on.

    Attributes
    ----------
    methods : tuple of str
        Keys of `kdcal_core.regression.RECALIBRATORS`.
    space : str
        Space in which neighbours are searched: one of `kdcal_core.tasks.space_names`. Untrusted
        text.
    k : int
        Number of neighbours; at most the number of rows, and a note says if it was reduced.
    radius : float or None
        Uses the neighbours within this distance in the standardised space, instead of the k
        nearest.
    kernel : str
    smoothing : str
        How the neighbours' PIT values become a distribution: "kernel", "none" as in Torres et al.,
        or "auto", by CRPS. Isotonic recalibration interpolates linearly with "none".
    search : str
        "exact" or "approximate".
    choose : bool
        Whether k and the space are chosen by cross-fitted CRPS on the calibration rows, among the
        spaces that need no separate job.
    folds, seed : int
        Folds of the cross-fitting where there is no evaluation set, and seed of all draws.
    """

    methods: tuple[str, ...] = ("local", "where_needed", "global", "isotonic", "boosting")
    space: str = "inputs"
    k: int = 1000
    radius: float | None = None
    kernel: Literal["epanechnikov", "uniform"] = "epanechnikov"
    smoothing: Literal["auto", "kernel", "none"] = "auto"
    search: Literal["exact", "approximate"] = "exact"
    choose: bool = False
    folds: int = 5
    seed: int = 0


@dataclass(frozen=True)
class RecalibrationRecord:
    """The settings and results of a recalibration.

    Attributes
    ----------
    settings : RecalibrationSettings
    space : str
        Space in which neighbours were searched. Untrusted text.
    k : int
        Number of neighbours used: as requested, as chosen, or as many as there are.
    judged_on : str
        "evaluation": fitted on the calibration set, judged on the evaluation set; "cross-fitted":
        each calibration row recalibrated by fits on the other folds.
    n_fit, n_judged : int
    scale : float
        Mean absolute outcome of the calibration set, the divisor of sMIS.
    methods : tuple of RecalibratorScores
        The model first.
    selection : NeighbourSelection or None
    choice : RepairChoice
    has_evaluation, has_truth : bool
    weighted : bool
        Whether the rows have weights, which the measures then use.
    notes : tuple of str
    """

    settings: RecalibrationSettings
    space: str
    k: int
    judged_on: Judge
    n_fit: int
    n_judged: int
    scale: float
    methods: tuple[RecalibratorScores, ...]
    selection: NeighbourSelection | None
    choice: RepairChoice
    has_evaluation: bool
    has_truth: bool
    weighted: bool
    notes: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The model and the methods, in their order."""
        return tuple(one.key for one in self.methods)

    def result(self, key: str) -> RecalibratorScores:
        """The scores of one method. Raises KeyError for an unknown one."""
        return {one.key: one for one in self.methods}[key]


def recalibration_judged_text(record: RecalibrationRecord) -> str:
    """The rows on which methods were fitted and judged, and the neighbours used."""
    rows = (
        f"Fitted on {record.n_fit:,} calibration rows, judged on {record.n_judged:,} rows of the "
        "evaluation set."
        if record.judged_on == "evaluation"
        else f"No evaluation set: each of {record.n_judged:,} calibration rows was repaired with "
        f"the other folds of {record.settings.folds}."
    )
    return f"{rows} {_neighbours(record)}".strip()


def _neighbours(record: RecalibrationRecord) -> str:
    asked, where = record.settings, space_title(record.space)
    if asked.radius is not None and not asked.choose:
        return f"Neighbours within {asked.radius:g} in the space: {where}."
    chosen = ", chosen by cross-fitted CRPS" if asked.choose else ""
    capped = (
        f" {asked.k:,} were chosen, but there are no more rows."
        if record.k < asked.k and not asked.choose
        else ""
    )
    return f"{record.k:,} neighbours in the space: {where}{chosen}.{capped}"


@dataclass(frozen=True, eq=False)
class RecalibrationRun:
    """A recalibration with the rows on which it was judged.

    Attributes
    ----------
    record : RecalibrationRecord
    y : (n,) float64
        Outcomes of the judged rows, in the order of their table.
    true_mean : (n,) float64 or None
        The true means of the outcomes, where the table holds them.
    shown : (r,) int64
        Judged rows whose quantiles are kept, ascending.
    space : Space
        Coordinates of the rows in the space in which neighbours were searched, in single precision.
    axes : (n, 2) float64
        The judged rows on the space's principal axes.
    answers : mapping of str to RowAnswers
        By the method's key; each is read when it is used.
    folder : Path
        Folder of the run.
    """

    record: RecalibrationRecord
    y: FloatArray
    true_mean: FloatArray | None
    shown: IntArray
    space: Space
    axes: FloatArray
    answers: Mapping[str, RowAnswers] = field(repr=False)
    folder: Path = field(repr=False)

    @property
    def keys(self) -> tuple[str, ...]:
        """The model and the methods, in the record's order."""
        return self.record.keys

    def result(self, key: str) -> RecalibratorScores:
        """The scores of one method. Raises KeyError for an unknown one."""
        return self.record.result(key)

    def intervals(self, key: str, rows: IntArray | None = None) -> pd.DataFrame:
        """Outcomes, and means and intervals of the model and the method, for reading and download.

        The columns are row (from 1), outcome, then for the model and the method mean, std and the
        two ends of each interval.
        """
        chosen = np.arange(len(self.y)) if rows is None else np.asarray(rows)
        table = {"row": chosen + 1, "outcome": self.y[chosen]}
        for who, answers in (("model", self.answers[MODEL]), (key, self.answers[key])):
            table[f"{who}_mean"] = answers.mean[chosen]
            table[f"{who}_std"] = answers.std[chosen]
            for at, level in enumerate(STATED):
                table[f"{who}_low_{level:.0%}"] = answers.low[chosen, at]
                table[f"{who}_high_{level:.0%}"] = answers.high[chosen, at]
        return pd.DataFrame(table)


def _likeliest(review: Review) -> RecalibrationSettings:
    return RecalibrationSettings(space=space_names(review)[0])


def _settled(review: Review, settings: RecalibrationSettings) -> RecalibrationSettings:
    spaces = space_names(review)
    unknown = next((key for key in settings.methods if key not in RECALIBRATORS), None)
    if unknown is not None or not settings.methods:
        raise InputError(
            f"There is no method {unknown!r}" if unknown else "No method is chosen",
            fix=f"Choose among {', '.join(RECALIBRATORS)}.",
        )
    if settings.space not in spaces:
        raise InputError(
            f"The review offers no space {settings.space!r}",
            fix=f"Choose among {', '.join(spaces)}.",
        )
    if settings.radius is not None and not 0 < settings.radius < np.inf:
        raise InputError(
            f"The radius is {formatted(settings.radius, 'g')}",
            fix="Give a distance above zero, or a k.",
        )
    return settings


@review_task(
    "Recalibrating",
    reads=SPACE_READS,
    needs=require_regression,
    default=_likeliest,
    ranges={"k": (1.0, 1e7), "folds": (2.0, 50.0), "seed": (0.0, 2.0**31)},
    settle=_settled,
    edition=lambda: " ".join(("recommended by one standard error", "weighted fits", *MEASURES)),
)
def recalibrate(sets: Sets, settings: RecalibrationSettings) -> RecalibrationRun:
    """Recalibrate a review: fit and judge every method.

    Raises
    ------
    InputError
        For rows that do not fit the model. A method that cannot be fitted on so few rows is
        named in the record's notes instead.
    """
    reader, progress, path = sets.reader, sets.progress, sets.folder
    assert path is not None  # of every job
    chosen = settings
    fit = reader.distributions("calibration")
    judged = reader.distributions(reader.judged)
    candidates = space_names(reader.review) if chosen.choose else (chosen.space,)
    spaces_read = [
        read_space(
            reader,
            name,
            part_of(progress, 0.1 * at / len(candidates), 0.1 * (at + 1) / len(candidates)),
        )
        for at, name in enumerate(candidates)
    ]
    selection = None
    if chosen.choose:
        selection = choose_neighbours(
            fit,
            spaces_read,
            chosen.k,
            kernel=chosen.kernel,
            folds=chosen.folds,
            seed=chosen.seed,
            progress=part_of(progress, 0.1, 0.3),
        )
        chosen = replace(chosen, k=selection.best_k, space=selection.best_space)
    space = next(one for one in spaces_read if one.name == chosen.space)
    inputs = next((one for one in spaces_read if one.name == INPUTS), None)
    if inputs is None and reader.roles.features:
        inputs = read_space(reader, INPUTS, silent)
    methods = [
        key for key in chosen.methods if inputs is not None or not RECALIBRATORS[key].reads_inputs
    ]
    found = judge_recalibrators(
        methods,
        fit,
        judged if reader.has("evaluation") else None,
        space,
        inputs=inputs,
        settings=asdict(chosen),
        folds=chosen.folds,
        seed=chosen.seed,
        keep=partial(keep_array, path),
        progress=part_of(progress, 0.3, 1.0),
    )
    notes = [f"{RECALIBRATORS[key].title} was left out. {why}" for key, why in found.failed.items()]
    if fit.weight is not None:
        notes.append(WEIGHTED)
    if chosen.radius is None and chosen.k < _FEW_NEIGHBOURS and "local" in chosen.methods:
        notes.append(
            f"With {chosen.k:,} neighbours the outermost intervals tend to be too narrow: for "
            "those of 99%, try 100 neighbours or more as well."
        )
    record = RecalibrationRecord(
        settings=settings,
        space=space.name,
        k=min(chosen.k, fit.n_rows),
        judged_on=found.judge,
        n_fit=fit.n_rows,
        n_judged=judged.n_rows,
        scale=found.scale,
        methods=found.methods,
        selection=selection,
        choice=found.choice,
        has_evaluation=reader.has("evaluation"),
        has_truth=judged.true_mean is not None,
        weighted=judged.weight is not None,
        notes=tuple(notes),
    )
    return RecalibrationRun(
        record=record,
        y=judged.y,
        true_mean=judged.true_mean,
        shown=found.shown,
        space=space.single(),
        axes=principal_axes(space.calibration, space.judged),
        answers=found.answers,
        folder=path,
    )
