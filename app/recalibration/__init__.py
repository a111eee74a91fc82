"""What the page Recalibration shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Recalibration",
    icon=":material/build:",
    purpose="Predictive distributions before and after a repair, and its gain",
    will_show=(
        "Here you will see the same predictions before and after a repair that needs no new "
        "training: outcomes outside their intervals, the reliability of quantiles, and the gain of "
        "each method in every measure."
    ),
    tasks=("regression",),
)
