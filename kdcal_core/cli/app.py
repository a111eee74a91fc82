"""``kdcal app``: start the app in the browser, from a checkout or from an installed package."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import NoReturn

from kdcal_core.review.samples import samples_root


def run(options: Namespace) -> NoReturn:
    """Become the process that serves the app, so that signals reach it.

    Parameters
    ----------
    options : Namespace
        ``port`` : int or None; ``no_browser``, ``quiet`` : bool; ``settings`` : list of str, for
        Streamlit.
    """
    words = [sys.executable, "-m", "streamlit", "run", str(samples_root().with_name("app"))]
    if options.port is not None:
        words.append(f"--server.port={options.port}")
    if options.no_browser:
        words.append("--server.headless=true")
    if options.quiet:
        words += ["--logger.hideWelcomeMessage=true", "--logger.level=error"]
    os.execv(sys.executable, [*words, *options.settings])
