"""Two pages and one job, for `test_jobs_in_the_browser`."""

import os
import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).parents[2]))

from app.shared import jobs_badge, session, waiting
from kdcal_core.errors import InputError

HOME = Path(os.environ.get("KDCAL_HOME", ""))
NAME = HOME / "name"  # of the job, which each test has for itself
JOB = {
    "target": "job_probes:count",
    "kwargs": {
        "n": int(os.environ.get("STEPS", "60")),
        "pause": 0.1,
        "hurry": str(HOME / "hurry"),
    },
    "key": NAME.read_text() if NAME.exists() else "count",
    "title": "Counting",
    "owner": waiting.EVERYBODY,
}


def wait() -> None:
    """The page that shows the result."""
    st.session_state.runs = st.session_state.get("runs", 0) + 1
    job = waiting.find(JOB["key"])
    if job is None:
        if st.button("Begin"):
            waiting.run(**JOB)
            st.rerun()
    elif job.state == "done":
        st.write(f"Counted to {job.result}")
    elif not job.finished:
        waiting.follow(job.id)
    elif waiting.start_again(job):
        waiting.run(**JOB)
        st.rerun()
    st.write(f"Run {st.session_state.runs}")


def other() -> None:
    """A page that has nothing to do with it."""
    st.write("Elsewhere")
    st.slider("Still usable", 0, 10, key="slider")
    if st.button("Act"):
        session.error_box(InputError("It cannot be done", fix="Do it later."), of_action=True)


# the doctest run imports every file here
if __name__ == "__main__":
    try:
        chosen = st.navigation([st.Page(wait, title="Wait"), st.Page(other, title="Other")])
        session.note_page()
        chosen.run()
    finally:
        jobs_badge.show()
