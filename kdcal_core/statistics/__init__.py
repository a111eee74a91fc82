"""What every room counts with: exact and normal intervals, corrections, rank tests, row losses.

Arrays in, numbers out: nothing here knows a model, a review or a screen.
"""

from kdcal_core.statistics.intervals import (
    bounded_mean_interval,
    clopper_pearson,
    kish,
    mean_interval,
    normal_quantile,
)
from kdcal_core.statistics.row_losses import (
    CLIP,
    brier_losses,
    log_losses,
    surprisal,
    top_label_brier_losses,
    top_label_log_losses,
)
from kdcal_core.statistics.significance import holm, one_sided_wilcoxon

__all__ = [
    "CLIP",
    "bounded_mean_interval",
    "brier_losses",
    "clopper_pearson",
    "holm",
    "kish",
    "log_losses",
    "mean_interval",
    "normal_quantile",
    "one_sided_wilcoxon",
    "surprisal",
    "top_label_brier_losses",
    "top_label_log_losses",
]
