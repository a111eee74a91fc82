"""What the calibration rows show of their target before they are scored."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kdcal_core.data import output_matrix
from kdcal_core.data.labels import encode_labels
from kdcal_core.data.readings import event_shows, target_shows
from kdcal_core.errors import InputError
from kdcal_core.review.question import default_event
from kdcal_core.review.reader import ReviewReader
from kdcal_core.review.review import Review
from kdcal_core.review.workspace import Workspace


@dataclass(frozen=True)
class FirstLook:
    """The rows' classes, and the predictions that the table holds.

    Attributes
    ----------
    shows : str
        For the target as a whole; empty where the rows have one class. Untrusted text.
    event : str or None
        Of two classes the default event (`default_event`). Untrusted text.
    of_event : dict of str to str
        With two classes, what the rows show if this one is the event. Untrusted text.
    """

    shows: str
    event: str | None = None
    of_event: dict[str, str] = field(default_factory=dict)


def first_look(workspace: Workspace, review: Review) -> FirstLook | None:
    """How often each class occurs and, without a model, how its predictions compare with that.

    None for a regression, and without a calibration table or a target. A model is not run, so only
    the frequencies are known before it has scored the rows.

    Raises
    ------
    InputError
        If the table's file is missing or was changed.
    """
    table, roles = review.tables.get("calibration"), review.roles
    if table is None or roles is None or roles.target is None or review.task == "regression":
        return None
    stated = [] if review.model else [column for _, column in roles.outputs]
    stated += [roles.predicted] if roles.predicted and stated else []
    reader = ReviewReader(workspace, review.id, review=review)
    frame = reader.frame("calibration", [roles.target, *stated])
    frame = frame.dropna(subset=[roles.target]).reset_index(drop=True)
    labels, names = frame[roles.target], review.classes
    proba = None
    try:
        y = encode_labels(labels, names)
        proba = output_matrix(frame, roles, names) if stated else None
    except InputError:  # scoring reports it, with its row
        return FirstLook(target_shows(labels))
    if len(names) != 2:
        return FirstLook(target_shows(labels, names, proba))
    return FirstLook(
        target_shows(labels, names, proba),
        default_event(names, np.bincount(y, minlength=2).tolist()),
        {name: event_shows(labels, name, names, proba) for name in names},
    )
