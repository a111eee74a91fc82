"""Code shared by the pages: the session, charts, cached results."""
