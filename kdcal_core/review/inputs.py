"""Which columns of a review's tables describe its rows, and which are left out, with the reason."""

from __future__ import annotations

from collections.abc import Mapping

from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.types import Roles
from kdcal_core.review.model import Review, TableInfo
from kdcal_core.text import listed


def input_columns(review: Review) -> list[str]:
    """The features; without features, the columns without another role that describe the rows.

    Of the latter, only columns that every table has.
    """
    roles = review.roles or Roles()
    if roles.features:
        return list(roles.features)
    taken = {*used_columns(roles), *_unshared(review)}
    columns = review.tables["calibration"].columns
    return [one.name for one in columns if one.name not in taken and not one.no_input]


def left_out(review: Review) -> dict[str, str]:
    """Columns that are not inputs, by their content or by choice, each with the reason.

    Only for predictions without a model: a model's inputs are known, and none is left out.

    Returns
    -------
    dict of str to str
        Reasons in words. The names are untrusted text.
    """
    table = review.tables.get("calibration")
    if review.model is not None or table is None:
        return {}
    taken = {*used_columns(review.roles or Roles()), *input_columns(review)}
    unshared = _unshared(review)
    return {
        one.name: one.no_input
        or ("not in every table" if one.name in unshared else "its role is 'Not used'")
        for one in table.columns
        if one.name not in taken
    }


def left_out_words(columns: Mapping[str, str]) -> str:
    """The columns left out, by reason; empty where all are used. Untrusted text.

    Examples
    --------
    >>> left_out_words({"day": "dates or times", "id": "it numbers the rows"})
    'Not among the inputs: day (dates or times); id (it numbers the rows).'
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in columns.items():
        by_reason.setdefault(reason, []).append(name[:80])
    parts = [f"{listed(names)} ({reason})" for reason, names in by_reason.items()]
    return f"Not among the inputs: {'; '.join(parts)}." if parts else ""


def _unshared(review: Review) -> set[str]:
    """Columns of the calibration table that another table with labels lacks."""
    tables: list[TableInfo] = [review.tables[which] for which in review.tables]
    tables += [review.training] if review.training else []
    names = review.tables["calibration"].column_names
    return {name for name in names if not all(name in table.column_names for table in tables)}
