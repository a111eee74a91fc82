"""A simulation over training sizes: every measure of every method, several times at each size.

One row of the papers' simulation figures (Dey et al., Fig. 3; Fig. 1 of the earlier version).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of
from kdcal_core.simulation import SIMULATIONS
from kdcal_core.tasks.lab import LabSettings, check_lab, simulate
from kdcal_core.tasks.lab_measures import (
    FAR,
    MEASURES,
    METHODS,
    GraphChoice,
    Method,
    all_answers,
    measured,
)
from kdcal_core.tasks.task import task

SIZES = (100, 316, 1000, 3162)
_SEEDS_APART = 7919  # between repetitions, so that no two share rows


@dataclass(frozen=True)
class SizesSettings:
    """What is repeated.

    Attributes
    ----------
    lab : LabSettings
        The simulation and the model; its number of rows does not count, its seed is that of the
        first repetition.
    sizes : tuple of int
        Rows drawn, ascending.
    repetitions : int
        Of each size; the papers have 10 and 45.
    """

    lab: LabSettings = field(default_factory=LabSettings)
    sizes: tuple[int, ...] = SIZES
    repetitions: int = 5


@dataclass(frozen=True, eq=False)
class SizesRun:
    """Measures over training sizes.

    Attributes
    ----------
    settings : SizesSettings
    values : (S, R, M, E) float64
        By size, repetition, method (the order of `METHODS`) and measure (that of `MEASURES`).
    """

    settings: SizesSettings
    values: FloatArray

    @property
    def sizes(self) -> FloatArray:
        """Rows drawn, (S,)."""
        return np.array(self.settings.sizes, dtype=np.float64)

    def quartiles(self, method: Method, measure: str) -> FloatArray:
        """First quartile, median and third quartile over the repetitions, (3, S)."""
        at = list(METHODS).index(method), MEASURES.index(measure)
        found: FloatArray = np.percentile(self.values[:, :, at[0], at[1]], [25, 50, 75], axis=1)
        return found

    def table(self) -> pd.DataFrame:
        """One row a size, repetition and method."""
        sizes, repetitions, methods, measures = self.values.shape
        index = pd.MultiIndex.from_product(
            [self.settings.sizes, range(1, repetitions + 1), METHODS],
            names=["rows", "repetition", "method"],
        )
        flat = self.values.reshape(sizes * repetitions * methods, measures)
        return pd.DataFrame(flat, index, list(MEASURES)).reset_index()


def _settled(settings: SizesSettings) -> SizesSettings:
    if not settings.sizes or list(settings.sizes) != sorted(set(settings.sizes)):
        raise InputError(
            "The sizes are not ascending numbers of rows", fix="Give each size once, in order."
        )
    if settings.repetitions < 1:
        raise InputError(
            f"repetitions is {settings.repetitions:,}", fix="Choose a whole number from 1 on."
        )
    for size in settings.sizes:
        check_lab(replace(settings.lab, n=size))
    # the sizes take the place of the number of rows: with any, it is the same job
    return replace(settings, lab=replace(settings.lab, n=settings.sizes[0]))


def _title(arguments: dict[str, Any]) -> str:
    settings: SizesSettings = arguments["settings"]
    return f"{SIMULATIONS[settings.lab.simulation].title} over training sizes"


@task(_title, settle=_settled, edition=lambda: f"papers refitted, {[*METHODS]} by {[*MEASURES]}")
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
    """
    values = np.empty((len(settings.sizes), settings.repetitions, len(METHODS), len(MEASURES)))
    # a run takes about as long as it has rows
    ends = np.cumsum(np.repeat(settings.sizes, settings.repetitions)).astype(np.float64)
    starts, total = np.concatenate([[0.0], ends[:-1]]), ends[-1]
    for at, (size, repetition) in enumerate(np.ndindex(values.shape[:2])):
        report = part_of(progress, starts[at] / total, ends[at] / total)
        one = replace(
            settings.lab,
            n=settings.sizes[size],
            seed=settings.lab.seed + _SEEDS_APART * repetition,
            radii=(FAR,),
        )
        values[size, repetition] = _values(one, _numbered(report, one.n, repetition))
    return SizesRun(settings, values)


def _values(settings: LabSettings, progress: Progress) -> FloatArray:
    run = simulate(settings, progress)
    found = all_answers(run, GraphChoice())
    rows = [measured(run, found[method], n_boot=1).values() for method in METHODS]
    return np.array([[estimate.value for estimate in row] for row in rows])


def _numbered(progress: Progress, n: int, repetition: int) -> Progress:
    return lambda share, note: progress(share, f"{n:,} rows, run {repetition + 1}: {note}")
