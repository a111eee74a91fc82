"""What the page Watch shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Watch",
    icon=":material/monitoring:",
    purpose="What has changed in a new table, with or without labels, and whether to recalibrate",
    will_show=(
        "Here you will see a new table of rows, with or without labels, against the reference "
        "rows, which are those of the evaluation set: whether the scores have moved by more than "
        "chance, the accuracy or error that can be expected without labels and what that takes "
        "for granted, the classes' shares, and a test of calibration that may be looked at "
        "whenever labels arrive and says when to recalibrate."
    ),
    tasks=("classification", "regression"),
    forecasts_alone="With a time column, the sequential test and the caution about the factor",
    rows_alone="With a time column, the sequential test",
)
