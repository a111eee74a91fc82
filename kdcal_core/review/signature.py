"""A signature beside the model of a review: kept, verified, and shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Literal

from kdcal_core.errors import InputError
from kdcal_core.models.model_signature import verified_signature
from kdcal_core.review.changes import change_review
from kdcal_core.review.review import Review, SignatureInfo
from kdcal_core.review.workspace import Workspace

SignedPart = Literal["signature", "signature_key"]
SIGNATURE_SUFFIXES = (".sig", ".sigstore")
KEY_SUFFIXES = (".pub", ".pem")


def signed_part(name: str) -> SignedPart | None:
    """Whether a file is a signature or a public key by its name.

    Examples
    --------
    >>> signed_part("model.onnx.sig"), signed_part("maker.PEM"), signed_part("rows.csv")
    ('signature', 'signature_key', None)
    """
    suffix = Path(name).suffix.lower()
    if suffix in SIGNATURE_SUFFIXES:
        return "signature"
    return "signature_key" if suffix in KEY_SUFFIXES else None


def add_signature(
    workspace: Workspace,
    review_id: str,
    files: Sequence[tuple[SignedPart, BinaryIO | Path, str]],
) -> Review:
    """Add a signature, a public key or both to a review, and verify what can be verified.

    Parameters
    ----------
    files : sequence of (part, file, name)
        Each part once; a part that the review has already is replaced.

    Raises
    ------
    InputError
        If the signature is not one of this model by this key: the review then has none.
    """
    before = workspace.read(review_id)
    found = before.signature or SignatureInfo()
    names, last = {}, ""
    for part, source, name in files:
        path = workspace.keep(review_id, source, name)
        if part == "signature":
            found = replace(found, file=path.name, name=name)
        else:
            found = replace(found, key_file=path.name, key_name=name)
        names[path.name] = name
        last = name if part == "signature" or not last else last
    try:
        found = replace(found, said=_verified(workspace, before, found))
    except InputError as error:
        change_review(workspace, review_id, lambda review: replace(review, signature=None))
        name = names.get(error.file or "", last)
        raise InputError(error.what, fix=error.fix, file=name) from error
    return change_review(workspace, review_id, lambda review: replace(review, signature=found))


def verify_again(workspace: Workspace, review_id: str) -> Review:
    """Verify a signature that came before its model; the review as it is without one."""
    review = workspace.read(review_id)
    signed = review.signature
    if signed is None or signed.said or not signed.file or review.model_file is None:
        return review
    return add_signature(workspace, review_id, ())


def _verified(workspace: Workspace, review: Review, signed: SignatureInfo) -> str:
    """What is known of the signature; empty while signature or model are missing."""
    if not signed.file or review.model_file is None:
        return ""
    folder = workspace.folder(review.id)
    key = folder / signed.key_file if signed.key_file else None
    return verified_signature(folder / review.model_file, folder / signed.file, key)
