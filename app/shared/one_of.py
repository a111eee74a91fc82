"""One or several options, side by side, which the session keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import streamlit as st

from app.shared.labels import unique_labels
from kdcal_core.text import escape_markdown

T = TypeVar("T")
_MANY, _PIXELS = 60, 280  # options that scroll, and the height in which they do


def one_of(label: str, options: Mapping[T, str], default: T | None, *, key: str, **given: Any) -> T:
    """The chosen option.

    Parameters
    ----------
    options : mapping
        The words of each option.
    default : option or None
        None where the session's state holds one already.
    **given
        As for ``st.segmented_control``.
    """
    chosen: T | None = st.segmented_control(
        label,
        options=list(options),
        default=default,
        required=True,
        format_func=options.__getitem__,
        key=key,
        persist_state="session",
        **given,
    )
    assert chosen is not None
    return chosen


def several_of(
    label: str, options: Mapping[str, str], *, key: str, most: int | None = None, **given: Any
) -> list[str]:
    """The chosen options. `st.multiselect` writes theirs in white, at 2.9:1 in the dark theme.

    Parameters
    ----------
    options : mapping
        The words of each option, possibly from a file.
    most : int, optional
        How many can be chosen. Once they are, only these are offered, to be taken back.
    **given
        As for ``st.pills``.
    """
    shown = unique_labels([escape_markdown(words) for words in options.values()])
    labels = dict(zip(options, shown, strict=True))
    before = st.session_state.get(key, given.get("default", ()))
    full = most is not None and len(before) >= most
    with st.container(height=_PIXELS if len(options) > _MANY else "content", border=False):
        chosen: list[str] = st.pills(
            f"{label} (at most {most}: click one to take it back)" if full else label,
            options=[one for one in options if one in before or not full],
            selection_mode="multi",
            format_func=labels.__getitem__,
            key=key,
            **given,
        )
    return chosen
