"""Entry point of ``streamlit run app``: the pages of `main.py` behind the rules for requests."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # Streamlit adds only this folder

from app.shared.request_rules import RequestRules
from app.shared.server_process import apply_quotas, while_serving

apply_quotas()
app = st.App("main.py", lifespan=while_serving, middleware=[Middleware(RequestRules)])
