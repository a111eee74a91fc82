"""A classifier's diagrams from a summary of its rows: reliability, scores, confusion, decisions.

What the cells of the summary hide is as `kdcal_core.diagnostics.summaries.class_estimates` says.
"""

from __future__ import annotations

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.data.binning import bin_sums, uniform_edges
from kdcal_core.diagnostics.by_predicted_class import Confusion, confusion_of
from kdcal_core.diagnostics.calibration_curves import fewer_cells
from kdcal_core.diagnostics.decisions import DecisionCounts, counts_of_cells, last_flagged
from kdcal_core.diagnostics.reliability import Reliability, ReliabilityCurve, curve_of_bins
from kdcal_core.diagnostics.score_histograms import ScoreHistogram
from kdcal_core.diagnostics.summaries.block_products import decision_products
from kdcal_core.diagnostics.summaries.class_summary import ClassSummary
from kdcal_core.diagnostics.summaries.score_cells import (
    ScoreCells,
    cells_of_kind,
    class_cells,
    require_rows,
)
from kdcal_core.diagnostics.summaries.score_grid import bins_of_cells
from kdcal_core.diagnostics.targets import Kind, Strategy, check_choice


def summary_reliability(
    summary: ClassSummary,
    *,
    kind: Kind = "confidence",
    label: int | None = None,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
    level: float = 0.95,
    smooth: bool = True,
    seed: int = 0,
) -> Reliability:
    """Reliability diagrams, as :func:`kdcal_core.diagnostics.reliability`.

    Parameters
    ----------
    n_bins : int
        For bins of equal width 1 to 50, or 100: these follow exactly.

    Raises
    ------
    InputError
        For other settings, or a summary without rows.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("no", "yes"))
    >>> summary_reliability(one, n_bins=2).curves[0].count.tolist()
    [0, 2]
    """
    require_rows(summary, level)
    check_choice("strategy", strategy, ("uniform", "quantile"))
    rng = np.random.default_rng(seed)
    curves = tuple(
        curve_of_cells(cells, n_bins, strategy, level, rng, smooth=smooth)
        for cells in cells_of_kind(summary, kind, label)
    )
    return Reliability(kind, strategy, n_bins, level, summary.n, curves)


def curve_of_cells(
    cells: ScoreCells,
    n_bins: int,
    strategy: Strategy,
    level: float,
    rng: np.random.Generator,
    *,
    smooth: bool = True,
) -> ReliabilityCurve:
    """The reliability curve of one target."""
    return curve_of_bins(
        cells.label,
        int(cells.n),
        cells.table(n_bins, strategy),
        fewer_cells(cells.fine()) if smooth else None,
        level,
        rng,
    )


def summary_scores(summary: ClassSummary, n_bins: int = 50) -> ScoreHistogram:
    """Confidence of right and of wrong rows; :func:`kdcal_core.diagnostics.score_histogram`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> found = summary_scores(summarise([[0.9, 0.1], [0.2, 0.8]], [0, 0], ("no", "yes")), 2)
    >>> found.correct.tolist(), found.wrong.tolist()
    ([0.0, 1.0], [0.0, 1.0])
    """
    cells = ScoreCells.of_confidence(summary)
    index = bins_of_cells(n_bins)[cells.place]
    right, wrong = (bin_sums(index, n_bins, rows) for rows in (cells.hits, cells.misses))
    return ScoreHistogram(None, uniform_edges(n_bins), right, wrong)


def summary_confusion(summary: ClassSummary) -> Confusion:
    """Counts of true against predicted class; :func:`kdcal_core.diagnostics.confusion`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> summary_confusion(summarise([[0.9, 0.1], [0.3, 0.7]], [0, 0], ("a", "b"))).joint.tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    return confusion_of(summary.joint.astype(np.float64), _effective_predictions(summary))


def _effective_predictions(summary: ClassSummary) -> FloatArray | None:
    """As how many independent rows those of each predicted class count, (K,), with clusters."""
    blocks = summary.block_cells(0, None)
    if blocks is None or summary.clusters is None:
        return None
    cells = summary.clusters.cells[0].sum(axis=2) * summary.unit
    count, hits = cells[..., 0], cells[..., 1]
    rows = count.sum(axis=0)
    share = np.divide(hits.sum(axis=0), rows, out=np.zeros_like(rows), where=rows > 0.0)
    own, moved = rows * share * (1.0 - share), hits - share * count
    together = float(np.square(blocks.together(moved)).sum() - own.sum())
    found = blocks.bins(count, rows, lambda more: (together, float(own @ more)))
    return np.asarray(rows / found.effect)


def summary_decisions(summary: ClassSummary, event: int) -> DecisionCounts:
    """Rows on both sides of every threshold: net benefit and costs follow from it exactly.

    As :func:`kdcal_core.diagnostics.decision_counts`.

    Examples
    --------
    >>> from kdcal_core.diagnostics.summaries import summarise
    >>> one = summarise([[0.6, 0.4], [0.2, 0.8]], [0, 1], ("no", "yes"))
    >>> counts = summary_decisions(one, 1)
    >>> counts.mass[:, counts.at(0.4)].tolist()
    [1.0, 1.0, 0.0, 0.0]
    """
    cells = class_cells(summary, event)
    last = last_flagged(cells.ends)
    return counts_of_cells(last, cells.hits, cells.misses, decision_products(cells, last))
