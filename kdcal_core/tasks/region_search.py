"""Searches for regions on all rows of a set.

The thorough search compares its findings with redrawn outcomes. The other grows the partition of
Durfee et al. by where classes differ, and reports the faults in its regions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kdcal_core.calibration.regions.one_tree import class_target, min_rows_of
from kdcal_core.data import IntArray, ScoredSet
from kdcal_core.diagnostics import RegionSearch, describe_regions, find_regions
from kdcal_core.errors import InputError, quiet
from kdcal_core.partition.tree import BinnedInputs, Gini, bin_inputs, grow_tree, unusable_columns
from kdcal_core.progress import part_of
from kdcal_core.review import Review, Which
from kdcal_core.review.review import input_columns
from kdcal_core.tasks.decorators import Sets, require_classification, review_task

if TYPE_CHECKING:
    from kdcal_core.partition.tree import PartitionTree


def class_regions(
    scored: ScoredSet,
    binned: BinnedInputs,
    *,
    training: tuple[BinnedInputs, IntArray] | None = None,
    target: str | int = "confidence",
    max_depth: int = 3,
    min_rows: int | None = None,
    seed: int = 0,
    level: float = 0.95,
) -> RegionSearch:
    """A tree that separates the classes (Durfee et al., Algorithm 1), judged on other rows.

    It is grown on the model's training rows. Without them, it is grown on one random half of the
    rows and judged on the other.

    Parameters
    ----------
    scored : ScoredSet of n rows
    binned : BinnedInputs of the same rows, in the codes of the training rows where there are any
    training : (BinnedInputs, (m,) int array), optional
    min_rows : int, optional
        Fewest rows of each region among those that it is grown on; by default the calibrator's
        rule.
    target, max_depth, seed, level
        As in :func:`kdcal_core.diagnostics.find_regions`.

    Raises
    ------
    InputError
        Where there are too few rows to grow the tree and to judge it.
    """
    n_classes = len(scored.classes)
    if training is not None:
        inputs, y = training
        tree = grow_tree(
            inputs,
            Gini(class_target(y, n_classes)),
            max_depth=max_depth,
            min_rows=min_rows_of(min_rows, len(y), max_depth),
        )
        return _described(scored, tree, tree.apply(binned), target, level)
    n = scored.n_rows
    drawn = np.random.default_rng(seed).permutation(n)
    least = min_rows_of(min_rows, n // 2, max_depth)
    if n < 4 * least:
        raise InputError(
            f"{n:,} rows are too few for regions of {least:,} rows or more",
            fix=f"Give at least {4 * least:,} rows, or allow smaller regions.",
        )
    growing = np.sort(drawn[: n // 2])
    tree = grow_tree(
        binned,
        Gini(class_target(scored.y, n_classes), scored.weight),
        max_depth=max_depth,
        min_rows=least,
        rows=growing,
    )
    leaf = tree.apply(binned)
    leaf[growing] = -1  # these rows were used to choose the regions, so they cannot judge them
    return _described(scored, tree, leaf, target, level)


def _described(
    scored: ScoredSet, tree: PartitionTree, leaf: IntArray, target: str | int, level: float
) -> RegionSearch:
    return describe_regions(scored, leaf, tree=tree, target=target, level=level)


_READING = 0.05  # share of the progress that reading takes


@dataclass(frozen=True)
class RegionSearchSettings:
    """What is searched, and how.

    Attributes
    ----------
    which : str
        The set whose rows are searched.
    label : int or None
        The class whose probability is examined; None for the confidence.
    max_depth : int
    min_rows : int or None
        Fewest rows of a region; None for the search's default.
    redraws : int
        Number of redraws, at least 20.
    seed : int
    """

    which: Which = "calibration"
    label: int | None = None
    max_depth: int = 3
    min_rows: int | None = None
    redraws: int = 200
    seed: int = 0


def _settled(review: Review, settings: RegionSearchSettings) -> RegionSearchSettings:
    if settings.which not in review.sets:
        raise InputError(
            f"There is no {settings.which} set", fix="Load one, or search the calibration set."
        )
    if settings.min_rows is not None and settings.min_rows < 1:
        raise InputError("A region keeps at least one row", fix="Give a larger number of rows.")
    if settings.label is not None and not 0 <= settings.label < len(review.classes):
        raise InputError(
            f"There is no class number {settings.label}",
            fix=f"Choose one from 0 to {len(review.classes) - 1}.",
        )
    return settings


@dataclass(frozen=True, eq=False)
class RegionSearchRun:
    """A finished search.

    Attributes
    ----------
    settings : RegionSearchSettings
    search : RegionSearch
        Its arrays are read-only.
    """

    settings: RegionSearchSettings
    search: RegionSearch


@review_task(
    "Searching for regions",
    reads=lambda arguments: (arguments["settings"].which,),
    needs=require_classification(
        "outcomes can be redrawn for classes only",
        fix="Use find_pit_regions, which divides the rows.",
    ),
    ranges={"max_depth": (1.0, 12.0), "redraws": (20.0, 10_000.0), "seed": (0.0, 2.0**31)},
    settle=_settled,
    edition="boxes, ends of the corrected test",
)
def search_regions(sets: Sets, settings: RegionSearchSettings) -> RegionSearchRun:
    """Search a review's rows for regions, as `find_regions` does with redraws.

    Raises
    ------
    InputError
        Where there are no inputs to divide, too few rows, or a missing file.
    """
    reader, progress = sets.reader, sets.progress
    progress(0.0, "Reading the rows")
    inputs = reader.frame(settings.which)[input_columns(reader.review)]
    kept = [name for name in inputs.columns if name not in unusable_columns(inputs)]
    if not kept:
        raise InputError(
            "The table holds no inputs to divide into regions",
            fix="Add a table with the rows' features, or columns that describe them.",
        )
    with quiet():  # pooled categories are named "other"
        binned = bin_inputs(inputs[kept])
    found = find_regions(
        reader.scored(settings.which),
        binned,
        target="confidence" if settings.label is None else settings.label,
        max_depth=settings.max_depth,
        min_rows=settings.min_rows,
        redraws=settings.redraws,
        seed=settings.seed,
        progress=part_of(progress, _READING, 1.0),
    )
    return RegionSearchRun(settings, found)
