"""Rows drawn from a scored set of very many, kept beside its summary when it is scored.

What has to see rows, such as trees, maps of regions and lines of methods, then reads these in place
of all. They are kept as a set is, with their columns and their positions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
from pyarrow import feather

from kdcal_core.data import FloatArray, IntArray, Roles, at_most
from kdcal_core.review.review import Review, Which
from kdcal_core.review.sealed_files import DISTRIBUTION
from kdcal_core.review.set_summary import MANY
from kdcal_core.store import write_arrays

if TYPE_CHECKING:
    from kdcal_core.distributions import PredictiveDistribution

DRAWN_ROWS = MANY // 2
FOLDER, POSITIONS, TABLE = "drawn", "position.npy", "rows.arrow"  # in the folder of a set


def drawn_positions(n: int) -> IntArray:
    """Positions of the drawn rows among n, ascending.

    Examples
    --------
    >>> len(drawn_positions(5)), len(drawn_positions(1_000_000))
    (5, 500000)
    """
    return at_most(n, DRAWN_ROWS)


def drawn_words(review: Review, which: Which) -> str:
    """What a page says where it has read drawn rows of a set; empty if it has read all.

    Examples
    --------
    >>> drawn_words(Review("a" * 16), "calibration")
    ''
    """
    n, roles = review.tables[which].n_rows if which in review.tables else 0, review.roles or Roles()
    if n < MANY or any((roles.weight, roles.cluster, roles.time)):
        return ""
    return f"{DRAWN_ROWS:,} rows, drawn from {n:,}"


def write_drawn_scores(folder: Path, frame: pd.DataFrame, proba: FloatArray, y: IntArray) -> None:
    """Draw from a set of a classification.

    Parameters
    ----------
    folder : Path
        Of the set; not sealed yet.
    frame : DataFrame
        The columns of its rows.
    """
    place, rows = _begin(folder, frame)
    write_arrays(place, {"proba": proba[rows], "y": y[rows]})


def write_drawn_forecasts(
    folder: Path,
    frame: pd.DataFrame,
    distribution: PredictiveDistribution,
    y: FloatArray,
    true_mean: FloatArray | None,
) -> None:
    """As `write_drawn_scores`, of a regression."""
    from kdcal_core.distributions import save_distribution

    place, rows = _begin(folder, frame)
    (place / DISTRIBUTION).mkdir(mode=0o700)
    save_distribution(distribution[rows], place / DISTRIBUTION)
    write_arrays(place, {"y": y[rows], "true_mean": None if true_mean is None else true_mean[rows]})


def _begin(folder: Path, frame: pd.DataFrame) -> tuple[Path, IntArray]:
    """The folder of the drawn rows, with their columns in it, and their positions."""
    place, rows = folder / FOLDER, drawn_positions(len(frame))
    place.mkdir(mode=0o700)
    write_arrays(place, {Path(POSITIONS).stem: rows})
    arrow = pa.Table.from_pandas(frame.iloc[rows])
    feather.write_feather(arrow, str(place / TABLE), compression="uncompressed")
    return place, rows
