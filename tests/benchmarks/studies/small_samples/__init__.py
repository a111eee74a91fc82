"""Calibrators on few rows: paper 002's and the standard ones, as they are and pooled."""
