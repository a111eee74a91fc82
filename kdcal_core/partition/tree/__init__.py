"""Partitions of the inputs by trees: read the table once, then grow on codes of one byte.

One histogram tree serves every purpose; what it splits by is a criterion. The compiled kernels
are imported when first called.
"""

from kdcal_core.partition.tree.binned import BinnedInputs, bin_inputs
from kdcal_core.partition.tree.criteria import Criterion, Gini, Residual, RowStats
from kdcal_core.partition.tree.growing import grow_tree, prune_tree
from kdcal_core.partition.tree.input_columns import InputColumn, unusable_columns
from kdcal_core.partition.tree.tree import Condition, PartitionTree, TreeNode

__all__ = [
    "BinnedInputs",
    "Condition",
    "Criterion",
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
