"""Every calibrator of scores, and those of other packages, over tables, models and sizes."""
