"""``kdcal app``: start the app in the browser, from a checkout or from an installed package."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from itertools import pairwise
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
    if address := _shown_address(options.settings):
        words.append(f"--browser.serverAddress={address}")
    if options.quiet:
        words += ["--logger.hideWelcomeMessage=true", "--logger.level=error"]
    os.execv(sys.executable, [*words, *options.settings])


def _shown_address(settings: Sequence[str]) -> str:
    """How a browser is given the address of IPv6 that the server listens on; empty for others.

    Streamlit shows and opens it without the brackets that a port after it needs.

    Examples
    --------
    >>> _shown_address(["--server.address=::1"]), _shown_address(["--server.address=127.0.0.1"])
    ('[::1]', '')
    """
    words = [part for one in settings for part in one.split("=", 1)]
    said = dict(pairwise(words))
    address = said.get("--server.address", os.environ.get("STREAMLIT_SERVER_ADDRESS", ""))
    with suppress(ValueError):  # a name, or a socket
        found = ip_address(address)
        if found.version == 6 and not found.is_unspecified:
            return "" if "--browser.serverAddress" in said else f"[{found}]"
    return ""
