"""Help: the guides of kdcal, one at a time."""

from __future__ import annotations

from app.help import help_parts as parts
from app.shared import page_top, session

parts.title()
review = session.current_review()
page_top.doubts_alone(review)
parts.guide(parts.choose_guide(), review)
