"""What the page Out of distribution shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Out of distribution",
    icon=":material/explore:",
    purpose="How confident the model stays as rows leave its data",
    will_show=(
        "Here you will see how confident the model stays as rows leave its data: its confidence "
        "against distance beside that of a kernel density version, how well foreign rows are "
        "distinguished from ordinary ones, and which foreign rows it is most sure about."
    ),
    rows_alone="Measures of foreign rows whose table lacks that column",
)
