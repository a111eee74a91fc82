"""What the page Confidence by class shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Confidence by class",
    icon=":material/stacked_line_chart:",
    purpose="How often each predicted class is right, at every score",
    will_show=(
        "Here you will see, for each predicted class, how often it is right at every score: the "
        "two densities behind it, the histogram under it, and how the calibrators compare."
    ),
)
