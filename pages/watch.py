"""Watch: a new table against the reference rows, with or without labels."""

from __future__ import annotations

from app.shared import page_top
from app.watch import watch_parts as parts
from app.watch import watch_tables

review = page_top.scored_review("watch")
if review is not None:
    asked = watch_tables.asked(review)
    watch = None if asked is None else parts.watched(review, asked)
    if asked is not None and watch is not None:
        parts.answer(review, watch, asked.method)
