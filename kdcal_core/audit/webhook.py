"""Send a message to a webhook, signed in the form of Standard Webhooks.

See https://github.com/standard-webhooks/standard-webhooks: a receiver checks the signature over
identifier, time and body with the secret that both know, and refuses what is older than minutes.
The identifier is the same at every try, so that a receiver can drop what it has already.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import http.client
import ipaddress
import socket
from dataclasses import dataclass
from datetime import UTC, datetime

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import parse_url

from kdcal_core import __version__
from kdcal_core.audit.sending import Undelivered, ended_after
from kdcal_core.text import printable

URL = "KDCAL_WEBHOOK_URL"
SECRET = "KDCAL_WEBHOOK_SECRET"
PRIVATE = "KDCAL_WEBHOOK_PRIVATE"
"""Set to 1, it allows private addresses and http."""

_WAIT_SECONDS, _MOST_SECONDS = 10.0, 30.0  # for one answer of the peer, and for a try
_MOST_ADDRESSES = 3  # a host may have several, of which not all need to answer
_SECRET_BYTES = range(24, 65)  # what Standard Webhooks asks
_NOT_PUBLIC = tuple(
    ipaddress.ip_network(one)
    for one in (
        *("192.0.0.0/24", "192.88.99.0/24", "64:ff9b:1::/48", "2001::/23", "3fff::/20"),
        *("5f00::/16", "fec0::/10"),  # what IANA reserves, and older Pythons do not know
        "168.63.129.16/32",  # Azure gives its machines' metadata here
    )
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# a ValueError is that of a certificate for another name
_TROUBLES = (HTTPError, http.client.HTTPException, OSError, ValueError)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True)
class Endpoint:
    """Where a webhook is: what its URL says, taken apart.

    Attributes
    ----------
    secure : bool
        Whether it is https.
    host : str
    port : int
    target : str
        Path and query, which may hold a secret.
    """

    secure: bool
    host: str
    port: int
    target: str

    @property
    def named(self) -> str:
        """The host as a request names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.secure else 80
        return host if self.port == usual else f"{host}:{self.port}"


def endpoint_of(url: str, *, private: bool = False) -> Endpoint:
    """The endpoint that a URL names.

    Parameters
    ----------
    private : bool
        Whether http is allowed.

    Raises
    ------
    Undelivered
        If it is none, or not https.

    Examples
    --------
    >>> endpoint_of("https://hooks.example.org/in?key=1").target
    '/in?key=1'
    """
    try:
        found = parse_url(url.strip())
    except LocationParseError as error:
        raise Undelivered(f"{URL} is no address of the web") from error
    if found.scheme not in ("https", "http") or not found.host:
        raise Undelivered(f"{URL} is no address that begins with https://")
    if found.scheme == "http" and not private:
        raise Undelivered(f"{URL} begins with http://, and only https:// is allowed")
    if found.auth is not None:
        raise Undelivered(f"{URL} holds a user, and a webhook is known by its secret")
    secure = found.scheme == "https"
    port = found.port or (443 if secure else 80)
    return Endpoint(secure, found.host.strip("[]"), port, found.request_uri)


def is_public(address: Address) -> bool:
    """Whether an address is that of a machine in the open internet.

    Examples
    --------
    >>> [is_public(ipaddress.ip_address(one)) for one in ("8.8.8.8", "10.0.0.1", "::1")]
    [True, False, False]
    >>> is_public(ipaddress.ip_address("::ffff:169.254.169.254"))
    False
    """
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    reserved = any(one.version == address.version and address in one for one in _NOT_PUBLIC)
    return address.is_global and not address.is_multicast and not reserved


def addresses_of(endpoint: Endpoint, *, private: bool = False) -> tuple[str, ...]:
    """The addresses of a host, asked once: whoever connects uses these and asks no more.

    Raises
    ------
    Undelivered
        If it has none, or one that is not public while only public ones are allowed.
    """
    try:
        found = socket.getaddrinfo(endpoint.host, endpoint.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Undelivered(f"The host {_short(endpoint.host)} is not known") from error
    addresses = tuple(dict.fromkeys(str(one[4][0]) for one in found))
    for one in addresses:
        if not private and not is_public(ipaddress.ip_address(one)):
            raise Undelivered(
                f"The host {_short(endpoint.host)} has the address {one}, which is not public; "
                f"{PRIVATE}=1 allows it"
            )
    return addresses[:_MOST_ADDRESSES]


def signed_headers(secret: str, message: str, body: bytes, at: datetime) -> dict[str, str]:
    """The three headers of Standard Webhooks.

    Parameters
    ----------
    secret : str
        Base64 of 24 to 64 random bytes, with or without "whsec_" before it.
    message : str
        The message's identifier.

    Raises
    ------
    Undelivered
        If the secret is none.

    Examples
    --------
    >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> at = datetime.fromtimestamp(1614265330, UTC)
    >>> found = signed_headers(
    ...     secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", b'{"test": 2432232314}', at)
    >>> found["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    # only those who use webhooks wait for it
    from standardwebhooks.webhooks import Webhook

    try:
        key = base64.b64decode(secret.strip().removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise _no_secret() from error
    if len(key) not in _SECRET_BYTES:
        raise _no_secret()
    return {
        "webhook-id": message,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(key).sign(message, at, body.decode()),
    }


def _no_secret() -> Undelivered:
    return Undelivered(
        f"{SECRET} is not base64 of 24 to 64 bytes; 'openssl rand -base64 32' makes one"
    )


def post(url: str, secret: str, message: str, body: bytes, *, private: bool = False) -> None:
    """Send a message.

    The host is looked up once, and the connection goes to that very address, through no proxy.
    TLS still checks the certificate of the host's name. Redirects are not followed, and of the
    answer only the status is read.

    Raises
    ------
    Undelivered
        If the receiver did not confirm it.
    """
    endpoint = endpoint_of(url, private=private)
    headers = {
        "Host": endpoint.named,
        "Content-Type": "application/json",
        "User-Agent": f"kdcal/{__version__}",
        "Connection": "close",
        **signed_headers(secret, message, body, datetime.now(UTC)),
    }
    unreached: ConnectionError | None = None
    for address in addresses_of(endpoint, private=private):
        try:
            status = _status(endpoint, address, headers, body)
        except ConnectionError as error:
            unreached = error
        else:
            _confirm(status)
            return
    raise Undelivered(f"{_short(endpoint.named)} cannot be reached ({unreached})") from unreached


def _status(endpoint: Endpoint, address: str, headers: dict[str, str], body: bytes) -> int:
    """What the receiver answers; ConnectionError where nobody receives."""
    connection = _connection(endpoint, address)
    with contextlib.closing(connection), ended_after(_MOST_SECONDS, lambda: connection.sock):
        try:
            connection.connect()
        except _TROUBLES as error:
            raise ConnectionError(_why(error)) from error
        try:
            connection.request("POST", endpoint.target, body, headers, preload_content=False)
            return connection.getresponse().status
        except _TROUBLES as error:
            named = _short(endpoint.named)
            raise Undelivered(f"{named} did not answer ({_why(error)})") from error


def _connection(endpoint: Endpoint, address: str) -> HTTPConnection:
    if not endpoint.secure:
        return HTTPConnection(address, endpoint.port, timeout=_WAIT_SECONDS)
    return HTTPSConnection(
        address,
        endpoint.port,
        timeout=_WAIT_SECONDS,
        cert_reqs="CERT_REQUIRED",
        server_hostname=endpoint.host,
        assert_hostname=endpoint.host,
    )


def _confirm(status: int) -> None:
    if 200 <= status < 300:
        return
    if 300 <= status < 400:
        raise Undelivered(f"The receiver redirects ({status}), and redirects are not followed")
    if status == 410:
        raise Undelivered("The receiver wants no messages any more (410)", final=True)
    raise Undelivered(f"The receiver answered {status}")


def _why(error: Exception) -> str:
    """What went wrong, without urllib3's name of the connection before it."""
    said = str(error).rpartition("): ")[2] or type(error).__name__
    return printable(said, 200)


def _short(host: str) -> str:
    return printable(host, 100)
