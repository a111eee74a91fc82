"""One module a sample. Each has ``build(folder)``, which fills the folder and returns its card."""
