"""A widget that shows what lies elsewhere: in the address, in the review, or in a result."""

from __future__ import annotations

from typing import Any

import streamlit as st


def follow(key: str, value: Any) -> None:
    """Let the widget of this key show a value, once each time that the value changes.

    Written on every run, it would undo a choice that is made while a run still goes on: the
    browser takes a written value for the newer one.
    """
    memory = f"{key}_followed"
    state = st.session_state
    if key not in state or (value != state[key] and value != state.get(memory)):
        state[key] = value
    state[memory] = value
