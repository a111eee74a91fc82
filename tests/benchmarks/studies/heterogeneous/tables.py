"""Real tables with two classes, and their four parts: training, validation, calibration, test.

The census is a shipped sample. A folder adds the whole of it (`adult.parquet`) and
`credit_default.parquet`, both of them tables of the paper, and three it does not have:
`spambase.parquet`, and two made binary by a question that is usual for them: is the letter a
vowel (`letter.parquet`), is the wine of quality 6 or better (`wine_white.parquet`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.data import IntArray

SAMPLE = Path(__file__).parents[4] / "sample_data" / "adult"
PARTS = ("training", "validation", "calibration", "test")
# Rows of each part; of a table with fewer the same shares. Few enough to train many networks.
SIZES = (10_000, 3_000, 8_000, 12_000)
TARGETS: dict[str, tuple[str, Callable[[pd.Series[Any]], pd.Series[bool]]]] = {
    "adult": ("class", lambda values: values == ">50K"),
    "credit_default": ("default-payment-next-month", lambda values: values == 1),
    "spambase": ("y", lambda values: values == "1"),
    "letter": ("y", lambda values: values.isin(list("AEIOU"))),
    "wine_white": ("quality", lambda values: values >= 6),
}
# A fifth of the wines and some letters and mails are copies, which would stand in two parts.
COPIED = ("spambase", "letter", "wine_white")
TITLES = {
    "adult": "Census",
    "credit_default": "Credit default",
    "spambase": "Spam",
    "letter": "Vowels",
    "wine_white": "Good wine",
}


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one part: as they stand in the table, as numbers for a network, and labels."""

    frame: pd.DataFrame
    numbers: NDArray[np.float32]
    y: IntArray


def load(name: str, folder: str | None) -> tuple[pd.DataFrame, IntArray]:
    """Features as they are, categories as text, and 0 or 1."""
    if folder is None:
        table = pd.concat([pd.read_parquet(part) for part in sorted(SAMPLE.glob("*.parquet"))])
        yes = table.pop("income") == ">50K"
    else:
        table = pd.read_parquet(Path(folder) / f"{name}.parquet")
        for column in table.select_dtypes("str"):
            table[column] = table[column].str.strip()
        if name in COPIED:
            table = table.drop_duplicates()
        table = table.drop(columns=["fnlwgt", "ID"], errors="ignore")  # no properties of a person
        target, meaning = TARGETS[name]
        yes = meaning(table.pop(target))
    return table.reset_index(drop=True), yes.to_numpy(dtype=np.int64)


def joined(first: Part, second: Part) -> Part:
    """The rows of both."""
    return Part(
        pd.concat([first.frame, second.frame], ignore_index=True),
        np.concatenate([first.numbers, second.numbers]),
        np.concatenate([first.y, second.y]),
    )


def split(
    table: pd.DataFrame, y: IntArray, seed: int, sizes: tuple[int, ...] = SIZES
) -> dict[str, Part]:
    """Four disjoint random parts; numbers are standardised by the first."""
    share = min(1.0, len(y) / sum(sizes))
    ends = np.cumsum([int(share * size) for size in sizes])
    order = np.random.default_rng([seed, 4]).permutation(len(y))[: ends[-1]]
    rows = dict(zip(PARTS, np.split(order, ends[:-1]), strict=True))
    known = table.iloc[rows["training"]].select_dtypes("number")
    spread = known.std().replace(0.0, 1.0)
    numbers = table.assign(**(table[known.columns] - known.mean()) / spread)
    numbers = pd.get_dummies(numbers, dtype=np.float32)
    return {
        part: Part(
            table.iloc[chosen].reset_index(drop=True),
            numbers.to_numpy(np.float32)[chosen],
            y[chosen],
        )
        for part, chosen in rows.items()
    }
