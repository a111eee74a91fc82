"""Writes a fitted recalibrator to one file, reads it back with checks, and applies it.

The file is a sealed archive (:mod:`kdcal_core.store.archive`) of the kind "recalibrator", version
1. Its ``about.json`` holds the card, the recalibrator by the rule of
:mod:`kdcal_core.store.estimators`, and the encoding of the space in which neighbours are searched.
Methods shown only for comparison correct nothing and have no file.

A recalibrator with neighbours keeps the coordinates of the calibration rows in its space, because
each new row is compared with them. Such a file must be shared as the rows would be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from kdcal_core import __version__
from kdcal_core.data import FAMILY_PARAMETERS, Family, as_pandas
from kdcal_core.distributions import PredictiveDistribution
from kdcal_core.errors import InputError, warn
from kdcal_core.models import Features, Regressor, load_model
from kdcal_core.models.coordinates import (
    CoordinatesRecord,
    coordinates_from_parts,
    coordinates_parts,
)
from kdcal_core.models.file_marks import CardEstimate, DataMark, ModelMark, refuse_other_model
from kdcal_core.models.forecasts import model_forecasts
from kdcal_core.models.protocol import file_digest
from kdcal_core.regression.recalibrators import RECALIBRATORS, StoredRecalibrator
from kdcal_core.regression.spaces import BOTH, INPUTS, LAYER, PREDICTION, SpaceOfRows
from kdcal_core.store import decode, encode
from kdcal_core.store.archive import errors_name_file, read_archive, write_archive
from kdcal_core.store.estimators import EstimatorDescriber, EstimatorMaker, demand
from kdcal_core.text import and_more

KIND = "recalibrator"
VERSION = 1
_HOME = "kdcal_core.regression"
_SPACE = "space_"  # before the names of the encoding's arrays


@dataclass(frozen=True)
class RecalibratorCard:
    """Where a recalibrator comes from, which forecasts it takes, and what it gained.

    Attributes
    ----------
    key : str
        Key in :data:`kdcal_core.regression.RECALIBRATORS`.
    title : str
        Its full name.
    parameters : dict
        Its settings, as JSON values.
    kdcal_version : str
    created : str
        Day of the fit in UTC, such as 2026-01-31.
    model : ModelMark or None
        None if only the model's predictions were known.
    data : dict of str to DataMark
        The tables under "calibration" and, where there was one, "evaluation".
    family : str
        The kind of the model's forecasts, a key of :data:`kdcal_core.distributions.FAMILIES`.
    columns : tuple of (str, str)
        Where forecasts came from a table, each parameter and its column. Untrusted text.
    spread : float or None
        Where forecasts are single numbers, the standard deviation of their residuals.
    outcome : str
        Name of the outcome. Untrusted text.
    features : tuple of str
        Columns that the model or the space reads. Untrusted text.
    estimates : tuple of CardEstimate
        Measures before and after recalibration.
    notes : tuple of str
    seed : int or None
    """

    key: str
    title: str
    parameters: dict[str, Any]
    kdcal_version: str
    created: str
    model: ModelMark | None
    data: dict[str, DataMark]
    family: Family
    columns: tuple[tuple[str, str], ...] = ()
    spread: float | None = None
    outcome: str = ""
    features: tuple[str, ...] = ()
    estimates: tuple[CardEstimate, ...] = ()
    notes: tuple[str, ...] = ()
    seed: int | None = None


def recalibrator_card(
    key: str,
    recalibrator: StoredRecalibrator,
    *,
    family: Family,
    created: str | None = None,
    model: ModelMark | None = None,
    data: Mapping[str, DataMark] | None = None,
    **more: Any,
) -> RecalibratorCard:
    """The card of a newly fitted recalibrator; ``more`` are further attributes of the card.

    Parameters
    ----------
    created : str, optional
        Day of the fit; by default today in UTC.

    Examples
    --------
    >>> from kdcal_core.distributions import Normal
    >>> from kdcal_core.regression import IsotonicRecalibration
    >>> fitted = IsotonicRecalibration().fit(Normal([0.0, 1.0], 1.0), [0.5, 0.7])
    >>> recalibrator_card("isotonic", fitted, family="normal").title
    'Isotonic recalibration'
    """
    entry = RECALIBRATORS.get(key)
    plain = (type(None), bool, int, float, str)
    settings = recalibrator.get_params(deep=False)
    return RecalibratorCard(
        key=key,
        title=entry.title if entry else type(recalibrator).__name__,
        parameters={name: one for name, one in settings.items() if isinstance(one, plain)},
        kdcal_version=__version__,
        created=created or datetime.now(UTC).date().isoformat(),
        model=model,
        data=dict(data or {}),
        family=family,
        **more,
    )


class _Describer(EstimatorDescriber):
    word: ClassVar[str] = KIND
    base: ClassVar[type[Any]] = StoredRecalibrator

    def state(self, estimator: Any) -> dict[str, Any]:
        found = super().state(estimator)
        return {name: one for name, one in found.items() if name not in estimator.of_last_predict}


class _Maker(EstimatorMaker):
    word: ClassVar[str] = KIND
    base: ClassVar[type[Any]] = StoredRecalibrator
    unfitted: ClassVar[bool] = True  # the one that is applied only where needed


@dataclass(frozen=True, eq=False)
class LoadedRecalibrator:
    """A recalibrator read from a file.

    Attributes
    ----------
    recalibrator : StoredRecalibrator
    card : RecalibratorCard
    space : SpaceOfRows or None
        The space of the neighbours; None where there are none.
    model : Regressor or None
        The open model, where it was given.
    unchecked : str
        Why it could not be checked that the model is the recalibrated one; empty if it was checked,
        or no check is needed. Untrusted text.
    """

    recalibrator: StoredRecalibrator
    card: RecalibratorCard
    space: SpaceOfRows | None
    model: Regressor | None = None
    unchecked: str = ""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of rows that it reads beside the forecasts. Untrusted text."""
        return () if self.space is None or self.space.coordinates is None else self.card.features

    def predict(
        self, distribution: PredictiveDistribution, X: Features | None = None
    ) -> PredictiveDistribution:
        """The recalibrated distributions of new rows.

        Parameters
        ----------
        distribution : PredictiveDistribution of m rows
            The model's forecasts.
        X : data frame or (m, d) array, optional
            The columns ``card.features``, where the space reads them; an array must have them in
            their order.

        Raises
        ------
        InputError
            If columns or the model are missing where the space reads them.

        Warns
        -----
        InputWarning
            If it cannot be checked that the forecasts are from the recalibrated model.
        """
        if self.unchecked:
            warn(self.unchecked, stacklevel=2)
        frame = None if X is None or self.space is None else self._frame(X)
        at = None if self.space is None else self.space.of(distribution, frame, self.model)
        found: PredictiveDistribution = self.recalibrator.predict(distribution, at)
        return found

    def score_rows(self, X: Features) -> PredictiveDistribution:
        """Apply the model to rows (m, d) and recalibrate its forecasts.

        Raises
        ------
        InputError
            The recalibrator was loaded without its model, or columns are missing.
        """
        if self.model is None:
            raise InputError(
                "The recalibrator was loaded without its model",
                fix="Load it with load_recalibrator(path, model=...).",
            )
        frame = self._frame(X)
        names = self.model.feature_names or self.card.features[: self.model.n_features]
        inputs = frame[list(names)] if names else frame
        forecasts = model_forecasts(self.model, self.card.family, inputs, spread=self.card.spread)
        return self.predict(forecasts, frame)

    def _frame(self, X: Features) -> pd.DataFrame:
        names = list(self.card.features)
        X = as_pandas(X)
        frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(X, columns=names or None)
        lacking = [name for name in names if name not in frame.columns]
        if lacking:
            raise InputError(
                f"The table lacks a column that the recalibrator reads{and_more(len(lacking) - 1)}",
                fix=f"It reads {len(names):,} columns; name them as at its fit.",
                column=lacking[0],
            )
        return frame[names] if names else frame


def save_recalibrator(
    recalibrator: StoredRecalibrator,
    path: str | Path,
    card: RecalibratorCard,
    space: SpaceOfRows | None = None,
) -> None:
    """Write a fitted recalibrator and its card into one sealed file, without pickle.

    The same recalibrator and card give the same bytes. The file appears whole or not at all.

    Parameters
    ----------
    recalibrator : StoredRecalibrator
        Fitted.
    card : RecalibratorCard
        See :func:`recalibrator_card`.
    space : SpaceOfRows, optional
        How new rows get their coordinates, for a recalibrator that ``needs_space``.

    Raises
    ------
    InputError
        The folder does not exist, or the space is missing.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from kdcal_core.distributions import Normal
    >>> from kdcal_core.regression import IsotonicRecalibration
    >>> fitted = IsotonicRecalibration().fit(Normal([0.0, 1.0], 1.0), [0.5, 0.7])
    >>> card = recalibrator_card("isotonic", fitted, family="normal")
    >>> with TemporaryDirectory() as folder:
    ...     save_recalibrator(fitted, Path(folder) / "mine.kdcal", card)
    ...     loaded = load_recalibrator(Path(folder) / "mine.kdcal")
    >>> new = Normal([2.0], 1.0)
    >>> bool(loaded.predict(new).cdf(2.0) == fitted.predict(new).cdf(2.0))
    True
    """
    recalibrator.check_state()
    if recalibrator.needs_space and space is None:
        raise InputError(
            "The recalibrator searches neighbours, and their space is missing",
            fix="Give the space that it was fitted in.",
        )
    describer = _Describer()
    described = describer.estimator(recalibrator)
    encoded: dict[str, Any] | None = None
    arrays = dict(describer.arrays)
    if recalibrator.needs_space and space is not None:
        encoded = {"name": space.name, "columns": None}
        if space.coordinates is not None:
            columns, of_columns = coordinates_parts(space.coordinates)
            encoded["columns"] = encode(columns)
            arrays |= {_SPACE + name: array for name, array in of_columns.items()}
    about = {
        "card": encode(card),
        "recalibrator": described,
        "records": describer.records,
        "space": encoded,
    }
    write_archive(path, KIND, about, arrays, version=VERSION)


def load_recalibrator(
    path: str | Path,
    *,
    model: str | Path | Regressor | None = None,
    any_model: bool = False,
) -> LoadedRecalibrator:
    """Read a recalibrator file, in which nothing is run and every part is checked before use.

    Parameters
    ----------
    path : str or Path
    model : str, Path or Regressor, optional
        The model's file, or the result of :func:`kdcal_core.load_model`. Any model but the
        recalibrated one is refused.
    any_model : bool
        Whether to accept another model, or no model, without an error or a warning.

    Raises
    ------
    InputError
        If the file is missing, truncated, altered, of another kind or a newer version, contradicts
        itself, or belongs to another model.

    Examples
    --------
    >>> load_recalibrator("no-such-file.kdcal")
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: The saved file cannot be opened (file 'no-such-file.kdcal'). ...
    """
    given = load_model(model, task="regression") if isinstance(model, str | Path) else model
    about, arrays = read_archive(path, KIND, newest=VERSION, sealed=True)
    with errors_name_file(path):
        card = decode(RecalibratorCard, about["card"])
        demand(card.family in FAMILY_PARAMETERS, "the card")
        unchecked = "" if any_model else _checked(card, given)
        recalibrator = _Maker(arrays, about["records"], _HOME).estimator(about["recalibrator"])
        recalibrator.check_state()
        space = _space_of(about["space"], arrays) if recalibrator.needs_space else None
    return LoadedRecalibrator(recalibrator, card, space, given, unchecked)


def _checked(card: RecalibratorCard, model: Regressor | None) -> str:
    """Refuse any model but the card's; return why it could not be checked, or ""."""
    if card.model is None:
        return ""
    digest = None if model is None else file_digest(model)
    if digest is not None:
        refuse_other_model(card.model, digest, KIND)
        return ""
    return (
        f"The recalibrator was fitted for the model {card.model.name[:80]!r} (SHA-256 "
        f"{card.model.digest[:12]}...), and it cannot be checked that these forecasts are from "
        "that model. Load it with load_recalibrator(path, model='the model file'), which refuses "
        "any other."
    )


def _space_of(encoded: Any, arrays: Mapping[str, Any]) -> SpaceOfRows:
    name, columns = encoded["name"], encoded["columns"]
    demand(isinstance(name, str), "the space")
    demand(name in (INPUTS, BOTH, PREDICTION) or name.startswith(LAYER), "the space")
    demand((columns is not None) == (name in (INPUTS, BOTH)), "the space")
    if columns is None:
        return SpaceOfRows(name)
    own = {at.removeprefix(_SPACE): one for at, one in arrays.items() if at.startswith(_SPACE)}
    return SpaceOfRows(name, coordinates_from_parts(decode(CoordinatesRecord, columns), own))
