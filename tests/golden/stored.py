"""Where the stored figures lie."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FIGURES = Path(__file__).parent / "figures"
PROCESSOR = Path(__file__).parent / "processor.txt"
"""What `golden.processor` found where the figures were computed."""


def path_of(name: str) -> Path:
    """The file of a group."""
    return FIGURES / f"{name}.json"


def read(name: str) -> Any:
    """The stored figures of a group."""
    return json.loads(path_of(name).read_text(encoding="utf-8"))
