"""Rows of a fit, and the location of rows in a model's partition.

Fit rows have labels. Some are held out, and a warning names rows that are in both parts. Rows are
located by their codes, coordinates and polytopes. Codes come from the leaves of trees or the
activations of a network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from kdcal_core.calibration.graph.gaussians import Located
from kdcal_core.data import FloatArray, IntArray, as_pandas, encode_labels
from kdcal_core.data.array_checks import check_labels
from kdcal_core.data.equal_rows import are_fine, equal_rows, row_keys
from kdcal_core.data.frames import refuse_sparse
from kdcal_core.errors import InputError, warn
from kdcal_core.models import (
    Features,
    HasCodes,
    HasHead,
    HasLogits,
    Model,
    NamesActivations,
)
from kdcal_core.models.coordinates import Coordinates, Scale, fit_coordinates
from kdcal_core.models.features import select_columns
from kdcal_core.partition import (
    ActivationCodes,
    Codes,
    LeafCodes,
    find_polytopes,
    nearest_centres,
    nearest_polytopes,
    rows_of,
)
from kdcal_core.progress import Progress
from kdcal_core.statistics import Dependence, only
from kdcal_core.text import listed

_HARM = "this biases gamma and the floor in favour of the model; hold out separate rows"


@dataclass(frozen=True, eq=False)
class FitRows:
    """Labelled rows with their codes, so that the model is evaluated once.

    Attributes
    ----------
    X : table of n rows
    y : (n,) int64
        Indices into the model's classes.
    codes : codes of the rows
    dependence : Dependence, optional
    weight : (n,) array, optional
        Positive weights; None where all are equal.
    """

    X: Any
    y: IntArray
    codes: Codes
    dependence: Dependence | None = None
    weight: FloatArray | None = None

    def sample(self, most: int, seed: Any) -> FitRows:
        """A sample of about at most this many rows, stratified by class."""
        if len(self.y) <= most:
            return self
        return self.part(split_off(self.y, most / len(self.y), seed, self.dependence))

    def part(self, mask: NDArray[np.bool_]) -> FitRows:
        """The rows in a mask, (n,)."""
        return FitRows(
            take(self.X, mask),
            self.y[mask],
            rows_of(self.codes, mask),
            only(self.dependence, mask),
            None if self.weight is None else self.weight[mask],
        )

    def without_output_layer(self) -> FitRows:
        """The rows with a network's codes without the last layer."""
        assert isinstance(self.codes, ActivationCodes)
        words = self.codes.words[:, : self.codes.layer_slices()[-1].start]
        kept = ActivationCodes(np.ascontiguousarray(words), self.codes.layer_widths[:-1])
        return replace(self, codes=kept)


def own_columns(X: Any, model: Model) -> Any:
    """The model's columns of a data frame; anything else as an array.

    Other columns of a frame, such as the label or a key, must not make copies of a row differ or be
    written to a saved file.
    """
    X = as_pandas(X)
    if not isinstance(X, pd.DataFrame):
        refuse_sparse(X)
        return np.asarray(X)
    return select_columns(X, n_features=model.n_features, feature_names=model.feature_names)


def take(X: Features, rows: NDArray[Any]) -> Any:
    """Rows of a table by position."""
    return _safe_indexing(X, rows)


def class_indices(y: Any, classes: Sequence[str], n_rows: int) -> IntArray:
    """Labels as indices into the model's classes, (n,).

    Labels are matched by name or number as in :func:`kdcal_core.data.encode_labels`. If no class
    name is a number, whole numbers are indices.

    Raises
    ------
    InputError
        If a label is missing or unknown, or the number of labels differs from that of rows.

    Examples
    --------
    >>> class_indices([1.0, 0.0], ("0", "1"), 2), class_indices([1, 0], ("no", "yes"), 2)
    (array([1, 0]), array([1, 0]))
    """
    y = as_pandas(y)
    values = np.asarray(y) if not isinstance(y, pd.Series) else y
    if values.ndim != 1:
        raise InputError(
            f"The labels have shape {values.shape}, not one column",
            fix="Give one label for each row.",
        )
    if len(values) != n_rows:
        raise InputError(
            f"There are {len(values):,} labels for {n_rows:,} rows",
            fix="Give one label for each row.",
        )
    if _are_indices(values) and not any(_is_number(name) for name in classes):
        return check_labels(values, len(classes))
    return encode_labels(values, classes)


def own_labels(y: Any, index: IntArray, classes: Sequence[str]) -> NDArray[Any]:
    """The classes in the form of the caller's labels, (K,), so that predictions match labels.

    A class without rows gets the same form if its name allows it; otherwise all classes are given
    by name.
    """
    values = np.asarray(y)
    present, first = np.unique(index, return_index=True)
    written = dict(zip(present.tolist(), values[first], strict=True))
    for at, name in enumerate(classes):
        if at not in written and _are_indices(values):
            written[at] = int(float(name)) if _is_number(name) else at
        elif at not in written and values.dtype.kind == "f" and _is_number(name):
            written[at] = float(name)
        elif at not in written and all(isinstance(label, str) for label in written.values()):
            written[at] = name
    if len(written) < len(classes):
        return np.array(classes)
    own = [written[at] for at in range(len(classes))]
    return np.array(own, dtype=None if values.dtype.kind in "US" else values.dtype)


def split_off(
    y: IntArray, share: float, seed: Any, dependence: Dependence | None = None
) -> NDArray[np.bool_]:
    """Mask of the rows to hold out, (n,), stratified by class; at least one of each is kept.

    Clusters stay whole: they are drawn in place of rows, each with the class of most of its rows.
    In time the last times are held out.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.repeat([0, 1], [10, 20])
    >>> int(split_off(y, 0.3, seed=0).sum())
    9
    >>> pairs = Dependence.of("cluster", np.arange(30) // 2)
    >>> held = split_off(y, 0.3, 0, pairs)
    >>> int(held.sum()), bool((held[::2] == held[1::2]).all())
    (10, True)
    """
    if dependence is None:
        return _drawn(y, share, seed)
    unit = dependence.present
    n = int(unit.max(initial=-1)) + 1
    if dependence.kind == "time":
        return np.asarray(unit >= n - min(round(share * n), n - 1))
    rows = np.zeros((n, int(y.max(initial=0)) + 1), dtype=np.int64)
    np.add.at(rows, (unit, y), 1)
    return _drawn(rows.argmax(axis=1), share, seed)[unit]


def _drawn(y: IntArray, share: float, seed: Any) -> NDArray[np.bool_]:
    """Mask of a share of the units of each class, (n,)."""
    n = len(y)
    order = np.lexsort((np.random.default_rng(seed).random(n), y))
    sizes = np.bincount(y)
    held = np.minimum(np.rint(sizes * share).astype(np.int64), np.maximum(sizes - 1, 0))
    starts = np.cumsum(sizes) - sizes
    rank = np.arange(n) - starts[y[order]]
    mask = np.zeros(n, dtype=bool)
    mask[order] = rank < held[y[order]]
    return mask


def warn_of_overlap(X: Features, y: IntArray, X_holdout: Features, y_holdout: IntArray) -> None:
    """Warn about held-out rows that equal fit rows, if there are more than by chance."""
    found = equal_rows(row_keys(X, y), row_keys(X_holdout, y_holdout), fine=are_fine(X, X_holdout))
    sentence = found.words("held-out set", "fit set", _HARM) if found.beyond_chance else None
    if sentence is not None:
        warn(sentence, stacklevel=4)


def warn_of_unseen_classes(y: IntArray, classes: Sequence[str], *, blends: bool) -> None:
    """Warn about classes without fit rows, whose probability is not learned from rows.

    Parameters
    ----------
    blends : bool
        Whether the model is blended in; these classes then keep its probabilities.
    """
    unseen = np.setdiff1d(np.arange(len(classes)), y)
    if not len(unseen):
        return
    named = listed(repr(classes[at][:40]) for at in unseen)
    inside = "stays the model's own" if blends else "is 0"
    warn(
        f"The rows of the fit have no row of class {named}: inside the data its probability "
        f"{inside}. Give rows of every class.",
        stacklevel=3,
    )


def _are_indices(values: Any) -> bool:
    return isinstance(values.dtype, np.dtype) and values.dtype.kind in "iu"


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def rows_to_json(rows: Features) -> dict[str, Any]:
    """Rows as JSON: a frame by columns, an array by columns without names."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(np.asarray(rows))
    columns = [[_plain(value) for value in column] for _, column in frame.items()]
    named = isinstance(rows, pd.DataFrame)
    return {"names": [str(name) for name in frame.columns] if named else None, "columns": columns}


def rows_from_json(record: Mapping[str, Any]) -> Features:
    """Rows from :func:`rows_to_json`; numbers are float64, a missing value is NaN or None.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> rows_from_json(rows_to_json(frame)).to_numpy(dtype=object).tolist()[0]
    [1.0, 'x']
    """
    columns = [_column(values) for values in record["columns"]]
    if record["names"] is not None:
        frame = pd.DataFrame(dict(enumerate(columns)))
        frame.columns = pd.Index([str(name) for name in record["names"]])
        return frame
    if all(column.dtype == np.float64 for column in columns):
        return np.column_stack(columns)
    return np.column_stack([column.astype(object) for column in columns])


def _plain(value: Any) -> Any:
    if pd.isna(value):
        return None
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, bool | str) else _number_or_text(plain)


def _number_or_text(value: Any) -> float | str:
    return float(value) if isinstance(value, int | float) else str(value)


def _column(values: list[Any]) -> NDArray[Any]:
    if any(isinstance(value, str | bool) for value in values):
        return np.array(values, dtype=object)
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


OutputLayer = Literal["probability", "logit", "exclude"]

_STILL_POSSIBLE = (
    "Its probabilities can still be calibrated, by temperature scaling, class by class or by "
    "isotonic regression; only confidence that falls back to the prior outside needs a partition: "
    "a decision tree, a forest, boosted trees, or a network with ReLU layers."
)


def partitioned(model: Model) -> HasCodes:
    """The model, if it has a partition.

    Raises
    ------
    InputError
        If it has no partition; the message says why and names alternatives.
    """
    if isinstance(model, HasCodes):
        return model
    others = other_activations(model)
    why = f": its activations are not ReLU ({', '.join(others)})" if others else ""
    raise InputError(
        f"This model ({model.kind}) does not divide its inputs into polytopes{why}",
        fix=_STILL_POSSIBLE,
    )


def other_activations(model: Model) -> tuple[str, ...]:
    """The activations of a network other than ReLU, layer by layer; untrusted text."""
    return model.other_activations if isinstance(model, NamesActivations) else ()


def partition_codes(model: Model, X: Features, output_layer: OutputLayer | None) -> Codes:
    """Leaves of the rows if ``output_layer`` is None, else activation bits."""
    if output_layer is None:
        return leaf_codes(model, X)
    return activation_codes(model, X, output_layer)


def leaf_codes(model: Model, X: Features) -> LeafCodes:
    """Leaves of the rows in each tree.

    Raises
    ------
    InputError
        If the model has no partition, or that of a network.
    """
    codes = partitioned(model).codes(X)
    if not isinstance(codes, LeafCodes):
        raise InputError(
            f"This model ({model.kind}) has no trees", fix="Use KernelDensityNetwork for it."
        )
    return codes


def activation_codes(model: Model, X: Features, output_layer: OutputLayer) -> ActivationCodes:
    """Activation bits of the rows in each layer, with those of the output if requested.

    For an encoder with a dense head, only the head's layers count (Dey et al., section 3.2). The
    output layer's bit for a class is 1 where its probability is above 1/K ("probability") or its
    logit above zero ("logit").

    Raises
    ------
    InputError
        If the model has no partition or that of a forest, or has no logits where they are
        requested.
    """
    owner = partitioned(model)
    codes = model.head_codes(X) if isinstance(model, HasHead) else owner.codes(X)
    if not isinstance(codes, ActivationCodes):
        raise InputError(
            f"This model ({model.kind}) has no activations",
            fix="Use KernelDensityForest for it.",
        )
    if output_layer == "exclude":
        return codes
    if output_layer == "probability":
        return codes.with_layer(model.predict_proba(X) > 1.0 / len(model.classes))
    if not isinstance(model, HasLogits):
        raise InputError(
            f"This model ({model.kind}) gives no logits",
            fix='Set output_layer to "probability" or "exclude".',
        )
    return codes.with_layer(model.logits(X) > 0.0)


def embedded(model: Model, X: Features) -> FloatArray | None:
    """Input of the dense head, (n, d), where the model is an encoder with a dense head."""
    return model.head_input(X) if isinstance(model, HasHead) else None


def warn_of_other_activations(model: Model) -> None:
    """Warn and return a note where a network's codes do not describe its whole partition."""
    others = other_activations(model)
    if others and isinstance(model, HasCodes) and not isinstance(model, HasHead):
        warn(
            f"Some activations of the network are not ReLU ({', '.join(others)}): the kernel "
            "counts its ReLU layers only.",
            stacklevel=4,
        )


Distance = Literal["geodesic", "euclidean"]


@dataclass(frozen=True, eq=False)
class Placement:
    """A model's partition with the polytopes that contain fit rows.

    Attributes
    ----------
    model : Model
    output_layer : {"probability", "logit", "exclude"} or None
        The part of a network's output in its codes; None for the leaves of a forest.
    coordinates : Coordinates
        Coordinates of the features, or of the input of the dense head after an encoder.
    polytopes : codes of the p polytopes
    distance : {"geodesic", "euclidean"}
    """

    model: Model
    output_layer: OutputLayer | None
    coordinates: Coordinates
    polytopes: Codes
    distance: Distance

    def codes(self, X: Any) -> Codes:
        """Codes of m rows."""
        return partition_codes(self.model, X, self.output_layer)

    def points(self, X: Any) -> FloatArray:
        """Coordinates of rows, (m, d)."""
        inner = embedded(self.model, X)
        return self.coordinates.transform(X if inner is None else inner)

    def locate(
        self,
        X: Any,
        centres: FloatArray,
        *,
        proba: FloatArray | None = None,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Located:
        """The nearest polytope of each row (Dey et al., Eq. 6); ``proba`` is passed on."""
        codes = None if self.distance == "euclidean" else self.codes(X)
        found = self.nearest(self.points(X), codes, centres, progress=progress, executor=executor)
        return replace(found, proba=proba)

    def nearest(
        self,
        x: FloatArray,
        codes: Codes | None,
        centres: FloatArray,
        *,
        progress: Progress | None = None,
        executor: Executor | None = None,
    ) -> Located:
        """The nearest polytopes; the Euclidean distance needs only the coordinates."""
        if codes is None or self.distance == "euclidean":
            found = nearest_centres(x, centres, progress=progress)
        else:
            found = nearest_polytopes(
                codes,
                self.polytopes,
                x,
                centres,
                progress=progress,
                executor=executor,
            )
        return Located(x, found.index, found.tied)


def place(
    model: Model,
    output_layer: OutputLayer | None,
    rows: FitRows,
    distance: Distance,
    *,
    scale: Scale,
) -> tuple[Placement, IntArray, FloatArray]:
    """The placement from fit rows, with their polytopes, (n,), and coordinates, (n, d)."""
    found = find_polytopes(rows.codes)
    inner = embedded(model, rows.X)
    if inner is None:
        coordinates = fit_coordinates(
            rows.X, n_features=model.n_features, feature_names=model.feature_names, scale=scale
        )
    else:
        coordinates = fit_coordinates(
            inner, n_features=inner.shape[1], feature_names=None, scale=scale
        )
    placement = Placement(model, output_layer, coordinates, found.codes, distance)
    return placement, found.index, coordinates.transform(rows.X if inner is None else inner)
