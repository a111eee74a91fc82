"""What the page Simulation lab shows."""
