"""Files by their content: named by their SHA-256, written whole or not at all, checked on reading.

Every file is written before the line of the record that names it, so that the record never names a
file that was not there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from kdcal_core.audit.signing import digest
from kdcal_core.errors import InputError
from kdcal_core.store.disk import PART, make_folder, write_blocks

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Files:
    """A folder of files by content.

    Parameters
    ----------
    folder : Path
        It is created with the first file.

    Examples
    --------
    >>> import tempfile
    >>> files = Files(Path(tempfile.mkdtemp()))
    >>> name = files.put(b"what was found")
    >>> files.get(name), files.has(name), files.has("../../etc/passwd")
    (b'what was found', True, False)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, content: bytes) -> str:
        """Keep a file; its SHA-256.

        Raises
        ------
        InputError
            If the disk is full or the folder cannot be written; then there is no file.
        """
        name = digest(content)
        self.put_blocks(name, (content,))
        return name

    def put_blocks(self, name: str, blocks: Iterable[bytes]) -> None:
        """Keep a file of this SHA-256 that comes in blocks.

        Raises
        ------
        InputError
            As of `put`, and if the blocks are another file; then there is none of this name.
        """
        path = self._path(name)
        if not path.exists():
            try:
                make_folder(path.parent)
                write_blocks(path, _checked(name, blocks), durable=True)
            except OSError as error:
                raise InputError(
                    f"The files of audits cannot be written ({error.strerror or error})",
                    fix="Free space on their disk, or make their folder writable for this user.",
                    file=str(self.folder),
                ) from error

    def has(self, name: str) -> bool:
        """Whether the file is there."""
        return _DIGEST.fullmatch(name) is not None and self._path(name).is_file()

    def get(self, name: str) -> bytes:
        """The file of this SHA-256.

        Raises
        ------
        InputError
            If it is gone or was altered.
        """
        if not self.has(name):
            raise InputError(
                f"The file {name[:12]} of this audit is gone",
                fix="Restore the folder of audits from a backup.",
            )
        content = self._path(name).read_bytes()
        if digest(content) != name:
            raise InputError(
                f"The file {name[:12]} of this audit was altered after it was written",
                fix="Restore the folder of audits from a backup.",
            )
        return content

    def delete(self, name: str) -> None:
        """Delete the file, if it is there."""
        if self.has(name):
            self._path(name).unlink(missing_ok=True)

    def delete_parts(self) -> None:
        """Delete what is left of files whose writing was cut off. Nobody else may be writing."""
        for path in self.folder.glob(f"*/.*{PART}"):
            path.unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self.folder / name[:2] / name


def _checked(name: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks, and an error after the last one unless they are the file of this SHA-256."""
    found = hashlib.sha256()
    for block in blocks:
        found.update(block)
        yield block
    if found.hexdigest() != name:
        raise InputError(
            f"The file {name[:12]} was altered", fix="Give the file that kdcal wrote, unchanged."
        )
