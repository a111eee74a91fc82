"""Simulation lab: where the truth is known, what a model and its kernel density version say."""

from __future__ import annotations

import streamlit as st

from app.widgets import lab_parts, lab_settings, lab_sizes, lab_text, session, waiting
from app.widgets.lab_results import run_of
from kdcal_core.errors import InputError
from kdcal_core.runs import lab_request

st.title("Simulation lab")
st.caption(lab_text.INTRODUCTION)
settings = lab_settings.choose()
request = lab_request(settings)
job = waiting.find(request.key)


def _run() -> None:
    waiting.run(
        request.target,
        request.kwargs,
        key=request.key,
        title=request.title,
        owner=waiting.EVERYBODY,
    )


if job is None:
    with st.container(border=True):
        st.markdown(lab_text.EMPTY)
        st.caption(lab_text.LASTS)
        st.button("Run", key="lab_run", type="primary", icon=":material/play_arrow:", on_click=_run)
elif job.state == "done":
    try:
        assert job.folder is not None
        lab_parts.results(run_of(request.key, job.folder), request.key)
        lab_sizes.card(settings)
        lab_parts.flaws()
    except InputError as error:
        session.error_box(error)
elif not job.finished:
    waiting.follow(job.id)
elif waiting.start_again(job):
    _run()
    st.rerun()
