"""What the page PIT shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="PIT",
    icon=":material/bar_chart:",
    purpose="Whether outcomes fall where the distributions said, over all rows and place by place",
    will_show=(
        "Here you will see whether outcomes fall where the predicted distributions said they "
        "would: over all rows, and place by place on a map, because good coverage of all rows can "
        "hide predictions that are too low in one place and too high in another."
    ),
    tasks=("regression",),
)
