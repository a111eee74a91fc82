"""The one way a chart is shown, and the tiles of estimates above it."""

from __future__ import annotations

import hashlib
import io
import pickle
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from app.shared import in_browser, sign_in
from app.shared.drawn_figures import DrawnFigure
from app.shared.emphasis import quiet
from app.shared.labels import words_of
from kdcal_core.charts import FEW_PANELS, Chart, Panels, cited_in
from kdcal_core.data import to_csv
from kdcal_core.text import escape_label, escape_markdown

P = ParamSpec("P")
D = TypeVar("D", Chart, go.Figure)
_LONGEST_NAME = 60  # characters of a chart's name on its buttons
_MORE, _MORE_OF_PANEL = 190, 110  # pixels of a square picture, and of a panel, in a wide window
_CONFIG = {
    "displaylogo": False,
    "showSendToCloud": False,
    "scrollZoom": False,
    "showTips": False,  # plotly's are too pale to be read
}
# dragging zooms and a double click resets; more buttons would lie over the legend, and each is a
# stop for the Tab key
_NO_BUTTONS = ("select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d", "zoom2d", "pan2d")


def is_dark() -> bool:
    """Whether the dark theme is shown."""
    return bool(st.context.theme.type == "dark")


def drawn_once(make: Callable[P, D], *args: P.args, **kwargs: P.kwargs) -> D:
    """The chart that ``make`` draws from these results, cached because plotly checks every value.

    It is shared between sessions and must not be changed.

    Parameters
    ----------
    make : callable
        A function of `kdcal_core.charts`.
    args, kwargs
        Its arguments: results of the core, settings, the theme. Their whole content is the key.
    """
    drawn: D = _drawn(_digest(make, args, kwargs), make, args, kwargs)
    return drawn


def _digest(make: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> str:
    content = io.BytesIO()  # only its digest is kept; these bytes are never read back
    pickler = pickle.Pickler(content)
    # equal parts are written out each time: whether they are the same object is not content, and
    # differs between a new result and its copy from a cache
    pickler.fast = True
    pickler.dump((make.__module__, make.__qualname__, args, kwargs))
    return hashlib.sha256(content.getbuffer()).hexdigest()


@st.cache_resource(max_entries=256, show_spinner=False)
def _drawn(
    digest: str, _make: Callable[..., Any], _args: Any, _kwargs: dict[str, Any]
) -> Chart | go.Figure:
    del digest  # only the cache's key
    made = _make(*_args, **_kwargs)
    if isinstance(made, go.Figure):
        return DrawnFigure.of(made)
    return replace(made, figure=DrawnFigure.of(made.figure), panels=_ready_panels(made.panels))


def _ready_panels(panels: Panels | None) -> Panels | None:
    if panels is None:
        return None
    legend = None if panels.legend is None else DrawnFigure.of(panels.legend)
    return replace(panels, figures=tuple(map(DrawnFigure.of, panels.figures)), legend=legend)


def dragged(make: Callable[P, Chart], mode: str, *args: P.args, **kwargs: P.kwargs) -> Chart:
    """The chart with another mode of dragging: "select", "zoom" or "pan".

    Streamlit sets the mode of clicks that belongs to it; plotly would draw another one twice.
    """
    made = make(*args, **kwargs)
    click = "event" if mode == "select" else "event+select"
    return replace(made, figure=made.figure.update_layout(dragmode=mode, clickmode=click))


def drawn_square(make: Callable[P, Chart], *args: P.args, **kwargs: P.kwargs) -> Chart:
    """A square picture, or square panels, drawn once; a wide window has room for larger ones.

    The card of a page's main picture is that of :func:`app.shared.tiles.answer`.
    """
    drawn: Chart
    if in_browser.is_wide():
        drawn = drawn_once(_larger, make, *args, **kwargs)
    else:
        drawn = drawn_once(make, *args, **kwargs)
    return drawn


def _larger(make: Callable[..., Chart], *args: Any, **kwargs: Any) -> Chart:
    made, panels = make(*args, **kwargs), None
    if made.panels is not None:
        figures = tuple(_higher(one, _MORE_OF_PANEL) for one in made.panels.figures)
        width = made.panels.width + _MORE_OF_PANEL
        panels = replace(made.panels, figures=figures, width=width)
    return replace(made, figure=_higher(made.figure, _MORE), panels=panels)


def _higher(figure: go.Figure, more: int) -> go.Figure:
    return figure.update_layout(height=figure.layout.height + more)


def show(
    shown: Chart,
    *,
    key: str,
    of: str,
    which: str = "",
    finding: bool = True,
    alone: bool = False,
    on_box: Callable[[], None] | None = None,
    on_pick: Callable[[], None] | None = None,
) -> None:
    """Show a chart: its finding, figure, explanation, alternative text and data.

    A chart with panels is shown panel by panel, as many side by side as the page has room for.

    Parameters
    ----------
    key : str
        Unique on the page.
    of : str
        What was reviewed; part of the names of files, with the chart's own name.
    which : str, default=""
        What tells the chart from another of its name on the page, such as "of the tried file".
    finding : bool, default=True
        False if a heading of the page already shows it.
    alone : bool, default=False
        Whether the page has no other chart, so that the buttons need not name this one.
    on_box : callable, optional
        Called when a box has been dragged, which is then in the session state of ``key``, or
        cleared. It must not change the figure, because the box would be lost.
    on_pick : callable, optional
        Use instead of ``on_box`` if a click on a mark also counts.
    """
    what = f"{shown.name} {which}".rstrip()
    if finding and shown.finding:
        st.markdown(escape_markdown(shown.finding, 1000))
    if shown.panels is not None:
        _show_panels(shown.panels, shown.alt, key)
    else:
        on_select = on_pick or on_box
        removed = [button for button in _NO_BUTTONS if on_select is None or button != "select2d"]
        st.plotly_chart(
            shown.figure,
            key=key,
            theme=None,
            config={
                **_CONFIG,
                "modeBarButtonsToRemove": removed,
                "toImageButtonOptions": {"filename": f"{of} {what}"},
            },
            on_select=on_select or "ignore",
            selection_mode="box" if on_pick is None else ("points", "box"),
            alt=shown.alt,
        )
    with st.container(horizontal=True, gap="small"):
        # named after the chart: a page has several, and a screen reader reads a button alone
        label = "How to read this"
        if not alone:
            label += f": {words_of(what, _LONGEST_NAME)}"
        with st.popover(label, type=quiet(), icon=":material/help:"):
            st.markdown(shown.how_to_read)
            if papers := cited_in(shown.how_to_read):
                st.caption(papers)
        csv_button(shown.table, key=f"{key}_csv", of=of, what=what, named=not alone)


def _show_panels(panels: Panels, alt: str, key: str) -> None:
    n, more = len(panels.figures), bool(panels.axes or panels.legend)
    columns: Any = n + more if n <= FEW_PANELS else "auto"
    with st.container(key=key), st.grid(columns, min_column_width=panels.width) as cells:
        for at, (figure, title) in enumerate(zip(panels.figures, panels.titles, strict=True)):
            st.plotly_chart(
                figure,
                key=f"{key}_{at}",
                theme=None,
                config={**_CONFIG, "displayModeBar": False},
                alt=f"{title}. {alt}" if at == 0 else title,
            )
        if not more:
            return
        with cells.cell():
            if panels.axes:
                st.caption(panels.axes)
            if panels.legend is not None:
                st.plotly_chart(
                    panels.legend,
                    key=f"{key}_legend",
                    theme=None,
                    config={"staticPlot": True},
                    alt="Legend of all panels",
                )


def csv_button(
    table: Callable[[], pd.DataFrame], *, key: str, of: str, what: str, named: bool = True
) -> None:
    """Offer a table as CSV, which is made on request.

    Parameters
    ----------
    key : str
        Unique on the page.
    of, what : str
        What was reviewed, and what the table holds of it, in a few words that no other button on
        the page has. Both name the file. Plain text.
    named : bool, default=True
        Whether the button says what the table holds: only one on a page may leave it out.
    """
    label = "Data as CSV"
    if named:
        label += f": {escape_label(what, _LONGEST_NAME)}"
    st.download_button(
        label,
        data=sign_in.while_it_lasts(lambda: to_csv(table())),
        file_name=f"{file_stem(f'{of} {what}')}.csv",
        mime="text/csv",
        key=key,
        type="tertiary",
        icon=":material/download:",
        on_click="ignore",
    )


def file_stem(name: str) -> str:
    """Letters, digits and dashes of a name, for a file."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "data"
