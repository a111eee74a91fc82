"""What the page Choose and export shows."""
