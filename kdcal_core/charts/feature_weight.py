"""What over-confidence costs: the AUROC by the weight of a feature (Durfee et al.)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from kdcal_core.charts.chart import Chart, new_figure
from kdcal_core.charts.marks import hovered
from kdcal_core.charts.palette import palette
from kdcal_core.data.schema import FloatArray

FEATURE_WEIGHT = r"""
A network says $s+w\,(b-\tfrac12)$: a score $s$ of its own and a feature $b$ that is 0 or 1. The
curves show its AUROC by the weight $w$, exactly, on the rows that it was trained on and on others
(Durfee et al., Fig. 2; their distributions are lost and rebuilt here). A network that separates its
training rows too well trusts $s$ too much, and then the best weight there is too small elsewhere.
One calibration curve for all rows keeps their order and with it the AUROC. One for each value of
$b$ moves the two groups against each other, as a larger weight does.
"""


@dataclass(frozen=True, eq=False)
class WeightCurve:
    """The AUROC (m,) by the weight of the feature, on some rows."""

    label: str
    dash: str
    auc: FloatArray


def feature_weight_chart(
    weights: FloatArray, training: FloatArray, held_out: FloatArray, *, dark: bool = False
) -> Chart:
    """AUROC by weight (m,) on both kinds of rows, with the best weight of each."""
    curves = (
        WeightCurve("Training rows", "6px,3px", training),
        WeightCurve("Other rows", "solid", held_out),
    )
    words = feature_weight_words(weights, training, held_out)
    return Chart(
        _figure(weights, curves, dark),
        finding=words,
        alt=f"AUROC against the weight of the feature. {words}",
        how_to_read=FEATURE_WEIGHT,
        table=lambda: pd.DataFrame(
            {"weight": weights, **{f"AUROC, {one.label.lower()}": one.auc for one in curves}}
        ),
        name="weight of a feature",
    )


def feature_weight_words(weights: FloatArray, training: FloatArray, held_out: FloatArray) -> str:
    """What the best weight of the training rows gives on others, and what is possible there.

    Examples
    --------
    >>> feature_weight_words(np.array([1.0, 2.0]), np.array([0.9, 0.8]), np.array([0.7, 0.75]))
    'With the weight that is best on training rows, 1.00, the AUROC of other rows is 0.700; with \
2.00 it would be 0.750.'
    """
    learned, best = int(np.argmax(training)), int(np.argmax(held_out))
    return (
        f"With the weight that is best on training rows, {weights[learned]:.2f}, the AUROC of "
        f"other rows is {held_out[learned]:.3f}; with {weights[best]:.2f} it would be "
        f"{held_out[best]:.3f}."
    )


def _figure(weights: FloatArray, curves: tuple[WeightCurve, ...], dark: bool) -> go.Figure:
    colour = palette(dark).model
    figure = new_figure(dark, height=300)
    for one in curves:
        at = int(np.argmax(one.auc))
        figure.add_trace(
            go.Scatter(
                x=weights,
                y=one.auc,
                mode="lines",
                line={"color": colour, "width": 2, "dash": one.dash},
                name=one.label,
                legendgroup=one.label,
                **hovered("Weight {:.2f}: {:.3f}", weights, one.auc, name=one.label),
            )
        )
        figure.add_trace(
            go.Scatter(
                x=weights[[at]],
                y=one.auc[[at]],
                mode="markers",
                marker={"color": colour, "size": 9},
                legendgroup=one.label,
                showlegend=False,
                **hovered("Best: {:.2f}, {:.3f}", weights[[at]], one.auc[[at]], name=one.label),
            )
        )
    figure.update_layout(
        xaxis={"title_text": "Weight of the feature", "nticks": 8},
        yaxis={"title_text": "AUROC", "tickformat": ".2f", "nticks": 6},
        margin={"t": 56},
    )
    return figure
