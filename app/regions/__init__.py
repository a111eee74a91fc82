"""What the page Regions shows."""

from __future__ import annotations

from typing import get_args

from app.shared.navigation import Place
from kdcal_core.data import Task

PLACE = Place(
    title="Regions",
    icon=":material/account_tree:",
    purpose="Regions of the inputs in which the model is wrong, and the effect of a repair",
    will_show=(
        "Here you will see in which regions of the inputs the model is wrong beyond chance: the "
        "regions drawn as a tree and as a table, each with its rows and its reliability, and the "
        "effect of a repair by region on the AUROC and the log loss."
    ),
    tasks=get_args(Task),
)
