"""What the page Versions shows."""

from __future__ import annotations

from typing import get_args

from app.shared.navigation import Place
from kdcal_core.data import Task

PLACE = Place(
    title="Versions",
    icon=":material/difference:",
    purpose="Audits or reviews side by side, and audits over time: what is better or worse",
    will_show=(
        "Here you will see two audits of a project side by side: what is better, what is worse and "
        "what cannot be told apart, which verdicts changed, and whether model, rows or limits did. "
        "Every estimate is also drawn over time, with its limit."
    ),
    tasks=get_args(Task),
)
