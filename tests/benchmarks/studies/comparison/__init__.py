"""All offered calibrators over many data sets, ranked."""
