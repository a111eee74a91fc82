"""What the page Recalibration shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Recalibration",
    icon=":material/build:",
    purpose="Predictive distributions before and after a repair, and what it gained",
    will_show=(
        "Here you will see the same predictions before and after a repair that needs no new "
        "training: which outcomes their intervals miss, whether stated quantiles hold, and what "
        "each method gained in every measure."
    ),
    tasks=("regression",),
)
