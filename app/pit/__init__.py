"""What the page PIT shows."""
