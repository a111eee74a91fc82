"""What the page Load shows."""

from __future__ import annotations

from typing import get_args

from app.shared.navigation import Place
from kdcal_core.data import Task

PLACE = Place(
    title="Load",
    icon=":material/upload_file:",
    purpose="Open a sample, or load a model and its held-out rows",
    tasks=get_args(Task),
)
