"""The spaces in which neighbours are searched: inputs, predictions, both, or a hidden layer.

A hidden layer is computed by the model in a worker process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from kdcal_core.data import FloatArray
from kdcal_core.distributions import moments
from kdcal_core.errors import InputError
from kdcal_core.evaluation import Space
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.regression.spaces import BOTH, INPUTS, LAYER, PREDICTION, SpaceOfRows
from kdcal_core.review import Part, Review, ReviewReader, Which
from kdcal_core.review.scoring import by_blocks, in_file, in_rows_of
from kdcal_core.tasks.decorators import Sets, require_regression, review_task

if TYPE_CHECKING:
    import pandas as pd


SPACE_READS: tuple[Part, ...] = ("model", "calibration", "evaluation")


def space_names(review: Review) -> tuple[str, ...]:
    """Spaces that the review offers, the recommended one first.

    "inputs" needs feature columns, and "layer:..." a model that names its hidden layers.
    "prediction" (mean and standard deviation of the predictive distribution) is always available.
    "inputs and prediction" combines both, and was most often the best on real tables.
    """
    names = [INPUTS, BOTH] if review.roles and review.roles.features else []
    layers = review.model.layers if review.model else ()
    return (*names, *(LAYER + layer for layer in layers), PREDICTION)


def space_title(name: str) -> str:
    """The name of a space on screens; a layer's name is untrusted text, cut to 60 characters.

    Examples
    --------
    >>> space_title("inputs and prediction"), space_title("layer:hidden 1 (5)")
    ('Inputs and prediction', 'Layer hidden 1 (5)')
    """
    if name.startswith(LAYER):
        return f"Layer {name.removeprefix(LAYER)[:60]}"
    return name.capitalize()


def read_space(reader: ReviewReader, name: str, progress: Progress) -> Space:
    """Coordinates of all rows.

    A hidden layer needs the model, so it is read only in a worker process. The other spaces read
    only the review's own files.

    Raises
    ------
    InputError
        For a space that the review does not offer.
    """
    if name == PREDICTION:
        return _of_sets(
            reader, name, lambda which: moments(reader.distributions(which).distribution)
        )
    if not reader.roles.features:
        raise InputError(
            "The review has no feature columns, so there are no inputs to compare rows by",
            fix="Give columns the role of a feature, or choose the predictions as the space.",
        )
    if name in (INPUTS, BOTH):
        return _inputs(reader, with_prediction=name == BOTH)
    if not name.startswith(LAYER):
        raise InputError(f"There is no space {name!r}", fix="Choose one of those offered.")
    return _layer(reader, name, progress)


def regression_space(reader: ReviewReader, name: str) -> Space:
    """Coordinates of a review's rows in a space that needs no model: inputs, prediction, both.

    Raises
    ------
    InputError
        For a hidden layer, which `keep_space` reads in a separate process, and as for `read_space`.
    """
    if name.startswith(LAYER):
        raise InputError(
            "A hidden layer is computed by the model in a separate process",
            fix="Start the job that computes it.",
        )
    require_regression(reader.review)
    return read_space(reader, name, silent)


def principal_axes(fitted: FloatArray, shown: FloatArray) -> FloatArray:
    """Rows on the first two principal axes of the standardised space, (m, 2).

    Parameters
    ----------
    fitted : (n, d)
        Rows on which the axes are fitted.
    shown : (m, d)
        Rows to place.

    Notes
    -----
    The sign of each axis makes its largest loading positive, so the map does not flip between runs.
    In a space of one dimension the second axis is zero.

    Examples
    --------
    >>> principal_axes(np.array([[0.0], [2.0]]), np.array([[1.0], [3.0]])).tolist()
    [[0.0, 0.0], [2.0, 0.0]]
    >>> constant = np.array([[0.0, 334.96], [2.0, 334.96], [4.0, 334.96]])
    >>> bool(np.abs(principal_axes(constant, constant)[:, 1]).max() < 1e-9)
    True
    """
    centre, spread = fitted.mean(axis=0), fitted.std(axis=0)
    varies = spread > 1e-9 * np.abs(fitted).max(axis=0)  # less is rounding error
    centre, spread = np.where(varies, centre, fitted[0]), np.where(varies, spread, np.inf)
    standard = (fitted - centre) / spread
    _, vectors = np.linalg.eigh(standard.T @ standard / len(fitted))
    top = vectors[:, ::-1][:, :2]
    top = top * np.sign(top[np.abs(top).argmax(axis=0), np.arange(top.shape[1])])
    placed = (shown - centre) / spread @ top
    if placed.shape[1] == 1:
        placed = np.column_stack([placed, np.zeros(len(placed))])
    return np.asarray(placed)


def space_of_inputs(reader: ReviewReader, *, with_prediction: bool) -> SpaceOfRows:
    """The inputs, alone or with the prediction, as encoded on the calibration set."""
    return SpaceOfRows.of_inputs(reader.features("calibration"), with_prediction=with_prediction)


def _inputs(reader: ReviewReader, *, with_prediction: bool) -> Space:
    space = space_of_inputs(reader, with_prediction=with_prediction)

    def encoded(which: Which) -> FloatArray:
        frame = reader.features(which)
        with in_file(reader.name(which)), in_rows_of(frame):
            return space.of(reader.distributions(which).distribution, frame)

    return _of_sets(reader, space.name, encoded)


def _layer(reader: ReviewReader, name: str, progress: Progress) -> Space:
    layer = name.removeprefix(LAYER)
    progress(0.0, "Opening the model")
    model = reader.layers()
    if layer not in model.layers:
        raise InputError(
            f"The model has no hidden layer {layer!r}",
            fix=f"It names: {', '.join(model.layers)}.",
        )
    done = 0.0

    def embedded(which: Which) -> FloatArray:
        nonlocal done
        frame = reader.features(which)
        with in_file(reader.name(which)), in_rows_of(frame):
            width = model.embed(frame.iloc[:1], layer).shape[1]

            def answer(block: pd.DataFrame) -> FloatArray:
                return model.embed(block, layer)

            values = by_blocks(answer, frame, width, part_of(progress, done, done + 0.5))
        done = 0.5
        if not np.isfinite(values).all():
            raise InputError(
                f"The hidden layer {layer!r} is not finite for every row",
                fix="Choose another layer, or the inputs.",
                file=reader.name(which),
                row=int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0]) + 1,
            )
        return values

    return _of_sets(reader, name, embedded)


def _of_sets(reader: ReviewReader, name: str, coordinates: Callable[[Which], FloatArray]) -> Space:
    return Space(
        name,
        coordinates("calibration"),
        coordinates("evaluation") if reader.has("evaluation") else None,
    )


@review_task("Reading a hidden layer", reads=SPACE_READS, needs=require_regression)
def keep_space(sets: Sets, *, name: str) -> Space:
    """A space, in single precision."""
    return read_space(sets.reader, name, sets.progress).single()


def space_of(sets: Sets, name: str) -> Space:
    """Coordinates of a regression's rows in a space.

    Raises
    ------
    InputError
        Where the rows have no coordinates in it.
    """

    def make() -> Space:
        if sets.open_space is not None:
            return sets.open_space(name)
        return read_space(sets.reader, name, sets.progress)

    found: Space = sets.keep(("space", name), make)
    return found
