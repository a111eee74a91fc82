"""Results to plotly figures: explicit colours and template, nothing fitted, at most 5,000 marks.

Every figure takes ``dark`` and has a transparent ground.
"""

from __future__ import annotations

from kdcal_core.figures.bands import (
    STYLED,
    BandLine,
    distance_figure,
    measure_figure,
    selection_figure,
)
from kdcal_core.figures.confidence import (
    bandwidth_figure,
    confidence_curve_figure,
    method_cloud,
    noise_figure,
)
from kdcal_core.figures.density import density_figure
from kdcal_core.figures.methods import losses_figure, method_style
from kdcal_core.figures.palette import DARK, LIGHT, Palette, faded, palette
from kdcal_core.figures.posterior_map import MapPoints, PosteriorPanel, posterior_map_figure
from kdcal_core.figures.reliability import (
    confusion_figure,
    reliability_figure,
    score_histogram_figure,
    small_multiples,
)

__all__ = [
    "DARK",
    "LIGHT",
    "STYLED",
    "BandLine",
    "MapPoints",
    "Palette",
    "PosteriorPanel",
    "bandwidth_figure",
    "confidence_curve_figure",
    "confusion_figure",
    "density_figure",
    "distance_figure",
    "faded",
    "losses_figure",
    "measure_figure",
    "method_cloud",
    "method_style",
    "noise_figure",
    "palette",
    "posterior_map_figure",
    "reliability_figure",
    "score_histogram_figure",
    "selection_figure",
    "small_multiples",
]
