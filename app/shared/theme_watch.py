"""Runs the page again when the theme changes between light and dark.

Figures have the colours of one theme, and Streamlit runs nothing when the theme changes. Without
this, their text would have the other theme's colour until the next click.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

_WATCH = """
let last // outlives runs: a change of theme may itself call the function below again

export default function ({ parentElement, setTriggerValue }) {
  const app = document.querySelector("[data-testid='stApp']") ?? parentElement
  const look = () => {
    const now = getComputedStyle(app).backgroundColor
    if (last !== undefined && now !== last) setTriggerValue("changed", now)
    last = now
  }
  look()
  const timer = setInterval(look, 500)
  return () => clearInterval(timer)
}
"""


def show() -> None:
    """Watch the theme without showing anything; what the browser sends is ignored."""
    watch: Any = st.components.v2.component("kdcal_theme", js=_WATCH)
    watch(key="theme_watch", height=1, on_changed_change=_nothing)


def _nothing() -> None:
    """Callback that does nothing: only the page's run is needed."""
