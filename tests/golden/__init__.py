"""Figures as kdcal gives them, stored and compared, so that a change of structure changes none."""
