"""A widget that follows a value from elsewhere."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest


def _page() -> None:
    import streamlit as st

    from app.shared.follow import follow

    follow("number", st.session_state.get("elsewhere", 3))
    st.number_input("Number", key="number")
    st.text_input("Something else", key="other")


def test_a_value_is_written_once_each_time_that_it_changes() -> None:
    at = AppTest.from_function(_page).run()
    number = at.number_input[0]
    assert (number.value, number.proto.set_value) == (3, True)
    # a written value would undo, in the browser, a choice made while this run goes on
    assert not at.text_input[0].set_value("a").run().number_input[0].proto.set_value
    at.number_input[0].set_value(5).run()
    assert (at.number_input[0].value, at.number_input[0].proto.set_value) == (5, False)
    at.session_state["elsewhere"] = 5  # the choice has arrived there
    assert not at.run().number_input[0].proto.set_value
    at.session_state["elsewhere"] = 7
    assert at.run().number_input[0].value == 7
