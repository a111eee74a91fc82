"""What the page Help shows."""

from __future__ import annotations

from typing import get_args

from app.shared.navigation import Place
from kdcal_core.data import Task

PLACE = Place(
    title="Help",
    icon=":material/menu_book:",
    purpose="Guides: loading, reading the pages, calibrators, the command line and Python",
    tasks=get_args(Task),
)
