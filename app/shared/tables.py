"""The one way a table is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from app.shared import in_browser
from app.shared.charts import csv_button
from kdcal_core.diagnostics import Estimate, interval_text, reference_text, value_text
from kdcal_core.text import NUMBER, number_text, range_text

_NUMBER = re.compile(
    rf"(?:[<>] ?|below |about |at most |at least )?{NUMBER}(?: to {NUMBER})?(?: of {NUMBER})?"
    r"(?: \([^()]*\))?(?: (?:s|ms|rows?|bytes|[KMG]iB))?|no interval|not defined"
)
# long names and how intervals were made: in two lines all stands on a screen of 1,366 pixels
_NAME_PIXELS, _MADE_PIXELS = 340, 190
_ROW_PIXELS = 35


def show_table(
    frame: pd.DataFrame,
    *,
    column_config: dict[str, Any] | None = None,
    names_rows: bool = True,
    **options: Any,
) -> Any:
    """Show a table without its index; returns the selection, as `st.dataframe` does.

    Numbers stand on the right, those with an interval or a unit too, which are text to Streamlit.
    Estimates are text (`kdcal_core.text`). Numbers of single rows stay numbers, so that they can be
    sorted, in Streamlit's notation, which is that of the table's own columns beside them.
    The first column names its row and stays on the left, unless ``names_rows`` is False.
    """
    config = dict(column_config or {})
    for name in frame.columns[int(names_rows) :]:
        given = config.get(name, st.column_config.TextColumn())
        if given and given["type_config"]["type"] == "text" and holds_numbers(frame[name]):
            config[name] = {**given, "alignment": "right"}
    return st.dataframe(frame, column_config=config, hide_index=True, **options)


def show_bins(
    named: Mapping[str, Sequence[str]],
    shares: Iterable[tuple[float, float, float]],
    counts: NDArray[Any],
    *,
    key: str,
    alt: str,
    room: tuple[int, int] = (250, 560),
) -> None:
    """The bins of a square picture as numbers, as high as the place that is left beside it.

    Parameters
    ----------
    named : mapping of str to sequence of str
        The first column and its title.
    shares : iterable of (share, low, high)
        What is seen in each bin, with its interval.
    counts : array
        Rows of each bin.
    room : tuple of two int
        Pixels of that place, and in a wide window.
    """
    most = room[in_browser.is_wide()]
    show_table(
        pd.DataFrame(
            {
                **named,
                "Sees": [
                    f"{number_text(sees, high - low)} ({range_text(low, high)})"
                    for sees, low, high in shares
                ],
                "Rows": counts,
            }
        ),
        height=most if (len(counts) + 1) * _ROW_PIXELS > most else "content",
        key=key,
        column_config={
            **{one: st.column_config.TextColumn(alignment="right", width=90) for one in named},
            "Rows": st.column_config.NumberColumn(format="localized", width=60),
        },
        alt=alt,
    )


def show_estimates(estimates: Sequence[Estimate], *, key: str, of: str, what: str) -> None:
    """Every estimate with its full name, and what its interval was made by; also as CSV."""
    show_table(
        pd.DataFrame(
            {
                "Estimate": [one.name for one in estimates],
                "Value": [value_text(one) for one in estimates],
                "Interval": [interval_text(one) for one in estimates],
                "Compare with": [reference_text(one) for one in estimates],
                "Rows": [one.n for one in estimates],
                "Made by": [one.interval for one in estimates],
            }
        ),
        key=key,
        column_config={
            "Estimate": st.column_config.TextColumn(width=_NAME_PIXELS),
            "Rows": st.column_config.NumberColumn(format="localized"),
            "Made by": st.column_config.TextColumn(width=_MADE_PIXELS),
        },
        row_height=62,  # two lines: Streamlit wraps text above four times the font size
        alt="Every estimate with its value, its interval and the value to compare it with",
    )
    csv_button(
        lambda: pd.DataFrame([vars(one) for one in estimates]), key=f"{key}_csv", of=of, what=what
    )


def holds_numbers(column: pd.Series) -> bool:
    """Whether a column of text holds nothing but numbers, of which some may be missing.

    Examples
    --------
    >>> holds_numbers(pd.Series(["−0.2 (-0.3 to 0.1)", "", "+3.1%"]))
    True
    >>> holds_numbers(pd.Series(["0.2", "1 Main Street"])), holds_numbers(pd.Series([1.5, 2.5]))
    (False, False)
    """
    if pd.api.types.is_numeric_dtype(column):
        return False
    words = [str(one) for one in column.head(1000) if isinstance(one, str) and one]
    return bool(words) and all(map(_NUMBER.fullmatch, words))
