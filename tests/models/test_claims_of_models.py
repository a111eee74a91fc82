"""Model files whose few bytes become very many objects: refused before they are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdcal_core.errors import InputError
from kdcal_core.jobs import run_limited
from kdcal_core.models import ubjson
from kdcal_core.models.torch_model import load
from kdcal_core.models.torch_program import build_program, read_archive
from kdcal_core.models.xgboost_model import read_document

torch: Any = pytest.importorskip("torch")


def test_json_of_many_lists_is_no_model() -> None:
    with pytest.raises(InputError, match="lists and objects; the limit is"):
        read_document(b'{"learner": [' + b"[]," * 2_000_000 + b"[]]}")


def test_ubjson_of_many_single_values_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ubjson, "_MAX_VALUES", 1000)
    few = b"{U\x01a[" + b"Z" * 900 + b"]}"
    assert len(ubjson.decode_ubjson(few)["a"]) == 900
    for items in (b"Z" * 1000, b"[]" * 1000, b"#I\x03\xe8" + b"T" * 1000):
        with pytest.raises(InputError, match="more than 1,000 values"):
            ubjson.decode_ubjson(b"{U\x01a[" + items + b"]}")
    assert len(ubjson.decode_ubjson(b"{U\x01a[$U#I\x13\x88" + bytes(5000) + b"}")["a"]) == 5000


class Doubling(torch.nn.Module):  # type: ignore[misc]
    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times
        self.end = torch.nn.Linear(1, 2)

    def forward(self, x: Any) -> Any:
        for _ in range(self.times):
            x = torch.cat([x, x], dim=1)
        return self.end(x.sum(dim=1, keepdim=True))


@pytest.fixture(scope="module")
def bomb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = torch.export.export(
        Doubling(26).eval(), (torch.zeros(3, 4),), dynamic_shapes=({0: torch.export.Dim.AUTO},)
    )
    path = tmp_path_factory.mktemp("pt2") / "bomb.pt2"
    torch.export.save(program, path)
    return path


def test_an_exported_program_that_doubles_is_refused_before_it_runs(bomb: Path) -> None:
    assert bomb.stat().st_size < 60_000
    with pytest.raises(InputError, match="67,108,864 numbers of 1 row"):
        load(bomb, name="m.pt2")
    # PyTorch for CUDA does not even fit itself
    said = "more than 224 MiB of memory" if torch.version.cuda is None else "more memory than"
    with pytest.raises(InputError, match=f"needed {said}"):
        run_limited(
            "kdcal_core.review.in_worker:inspect_model",
            {"path": str(bomb), "name": "m.pt2"},
            seconds=60,
            memory_bytes=500 << 20,
        )


def test_what_a_program_no_longer_needs_is_free_again(bomb: Path) -> None:
    program = build_program(read_archive(bomb))
    values = dict(program.weights)
    alive = []

    def see(result: Any) -> None:
        alive.append(sum(value.numel() for value in values.values()))
        if result.numel() == 4 * 2**20:
            raise StopIteration

    with pytest.raises(StopIteration):
        program._run(torch.zeros(1, 4), values, see)
    assert 4 * 2**19 <= max(alive) < 4 * 2**19 + 100  # what is doubled, and not what came before
