"""What the page Compare shows."""
