"""What the server asks of every request, and what it asks of the browser in return.

A page of another site can make a browser send requests here: with a name of its own that it lets
point to this machine, or straight to this port. Streamlit checks the host and the origin of its
websocket only, lets a missing origin pass, and takes any port of this machine for its own. Here
every request must name a host of ``server.allowedHosts``, and whatever may change something must
come from a page of the same host and port, or of ``server.corsAllowedOrigins``. An installed app
gets its hosts from ``STREAMLIT_SERVER_ALLOWED_HOSTS``, which an update does not overwrite.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from pathlib import Path

import streamlit
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.web.server.server_util import is_allowed_origin
from streamlit.web.server.starlette.starlette_websocket import is_host_allowed

from kdcal_core.text import printable

_log = logging.getLogger(__name__)
_READING = ("GET", "HEAD", "OPTIONS")
_ONLY_HERE = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}


class RequestRules:
    """Middleware that refuses requests of other sites and sends the headers that protect ours.

    Parameters
    ----------
    app : ASGIApp
        What answers the requests that are let through.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._headers = {"Content-Security-Policy": content_policy(), **_ONLY_HERE}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or one websocket."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return

        begun = False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"].endswith("response.start"):
                begun = True
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        if why := refusal(scope):
            if scope["type"] == "websocket":  # whose answer no browser shows
                _log.warning("%s", refusal_words(scope, why))
            answer = PlainTextResponse(why, status_code=403)
            await answer(scope, receive, with_headers)
            return
        try:
            await self._app(scope, receive, with_headers)
        except Exception:  # Starlette's own answer to it would carry no headers
            if scope["type"] == "http" and not begun:
                answer = PlainTextResponse("Internal Server Error", status_code=500)
                await answer(scope, receive, with_headers)
            raise


def refusal(scope: Scope) -> str:
    """Why a request is refused, and how to mend it; empty for one that is let through."""
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if not is_host_allowed(host):
        return (
            "This server does not answer to the host name of this address. If the name is right, "
            "add it to STREAMLIT_SERVER_ALLOWED_HOSTS, in which spaces separate the hosts, and "
            "start kdcal again.\n"
        )
    origin = headers.get("origin")
    if origin is None:
        asked = scope["type"] == "websocket"
    else:
        reads = scope["type"] == "http" and scope["method"] in _READING
        # compared as browsers write it: what cannot be parsed is no page of this server either
        own = origin in (f"http://{host}", f"https://{host}") or is_allowed_origin(origin)
        asked = not (reads or own)
    if asked:
        return (
            "This request comes from no page of this server. Open kdcal at its own address. "
            "Behind a proxy, pass the browser's Host on as it is, with its port.\n"
        )
    return ""


def refusal_words(scope: Scope, why: str) -> str:
    """What the log says of a refused websocket, with the headers that it was refused for.

    Examples
    --------
    >>> headers = [(b"host", b"kdcal.example"), (b"origin", b"http://a\\nb")]
    >>> scope = {"type": "websocket", "path": "/stream", "headers": headers}
    >>> print(refusal_words(scope, "Why.\\n"))
    Refused the websocket /stream (Host 'kdcal.example', Origin 'http://a b'): Why.
    """
    headers = Headers(scope=scope)
    named = (
        f"{name} {printable(headers[name], 200)!r}" if name in headers else f"no {name}"
        for name in ("Host", "Origin")
    )
    path = printable(scope["path"], 200)
    return f"Refused the websocket {path} ({', '.join(named)}): {why.strip()}"


def content_policy() -> str:
    """Content-Security-Policy: everything from this server, no script written into a page.

    Streamlit's own page has one such script, which is let through by its digest. Scripts of a
    component (`in_browser.py`) come as blobs, which only a script of the page can make.
    """
    page = Path(streamlit.__file__).with_name("static") / "index.html"
    scripts = re.findall(r"<script>(.*?)</script>", page.read_text("utf-8"), re.DOTALL)
    digests = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in scripts)
    own = " ".join(f"'sha256-{one}'" for one in digests)
    return "; ".join(
        (
            "default-src 'self'",
            f"script-src 'self' blob: {own}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "worker-src 'self' blob:",
            "object-src 'none'",
            "base-uri 'self'",
            "form-action 'self'",
            "frame-ancestors 'self'",
        )
    )
