"""Who may do what in a project, for its administrators; and how somebody asks to be added."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd
import streamlit as st

from app.audits.audit_actions import Write, writer
from app.shared import session
from app.shared.emphasis import quiet
from app.shared.tables import show_table
from kdcal_core.audit import KEY, ROLES, MemberSet, Person, Project, Record, Role
from kdcal_core.errors import InputError
from kdcal_core.text import printable

_LONGEST = 1_000
_KEY_WORDS: dict[Role, str] = {
    "reviewer": "Reviewer: records audits and comments",
    "administrator": "Administrator: also members and files",
}
_NO_ROLE = "no role any more"
_WORDS: dict[Role, str] = {
    "viewer": "Viewer: reads",
    "reviewer": "Reviewer: also records, submits, comments",
    "approver": "Approver: also approves and rejects",
    "administrator": "Administrator: also members and files",
}


def identity_line(who: Person) -> str:
    """What identifies a person, in one line to copy; empty where nobody checked.

    Examples
    --------
    >>> identity_line(Person("Ann", "https://id.example.org", "7"))
    'https://id.example.org 7'
    """
    return "" if who.identity is None else " ".join(who.identity)


def identity_in(line: str) -> tuple[str, str]:
    """The issuer and the subject of a line of `identity_line`.

    Raises
    ------
    InputError
        If it does not hold both.

    Examples
    --------
    >>> identity_in(" https://id.example.org  7 ")
    ('https://id.example.org', '7')
    """
    issuer, _, subject = line.strip().partition(" ")
    if not issuer or not subject.strip():
        raise InputError(
            "This does not identify a person",
            fix="Paste the line that the person sees on the Audits page after signing in: the "
            "provider's address, a space, and the provider's identifier for the person.",
        )
    return issuer, subject.strip()


def ask_for_access(who: Person) -> None:
    """What a person sends to an administrator, with a button that copies it."""
    if who.identity is None:
        return
    st.markdown(
        "A project is shown to its members only. To become one, send this line, which identifies "
        "you, to an administrator of the project:"
    )
    st.code(identity_line(who), language=None, wrap_lines=True)


def members(record: Record, project: Project, who: Person, label: str) -> None:
    """The members of a project with their roles, and a form to add, change or remove one."""
    with st.popover(label, type=quiet(), icon=":material/group:", key=f"members_{project.id}"):
        write = writer(record, project, who)
        if project.members:
            _table(project)
            _change(project, write)
        else:
            st.markdown(
                "This project has no members: whoever uses this machine without signing in may "
                "do everything in it, and nobody who signs in sees it. Its first member must be an "
                "administrator, and from then on only members see it."
            )
        _add(project, write)
        if project.members:
            _add_key(record, project, who)


def _table(project: Project) -> None:
    found = sorted(project.members.values(), key=lambda one: -ROLES.index(one.role or "viewer"))
    show_table(
        pd.DataFrame(
            {
                "Name": [printable(one.name, 80) for one in found],
                "Role": [str(one.role).capitalize() for one in found],
                "Provider": [_provider(one) for one in found],
                "Identifier": [printable(one.subject, 120) for one in found],
            }
        ),
        key=f"members_table_{project.id}",
        alt="The members of the project with their roles",
    )


def _provider(member: MemberSet) -> str:
    return "None: it is a key" if member.issuer == KEY else printable(member.issuer, 120)


def _change(project: Project, write: Write) -> None:
    with st.form(f"member_change_{project.id}", border=False):
        identity = st.selectbox(
            "Member",
            list(project.members),
            format_func=lambda one: printable(
                f"{project.members[one].name[:80]} ({one[1][:80]})", 170
            ),
        )
        role = st.selectbox("New role", [*ROLES, None], format_func=_role_text)
        sent = st.form_submit_button("Change the role")
    if sent and identity in project.members:
        write(MemberSet(*identity, project.members[identity].name, role))


def _role_text(role: Role | None) -> str:
    return _NO_ROLE.capitalize() if role is None else _WORDS[role]


def _add(project: Project, write: Write) -> None:
    roles = ROLES if project.members else ("administrator",)
    with st.form(f"member_add_{project.id}", border=False, clear_on_submit=True):
        name = st.text_input("Name of a new member", max_chars=200)
        line = st.text_input(
            "Identity",
            max_chars=2 * _LONGEST,
            help="The line that the person sees on the Audits page after signing in: the "
            "provider's address, a space, and the provider's identifier for the person.",
        )
        role = st.radio("Role", roles, format_func=_role_text)
        sent = st.form_submit_button("Add the member", icon=":material/person_add:")
    if not sent:
        return
    try:
        added = _added(project, line, name, role)
    except InputError as error:
        session.error_box(error, of_action=True)
    else:
        write(added)


def _add_key(record: Record, project: Project, who: Person) -> None:
    """A form that makes the key of a gate a member."""
    with st.form(f"key_add_{project.id}", border=False, clear_on_submit=True):
        name = st.text_input("Name of a gate", max_chars=200)
        text = st.text_area(
            "Its public key",
            max_chars=2 * _LONGEST,
            height=80,
            help="What 'kdcal audit key' prints on the machine on which the gate runs. A gate "
            "records audits under its own name, and people submit and approve them.",
        )
        role = st.radio("Role", list(_KEY_WORDS), format_func=_KEY_WORDS.__getitem__)
        sent = st.form_submit_button("Add the gate", icon=":material/key:")
    if not sent:
        return
    try:
        record.add_key(project.id, _key_in(text), name, role, who)
    except InputError as error:
        session.error_box(error, of_action=True)
    else:
        st.rerun()


def _key_in(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            "This is not a public key", fix="Paste what 'kdcal audit key' prints, unchanged."
        ) from error


def _added(project: Project, line: str, name: str, role: Role) -> MemberSet:
    issuer, subject = identity_in(line)
    if (issuer, subject) in project.members:
        raise InputError("This person is a member already", fix="Change the role above.")
    if not name.strip():
        raise InputError("A member needs a name", fix="Write the person's name.")
    return MemberSet(issuer, subject, name.strip(), role)
