"""How the rows of each task are added up, block by block, to the summary of a folder."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from kdcal_core.data import (
    Roles,
    ScoredSet,
    Task,
    check_proba,
    cluster_column,
    outcome_column,
    target_labels,
    true_mean_column,
    weight_column,
)
from kdcal_core.data.times import time_span
from kdcal_core.diagnostics.summaries import (
    ClassSummary,
    ClassTally,
    GroupSummary,
    RegressionSummary,
    Summary,
    class_groups,
    effective_forecasts,
    n_clusters,
    summarise_regression,
)
from kdcal_core.diagnostics.summaries.by_time import TimeTable
from kdcal_core.diagnostics.summaries.cluster_blocks import RowClusters, cluster_numbers
from kdcal_core.diagnostics.summaries.group_summary import load_group_kernel
from kdcal_core.diagnostics.summaries.row_weights import times_of
from kdcal_core.diagnostics.targets import targets
from kdcal_core.distributions import Normal
from kdcal_core.review.folder_source import FolderSource
from kdcal_core.review.folder_times import FolderTimes


@dataclass(frozen=True)
class DeclaredGroups:
    """The columns of the declared groups, and the event whose probability is judged in them.

    ``event`` is None for the confidence, and of a regression.
    """

    columns: tuple[str, ...] = ()
    event: int | None = None


class FolderTally(ABC):
    """The rows of a folder, added up.

    Parameters
    ----------
    roles : Roles
    classes : sequence of str
        Of a classification.
    groups : DeclaredGroups
        Without columns none are counted.
    source : FolderSource
        Makes the predictions of the rows.
    unit : float
        In which weights of rows are counted.
    times : FolderTimes, optional
        Those of all rows, where a column orders them in time.

    Attributes
    ----------
    kind : type
        Of the summary.
    """

    kind: ClassVar[type[Summary]]

    @abstractmethod
    def __init__(
        self,
        roles: Roles,
        classes: Sequence[str],
        groups: DeclaredGroups,
        source: FolderSource,
        unit: float = 1.0,
        times: FolderTimes | None = None,
    ) -> None: ...

    @abstractmethod
    def add(self, frame: pd.DataFrame, *, first: int) -> None:
        """Add a block of rows; ``first`` is the place of its first row in the whole table."""

    @abstractmethod
    def summary(self) -> Summary | None:
        """The rows so far; None without any."""

    @staticmethod
    @abstractmethod
    def load_kernels() -> None:
        """Compile the pass over rows, or load it."""

    @staticmethod
    @abstractmethod
    def facts(summary: Any) -> dict[str, Any]:
        """What a review says of the summary's rows: fields of `kdcal_core.review.SetInfo`."""


class ClassRows(FolderTally):
    """Probabilities and true classes."""

    kind = ClassSummary

    def __init__(
        self,
        roles: Roles,
        classes: Sequence[str],
        groups: DeclaredGroups,
        source: FolderSource,
        unit: float = 1.0,
        times: FolderTimes | None = None,
    ) -> None:
        self._roles, self._classes, self._tally = roles, tuple(classes), ClassTally(classes)
        self._asked, self._source, self._unit, self._times = groups, source, unit, times
        self._groups: GroupSummary | None = None
        self._by_time: TimeTable | None = None

    def add(self, frame: pd.DataFrame, *, first: int) -> None:
        proba = self._source.proba(frame, self._roles, self._classes)
        y = target_labels(frame, self._roles, self._classes)
        weight, event = weight_column(frame, self._roles), self._asked.event
        cluster = _clusters(frame, self._roles, self._times)
        times = None if weight is None else times_of(weight, self._unit)
        self._tally.add(proba, y, first=first, weight=weight, unit=self._unit, cluster=cluster)
        asked = []
        if self._times is not None:
            (one, *_) = targets(proba, y, None, "confidence" if event is None else "class", event)
            asked.append((one.hit, one.score, one.score * (1.0 - one.score)))
        if columns := list(self._asked.columns):
            scored = ScoredSet(check_proba(proba), y, self._classes, "", "calibration")
            part = class_groups(
                frame[columns], scored, event, times=times, cluster=cluster, questions=asked
            )
            self._groups = part if self._groups is None else self._groups + part
        if self._times is not None and cluster is not None:
            when = self._times.times[cluster.number]
            mine = TimeTable.of(when, cluster.column, asked, times, event=event)
            self._by_time = mine if self._by_time is None else self._by_time + mine

    def summary(self) -> ClassSummary | None:
        if not self._tally.n:
            return None
        return replace(self._tally.summary(), groups=self._groups, by_time=self._by_time)

    @staticmethod
    def load_kernels() -> None:
        y = np.zeros(1, np.int64)
        rows = ClassTally(("no", "yes"))
        rows.add(np.full((1, 2), 0.5), y, first=0, cluster=RowClusters(y))
        load_group_kernel()

    @staticmethod
    def facts(summary: ClassSummary) -> dict[str, Any]:
        rows = summary.joint.sum(axis=1).tolist()
        return {
            "accuracy": float(np.trace(summary.joint)) / summary.n,
            "class_rows": tuple(rows) if summary.weights is None else summary.weights.of_class,
            **_facts_of_units(summary),
        }


class RegressionRows(FolderTally):
    """Predictive distributions and outcomes."""

    kind = RegressionSummary

    def __init__(
        self,
        roles: Roles,
        classes: Sequence[str],
        groups: DeclaredGroups,
        source: FolderSource,
        unit: float = 1.0,
        times: FolderTimes | None = None,
    ) -> None:
        self._roles, self._groups, self._source = roles, list(groups.columns), source
        self._unit, self._times = unit, times
        self._total: RegressionSummary | None = None

    def add(self, frame: pd.DataFrame, *, first: int) -> None:
        roles, times = self._roles, self._times
        y, cluster = outcome_column(frame, roles), _clusters(frame, roles, times)
        when = None if times is None or cluster is None else times.times[cluster.number]
        part = summarise_regression(
            self._source.forecasts(frame, roles),
            y,
            first=first,
            true_mean=true_mean_column(frame, roles),
            groups=frame[self._groups] if self._groups else None,
            weight=weight_column(frame, roles),
            unit=self._unit,
            cluster=cluster,
            when=when,
        )
        self._total = part if self._total is None else self._total + part

    def summary(self) -> RegressionSummary | None:
        return self._total

    @staticmethod
    def load_kernels() -> None:
        summarise_regression(Normal(np.zeros(1), 1.0), [0.0])
        load_group_kernel()

    @staticmethod
    def facts(summary: RegressionSummary) -> dict[str, Any]:
        judged = effective_forecasts(summary)
        return {
            "rmse": (summary.moments("squared error")[0] / summary.n) ** 0.5,
            "outside": round(float(judged.pit[0] + judged.pit[-1])),
            **_facts_of_units(summary),
        }


def _clusters(frame: pd.DataFrame, roles: Roles, times: FolderTimes | None) -> RowClusters | None:
    """Which rows depend on one another: those of a cluster, or of near times."""
    if times is not None:
        return RowClusters(times.of(frame, roles), roles.time or "", len(times.times))
    found = cluster_column(frame, roles)
    return None if found is None else RowClusters(cluster_numbers(found), roles.cluster or "")


def _facts_of_units(summary: Summary) -> dict[str, Any]:
    span = () if summary.by_time is None else time_span(summary.by_time.column_of_times)
    return {"units": n_clusters(summary), "span": span}


TALLIES: dict[Task, type[FolderTally]] = {"classification": ClassRows, "regression": RegressionRows}
"""How rows are added up, by task."""


def columns_of(roles: Roles, source: FolderSource, groups: DeclaredGroups) -> list[str]:
    """The columns that are read, each once.

    Raises
    ------
    InputError
        For predictions of which a summary cannot be made in one pass.
    """
    others = (roles.target, roles.true_mean, roles.weight, roles.cluster, roles.time)
    named = (*source.columns(roles), *others, *groups.columns)
    return [one for one in dict.fromkeys(named) if one]
