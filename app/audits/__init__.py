"""What the page Audits shows."""

from __future__ import annotations

from typing import get_args

from app.shared.navigation import Place
from kdcal_core.data import Task

PLACE = Place(
    title="Audits",
    icon=":material/history_edu:",
    purpose="Signed records of reviews: what was found, who decided, and what changed since",
    will_show=(
        "Here you will see the audits of your projects: the verdict of each, who submitted and "
        "approved it, and what must still be dealt with. An audit keeps a review as it was, with "
        "a signed history."
    ),
    tasks=get_args(Task),
)
