"""Send a message as a plain mail."""

from __future__ import annotations

import contextlib
import smtplib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as POLICY
from email.utils import format_datetime, getaddresses
from urllib.parse import unquote, urlsplit

from kdcal_core.audit.sending import Undelivered, ended_after
from kdcal_core.text import listed, printable

URL = "KDCAL_SMTP_URL"
"""As smtps://user:password@host, smtp://... (STARTTLS), or smtp+plain://... (TLS where offered)."""
FROM, TO = "KDCAL_MAIL_FROM", "KDCAL_MAIL_TO"

_PORTS = {"smtps": 465, "smtp": 587, "smtp+plain": 25}
_WAIT_SECONDS, _MOST_SECONDS = 15.0, 60.0  # for one answer of the server, and for a mail


@dataclass(frozen=True)
class Server:
    """A mail server: what its URL says, taken apart.

    Attributes
    ----------
    scheme : {"smtps", "smtp", "smtp+plain"}
    host : str
    port : int
    user, password : str
        Empty where the server asks none.
    """

    scheme: str
    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)


def server_of(url: str) -> Server:
    """The server that a URL names.

    Raises
    ------
    Undelivered
        If it is none.

    Examples
    --------
    >>> server = server_of("smtp://ann:p%40ss@mail.example.org")
    >>> server
    Server(scheme='smtp', host='mail.example.org', port=587, user='ann')
    >>> server.password
    'p@ss'
    """
    try:
        found = urlsplit(url.strip())
        port = found.port
    except ValueError as error:
        raise _no_server() from error
    if found.scheme not in _PORTS or not found.hostname:
        raise _no_server()
    return Server(
        found.scheme,
        found.hostname,
        port or _PORTS[found.scheme],
        unquote(found.username or ""),
        unquote(found.password or ""),
    )


def _no_server() -> Undelivered:
    return Undelivered(f"{URL} is not like smtps://user:password@host or smtp://host:587")


def addresses_in(text: str, variable: str) -> tuple[Address, ...]:
    """Addresses that a variable holds, separated by commas.

    Raises
    ------
    Undelivered
        If one is no address, or there is none.

    Examples
    --------
    >>> [str(one) for one in addresses_in("Ann <ann@example.org>, ben@example.org", TO)]
    ['Ann <ann@example.org>', 'ben@example.org']
    """
    if not text.isprintable():
        raise _no_address(variable)
    found = []
    for name, spec in getaddresses([text]):
        try:
            address = Address(printable(name, 100), addr_spec=spec)
        except (ValueError, IndexError, MessageError) as error:
            raise _no_address(variable) from error
        if not address.username or not address.domain:
            raise _no_address(variable)
        found.append(address)
    if not found:
        raise _no_address(variable)
    return tuple(found)


def _no_address(variable: str) -> Undelivered:
    return Undelivered(f"{variable} is not a list of mail addresses like risk@example.org")


def mail_of(
    sender: Address, to: tuple[Address, ...], subject: str, text: str, message: str
) -> EmailMessage:
    """The mail. Its identifier is that of the message, the same at every try.

    Examples
    --------
    >>> ann = Address("Ann", addr_spec="ann@example.org")
    >>> mail = mail_of(ann, (ann,), "Fail:\\r\\nBcc: eve@example.org", "Text", "msg_1")
    >>> mail["subject"], mail["bcc"], mail["message-id"]
    ('Fail: Bcc: eve@example.org', None, '<msg_1@example.org>')
    """
    mail = EmailMessage(policy=POLICY)
    mail["Subject"] = printable(subject, 250)
    mail["From"] = sender
    mail["To"] = to
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = f"<{message}@{sender.domain}>"
    mail["Auto-Submitted"] = "auto-generated"  # so that no absent person's program answers
    mail.set_content(text)
    return mail


def send_mail(url: str, sender: str, to: str, *, subject: str, text: str, message: str) -> None:
    """Send a mail.

    TLS checks the server's certificate. It is required unless the URL begins with smtp+plain://,
    and then used where the server offers it.

    Parameters
    ----------
    url, sender, to : str
        As the variables `URL`, `FROM` and `TO` hold them.
    message : str
        The message's identifier.

    Raises
    ------
    Undelivered
        If the server did not accept it. Where it refuses some of the receivers only, another try
        would send it twice to the others, and the error is final.
    """
    server = server_of(url)
    author, receivers = addresses_in(sender, FROM), addresses_in(to, TO)
    mail = mail_of(author[0], receivers, subject, text, message)
    specs = [one.addr_spec for one in receivers]
    try:
        smtp = _connected(server)
        with _closing(smtp), ended_after(_MOST_SECONDS, lambda: smtp.sock):
            _secure(smtp, server)
            if server.user:
                smtp.login(server.user, server.password)
            refused = smtp.send_message(mail, author[0].addr_spec, specs)
    except (OSError, ValueError) as error:  # every error of smtplib is one of these
        raise Undelivered(f"{_short(server.host)}: {_why(error, server)}") from error
    if refused:
        raise Undelivered(
            f"{_short(server.host)} refused {listed(sorted(refused))} and took the mail for the "
            "others",
            final=True,
        )


def _connected(server: Server) -> smtplib.SMTP:
    if server.scheme == "smtps":
        return smtplib.SMTP_SSL(
            server.host, server.port, timeout=_WAIT_SECONDS, context=ssl.create_default_context()
        )
    return smtplib.SMTP(server.host, server.port, timeout=_WAIT_SECONDS)


def _secure(smtp: smtplib.SMTP, server: Server) -> None:
    if server.scheme == "smtps":
        return
    smtp.ehlo_or_helo_if_needed()
    if smtp.has_extn("starttls"):
        smtp.starttls(context=ssl.create_default_context())
    elif server.scheme == "smtp":
        raise Undelivered(
            f"{_short(server.host)} does not offer STARTTLS; smtp+plain:// in {URL} sends without"
        )


@contextlib.contextmanager
def _closing(smtp: smtplib.SMTP) -> Iterator[None]:
    """End the session; that the server does not say goodbye is no fault of the mail."""
    try:
        yield
        with contextlib.suppress(OSError):
            smtp.quit()
    finally:
        smtp.close()


def _why(error: Exception, server: Server) -> str:
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return f"the user or the password is refused ({error.smtp_code})"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return f"every receiver is refused ({listed(sorted(error.recipients))})"
    if isinstance(error, smtplib.SMTPResponseException):
        said = error.smtp_error
        words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        return printable(_without(f"{words} ({error.smtp_code})", server.password), 200)
    return printable(_without(str(error), server.password) or type(error).__name__, 200)


def _without(text: str, secret: str) -> str:
    return text.replace(secret, "...") if secret else text


def _short(host: str) -> str:
    return printable(host, 100)
