"""What the pages share: the session, charts, cached results. The only code besides the pages
that knows Streamlit."""
