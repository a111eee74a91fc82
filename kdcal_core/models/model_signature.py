"""OpenSSF model signatures: whether the model is the one that its maker signed."""

from __future__ import annotations

import importlib
from pathlib import Path

from kdcal_core.errors import InputError
from kdcal_core.store.disk import digest_of


def verified_signature(model: Path, signature: Path, key: Path | None) -> str:
    """Verify a signature beside a model; what is known of it, in words.

    Parameters
    ----------
    model, signature : Path
    key : Path or None
        The maker's public key (PEM, elliptic curve). Without it nothing can be verified.

    Raises
    ------
    InputError
        If the signature does not fit the model or the key, a file is missing, or the package
        ``model-signing`` is not installed.
    """
    for path in (signature, *([key] if key is not None else [])):
        if not path.is_file():
            raise InputError("There is no such file", fix="Check its path.", file=str(path))
    if key is None:
        return "A signature lies beside the model. It was not verified: no public key was given."
    try:
        verifying = importlib.import_module("model_signing.verifying")
    except ModuleNotFoundError as error:
        raise InputError(
            "Model signatures need a further package",
            fix="Install it: pip install 'kdcal[signatures]'",
        ) from error
    try:
        config = verifying.Config().use_elliptic_key_verifier(public_key=key)
        config.verify(model, signature)
    except Exception as error:  # the package raises many kinds, of files that may be hostile
        raise InputError(
            "The signature is not one of this model by this key",
            fix="Ask the model's maker for the model, its signature and the public key again.",
            file=signature.name,
        ) from error
    return f"OpenSSF model signature, verified with the public key {digest_of(key)[:12]}"
