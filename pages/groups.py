"""Groups: for which declared groups of rows the model is wrong."""

from __future__ import annotations

from app.groups import group_parts as parts
from app.shared import page_top
from app.shared.set_choice import choose_set

review = page_top.scored_review("groups")
if review is not None:
    which = choose_set(review, "groups")
    columns = parts.choose_columns(review)
    if not columns:
        parts.undeclared(review)
    elif review.task == "regression":
        parts.distributions(review, which, columns)
    else:
        found = parts.measured(review, which, columns)
        if found is not None:
            repaired = parts.forest(review, which, columns, found)
            parts.table(review, columns, found, repaired)
