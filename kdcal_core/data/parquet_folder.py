"""A table that lies in many Parquet files, read row group by row group.

A folder or a list stands for the rows of its files in the order of their names, whatever the order
in which they are read. Only the columns that are asked for are read, in blocks of bounded size.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from glob import has_magic
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from kdcal_core.data.arrow_tables import (
    check_claims,
    check_column_names,
    check_column_types,
    check_size,
    decoded_bytes,
    named_parquet_faults,
    repeating,
    to_frame,
)
from kdcal_core.data.folder_parts import FilePart, FolderParts, PartialColumn
from kdcal_core.data.list_columns import (
    columns_to_look_into,
    stored_columns,
    widths_of_lists,
    with_entries,
)
from kdcal_core.data.splits import at_most
from kdcal_core.errors import InputError
from kdcal_core.quotas import ROWS, TABLE
from kdcal_core.store.disk import digest_of
from kdcal_core.text import listed

ROOTS = "KDCAL_TABLE_FOLDERS"
"""Variable of the environment: folders in which tables may lie, separated as in PATH."""

PartedFiles = str | Path | Sequence[str | Path]
"""A folder of Parquet files, a pattern, or a list of files, folders and patterns."""

MOST_FILES = 4096
_CELLS = 1 << 21  # of a block: many small blocks leave two threads waiting for each other
_FIRST_ROWS = 1_000
_LEAST, _MOST = 1 << 14, 1 << 20  # rows of a block
_BLOCK_BYTES = 1 << 28
_BUFFER = 1 << 20
_MOST_PARTIAL = 1000  # columns that are remembered
_ESCAPED = re.compile(r"\[[*?[]\]")  # in a pattern
_FIX = f"Name folders in {ROOTS}, or choose one of those named there."


def allowed_roots() -> tuple[Path, ...]:
    """The folders that `ROOTS` names, resolved; none if it is not set.

    Examples
    --------
    >>> import os
    >>> before = os.environ.get(ROOTS)
    >>> os.environ[ROOTS] = os.pathsep.join(["/", "", "relative"])
    >>> [str(one) for one in allowed_roots()]
    ['/']
    >>> _ = os.environ.pop(ROOTS) if before is None else os.environ.update({ROOTS: before})
    """
    named = os.environ.get(ROOTS, "").split(os.pathsep)
    return tuple(Path(one).resolve() for one in named if one and Path(one).is_absolute())


def is_parted(tables: PartedFiles) -> bool:
    """Whether rows lie in a folder, a pattern or a list of Parquet files, not in one file.

    Examples
    --------
    >>> is_parted("a.parquet"), is_parted("2026-*.parquet"), is_parted(("a.parquet",))
    (False, True, True)
    """
    return not isinstance(tables, str | Path) or Path(tables).is_dir() or _is_pattern(tables)


def name_of_parted(tables: PartedFiles) -> str:
    """The name of a table in many files: that of the folder, or of the files. Untrusted text.

    Examples
    --------
    >>> name_of_parted("scores/may"), name_of_parted(("may/a.parquet", "may/b.parquet"))
    ('may', 'a.parquet and b.parquet')
    """
    if isinstance(tables, str | Path):
        where = Path(tables)
        return (where.resolve() if where.is_dir() else where).name or str(tables)
    return listed([Path(one).name or str(one) for one in tables], 3)


def names_of_list(tables: PartedFiles) -> tuple[str, ...]:
    """The paths of a list, or a pattern, from the folder that holds them all; none of a folder.

    Examples
    --------
    >>> names_of_list(["scores/may/a.parquet", "scores/june"]), names_of_list("scores")
    (('may/a.parquet', 'june'), ())
    >>> names_of_list("scores/20??/*.parquet")
    ('20??/*.parquet',)
    """
    if isinstance(tables, str | Path):
        if not _is_pattern(tables):
            return ()
        parts = Path(tables).parts
        first = next(at for at, part in enumerate(parts) if has_magic(_ESCAPED.sub("", part)))
        return (Path(*parts[first:]).as_posix(),)
    places = [Path(one).absolute() for one in tables]
    common = os.path.commonpath([one.parent for one in places])
    return tuple(one.relative_to(common).as_posix() for one in places)


def place_of_parted(tables: PartedFiles) -> str:
    """Where a table in many files lies, for errors: the path as given, or the files' names."""
    return str(tables) if isinstance(tables, str | Path) else name_of_parted(tables)


def parquet_files(
    tables: PartedFiles, roots: Sequence[Path] | None = None
) -> tuple[tuple[Path, str], ...]:
    """The Parquet files of a folder and of the folders in it, or of a list, by name.

    Names that begin with a dot or an underscore are left out of folders: writers of such folders
    keep notes of their own there.

    Parameters
    ----------
    tables : path, or sequence of paths
        A folder or a pattern, or a list of files, folders and patterns. What is named twice is
        read once, and the list of all files of a folder gives the same table as the folder.
    roots : sequence of Path, optional
        Resolved folders: every folder and file, links followed, lies in one of them. Without them
        every file of a folder lies in the folder itself.

    Returns
    -------
    tuple of (Path, str)
        Each file, links followed, and its path within the folder, or within the folder that all of
        a list have in common, for errors. Untrusted text.

    Raises
    ------
    InputError
        For a folder or file that does not exist or may not be read, a pattern without files, no
        Parquet file or more than `MOST_FILES`, and for links that lead out of a folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as made:
    ...     _ = (Path(made) / "b.parquet").write_bytes(b""), (Path(made) / "_SUCCESS").touch()
    ...     [name for _, name in parquet_files(made)], parquet_files([f"{made}/*.parquet"])[0][1]
    (['b.parquet'], 'b.parquet')
    """
    if isinstance(tables, str | Path) and not _is_pattern(tables):
        found = _of_folder(tables, roots)
    else:
        found = _of_list([tables] if isinstance(tables, str | Path) else tables, roots)
    if len(found) > MOST_FILES:
        raise InputError(
            f"These are {len(found):,} Parquet files; at most {MOST_FILES:,} can be read",
            fix="Write the table in fewer files.",
            file=place_of_parted(tables),
        )
    return tuple(sorted(found, key=lambda one: one[1]))


def _is_pattern(one: str | Path) -> bool:
    return has_magic(str(one)) and not Path(one).exists()


def _of_list(tables: Sequence[str | Path], roots: Sequence[Path] | None) -> list[tuple[Path, str]]:
    """The files that a list names, by their paths within the folder that they have in common."""
    found: dict[Path, Path] = {}
    for one in (path for given in tables for path in _expanded(Path(given))):
        if one.is_dir():
            for path, name in _of_folder(one, roots):
                found.setdefault(path, one.absolute() / name)
            continue
        if not one.is_file():
            raise InputError("There is no such file", fix="Check its path.", file=str(one))
        if one.suffix.lower() != ".parquet":
            raise InputError(
                "A list of files may hold Parquet files only",
                fix="Give files whose names end in .parquet, or one table of another format.",
                file=str(one),
            )
        path = one.resolve()
        if roots is not None and not _within(path, roots):
            raise InputError("This file may not be read", fix=_FIX, file=str(one))
        found.setdefault(path, one.absolute())
    if not found:
        raise InputError("The list names no file", fix="Name Parquet files in it.")
    common = os.path.commonpath([place.parent for place in found.values()])
    return [(path, place.relative_to(common).as_posix()) for path, place in found.items()]


def _expanded(given: Path) -> Sequence[Path]:
    """What a pattern matches, without what `parquet_files` leaves out of folders."""
    if not _is_pattern(given):
        return [given]
    whole = given.absolute()
    names = whole.relative_to(whole.anchor)
    # "a**" matches nothing in Python 3.11, which raises an error, and as much as "a*" does in 3.13
    matches = not any("**" in part and part != "**" for part in names.parts)
    matching = Path(whole.anchor).glob(str(names)) if matches else ()
    found = [
        one
        for one in sorted(matching)
        if (one.is_dir() or one.suffix.lower() == ".parquet")
        and all(part[0] not in "._" or part in whole.parts for part in one.parts)
    ]
    if not found:
        raise InputError("No Parquet file matches the pattern", fix="Check it.", file=str(given))
    return found


def _of_folder(folder: str | Path, roots: Sequence[Path] | None) -> list[tuple[Path, str]]:
    given = Path(folder)
    if "\0" in str(folder) or not given.is_dir():
        raise InputError("There is no such folder", fix="Check its path.", file=str(folder))
    whole = given.resolve()
    inside = (whole,) if roots is None else tuple(roots)
    if not _within(whole, inside):
        raise InputError("Tables in this folder may not be read", fix=_FIX, file=str(folder))
    found: list[tuple[Path, str]] = []
    for place, folders, files in os.walk(whole):
        folders[:] = [one for one in folders if one[0] not in "._"]
        for one in (*folders, *files):
            path = Path(place) / one
            name = path.relative_to(whole).as_posix()
            if path.is_symlink() and not _within(path.resolve(), inside):
                raise InputError(
                    "A link leads out of the folders that may be read",
                    fix="Copy the file into the folder.",
                    file=name,
                )
            if one in folders or one[0] in "._" or path.suffix.lower() != ".parquet":
                continue
            if not path.is_file():
                raise InputError("This is not a file", fix="Remove it.", file=name)
            found.append((path.resolve(), name))
    if not found:
        raise InputError(
            "The folder holds no Parquet file",
            fix="Give a folder of files whose names end in .parquet.",
            file=str(folder),
        )
    return found


_UNLIKE = (pa.ArrowInvalid, pa.ArrowTypeError)


def _common_schema(schemas: Sequence[tuple[str, pa.Schema]], names: Sequence[str]) -> pa.Schema:
    """The columns with types that hold the values of all files; refuse types without such a one."""
    unlike: dict[pa.Schema, str] = {}
    for file, schema in schemas:
        unlike.setdefault(schema.remove_metadata(), file)
    fields = []
    for name in names:
        (first, common), *others = (
            (file, _plain_field(schema, name)) for schema, file in unlike.items()
        )
        for file, one in others:
            if one.type == common.type:
                continue
            try:
                (common,) = pa.unify_schemas(
                    [pa.schema([common]), pa.schema([one])], promote_options="permissive"
                )
            except _UNLIKE as error:
                raise _different(file, one, first, common.type) from error
        fields.append(common)
    return pa.schema(fields)


def _different(file: str, one: pa.Field, other: str, kind: pa.DataType) -> InputError:
    return InputError(
        f"The column has different types in different files: {one.type} here, {kind} in "
        f"{other[:80]!r}",
        fix="Write it alike in all files.",
        file=file,
        column=one.name,
    )


def _plain_field(schema: pa.Schema, name: str) -> pa.Field:
    return pa.field(name, _plain_type(schema.field(name).type))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(batch: pa.RecordBatch, group: RowGroup, schema: pa.Schema) -> pa.Table:
    """A batch without dictionaries in these types, after a look at how large it would be then."""
    decoded = sum(decoded_bytes(pa.chunked_array([one])) for one in batch.columns)
    check_size(decoded, group.title, _BLOCK_BYTES)
    columns = []
    for field, column in zip(schema, batch.columns, strict=True):
        try:
            columns.append(column.cast(_plain_type(column.type)).cast(field.type))
        except _UNLIKE as error:
            raise InputError(
                f"A value of {column.type} cannot be written as {field.type}, as the column needs "
                "for the values of other files",
                fix="Write the column alike in all files.",
                file=group.title,
                column=field.name,
            ) from error
    return pa.table(columns, schema=schema)


def digest_of_files(files: Sequence[tuple[Path, str]]) -> str:
    """SHA-256 of what ``sha256sum`` prints of the files, in the order given.

    Raises
    ------
    OSError
        If one cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as made:
    ...     _ = (Path(made) / "a.parquet").write_bytes(b"")
    ...     digest_of_files(parquet_files(made))[:8]
    '3631b86e'
    """
    lines = hashlib.sha256()
    for path, name in files:
        plain = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        mark = "" if plain == name else "\\"  # as sha256sum marks a name that it had to change
        lines.update(f"{mark}{digest_of(path)}  {plain}\n".encode("utf-8", "surrogateescape"))
    return lines.hexdigest()


def _within(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


@dataclass(frozen=True)
class RowGroup:
    """A row group: its file, its number there from 0, and its first row, in file and in table."""

    path: Path
    file: str
    number: int
    rows: int
    in_file: int
    in_table: int

    @property
    def title(self) -> str:
        """The place for errors. Untrusted text."""
        return f"{self.file}, row group {self.number + 1}"


def _partial_columns(schemas: Sequence[tuple[str, pa.Schema]]) -> tuple[PartialColumn, ...]:
    """The columns that only some of the files have, at most `_MOST_PARTIAL`."""
    having = Counter(name for _, schema in schemas for name in schema.names)
    n, lacks = len(schemas), dict[str, str]()  # of the first file's columns, who lacks them first
    left = set(schemas[0][1].names)
    for file, schema in schemas:
        lacks |= dict.fromkeys(left - set(schema.names), file)
        left -= lacks.keys()
    partial = ((name, n - files) for name, files in having.items() if files < n)
    return tuple(
        PartialColumn(name, lacks.get(name, schemas[0][0]), lacking, n)
        for name, lacking in islice(partial, _MOST_PARTIAL)
    )


class PartedTable:
    """The rows of many Parquet files, in the order given.

    Parameters
    ----------
    files : sequence of (Path, str)
        Files and their names, as :func:`parquet_files` gives them.

    Attributes
    ----------
    names : tuple of str
        Columns that every file has, in the order of the first. Untrusted text.
    partial : tuple of PartialColumn
        The first 1,000 columns that only some files have. They are not read.
    groups : tuple of RowGroup
    n_rows : int

    Raises
    ------
    InputError
        For a file that is damaged, unpacks to too much, or has faulty column names; for files
        without rows or without a common column.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as made:
    ...     pq.write_table(pa.table({"p": [0.1, 0.2, 0.3]}), f"{made}/a.parquet", row_group_size=2)
    ...     table = PartedTable(parquet_files(made))
    ...     [(one.in_table, block["p"].tolist()) for one in table.groups
    ...      for _, block in table.read(one, ["p"])]
    [(0, [0.1, 0.2]), (2, [0.3])]
    """

    def __init__(self, files: Sequence[tuple[Path, str]]) -> None:
        groups: list[RowGroup] = []
        schemas: list[tuple[str, pa.Schema]] = []
        total = 0
        for path, name in files:
            with named_parquet_faults(name):
                metadata = pq.read_metadata(path)
                schema = metadata.schema.to_arrow_schema()
            if metadata.num_rows == 0:  # an empty part is no fault
                continue
            check_column_names(schema.names, name)
            check_claims(metadata, path.stat().st_size, name)
            schemas.append((name, schema))
            before = 0
            for number in range(metadata.num_row_groups):
                rows = int(metadata.row_group(number).num_rows)
                groups.append(RowGroup(path, name, number, rows, before, total))
                before, total = before + rows, total + rows
        if not total:
            raise InputError("The files have no rows", fix="Give at least one row.")
        self.partial = _partial_columns(schemas)
        missing = {one.name for one in self.partial}
        self._stored = tuple(name for name in schemas[0][1].names if name not in missing)
        if not self._stored:
            raise InputError("The files have no column in common", fix="Give parts of one table.")
        self._schemas = schemas
        self.groups = tuple(groups)
        self.n_rows = total
        self._widths = self._widths_in(columns_to_look_into(schemas[0][1]))
        self.names = with_entries(self._stored, self._widths)

    def _widths_in(self, looked: Sequence[str]) -> dict[str, int]:
        """The columns of lists among these, by the first rows."""
        looked = [name for name in looked if name in self._stored]
        first = next(self._batches(self.groups[0], looked, _FIRST_ROWS)) if looked else None
        if first is None:
            return {}
        title = self.groups[0].title
        check_size(sum(decoded_bytes(pa.chunked_array([one])) for one in first.columns), title)
        plain = [one.cast(_plain_type(one.type)) for one in first.columns]
        return widths_of_lists(pa.table(plain, names=first.schema.names), file=title)

    def read(self, group: RowGroup, columns: Sequence[str]) -> Iterator[tuple[int, pd.DataFrame]]:
        """Blocks of a row group, each with the place of its first row in the group.

        Raises
        ------
        InputError
            For a column that the table does not have, a damaged file, or a block that is too large.
        """
        for column in columns:
            for one in self.partial:
                if one.name == column:
                    raise one.error()
            if column not in self.names:
                raise InputError(
                    "The files have no such column",
                    fix=f"Columns of all files are: {listed(self.names, 10)}.",
                    file=group.file,
                    column=column,
                )
        wanted, before = list(columns), 0
        stored = stored_columns(wanted, self._widths)
        rows = min(max(_CELLS // max(len(wanted), 1), _LEAST), _MOST)
        for batch in self._batches(group, stored, rows):
            decoded = sum(decoded_bytes(pa.chunked_array([one])) for one in batch.columns)
            check_size(decoded, group.title, _BLOCK_BYTES)
            frame, _ = to_frame(pa.Table.from_batches([batch]), group.title, self._widths, before)
            yield before, frame[wanted]
            before += len(frame)

    def sample(self, n_rows: int) -> pa.Table:
        """About so many rows of all columns, from row groups that are spread evenly.

        Its metadata say from which files the rows come (`FolderParts`).

        Raises
        ------
        InputError
            As :meth:`write` for types.
        """
        most = min(len(self.groups), 50)
        chosen = [self.groups[at * len(self.groups) // most] for at in range(most)]
        each = max(n_rows // most, 1)
        schema, tables, parts = _common_schema(self._schemas, self._stored), [], []
        for group in chosen:
            first = next(self._batches(group, list(self._stored), min(each, _LEAST)))
            tables.append(_plain(first, group, schema))
            parts.append(FilePart(group.title, group.in_file, len(first)))
        found = FolderParts(tuple(parts), self.partial)
        return pa.concat_tables(tables).replace_schema_metadata(found.metadata())

    def write(self, path: Path, most: int | None = None) -> None:
        """Write the rows of all files into one, whose metadata say from which files they come.

        Parameters
        ----------
        most : int, optional
            Of more rows than these, write as many drawn at random from all files, always the same
            ones, in their order. The metadata then do not say from which files they come.

        Raises
        ------
        InputError
            For a table that is larger than any may be, and where a column has different types in
            different files: the error names the column and the first such file.
        """
        drawn = None if most is None or self.n_rows <= most else at_most(self.n_rows, most)
        self._check_whole(self.n_rows if drawn is None else len(drawn))
        schema = _common_schema(self._schemas, self._stored)
        rows = dict.fromkeys((group.file for group in self.groups), 0)
        for group in self.groups:
            rows[group.file] += group.rows
        parts = tuple(FilePart(file, 0, n) for file, n in rows.items() if drawn is None)
        found = FolderParts(parts, self.partial).metadata()
        with pq.ParquetWriter(path, schema.with_metadata(found)) as writer:
            for group in self.groups:
                before = group.in_table
                for batch in self._batches(group, list(self._stored), _LEAST):
                    if drawn is not None:
                        ends = np.searchsorted(drawn, [before, before + len(batch)])
                        some = drawn[slice(*ends)] - before
                        before += len(batch)
                        batch = batch.take(pa.array(some))
                    writer.write_table(_plain(batch, group, schema.with_metadata(found)))

    def _check_whole(self, n_rows: int) -> None:
        """Refuse so many of the rows where a table of them would be larger than any may be."""
        stated = 0
        for group in self.groups:
            with named_parquet_faults(group.title):
                stated += pq.read_metadata(group.path).row_group(group.number).total_byte_size
        needed = max(stated * n_rows // self.n_rows, n_rows * len(self.names) * 8)
        fix = (
            "Let rows be drawn from it, judge it with 'kdcal audit run', which keeps counts of its "
            "rows only, or choose a smaller one."
        )
        ROWS.refuse_beyond(n_rows, "The folder", fix=fix)
        TABLE.refuse_beyond(
            needed,
            "The rows of the folder",
            verb="would take",
            where=" in memory",
            fix=fix,
        )

    def _batches(self, group: RowGroup, columns: list[str], rows: int) -> Iterator[pa.RecordBatch]:
        with named_parquet_faults(group.title):
            schema = pq.read_schema(group.path)
            asked = pa.schema([schema.field(one) for one in columns])
            check_column_types(asked, group.file, lists=True)
            with pq.ParquetFile(
                group.path,
                buffer_size=_BUFFER,
                pre_buffer=False,
                read_dictionary=repeating(schema),
            ) as file:
                yield from file.iter_batches(
                    rows, row_groups=[group.number], columns=columns, use_threads=False
                )
