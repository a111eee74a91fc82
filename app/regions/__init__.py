"""What the page Regions shows."""
