"""Where people sign in: the first screen, whose reviews are open to whom, projects and members."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from app_pages import ENTRY, healthy, visit, words
from streamlit.testing.v1 import AppTest

from app.audits import members
from app.shared import audits_here, reviews_here, sign_in
from kdcal_core.audit import KEY, MemberSet, Person, Record, signer_of
from kdcal_core.errors import InputError
from kdcal_core.review import PersonalWorkspace, Workspace, start_sample

ISSUER = "https://id.example.org"
ANN, EVE = ({"sub": name, "name": name.capitalize()} for name in ("ann", "eve"))
SAMPLE = "xor_forest"


def claims(who: dict[str, Any], seconds: float = 3600, **others: Any) -> dict[str, Any]:
    """What Streamlit knows of a person whose token expires in so many seconds."""
    return {"is_logged_in": True, "iss": ISSUER, "exp": time.time() + seconds, **who, **others}


def person(who: dict[str, Any]) -> Person:
    found = sign_in.person_of(claims(who), time.time())
    assert found is not None
    return found


def opened(user: dict[str, Any], page: str = "load", **address: str) -> AppTest:
    """A page as a person sees it who opens its address."""
    at = AppTest.from_file(ENTRY, default_timeout=120)
    at.user = user
    at.run()
    for name, value in address.items():
        at.query_params[name] = value
    return visit(at, page)


def labels(at: AppTest) -> list[str]:
    return [one.label for one in at.button]


@pytest.fixture(scope="module")
def reviews(workspace: Workspace) -> dict[str, str]:
    """A review of Ann's, and one of before people signed in."""
    anns = PersonalWorkspace(person(ANN).identity, workspace.root)
    return {
        "ann": start_sample(anns, SAMPLE).id,
        "nobody": start_sample(workspace, SAMPLE).id,
    }


PAGES = ("load", "overview", "audits", "reliability", "help")


@pytest.mark.parametrize("page", PAGES)
def test_before_signing_in_every_page_is_one_button(reviews: dict[str, str], page: str) -> None:
    at = opened({"is_logged_in": False}, page, review=reviews["ann"])
    assert [one.value for one in healthy(at).title] == ["Sign in"]
    assert labels(at) == ["Sign in"]
    assert len(at.sidebar) == 0
    assert "XOR" not in words(at)


@pytest.mark.parametrize(
    ("user", "said"),
    [
        (claims(ANN, -1), "Your sign-in ended on"),
        (claims(ANN, exp=None), "does not say who you are"),
        (claims(ANN, exp="2999-01-01"), "does not say who you are"),
        (claims({"sub": " "}), "does not say who you are"),
        (claims(ANN, iss=["a list"]), "does not say who you are"),
    ],
)
def test_a_token_that_expired_or_names_nobody_opens_nothing(
    reviews: dict[str, str], user: dict[str, Any], said: str
) -> None:
    at = opened(user, "overview", review=reviews["ann"])
    assert labels(healthy(at)) == ["Sign in"]
    assert said in words(at)


def test_the_next_run_after_the_expiry_asks_to_sign_in(reviews: dict[str, str]) -> None:
    at = opened(claims(ANN), "overview", review=reviews["ann"])
    assert [one.value for one in healthy(at).title] == ["Overview"]
    at.user["exp"] = time.time() - 1
    assert labels(at.run()) == ["Sign in"]
    assert "Your sign-in ended on" in words(at)


def test_a_part_of_a_page_that_runs_alone_ends_with_the_sign_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class AgainError(Exception):
        pass

    def rerun() -> None:
        raise AgainError

    monkeypatch.setattr("streamlit.rerun", rerun)
    monkeypatch.setattr(sign_in, "is_on", lambda: True)
    monkeypatch.setattr(sign_in, "signed_in", lambda: None)
    with pytest.raises(AgainError):
        sign_in.person_in_front()


def test_a_download_that_no_run_precedes_ends_with_the_sign_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class User(dict[str, Any]):
        def to_dict(self) -> dict[str, Any]:
            return dict(self)

    monkeypatch.setattr("streamlit.user", User(claims(ANN, 60)))
    make = sign_in.while_it_lasts(lambda: b"rows")
    assert make() == b"rows"
    later = time.time() + 61
    monkeypatch.setattr(time, "time", lambda: later)
    with pytest.raises(InputError, match="sign-in has ended"):
        make()


def test_names_are_untrusted_and_short() -> None:
    shown = person({"sub": "s", "name": "A\x1b[31m" + "n" * 900})
    assert shown.name.startswith("A\ufffd[31m")
    assert len(shown.name) == 200
    assert person({"sub": "s", "name": "", "email": "ann@example.org"}).name == "ann@example.org"
    assert person(ANN).believed == f"signed in with {ISSUER}"


def test_who_signed_in_stands_beside_the_way_out(reviews: dict[str, str]) -> None:
    at = healthy(opened(claims({"sub": "s", "name": "*Ann*"}), "help"))
    assert "&#42;Ann&#42;" in at.sidebar.caption[0].value
    assert at.sidebar.button(key="sign_out").label == "Sign out"
    at.sidebar.button(key="sign_out").click().run()
    assert not at.title  # nothing more is drawn for a browser that is on its way out
    at.run()
    assert labels(at) == ["Sign in"]


def test_a_review_is_there_for_its_owner_alone(reviews: dict[str, str]) -> None:
    at = healthy(opened(claims(ANN), "overview", review=reviews["ann"]))
    assert "The review named" not in words(at)
    assert at.caption
    unknown = opened(claims(EVE), "overview", review="A" * 16)
    for user, review in (
        (claims(EVE), reviews["ann"]),
        (claims(ANN, iss="https://other.example.org"), reviews["ann"]),
        (claims(ANN), reviews["nobody"]),
        ({}, reviews["ann"]),  # nobody signs in on this server
    ):
        at = healthy(opened(user, "overview", review=review))
        assert "The review named in the address is not on this machine" in words(at)
        if user.get("sub") == "eve":
            assert words(at) == words(unknown)
            assert labels(at) == labels(unknown)
    at = healthy(opened({}, "overview", review=reviews["nobody"]))
    assert "The review named" not in words(at)


def test_what_is_created_belongs_to_the_person(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path))
    at = healthy(opened(claims(ANN), "reliability"))
    at.button(key="sample_for_reliability").click().run()
    (review, _used), *others = Workspace().reviews()
    assert not others
    assert review.owner == (ISSUER, "ann")


def test_the_list_shows_the_persons_own_reviews(workspace: Workspace) -> None:
    anns = PersonalWorkspace((ISSUER, "ann"), workspace.root)
    eves = PersonalWorkspace((ISSUER, "eve"), workspace.root)
    made = start_sample(anns, SAMPLE).id
    anns.update(made, lambda one: one.__class__(**{**vars(one), "sample": None, "title": "Mine"}))
    copy = anns.duplicate(made, "Copy")
    assert Workspace(workspace.root).read(copy).owner == (ISSUER, "ann")
    with pytest.raises(InputError, match="no such review"):
        eves.duplicate(made, "Stolen")
    eves.delete(made)
    assert anns.exists(made)
    assert {"Mine", "Copy"} <= set(labels(opened(claims(ANN))))
    assert not {"Mine", "Copy"} & set(labels(opened(claims(EVE))))
    assert not {"Mine", "Copy"} & set(labels(opened({})))


def test_jobs_of_others_are_not_shown(reviews: dict[str, str]) -> None:
    at = opened(claims(EVE), "reliability", review=reviews["ann"])
    assert "review" not in at.session_state
    assert "review" not in at.query_params


def test_projects_are_shown_to_members_alone(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(workspace.root.parent / "audits")
    monkeypatch.setattr(audits_here, "record", lambda: record)
    ann, eve = person(ANN), person(EVE)
    project = record.create("Credit risk", ann)
    record.create("Of this machine", Person("Me"))
    at = healthy(opened(claims(ANN), "audits"))
    assert "Credit risk" in words(at)
    assert "Of this machine" not in words(at)
    at = healthy(opened(claims(EVE), "audits"))
    assert "Credit risk" not in words(at)
    assert [one.value for one in at.code] == [f"{ISSUER} eve"]
    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: True)
    at = healthy(opened({}, "audits"))
    assert "Credit risk" not in words(at)
    assert "Of this machine" in words(at)

    at = healthy(opened(claims(ANN), "audits"))
    form = f"member_add_{project.id}"
    at = _added(at, form, "Eve", "only-one-word")
    assert "does not identify a person" in at.error[0].value
    at = _added(at, form, "Eve", members.identity_line(eve), role="viewer")
    assert record.project(project.id).role_of(eve) == "viewer"
    at = healthy(opened(claims(EVE), "audits"))
    assert "Credit risk" in words(at)
    assert not [one for one in at.text_input if one.label == "Identity"]  # of administrators only


def _added(at: AppTest, form: str, name: str, line: str, role: str = "viewer") -> AppTest:
    fields = {one.label: one for one in at.text_input if one.form_id == form}
    fields["Name of a new member"].input(name)
    fields["Identity"].input(line)
    (chosen,) = (one for one in at.radio if one.form_id == form)
    chosen.set_value(role)
    (sent,) = (one for one in at.button if one.form_id == form)
    return sent.click().run()


def test_a_project_of_this_machine_gets_an_administrator_first(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(workspace.root.parent / "audits_here")
    monkeypatch.setattr(audits_here, "record", lambda: record)
    monkeypatch.setattr(reviews_here, "at_this_machine", lambda: True)
    project = record.create("Handed over", Person("Me"))
    at = healthy(opened({}, "audits"))
    _added(at, f"member_add_{project.id}", "Ann", f"{ISSUER} ann", "administrator")
    found = record.project(project.id)
    assert found.members == {(ISSUER, "ann"): MemberSet(ISSUER, "ann", "Ann", "administrator")}
    assert not found.may(Person("Me"), "viewer")


def test_an_administrator_adds_the_key_of_a_gate(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = Record(tmp_path / "audits")
    monkeypatch.setattr(audits_here, "record", lambda: record)
    project = record.create("Credit risk", person(ANN)).id
    key = signer_of(tmp_path / "gate").public
    at = healthy(opened(claims(ANN), "audits"))

    def sent(at: AppTest, name: str, text: str) -> AppTest:
        form = f"key_add_{project}"
        next(one for one in at.text_input if one.form_id == form).input(name)
        next(one for one in at.text_area if one.form_id == form).input(text)
        return next(one for one in at.button if one.form_id == form).click().run()

    for text in ("", "[" * 900, '{"keyid": 1}', "ssh-ed25519 AAAA"):
        assert "not a public key" in sent(at, "CI", text).error[0].value
    assert "A member needs a name" in sent(at, " ", json.dumps(key)).error[0].value
    at = healthy(sent(at, "CI <b>", json.dumps(key, indent=2)))
    found = record.project(project)
    assert found.members[KEY, key["keyid"]] == MemberSet(KEY, key["keyid"], "CI <b>", "reviewer")
    assert found.own_only == {key["keyid"]}
    (members_table,) = [one.value for one in at.dataframe if "Provider" in one.value]
    assert "None: it is a key" in set(members_table["Provider"])


LOCAL = {"Origin": "http://localhost:8501", "Host": "localhost:8501"}


@pytest.mark.parametrize(
    ("changed", "address", "here"),
    [
        ({}, None, True),
        ({"Origin": "http://127.0.0.1:8501", "Host": "127.0.0.1:8501"}, None, True),
        ({"Origin": "http://[::1]:8501", "Host": "[::1]:8501"}, None, True),
        ({"Origin": ""}, None, False),
        ({"Origin": "https://kdcal.example.org"}, None, False),
        ({"Origin": "http://localhost.example.org"}, None, False),
        # a program on another machine that says what a browser here would say
        ({}, "192.0.2.7", False),
        # and through a proxy
        ({"Host": "kdcal.example.org"}, None, False),
        ({"X-Forwarded-For": "192.0.2.7"}, None, False),
        ({"Forwarded": "for=192.0.2.7"}, None, False),
        ({"Host": ""}, None, False),
        ({"Host": "[::1"}, None, False),
        ({"Origin": "http://[::1"}, None, False),
    ],
)
def test_who_is_at_this_machine(
    changed: dict[str, str], address: str | None, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    context = SimpleNamespace(headers={**LOCAL, **changed}, ip_address=address)
    monkeypatch.setattr(reviews_here, "st", SimpleNamespace(context=context))
    assert reviews_here.at_this_machine() is here
