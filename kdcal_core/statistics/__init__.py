"""What every room counts with: exact and normal intervals, corrections, rank tests, row losses.

Arrays in, numbers out: nothing here knows a model, a review or a screen.
"""

from __future__ import annotations

from kdcal_core.statistics.dependence import (
    BinDependence,
    Dependence,
    DependenceKind,
    DesignedRows,
    Resamples,
    RowDesign,
    bin_dependence,
    dependence_of,
    dependence_of_bins,
    design_effect,
    design_of,
    independent_rows,
    lags_for,
    of_rows,
    only,
    pooled,
    side_by_side,
    small_sample_factor,
    units,
)
from kdcal_core.statistics.drawn_counts import binomial_draws
from kdcal_core.statistics.effective_rows import effective_size, kish, whole_rows
from kdcal_core.statistics.means import (
    bounded_mean_interval,
    bounded_mean_of_counts,
    mean_interval,
    ratio_interval,
    ratio_of_means,
)
from kdcal_core.statistics.p_values import holm, one_sided_wilcoxon, step_down
from kdcal_core.statistics.proportions import clopper_pearson, jeffreys_test, largest_share
from kdcal_core.statistics.quantiles import (
    normal_quantile,
    quantile_interval,
    quantile_ranks,
    t_quantile,
    t_quantile_of_rows,
    weighted_quantile,
)
from kdcal_core.statistics.row_groups import GroupSums, RowGroups, correlation, is_telling
from kdcal_core.statistics.row_losses import (
    CLIP,
    brier_losses,
    log_losses,
    surprisal,
    top_label_brier_losses,
    top_label_log_losses,
)

__all__ = [
    "CLIP",
    "BinDependence",
    "Dependence",
    "DependenceKind",
    "DesignedRows",
    "GroupSums",
    "Resamples",
    "RowDesign",
    "RowGroups",
    "bin_dependence",
    "binomial_draws",
    "bounded_mean_interval",
    "bounded_mean_of_counts",
    "brier_losses",
    "clopper_pearson",
    "correlation",
    "dependence_of",
    "dependence_of_bins",
    "design_effect",
    "design_of",
    "effective_size",
    "holm",
    "independent_rows",
    "is_telling",
    "jeffreys_test",
    "kish",
    "lags_for",
    "largest_share",
    "log_losses",
    "mean_interval",
    "normal_quantile",
    "of_rows",
    "one_sided_wilcoxon",
    "only",
    "pooled",
    "quantile_interval",
    "quantile_ranks",
    "ratio_interval",
    "ratio_of_means",
    "side_by_side",
    "small_sample_factor",
    "step_down",
    "surprisal",
    "t_quantile",
    "t_quantile_of_rows",
    "top_label_brier_losses",
    "top_label_log_losses",
    "units",
    "weighted_quantile",
    "whole_rows",
]


def __dir__() -> list[str]:
    return sorted(__all__)
