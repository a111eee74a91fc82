"""Jobs on the page and in the sidebar: seen everywhere, stopped from anywhere, ended in words."""

from __future__ import annotations

import time
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from app_pages import plain
from streamlit.testing.v1 import AppTest
from texts.snapshot import Texts

from app.shared import jobs_badge, session
from kdcal_core.jobs import JobSnapshot, default_root, job_key, jobs
from kdcal_core.jobs.outcome import unwatched
from kdcal_core.jobs.records import new_id
from kdcal_core.review import Workspace, create_review, rename_review
from kdcal_core.store.disk import write_json
from kdcal_core.text import escape_markdown

PROBES = "job_probes:"
PAGES = ["../pages/load.py", "../pages/reliability.py", "../pages/confidence_by_class.py"]


@pytest.fixture
def review(app: AppTest) -> Iterator[str]:
    """The id of an empty review that is open in the app; its jobs end with the test."""
    review_id = create_review(Workspace()).id
    app.query_params["review"] = review_id
    app.run()
    yield review_id
    for job in jobs().active():
        jobs().cancel(job.id)
        jobs().wait(job.id, 60)


def count(owner: str, title: str = "Counting", **more: Any) -> str:
    return jobs().submit(
        PROBES + "count", {"n": 600, "pause": 0.1}, title=title, owner=owner, **more
    )


def sidebar(app: AppTest) -> list[str]:
    texts = [element.proto.text for element in app.sidebar.get("progress")]
    return texts + [caption.value for caption in app.sidebar.caption]


def stop_buttons(app: AppTest) -> list[Any]:
    return [button for button in app.sidebar.button if button.label.startswith("Stop ")]


def running(job_id: str) -> JobSnapshot:
    end = time.monotonic() + 60
    while not (job := jobs().get(job_id)) or not job.note:
        assert time.monotonic() < end
        time.sleep(0.02)
    return job


def test_no_jobs_no_badge(app: AppTest, review: str) -> None:
    assert sidebar(app) == []
    assert stop_buttons(app) == []


def test_every_page_shows_the_jobs_of_its_review_and_stops_them(app: AppTest, review: str) -> None:
    first, second = count(review, "One"), count(review, "Two *bold*")
    queued, foreign = count(review, "Three"), count("another review", "Not mine")
    running(first)
    running(second)
    for path in PAGES:
        app.switch_page(path).run()
        one, two, three = sidebar(app)
        assert one.startswith("One (step ")
        assert two.startswith(f"{escape_markdown('Two *bold*')} (step ")
        # the other review has none running, so it comes first
        assert three.startswith("Three: number 2")
        assert not app.exception
    stop_buttons(app)[2].click().run()
    assert jobs().wait(queued, 60).state == "cancelled"
    stop_buttons(app)[0].click().run()
    assert jobs().wait(first, 60).state == "cancelled"
    assert len(sidebar(app.run())) == 1
    jobs().cancel(foreign)
    jobs().cancel(second)
    jobs().wait(second, 60)
    assert sidebar(app.run()) == [
        f":material/stop_circle: {escape_markdown('Two *bold*')}: stopped"
    ]
    assert stop_buttons(app) == []


def test_a_second_tab_sees_and_stops_the_job(app: AppTest, review: str) -> None:
    job = count(review)
    running(job)
    other = AppTest.from_file(app._script_path, default_timeout=90)
    other.query_params["review"] = review
    other.run()
    assert len(sidebar(other)) == 1
    stop_buttons(other)[0].click().run()
    assert jobs().wait(job, 60).state == "cancelled"
    assert sidebar(app.run()) == [":material/stop_circle: Counting: stopped"]


def test_every_run_of_a_page_and_every_poll_says_that_somebody_is_there(
    app: AppTest, review: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    manager = jobs()
    monkeypatch.setattr(manager, "seen", lambda owners: seen.extend(owners))
    app.run()
    assert review in seen
    job = count(review)
    running(job)
    seen.clear()
    app.run()
    assert seen.count(review) == 2  # the run, and the first poll of the badge
    monkeypatch.undo()
    jobs().cancel(job)


def test_a_job_stopped_because_nobody_was_there_says_so(
    app: AppTest, review: str, texts: Texts
) -> None:
    manager = jobs()
    job = count(review)
    running(job)
    manager._stop(job, unwatched("Counting", 900))
    manager.wait(job, 60)
    (caption,) = sidebar(app.run())
    texts([plain(caption)])
    assert "15 minutes" in caption


def test_it_polls_only_while_a_job_is_active(
    app: AppTest, review: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    polled = []
    fragment = st.fragment

    def spy(function: Any, *, run_every: Any) -> Any:
        polled.append(run_every)
        return fragment(function, run_every=run_every)

    monkeypatch.setattr(st, "fragment", spy)
    app.run()
    assert polled == []
    job = count(review)
    app.run()
    assert len(polled) == 1
    assert polled[0] <= 1
    jobs().cancel(job)
    jobs().wait(job, 60)
    app.run()
    assert len(polled) == 1


def test_each_page_is_noted_before_its_timers_may_ask(app: AppTest, review: str) -> None:
    noted = [app.switch_page(page).run().session_state["page_shown"] for page in PAGES]
    assert len(set(noted)) == len(PAGES)
    assert all(noted)


@pytest.mark.parametrize("left", [False, True])
def test_the_timer_of_a_page_that_was_left_shows_no_page_again(
    review: str, monkeypatch: pytest.MonkeyPatch, left: bool
) -> None:
    """Else a click on another page would be lost where a job ends at that moment."""
    again: list[bool] = []
    monkeypatch.setattr(st, "rerun", lambda: again.append(True))
    monkeypatch.setattr(st, "session_state", {"jobs_in_badge": ["a job that has ended"]})
    monkeypatch.setattr(session, "page_left", lambda: left)
    jobs_badge._follow((review,))
    assert again == ([] if left else [True])
    assert ("run_by_job" in st.session_state) == (not left)


def test_how_the_last_job_ended_is_said_in_words(app: AppTest, review: str) -> None:
    done = jobs().submit(PROBES + "add", {"a": 1, "b": 2}, title="Adding", owner=review)
    jobs().wait(done, 60)
    assert sidebar(app.run()) == [":material/check_circle: Adding: done"]
    what = "The cell is [empty](http://a.b)"
    fields = {"what": what, "fix": "Fill it in.", "row": 3}
    failed = jobs().submit(PROBES + "refuse", {"fields": fields}, title="Reading", owner=review)
    jobs().wait(failed, 60)
    (text,) = sidebar(app.run())
    assert text.startswith(f":material/error: {escape_markdown(what)}")
    assert "Fill it in" in text


@pytest.mark.parametrize("shared", [False, True])
def test_an_error_about_another_review_names_it_only_at_this_machine(
    app: AppTest, review: str, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    from app.shared import reviews_here

    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: not shared)
    fields = {"what": "A file of the review a-secret-id is damaged", "file": "secret.csv"}

    def said(about: str) -> str:
        job = jobs().submit(
            PROBES + "refuse", {"fields": fields}, title="Checking", owner=review, about=about
        )
        jobs().wait(job, 60)
        (text,) = sidebar(app.run())
        return plain(text)

    assert "a-secret-id" in said(review)
    assert ("secret" in said("another review")) == (not shared)
    assert ("A file of another review cannot be used" in said("another review")) == shared


@pytest.mark.parametrize("key", ["", "a-result"])
def test_after_a_restart_the_page_says_interrupted(app: AppTest, review: str, key: str) -> None:
    folder = default_root() / "jobs" / "interrupted"
    folder.mkdir(parents=True)
    job_id = new_id()
    record = {"id": job_id, "title": "Scoring the rows", "owners": [review], "key": key}
    times = {"submitted": time.time(), "started": time.time()}
    write_json(folder / f"{job_id}.json", {**record, **times})
    app.run()
    said = "Scoring the rows was interrupted, because the server stopped before it ended"
    assert said in sidebar(app)[0]
    assert "Start it again" in sidebar(app)[0]
    # a step of the Load page is reported there too; a result by the page that shows it
    assert [said in box.value for box in app.error] == ([True] if not key else [])
    job = jobs().submit(PROBES + "add", {"a": 1, "b": 2}, title="Adding", owner=review)
    jobs().wait(job, 60)
    assert sidebar(app.run()) == [":material/check_circle: Adding: done"]
    assert not app.error


def _page(target, kwargs, key):  # type: ignore[no-untyped-def]
    """A page that needs a result, as the docstring of `waiting` has it."""
    import streamlit as st

    from app.shared import jobs_badge, waiting

    st.session_state.runs = st.session_state.get("runs", 0) + 1
    wanted = {"key": key, "title": "Fitting", "owner": "lab"}
    job = waiting.find(key) or waiting.run(target, kwargs, **wanted)
    if job.state == "done":
        st.write(f"The result is {job.result}")
    elif not job.finished:
        waiting.follow(job.id)
    elif waiting.start_again(job):
        waiting.run(target, kwargs, **wanted)
        st.rerun()
    jobs_badge.show()


def page(name: str, **kwargs: Any) -> AppTest:
    key = job_key(PROBES + name, kwargs)
    args = (PROBES + name, kwargs, key)
    return AppTest.from_function(_page, args=args, default_timeout=30)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    return tmp_path


def test_a_page_waits_for_its_result_and_finds_it_ever_after(home: Path) -> None:
    first = page("leave", text="a", pause=2.0).run()
    assert [button.label for button in first.main.button] == ["Stop fitting"]
    (job,) = jobs().active("lab")
    second = page("leave", text="a", pause=2.0).run()
    assert [one.id for one in jobs().active("lab")] == [job.id]  # joined, not begun again
    jobs().wait(job.id, 60)
    for tab in (first, second, page("leave", text="a", pause=2.0)):
        tab.run()
        assert tab.main.markdown[0].value == "The result is A"
        assert not tab.main.button
    assert first.session_state.runs == 2


def test_what_failed_or_was_stopped_waits_to_be_started_again(home: Path) -> None:
    fields = {"what": "Too few rows", "fix": "Add rows."}
    key = job_key(PROBES + "refuse", {"fields": fields})
    tab = page("refuse", fields=fields).run()
    first = jobs().find(key)
    assert first is not None
    jobs().wait(first.id, 60)
    for _ in range(2):
        tab.run()
        assert "Too few rows" in tab.error[0].value
        assert jobs().find(key) == jobs().get(first.id)
    tab.main.button[0].click().run()
    second = jobs().find(key)
    assert second is not None
    assert second.id != first.id
    assert jobs().wait(second.id, 60).state == "failed"


def test_a_home_that_cannot_be_written_leaves_the_app_up(home: Path, texts: Texts) -> None:
    default_root().mkdir()
    (default_root() / "jobs").write_text("in the way")
    tab = page("leave", text="a", pause=0.0).run()
    for job in jobs().active("lab"):
        jobs().wait(job.id, 60)
    tab.run()
    assert not tab.exception
    texts([plain(tab.error[0].value).replace("\\", "")])
    assert escape_markdown("KDCAL_HOME") in tab.error[0].value


def test_stop_leaves_a_job_to_the_other_review_that_asked_for_it(home: Path, texts: Texts) -> None:
    probe = {"n": 600, "pause": 0.1}
    key = job_key(PROBES + "count", probe)
    job = count("another", key=key)
    review = create_review(Workspace()).id
    tab = page("count", **probe)
    tab.session_state["review"] = review
    tab.run()
    assert jobs().get(job).owners == ("another", review)
    tab.main.button[0].click().run()
    assert jobs().get(job).owners == ("another",)
    assert not tab.main.button
    texts([tab.main.caption[0].value])
    jobs().cancel(job)
    jobs().wait(job, 60)


def test_how_a_job_of_another_review_ended_does_not_linger(app: AppTest, review: str) -> None:
    other = create_review(Workspace()).id
    app.session_state["job_owners"] = [other, review]  # this session began jobs of both
    ended = jobs().submit(PROBES + "count", {"n": 1, "pause": 0.0}, title="Past", owner=other)
    jobs().wait(ended, 60)
    app.run()
    assert sidebar(app) == []
    app.query_params["review"] = other
    app.session_state["review"] = other
    app.run()
    assert sidebar(app) == [":material/check_circle: Past: done"]


def test_a_running_job_of_another_review_is_named_by_it(app: AppTest, review: str) -> None:
    other = create_review(Workspace()).id
    rename_review(Workspace(), other, "March *audit*")
    app.session_state["job_owners"] = [other, review]
    fitting = count("of a visitor", "Fitting")
    jobs().join(fitting, other)  # whose review waits for the same result
    running(fitting)
    running(count(review, "Scoring"))
    app.run()
    shown = sidebar(app)
    assert [one.partition(" (")[0] for one in shown[:2]] == ["Fitting", "Scoring"]
    assert shown[2:] == [f"Review **{escape_markdown('March *audit*')}**"]
    Workspace().delete(other)
    app.run()
    assert not app.exception
    assert len(sidebar(app)) == 2


def _lab(key):  # type: ignore[no-untyped-def]
    """A page with a job of everybody, which only the session that asked for it begins."""
    import streamlit as st

    from app.shared import jobs_badge, waiting

    if st.button("Run"):
        waiting.run(
            "job_probes:add", {"a": 1, "b": 2}, key=key, title="Run", owner=waiting.EVERYBODY
        )
    jobs_badge.show()


def test_how_a_job_of_everybody_ended_is_shown_to_who_asked_for_it(home: Path) -> None:
    mine, other = (AppTest.from_function(_lab, args=("a-run",)).run() for _ in range(2))
    mine.button[0].click().run()
    job = jobs().find("a-run")
    assert job is not None
    jobs().wait(job.id, 60)
    assert sidebar(mine.run()) == [":material/check_circle: Run: done"]
    assert sidebar(other.run()) == []


def _two_jobs(name):  # type: ignore[no-untyped-def]
    from app.shared import session, waiting

    with session.reporting_errors():
        for at in range(2):
            target, kwargs = "job_probes:count", {"n": 600, "pause": 0.1}
            key = f"{name}-{at}"
            waiting.find(key) or waiting.run(target, kwargs, key=key, title="Run", owner=name)


def test_a_user_who_has_too_many_jobs_is_told_and_others_are_not_hindered(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without sign-in, a session counts as a user."""
    monkeypatch.setenv("KDCAL_MAX_JOBS_PER_USER", "1")
    for name in ("mine", "other"):
        page = AppTest.from_function(_two_jobs, args=(name,), default_timeout=30).run()
        assert [unescape(one.value) for one in page.error] == [
            "With this one you have 2 jobs that wait or run; the limit is 1 job.\n\nWait until "
            "one has ended, or stop one. Whoever runs kdcal can raise the limit with "
            "KDCAL_MAX_JOBS_PER_USER."
        ]
        assert len(jobs().active(name)) == 1
    for job in jobs().active():
        jobs().cancel(job.id)
        jobs().wait(job.id, 60)
