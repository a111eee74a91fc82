"""Servers that receive what kdcal sends: a webhook's and a mail server."""

from __future__ import annotations

import ipaddress
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


@dataclass(frozen=True)
class Received:
    """A request: its path, its headers in small letters, and its body."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def said(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


Answer = int | Callable[[BaseHTTPRequestHandler], None]


@dataclass
class Receiver:
    """A webhook's receiver. It answers what ``answers`` holds, and 200 afterwards."""

    port: int
    answers: list[Answer] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/in/path-of-many-secrets?key=more"


@contextmanager
def receiver(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """A receiver on this machine, with TLS if a context is given."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with lock:
                found.received.append(Received(self.path, headers, body))
                answer = found.answers.pop(0) if found.answers else 200
            if callable(answer):
                answer(self)
                return
            self.send_response(answer)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            pass  # a client that goes away is what some tests are about

    server = Server(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    found = Receiver(server.server_address[1])
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()


@dataclass
class Mails:
    """A mail server's mails."""

    port: int
    received: list[EmailMessage] = field(default_factory=list)
    envelopes: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    secure: list[bool] = field(default_factory=list)
    refuse: tuple[str, ...] = ()

    async def handle_RCPT(  # noqa: N802
        self, _: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address in self.refuse:
            return "550 nobody of this name"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        found = message_from_bytes(envelope.content, policy=default)
        assert isinstance(found, EmailMessage)
        self.received.append(found)
        self.envelopes.append((envelope.mail_from, tuple(envelope.rcpt_tos)))
        self.secure.append(session.ssl is not None)
        return "250 OK"


@contextmanager
def mail_server(
    context: ssl.SSLContext | None = None,
    *,
    at_once: bool = False,
    login: tuple[str, str] | None = None,
) -> Iterator[Mails]:
    """A mail server on this machine: without TLS, with STARTTLS, or with TLS ``at_once``."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        mails = Mails(taken.getsockname()[1])

    def may(server: SMTP, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        names = (given.login.decode(), given.password.decode())
        return AuthResult(success=names == login, handled=False)

    more: dict[str, Any] = {"ssl_context" if at_once else "tls_context": context}
    if login is not None:
        more |= {"authenticator": may, "auth_required": True, "auth_require_tls": bool(context)}
    if at_once:
        more |= {"auth_require_tls": False}  # it knows of STARTTLS alone
    controller = Controller(mails, hostname="127.0.0.1", port=mails.port, **more)
    controller.start()
    try:
        yield mails
    finally:
        controller.stop()


def certificate(folder: Path, name: str) -> tuple[Path, ssl.SSLContext]:
    """A certificate for a host or an address: its file, and a server's context that has it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "A test")])
    try:
        alternative: x509.GeneralName = x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        alternative = x509.DNSName(name)
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([alternative]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    pem = serialization.Encoding.PEM
    private = key.private_bytes(
        pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(made.public_bytes(pem))
    both = folder / f"{name}-with-key.pem"
    both.write_bytes(private + made.public_bytes(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    return path, context
