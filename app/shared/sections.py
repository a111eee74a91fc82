"""What follows a page's main picture: one section at a time, so that a page stays short."""

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
