"""What the page Decisions shows."""

from __future__ import annotations

from app.shared.navigation import Place

PLACE = Place(
    title="Decisions",
    icon=":material/rule:",
    purpose="What follows if rows above a threshold are flagged: errors, net benefit and cost",
    will_show=(
        "Here you will see what follows when every row with a large enough probability is flagged: "
        "how many events are found and how many alarms are false, from which threshold to which "
        "the model is worth using, and which threshold costs least."
    ),
)
