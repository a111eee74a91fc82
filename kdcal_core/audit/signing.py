"""Canonical JSON, digests, and envelopes signed with Ed25519.

Nothing here is cryptography of our own: canonical JSON is RFC 8785, an envelope is DSSE
(`payload`, `payloadType`, `signatures`), a statement is in-toto v1.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rfc8785
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import (  # type: ignore[attr-defined]
    CryptoSigner,
    Key,
    Signature,
    SSlibKey,
)

from kdcal_core.errors import InputError, NewerVersionError
from kdcal_core.store.disk import locked, make_folder, write_bytes

ENTRY = "application/vnd.kdcal.entry+json"
STATEMENT = "application/vnd.in-toto+json"
_STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
KEY_FILE = "KDCAL_SIGNING_KEY"
"""Names the file of a private key (PKCS 8, PEM, Ed25519) that signs in place of our own."""
OWN_KEY = "audit-key.pem"
"""The file of our own key, in the folder of audits."""


def canonical(value: Any) -> bytes:
    """JSON with one form for one content (RFC 8785).

    Raises
    ------
    ValueError
        If JSON cannot express the value, such as NaN or half a character.

    Examples
    --------
    >>> canonical({"b": 1.0, "a": [0.5, "x"]})
    b'{"a":[0.5,"x"],"b":1}'
    """
    return rfc8785.dumps(value)


def digest(content: bytes) -> str:
    """SHA-256 as 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Signed:
    """A payload and its signature, as an envelope without its base64.

    Attributes
    ----------
    payload : bytes
    kind : str
        The type of the payload.
    key : str
        Digest of the public key, which DSSE calls keyid.
    signature : str
        Hexadecimal digits.
    """

    payload: bytes
    kind: str
    key: str
    signature: str

    def envelope(self) -> dict[str, Any]:
        """The envelope in JSON."""
        return _envelope(self).to_dict()

    @classmethod
    def of(cls, envelope: Any) -> Signed:
        """Read an envelope with one signature.

        Raises
        ------
        InputError
            If it is no such envelope.
        """
        try:
            copied = json.loads(json.dumps(envelope))  # the library changes what it reads
            found = Envelope.from_dict(copied)
            (signature,) = found.signatures.values()
            texts = (found.payload_type, signature.keyid, signature.signature)
            if not all(isinstance(one, str) for one in texts):
                raise TypeError("no texts")
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise InputError(
                "This is not a signed envelope of one signature (DSSE)",
                fix="Give a file that kdcal wrote, unchanged.",
            ) from error
        return cls(found.payload, found.payload_type, signature.keyid, signature.signature)

    def is_by(self, public: Mapping[str, Any]) -> bool:
        """Whether this key made the signature.

        Parameters
        ----------
        public : dict
            As of `public_key`.
        """
        try:
            _envelope(self).verify([_read_key(public)], 1)
        except (VerificationError, ValueError, KeyError, TypeError, AttributeError):
            return False  # also of a key that is none
        return True


def _envelope(signed: Signed) -> Envelope:
    envelope = Envelope(signed.payload, signed.kind, {})
    envelope.signatures[signed.key] = Signature(signed.key, signed.signature)
    return envelope


def _read_key(public: Mapping[str, Any]) -> Key:
    held = {name: value for name, value in public.items() if name != "keyid"}
    return SSlibKey.from_dict(str(public["keyid"]), dict(held))


def check_key(public: Any) -> str:
    """The name of a public key, which must be the digest of the key itself.

    Raises
    ------
    InputError
        If it is no Ed25519 key, or has the name of another key.
    """
    try:
        held = bytes.fromhex(public["keyval"]["public"])
        own = SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(held))
        if public == {"keyid": own.keyid, **own.to_dict()}:
            return str(own.keyid)
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise InputError(
        "This is not a public key that kdcal made, or it has another key's name",
        fix="Give the output of 'kdcal audit key', unchanged.",
    )


class Signer:
    """Signs payloads with one private key.

    Parameters
    ----------
    private : CryptoSigner
    """

    def __init__(self, private: CryptoSigner) -> None:
        self._private = private

    @property
    def public(self) -> dict[str, Any]:
        """The public key, with its digest under "keyid"."""
        key = self._private.public_key
        return {"keyid": key.keyid, **key.to_dict()}

    def secret(self, purpose: str) -> bytes:
        """16 bytes for one purpose that only who has the private key can know (HKDF, RFC 5869).

        Examples
        --------
        >>> signer = Signer(CryptoSigner.generate_ed25519())
        >>> len(signer.secret("rows")), signer.secret("rows") == signer.secret("others")
        (16, False)
        """
        key = load_pem_private_key(self._private.private_bytes, password=None)
        assert isinstance(key, Ed25519PrivateKey)
        found = HKDF(hashes.SHA256(), 16, salt=None, info=f"kdcal {purpose}".encode())
        return found.derive(key.private_bytes_raw())

    def sign(self, payload: bytes, kind: str) -> Signed:
        """The payload with its signature.

        Examples
        --------
        >>> signer = Signer(CryptoSigner.generate_ed25519())
        >>> signed = signer.sign(b"{}", ENTRY)
        >>> signed.is_by(signer.public)
        True
        >>> signed.is_by(Signer(CryptoSigner.generate_ed25519()).public)
        False
        """
        signature = Envelope(payload, kind, {}).sign(self._private)
        return Signed(payload, kind, signature.keyid, signature.signature)


def signer_of(folder: Path) -> Signer:
    """The signer of this machine: the key that `KEY_FILE` names, or ours, made on first use.

    Parameters
    ----------
    folder : Path
        Where our key lies, readable only by its owner.

    Raises
    ------
    InputError
        If the file holds no Ed25519 key, or cannot be read or made.
    """
    given = os.environ.get(KEY_FILE)
    if given:
        return signer_in(Path(given))
    path = folder / OWN_KEY
    if not path.exists():
        try:
            make_folder(folder)
            with locked(folder / ".key.lock"):
                if not path.exists():
                    _make_key(path)
        except OSError as error:
            raise InputError(
                f"The signing key cannot be written ({error.strerror or error})",
                fix="Free space on the disk, or make the folder of audits writable for this user.",
                file=path.name,
            ) from error
    return signer_in(path)


def key_there(folder: Path) -> str | None:
    """The digest of this machine's public key, if it has one; none is made.

    Raises
    ------
    InputError
        As of `signer_of`.
    """
    if not os.environ.get(KEY_FILE) and not (folder / OWN_KEY).exists():
        return None
    return str(signer_of(folder).public["keyid"])


def _make_key(path: Path) -> None:
    write_bytes(path, CryptoSigner.generate_ed25519().private_bytes, durable=True)


def signer_in(path: Path) -> Signer:
    """The signer of a private key in a file.

    Raises
    ------
    InputError
        If the file cannot be read, or holds no Ed25519 key.
    """
    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except OSError as error:
        raise InputError(
            f"The signing key cannot be read ({error.strerror})",
            fix=f"Check the file that {KEY_FILE} names, or leave the variable out.",
            file=path.name,
        ) from error
    except (ValueError, TypeError) as error:
        raise _no_key(path) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise _no_key(path)
    return Signer(CryptoSigner(key))


def _no_key(path: Path) -> InputError:
    return InputError(
        "This is not a private Ed25519 key without a password",
        fix="Make one: openssl genpkey -algorithm ed25519 -out key.pem",
        file=path.name,
    )


def statement(
    subjects: Mapping[str, str], kind: str, predicate: Mapping[str, Any], signer: Signer
) -> dict[str, Any]:
    """A signed in-toto statement about files.

    Parameters
    ----------
    subjects : dict of name to SHA-256
        At least one.
    kind : str
        The predicate's type, an address that names it.
    predicate : dict
        What is said of the files.

    Returns
    -------
    dict
        A DSSE envelope.

    Examples
    --------
    >>> signer = Signer(CryptoSigner.generate_ed25519())
    >>> made = statement({"audit": "a" * 64}, "https://example.org/said/v1", {"n": 1}, signer)
    >>> read_statement(made, "https://example.org/said/v1", [signer.public])["predicate"]
    {'n': 1}
    """
    content = {
        "_type": _STATEMENT_TYPE,
        "subject": [
            {"name": name, "digest": {"sha256": value}} for name, value in subjects.items()
        ],
        "predicateType": kind,
        "predicate": dict(predicate),
    }
    return signer.sign(canonical(content), STATEMENT).envelope()


def read_statement(
    envelope: Any, kind: str, keys: Collection[Mapping[str, Any]] = ()
) -> dict[str, Any]:
    """What a signed statement says.

    Parameters
    ----------
    envelope : dict
        From a file: untrusted.
    kind : str
        The type that its predicate must have.
    keys : collection of public keys, optional
        One of them must have signed; without any, the signature is not looked at.

    Raises
    ------
    InputError
        If it is no such statement, or none of the keys made the signature.
    NewerVersionError
        If it is one of a newer version.
    """
    signed = Signed.of(envelope)
    if keys and not any(signed.is_by(key) for key in keys):
        raise InputError(
            "None of the known keys made the signature",
            fix="Ask for the statement again, or check which key should have signed it.",
        )
    try:
        content = json.loads(signed.payload)
        asked = content["_type"], content["predicateType"]
        subject, predicate = content["subject"], content["predicate"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _other_statement() from error
    if _version_of(asked[1], kind) > _version_of(kind, kind):
        raise NewerVersionError(
            "The statement was written by a newer version of kdcal", fix="Update kdcal."
        )
    if (
        signed.kind != STATEMENT
        or asked != (_STATEMENT_TYPE, kind)
        or not isinstance(subject, list)
        or not isinstance(predicate, dict)
    ):
        raise _other_statement()
    return dict(content)


def _version_of(found: Any, kind: str) -> int:
    """The version of a type of predicate, as in ".../v2"; 0 for another type than ``kind``."""
    family = re.escape(kind.rpartition("/v")[0])
    known = re.fullmatch(rf"{family}/v(\d{{1,9}})", found) if isinstance(found, str) else None
    return int(known[1]) if known else 0


def _other_statement() -> InputError:
    return InputError(
        "The envelope holds another kind of statement",
        fix="Give a receipt that kdcal wrote.",
    )
