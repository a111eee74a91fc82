"""What the page Help shows."""
