"""What the page Out of distribution shows."""
