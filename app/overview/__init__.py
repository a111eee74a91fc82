"""What the page Overview shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Overview",
    icon=":material/fact_check:",
    purpose="Every check of the model with its verdict, and what to do next",
    will_show=(
        "Here you will see whether the model can be trusted: one sentence, a list of checks that "
        "pass, fail or need more rows, each with its limit, and what to do next."
    ),
    tasks=("classification", "regression"),
    rows_alone="Measures of foreign rows whose table lacks that column",
)
