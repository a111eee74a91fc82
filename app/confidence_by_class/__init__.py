"""What the page Confidence by class shows."""
