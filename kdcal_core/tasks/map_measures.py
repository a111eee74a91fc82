"""The measures of the Posterior map page, made as in `set_measures`.

Each reads the finished `GridRun` in the folder ``run``, and those that use the kernel density
version take a `GraphSetting` as JSON. The size of the results does not depend on the number of
rows; tables of rows hold at most `MAX_ROWS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.graph.placement import OutputLayer, partition_codes
from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.diagnostics import (
    Estimate,
    Reliability,
    accuracy,
    mean_max_confidence,
    reliability,
    summary,
)
from kdcal_core.errors import InputError
from kdcal_core.partition import RowPair, near_and_far, row_pair
from kdcal_core.review import Which
from kdcal_core.store import load
from kdcal_core.tasks.decorators import ALL_ROWS, Sets, require_model, review_task
from kdcal_core.tasks.graph import Version
from kdcal_core.tasks.pit_measures import MAX_ROWS
from kdcal_core.tasks.posterior_grid import GridRun, stratified_sample

RELIABILITY_BINS = 10
FEWEST = 20  # fewest rows in a box for judging the models on it


@dataclass(frozen=True, eq=False)
class VersionMap:
    """The kernel density version's answers on a map, (G, G) each, y first.

    Attributes
    ----------
    confidence : float64
        The largest probability.
    shown : float64 or None
        The probability of one class, where one was requested.
    unknown : bool
        Whether its density is below the floor.
    """

    confidence: FloatArray
    shown: FloatArray | None
    unknown: NDArray[np.bool_]


@review_task("Posterior map: asking the kernel density version", reads=ALL_ROWS)
def version_map(
    sets: Sets, *, run: str, graph: dict[str, Any], label: int | None = None
) -> VersionMap:
    """The kernel density version on a map, with the probability of class ``label``."""
    opened, version = _run(sets, run), Version.of(sets, graph)
    assert version is not None
    located = opened.rows.located
    posterior = opened.as_map(version.posterior(run, located))
    return VersionMap(
        posterior.max(axis=-1),
        None if label is None else np.ascontiguousarray(posterior[..., label]),
        opened.as_map(version.unknown(run, located)),
    )


@dataclass(frozen=True, eq=False)
class BoxJudged:
    """A model on the rows of a box.

    Attributes
    ----------
    right, sure : Estimate
        Accuracy and mean confidence.
    reliability : Reliability or None
        None for fewer than `FEWEST` rows.
    estimates : tuple of Estimate
        The four at the top of the pages; empty for fewer than `FEWEST` rows.
    """

    right: Estimate
    sure: Estimate
    reliability: Reliability | None
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True, eq=False)
class BoxRows:
    """Rows of a box: wrong ones first, and among them the most confident first.

    Attributes
    ----------
    n : int
        Number of rows in the whole box.
    rows : (m,) int64
        Positions in the set.
    said : DataFrame
        Each model's answers and the true classes. Untrusted names and texts.
    own : DataFrame
        Their columns in the table. Untrusted names and texts.
    """

    n: int
    rows: IntArray
    said: pd.DataFrame
    own: pd.DataFrame


@dataclass(frozen=True, eq=False)
class RowsInBox:
    """The judged rows in a box of a map.

    Attributes
    ----------
    n_all : int
        Number of rows that could lie in it.
    count : (K,) int64
        Number of rows in it by their true class.
    model, version : BoxJudged or None
        None without rows or without a kernel density version.
    table : BoxRows
    """

    n_all: int
    count: IntArray
    model: BoxJudged | None
    version: BoxJudged | None
    table: BoxRows


@review_task(
    "Posterior map: measuring the rows in the box", reads=ALL_ROWS, edition="rows together"
)
def rows_in_box(
    sets: Sets,
    *,
    which: Which,
    run: str,
    x: Sequence[float],
    y: Sequence[float],
    graph: dict[str, Any] | None = None,
    most: int = MAX_ROWS,
) -> RowsInBox:
    """The rows in a box: accuracy and confidence of the models there, and the first rows."""
    inside = _inside(sets, which, run, x, y, graph)
    sets.progress(0.4, "Measuring, with intervals")
    model, version = inside.model, inside.version
    n_classes = len(model.classes)
    return RowsInBox(
        inside.n_all,
        np.bincount(model.y, minlength=n_classes),
        _judged(model),
        None if version is None else _judged(version),
        _table(sets, which, inside, most),
    )


@review_task("Posterior map: picking rows", reads=ALL_ROWS)
def table_of_box(
    sets: Sets,
    *,
    which: Which,
    run: str,
    x: Sequence[float],
    y: Sequence[float],
    graph: dict[str, Any] | None = None,
) -> BoxRows:
    """The rows in a box, at most `MAX_ROWS`."""
    return _table(sets, which, _inside(sets, which, run, x, y, graph), MAX_ROWS)


@dataclass(frozen=True, eq=False)
class _Inside:
    """The rows in a box, with the probabilities of each model."""

    n_all: int
    rows: IntArray
    model: ScoredSet
    version: ScoredSet | None
    unknown: NDArray[np.bool_] | None


def _inside(
    sets: Sets,
    which: Which,
    run: str,
    x: Sequence[float],
    y: Sequence[float],
    graph: dict[str, Any] | None,
) -> _Inside:
    opened, version, scored = _run(sets, run), Version.of(sets, graph), sets.read(which)
    within = in_box(opened.points, x, y)
    if version is None:
        rows = np.flatnonzero(within)
        return _Inside(len(within), rows, some_rows(scored, rows, scored.proba[rows]), None, None)
    judged, located = version.run.positions, version.run.rows.located
    chosen = np.flatnonzero(within[judged])
    rows = np.asarray(judged[chosen])
    proba = version.posterior("judged", located)[chosen]
    return _Inside(
        len(judged),
        rows,
        some_rows(scored, rows, scored.proba[rows]),
        some_rows(scored, rows, proba),
        version.unknown("judged", located)[chosen],
    )


@dataclass(frozen=True, eq=False)
class ComparedRows:
    """Two judged rows in the partition of the model.

    Attributes
    ----------
    rows : tuple of two int
        Positions in the judged set.
    labels : tuple of two int
        Their true classes.
    pair : RowPair
    """

    rows: tuple[int, int]
    labels: tuple[int, int]
    pair: RowPair


@dataclass(frozen=True, eq=False)
class RowsCompared:
    """Pairs of judged rows: the chosen one, or a near and a far one."""

    pairs: tuple[ComparedRows, ...]


MOST_COMPARED = 500
"""Rows among which a near and a far pair are looked for."""


@review_task(
    "Posterior map: comparing two rows in the partition", reads=ALL_ROWS, needs=require_model
)
def compared_rows(
    sets: Sets, *, output_layer: OutputLayer | None, rows: Sequence[int] | None = None
) -> RowsCompared:
    """Pairs of judged rows, each with the kernel of the two.

    Parameters
    ----------
    output_layer : str or None
        What a network's output adds to its codes, as in `GraphRecord`; None for a forest.
    rows : two int, optional
        Positions in the judged set. By default there are two pairs, a near and a far one, of the
        same first row, among at most `MOST_COMPARED` rows with each class in its share.

    Raises
    ------
    InputError
        For a row that does not exist, or rows that do not fit the model.
    """
    from kdcal_core.review.scoring import in_rows_of

    reader = sets.reader
    sets.progress(0.0, "Opening the model")
    model = reader.model()
    X, y = reader.labelled(reader.judged)
    if rows is None:
        chosen = stratified_sample(y, MOST_COMPARED)
    else:
        for row in rows:
            if not 0 <= row < len(y):
                raise InputError(
                    f"There is no row {row + 1:,} among the {len(y):,} judged ones",
                    fix="Choose another row.",
                )
        chosen = np.array(rows)
    compared = X.iloc[chosen]
    with in_rows_of(compared):
        codes = partition_codes(model, compared.reset_index(drop=True), output_layer)
    first, *others = near_and_far(codes) if rows is None else (0, 1)
    return RowsCompared(
        tuple(
            ComparedRows(
                (int(chosen[first]), int(chosen[other])),
                (int(y[chosen[first]]), int(y[chosen[other]])),
                row_pair(codes, first, other),
            )
            for other in others
        )
    )


def in_box(points: FloatArray, x: Sequence[float], y: Sequence[float] | None) -> NDArray[np.bool_]:
    """Which points (n, 2) lie in a box or on its border; the ends may be in any order.

    Without ``y`` the box reaches from the bottom to the top.

    Examples
    --------
    >>> points = np.array([[0.0, 0.0], [2.0, 0.0], [np.nan, 0.0], [0.5, 3.0]])
    >>> in_box(points, (1.0, -1.0), (0.0, 1.0)).tolist(), in_box(points, (1.0, -1.0), None).tolist()
    ([True, False, False, False], [True, False, False, True])
    """
    sides = [x] if y is None else [x, y]
    low, high = np.sort(np.array(sides), axis=1).T
    along = points[:, : len(sides)]
    within: NDArray[np.bool_] = ((along >= low) & (along <= high)).all(axis=1)
    return within


def some_rows(scored: ScoredSet, rows: IntArray, proba: FloatArray) -> ScoredSet:
    """Some rows of a set, with the probabilities to judge."""
    return replace(scored.only(rows), proba=proba)


def _judged(scored: ScoredSet) -> BoxJudged | None:
    if not scored.n_rows:
        return None
    weight, enough = scored.design, scored.n_rows >= FEWEST
    diagram = None
    if enough:
        diagram = reliability(
            scored.proba,
            scored.y,
            kind="confidence",
            n_bins=RELIABILITY_BINS,
            strategy="uniform",
            sample_weight=weight,
        )
    return BoxJudged(
        accuracy(scored.proba, scored.y, sample_weight=weight),
        mean_max_confidence(scored.proba, sample_weight=weight),
        diagram,
        tuple(summary(scored)) if enough else (),
    )


def _table(sets: Sets, which: Which, inside: _Inside, most: int) -> BoxRows:
    first = worst_first(inside.model)[: min(most, MAX_ROWS)]
    rows = inside.rows[first]
    own = sets.frame(which).iloc[rows].reset_index(drop=True)
    return BoxRows(len(inside.rows), rows, _answers(inside, first), own)


def worst_first(scored: ScoredSet) -> IntArray:
    """Order of rows: wrong before right, and then by descending confidence."""
    wrong = scored.proba.argmax(axis=1) != scored.y
    return np.lexsort((-scored.proba.max(axis=1), ~wrong))


def _answers(inside: _Inside, rows: IntArray) -> pd.DataFrame:
    """For each row, its class and each model's prediction and confidence."""
    names = np.array(inside.model.classes, dtype=object)
    columns: dict[str, Any] = {"True class": names[inside.model.y[rows]]}
    for who, scored in (("Model", inside.model), ("Density version", inside.version)):
        if scored is not None:
            columns[f"{who} says"] = names[scored.proba[rows].argmax(axis=1)]
            columns[f"{who}'s confidence"] = scored.proba[rows].max(axis=1)
    if inside.unknown is not None:
        columns["Unknown"] = inside.unknown[rows]
    return pd.DataFrame(columns)


def _run(sets: Sets, run: str) -> GridRun:
    found: GridRun = sets.keep(("grid", run), lambda: load(run, GridRun))
    return found
