"""Jobs and pages in the test runner, where nothing polls."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from kdcal_core.jobs import jobs


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
