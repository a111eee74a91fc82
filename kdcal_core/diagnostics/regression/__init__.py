"""What is measured of predictive distributions: PIT values, coverage, scores, where they fail."""
