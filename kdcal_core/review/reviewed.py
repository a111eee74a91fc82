"""The data of a review that calibrators are fitted and compared on, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.types import IntArray, Roles, ScoredSet
from kdcal_core.review.inputs import input_columns
from kdcal_core.review.model import WHICH
from kdcal_core.review.reader import ReviewReader

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.models import Model


@dataclass(frozen=True, eq=False)
class ReviewData:
    """The rows of a scored classification review, with what calibrators may read of them.

    Attributes
    ----------
    calibration : ScoredSet
    evaluation : ScoredSet or None
    classes : tuple of K str
        Untrusted text.
    inputs : dict of str to DataFrame
        The features in the order of the roles, as they are (categories, missing values), under
        "calibration", "evaluation" and "training", as far as there are such rows. Where no column
        is a feature: those without another role that describe the rows and that all these tables
        have, if any.
    groups : dict of str to DataFrame
        Under the same names, the columns that are neither features nor have another role, such
        as a partition of the user's own.
    training_y : (m,) int64 or None
        True classes of the training rows, 0 to K - 1.
    model : Model or None
        The open model, if it is declared and the review has one.
    foreign : dict of str to DataFrame
        Features of foreign rows, if they are declared. Untrusted names.
    """

    calibration: ScoredSet
    evaluation: ScoredSet | None
    classes: tuple[str, ...]
    inputs: dict[str, pd.DataFrame]
    groups: dict[str, pd.DataFrame] = field(default_factory=dict)
    training_y: IntArray | None = None
    model: Model | None = None
    foreign: dict[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def training(self) -> tuple[pd.DataFrame, IntArray] | None:
        """Features and true classes of the training rows, where there are any."""
        if self.training_y is None:
            return None
        return self.inputs["training"], self.training_y


def review_data(reader: ReviewReader, *, with_model: bool = False) -> ReviewData:
    """Read a scored classification review; call it in a worker process.

    Parameters
    ----------
    reader : ReviewReader
        Both sets are read; training and foreign rows where they are declared.
    with_model : bool
        Whether to open the model, where there is one.

    Raises
    ------
    InputError
        The review is of a regression, its calibration set is not scored, a file is missing or
        damaged, or the training rows hold a class that the model does not know.
    """
    from kdcal_core.data import target_labels

    review, roles = reader.review, reader.roles
    calibration = reader.scored("calibration")
    evaluation = reader.scored("evaluation") if "evaluation" in review.sets else None
    columns = input_columns(review)
    inputs: dict[str, pd.DataFrame] = {}
    groups: dict[str, pd.DataFrame] = {}
    for which in WHICH:
        if which not in review.sets:
            continue
        frame = reader.frame(which)
        inputs[which], groups[which] = frame[columns], free_columns(frame, roles, columns)
    training_y = None
    if "training" in reader.reads and reader.has("training"):
        frame = reader.frame("training")
        inputs["training"], groups["training"] = frame[columns], free_columns(frame, roles, columns)
        training_y = target_labels(frame, roles, review.classes, file=reader.name("training"))
    foreign = review.foreign if "foreign" in reader.reads and roles.features else {}
    return ReviewData(
        calibration,
        evaluation,
        review.classes,
        inputs,
        groups,
        training_y,
        reader.model() if with_model and reader.has("model") else None,
        {name: reader.foreign(name).reset_index(drop=True) for name in foreign},
    )


def free_columns(frame: pd.DataFrame, roles: Roles, columns: list[str]) -> pd.DataFrame:
    """The columns that are neither inputs nor have another role."""
    taken = {*used_columns(roles), *columns}
    return frame[[name for name in frame.columns if name not in taken]]
