"""Model files whose few bytes become very many objects: refused before they are made."""

from __future__ import annotations

import pytest

from kdcal_core.errors import InputError
from kdcal_core.parents import ubjson
from kdcal_core.parents.xgboost_model import read_document


def test_json_of_many_lists_is_no_model() -> None:
    with pytest.raises(InputError, match="lists and objects; the limit is"):
        read_document(b'{"learner": [' + b"[]," * 2_000_000 + b"[]]}")


def test_ubjson_of_many_single_values_is_no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ubjson, "_MAX_VALUES", 1000)
    few = b"{U\x01a[" + b"Z" * 900 + b"]}"
    assert len(ubjson.decode(few)["a"]) == 900
    for items in (b"Z" * 1000, b"[]" * 1000, b"#I\x03\xe8" + b"T" * 1000):
        with pytest.raises(InputError, match="more than 1,000 values"):
            ubjson.decode(b"{U\x01a[" + items + b"]}")
    assert len(ubjson.decode(b"{U\x01a[$U#I\x13\x88" + bytes(5000) + b"}")["a"]) == 5000
