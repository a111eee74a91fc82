"""Choose and export: one calibrator, what it gains, and its file."""

from __future__ import annotations

from app.export import export_files as files
from app.export import export_parts as parts
from app.shared import page_top

review = page_top.scored_review("export")
if review is not None:
    view = parts.exported(review)
    if view is not None:
        parts.gained(view)
        parts.mapping(view)
        files.take_away(view)
    files.try_a_file(review)
