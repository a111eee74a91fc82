"""The types of buttons that are readable in both themes."""

from __future__ import annotations

from typing import Literal

import streamlit as st


def emphasis(*, wanted: bool = True) -> Literal["primary", "secondary"]:
    """The type of a button that a page wants pressed; plain where it does not.

    In the dark theme it is plain too: Streamlit writes white on the accent colour, and no accent
    gives both white text on it and selected labels in it a contrast of 4.5 there.
    """
    return "primary" if wanted and st.context.theme.type != "dark" else "secondary"


def quiet() -> Literal["tertiary", "secondary"]:
    """The type of a button that opens a few words or settings; without a frame where it may be.

    In the dark theme it has one: Streamlit darkens the label of an open one without a frame until
    it can hardly be read there.
    """
    return "tertiary" if st.context.theme.type != "dark" else "secondary"
