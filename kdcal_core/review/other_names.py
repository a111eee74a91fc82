"""A table of a set that names its columns otherwise than the calibration table.

Whether two columns mean the same is asked, never assumed. Once a person says so, the table's
columns are renamed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace

from kdcal_core.data.column_doubts import Reading
from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.schema import Roles
from kdcal_core.quotas import READ_TIME
from kdcal_core.review.changes import (
    ask_worker,
    change_review,
    decode_table,
    naming_file,
    new_files,
)
from kdcal_core.review.requirements import check_unchanged, shared_features, undoubted
from kdcal_core.review.review import Review, TableInfo
from kdcal_core.review.sealed_files import table_path
from kdcal_core.review.workspace import Workspace

_SINGLE = ("target", "predicted", "weight", "cluster", "time", "true_mean")


def other_names(review: Review, table: TableInfo, reading: Reading) -> tuple[tuple[str, str], ...]:
    """The columns that seem to be those of the calibration table under other names.

    A column may be renamed only if it has the same role in both tables, the calibration table has
    none of its name, and no column would be missing afterwards.

    Returns
    -------
    tuple of (str, str)
        The name in ``table`` and that in the calibration table. Untrusted text. Empty if no column
        is missing, or one stays missing.
    """
    calibration = review.tables.get("calibration")
    if calibration is None or review.roles is None:
        return ()
    roles, theirs = undoubted(review.roles, review.doubts), reading.roles
    if any(getattr(roles, of) != getattr(theirs, of) for of in ("task", "output_kind", "family")):
        return ()
    roles, _ = shared_features(review, roles, table)
    missing = {one for one in used_columns(roles) if one not in table.column_names}
    pairs = tuple((new, old) for old, new in _same_roles(roles, theirs) if old in missing)
    names = [new for new, _ in pairs]
    free = not {*names} & {*calibration.column_names} and len({*names}) == len(names)
    fits = free and {old for _, old in pairs} == missing and len(pairs) == len(missing)
    return pairs if fits and _may_be_same(calibration, roles.target, table, theirs.target) else ()


def _same_roles(ours: Roles, theirs: Roles) -> Iterator[tuple[str, str]]:
    """Our column and theirs for each role that both tables have."""
    for role in _SINGLE:
        old, new = getattr(ours, role), getattr(theirs, role)
        if old is not None and new is not None:
            yield old, new
    for named, others in ((ours.outputs, theirs.outputs), (ours.parameters, theirs.parameters)):
        known = dict(others)
        if {*known} == {name for name, _ in named}:
            yield from ((column, known[name]) for name, column in named)


def _may_be_same(
    calibration: TableInfo, ours: str | None, table: TableInfo, theirs: str | None
) -> bool:
    """Whether the values of two targets of two classes are not other ones."""
    first, second = (
        next((one.pair for one in of.columns if one.name == name), ())
        for of, name in ((calibration, ours), (table, theirs))
    )
    return not first or not second or first == second


def renamed(workspace: Workspace, review: Review, name: str) -> Review:
    """The review where a table without a place has its columns named as the calibration table.

    ``name`` is its key. Nothing changes for a table that is not asked about.

    Raises
    ------
    InputError
        If the file was deleted or changed, or a name would occur twice.
    """
    table = review.unplaced.get(name)
    if table is None or not table.other_names:
        return review
    path = workspace.new_file(review.id, "table.arrow")
    kwargs = {
        "frame_path": str(table_path(workspace.folder(review.id), table)),
        "table": asdict(table),
        "path": str(path),
    }
    with new_files(path), naming_file(table.name):
        reply = ask_worker("rename_columns", kwargs, seconds=READ_TIME, what="Renaming the columns")
        made = replace(decode_table(reply, table.name, path), partial=table.partial)

        def change(now: Review) -> Review:
            check_unchanged(review, now)
            return replace(now, unplaced={**now.unplaced, name: made})

        return change_review(workspace, review.id, change)
