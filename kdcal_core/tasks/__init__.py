"""Whole computations that a job carries out in a process of its own.

Paths come in, JSON goes out and arrays stay in files: what a page starts with one click and
reads when it is done. Everything here is put together from the rooms below. For each run there
is a ``..._request`` that says what to submit, a function for the worker, and a class whose
``read(folder)`` gives the result as objects.
"""

from kdcal_core.tasks.comparison_results import ComparisonRun, ComparisonSettings
from kdcal_core.tasks.comparison_run import (
    comparison_request,
    default_calibrators,
    usable_calibrators,
)
from kdcal_core.tasks.comparison_study import ComparisonStudy, comparison_study, save_study
from kdcal_core.tasks.equal_sets import EqualNote, EqualSets, equal_sets
from kdcal_core.tasks.export_results import (
    CalibratorMap,
    ExportRecord,
    ExportRun,
    ExportSettings,
    Gain,
    TriedRun,
)
from kdcal_core.tasks.export_run import export_request, partition_columns
from kdcal_core.tasks.export_try import try_request
from kdcal_core.tasks.foreign_measures import (
    by_distance,
    calibrated_by_distance,
    class_shares,
    separated,
    separated_by_confidence,
)
from kdcal_core.tasks.foreign_results import (
    RADII,
    ForeignKind,
    ForeignRecord,
    ForeignRun,
    ForeignSet,
    ForeignSettings,
)
from kdcal_core.tasks.foreign_run import foreign_frame, foreign_request
from kdcal_core.tasks.graph_results import GraphRecord, GraphRun, GraphSettings
from kdcal_core.tasks.graph_run import graph_request
from kdcal_core.tasks.grid_results import GridRecord, GridRun, GridSettings
from kdcal_core.tasks.grid_run import grid_request
from kdcal_core.tasks.inputs import Request
from kdcal_core.tasks.lab_results import LabRecord, LabRows, LabRun, LabSettings
from kdcal_core.tasks.lab_run import lab_request
from kdcal_core.tasks.pit_measures import (
    AXES,
    MEAN,
    OUTCOME,
    SPREAD,
    PitGroup,
    PitOverview,
    PitPlaces,
    PitRows,
    local_rows,
    pit_along,
    pit_histograms,
    pit_overview,
    pit_places,
    pit_rows,
)
from kdcal_core.tasks.recalibration_results import (
    PARENT,
    MethodResult,
    RecalibrationRecord,
    RecalibrationRun,
    RecalibrationSettings,
    RowAnswers,
    Selection,
    recommended,
)
from kdcal_core.tasks.recalibration_run import recalibration_request
from kdcal_core.tasks.region_search_run import (
    RegionSearchRun,
    RegionSearchSettings,
    region_search_request,
)
from kdcal_core.tasks.regions_results import (
    ONE_MAP,
    PARTITION_TITLES,
    EventScores,
    RegionsMethod,
    RegionsRecord,
    RegionsRun,
    RegionsSettings,
)
from kdcal_core.tasks.regions_run import regions_request
from kdcal_core.tasks.set_measures import (
    ClassCurves,
    Losses,
    PredictedClass,
    SetFitness,
    SetOverview,
    Sets,
    class_curves,
    class_halves,
    class_histograms,
    class_method,
    fitted,
    is_large,
    largest_classes,
    method_losses,
    predicted_class,
    set_estimates,
    set_fitness,
    set_overview,
    set_reliability,
)
from kdcal_core.tasks.set_run import read_measure, reads_asides, set_request, title_of
from kdcal_core.tasks.space_run import load_space, space_request
from kdcal_core.tasks.spaces import (
    LAYER,
    Space,
    principal_axes,
    regression_space,
    space_names,
    space_title,
)
from kdcal_core.tasks.storage import Rows

__all__ = [
    "AXES",
    "LAYER",
    "MEAN",
    "ONE_MAP",
    "OUTCOME",
    "PARENT",
    "PARTITION_TITLES",
    "RADII",
    "SPREAD",
    "CalibratorMap",
    "ClassCurves",
    "ComparisonRun",
    "ComparisonSettings",
    "ComparisonStudy",
    "EqualNote",
    "EqualSets",
    "EventScores",
    "ExportRecord",
    "ExportRun",
    "ExportSettings",
    "ForeignKind",
    "ForeignRecord",
    "ForeignRun",
    "ForeignSet",
    "ForeignSettings",
    "Gain",
    "GraphRecord",
    "GraphRun",
    "GraphSettings",
    "GridRecord",
    "GridRun",
    "GridSettings",
    "LabRecord",
    "LabRows",
    "LabRun",
    "LabSettings",
    "Losses",
    "MethodResult",
    "PitGroup",
    "PitOverview",
    "PitPlaces",
    "PitRows",
    "PredictedClass",
    "RecalibrationRecord",
    "RecalibrationRun",
    "RecalibrationSettings",
    "RegionSearchRun",
    "RegionSearchSettings",
    "RegionsMethod",
    "RegionsRecord",
    "RegionsRun",
    "RegionsSettings",
    "Request",
    "RowAnswers",
    "Rows",
    "Selection",
    "SetFitness",
    "SetOverview",
    "Sets",
    "Space",
    "TriedRun",
    "by_distance",
    "calibrated_by_distance",
    "class_curves",
    "class_halves",
    "class_histograms",
    "class_method",
    "class_shares",
    "comparison_request",
    "comparison_study",
    "default_calibrators",
    "equal_sets",
    "export_request",
    "fitted",
    "foreign_frame",
    "foreign_request",
    "graph_request",
    "grid_request",
    "is_large",
    "lab_request",
    "largest_classes",
    "load_space",
    "local_rows",
    "method_losses",
    "partition_columns",
    "pit_along",
    "pit_histograms",
    "pit_overview",
    "pit_places",
    "pit_rows",
    "predicted_class",
    "principal_axes",
    "read_measure",
    "reads_asides",
    "recalibration_request",
    "recommended",
    "region_search_request",
    "regions_request",
    "regression_space",
    "save_study",
    "separated",
    "separated_by_confidence",
    "set_estimates",
    "set_fitness",
    "set_overview",
    "set_reliability",
    "set_request",
    "space_names",
    "space_request",
    "space_title",
    "title_of",
    "try_request",
    "usable_calibrators",
]
