"""What the page Groups shows."""

from __future__ import annotations

from typing import get_args

from app.shared.navigation import Place
from kdcal_core.data import Task

PLACE = Place(
    title="Groups",
    icon=":material/groups:",
    purpose="For which declared groups the model is wrong, and what could have been found",
    will_show=(
        "Here you will see every group of rows that you declare, for instance by age or by region: "
        "stated and observed rates, the calibration error and the AUC, with intervals that hold "
        "for all groups together; in a regression, where the groups' outcomes lie in their "
        "predicted distributions."
    ),
    tasks=get_args(Task),
)
