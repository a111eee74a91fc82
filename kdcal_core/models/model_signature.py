"""OpenSSF model signatures: whether the model is the one that its maker signed."""

from __future__ import annotations

import base64
import importlib
import json
from pathlib import Path
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.progress import Progress, silent
from kdcal_core.store.disk import digest_of

_SECONDS = 300.0  # a model of many gigabytes is read whole
_MOST_SIGNED = 4 << 20  # bytes; a signature names each file of a model, some 150 bytes each
_MOST_KEY = 64 << 10
_ASK = "Ask the model's maker for the model, its signature and the public key again."


def verified_signature(model: Path, signature: Path, key: Path | None) -> str:
    """Verify a signature beside a model; what is known of it, in words.

    Parameters
    ----------
    model, signature : Path
        Untrusted files: a process that reaches nothing else reads them.
    key : Path or None
        The maker's public key (PEM, elliptic curve). Without it nothing can be verified.

    Raises
    ------
    InputError
        If the signature does not fit the model or the key, is none, a file is missing, or the
        package ``model-signing`` is not installed.
    """
    for path, most in ((signature, _MOST_SIGNED), *([] if key is None else [(key, _MOST_KEY)])):
        if not path.is_file():
            raise InputError("There is no such file", fix="Check its path.", file=str(path))
        if path.stat().st_size > most:
            what = "a model's signature" if path == signature else "a public key"
            raise InputError(
                f"The file is too large to be {what}: it has more than {most:,} bytes",
                fix=_ASK,
                file=path.name,
            )
    if key is None:
        return "A signature lies beside the model. It was not verified: no public key was given."
    paths = {"model": model, "signature": signature, "key": key}
    found = run_limited(
        "kdcal_core.models.model_signature:verify",
        {"paths": {part: str(path.absolute()) for part, path in paths.items()}},
        seconds=_SECONDS,
        what="Verifying the model's signature",
        confined=True,
    )
    return str(found)


def verify(paths: dict[str, str], progress: Progress = silent) -> str:
    """What `verified_signature` says; runs in a worker.

    Parameters
    ----------
    paths : dict
        Of "model", "signature" and "key".

    Raises
    ------
    InputError
        As of `verified_signature`.
    """
    progress(0.0, "Verifying the model's signature")
    model, signature, key = (Path(paths[part]) for part in ("model", "signature", "key"))
    try:
        verifying = importlib.import_module("model_signing.verifying")
    except ModuleNotFoundError as error:
        raise InputError(
            "Model signatures need a further package",
            fix="Install it: pip install 'kdcal[signatures]'",
        ) from error
    try:
        config = verifying.Config().use_elliptic_key_verifier(public_key=key)
    except Exception as error:  # the package raises many kinds, of files that may be hostile
        raise InputError(
            "The file is not a public key (PEM, elliptic curve P-256, P-384 or P-521)",
            fix="Give the public key of the model's maker.",
            file=key.name,
        ) from error
    _require_signature(signature)
    try:
        config.verify(model, signature)
    except Exception as error:
        raise InputError(
            "The signature is not one of this model by this key", fix=_ASK, file=signature.name
        ) from error
    return f"OpenSSF model signature, verified with the public key {digest_of(key)[:12]}"


def _require_signature(path: Path) -> None:
    """Refuse a file that is no signature at all, so that no error blames the model for it."""
    try:
        bundle: Any = json.loads(path.read_bytes())
        signed = bundle["dsseEnvelope"]
        texts = [signed["payload"], *(one["sig"] for one in signed["signatures"])]
        fits = isinstance(bundle["verificationMaterial"], dict) and len(texts) > 1
        for one in texts:
            base64.b64decode(one, validate=True)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        fits = False
    if not fits:
        raise InputError(
            "The file is not an OpenSSF model signature, or is damaged",
            fix="Give the file as the model's maker wrote it.",
            file=path.name,
        )
