"""Regression: predictive distributions, and their global and local recalibration (paper 003)."""
