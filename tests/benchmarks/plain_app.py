"""The least that Streamlit can show: pages of so many charts, beside which ours are timed.

Started by `bench_felt`, as the app is.
"""

from __future__ import annotations

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

CHARTS = range(6)
_X = [0.01 * at for at in range(200)]


def _page(n: int) -> Callable[[], None]:
    def draw() -> None:
        st.title(title(n))
        marks = "lines" if st.toggle("Lines", key=f"lines_{n}") else "markers"
        for at in range(n):
            figure = go.Figure(go.Scatter(x=_X, y=[x ** (at + 1) for x in _X], mode=marks))
            st.plotly_chart(figure, key=f"chart_{n}_{at}", theme=None)
        st.caption(f"Drawn as {marks}")

    return draw


def title(n: int) -> str:
    """The title of the page with so many charts."""
    return f"Page with {n}"


if __name__ == "__main__":
    pages = [st.Page(_page(n), title=title(n), url_path=f"page_{n}") for n in CHARTS]
    st.navigation(pages).run()
