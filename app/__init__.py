"""The browser app: its entry point, what pages share, and one folder for each page."""
