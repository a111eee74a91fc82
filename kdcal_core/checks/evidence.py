"""What checks look at: the judged rows, and what else the review holds, each read on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kdcal_core.data import FloatArray, ScoredSet, Task
from kdcal_core.diagnostics.targets import Target, targets
from kdcal_core.distributions import RegressionSet, randomised_pit
from kdcal_core.once import Once
from kdcal_core.progress import Progress, silent

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.evaluation import Space
    from kdcal_core.evaluation.overlap import SetRows
    from kdcal_core.review import ReviewData


@dataclass(frozen=True, eq=False)
class Evidence:
    """The rows that checks judge, and what else they may read.

    Attributes
    ----------
    rows : ScoredSet or RegressionSet
        The rows that are judged, with the model's answers.
    calibration : ScoredSet or RegressionSet or None
        The calibration set, where the judged rows are others.
    event : int or None
        Which of two classes is the event that the probabilities are of; None where the
        confidence in the predicted class is looked at.
    inputs : callable
        ``() -> DataFrame`` of what describes the judged rows; None where nothing does.
    groups : callable
        ``() -> DataFrame`` of the declared groups' columns; None where none are declared.
    times : callable
        ``() -> Series`` of the column by which the judged rows are ordered; None without one.
    review : callable
        ``() -> ReviewData`` with the model open; None where the rows are not of a classification
        review.
    space : callable
        ``() -> Space`` in which rows of a regression have neighbours; None where there is no
        review.
    sets : callable
        ``() -> sequence of SetRows`` of all tables of the review, training and foreign rows too,
        whose rows are compared; None where there is no review.
    missing : mapping of column to number of missing values
        Of the columns that the model reads.
    file : str
        Digest of the file of the judged rows; empty where there is none.
    seed : int
        Of every random step.
    progress : callable
    once : Once
        Keeps what several checks, or one at several levels, need.
    """

    rows: ScoredSet | RegressionSet
    calibration: ScoredSet | RegressionSet | None = None
    event: int | None = None
    inputs: Callable[[], pd.DataFrame] | None = None
    groups: Callable[[], pd.DataFrame] | None = None
    times: Callable[[], pd.Series[Any]] | None = None
    review: Callable[[], ReviewData] | None = None
    space: Callable[[], Space] | None = None
    sets: Callable[[], Sequence[SetRows]] | None = None
    missing: Mapping[str, int] = field(default_factory=dict)
    file: str = ""
    seed: int = 0
    progress: Progress = silent
    once: Once = field(default_factory=Once, repr=False)

    @property
    def task(self) -> Task:
        """Classification or regression."""
        return "classification" if isinstance(self.rows, ScoredSet) else "regression"

    @property
    def n_rows(self) -> int:
        """Rows that are judged."""
        return self.rows.n_rows

    @property
    def scored(self) -> ScoredSet:
        """The judged rows of a classification."""
        assert isinstance(self.rows, ScoredSet)
        return self.rows

    @property
    def known(self) -> ScoredSet | None:
        """The calibration set of a classification, where the judged rows are others."""
        return self.calibration if isinstance(self.calibration, ScoredSet) else None

    @property
    def predicted(self) -> RegressionSet:
        """The judged rows of a regression."""
        assert isinstance(self.rows, RegressionSet)
        return self.rows

    @property
    def pit(self) -> FloatArray:
        """PIT values of the judged rows of a regression, (n,)."""
        rows = self.predicted
        return self.once("pit", lambda: randomised_pit(rows.distribution, rows.y, self.seed))

    def target(self, rows: ScoredSet | None = None) -> Target:
        """What is stated of each row and whether it happened: the event, or the predicted class.

        ``rows`` are those of another set than the judged one.
        """
        scored = self.scored if rows is None else rows
        kind = "confidence" if self.event is None else "class"
        found = targets(scored.proba, scored.y, scored.design, kind, self.event)  # type: ignore[arg-type]
        return found[0]
