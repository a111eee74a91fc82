"""The browser app: entry point and shared widgets."""
