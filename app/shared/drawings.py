"""The app's own drawings: read once, as this module outlives the run of a page."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from pathlib import Path

ASSETS = Path(__file__).parents[1] / "assets"


@cache
def drawing(name: str) -> str:
    """A drawing in the form in which Streamlit sends it.

    Given a path, Streamlit would read the file in every run.

    Examples
    --------
    >>> drawing("mark.svg")[:26]
    'data:image/svg+xml;base64,'
    """
    return f"data:image/svg+xml;base64,{b64encode((ASSETS / name).read_bytes()).decode()}"
