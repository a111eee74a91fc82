"""What the page Simulation lab shows."""

from __future__ import annotations

from typing import get_args

from app.shared.navigation import Place
from kdcal_core.data import Task

PLACE = Place(
    title="Simulation lab",
    icon=":material/science:",
    purpose="Models trained on simulated data, where the truth is known",
    tasks=get_args(Task),
)
