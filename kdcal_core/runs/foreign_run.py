"""Ask a review's parent about foreign rows: the user's own, and rows made from the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from kdcal_core.calibration import Located
from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.jobs import Progress
from kdcal_core.review import Workspace
from kdcal_core.review.codec import decode, encode
from kdcal_core.runs.foreign_rows import (
    extent,
    in_box,
    numeric_columns,
    on_spheres,
    shifted,
    shuffled,
)
from kdcal_core.runs.graph_run import graph_identity, load_estimator, placed
from kdcal_core.runs.inputs import (
    Request,
    ReviewFiles,
    features_of,
    open_parent,
    part_of,
    request,
    review_files,
)
from kdcal_core.runs.storage import (
    LOCATED_PARTS,
    Rows,
    load_record,
    load_rows,
    save_record,
    save_rows,
)

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["uploaded", "sphere", "uniform", "shuffled", "shifted"]

RADII = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0)

_ROWS = "foreign"


@dataclass(frozen=True)
class ForeignSettings:
    """What foreign rows are made.

    Attributes
    ----------
    radii : tuple of float
        Of the spheres; 1 is the distance of the data's farthest row. Empty for no spheres.
    n : int
        Rows on each sphere, and at most in each other set that is made.
    shifted_feature : str or None
        The numeric feature that is shifted far. Untrusted text.
    shifts : tuple of float
        By how many of its standard deviations.
    seed : int
    """

    radii: tuple[float, ...] = RADII
    n: int = 1000
    shifted_feature: str | None = None
    shifts: tuple[float, ...] = (2.0, 5.0, 10.0, 20.0)
    seed: int = 0


@dataclass(frozen=True)
class ForeignSet:
    """One set of foreign rows, a part of all rows of the run.

    Attributes
    ----------
    kind : str
        "uploaded", "sphere", "uniform", "shuffled" or "shifted".
    name : str
        For people. Untrusted text.
    value : float or None
        The sphere's radius, or the shift in standard deviations.
    start, stop : int
        Its rows among those of the run.
    """

    kind: Kind
    name: str
    value: float | None
    start: int
    stop: int


@dataclass(frozen=True)
class ForeignRecord:
    """What was asked.

    Attributes
    ----------
    settings : ForeignSettings
    sets : tuple of ForeignSet
    classes : tuple of str
        Untrusted text.
    n_numeric, n_features : int
        How many features are numbers, which the spheres move in, of how many.
    notes : tuple of str
        Which sets could not be made, and why.
    """

    settings: ForeignSettings
    sets: tuple[ForeignSet, ...]
    classes: tuple[str, ...]
    n_numeric: int
    n_features: int
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class ForeignRun:
    """The parent's answers for foreign rows, and their places in the graph's partition.

    Attributes
    ----------
    record : ForeignRecord
    rows : Rows
        Of all sets, one after the other.
    """

    record: ForeignRecord
    rows: Rows

    @classmethod
    def read(cls, folder: str | Path) -> ForeignRun:
        """What `score_foreign` left in its folder.

        Raises
        ------
        InputError
            Where it is not there (any more), or damaged.
        """
        return cls(load_record(Path(folder), ForeignRecord), load_rows(Path(folder), _ROWS))

    def sets(self, *kinds: Kind) -> tuple[ForeignSet, ...]:
        """The sets of these kinds; all where none is named."""
        return tuple(one for one in self.record.sets if not kinds or one.kind in kinds)

    def rows_of(self, one: ForeignSet) -> Rows:
        """The rows of a set, as views."""
        return self.rows.part(one.start, one.stop)

    @property
    def radii(self) -> FloatArray:
        """Radii of the spheres, (R,), in the order of the settings."""
        return np.array([one.value for one in self.sets("sphere")], dtype=np.float64)

    def by_radius(self, proba: FloatArray) -> FloatArray:
        """Probabilities of all the run's rows as those on each sphere, (R, n, K)."""
        spheres = self.sets("sphere")
        if not spheres:
            return np.zeros((0, 0, proba.shape[1]))
        on_them = proba[spheres[0].start : spheres[-1].stop]
        return on_them.reshape(len(spheres), -1, proba.shape[1])


def foreign_request(
    workspace: Workspace,
    review_id: str,
    settings: ForeignSettings | None = None,
    *,
    graph_folder: str | Path | None = None,
) -> Request:
    """The job that asks the parent about foreign rows.

    Parameters
    ----------
    graph_folder : path, optional
        Where the review's `GraphRun` is kept. Without it the parent alone answers.

    Raises
    ------
    InputError
        Where the review is not scored or has no model.
    """
    settings = settings or ForeignSettings()
    files = review_files(workspace, review_id)
    return request(
        "kdcal_core.runs.foreign_run:score_foreign",
        "Asking about foreign rows",
        {
            "files": encode(files),
            "settings": encode(settings),
            "graph_folder": str(graph_folder) if graph_folder else None,
        },
        {
            **files.identity(with_foreign=True),
            "settings": encode(settings),
            "graph": graph_identity(graph_folder),
        },
    )


def score_foreign(
    files: dict[str, Any],
    settings: dict[str, Any],
    graph_folder: str | None,
    folder: str,
    progress: Progress,
) -> dict[str, Any]:
    """Score foreign rows, in a worker process; `ForeignRun.read` reads what it leaves.

    Parameters
    ----------
    files, settings : dict
        ReviewFiles and ForeignSettings as JSON.

    Raises
    ------
    InputError
        For uploaded rows that do not fit the model. A set that was to be made and cannot be is
        told in the record's notes instead.
    """
    sources, chosen = decode(ReviewFiles, files), decode(ForeignSettings, settings)
    parent = open_parent(sources, progress)
    estimator = load_estimator(graph_folder, parent) if graph_folder else None
    reference = features_of(sources, sources.reference)
    batches, notes = _made(sources, chosen, reference)
    batches = [*_uploaded(sources), *batches]
    pieces: list[Rows] = []
    sets: list[ForeignSet] = []
    for at, batch in enumerate(batches):
        share = [0.05 + 0.95 * done / len(batches) for done in (at, at + 1)]
        try:
            rows = placed(parent, batch.rows(), None, estimator, part_of(progress, *share))
        except InputError as error:
            if batch.kind == "uploaded":
                raise error.at(file=batch.file) from error
            notes.append(f"The rows of the kind {batch.kind!r} are left out. {error}")
            continue
        start = sum(map(len, pieces))
        stops = np.linspace(start, start + len(rows), len(batch.sets) + 1).astype(int).tolist()
        sets += [
            ForeignSet(batch.kind, name, value, begin, end)
            for (name, value), begin, end in zip(batch.sets, stops, stops[1:], strict=False)
        ]
        pieces.append(rows)
    record = ForeignRecord(
        settings=chosen,
        sets=tuple(sets),
        classes=sources.classes,
        n_numeric=len(numeric_columns(reference)),
        n_features=reference.shape[1],
        notes=tuple(notes),
    )
    save_rows(Path(folder), _ROWS, _joined(pieces, len(sources.classes)))
    save_record(Path(folder), record)
    return encode(record)


@dataclass(frozen=True)
class _Batch:
    """Sets of one kind that are scored together, each with as many rows as the others."""

    kind: Kind
    sets: tuple[tuple[str, float | None], ...]
    rows: Callable[[], pd.DataFrame]
    file: str | None = None


def _uploaded(files: ReviewFiles) -> list[_Batch]:
    return [
        _Batch("uploaded", ((name, None),), partial(features_of, files, file), file.name)
        for name, file in files.foreign.items()
    ]


def _made(
    files: ReviewFiles, settings: ForeignSettings, reference: pd.DataFrame
) -> tuple[list[_Batch], list[str]]:
    """What is made of the data, and why some of it cannot be."""
    own, n, seed = features_of(files, files.judged), settings.n, settings.seed
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
            name = f"{column} shifted by {by:g} standard deviations"
            rows = partial(shifted, own, where, column, by, n, seed)
            batches.append(_Batch("shifted", ((name, by),), rows))
    return batches, []


def _joined(pieces: list[Rows], n_classes: int) -> Rows:
    """Rows one after the other."""
    if not pieces:
        return Rows(np.zeros((0, n_classes)), None)
    proba = np.concatenate([piece.proba for piece in pieces])
    places = [piece.located for piece in pieces if piece.located is not None]
    if not places:
        return Rows(proba, None)
    parts = (np.concatenate([getattr(at, part) for at in places]) for part in LOCATED_PARTS)
    return Rows(proba, Located(*parts))
