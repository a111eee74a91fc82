"""A fitted calibrator in one file: written, read back with suspicion, and asked.

Version 1 of the file is a sealed archive (:mod:`kdcal_core.calibration.archive`) of the kind
"calibrator". Its ``about.json`` holds the card under "card", the calibrator under "calibrator"
and the dataclasses of its state under "records", as :mod:`.codec` tells them.

A version 2 would raise ``VERSION``, and :func:`load_calibrator` would turn a description of
version 1 into today's before it is decoded, in one function from version to version; the reading
of the archive itself stays. Small files of version 1 stand in the tests, one for each family of
calibrators, and must stay readable for ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from kdcal_core.calibration.archive import read_archive, telling_contradictions, write_archive
from kdcal_core.calibration.base import Calibrator
from kdcal_core.calibration.files.card import CalibratorCard, card_from_json, card_to_json
from kdcal_core.calibration.files.codec import Decoder, Encoder
from kdcal_core.calibration.fitting import Calibrated, calibrated
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.parents import Parent

KIND = "calibrator"
VERSION = 1


@dataclass(frozen=True, eq=False)
class LoadedCalibrator:
    """A calibrator as it comes out of its file.

    Attributes
    ----------
    calibrator : Calibrator
    card : CalibratorCard
    """

    calibrator: Calibrator
    card: CalibratorCard

    def predict_proba(self, proba: Any, X: pd.DataFrame | None = None) -> FloatArray:
        """Calibrated probabilities, (n, K), rows summing to one.

        Parameters
        ----------
        proba : (n, K) array
            The parent's probabilities, columns in the order of ``card.classes``.
        X : pandas.DataFrame of n rows, optional
            The columns ``card.features``, where there are any; others are ignored.

        Raises
        ------
        InputError
            The probabilities are none, or columns are missing.
        """
        return self.calibrated(proba, X).proba

    def predict_confidence(self, proba: Any, X: pd.DataFrame | None = None) -> FloatArray:
        """Calibrated probability of the predicted class, (n,) in [0, 1]."""
        return self.calibrated(proba, X).confidence

    def calibrated(self, proba: Any, X: pd.DataFrame | None = None) -> Calibrated:
        """Probabilities, predicted class and its confidence; arguments as above."""
        return calibrated(self.calibrator, proba, self._inputs(X))

    def check_parent(self, digest: str) -> None:
        """Refuse another model than the one that was calibrated.

        Parameters
        ----------
        digest : str
            SHA-256 of the model's file, as :attr:`kdcal_core.parents.ParentInfo.digest` has it.

        Raises
        ------
        InputError
            It is another model. Where only predictions were known, none is refused.
        """
        parent = self.card.parent
        if parent is not None and parent.digest != digest:
            raise InputError(
                f"The calibrator belongs to the model {parent.name[:80]!r} with the SHA-256 "
                f"{parent.digest[:12]}..., and this model has {digest[:12]}...",
                fix="Give the model that it was fitted for, or fit a calibrator for this one.",
            )

    def _inputs(self, X: pd.DataFrame | None) -> pd.DataFrame | None:
        if X is None or not self.calibrator.needs_inputs or not self.card.features:
            return X
        present = set(X.columns)
        lacking = [name for name in self.card.features if name not in present]
        if lacking:
            more = f" and {len(lacking) - 1:,} more" if len(lacking) > 1 else ""
            raise InputError(
                f"The table lacks a column that the calibrator reads{more}",
                fix=f"It reads {len(self.card.features):,} columns; name them as at its fit.",
                column=lacking[0],
            )
        return X[list(self.card.features)]


def save_calibrator(calibrator: Calibrator, path: str | Path, card: CalibratorCard) -> None:
    """Write a fitted calibrator and its card into one sealed file, without pickle.

    The same calibrator and card give the same bytes. The file appears whole or not at all.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    path : str or Path
    card : CalibratorCard
        See :func:`make_card`.

    Raises
    ------
    InputError
        The folder does not exist, or the calibrator is not fitted.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from kdcal_core.calibration import TopLabelConfidence
    >>> from kdcal_core.calibration.files import make_card
    >>> fitted = TopLabelConfidence().fit([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9]], [0, 1, 1])
    >>> card = make_card("confidence", fitted, classes=("a", "b"), data={})
    >>> with TemporaryDirectory() as folder:
    ...     save_calibrator(fitted, Path(folder) / "mine.kdcal", card)
    ...     loaded = load_calibrator(Path(folder) / "mine.kdcal")
    >>> loaded.predict_confidence([[0.6, 0.4]]).tolist()
    [0.5]
    """
    calibrator.check_state()
    _check_classes(calibrator, card)
    encoder = Encoder()
    told = encoder.calibrator(calibrator)
    about = {"card": card_to_json(card), "calibrator": told, "records": encoder.records}
    write_archive(path, KIND, about, encoder.arrays, version=VERSION)


def load_calibrator(path: str | Path, *, parent: Parent | None = None) -> LoadedCalibrator:
    """Read a calibrator file. Nothing in it is run; every part is checked before it is used.

    Parameters
    ----------
    path : str or Path
    parent : Parent, optional
        The model, for a kernel density estimator, which asks it.

    Raises
    ------
    InputError
        The file is missing, cut off, altered, of another kind or of a newer version, contradicts
        itself, needs a model and got none, or belongs to another model.

    Examples
    --------
    >>> load_calibrator("no-such-file.kdcal")
    Traceback (most recent call last):
    ...
    kdcal_core.errors.InputError: The saved file cannot be opened (file 'no-such-file.kdcal'). ...
    """
    about, arrays = read_archive(path, KIND, newest=VERSION, sealed=True)
    with telling_contradictions(path):
        card = card_from_json(about["card"])
        calibrator = Decoder(arrays, about["records"], parent).calibrator(about["calibrator"])
        _check_classes(calibrator, card)
    return LoadedCalibrator(calibrator, card)


def _check_classes(calibrator: Calibrator, card: CalibratorCard) -> None:
    if len(card.classes) != calibrator.n_classes_ or len(set(card.classes)) < len(card.classes):
        raise InputError(
            f"The card names {len(card.classes):,} classes, and the calibrator was fitted for "
            f"{calibrator.n_classes_:,}",
            fix="Name each class once, in the order of the probability columns.",
        )
