"""What a page draws only while it is open: sections below the main picture, and folded parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import streamlit as st


def sections(key: str, parts: Mapping[str, Callable[[], None]]) -> None:
    """Tabs of which only the open one is computed and drawn, the first one at first.

    Parameters
    ----------
    key : str
        Unique in the app.
    parts : mapping of str to callable
        What each tab draws, by its name.
    """
    for tab, draw in zip(
        st.tabs(list(parts), key=key, on_change="rerun"), parts.values(), strict=True
    ):
        if tab.open:
            with tab:
                draw()


def folded(label: str, key: str, draw: Callable[[], object], *, expanded: bool = False) -> None:
    """A folded part, which is computed and drawn once it is unfolded.

    Parameters
    ----------
    label : str
        Markdown.
    key : str
        Unique in the app.
    expanded : bool, default=False
        Whether it is unfolded at first.
    """
    with st.expander(label, expanded=expanded, key=key, on_change="rerun") as part:
        if part.open:
            draw()
