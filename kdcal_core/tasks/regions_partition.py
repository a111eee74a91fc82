"""A partition by where classes differ, as in Durfee et al., and what is wrong in its regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kdcal_core.calibration.regions.one_tree import class_target, min_rows_of
from kdcal_core.data import IntArray, ScoredSet
from kdcal_core.diagnostics import RegionSearch, describe_regions
from kdcal_core.errors import InputError
from kdcal_core.partition.tree import BinnedInputs, Gini, grow_tree

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
    """A tree that parts the classes (Durfee et al., Algorithm 1), its regions judged on other rows.

    It is grown on the model's training rows (decision D102); without them on one random half of
    the rows, and the other half judges.

    Parameters
    ----------
    scored : ScoredSet of n rows
    binned : BinnedInputs of the same rows, with the codes of the training rows where there are any
    training : (BinnedInputs, (m,) int array), optional
    min_rows : int, optional
        Rows of each region among those that it is grown on; by default the rule of the calibrator.
    target, max_depth, seed, level
        As in :func:`kdcal_core.diagnostics.find_regions`.

    Raises
    ------
    InputError
        Where there are too few rows to grow and to judge.
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
    leaf[growing] = -1  # these rows chose the regions and cannot judge them
    return _described(scored, tree, leaf, target, level)


def _described(
    scored: ScoredSet, tree: PartitionTree, leaf: IntArray, target: str | int, level: float
) -> RegionSearch:
    return describe_regions(scored, leaf, tree=tree, target=target, level=level)
