"""Revisions of the database's schema, one chain."""
