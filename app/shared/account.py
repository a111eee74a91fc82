"""The screen on which people sign in, and who signed in, in the sidebar."""

from __future__ import annotations

import time

import streamlit as st

from app.shared import sign_in
from app.shared.emphasis import emphasis
from kdcal_core.text import escape_markdown


def must_sign_in() -> bool:
    """Whether this visitor sees the first screen and nothing else."""
    if sign_in.settings_unreadable():
        return True
    return sign_in.is_on() and sign_in.signed_in() is None


def first_screen() -> None:
    """One button that leads to the provider, and why it has to be pressed again."""
    st.set_page_config(page_title="Sign in - kdcal")
    st.title("Sign in", anchor=False)
    if sign_in.settings_unreadable():
        st.error(
            "Nobody can sign in, because the server cannot read its file secrets.toml. Whoever "
            "runs it finds the reason in its log.",
            icon=":material/error:",
        )
        return
    if why := sign_in.why_nobody(st.user.to_dict(), time.time()):
        st.warning(f"{why} Sign in again to go on. What you did is kept.", icon=":material/timer:")
    else:
        st.markdown("Your reviews and audits are shown after you have signed in.")
    for provider in sign_in.providers():
        name = "" if provider is None else f" with {escape_markdown(provider, 40)}"
        if st.button(
            f"Sign in{name}",
            key=f"sign_in_{provider or ''}",
            type=emphasis(),
            icon=":material/login:",
        ):
            st.login(provider)
    if len(st.query_params) > 0:
        st.caption("The first page opens then. Open this address again for what it leads to.")


def in_sidebar() -> None:
    """Who signed in, and the way out; nothing where nobody signs in."""
    if not sign_in.is_on():
        return
    who = sign_in.person_in_front()
    with st.sidebar.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        st.caption(
            f":material/account_circle: {escape_markdown(who.name, 40)}",
            width="content",
            help=escape_markdown(f"{who.believed}, as {who.subject}", 1000),
        )
        if st.button("Sign out", key="sign_out", type="tertiary", icon=":material/logout:"):
            st.logout()
            st.stop()  # the browser is on its way out
