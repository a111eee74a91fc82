"""What the page Recalibration shows."""
