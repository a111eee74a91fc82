"""Calibrators on few rows: Salamon et al.'s and the standard ones, as they are and pooled."""
