"""What the page PIT shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="PIT",
    icon=":material/bar_chart:",
    purpose="Whether outcomes follow their predicted distributions, in total and place by place",
    will_show=(
        "Here you will see whether outcomes follow their predicted distributions: over all rows, "
        "and place by place on a map, because good coverage over all rows can hide predictions "
        "that are too low in one place and too high in another."
    ),
    tasks=("regression",),
)
