"""Writes a fitted calibrator to one file, reads it back with checks, and applies it.

Version 1 of the file is a sealed archive (:mod:`kdcal_core.store.archive`) of the kind
"calibrator". Its ``about.json`` holds the card under "card", the calibrator under "calibrator" and
the dataclasses of its state under "records", as described below.

Version 2 adds a "layer" to the card, or "outputs" and "output_kind". With a layer the calibrator
reads a hidden layer of the model, which a reader of version 1 would mistake for columns of the
table. The outputs are the columns of a table that held the predictions.

Version 3 adds calibrators with shrinkage, alone or inside another calibrator.

Files are written in the oldest version that can describe them. The tests include small files of
each version, which must stay readable. A version that changes an old description must convert older
files before they are decoded, with one function from version to version.

`kdcal_core.store.estimators` has the rule for all calibrators, and this module adds::

    {"estimator": {...}}          a kernel density estimator, which needs its model

A calibrator with ``shrinkage=None`` is written without this parameter, as in files older than
shrinkage, and a file without the parameter is read as None.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kdcal_core.calibration.calibrator_base import Calibrator
from kdcal_core.calibration.export.card import (
    CalibratorCard,
    card_from_json,
    card_to_json,
    key_of,
    make_card,
)
from kdcal_core.calibration.fitting import Calibrated, calibrated, check_layer, layer_inputs
from kdcal_core.calibration.graph.estimator import (
    KernelDensityEstimator,
    estimator_from_parts,
    estimator_parts,
)
from kdcal_core.data import FloatArray, as_pandas
from kdcal_core.errors import InputError, warn
from kdcal_core.models import Features, HasLayers, Model, load_model, wrap_model
from kdcal_core.models.file_marks import refuse_other_model
from kdcal_core.models.protocol import file_digest
from kdcal_core.store import storable_class
from kdcal_core.store.archive import errors_name_file, read_archive, write_archive
from kdcal_core.store.estimators import EstimatorDescriber, EstimatorMaker, demand
from kdcal_core.text import and_more, listed

_SHRINKAGE = "shrinkage"
_REGIONS = "kdcal_core.calibration.regions"  # imported only for files with its classes


class Encoder(EstimatorDescriber):
    """Describes one calibrator and collects its arrays and records.

    Attributes
    ----------
    shrinks : bool
        Whether it described a calibrator with shrinkage, which older versions of kdcal cannot read.
    """

    word: ClassVar[str] = "calibrator"
    base: ClassVar[type[Any]] = Calibrator

    def __init__(self) -> None:
        super().__init__()
        self.shrinks = False

    def parameters(self, estimator: Any) -> dict[str, Any]:
        parameters = super().parameters(estimator)
        if parameters.get(_SHRINKAGE) is None:
            parameters.pop(_SHRINKAGE, None)
        else:
            self.shrinks = True
        return parameters

    def other(self, value: Any) -> dict[str, Any]:
        if isinstance(value, KernelDensityEstimator):
            return {"estimator": self._estimator(value)}
        return super().other(value)

    def _estimator(self, estimator: KernelDensityEstimator) -> dict[str, Any]:
        about, arrays = estimator_parts(estimator)
        return {
            "class": type(estimator).__name__,
            "about": about,
            "arrays": {name: self.array(array) for name, array in arrays.items()},
        }


class Decoder(EstimatorMaker):
    """Rebuilds the calibrator that an :class:`Encoder` described.

    Parameters
    ----------
    arrays, records
        As in the encoder.
    model : Model, optional
        The model, for a kernel density estimator.
    """

    word: ClassVar[str] = "calibrator"
    base: ClassVar[type[Any]] = Calibrator

    def __init__(
        self, arrays: Mapping[str, NDArray[Any]], records: list[Any], model: Any = None
    ) -> None:
        self._model = model
        super().__init__(arrays, records, _REGIONS)

    def parameters(self, cls: type[Any], given: dict[str, Any]) -> dict[str, Any]:
        return {_SHRINKAGE: None, **given} if _SHRINKAGE in cls._get_param_names() else given

    def other(self, kind: str, content: Any) -> Any:
        return self._estimator(content) if kind == "estimator" else super().other(kind, content)

    def _estimator(self, record: Mapping[str, Any]) -> Any:
        if self._model is None:
            raise InputError(
                "This calibrator needs the model itself, and no model was given",
                fix="Load it with model=load_model(...), or give --model.",
            )
        cls = storable_class(record["class"], KernelDensityEstimator)
        arrays = {name: self.array(at) for name, at in record["arrays"].items()}
        return estimator_from_parts(cls, record["about"], arrays, self._model)


KIND = "calibrator"
VERSION = 3
_OF_OUTPUTS = 2  # without shrinkage
_PLAIN = 1  # and without a layer and outputs
_SHOWN = 8  # names of columns in an error


@dataclass(frozen=True, eq=False)
class LoadedCalibrator:
    """A calibrator read from a file.

    Attributes
    ----------
    calibrator : Calibrator
    card : CalibratorCard
    model : Model or None
        The open model, where it was given.
    unchecked : str
        Why it could not be checked that the model is the calibrated one; empty if it was checked or
        no check is needed. Untrusted text.
    """

    calibrator: Calibrator
    card: CalibratorCard
    model: Model | None = None
    unchecked: str = ""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns of rows that it reads beside the model's probabilities. Untrusted text."""
        return self.card.features if self.calibrator.needs_inputs else ()

    def score_rows(self, X: Features) -> Calibrated:
        """Apply the model to rows and calibrate its probabilities.

        Parameters
        ----------
        X : data frame or (n, d) array
            The columns that the model and the calibrator read, by name; an array must have the
            columns of the fit, ``card.features``, in their order.

        Returns
        -------
        Calibrated
            ``proba`` (n, K), ``predicted`` (n,) in 0 to K - 1, ``confidence`` (n,).

        Raises
        ------
        InputError
            The calibrator was loaded without its model, or columns are missing.
        """
        if self.model is None:
            raise InputError(
                "The calibrator was loaded without its model",
                fix="Load it with load_calibrator(path, model=...).",
            )
        frame = self._table(X, self.card.features)
        # columns that only the calibrator reads come after the model's
        names = self.model.feature_names or self.card.features[: self.model.n_features]
        return self.calibrated(self.model.predict_proba(self._named(frame, names)), frame)

    def predict_proba(self, proba: Any, X: Features | None = None) -> FloatArray:
        """Calibrated probabilities, (n, K), rows summing to one.

        Parameters
        ----------
        proba : (n, K) array or data frame, or (n,)
            The model's probabilities, columns in the order of ``card.classes`` or named so; a
            single column is that of the second of two classes.
        X : data frame or array of n rows, optional
            The columns ``card.features``, where there are any; others are ignored. An array must
            have these columns in their order. A calibrator of a hidden layer (``card.layer``) gets
            the rows' activations from the model. If it was loaded without the model, X must hold
            them in columns "unit 1", "unit 2", ..., as made by
            :func:`~kdcal_core.calibration.regions.layer_frame`.

        Raises
        ------
        InputError
            The values are not probabilities, or columns are missing.

        Warns
        -----
        InputWarning
            If it cannot be checked that the probabilities are from the calibrated model.
        """
        return self.calibrated(proba, X).proba

    def predict_confidence(self, proba: Any, X: Features | None = None) -> FloatArray:
        """Calibrated probability of the predicted class, (n,) in [0, 1]."""
        return self.calibrated(proba, X).confidence

    def calibrated(self, proba: Any, X: Features | None = None) -> Calibrated:
        """Probabilities, predicted class and its confidence; arguments as above."""
        if self.unchecked:
            warn(self.unchecked, stacklevel=3)
        proba = self.calibrator._checked(proba, self.card.classes)
        return calibrated(self.calibrator, proba, self._inputs(X))

    def check_model(self, digest: str) -> None:
        """Refuse any model but the calibrated one.

        Parameters
        ----------
        digest : str
            SHA-256 of the model's file, as in :attr:`kdcal_core.models.ModelInfo.digest`.

        Raises
        ------
        InputError
            If it is another model. If only predictions were known at the fit, every model is
            accepted.
        """
        refuse_other_model(self.card.model, digest)

    def _inputs(self, X: Features | None) -> pd.DataFrame | None:
        if X is None or not self.calibrator.needs_inputs:
            return None
        units: tuple[str, ...] = getattr(self.calibrator, "columns_", ())
        layer = self.card.layer
        if layer is not None and self.model is None:
            return self._activations(self._table(X, units), units, layer)
        frame = self._named(self._table(X, self.card.features), self.card.features)
        return frame if layer is None else layer_inputs(self.model, frame, layer)

    def _activations(self, X: pd.DataFrame, units: tuple[str, ...], layer: str) -> pd.DataFrame:
        if not set(units) <= set(X.columns):
            raise InputError(
                f"The calibrator reads the model's hidden layer {layer[:80]!r}, and no model was "
                "given",
                fix="Load it with model=..., or give the layer's activations: columns 'unit 1', "
                "'unit 2', and so on.",
            )
        return X

    def _table(self, X: Features, names: tuple[str, ...]) -> pd.DataFrame:
        """The rows with named columns; an array must have those of the fit in their order."""
        X = as_pandas(X)
        if isinstance(X, pd.DataFrame):
            return X
        values = np.asarray(X)
        if values.ndim != 2 or (names and values.shape[1] != len(names)):
            shown = listed(names, _SHOWN)
            raise InputError(
                f"The rows have the shape {values.shape}, and the calibrator was fitted with "
                f"{len(names):,} columns",
                fix=f"Give an array with these columns in this order: {shown}; or a data frame.",
            )
        return pd.DataFrame(values, columns=list(names) or None)

    def _named(self, X: pd.DataFrame, names: tuple[str, ...]) -> pd.DataFrame:
        present = set(X.columns)
        lacking = [name for name in names if name not in present]
        if lacking:
            raise InputError(
                f"The table lacks a column that the calibrator reads{and_more(len(lacking) - 1)}",
                fix=f"It reads {len(names):,} columns; name them as at its fit.",
                column=lacking[0],
            )
        return X[list(names)] if names else X


def save_calibrator(
    calibrator: Calibrator, path: str | Path, card: CalibratorCard | None = None
) -> None:
    """Write a fitted calibrator and its card into one sealed file, without pickle.

    The same calibrator and card give the same bytes. The file appears whole or not at all.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    path : str or Path
    card : CalibratorCard, optional
        See :func:`make_card`; by default one without model and data, which names the classes as
        the fit did.

    Raises
    ------
    InputError
        The folder does not exist, or the calibrator is not fitted.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from kdcal_core.calibration import TopLabelConfidence
    >>> fitted = TopLabelConfidence(shrinkage=None)
    >>> fitted = fitted.fit([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]], ["no", "yes", "yes"])
    >>> with TemporaryDirectory() as folder:
    ...     save_calibrator(fitted, Path(folder) / "mine.kdcal")
    ...     loaded = load_calibrator(Path(folder) / "mine.kdcal")
    >>> loaded.predict_confidence([[0.6, 0.4]]).tolist(), loaded.card.classes
    ([0.5], ('no', 'yes'))
    """
    calibrator.check_state()
    if card is None:
        classes = tuple(map(str, calibrator.classes_))
        columns = getattr(calibrator, "columns_", ())
        card = make_card(key_of(calibrator), calibrator, classes=classes, data={}, features=columns)
    _check_classes(calibrator, card)
    encoder = Encoder()
    encoded = encoder.estimator(calibrator)
    about = {"card": card_to_json(card), "calibrator": encoded, "records": encoder.records}
    version = _PLAIN if card.layer is None and not card.outputs else _OF_OUTPUTS
    if encoder.shrinks:
        version = VERSION
    write_archive(path, KIND, about, encoder.arrays, version=version)


def load_calibrator(
    path: str | Path,
    *,
    model: str | Path | Model | None = None,
    any_model: bool = False,
) -> LoadedCalibrator:
    """Read a calibrator file, in which nothing is run and every part is checked before use.

    Parameters
    ----------
    path : str or Path
    model : str, Path or Model, optional
        The model's file, or the result of :func:`kdcal_core.load_model`. Any model but the
        calibrated one is refused. A fitted model in memory is accepted as in
        :func:`kdcal_core.wrap_model`; its identity cannot be checked.
    any_model : bool
        Whether to accept another model, or no model, without an error or a warning.

    Raises
    ------
    InputError
        If the file is missing, cut off, altered, of another kind or of a newer version, contradicts
        itself, needs a model that is not given, or belongs to another model.

    Examples
    --------
    >>> load_calibrator("no-such-file.kdcal")
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: The saved file cannot be opened (file 'no-such-file.kdcal'). ...
    """
    given = None if model is None else _opened(model)
    about, arrays = read_archive(path, KIND, newest=VERSION, sealed=True)
    with errors_name_file(path):
        card = card_from_json(about["card"])
        # before the calibrator uses the model
        unchecked = "" if any_model else _checked(card, given)
        calibrator = Decoder(arrays, about["records"], given).estimator(about["calibrator"])
        _check_classes(calibrator, card)
    if card.layer is not None:
        _check_layer(calibrator, card.layer, given, Path(path).name)
    return LoadedCalibrator(calibrator, card, given, unchecked)


def _opened(model: str | Path | Model) -> Model:
    if isinstance(model, str | Path):
        return load_model(model, task="classification")
    return wrap_model(model, task="classification")


def _checked(card: CalibratorCard, model: Model | None) -> str:
    """Refuse any model but the card's; return why it could not be checked, or ""."""
    if card.model is None:
        return ""
    name = f"{card.model.name[:80]!r} (SHA-256 {card.model.digest[:12]}...)"
    if model is None:
        return (
            f"The calibrator was fitted for the model {name}, and it cannot be checked that these "
            "probabilities are of that model. Load it with load_calibrator(path, model=...), which "
            "refuses any other."
        )
    digest = file_digest(model)
    if digest is None:
        return (
            f"The calibrator was fitted for the model {name}, and a model that was not loaded from "
            "a file cannot be checked against it. Load it with load_calibrator(path, "
            "model='the model file')."
        )
    refuse_other_model(card.model, digest)
    return ""


def _check_layer(calibrator: Calibrator, layer: str, model: Model | None, file: str) -> None:
    """Refuse a file whose calibrator reads no layer, or a model without the layer."""
    with errors_name_file(file):
        check_layer(calibrator)
        units = getattr(calibrator, "columns_", ())
        demand(units == tuple(f"unit {i + 1}" for i in range(len(units))), "the units")
    layers = model.layers if isinstance(model, HasLayers) else ()
    if model is not None and layer not in layers:
        raise InputError(
            f"The calibrator reads the hidden layer {layer[:80]!r}, which this model does not have",
            fix="Give the model that it was fitted for, or fit a calibrator for this one.",
            file=file,
        )


def _check_classes(calibrator: Calibrator, card: CalibratorCard) -> None:
    if len(card.classes) != calibrator.n_classes_ or len(set(card.classes)) < len(card.classes):
        raise InputError(
            f"The card names {len(card.classes):,} classes, and the calibrator was fitted for "
            f"{calibrator.n_classes_:,}",
            fix="Name each class once, in the order of the probability columns.",
        )
