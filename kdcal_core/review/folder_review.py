"""A review of predictions in a folder or a list of files, which may be larger than memory.

The roles of columns follow from a sample of rows, as for any table. What is said of all rows comes
from their summary (`kdcal_core.review.folder_summary`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from kdcal_core.data import weight_column
from kdcal_core.data.column_doubts import Doubt
from kdcal_core.data.parquet_folder import (
    PartedFiles,
    digest_of_files,
    is_parted,
    name_of_parted,
    parquet_files,
    place_of_parted,
)
from kdcal_core.diagnostics.summaries import rows_of
from kdcal_core.diagnostics.summaries.row_weights import unit_of_weights
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, silent
from kdcal_core.review.folder_source import SourceFiles
from kdcal_core.review.folder_summary import (
    SAMPLE,
    FolderSize,
    check_summarised,
    sample_of_folder,
    summary_of_folder,
)
from kdcal_core.review.folder_tallies import TALLIES, DeclaredGroups
from kdcal_core.review.named_files import NamedFiles, check_files, scored_review
from kdcal_core.review.reader import ReviewReader
from kdcal_core.review.review import Review
from kdcal_core.review.workspace import Workspace
from kdcal_core.store.disk import digest_of
from kdcal_core.text import listed

_ROWS_ONLY = {
    "by": "the regions of a column follow from all its values",
    **dict.fromkeys(
        ("evaluation", "training", "foreign"),
        "its rows are counted without another table",
    ),
}
"""What needs the rows of one table, each with the reason."""


def is_folder(given: NamedFiles) -> bool:
    """Whether the rows that the caller names lie in a folder or a list of files."""
    return is_parted(given.rows)


def refuse_for_folder(given: NamedFiles) -> None:
    """Refuse what needs the rows of one table.

    Raises
    ------
    InputError
        For other tables beside the folder, and for columns of regions.
        As `kdcal_core.review.check_files`.
    """
    for name, why in _ROWS_ONLY.items():
        if getattr(given, name):
            raise InputError(
                f"{given.option(name)} cannot be given for a folder or a list of files: {why}",
                fix="Leave it out, or give the rows as one file.",
            )
    check_files(given, parted=True)


def sampled_review(
    workspace: Workspace, given: NamedFiles, into: Path, roots: Sequence[Path] | None = None
) -> tuple[Review, FolderSize]:
    """A scored review of some rows of the files that the caller names.

    Parameters
    ----------
    into : Path
        An empty folder for the sample.
    roots : sequence of Path, optional
        As for :func:`kdcal_core.data.parquet_folder.parquet_files`.

    Returns
    -------
    Review, FolderSize
        With the roles of the columns, and the size of the whole table.

    Raises
    ------
    InputError
        As `refuse_for_folder` and `scored_review`, and for predictions of a regression that are
        single numbers.
    """
    refuse_for_folder(given)
    where = place_of_parted(given.rows)
    sample, size = sample_of_folder(given.rows, into, roots)
    part = {"data" if given.data else "predictions": str(sample)}
    with _of_sample(where):
        review = scored_review(workspace, replace(given, **part))  # type: ignore[arg-type]
    assert review.roles is not None
    check_summarised(review.roles, where)
    if review.roles.weight is not None:
        reader = ReviewReader(workspace, review.id, review=review)
        weight = weight_column(reader.frame("calibration", [review.roles.weight]), review.roles)
        assert weight is not None
        size = replace(size, unit=unit_of_weights(weight, size.rows))
    doubts = tuple(_of_dependence(one, given) for one in review.doubts)
    return replace(review, doubts=doubts), size


def _of_dependence(doubt: Doubt, given: NamedFiles) -> Doubt:
    """The questions of rows that are alike, without counts, which are those of the sample."""
    if doubt.about not in ("cluster", "time"):
        return doubt
    names = listed([repr(one.answer[:40]) for one in doubt.choices if one.answer])
    option = given.option(doubt.about, doubt.choices[0].answer)
    if doubt.about == "time":
        sentence = (
            f"{names} may say when rows were made. With it kdcal checks whether calibration holds "
            "for the latest rows, and intervals allow for near times that are alike. Give "
            f"{option} for that, or an empty {given.option('cluster')} where rows are independent."
        )
        return replace(doubt, sentence=sentence)
    sentence = (
        f"{names} may name what several rows belong to. If rows of one are alike, intervals that "
        f"count each row as independent are too narrow. Give {option} for that, or an empty name "
        "where rows are independent."
    )
    return replace(doubt, sentence=sentence)


def source_of(review: Review, given: NamedFiles, calibrator: str | None = None) -> SourceFiles:
    """What makes the predictions of all rows: the review's model, if it has one.

    Parameters
    ----------
    calibrator : str, optional
        Path of a calibrator's or a recalibrator's file, whose output is judged.
    """
    model, asked = None, None
    if review.model is not None and given.model is not None:
        named = {"name": review.model.name, "digest": review.model.digest}
        model = {"path": str(Path(given.model).absolute()), **named}
    if calibrator is not None:
        path = Path(calibrator).absolute()
        asked = {"path": str(path), "name": path.name, "digest": digest_of(path)}
    return SourceFiles(model, asked)


@contextmanager
def _of_sample(where: str) -> Iterator[None]:
    """Make errors about the sample of rows name the folder; its rows are nobody's."""
    try:
        yield
    except InputError as error:
        if error.file != SAMPLE:
            raise
        raise InputError(error.what, fix=error.fix, file=where, column=error.column) from error


def whole_review(
    review: Review,
    folder: PartedFiles,
    into: Path,
    roots: Sequence[Path] | None = None,
    progress: Progress = silent,
    *,
    groups: DeclaredGroups | None = None,
    size: FolderSize | None = None,
    executor: Executor | None = None,
    source: SourceFiles | None = None,
) -> Review:
    """The sampled review, with the name, the digest and the numbers of all rows of the folder.

    Their summary, a `kdcal_core.diagnostics.summaries.Summary` of its task, is stored into the
    empty folder ``into``. The digest of the table is that of its files
    (:func:`kdcal_core.data.parquet_folder.digest_of_files`), that of the set the summary's.
    ``groups``, ``size``, ``executor`` and ``source`` are as of
    `kdcal_core.review.folder_summary.summary_of_folder`.

    Raises
    ------
    InputError
        For a value that cannot be used, and if a file changes while the folder is read.
    """
    assert review.roles is not None
    files = parquet_files(folder, roots)
    digest = digest_of_files(files)
    summary = summary_of_folder(
        folder,
        review.roles,
        review.classes,
        into,
        roots,
        progress=progress,
        groups=groups,
        size=size,
        executor=executor,
        source=source,
    )
    if digest_of_files(parquet_files(folder, roots)) != digest:
        raise InputError(
            "The folder changed while it was read",
            fix="Start again once its files are written.",
            file=place_of_parted(folder),
        )
    table, scored = review.tables["calibration"], review.sets["calibration"]
    n = rows_of(summary)
    table = replace(table, name=name_of_parted(folder), digest=digest, n_rows=n)
    scored = replace(
        scored,
        digest=summary.digest,
        answers="",  # a summary does not know the answers apart from their weights
        n_rows=n,
        **TALLIES[review.task].facts(summary),
    )
    return replace(review, tables={"calibration": table}, sets={"calibration": scored})
