"""Estimates without labels on real tables with made covariate shifts, beside the labels."""
