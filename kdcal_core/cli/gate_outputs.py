"""What a gate or a watch may write: nothing that it reads, nothing of the record."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from kdcal_core.cli.terminal import check_out, keep_what_is_read, out_folder
from kdcal_core.errors import InputError


def check_outs(
    out: str | None,
    names: Sequence[str],
    junit: str | None,
    reads: Iterable[str | None],
    continued: Mapping[str, str] | None = None,
) -> Path | None:
    """Check every file that a command will write, and make their folders.

    Parameters
    ----------
    out : str or None
        The folder of --out.
    names : sequence of str
        Of the files written into it.
    junit : str or None
        The file of --junit. Its folder is made where it is that of --out or lies in it.
    reads : iterable of str or None
        The files that are read.
    continued : mapping of name to str, optional
        Further files that are read. Only the file of this name in --out may replace one, where
        both are the same.

    Returns
    -------
    Path or None
        The folder of --out.

    Raises
    ------
    InputError
        For a file that is read, or of the record, or that cannot be written; then no folder was
        made.
    """
    others, continued = tuple(reads), continued or {}
    reads = (*others, *continued.values())
    outs = [str(Path(out) / one) for one in names] if out else []
    inside = _lies_in(junit, out)
    if junit:
        _keep_the_outs(junit, outs)
        check_out(junit, reads, force=True, makes_folder=inside)
        keep_the_record(junit)
    for one in outs:
        replaced = continued.get(Path(one).name)
        kept = [before for before in continued.values() if before != replaced]
        if replaced and Path(replaced).resolve() != Path(one).resolve():
            kept.append(replaced)
        keep_what_is_read(one, (*others, *kept))
        keep_the_record(one)
    made = out_folder(out) if out else None
    if junit and inside:
        out_folder(str(Path(junit).parent))
    return made


def _lies_in(junit: str | None, out: str | None) -> bool:
    """Whether the file is to lie in the folder, or in one below it."""
    if not junit or not out or ".." in Path(junit).parts:  # of a folder that is not there yet
        return False
    return Path(junit).resolve().parent.is_relative_to(Path(out).resolve())


def _keep_the_outs(junit: str, outs: Sequence[str]) -> None:
    """Refuse a --junit that is a file of --out, or a folder that one of the two would need."""
    file, others = Path(junit).resolve(), [Path(one).resolve() for one in outs]
    if any(file == one or one in file.parents for one in others):
        raise InputError(
            "--junit names a file that --out writes", fix="Choose another name.", file=junit
        )
    if any(file in one.parents for one in others):
        raise InputError("The file to write is a folder", fix="Name a file in it.", file=junit)


def keep_the_record(out: str) -> None:
    """Refuse a file to write that lies among those of the record, or is the key that signs it.

    Raises
    ------
    InputError
        If it does.
    """
    from kdcal_core.audit import KEY_FILE, root_of_audits

    keep_what_is_read(out, (os.environ.get(KEY_FILE),))
    if Path(out).resolve().is_relative_to(root_of_audits().resolve()):
        raise InputError(
            "The file to write lies in the folder of the record",
            fix="Choose another folder.",
            file=out,
        )
