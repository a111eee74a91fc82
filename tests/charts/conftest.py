"""Every figure that a test of this folder draws shows its numbers in the house's way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go
import pytest
from charts.hover_numbers import faults


@pytest.fixture(autouse=True)
def _numbers_under_the_pointer(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    if request.path.name == "test_hover.py":  # whose figures are wrong on purpose
        yield
        return
    drawn: list[go.Figure] = []
    make = go.Figure.__init__

    def made(figure: go.Figure, *args: Any, **kwargs: Any) -> None:
        make(figure, *args, **kwargs)
        drawn.append(figure)

    monkeypatch.setattr(go.Figure, "__init__", made)
    yield
    assert sorted({one for figure in drawn for one in faults(figure)}) == []
