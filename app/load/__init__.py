"""What the page Load shows."""
