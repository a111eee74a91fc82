"""Results to plotly figures: explicit colours and template, nothing fitted, at most 5,000 marks.

Every figure takes ``dark`` and has a transparent ground.
"""

from __future__ import annotations

from kdcal_core.charts.auc_lift import (
    auc_lift_figure,
    auc_lift_table,
    loss_change_figure,
    loss_change_table,
)
from kdcal_core.charts.bands import (
    STYLED,
    BandLine,
    distance_figure,
    measure_figure,
    selection_figure,
)
from kdcal_core.charts.comparison import (
    MODEL_NAME,
    comparison_figure,
    comparison_table,
    method_name,
    paired_figure,
    ranked,
)
from kdcal_core.charts.confidence import (
    bandwidth_figure,
    confidence_curve_figure,
    method_cloud,
    noise_figure,
)
from kdcal_core.charts.coverage import coverage_by_figure, coverage_figure, coverage_table
from kdcal_core.charts.density import density_figure
from kdcal_core.charts.export_maps import (
    calibrator_map_figure,
    calibrator_map_regions,
    calibrator_map_table,
    calibrator_map_words,
)
from kdcal_core.charts.local_map import PickedNeighbourhood, local_map_figure
from kdcal_core.charts.method_reliability import (
    method_reliability_figure,
    method_reliability_table,
)
from kdcal_core.charts.methods import losses_figure, method_style
from kdcal_core.charts.misses import drawn_rows, misses_figure, misses_table
from kdcal_core.charts.palette import DARK, LIGHT, Palette, faded, palette
from kdcal_core.charts.pit import (
    PitPanel,
    ecdf_figure,
    fault_colour,
    pit_figure,
    pit_panels,
    pit_table,
)
from kdcal_core.charts.posterior_map import MapPoints, PosteriorPanel, posterior_map_figure
from kdcal_core.charts.predictive_density import (
    DensityPanel,
    density_table,
    predictive_density_figure,
)
from kdcal_core.charts.quantile_reliability import (
    quantile_reliability_figure,
    quantile_reliability_table,
)
from kdcal_core.charts.recalibration_intervals import (
    RowIntervals,
    intervals_figure,
    intervals_table,
)
from kdcal_core.charts.recalibration_measures import (
    MEASURES,
    MeasuredRecalibration,
    recalibration_differences_figure,
    recalibration_measures_figure,
    recalibration_measures_table,
    recalibrator_style,
)
from kdcal_core.charts.recalibration_selection import (
    SelectionCurve,
    neighbour_selection_figure,
    neighbour_selection_table,
)
from kdcal_core.charts.recalibration_truth import Moments, truth_figure, truth_table
from kdcal_core.charts.region_maps import region_maps_figure, region_maps_table
from kdcal_core.charts.region_tree import RegionMark, region_colour, region_tree_figure
from kdcal_core.charts.regions import (
    ordered_regions,
    region_gaps_figure,
    region_marks,
    shown_regions,
)
from kdcal_core.charts.reliability import (
    confusion_figure,
    reliability_figure,
    score_histogram_figure,
    small_multiples,
)
from kdcal_core.charts.score_histograms import (
    ScorePanel,
    score_panels_figure,
    score_panels_table,
)

__all__ = [
    "DARK",
    "LIGHT",
    "MEASURES",
    "MODEL_NAME",
    "STYLED",
    "BandLine",
    "DensityPanel",
    "MapPoints",
    "MeasuredRecalibration",
    "Moments",
    "Palette",
    "PickedNeighbourhood",
    "PitPanel",
    "PosteriorPanel",
    "RegionMark",
    "RowIntervals",
    "ScorePanel",
    "SelectionCurve",
    "auc_lift_figure",
    "auc_lift_table",
    "bandwidth_figure",
    "calibrator_map_figure",
    "calibrator_map_regions",
    "calibrator_map_table",
    "calibrator_map_words",
    "comparison_figure",
    "comparison_table",
    "confidence_curve_figure",
    "confusion_figure",
    "coverage_by_figure",
    "coverage_figure",
    "coverage_table",
    "density_figure",
    "density_table",
    "distance_figure",
    "drawn_rows",
    "ecdf_figure",
    "faded",
    "fault_colour",
    "intervals_figure",
    "intervals_table",
    "local_map_figure",
    "loss_change_figure",
    "loss_change_table",
    "losses_figure",
    "measure_figure",
    "method_cloud",
    "method_name",
    "method_reliability_figure",
    "method_reliability_table",
    "method_style",
    "misses_figure",
    "misses_table",
    "neighbour_selection_figure",
    "neighbour_selection_table",
    "noise_figure",
    "ordered_regions",
    "paired_figure",
    "palette",
    "pit_figure",
    "pit_panels",
    "pit_table",
    "posterior_map_figure",
    "predictive_density_figure",
    "quantile_reliability_figure",
    "quantile_reliability_table",
    "ranked",
    "recalibration_differences_figure",
    "recalibration_measures_figure",
    "recalibration_measures_table",
    "recalibrator_style",
    "region_colour",
    "region_gaps_figure",
    "region_maps_figure",
    "region_maps_table",
    "region_marks",
    "region_tree_figure",
    "reliability_figure",
    "score_histogram_figure",
    "score_panels_figure",
    "score_panels_table",
    "selection_figure",
    "shown_regions",
    "small_multiples",
    "truth_figure",
    "truth_table",
]
