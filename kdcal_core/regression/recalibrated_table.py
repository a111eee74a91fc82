"""Recalibrates tables of any length with a saved recalibrator, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from kdcal_core.data import FloatArray, Roles
from kdcal_core.data.csv_tables import safe_cell
from kdcal_core.data.forecast_columns import parameter_columns
from kdcal_core.data.regression_columns import family_of
from kdcal_core.data.scored_rows import TablesToScore
from kdcal_core.data.tables import TableBlocks
from kdcal_core.distributions import PredictiveDistribution, distribution_of
from kdcal_core.errors import InputError
from kdcal_core.models import load_model, model_info
from kdcal_core.models.file_marks import refuse_other_model
from kdcal_core.progress import Progress, silent
from kdcal_core.regression.recalibrator_file import KIND, load_recalibrator

_SAME = {"samples": ("samples", "dropout")}
LEVELS = (0.005, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.975, 0.995)
"""Levels of the quantiles that are written: ends of the 50, 80, 90, 95 and 99% intervals."""


def recalibrate_table(
    recalibrator: str,
    data: str,
    out: str,
    suffix: str,
    model: str | None = None,
    any_model: bool = False,
    parameters: Sequence[Sequence[str]] = (),
    keep: Sequence[str] = (),
    progress: Progress = silent,
) -> dict[str, Any]:
    """Recalibrate the forecasts of a table; write mean, standard deviation and quantiles of each.

    Meant for a worker process: arguments and result are JSON values.

    Parameters
    ----------
    recalibrator : str
        Path of a file of :func:`kdcal_core.regression.save_recalibrator`.
    data : str
        Path of a CSV or Parquet table: rows for the model or, without a model, its forecasts and
        the columns that the recalibrator reads.
    out : str
        Path of the file to write: "row" (1 is the first row of data), the kept columns, "mean",
        "std", and quantiles named by their level, such as "0.05". kdcal reads it as a table of
        quantiles.
    suffix : {".csv", ".parquet"}
    model : str, optional
        Path of the model that was recalibrated.
    any_model : bool
        Whether to accept another model.
    parameters : sequence of (parameter, column)
        Which columns hold the forecasts; by default those of the fit.
    keep : sequence of str
        Columns of the table that are written too, as text.
    progress : callable, optional
        Called with the share of rows done and their number; may raise to cancel.

    Returns
    -------
    dict
        ``rows``; ``mean`` and ``std``, the means over the rows; ``notes``, sentences;
        ``fitted_on``, the digest of the table that it was fitted on.

    Raises
    ------
    InputError
        If a file cannot be used, the recalibrator is for another model, a column is missing, or a
        row cannot be scored; with file, column and row.
    """
    return recalibrate_tables(
        recalibrator,
        TablesToScore.one(data, out, suffix, keep),
        model,
        any_model,
        parameters,
        progress,
    )


def recalibrate_tables(
    recalibrator: str,
    asked: TablesToScore,
    model: str | None = None,
    any_model: bool = False,
    parameters: Sequence[Sequence[str]] = (),
    progress: Progress = silent,
) -> dict[str, Any]:
    """As `recalibrate_table`, of the parts of one table."""
    table = asked.parts[0]
    opened = None if model is None else load_model(model, task="regression")
    loaded = load_recalibrator(recalibrator, model=opened, any_model=True)
    card = loaded.card
    notes: list[str] = []
    roles = Roles()
    if model is not None and opened is not None:
        digest = model_info(opened, model, Path(model).name).digest
        if not any_model:
            refuse_other_model(card.model, digest, KIND)
        elif card.model is not None and card.model.digest != digest:
            notes.append(
                "The recalibrator was fitted for another model: its intervals need not hold here."
            )
        reads = list(card.features) or list(table.names)
    else:
        named = tuple((name, column) for name, column in parameters) or card.columns
        if not named:
            raise InputError(
                "It is not known which columns hold the forecasts",
                fix="Name them: --parameters mean=COLUMN,std=COLUMN.",
                file=table.file,
            )
        family = card.family
        given = family_of([name for name, _ in named])
        if given not in (None, family) and family not in _SAME.get(str(given), ()):
            raise InputError(
                f"The forecasts are of the family {given!r}, and the recalibrator was fitted to "
                f"{family!r}",
                fix="Name the columns of the same parameters as at the fit.",
                file=table.file,
            )
        roles = Roles(task="regression", family=family, parameters=named)
        if card.model is not None:
            notes.append(
                f"The recalibrator was fitted for the model {card.model.name[:80]!r}; that these "
                "forecasts are that model's cannot be checked."
            )
        reads = [*(column for _, column in named), *loaded.reads]
    total = np.zeros(2)

    def answers(frame: pd.DataFrame, part: TableBlocks) -> list[Any]:
        nonlocal total
        if opened is not None:
            found = loaded.score_rows(frame)
        else:
            assert roles.family is not None
            columns = parameter_columns(frame, roles, part.file)
            forecasts = distribution_of(roles.family, columns, spread=card.spread)
            found = loaded.predict(forecasts, frame)
        said = _answers(found)
        total += [float(column.sum()) for column in said[:2]]
        return said

    columns = [(name, pa.float64()) for name in ("mean", "std", *map(str, LEVELS))]
    done, of_tables = asked.write(reads, columns, answers, progress)
    return {
        "rows": done,
        "mean": total[0] / done,
        "std": total[1] / done,
        "outcome": safe_cell(card.outcome),
        "fitted_on": {part: one.digest for part, one in card.data.items() if part != "evaluation"},
        "notes": [*notes, *of_tables],
    }


def as_quantiles(found: PredictiveDistribution) -> PredictiveDistribution:
    """The distributions as a table of them is read again: by their quantiles of `LEVELS`.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> as_quantiles(Normal([0.0], [1.0])).ppf(0.975).round(2).tolist()
    [1.96]
    """
    names = map(str, LEVELS)
    return distribution_of("quantiles", dict(zip(names, _quantiles(found), strict=True)))


def _quantiles(found: PredictiveDistribution) -> FloatArray:
    """Quantiles of `LEVELS`, (levels, n)."""
    return np.ascontiguousarray(found.ppf(np.array([LEVELS])).T)


def _answers(found: PredictiveDistribution) -> list[Any]:
    """Mean, standard deviation and quantiles of a block of rows, (n,) each."""
    columns = (found.mean(), found.std(), *_quantiles(found))
    return [np.ascontiguousarray(one) for one in columns]
