"""Pages in Streamlit's test runner, where nothing polls: opened, run until jobs end, and read."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest
from texts.pages import visible as plain

from kdcal_core.jobs import jobs

ENTRY = str(Path(__file__).parents[2] / "app" / "main.py")


@cache
def _registered() -> Any:
    """The pages by their hash, which the test runner knows from a run of the first page."""
    return AppTest.from_file(ENTRY, default_timeout=120).run()._registered_pages


def started(review: str | None = None, *, dark: bool = False, **address: str) -> AppTest:
    """The app before its first run, with the address that its page is opened with."""
    at = AppTest.from_file(ENTRY, default_timeout=120)
    at._registered_pages = _registered()
    at.context = {"theme": "dark" if dark else "light"}
    for name, value in {"review": review, **address}.items():
        if value is not None:
            at.query_params[name] = value
    return at


def launch(page: str, review: str | None = None, *, dark: bool = False, **address: str) -> AppTest:
    """A page of the app by its name, as someone sees it who opens its address."""
    return visit(started(review, dark=dark, **address), page)


def visit(at: AppTest, page: str) -> AppTest:
    """Another page of a running app, by its name."""
    return at.switch_page(f"../pages/{page}.py").run()


def healthy(at: AppTest) -> AppTest:
    """The page, which shows no exception and no error."""
    assert not at.exception, at.exception[0].message
    assert not at.error, at.error[0].value
    return at


def settle(at: AppTest, seconds: float = 240) -> AppTest:
    """Run the page until a run begins no more jobs: one may follow another.

    A job can begin and end within one run, so what counts is that no new one was met.
    """
    met: set[str] | None = None
    while met != (now := set(jobs()._jobs)):
        met = now
        for job in jobs().active():
            jobs().wait(job.id, seconds)
        at.run()
    return at


def specs(at: AppTest) -> list[dict[str, Any]]:
    """The figures on the page."""
    return [json.loads(chart.proto.spec) for chart in at.get("plotly_chart")]


def words(at: AppTest) -> str:
    """All that the page says beside its figures, tiles and controls."""
    kinds = (at.header, at.subheader, at.markdown, at.caption, at.warning, at.error, at.info)
    return plain(" ".join(one.value for kind in kinds for one in kind))
