"""Pictures with their classes, from files in the forms in which the sets are published.

`mnist.npz` and `fashion_mnist.npz` hold the arrays X_train, y_train, X_test and y_test. CIFAR-10
and CIFAR-100 are read from the folders of their binary versions (those for Python are pickles,
which are never opened), SVHN from its two MATLAB files of cropped digits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import IntArray
from kdcal_core.errors import InputError

Pixels = NDArray[np.uint8]
Part = tuple[Pixels, IntArray]
Reader = Callable[[Path, str], Part]
"""(folder, "train" or "test") -> images (n, channels, side, side) and classes from 0, (n,)."""
COLOUR = (3, 32, 32)
_CIFAR10 = {
    "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
    "test": ("test_batch.bin",),
}


def mnist(data: Path, part: str) -> Part:
    """Digits, (n, 1, 28, 28)."""
    return _arrays(data / "mnist.npz", part)


def fashion_mnist(data: Path, part: str) -> Part:
    """Clothes, (n, 1, 28, 28)."""
    return _arrays(data / "fashion_mnist.npz", part)


def cifar10(data: Path, part: str) -> Part:
    """Ten kinds of things, (n, 3, 32, 32): a record is one byte for the class and the pixels."""
    folder = data / "cifar-10-batches-bin"
    return _records([folder / name for name in _CIFAR10[part]], of_class=0, n_labels=1)


def cifar100(data: Path, part: str) -> Part:
    """A hundred kinds, (n, 3, 32, 32): a record's second byte is the class, the first its group."""
    return _records([data / "cifar-100-binary" / f"{part}.bin"], of_class=1, n_labels=2)


def svhn(data: Path, part: str) -> Part:
    """House numbers, (n, 3, 32, 32); the files write the digit 0 as 10."""
    from scipy.io import loadmat

    file = _there(data / f"{part}_32x32.mat")
    found = loadmat(file, variable_names=("X", "y"))
    X, y = found.get("X"), found.get("y")
    if X is None or y is None or X.shape[:3] != COLOUR[1:] + COLOUR[:1] or X.shape[3] != y.size:
        raise InputError(
            "The file does not hold images X of 32 x 32 x 3 x n and n labels y",
            fix="Take the cropped digits (format 2).",
            file=str(file),
        )
    return np.ascontiguousarray(X.transpose(3, 2, 0, 1)), y.ravel().astype(np.int64) % 10


def _arrays(file: Path, part: str) -> Part:
    with np.load(_there(file)) as arrays:
        return arrays[f"X_{part}"][:, None], arrays[f"y_{part}"].astype(np.int64)


def _records(files: list[Path], *, of_class: int, n_labels: int) -> Part:
    size = n_labels + int(np.prod(COLOUR))
    parts = []
    for file in files:
        found = np.fromfile(_there(file), dtype=np.uint8)
        if not found.size or found.size % size:
            raise InputError(
                f"The file is not a list of records of {size:,} bytes",
                fix="Take the binary version, and unpack it again.",
                file=str(file),
            )
        parts.append(found.reshape(-1, size))
    records = np.concatenate(parts)
    return records[:, n_labels:].reshape(-1, *COLOUR), records[:, of_class].astype(np.int64)


def _there(file: Path) -> Path:
    if not file.is_file():
        raise InputError(
            "There is no such file",
            fix="Put the set's files into the folder of --data as they are published, unpacked.",
            file=str(file),
        )
    return file
