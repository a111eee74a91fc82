"""What the page Compare shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Compare",
    icon=":material/compare_arrows:",
    purpose="Every calibrator on the same rows, and which of them can be told apart",
    will_show=(
        "Here you will see whether any calibrator is better than the model as it is, beyond "
        "chance: every measure with its interval, paired differences on the same rows, a "
        "reliability diagram for each, and its cost in time and size."
    ),
    rows_alone="Measures of foreign rows whose table lacks that column",
)
