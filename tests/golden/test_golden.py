"""Every figure is the stored one: see `python -m tests.golden --write` where a method changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden.groups import SAMPLES, computed, groups
from golden.processor import outputs_digest
from golden.record import differences, figures, text
from golden.stored import FIGURES, PROCESSOR, path_of, read

pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture(scope="module")
def processor() -> None:
    """The processor of the stored figures, or one that computes as it does."""
    if outputs_digest(SAMPLES) != PROCESSOR.read_text(encoding="utf-8").strip():
        pytest.skip("the stored figures are of a processor with other float32 instructions")


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("name", groups())
def test_figures_are_the_stored_ones(name: str, tmp_path: Path) -> None:
    changes = list(differences(read(name), computed(name, tmp_path)))
    assert not changes, "\n".join(changes[:20])


def test_nothing_is_stored_that_nothing_computes() -> None:
    assert {path.stem for path in FIGURES.iterdir()} == set(groups())


@pytest.mark.parametrize("name", groups())
def test_files_are_as_they_are_written(name: str) -> None:
    assert path_of(name).read_text(encoding="utf-8") == text(read(name))


def test_a_change_is_seen_and_prose_is_not() -> None:
    stored = figures({"key": "a", "label": "ECE", "name": "long", "value": 0.5, "n": 3})
    assert stored == {"key": "a", "label": "ECE", "value": 0.5, "n": 3}
    assert not list(differences(stored, {**stored, "label": "Other words"}))
    assert list(differences(stored, {**stored, "value": 0.5 * (1 + 1e-11)}))
    assert list(differences(stored, {**stored, "n": 4}))
    assert list(differences({"p_value": 0.05}, {"p_value": 0.05 + 2e-12}))
    assert not list(differences({"p_value": 0.05}, {"p_value": 0.05 + 5e-13}))
    assert list(differences(stored, {**stored, "key": "b"}))
    assert list(differences(stored, {**stored, "value": "nan"}))
    assert list(differences({"at": [1.0, 2.0]}, {"at": [1.0]}))
    assert not list(differences(stored, {**stored, "value": 0.5 * (1 + 1e-13)}))
