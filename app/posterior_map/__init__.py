"""What the page Posterior map shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Posterior map",
    icon=":material/gradient:",
    purpose="The model's probabilities over a whole plane, and far outside its data",
    will_show=(
        "Here you will see the model's probabilities over a whole plane, out to twice the range of "
        "its data, beside a kernel density version of it that knows where the data end. Drag a box "
        "over any part of it to see the rows there and whether they support the model."
    ),
)
