"""A model's signature is verified with its maker's key before anything is computed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from kdcal_core.audit import AuditConfig, run_gate
from kdcal_core.audit.model_signature import verified_signature
from kdcal_core.errors import InputError
from kdcal_core.review import NamedFiles

signing = pytest.importorskip("model_signing.signing", reason="pip install 'kdcal[signatures]'")


def keys(folder: Path, name: str) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    private, public = folder / f"{name}.key", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(
        key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    return private, public


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Path, Path]:
    model = tmp_path / "model.onnx"
    model.write_bytes(b"a model")
    private, public = keys(tmp_path, "maker")
    signature = tmp_path / "model.sig"
    signing.Config().use_elliptic_key_signer(private_key=private).sign(model, signature)
    return model, signature, public


def test_the_maker_s_signature_holds(signed: tuple[Path, Path, Path]) -> None:
    model, signature, public = signed
    assert "verified with the public key" in verified_signature(model, signature, public)
    assert "not verified" in verified_signature(model, signature, None)


def test_another_model_key_or_signature_is_refused(
    signed: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    model, signature, public = signed
    _, other = keys(tmp_path, "other")
    with pytest.raises(InputError, match="not one of this model by this key"):
        verified_signature(model, signature, other)
    for content in (b"", b"{}", b"\x00" * 100):
        (tmp_path / "broken.sig").write_bytes(content)
        with pytest.raises(InputError, match="not one of this model by this key"):
            verified_signature(model, tmp_path / "broken.sig", public)
    model.write_bytes(b"another model")
    with pytest.raises(InputError, match="not one of this model by this key"):
        verified_signature(model, signature, public)
    with pytest.raises(InputError, match="no such file"):
        verified_signature(model, tmp_path / "none", public)


def test_a_gate_refuses_before_it_reads_anything(
    signed: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    model, signature, public = signed
    files = NamedFiles(target="y", model=str(model), data=str(tmp_path / "none.csv"))
    config = AuditConfig("t", files, signature=str(signature), signature_key=str(public))
    with pytest.raises(InputError, match=r"no such file.*none\.csv"):
        run_gate(config)
    model.write_bytes(b"another model")
    with pytest.raises(InputError, match="not one of this model"):
        run_gate(config)
    with pytest.raises(InputError, match="no model"):
        run_gate(replace(config, files=NamedFiles(target="y", predictions="p.csv")))
