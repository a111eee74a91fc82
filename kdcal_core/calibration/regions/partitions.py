"""The kinds of partitions, by the name of the parameter ``partition``."""

from __future__ import annotations

from kdcal_core.calibration.regions.auc_splits import fit_auc
from kdcal_core.calibration.regions.boosted import fit_boosted, nested
from kdcal_core.calibration.regions.columns import (
    column_read,
    fit_columns,
    group_columns,
)
from kdcal_core.calibration.regions.forest import averaged_in_blocks, fit_forest
from kdcal_core.calibration.regions.layers import PartitionKind, averaged
from kdcal_core.calibration.regions.one_tree import fit_tree

PARTITIONS: dict[str, PartitionKind] = {
    "tree": PartitionKind(fit_tree, averaged_in_blocks),
    "forest": PartitionKind(fit_forest, averaged_in_blocks, depth=6),
    "boosted": PartitionKind(fit_boosted, nested, depth=2),
    "auc": PartitionKind(fit_auc, averaged_in_blocks),
    "column": PartitionKind(fit_columns, averaged, column_read),
    "groups": PartitionKind(fit_columns, averaged, group_columns),
}
