"""A review's model on foreign rows: uploaded ones, and rows made from the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np

from kdcal_core.calibration import Located
from kdcal_core.data import FloatArray, at_most
from kdcal_core.data.foreign_rows import (
    Extent,
    extent,
    impossible,
    in_box,
    numeric_columns,
    on_spheres,
    shifted,
    shuffled,
)
from kdcal_core.errors import InputError
from kdcal_core.progress import part_of
from kdcal_core.review import PARTS, ReviewReader
from kdcal_core.statistics import Dependence
from kdcal_core.tasks.decorators import Sets, require_model, review_task
from kdcal_core.tasks.graph import Rows, load_estimator, placed
from kdcal_core.text import formatted

if TYPE_CHECKING:
    import pandas as pd


ForeignKind = Literal["uploaded", "sphere", "uniform", "shuffled", "shifted"]

RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)


@dataclass(frozen=True)
class ForeignSettings:
    """Which foreign rows are made.

    Attributes
    ----------
    radii : tuple of float
        Radii of the spheres; 1 is the distance of the data's farthest row. Empty for no spheres.
    n : int
        Number of rows on each sphere, and maximum number in each other set that is made.
    shifted_feature : str or None
        The numeric feature to shift. Untrusted text.
    shifts : tuple of float
        Sizes of the shifts, in its standard deviations.
    seed : int
    """

    radii: tuple[float, ...] = RADII
    n: int = 1000
    shifted_feature: str | None = None
    shifts: tuple[float, ...] = (2.0, 5.0, 10.0, 20.0)
    seed: int = 0


@dataclass(frozen=True)
class ForeignSet:
    """One set of foreign rows among the rows of the run.

    Attributes
    ----------
    kind : str
        "uploaded", "sphere", "uniform", "shuffled" or "shifted".
    name : str
        Name on screens. Untrusted text.
    value : float or None
        The sphere's radius, or the shift in standard deviations.
    start, stop : int
        Range of its rows among those of the run.
    """

    kind: ForeignKind
    name: str
    value: float | None
    start: int
    stop: int


@dataclass(frozen=True)
class ForeignRecord:
    """The settings and facts of a run.

    Attributes
    ----------
    settings : ForeignSettings
    sets : tuple of ForeignSet
    classes : tuple of str
        Untrusted text.
    n_numeric, n_features : int
        Number of numeric features, which the spheres vary, and of all features.
    notes : tuple of str
        Which sets could not be made, and why.
    n_bounded : int
        Numeric features that cannot take every value: whole numbers, or never below zero.
    impossible : dict
        For each set by name, the column whose possible values its rows leave farthest, the least
        value there, and the least value in the data. Untrusted names.
    """

    settings: ForeignSettings
    sets: tuple[ForeignSet, ...]
    classes: tuple[str, ...]
    n_numeric: int
    n_features: int
    notes: tuple[str, ...]
    n_bounded: int = 0
    impossible: dict[str, tuple[str, float, float]] = field(default_factory=dict)

    def of_kind(self, *kinds: ForeignKind) -> tuple[ForeignSet, ...]:
        """The sets of these kinds; all sets if no kind is given."""
        return tuple(one for one in self.sets if not kinds or one.kind in kinds)

    @property
    def radii(self) -> FloatArray:
        """Radii of the spheres, (R,), in the order of the settings."""
        return np.array([one.value for one in self.of_kind("sphere")], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ForeignRun:
    """The model's answers for foreign rows, and their cells in the graph's partition.

    Attributes
    ----------
    record : ForeignRecord
    rows : Rows
        The rows of all sets, one set after the other.
    """

    record: ForeignRecord
    rows: Rows

    def sets(self, *kinds: ForeignKind) -> tuple[ForeignSet, ...]:
        """The sets of these kinds; all sets if no kind is given."""
        return self.record.of_kind(*kinds)

    def rows_of(self, one: ForeignSet) -> Rows:
        """The rows of a set, as views."""
        return self.rows.part(one.start, one.stop)

    @property
    def radii(self) -> FloatArray:
        """Radii of the spheres, (R,), in the order of the settings."""
        return self.record.radii

    def by_radius(self, proba: FloatArray) -> FloatArray:
        """Probabilities on each sphere, (R, n, K), from those of all the run's rows."""
        spheres = self.sets("sphere")
        if not spheres:
            return np.zeros((0, 0, proba.shape[1]))
        on_them = proba[spheres[0].start : spheres[-1].stop]
        return on_them.reshape(len(spheres), -1, proba.shape[1])


@review_task(
    "Asking about foreign rows",
    reads=PARTS,
    needs=require_model,
    ranges={
        "radii": (0.0, 1e6),
        "n": (1.0, 10_000.0),
        "shifts": (-1e6, 1e6),
        "seed": (0.0, 2.0**31),
    },
    edition="rows within what columns hold, and which depend",
)
def score_foreign(
    sets: Sets, settings: ForeignSettings, *, graph_folder: str | None = None
) -> ForeignRun:
    """Run the model on foreign rows.

    Parameters
    ----------
    graph_folder : str, optional
        Folder of the review's `GraphRun`. Without it only the model answers.

    Raises
    ------
    InputError
        For uploaded rows that do not fit the model. A set that cannot be made is named in the
        record's notes instead.
    """
    reader, progress = sets.reader, sets.progress
    progress(0.0, "Opening the model")
    model = reader.model()
    estimator = load_estimator(graph_folder, model) if graph_folder else None
    reference = reader.features(reader.reference)
    batches, notes = _made(reader, settings, reference)
    why = (reader.foreign_dependence(name)[1] for name in reader.review.foreign)
    notes = [*filter(None, why), *notes]
    where = _extent(reference)
    left: dict[str, tuple[str, float, float]] = {}
    batches = [*_uploaded(reader), *batches]
    pieces: list[Rows] = []
    found: list[ForeignSet] = []
    for at, batch in enumerate(batches):
        share = [0.05 + 0.95 * done / len(batches) for done in (at, at + 1)]
        try:
            frame = batch.rows()
            rows = placed(model, frame, None, estimator, part_of(progress, *share))
        except InputError as error:
            if batch.kind == "uploaded":
                raise error.at(file=batch.file) from error
            notes.append(f"The rows of the kind {batch.kind!r} are left out. {error}")
            continue
        start = sum(map(len, pieces))
        stops = np.linspace(start, start + len(rows), len(batch.sets) + 1).astype(int).tolist()
        for (name, value), begin, end in zip(batch.sets, stops, stops[1:], strict=False):
            found.append(ForeignSet(batch.kind, name, value, begin, end))
            if where is not None and batch.kind != "uploaded":
                beyond = impossible(frame.iloc[begin - start : end - start], where)
                left |= {} if beyond is None else {name: beyond}
        pieces.append(rows)
    record = ForeignRecord(
        settings=settings,
        sets=tuple(found),
        classes=reader.review.classes,
        n_numeric=len(numeric_columns(reference)),
        n_features=reference.shape[1],
        notes=tuple(notes),
        n_bounded=0 if where is None else int(where.bounded.sum()),
        impossible=left,
    )
    return ForeignRun(record, _joined(pieces, len(reader.review.classes)))


def foreign_dependence(sets: Sets, settings: ForeignSettings, one: ForeignSet) -> Dependence | None:
    """How the rows of a set depend on one another: uploaded ones, and those that were shifted.

    Rows of other kinds are drawn independently, or mix the columns of several rows.
    """
    if one.kind == "uploaded":
        return sets.reader.foreign_dependence(one.name)[0]
    if one.kind != "shifted":
        return None
    every = sets.read(sets.reader.judged).grouping
    if every is None:
        return None
    return every.only(at_most(len(every.unit), settings.n, settings.seed))


def foreign_frame(reader: ReviewReader, settings: ForeignSettings, one: ForeignSet) -> pd.DataFrame:
    """The features of a set's rows, in the order of the answers.

    Uploaded rows are read again, and made rows are made again from the settings and their seed.

    Raises
    ------
    InputError
        Where the review no longer has these rows.
    """
    batches = _uploaded(reader)
    if one.kind != "uploaded":
        batches, _ = _made(reader, settings, reader.features(reader.reference))
    for batch in batches:
        values = [value for name, value in batch.sets if name == one.name]
        if batch.kind == one.kind and one.value in values:
            rows = batch.rows()
            size = len(rows) // len(batch.sets)
            start = size * batch.sets.index((one.name, one.value))
            return rows.iloc[start : start + size].reset_index(drop=True)
    raise InputError(
        "These foreign rows are no longer part of the review", fix="Run the model on them again."
    )


@dataclass(frozen=True)
class _Batch:
    """Sets of one kind that are scored together and have equally many rows."""

    kind: ForeignKind
    sets: tuple[tuple[str, float | None], ...]
    rows: Callable[[], pd.DataFrame]
    file: str | None = None


def _uploaded(reader: ReviewReader) -> list[_Batch]:
    return [
        _Batch("uploaded", ((name, None),), partial(reader.foreign, name), table.name)
        for name, table in reader.review.foreign.items()
    ]


def _made(
    reader: ReviewReader, settings: ForeignSettings, reference: pd.DataFrame
) -> tuple[list[_Batch], list[str]]:
    """The rows made from the data, and the reasons why some cannot be made."""
    own, n, seed = reader.features(reader.judged), settings.n, settings.seed
    batches = [_Batch("shuffled", (("Shuffled features", None),), partial(shuffled, own, n, seed))]
    try:
        where = extent(reference)
    except InputError as error:
        return batches, [str(error)]
    noise = partial(in_box, reference, where, n, seed)
    batches.append(_Batch("uniform", (("Uniform noise", None),), noise))
    if settings.radii:
        names = tuple((f"Radius {radius:g}", radius) for radius in settings.radii)
        spheres = partial(on_spheres, reference, where, settings.radii, n, seed)
        batches.append(_Batch("sphere", names, spheres))
    if (column := settings.shifted_feature) is not None:
        for by in settings.shifts:
            name = f"{column} shifted by {formatted(by, 'g')} standard deviations"
            rows = partial(shifted, own, where, column, by, n, seed)
            batches.append(_Batch("shifted", ((name, by),), rows))
    return batches, []


def _extent(reference: pd.DataFrame) -> Extent | None:
    try:
        return extent(reference)
    except InputError:
        return None


def _joined(pieces: list[Rows], n_classes: int) -> Rows:
    """Concatenated rows."""
    if not pieces:
        return Rows(np.zeros((0, n_classes)), None)
    proba = np.concatenate([piece.proba for piece in pieces])
    places = [piece.located for piece in pieces if piece.located is not None]
    if not places:
        return Rows(proba, None)
    x, index, tied = (
        np.concatenate([getattr(at, part) for at in places]) for part in ("x", "index", "tied")
    )
    return Rows(proba, Located(x, index, tied, proba))
