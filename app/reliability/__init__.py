"""What the page Reliability shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Reliability",
    icon=":material/analytics:",
    purpose="What the model says against how often it is right",
    will_show=(
        "Here you will see what the model says against how often it is right: the reliability "
        "diagram with its row counts, the calibration errors with their intervals, and which "
        "classes are confused with which."
    ),
)
