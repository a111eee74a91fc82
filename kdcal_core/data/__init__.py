"""Tables in: files read and checked once, at the door."""

from __future__ import annotations

from kdcal_core.data.array_checks import (
    check_labels,
    check_proba,
    check_weight,
    digest_arrays,
    softmax_logits,
)
from kdcal_core.data.class_columns import (
    check_classes,
    check_columns,
    check_hits,
    check_rows,
    column_names,
    is_text,
)
from kdcal_core.data.column_doubts import Choice, Doubt, Reading
from kdcal_core.data.csv_tables import to_csv
from kdcal_core.data.dependence_columns import cluster_column, row_dependence, time_column
from kdcal_core.data.fitness import Fitness, RegressionFitness, fitness, regression_fitness
from kdcal_core.data.forecast_columns import outcome_column, parameter_columns, true_mean_column
from kdcal_core.data.frames import as_pandas
from kdcal_core.data.labels import classes_of, doubts_of_roles, encode_labels
from kdcal_core.data.parquet_folder import allowed_roots
from kdcal_core.data.pixel_columns import pixel_places
from kdcal_core.data.readings import read_columns
from kdcal_core.data.regression_columns import (
    FAMILY_PARAMETERS,
    POSITIVE_OUTCOMES,
    check_outcome,
    check_parameter_names,
    check_parameters,
    family_of,
    quantile_levels,
)
from kdcal_core.data.regression_guesses import spread_column
from kdcal_core.data.role_columns import (
    check_roles,
    feature_frame,
    numeric_matrix,
    output_matrix,
    target_labels,
    used_columns,
    weight_column,
)
from kdcal_core.data.role_guesses import guess_roles
from kdcal_core.data.schema import (
    CONFIDENCES,
    RIGHTS,
    Family,
    FloatArray,
    IntArray,
    OutputKind,
    Roles,
    ScoredSet,
    Table,
    Task,
)
from kdcal_core.data.splits import (
    at_most,
    fit_and_held,
    random_folds,
    split_by_column,
    stratified_folds,
    two_parts,
)
from kdcal_core.data.tables import read_table, table_from_frame

__all__ = [
    "CONFIDENCES",
    "FAMILY_PARAMETERS",
    "POSITIVE_OUTCOMES",
    "RIGHTS",
    "Choice",
    "Doubt",
    "Family",
    "Fitness",
    "FloatArray",
    "IntArray",
    "OutputKind",
    "Reading",
    "RegressionFitness",
    "Roles",
    "ScoredSet",
    "Table",
    "Task",
    "allowed_roots",
    "as_pandas",
    "at_most",
    "check_classes",
    "check_columns",
    "check_hits",
    "check_labels",
    "check_outcome",
    "check_parameter_names",
    "check_parameters",
    "check_proba",
    "check_roles",
    "check_rows",
    "check_weight",
    "classes_of",
    "cluster_column",
    "column_names",
    "digest_arrays",
    "doubts_of_roles",
    "encode_labels",
    "family_of",
    "feature_frame",
    "fit_and_held",
    "fitness",
    "guess_roles",
    "is_text",
    "numeric_matrix",
    "outcome_column",
    "output_matrix",
    "parameter_columns",
    "pixel_places",
    "quantile_levels",
    "random_folds",
    "read_columns",
    "read_table",
    "regression_fitness",
    "row_dependence",
    "softmax_logits",
    "split_by_column",
    "spread_column",
    "stratified_folds",
    "table_from_frame",
    "target_labels",
    "time_column",
    "to_csv",
    "true_mean_column",
    "two_parts",
    "used_columns",
    "weight_column",
]


def __dir__() -> list[str]:
    return sorted(__all__)
