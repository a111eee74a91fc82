"""A chart: a figure with the words beside it and the table behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go


@dataclass(frozen=True, eq=False)
class Chart:
    """A figure and everything that a screen or a report shows with it.

    Every topic of `kdcal_core.charts` has functions that make one from a result, for the light or
    the dark theme.

    Attributes
    ----------
    figure : plotly.graph_objects.Figure
        Names in it are escaped already.
    finding : str
        One sentence with its numbers, empty where a headline already says it. Plain text: it may
        hold names from uploaded files as they came, so whoever shows it escapes it.
    alt : str
        The alternative text. Plain text, as ``finding`` is.
    how_to_read : str
        Our own Markdown with the paper and the equation. It holds no names from files.
    table : callable
        Makes the data of the figure; few readers ask for it, and it may hold every row.
    name : str
        What the figure is of, in a few words, for the names of files. Plain text.

    Examples
    --------
    >>> chart = Chart(
    ...     go.Figure(),
    ...     finding="All 20 predictions are right.",
    ...     alt="A square.",
    ...     how_to_read="**Across**: what the model states.",
    ...     table=lambda: pd.DataFrame({"rows": [20]}),
    ...     name="reliability",
    ... )
    >>> chart.table().to_dict("list")
    {'rows': [20]}
    """

    figure: go.Figure
    finding: str
    alt: str
    how_to_read: str
    table: Callable[[], pd.DataFrame]
    name: str
