"""Results to plotly figures: explicit colours and template, nothing fitted, at most 5,000 marks.

Every figure takes ``dark`` and has a transparent ground.
"""

from __future__ import annotations

from kdcal_core.figures.confidence import (
    bandwidth_figure,
    confidence_curve_figure,
    method_cloud,
    noise_figure,
)
from kdcal_core.figures.methods import losses_figure, method_style
from kdcal_core.figures.palette import DARK, LIGHT, Palette, faded, palette
from kdcal_core.figures.reliability import (
    confusion_figure,
    reliability_figure,
    score_histogram_figure,
    small_multiples,
)

__all__ = [
    "DARK",
    "LIGHT",
    "Palette",
    "bandwidth_figure",
    "confidence_curve_figure",
    "confusion_figure",
    "faded",
    "losses_figure",
    "method_cloud",
    "method_style",
    "noise_figure",
    "palette",
    "reliability_figure",
    "score_histogram_figure",
    "small_multiples",
]
