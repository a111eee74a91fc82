"""Partitions of the inputs by trees: read the table once, then grow on codes of one byte.

One histogram tree serves every purpose; what it splits by is a criterion. The compiled kernels
are imported when first called.
"""

from kdcal_core.partition.tree.binned import BinnedInputs, InputColumn, bin_inputs, unusable_columns
from kdcal_core.partition.tree.growing import (
    LEAST_VARIANCE,
    Criterion,
    Cut,
    Gini,
    Residual,
    RowStats,
    grow_tree,
    prune_tree,
)
from kdcal_core.partition.tree.tree import ALL_ROWS, Condition, PartitionTree, TreeNode

__all__ = [
    "ALL_ROWS",
    "LEAST_VARIANCE",
    "BinnedInputs",
    "Condition",
    "Criterion",
    "Cut",
    "Gini",
    "InputColumn",
    "PartitionTree",
    "Residual",
    "RowStats",
    "TreeNode",
    "bin_inputs",
    "grow_tree",
    "prune_tree",
    "unusable_columns",
]


def __dir__() -> list[str]:
    return sorted(__all__)
