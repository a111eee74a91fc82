"""The papers' simulations with their true posteriors."""
