"""Calibration region by region: Durfee et al.'s heterogeneous calibration.

This module holds the calibrator, the kinds of partitions by the name of the parameter
``partition``, and their inputs: a table with the columns of the fit, or the units of a hidden
layer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from kdcal_core.calibration.calibrator_base import CORNERS_AT_SCORES, Calibrator, fit_effect
from kdcal_core.calibration.calibrators import CalibratorEntry
from kdcal_core.calibration.regions.boosted import fit_boosted, nested
from kdcal_core.calibration.regions.column_partition import column_read, fit_columns, group_columns
from kdcal_core.calibration.regions.forest import averaged_in_blocks, fit_forest
from kdcal_core.calibration.regions.one_tree import fit_auc, fit_tree, min_rows_of
from kdcal_core.calibration.regions.region_layers import (
    MAPS,
    FitRows,
    Layer,
    PartitionKind,
    RegionFit,
    averaged,
)
from kdcal_core.data import FloatArray, IntArray, as_pandas, check_weight
from kdcal_core.errors import InputError
from kdcal_core.models import HasEmbedding, HasLayers
from kdcal_core.progress import Progress, silent
from kdcal_core.statistics import dependence_of
from kdcal_core.store import storable
from kdcal_core.store.estimators import demand


def input_table(X: Any, n: int, columns: tuple[str, ...] | None = None) -> pd.DataFrame:
    """The inputs as a table of n rows with the columns of the fit.

    The columns of an array are taken as those of the fit, in their order.
    """
    X = as_pandas(X)
    if isinstance(X, pd.DataFrame):
        frame = X
    else:
        values = np.asarray(X)
        if values.ndim != 2:
            raise InputError(
                f"The inputs must be a table (rows by columns), but have shape {values.shape}",
                fix="Give one row for each case and one column for each feature.",
            )
        width = values.shape[1]
        names = columns or tuple(f"column {i + 1}" for i in range(width))
        if len(names) != width:
            raise InputError(
                f"The inputs have {width:,} columns, and the calibrator was fitted with "
                f"{len(names):,}",
                fix="Give an array with the columns of the fit in their order, or a data frame.",
            )
        frame = pd.DataFrame(values, columns=list(names))
    if len(frame) != n:
        raise InputError(
            f"There are {len(frame):,} rows of inputs, but {n:,} rows of probabilities",
            fix="Give the inputs of the same rows in the same order.",
        )
    if columns is None or tuple(frame.columns) == columns:
        return frame
    places: dict[str, list[int]] = {}
    for place, name in enumerate(frame.columns):
        places.setdefault(str(name), []).append(place)
    for name in columns:
        found = len(places.get(name, ()))
        if found != 1:
            raise InputError(
                "Two columns of the inputs have one name"
                if found
                else "The inputs lack a column that the calibrator was fitted with",
                fix="Rename one of them." if found else "Give the same columns as at fit.",
                column=name,
            )
    return frame.iloc[:, [places[name][0] for name in columns]].set_axis(list(columns), axis=1)


def training_rows(
    X: Any, y: Any, like: pd.DataFrame, labels_of: Callable[[Any], IntArray]
) -> tuple[pd.DataFrame | None, IntArray | None]:
    """The rows on which a partition is found, in the columns of the others, or None."""
    if X is None and y is None:
        return None, None
    if X is None or y is None:
        raise InputError(
            "Of the rows for finding the partition, only "
            + ("the labels are" if X is None else "the inputs are")
            + " given",
            fix="Give X_partition and y_partition together, or neither.",
        )
    labels = labels_of(y)
    columns = tuple(str(name) for name in like.columns)
    return input_table(X, len(labels), columns), labels


def layer_frame(model: Any, X: Any, layer: str | None = None) -> pd.DataFrame:
    """Activations of a network's hidden layer as a table for partitions, (n, units).

    Parameters
    ----------
    model : Model
        A network with hidden layers.
    X : (n, d) DataFrame or array
        Its inputs.
    layer : str, optional
        One of ``model.layers``; by default the last hidden layer.

    Returns
    -------
    pandas.DataFrame
        Columns "unit 1", "unit 2", ...: the X and X_partition of
        :class:`~kdcal_core.calibration.regions.HeterogeneousCalibrator`.

    Raises
    ------
    InputError
        If the model has no hidden layer, or no layer of that name.

    Examples
    --------
    >>> import numpy as np
    >>> class Network:
    ...     def embed(self, X):
    ...         return np.maximum(X, 0.0)
    >>> layer_frame(Network(), np.array([[-1.0, 2.0]])).to_dict("list")
    {'unit 1': [0.0], 'unit 2': [2.0]}
    """
    if layer is not None and isinstance(model, HasLayers):
        if layer not in model.layers:
            raise InputError(
                f"The model has no hidden layer {layer!r}",
                fix="Name one of: " + ", ".join(model.layers) + ".",
            )
        units = model.embed(X, layer)
    elif layer is None and isinstance(model, HasEmbedding):
        units = model.embed(X)
    else:
        raise InputError(
            "The model has no hidden layer to partition by"
            if layer is None
            else "The model does not name its hidden layers",
            fix="Partition by the inputs instead." if layer is None else "Leave the layer out.",
        )
    return pd.DataFrame(units, columns=[f"unit {i + 1}" for i in range(units.shape[1])])


AT_SCORES = ("isotonic", "histogram", "scaling_binning", "bbq")
"""Maps whose corners or edges are scores of calibration rows."""

PARTITIONS: dict[str, PartitionKind] = {
    "tree": PartitionKind(fit_tree, averaged_in_blocks),
    "forest": PartitionKind(fit_forest, averaged_in_blocks, depth=6),
    "boosted": PartitionKind(fit_boosted, nested, depth=2),
    "auc": PartitionKind(fit_auc, averaged_in_blocks),
    "column": PartitionKind(fit_columns, averaged, column_read),
    "groups": PartitionKind(fit_columns, averaged, group_columns),
}


PRUNED = ("tree", "auc")
"""Partitions whose trees can be cut back."""


@storable
class HeterogeneousCalibrator(Calibrator):
    """Divides the inputs into regions and calibrates each separately (Durfee et al., Algorithm 1).

    One monotone map for all rows does not change their order and therefore not the AUROC. The best
    maps of the regions of a partition can only raise it (Lemmas 4.3 and 4.4).

    Parameters
    ----------
    partition : str, default="forest"
        Key of :data:`PARTITIONS`; the notes say why a forest. A single tree is the one to read.
    calibrator : str, default="platt"
        The map inside a region, a key of :data:`MAPS`.
    max_depth : int or None, default=None
        Largest number of conditions of a region, for partitions by trees. None for the depth that
        was best in measurements: 3 for a tree, 6 for a forest, 2 for boosted trees.
    min_rows : int or None, default=None
        Fewest calibration rows in a region; None for the rule of
        :func:`~kdcal_core.calibration.regions.one_tree.min_rows_of`.
    n_trees : int, default=100
        Number of trees of a forest, or maximum number of stages of boosted trees.
    column : str, list of str or None, default=None
        The column whose values are the regions ("column"), or the columns whose combinations
        are ("groups"; None for all).
    pooling : bool, default=True
        Whether the maps of regions with few rows are shrunk towards the map of the enclosing
        region.
    prune : False or "cv", default=False
        Whether a tree is cut back to the size with the best cross-validated log loss.
    random_state : int, default=0

    Attributes
    ----------
    layers_ : tuple of Layer
        Partitions with the maps of their regions.
    regions_ : tuple of RegionFit
    columns_ : tuple of str
        Columns of X that the partition reads.
    notes_ : tuple of str

    Notes
    -----
    A slope of 1 and an offset of 0 in every region give the model, and a slope of 0 gives the rates
    of the tree's leaves, so the maps lie between these two (section 5.2). Platt's map uses the
    logit of the probability, clipped at 1e-12. Negative slopes are kept and flagged. A region with
    few rows borrows from the enclosing region. A region with one class uses the enclosing region's
    slope and fits only its offset.

    A forest is the default because it was measured best. On five tables (networks at two learning
    rates, five seeds, 50 trees) its log loss and its AUROC were better than those of a tree in all
    cells, at the default depth and at the best of five. On four tables, with 300 and 2,000
    calibration rows, it was better than a tree in 16 of 16 runs and never worse than one Platt map;
    boosted partitions of tuned depth and number of stages were so in 9 of 16, and lost to Platt
    with few rows. Tuning the forest's depth gained nothing.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame({"shop": rng.choice(["north", "south"], 4000)})
    >>> p = rng.uniform(0.05, 0.95, 4000)
    >>> y = (rng.random(4000) < np.where(frame["shop"] == "north", p, 0.2)).astype(int)
    >>> calibrator = HeterogeneousCalibrator("column", column="shop")
    >>> calibrator = calibrator.fit(np.column_stack([1 - p, p]), y, frame)
    >>> new = pd.DataFrame({"shop": ["north", "south"]})
    >>> calibrator.predict_proba([[0.2, 0.8], [0.2, 0.8]], new).round(1).tolist()
    [[0.2, 0.8], [0.8, 0.2]]
    """

    needs_inputs: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "partition": [StrOptions(set(PARTITIONS))],
        "calibrator": [StrOptions(set(MAPS))],
        "max_depth": [None, Interval(Integral, 1, 12, closed="both")],
        "min_rows": [None, Interval(Integral, 1, None, closed="left")],
        "n_trees": [Interval(Integral, 1, 1000, closed="both")],
        "column": [None, str, "array-like"],
        "pooling": ["boolean"],
        "prune": ["boolean", StrOptions({"cv"})],
        "random_state": [Interval(Integral, 0, None, closed="left")],
    }

    def __init__(
        self,
        partition: str = "forest",
        calibrator: str = "platt",
        max_depth: int | None = None,
        min_rows: int | None = None,
        n_trees: int = 100,
        column: str | list[str] | None = None,
        pooling: bool = True,
        prune: bool | str = False,
        random_state: int = 0,
    ) -> None:
        self.partition = partition
        self.calibrator = calibrator
        self.max_depth = max_depth
        self.min_rows = min_rows
        self.n_trees = n_trees
        self.column = column
        self.pooling = pooling
        self.prune = prune
        self.random_state = random_state

    def fit(
        self,
        proba: Any,
        y: Any,
        X: Any,
        sample_weight: Any = None,
        *,
        X_partition: Any = None,
        y_partition: Any = None,
        progress: Progress | None = None,
    ) -> Self:
        """Fit on the calibration set.

        Parameters
        ----------
        proba : (n, K) array
            The model's probabilities; rows sum to one.
        y : (n,) array of int
            True classes as column indices.
        X : (n, d) DataFrame or array of numbers
            The rows' inputs: numbers, categories and missing values without preparation.
        sample_weight : (n,) array or RowDesign, optional
            Positive row weights, with or without the dependence of the rows. Only their ratios
            matter: they are scaled to a mean of one, or less for dependent rows, because pooling
            compares the weight of rows with that of its prior.
        X_partition, y_partition : (m, d) and (m,), optional
            The model's training rows, on which the partition is found.
        progress : callable, optional
            Called with the share done in [0, 1] and a sentence; may raise to cancel.

        Raises
        ------
        InputError
            If an array does not have this form, or if ``prune`` is set where no single tree is
            grown.
        """
        self._validate_params()
        if self.prune and self.partition not in PRUNED:
            raise InputError(
                f"The setting 'prune' does nothing where the partition is {self.partition!r}",
                fix="Leave it out, or divide the inputs by a single tree: partition='tree'.",
            )
        proba, y = self._learnt(proba, y)
        self.n_classes_ = proba.shape[1]
        weight, dependence = check_weight(sample_weight, len(proba)), dependence_of(sample_weight)
        kind = PARTITIONS[self.partition]
        frame = input_table(X, len(proba))
        self.columns_ = kind.reads(self, tuple(str(name) for name in frame.columns))
        frame = input_table(frame, len(proba), self.columns_)
        rows = FitRows(
            proba,
            y,
            weight / weight.mean() / fit_effect(proba, y, weight, dependence),
            frame,
            *training_rows(X_partition, y_partition, frame, self._labels_of),
            dependence=dependence,
            report=progress or silent,
        )
        fitted = kind.fit(self, rows)
        self.layers_ = fitted.layers
        self.regions_ = fitted.regions
        self.notes_ = fitted.notes
        self._note_few(len(y))
        return self

    def predict_proba(self, proba: Any, X: Any) -> FloatArray:
        """Calibrated probabilities, (n, K), rows summing to one.

        Raises
        ------
        InputError
            If columns differ from those of the fit; they are named.
        """
        check_is_fitted(self, "layers_")
        proba = self._checked(proba)
        frame = input_table(X, len(proba), self.columns_)
        return PARTITIONS[self.partition].combine(self.layers_, proba, frame)

    def unseen(self, X: pd.DataFrame) -> dict[str, int]:
        """Number of rows in each column with a category new to the calibrator, read as missing.

        Columns whose rare categories are pooled as "other" and columns without such rows are left
        out.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> frame = pd.DataFrame({"shop": ["north", "south"] * 20})
        >>> p = np.tile([0.4, 0.6], (40, 1))
        >>> calibrator = HeterogeneousCalibrator().fit(p, [0, 1] * 20, frame)
        >>> calibrator.unseen(pd.DataFrame({"shop": ["north", "west"]}))
        {'shop': 1}
        """
        from kdcal_core.partition.tree import bin_inputs

        named = {
            column.name: column
            for layer in self.layers_
            for column in layer.partition.columns
            if column.kind == "category" and not column.pooled
        }
        if not named:
            return {}
        frame = input_table(X, len(X), tuple(named))
        counts = bin_inputs(frame, like=tuple(named.values())).unknown
        return {name: int(n) for name, n in zip(named, counts, strict=True) if n}

    def why_no_onnx(self) -> str | None:
        """As for every calibrator.

        Examples
        --------
        >>> HeterogeneousCalibrator("tree", "platt").why_no_onnx()
        >>> HeterogeneousCalibrator("tree", "kde").why_no_onnx()
        'each of its regions has its own density curves, too many for a model'
        """
        if self.calibrator == "kde":
            return "each of its regions has its own density curves, too many for a model"
        if self.partition == "boosted" and self.calibrator in AT_SCORES:
            # earlier stages' steps give later stages many nearly equal scores
            return CORNERS_AT_SCORES
        return None

    def rows_needed(self, n_classes: int) -> int:
        """Two regions of the least size, because fewer rows are not divided."""
        return 2 * min_rows_of(self.min_rows, 0, self.depth)

    @property
    def depth(self) -> int:
        """The depth of the partition's trees: ``max_depth``, or the default if that is None."""
        kind = PARTITIONS[self.partition]
        return kind.depth if self.max_depth is None else int(self.max_depth)

    @property
    def trees_(self) -> tuple[Any, ...]:
        """The partitions of the layers."""
        return tuple(layer.partition for layer in self.layers_)

    def check_state(self) -> None:
        """Refuse fitted state that contradicts itself, as in a damaged file."""
        super().check_state()
        layers, regions = getattr(self, "layers_", None), getattr(self, "regions_", None)
        demand(
            isinstance(layers, tuple)
            and len(layers) > 0
            and all(isinstance(layer, Layer) for layer in layers),
            "the partitions",
        )
        demand(
            isinstance(regions, tuple) and all(isinstance(one, RegionFit) for one in regions),
            "the regions",
        )
        columns = getattr(self, "columns_", None)
        demand(
            isinstance(columns, tuple) and all(isinstance(name, str) for name in columns),
            "the columns",
        )
        for layer in self.layers_:
            layer.check(self.n_classes_)


CalibratorEntry(
    "heterogeneous_tree",
    "Platt scaling in each region of a shallow tree",
    "Tree regions",
    partial(HeterogeneousCalibrator, "tree"),
    "Durfee et al. 2022, Algorithm 1",
    "A shallow tree divides the inputs into regions, and each has its own Platt scaling.",
    "partition",
    compared=False,
    offered=True,
    needs=("inputs",),
).offer()

CalibratorEntry(
    "heterogeneous_forest",
    "Platt scaling in the regions of 100 shallow trees, averaged",
    "Forest regions",
    partial(HeterogeneousCalibrator, "forest"),
    "Durfee et al. 2022, section 5",
    "Like the single tree, averaged over 100 trees grown on resampled rows.",
    "partition",
    compared=False,
    offered=True,
    needs=("inputs",),
).offer()

CalibratorEntry(
    "heterogeneous_boosted",
    "Platt scaling by regions in sequence, each on the last one's answer",
    "Boosted regions",
    partial(HeterogeneousCalibrator, "boosted"),
    "Durfee et al. 2022, section 5; its section 13 is lost",
    "Trees grown one after the other on what the calibration so far gets wrong.",
    "partition",
    compared=False,
    needs=("inputs",),
).offer()

CalibratorEntry(
    "heterogeneous_auc",
    "Platt scaling in regions that are split for AUROC",
    "AUROC regions",
    partial(HeterogeneousCalibrator, "auc"),
    "Durfee et al. 2022, section 5; its section 12 is lost",
    "A shallow tree in which each split raises the AUROC most; Platt scaling in each region.",
    "partition",
    compared=False,
    needs=("inputs",),
).offer()
