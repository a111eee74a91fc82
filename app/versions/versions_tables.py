"""Differences of two versions: the forest plot, the facts and all estimates as tables."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from app.shared.charts import drawn_once, is_dark, show
from app.shared.tables import show_table
from kdcal_core.charts import (
    FIRST_LINES,
    ComparedKind,
    changes_chart,
    direction_text,
    ordered_changes,
    signed_text,
)
from kdcal_core.diagnostics import ChangedEstimate, estimate_text, interval_text
from kdcal_core.text import printable

_NAMES_SHOWN = 200


def differences(
    changes: Sequence[ChangedEstimate],
    *,
    key: str,
    of: str,
    compared: ComparedKind,
    paired: bool = False,
    unpaired: Sequence[str] = (),
    corrected: bool = False,
) -> None:
    """The forest plot: at first as many lines as a laptop's first screen has room for."""
    n = len(ordered_changes(changes))
    if not n:
        alike = changes and all(one.difference.value == 0.0 for one in changes)
        st.markdown(
            f"Every estimate of both {compared} is the same."
            if alike
            else f"No estimate of both {compared} has an interval."
        )
        return
    everything = bool(st.session_state.get(f"{key}_all"))
    chart = drawn_once(
        changes_chart,
        changes,
        dark=is_dark(),
        most=None if everything else FIRST_LINES,
        of=compared,
        paired=paired,
        unpaired=tuple(unpaired),
        corrected=corrected,
    )
    show(chart, key=key, of=of, finding=False)
    if n > FIRST_LINES:
        st.checkbox(f"Draw all {n:,} estimates", key=f"{key}_all")


def names_shown(names: Sequence[str]) -> list[str]:
    """Names of estimates as a table shows them."""
    return [printable(one, _NAMES_SHOWN) for one in names]


def facts_table(
    facts: Sequence[Sequence[str]], *, columns: Sequence[str], key: str, of: ComparedKind
) -> None:
    """What differs in model, data, settings and limits; ``columns`` name the versions."""
    if not facts:
        version = " and the version of kdcal" if of == "audits" else ""
        st.markdown(f"Model, data, settings, limits{version} are the same.")
        return
    rows = [[printable(text, 200) for text in one] for one in facts]
    show_table(
        pd.DataFrame(rows, columns=["What", *columns]),
        key=key,
        alt=f"What differs between the {of}",
    )


def estimates_table(
    changes: Sequence[ChangedEstimate], *, columns: tuple[str, str], key: str, of: ComparedKind
) -> None:
    """Every estimate of both, with its difference; ``columns`` name the two versions."""
    before, after = columns
    show_table(
        pd.DataFrame(
            {
                "Estimate": names_shown([one.name for one in changes]),
                before: [estimate_text(one.before, chance=False) for one in changes],
                after: [estimate_text(one.after, chance=False) for one in changes],
                "Difference": [signed_text(one.difference) for one in changes],
                "Interval": [interval_text(one.difference) for one in changes],
                "Is": [direction_text(one.direction) for one in changes],
            }
        ),
        key=key,
        alt=f"Every estimate of both {of}, with the difference and its interval",
    )
