"""Durfee et al.'s experiments: networks before and after calibration by regions, on real tables."""
