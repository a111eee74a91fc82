"""What the page Reliability shows."""
