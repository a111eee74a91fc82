"""What the page Groups shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Groups",
    icon=":material/groups:",
    purpose="For which declared groups the model is wrong, and what could have been found",
    will_show=(
        "Here you will see every group of rows that you declare, by age or by region for instance: "
        "what the model states beside what happens, its calibration error and its AUC, with "
        "intervals that hold for all groups together."
    ),
)
