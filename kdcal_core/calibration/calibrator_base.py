"""The common part of calibrators: checks of inputs and of saved state, classes, full vectors.

Fitted state from a file is checked, so that predicting with it is safe.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.validation import check_is_fitted

from kdcal_core.data import (
    FloatArray,
    IntArray,
    check_columns,
    check_labels,
    check_rows,
    check_weight,
    column_names,
    encode_labels,
    is_text,
)
from kdcal_core.errors import InputError, warn
from kdcal_core.statistics import CLIP, Dependence, dependence_of, design_effect
from kdcal_core.store.estimators import demand

if TYPE_CHECKING:
    from kdcal_core.calibration.export.onnx_nodes import Nodes


CORNERS_AT_SCORES = (
    "its steps lie exactly at the scores of the calibration rows, where rounding in another "
    "runtime would decide on which side a row falls"
)
"""Why some step functions cannot be written in ONNX."""
# Rows for each fitted number.
ROWS_PER_PARAMETER = 10


class Calibrator(BaseEstimator, metaclass=ABCMeta):
    """Base class of all classification calibrators.

    Most have ``fit(proba, y, sample_weight=None)`` and ``predict_proba(proba)``, which returns (n,
    K) rows that sum to one. Those with ``needs_inputs`` also read the rows' features: ``fit(proba,
    y, X, sample_weight=None)`` and ``predict_proba(proba, X)``.
    :func:`kdcal_core.calibration.fit_calibrator` and :func:`kdcal_core.calibration.calibrated`
    handle both kinds.

    All fitted state is in attributes whose names end with an underscore. Each holds None, a bool,
    an int, a float, a str, an array, a frozen dataclass of these, a nested calibrator, or a tuple
    or str-keyed dict of these; parameters are JSON values. A calibrator can therefore be written to
    a file without pickle and read back (:meth:`check_state`).

    Attributes
    ----------
    needs_inputs : bool
        Class attribute: whether ``fit`` and ``predict_proba`` take the features X.
    keeps_prediction : bool
        Class attribute: whether the predicted class stays the model's, even where another entry of
        the calibrated vector is larger (Salamon et al., section XI).
    n_classes_ : int
        Number of probability columns K.
    labels_ : tuple of K str
        The classes, if ``y`` was text. ``classes_`` gives them as an array.
    column_names_ : tuple of K str
        Names of the columns of probabilities, if they were others.
    notes_ : tuple of str
        Notes on this fit for the user, as sentences. They name classes where
        :func:`~kdcal_core.calibration.fit_calibrator` knows the names, or else give the column
        index, counted from 0.
    """

    needs_inputs: ClassVar[bool] = False
    keeps_prediction: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    n_classes_: int
    labels_: tuple[str, ...]
    column_names_: tuple[str, ...]
    notes_: tuple[str, ...]
    _class_names: tuple[str, ...] | None = None
    _why_no_onnx: ClassVar[str | None] = "kdcal does not know how to write it"

    def why_no_onnx(self) -> str | None:
        """Why it cannot be written in ONNX, as part of a sentence; None if it can.

        Examples
        --------
        >>> from kdcal_core.calibration import TopLabelHistogram
        >>> TopLabelHistogram().why_no_onnx()
        >>> TopLabelHistogram(strategy="quantile").why_no_onnx()[:13]
        'its steps lie'
        """
        return self._why_no_onnx

    def onnx_nodes(self, nodes: Nodes, proba: str) -> str:
        """Append the computation of a fitted calibrator to the nodes of an ONNX graph.

        Parameters
        ----------
        nodes : Nodes
        proba : str
            The tensor of the model's probabilities, (n, K) double.

        Returns
        -------
        str
            The tensor of the calibrated probabilities, (n, K) double.
        """
        raise NotImplementedError(self._why_no_onnx)

    def _validate_params(self) -> None:
        super()._validate_params()
        for name, constraints in self._parameter_constraints.items():
            value = getattr(self, name)
            if isinstance(value, (bool, np.bool_)) and "boolean" not in constraints:
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} is neither True nor False. "
                    f"Got {value!r} instead."
                )

    def check_state(self) -> None:
        """Refuse fitted state that contradicts itself, as in a damaged file.

        Afterwards every ``predict`` stays within its arrays. Subclasses check what they add.

        Raises
        ------
        InputError
            If an attribute is missing, or does not have the kind, shape or range of a fit.
        """
        n_classes, notes = getattr(self, "n_classes_", None), getattr(self, "notes_", None)
        demand(type(n_classes) is int and n_classes >= 2, "the number of classes")
        demand(
            isinstance(notes, tuple) and all(isinstance(note, str) for note in notes), "the notes"
        )
        for name in ("labels_", "column_names_"):
            names = getattr(self, name, None)
            known = isinstance(names, tuple) and all(isinstance(one, str) for one in names)
            demand(names is None or (known and len(set(names)) == len(names) == n_classes), name)

    @property
    def classes_(self) -> NDArray[Any]:
        """The K labels in the order of the columns: the text of the fit, or the column indices."""
        check_is_fitted(self, "n_classes_")
        labels = getattr(self, "labels_", None)
        return np.arange(self.n_classes_) if labels is None else np.array(labels)

    def _learnt(self, proba: Any, y: Any) -> tuple[FloatArray, IntArray]:
        """The checked rows of a fit, whose names of classes and columns are kept."""
        for name in ("labels_", "column_names_"):
            self.__dict__.pop(name, None)  # from an earlier fit
        stated, true, labels = check_rows(proba, y)
        names, n_classes = column_names(proba), stated.shape[1]
        if labels is not None:
            self.labels_ = labels
        others = set(names or ()) - set(labels or map(str, range(n_classes)))
        if names is not None and others and len(set(names)) == len(names) == n_classes:
            self.column_names_ = names
        return stated, true

    def _labels_of(self, y: Any, n_rows: int | None = None) -> IntArray:
        """Classes of further rows, as the labels of the fit or as column indices."""
        known = getattr(self, "labels_", None)
        if known is None and is_text(y):
            raise InputError(
                "Further rows name classes, and the labels of the calibration rows are numbers",
                fix="Give both as names, or both as column indices.",
            )
        given = y if known is None else encode_labels(y, known)
        return check_labels(given, self.n_classes_, n_rows=n_rows)

    def _checked(self, proba: Any, *orders: tuple[str, ...]) -> FloatArray:
        """Checked probabilities, whose columns are in the order of the fit."""
        check_is_fitted(self, "n_classes_")
        known = (getattr(self, name, None) for name in ("column_names_", "labels_"))
        return check_columns(proba, *known, *orders, n_classes=self.n_classes_)

    def rows_needed(self, n_classes: int) -> int:
        """Fewest calibration rows for a useful fit; with fewer rows a note reports this number.

        Ten rows for each fitted number. A curve without parameters needs so many that its error
        equals that of Platt's map of two classes on 20 rows, as measured on over-confident scores;
        0 where nothing is fitted.

        Parameters
        ----------
        n_classes : int
            Number of probability columns, K.
        """
        return 0

    def few_rows(self, n_rows: int) -> str | None:
        """A note on too few calibration rows; None if there are enough.

        Examples
        --------
        >>> from kdcal_core.calibration import PlattScaling
        >>> PlattScaling().fit([[0.9, 0.1], [0.2, 0.8]], [0, 1]).few_rows(2)
        '2 rows are few for this calibrator; at least about 20 would do.'
        """
        needed = self.rows_needed(self.n_classes_)
        if n_rows >= needed:
            return None
        rows = "1 row is" if n_rows == 1 else f"{n_rows:,} rows are"
        return f"{rows} few for this calibrator; at least about {needed:,} would do."

    def unseen(self, X: pd.DataFrame) -> dict[str, int]:
        """Number of rows with a category that the fit did not see, for each column that has any.

        Parameters
        ----------
        X : pandas.DataFrame
            As for ``predict_proba``.
        """
        return {}

    def _class(self, label: int) -> str:
        """The name of the class in notes."""
        names = self._class_names
        return f"Class {label if names is None else names[label][:60]}"

    def _note_few(self, n_rows: int) -> None:
        if (sentence := self.few_rows(n_rows)) is not None:
            self._note(sentence)

    def _note(self, sentence: str, *, warns: bool = False) -> None:
        """Store a note for the user, who is warned if a number differs from the requested one."""
        self.notes_ = (*self.notes_, sentence)
        if warns:
            warn(sentence, stacklevel=2)


def fit_effect(
    proba: FloatArray, y: IntArray, weight: FloatArray, dependence: Dependence | None
) -> float:
    """How many times fewer rows dependent rows count for in a fit, at least 1.

    It is the design effect of how far the model's confidence misses: 20 equal rows of each patient
    count as one, and rows of a centre that have nothing in common count in full.

    Examples
    --------
    >>> proba, y = np.tile([0.5, 0.5], (100, 1)), np.repeat(np.tile([0, 1], 10), 5)
    >>> patients = Dependence.of("cluster", np.repeat(np.arange(20), 5))
    >>> fit_effect(proba, y, np.ones(100), None)
    1.0
    >>> bool(5.0 <= fit_effect(proba, y, np.ones(100), patients) < 6.0)
    True
    """
    if dependence is None:
        return 1.0
    predicted, score = top_label(proba)
    missed = (predicted == y) - score
    share = weight / weight.sum()
    return max(1.0, design_effect(missed - share @ missed, weight, dependence))


class TopLabelCalibrator(Calibrator):
    """Estimates how often the predicted class is right, given the model's probabilities.

    Subclasses implement ``_fit(proba, y, weight)`` and ``_confidence(proba)`` on checked
    arrays.
    """

    keeps_prediction: ClassVar[bool] = True
    _dependence: Dependence | None = None  # of the rows of a fit, while it lasts
    _class_notes: Mapping[int, tuple[str, ...]] = MappingProxyType({})

    def fit(self, proba: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit on the calibration set.

        Parameters
        ----------
        proba : (n, K) array or data frame, or (n,)
            The model's probabilities; rows sum to one. A single column is the probability of the
            second of two classes. Columns named as the classes may stand in any order.
        y : (n,) array of int or str
            True classes as column indices, 0 to K - 1, or by name. Columns are in the order in
            which `numpy.unique` sorts the names.
        sample_weight : (n,) array or RowDesign, optional
            Positive row weights, with or without the dependence of the rows. Rows of a cluster are
            then on one side of each fold, and count as far as they say something new.

        Raises
        ------
        InputError
            If an array does not have this form; the message names the row.
        """
        self._validate_params()
        proba, y = self._learnt(proba, y)
        weight = check_weight(sample_weight, proba.shape[0])
        self.n_classes_ = proba.shape[1]
        self.notes_, self._class_notes = (), {}
        self._dependence = dependence_of(sample_weight)
        try:
            effect = fit_effect(proba, y, weight, self._dependence)
            self._fit(proba, y, self._counted(weight, effect))
        finally:
            self._dependence = None
        self._note_few(len(y))
        return self

    def predict_confidence(self, proba: Any) -> FloatArray:
        """Calibrated probability that the predicted (largest) class is right, (n,) in [0, 1]."""
        return np.clip(self._confidence(self._checked(proba)), 0.0, 1.0)

    def predict_proba(self, proba: Any) -> FloatArray:
        """Full vectors, (n, K), with the confidence at the predicted class; rows sum to one.

        The other entries are the model's, scaled so that the sum is one; calibrators that change
        the whole vector say so. The predicted class stays the model's, even where its calibrated
        probability is no longer the largest (Salamon et al., section XI).
        """
        return self._vectors(self._checked(proba))

    @property
    def follows_score(self) -> bool:
        """Whether a fitted confidence depends only on the predicted class and its score."""
        return True

    def _counted(self, weight: FloatArray, effect: float) -> FloatArray:
        """The number of rows that each row counts as in the fit; ``effect`` is `fit_effect`."""
        return weight

    @abstractmethod
    def _fit(self, proba: FloatArray, y: IntArray, weight: FloatArray) -> None: ...

    def _note_class(self, label: int, words: str, *, warns: bool = False) -> None:
        """Store the words after a class's name as a note of the fit and of the class."""
        self._class_notes = {**self._class_notes, label: (*self.notes_of(label), words)}
        self._note(f"{self._class(label)}{words}", warns=warns)

    def notes_of(self, label: int) -> tuple[str, ...]:
        """The notes on one class, each without the class's name.

        Empty without notes, and for a calibrator from a file.

        Parameters
        ----------
        label : int
            Column of the class, 0 to K - 1.

        Examples
        --------
        >>> import warnings
        >>> from kdcal_core.calibration import TopLabelConfidence
        >>> calibrator = TopLabelConfidence()
        >>> with warnings.catch_warnings(action="ignore"):
        ...     _ = calibrator.fit([[0.9, 0.1], [0.8, 0.2]], [0, 0])
        >>> calibrator.notes_of(1)[0].split(":")[0]
        ' is never predicted in the calibration set'
        """
        return self._class_notes.get(label, ())

    @abstractmethod
    def _confidence(self, proba: FloatArray) -> FloatArray: ...

    def _vectors(self, proba: FloatArray) -> FloatArray:
        return spread(proba, np.clip(self._confidence(proba), 0.0, 1.0))

    def _class_confidence(
        self, predicted: IntArray, correct: FloatArray, weight: FloatArray
    ) -> FloatArray:
        """Conf1 of every class (Salamon et al., Eq. 1), (K,); the accuracy if never predicted."""
        n_classes = self.n_classes_
        positive = np.bincount(predicted, weights=weight, minlength=n_classes)
        right = np.bincount(predicted, weights=weight * correct, minlength=n_classes)
        overall = right.sum() / positive.sum()
        seen = positive > 0
        for label in np.flatnonzero(~seen):
            instead = f"the overall accuracy {overall:.3f} is used as its confidence"
            if getattr(self, "shrinkage", None) is not None:
                instead = "the shared temperature is used for it"
            self._note_class(
                int(label),
                f" is never predicted in the calibration set: {instead}.",
                warns=True,
            )
        return np.where(seen, right / np.where(seen, positive, 1.0), overall)


class VectorCalibrator(TopLabelCalibrator):
    """A calibrator that computes a full vector, of which the confidence is one entry.

    ``predict_proba`` returns that vector, and ``predict_confidence`` its entry at the class the
    model predicted. The calibrator alone predicts the class of the largest entry.
    """

    keeps_prediction: ClassVar[bool] = False

    @property
    def follows_score(self) -> bool:
        return self.n_classes_ == 2

    def _confidence(self, proba: FloatArray) -> FloatArray:
        predicted, _ = top_label(proba)
        return self._vectors(proba)[np.arange(len(proba)), predicted]

    @abstractmethod
    def _vectors(self, proba: FloatArray) -> FloatArray: ...

    def _note_absent(self, y: IntArray) -> None:
        """Note the classes without calibration rows."""
        counts = np.bincount(y, minlength=self.n_classes_)
        for label in np.flatnonzero(counts == 0):
            self._note(
                f"{self._class(int(label))} does not occur among the calibration rows: its "
                "probability is a guess that it is rare.",
                warns=True,
            )


def n_maps(n_classes: int) -> int:
    """Number of maps of one class against the rest: one with two classes, else one for each."""
    return 1 if n_classes == 2 else n_classes


def top_label(proba: FloatArray) -> tuple[IntArray, FloatArray]:
    """Predicted class (the first of equal largest) and its probability, both (n,)."""
    predicted = np.argmax(proba, axis=1)
    return predicted, proba[np.arange(len(proba)), predicted]


def log_proba(proba: FloatArray) -> FloatArray:
    """Log probabilities, (n, K), clipped at 1e-12."""
    logs: FloatArray = np.log(np.maximum(proba, CLIP))
    return logs


def softmax_in_place(logits: FloatArray) -> FloatArray:
    """Rows that sum to one, in the memory of the logits."""
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


def rows_by_class(predicted: IntArray, n_classes: int) -> Iterator[tuple[int, IntArray]]:
    """Each predicted class with the rows that predict it, in ascending order."""
    small = predicted.astype(np.int16) if n_classes < 2**15 else predicted
    order = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(predicted, minlength=n_classes))
    for label, rows in enumerate(np.split(order, ends[:-1])):
        if len(rows):
            yield label, rows


def spread(
    proba: FloatArray, confidence: FloatArray, predicted: IntArray | None = None
) -> FloatArray:
    """Set the predicted class to ``confidence`` and scale the other entries to sum to the rest.

    Where the others are all zero, they share the rest equally. By default the predicted class is
    that of the largest entry.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.array([[0.6, 0.3, 0.1]]), np.array([0.8])).round(3).tolist()
    [[0.8, 0.15, 0.05]]
    """
    if predicted is None:
        predicted, _ = top_label(proba)
    rows = np.arange(len(proba))
    others = proba.copy()
    others[rows, predicted] = 0.0
    rest = others.sum(axis=1)
    some = rest > 0
    scale = np.divide(1.0 - confidence, rest, out=np.zeros_like(rest), where=some)
    full: FloatArray = others * scale[:, None]
    full[~some] = ((1.0 - confidence[~some]) / (proba.shape[1] - 1))[:, None]
    full[rows, predicted] = confidence
    return full
