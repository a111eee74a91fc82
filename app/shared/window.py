"""A window over the page. It stays open while the page runs again, as when a job ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

import streamlit as st

from app.shared import session

P = ParamSpec("P")


def open_window(name: str) -> None:
    """Open the window of this name, as a button does when it is clicked."""
    st.session_state[session.WINDOW] = name


def close_window() -> None:
    """Close the window; whoever does so in the middle of a run asks for the next one."""
    st.session_state.pop(session.WINDOW, None)


def window(
    name: str, title: str, draw: Callable[P, None], *args: P.args, **kwargs: P.kwargs
) -> None:
    """Draw a window if it is open.

    Parameters
    ----------
    name : str
        Of the one window that `open_window` opens. A page has at most one open.
    title : str
        Our own text.
    draw : callable
        Draws what the window holds, from the arguments that follow.
    """
    if st.session_state.get(session.WINDOW) == name:
        st.dialog(title, width="large", on_dismiss=close_window)(draw)(*args, **kwargs)
