"""Versions: audits of a project side by side and over time, and two reviews side by side."""

from __future__ import annotations

from app.shared import audits_here, people, session
from app.versions import versions_parts as parts

parts.title()
parts.versions(audits_here.record, session.current_review(), people.current_person())
