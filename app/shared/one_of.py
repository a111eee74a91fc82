"""One option of a few, side by side, which the session keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import streamlit as st

T = TypeVar("T")


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
