"""The four things that Streamlit leaves to a script in the browser; nothing of it is seen.

The page runs again when the theme changes between light and dark: figures have the colours of one
theme, and Streamlit runs nothing then, so that their text would have the other theme's colour until
the next click. And the keyboard's focus goes to the page's title after another page or review was
opened by a button: the button is gone by then, and the focus would start again at the top. And the
script says whether the window is wide or narrow, because a figure's height is fixed before it is
sent. And plotly is read ahead, while a visitor looks at the first page: that keeps the browser busy
for most of a second, which the first figure, and all that is drawn with it, would wait for.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit import file_util

_KEY = "in_browser"
_OPENED = "opened_by_button"
WIDE, NARROW = 1600, 640
"""Pixels of a window from which it is a large screen's, and below which it is a phone's."""
_SCRIPT = """
let last // outlives runs: a change of theme may itself call the function below again
let width = "" // of the window in words, as the server knows it
let focused = 0
let left // what had the focus when the other page began: it stands until the page is drawn
let tries = 0 // a control that stays where it was keeps the focus
let asked = false // for plotly

function readAhead(name) {
  const other = document.querySelector("script[type='module'][src*='/js/']")
  if (asked || !name || !other) return
  asked = true
  setTimeout(() => import(new URL(name, other.src).href).catch(() => {}), 2000)
}

function focusTitle() {
  const title = document.querySelector("[data-testid='stMain'] h1")
  const active = document.activeElement
  const lost = active === null || active === document.body
  if (title && lost) {
    title.tabIndex = -1
    title.focus()
  }
  tries = (title && lost) || (!lost && active !== left) ? 0 : tries - 1
}

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  readAhead(data.plotly)
  if (data.opened > focused) {
    focused = data.opened
    left = document.activeElement
    tries = 40 // ten seconds
  }
  const app = document.querySelector("[data-testid='stApp']") ?? parentElement
  const look = () => {
    if (tries > 0) focusTitle()
    const now = getComputedStyle(app).backgroundColor
    if (last !== undefined && now !== last) setTriggerValue("changed", now)
    last = now
    const seen = innerWidth < data.narrow ? "narrow" : innerWidth < data.wide ? "" : "wide"
    if (seen !== width) setStateValue("width", (width = seen))
  }
  look()
  const timer = setInterval(look, 250)
  return () => clearInterval(timer)
}
"""


def focus_title() -> None:
    """Move the focus to the title of the page that is drawn next."""
    st.session_state[_OPENED] = st.session_state.get(_OPENED, 0) + 1


def is_wide() -> bool:
    """Whether the window is a large screen's; False in a session's first run, which cannot know."""
    return _width() == "wide"


def is_narrow() -> bool:
    """Whether the window is a phone's; False in a session's first run, which cannot know."""
    return _width() == "narrow"


def _width() -> str:
    return getattr(st.session_state.get(_KEY), "width", "")


@cache
def plotly_file() -> str:
    """The name of Streamlit's file with plotly; empty if it has another name than in this version.

    Examples
    --------
    >>> plotly_file().endswith(".js")
    True
    """
    found = Path(file_util.get_static_dir()).glob("static/js/PlotlyChart.*.js")
    return next((one.name for one in found), "")


def show() -> None:
    """Send the script its data; what the browser sends back makes the page run again."""
    script: Any = st.components.v2.component("kdcal_in_browser", js=_SCRIPT)
    script(
        key=_KEY,
        height=1,
        data={
            "opened": st.session_state.get(_OPENED, 0),
            "wide": WIDE,
            "narrow": NARROW,
            "plotly": plotly_file(),
        },
        default={"width": ""},
        on_changed_change=_nothing,
        on_width_change=_nothing,
    )


def _nothing() -> None:
    """Callback that does nothing: only the page's run is needed."""
