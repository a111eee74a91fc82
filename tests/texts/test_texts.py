"""The stored texts: each belongs to a test, and other words are an error."""

from __future__ import annotations

import re

import pytest

from texts.snapshot import TESTS, TEXTS, Texts, masked, sections


def test_every_stored_text_belongs_to_a_test() -> None:
    for path in TEXTS.rglob("*.txt"):
        module = TESTS / path.relative_to(TEXTS).with_name(f"test_{path.stem}.py")
        source = module.read_text(encoding="utf-8")
        for section in sections(path):
            name = re.split(r"\[|: ", section)[0].replace(" ", "_")
            assert f"def test_{name}(" in source, f"{path.name}: {section}"


def test_words_that_are_not_the_stored_ones_are_an_error(texts: Texts) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"(?s)--write.*\+other words"):
        texts("other words")


def test_what_differs_between_machines_is_masked() -> None:
    assert masked("0.5 s, 3 MiB, &lt;b&gt;, 2026-11-23 04:00") == "(time), (size), <b>, (date)"
