"""The kinds of partitions, by the name of the parameter ``partition``."""

from __future__ import annotations

from kdcal_core.calibration.heterogeneous.columns import (
    column_read,
    fit_columns,
    group_columns,
)
from kdcal_core.calibration.heterogeneous.layers import PartitionKind, averaged
from kdcal_core.calibration.heterogeneous.one_tree import fit_tree

PARTITIONS: dict[str, PartitionKind] = {
    "tree": PartitionKind(fit_tree, averaged),
    "column": PartitionKind(fit_columns, averaged, column_read),
    "groups": PartitionKind(fit_columns, averaged, group_columns),
}
