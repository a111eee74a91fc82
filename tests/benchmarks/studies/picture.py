"""A plotly figure as PNG, by a Chromium without network; for what is committed as a picture."""

from __future__ import annotations

from pathlib import Path

import plotly.graph_objects as go
from playwright.sync_api import sync_playwright

WIDTH = 1100
_BROWSER = "/usr/bin/chromium"
_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--proxy-server=127.0.0.1:9")


def save(figures: list[go.Figure], path: Path) -> None:
    """Figures one below the other on white."""
    parts = [
        figure.to_html(include_plotlyjs=at == 0, full_html=False, default_width=f"{WIDTH}px")
        for at, figure in enumerate(figures)
    ]
    page_text = f"<body style='margin:12px;background:white'>{''.join(parts)}</body>"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_BROWSER, args=list(_FLAGS))
        page = browser.new_page(viewport={"width": WIDTH + 24, "height": 400})
        page.set_content(page_text)
        page.wait_for_selector(".js-plotly-plot .main-svg")
        page.wait_for_timeout(500)
        page.screenshot(path=str(path), full_page=True)
        browser.close()
