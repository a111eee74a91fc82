"""A model's signature is verified with its maker's key before anything is computed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from kdcal_core.audit import (
    AuditConfig,
    audit_settings,
    config_text,
    read_config,
    run_gate,
    subject_of,
)
from kdcal_core.audit.gate_files import verified
from kdcal_core.cli import main
from kdcal_core.cli.audit import _signed_names
from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.models import model_signature
from kdcal_core.models.model_signature import verified_signature
from kdcal_core.review import (
    Arrival,
    NamedFiles,
    Review,
    SignatureInfo,
    Workspace,
    add_files,
    add_signature,
    create_review,
    start_sample,
)

SAMPLE = Path(__file__).parents[2] / "sample_data" / "breast_cancer"
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


def test_the_maker_s_signature_holds_in_a_confined_process(
    signed: tuple[Path, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, signature, public = signed
    asked: list[dict[str, Any]] = []

    def noted(*given: Any, **more: Any) -> Any:
        asked.append(more)
        return run_limited(*given, **more)

    monkeypatch.setattr(model_signature, "run_limited", noted)
    assert "verified with the public key" in verified_signature(model, signature, public)
    assert "not verified" in verified_signature(model, signature, None)
    (tmp_path / "deep.sig").write_bytes(b"[" * 100_000 + b"]" * 100_000)
    with pytest.raises(InputError, match=r"not an OpenSSF model signature.*'deep\.sig'"):
        verified_signature(model, tmp_path / "deep.sig", public)
    assert [one["confined"] for one in asked] == [True, True]


def test_another_model_key_or_signature_is_refused(
    signed: tuple[Path, Path, Path], tmp_path: Path, work_here: None
) -> None:
    model, signature, public = signed
    _, other = keys(tmp_path, "other")
    with pytest.raises(InputError, match="not one of this model by this key"):
        verified_signature(model, signature, other)
    model.write_bytes(b"another model")
    with pytest.raises(InputError, match="not one of this model by this key"):
        verified_signature(model, signature, public)
    with pytest.raises(InputError, match="no such file"):
        verified_signature(model, tmp_path / "none", public)


def changed(path: Path, **parts: Any) -> bytes:
    """A signature with other parts of its envelope."""
    bundle = json.loads(path.read_bytes())
    bundle["dsseEnvelope"] |= parts
    return json.dumps(bundle).encode()


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{}", b"null", b"12", b'"text"', b"\x00" * 100, b"NaN", b"1" * 5000),
        *(b'{"a":' * 100_000 + b"1" + b"}" * 100_000, b"[" + b"[]," * 1_000_000 + b"0]"),
        *({"payload": "%%%"}, {"payload": 5}, {"signatures": [{"sig": "%"}]}),
        *({"signatures": []}, {"signatures": "text"}, {"signatures": [None]}),
    ],
    ids=lambda one: str(one)[:20],
)
def test_a_file_that_is_no_signature_is_one_clear_error(
    signed: tuple[Path, Path, Path], tmp_path: Path, content: Any, work_here: None
) -> None:
    model, signature, public = signed
    made = content if isinstance(content, bytes) else changed(signature, **content)
    (tmp_path / "broken.sig").write_bytes(made)
    with pytest.raises(InputError, match=r"not an OpenSSF model signature.*'broken\.sig'") as error:
        verified_signature(model, tmp_path / "broken.sig", public)
    assert error.value.fix


def test_a_wrong_key_or_a_huge_file_is_one_clear_error(
    signed: tuple[Path, Path, Path], tmp_path: Path, work_here: None
) -> None:
    model, signature, public = signed
    broken = tmp_path / "broken"
    for content in (b"", b"\0" * 100, (tmp_path / "maker.key").read_bytes()):
        broken.write_bytes(content)
        with pytest.raises(InputError, match=r"not a public key \(PEM.*'broken'"):
            verified_signature(model, signature, broken)
    with broken.open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(InputError, match="too large to be a model's signature"):
        verified_signature(model, broken, public)
    with pytest.raises(InputError, match="too large to be a public key"):
        verified_signature(model, signature, broken)


@pytest.fixture
def signed_sample(tmp_path: Path) -> dict[str, Path]:
    """A sample's model with its signature, its maker's key and another one."""
    private, public = keys(tmp_path, "maker")
    _, other = keys(tmp_path, "other")
    files = {"model": SAMPLE / "model.skops", "table": SAMPLE / "calibration.parquet"}
    files |= {"signature": tmp_path / "model.sig", "key": public, "other": other}
    signing.Config().use_elliptic_key_signer(private_key=private).sign(
        files["model"], files["signature"]
    )
    return files


def test_a_review_carries_the_signature_beside_its_model(
    signed_sample: dict[str, Path], tmp_path: Path, work_here: None
) -> None:
    files, workspace = signed_sample, Workspace(tmp_path / "reviews")

    def added(review_id: str, *names: str) -> Review:
        arrivals = [Arrival(files[one], files[one].name) for one in names]
        return add_files(workspace, review_id, arrivals)

    first = create_review(workspace).id
    review = added(first, "signature", "model", "key")
    assert review.signature is not None
    assert "verified with the public key" in review.signature.said
    assert audit_settings(review).signature == review.signature.said
    assert added(first, "model").signature is None  # it may be another one
    second = create_review(workspace).id
    assert added(second, "signature").signature == SignatureInfo(ANY, "", "", "model.sig", "")
    review = added(second, "model")
    assert review.signature is not None
    assert "not verified: no public key" in review.signature.said
    assert "verified with the public key" in added(second, "key").signature.said
    with pytest.raises(InputError, match=r"not one of this model by this key.*other\.pub"):
        added(second, "other")
    assert workspace.read(second).signature is None
    assert workspace.read(second).model is not None


def test_init_passes_the_signature_of_a_review_on_and_the_gate_verifies_it(
    signed_sample: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    work_here: None,
) -> None:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    files, workspace = signed_sample, Workspace()
    made = start_sample(workspace, "breast_cancer").id
    places = {"signature": files["signature"], "signature_key": files["key"]}
    parts = [(part, path, path.name) for part, path in places.items()]
    add_signature(workspace, made, parts)
    there = tmp_path / "there"
    there.mkdir()
    out = there / "audit.toml"
    assert main(["audit", "init", "--review", made, "--out", str(out)]) == 0
    assert "# Its signature, when this was written: OpenSSF model signature, v" in out.read_text()
    config = read_config(out)
    assert (config.signature, config.signature_key) == (
        str(there / "model.sig"),
        str(there / "maker.pub"),
    )
    for path in (files["model"], files["signature"], files["key"]):
        (there / path.name).write_bytes(path.read_bytes())
    assert "verified with the public key" in verified(config)
    (there / "maker.pub").write_bytes(files["other"].read_bytes())
    capsys.readouterr()
    assert main(["audit", "run", "--config", str(out)]) == 2
    assert "not one of this model by this key" in capsys.readouterr().err


def test_a_review_of_an_earlier_version_and_without_a_key_is_passed_on(review: Review) -> None:
    assert _signed_names(review) == {}
    signed = replace(review, signature=SignatureInfo("a.sig", "", "not verified"))
    assert _signed_names(signed) == {"signature": f"{review.model.name}.sig"}
    assert _signed_names(replace(signed, signature=SignatureInfo("", "a.pub", ""))) == {}
    subject = subject_of(signed, audit_settings(signed))
    asked = config_text(subject, {}, title="t")  # of an audit, which knows no files
    assert '# signature = "model.sig"' in asked
    assert "# Its signature, when this was written: not verified.\n" in asked


def test_commands_verify_a_signature(
    signed_sample: dict[str, Path], capsys: pytest.CaptureFixture[str], work_here: None
) -> None:
    files = signed_sample
    words = ["diagnose", "--model", str(files["model"]), "--data", str(files["table"])]
    words += ["--target", "diagnosis", "--signature", str(files["signature"]), "--signature-key"]
    assert main([*words, str(files["key"])]) == 0
    assert "OpenSSF model signature, verified" in capsys.readouterr().out
    assert main([*words, str(files["other"])]) == 2
    assert "not one of this model by this key" in capsys.readouterr().err
    assert main([*words[:-1], "--signature-key", str(files["key"] / "none")]) == 2
    assert main([*words[:-3], "--signature-key", str(files["key"])]) == 2
    assert "--signature-key needs --signature" in capsys.readouterr().err


def test_a_gate_refuses_before_it_reads_anything(
    signed: tuple[Path, Path, Path], tmp_path: Path, work_here: None
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
