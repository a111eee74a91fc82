"""Each revision in its file, named by its number and what it adds."""
