"""What the page Posterior map shows."""
