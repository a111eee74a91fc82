"""The browser app: its entry point, what pages share, and a folder of what each page shows."""
