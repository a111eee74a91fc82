"""Before a model scores a whole table it is tried on a few rows, under a limit of seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from kdcal_core.errors import InputError
from kdcal_core.review import scoring


@pytest.mark.parametrize(("n", "few"), [(1, "1 row,"), (20, "8 rows,")])
def test_a_few_rows_come_first(monkeypatch: pytest.MonkeyPatch, n: int, few: str) -> None:
    text: list[object] = []

    @contextmanager
    def spy(what: str, *, fix: str) -> Iterator[None]:
        text.append(what)
        yield
        text.append("over")

    def answer(block: pd.DataFrame) -> np.ndarray:
        text.append(len(block))
        return block.to_numpy(float)

    monkeypatch.setattr(scoring, "trial", spy)
    frame = pd.DataFrame({"x": np.arange(n)})
    answers = scoring.by_blocks(answer, frame, 1, lambda share, note: None)
    assert answers[:, 0].tolist() == list(range(n))
    assert text == [f"The model, tried on {few}", min(n, 8), "over", n]


def test_a_fault_in_the_first_rows_names_its_row() -> None:
    def answer(block: pd.DataFrame) -> np.ndarray:
        raise InputError("Wrong", row=3)

    with pytest.raises(InputError) as caught:
        scoring.by_blocks(answer, pd.DataFrame({"x": range(20)}), 1, lambda share, note: None)
    assert caught.value.row == 3
