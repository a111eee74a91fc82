"""A small OpenID Connect provider that signs in whoever the browser's cookie names, at once."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

COOKIE = "who_signs_in"
CLIENT, SECRET = "kdcal", "a secret of the tests"


@dataclass
class Provider:
    """Its address, its key, and how long its tokens are good for."""

    address: str
    lifetime: float = 3600.0
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "1"}))
    codes: dict[str, dict[str, str]] = field(default_factory=dict)

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.address,
            "authorization_endpoint": f"{self.address}/authorize",
            "token_endpoint": f"{self.address}/token",
            "jwks_uri": f"{self.address}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def keys(self) -> dict[str, Any]:
        public = self.key.as_dict(private=False)
        return {"keys": [{**public, "use": "sig", "alg": "RS256"}]}

    def code_for(self, who: str, asked: dict[str, str]) -> str:
        """Where the browser is sent after somebody signed in."""
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(16)
        self.codes[code] = {**asked, "who": who}
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def token_for(self, given: dict[str, str], authorization: str) -> dict[str, Any]:
        """What the server gets for a code, once."""
        said = base64.b64decode(authorization.removeprefix("Basic ")).decode()
        assert said == f"{CLIENT}:{SECRET}"
        asked = self.codes.pop(given["code"])
        assert given["redirect_uri"] == asked["redirect_uri"]
        challenge = hashlib.sha256(given["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(challenge).rstrip(b"=").decode() == asked["code_challenge"]
        now, who = int(time.time()), asked["who"]
        claims = {
            "iss": self.address,
            "aud": CLIENT,
            "sub": f"subject-of-{who}",
            "name": who,
            "nonce": asked["nonce"],
            "iat": now,
            "exp": int(now + self.lifetime),
        }
        token = jwt.encode({"alg": "RS256", "kid": "1"}, claims, self.key)
        return {
            "access_token": secrets.token_urlsafe(16),
            "token_type": "Bearer",
            "expires_in": int(self.lifetime),
            "id_token": token,
        }


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/.well-known/openid-configuration":
            self._json(self.provider.metadata())
        elif parts.path == "/keys":
            self._json(self.provider.keys())
        elif parts.path == "/authorize":
            who = SimpleCookie(self.headers.get("Cookie", ""))[COOKIE].value
            self.send_response(302)
            self.send_header("Location", self.provider.code_for(who, _first(parts.query)))
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self._json(self.provider.token_for(_first(body), self.headers["Authorization"]))

    def _json(self, answer: dict[str, Any]) -> None:
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing is logged."""


def _first(query: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(query).items()}


@contextmanager
def provider() -> Iterator[Provider]:
    """A provider on a free port of this machine."""
    handler = type("Handler", (_Handler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    made = Provider(f"http://127.0.0.1:{server.server_port}")
    handler.provider = made
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
