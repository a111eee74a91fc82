"""What a task is given to work with: a review's rows, each part when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kdcal_core.data import ScoredSet
from kdcal_core.distributions import RegressionSet
from kdcal_core.progress import Progress, silent
from kdcal_core.review import Part, Review, ReviewReader, Which

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.evaluation import Space

# rows x classes, or x the numbers that state a distribution, above which a worker computes
LARGE = 200_000


def is_large(review: Review, reads: Collection[Part] = ()) -> bool:
    """Whether the rows of a review are too many for the process of the app.

    Parameters
    ----------
    reads : collection of str
        What is read. The scored sets count in any case, the training and the foreign rows where
        they are among it.

    Examples
    --------
    >>> is_large(Review("a" * 16))
    False
    """
    rows = sum(one.n_rows for one in review.sets.values())
    if "training" in reads and review.training is not None:
        rows += review.training.n_rows
    if "foreign" in reads:
        rows += sum(one.n_rows for one in review.foreign.values())
    stated = len(review.roles.parameters) if review.roles else 0
    return rows * max(1, len(review.classes), stated) > LARGE


Keep = Callable[[tuple[Hashable, ...], Callable[[], Any]], Any]


def _kept() -> Keep:
    """Makes what is asked for once, for as long as whoever asks is there."""
    made: dict[tuple[Hashable, ...], Any] = {}

    def keep(key: tuple[Hashable, ...], make: Callable[[], Any]) -> Any:
        if key not in made:
            made[key] = make()
        return made[key]

    return keep


@dataclass(frozen=True)
class Sets:
    """What tasks read of a review, each part when it is asked for, and who hears of progress.

    Attributes
    ----------
    reader : ReviewReader
        Refuses what a task does not declare.
    progress : callable
    folder : Path, optional
        Where the result will be kept: a task may write further files there.
    open_space : callable, optional
        Gives a space of a regression by its name, in a process that must not open the model.
    keep : callable
        Called with a key and a function that makes what is kept under it, for what several
        tasks need. What is kept must not be changed.
    """

    reader: ReviewReader
    progress: Progress = silent
    folder: Path | None = None
    open_space: Callable[[str], Space] | None = None
    keep: Keep = field(default_factory=_kept)

    def read(self, which: Which) -> ScoredSet:
        """A scored set of a classification.

        Raises
        ------
        InputError
            As `kdcal_core.review.load_set`.
        """
        found: ScoredSet = self.keep(("scored", which), lambda: self.reader.scored(which))
        return found

    def distributions(self, which: Which) -> RegressionSet:
        """A scored set of a regression.

        Raises
        ------
        InputError
            As `kdcal_core.review.load_regression_set`.
        """
        found: RegressionSet = self.keep(("set", which), lambda: self.reader.distributions(which))
        return found

    def frame(self, which: Which, columns: tuple[str, ...] | None = None) -> pd.DataFrame:
        """A set's table: all columns, or only those asked for."""
        found: pd.DataFrame = self.keep(
            ("frame", which, columns), lambda: self.reader.frame(which, columns)
        )
        return found


# what tasks declare that they read, where it depends on their arguments

BOTH_SETS: tuple[Part, ...] = ("calibration", "evaluation")
ALL_ROWS: tuple[Part, ...] = ("model", "calibration", "evaluation", "training")


def the_set(arguments: dict[str, Any]) -> tuple[Part, ...]:
    """The set that is looked at."""
    which: Part = arguments["which"]
    return (which,)


def the_set_and_its_scale(arguments: dict[str, Any]) -> tuple[Part, ...]:
    """The set that is looked at, on the scale of the calibration set."""
    return tuple(dict.fromkeys(("calibration", *the_set(arguments))))
