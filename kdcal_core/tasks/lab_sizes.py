"""The simulation lab over training sizes: every run repeated, and its measures by size.

For classifications this is one row of the papers' simulation figures (Dey et al., Fig. 3; Fig. 1 of
the earlier version), for regressions Torres et al., Fig. 4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of
from kdcal_core.simulation import REGRESSION_SIMULATIONS, SIMULATIONS
from kdcal_core.tasks.decorators import check_ranges, task
from kdcal_core.tasks.lab import LabSettings, check_lab, simulate
from kdcal_core.tasks.lab_measures import (
    FAR,
    LAB_MEASURES,
    METHODS,
    GraphChoice,
    all_answers,
    measured,
)
from kdcal_core.tasks.regression_lab import (
    NEIGHBOURS,
    RegressionLabSettings,
    check_regression_lab,
    neighbour_measures,
)

SIZES = (100, 316, 1000, 3162)
_SEEDS_APART = 7919  # distance between the repetitions' seeds, so that no two share rows
_Lab = LabSettings | RegressionLabSettings


@dataclass(frozen=True)
class Repeated:
    """What is measured in each run of a lab.

    Attributes
    ----------
    title : callable
        The simulation's name, from the settings.
    methods : mapping of str to str
        Names, by key.
    measures : tuple of str
        Keys of the measures.
    check : callable
        Checks the lab's settings.
    fixed : dict
        Settings that do not count or are the same in every run.
    run : callable
        From the settings and the progress of a run to the measures of each method.
    """

    title: Callable[[Any], str]
    methods: Mapping[str, str]
    measures: tuple[str, ...]
    check: Callable[[Any], _Lab]
    fixed: dict[str, Any]
    run: Callable[[Any, Progress], Iterable[Iterable[float]]]


def _lab_measures(settings: LabSettings, progress: Progress) -> Iterable[Iterable[float]]:
    run = simulate(settings, progress)
    found = all_answers(run, GraphChoice())
    for method in METHODS:
        yield [each.value for each in measured(run, found[method], n_boot=1).values()]


REPEATED: dict[type[_Lab], Repeated] = {
    LabSettings: Repeated(
        title=lambda lab: SIMULATIONS[lab.simulation].title,
        methods={str(key): label for key, label in METHODS.items()},
        measures=LAB_MEASURES,
        check=check_lab,
        fixed={"radii": (FAR,)},
        run=_lab_measures,
    ),
    RegressionLabSettings: Repeated(
        title=lambda lab: REGRESSION_SIMULATIONS[lab.simulation].title,
        methods={"model": "Model", **{f"local_{k}": f"Local, k = {k:,}" for k in NEIGHBOURS}},
        measures=("mse_truth", "coverage95"),
        check=check_regression_lab,
        fixed={"k": None},
        run=neighbour_measures,
    ),
}


@dataclass(frozen=True)
class SizesSettings:
    """The simulation and how often it is repeated.

    Attributes
    ----------
    lab : LabSettings or RegressionLabSettings
        The simulation and the model. Its number of rows is ignored, and its seed is that of the
        first repetition. The radii of a classification and the number of neighbours of a regression
        are ignored too.
    sizes : tuple of int
        Rows drawn, ascending.
    repetitions : int
        Repetitions of each size; Dey et al. have 10 and 45.
    """

    lab: LabSettings | RegressionLabSettings = field(default_factory=LabSettings)
    sizes: tuple[int, ...] = SIZES
    repetitions: int = 5

    @property
    def repeated(self) -> Repeated:
        """What is measured in each run."""
        return REPEATED[type(self.lab)]


@dataclass(frozen=True, eq=False)
class SizesRun:
    """Measures over training sizes.

    Attributes
    ----------
    settings : SizesSettings
    values : (S, R, M, E) float64
        By size, repetition, method and measure, in the order of `Repeated`. NaN where a method
        needs more rows.
    """

    settings: SizesSettings
    values: FloatArray

    def of(self, measure: str) -> FloatArray:
        """The values of a measure by size, repetition and method, (S, R, M)."""
        found: FloatArray = self.values[..., self.settings.repeated.measures.index(measure)]
        return found

    def table(self) -> pd.DataFrame:
        """One row for each size, repetition and method that was run."""
        sizes, repetitions, methods, measures = self.values.shape
        repeated = self.settings.repeated
        index = pd.MultiIndex.from_product(
            [self.settings.sizes, range(1, repetitions + 1), repeated.methods],
            names=["rows", "repetition", "method"],
        )
        flat = self.values.reshape(sizes * repetitions * methods, measures)
        return pd.DataFrame(flat, index, list(repeated.measures)).dropna(how="all").reset_index()


def _settled(settings: SizesSettings) -> SizesSettings:
    sizes, repeated = settings.sizes, settings.repeated
    if not sizes or list(sizes) != sorted(set(sizes)):
        raise InputError(
            "The sizes are not ascending numbers of rows", fix="Give each size once, in order."
        )
    check_ranges(settings, {"repetitions": (1, 1000)})
    # what does not count is fixed, so that with any value it is the same job
    first, *_ = (repeated.check(replace(settings.lab, n=size, **repeated.fixed)) for size in sizes)
    return replace(settings, lab=first)


def _title(arguments: dict[str, Any]) -> str:
    settings: SizesSettings = arguments["settings"]
    return f"{settings.repeated.title(settings.lab)} over training sizes"


def _edition() -> str:
    parts = [f"{[*each.methods]} by {[*each.measures]}" for each in REPEATED.values()]
    return f"papers refitted, temperature of half a nat, {', '.join(parts)}"


@task(_title, settle=_settled, edition=_edition)
def repeat(settings: SizesSettings, progress: Progress) -> SizesRun:
    """Repeat a simulation over sizes.

    Raises
    ------
    InputError
        For settings out of range.

    Examples
    --------
    >>> repeat.request(SizesSettings()).title
    'Gaussian XOR over training sizes'
    >>> repeat.request(SizesSettings(RegressionLabSettings())).title
    'Widening parabola over training sizes'
    """
    repeated, shape = settings.repeated, (len(settings.sizes), settings.repetitions)
    values = np.empty((*shape, len(repeated.methods), len(repeated.measures)))
    # the duration of a run is about proportional to its rows
    ends = np.cumsum(np.repeat(settings.sizes, settings.repetitions)).astype(np.float64)
    starts, total = np.concatenate([[0.0], ends[:-1]]), ends[-1]
    for at, (size, repetition) in enumerate(np.ndindex(shape)):
        report = part_of(progress, starts[at] / total, ends[at] / total)
        seed = settings.lab.seed + _SEEDS_APART * repetition
        one = replace(settings.lab, n=settings.sizes[size], seed=seed)
        rows = repeated.run(one, _numbered(report, one.n, repetition))
        values[size, repetition] = [[*row] for row in rows]
    return SizesRun(settings, values)


def _numbered(progress: Progress, n: int, repetition: int) -> Progress:
    return lambda share, note: progress(share, f"{n:,} rows, run {repetition + 1}: {note}")
