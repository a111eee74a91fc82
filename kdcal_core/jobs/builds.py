"""What decides the bytes of a result beside its input: Python, the packages, kdcal's own files."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import kdcal_core
from kdcal_core.errors import InputError
from kdcal_core.text import counted, listed, printable

PACKAGES = (
    "numpy", "scipy", "pandas", "pyarrow", "scikit-learn", "numba", "llvmlite", "onnxruntime",
    "skops", "xgboost-cpu", "lightgbm", "torch",
)  # fmt: skip
_KDCAL = "kdcal's own files"
_NAMED = 5


def installed(packages: Iterable[str]) -> dict[str, str]:
    """The versions of those packages that are installed here.

    Examples
    --------
    >>> list(installed(["numpy", "no-such-package"]))
    ['numpy']
    """
    found = {}
    for name in packages:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


@cache
def files_digest() -> str:
    """The SHA-256 of kdcal's own Python files, their names included."""
    home = Path(kdcal_core.__file__).parent
    found = hashlib.sha256()
    for path in sorted(home.rglob("*.py")):
        found.update(f"{path.relative_to(home).as_posix()} ".encode())
        found.update(hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


@cache
def _build() -> tuple[tuple[str, str], ...]:
    packages = installed(PACKAGES)
    return (
        (_KDCAL, files_digest()[:12]),
        ("Python", platform.python_version()),
        ("processor", platform.machine()),
        *((name, packages.get(name, "missing")) for name in PACKAGES),
    )


def build() -> dict[str, str]:
    """What must be equal wherever parts of one result are computed, by its name.

    Versions hold the kind of build where a package names it, as in ``2.13.0+cpu``. The model of the
    processor is not among them: libraries choose instructions by it, and the last bit of a sum may
    follow.

    Examples
    --------
    >>> build()["Python"].split(".")[0]
    '3'
    """
    return dict(_build())


def require_same_build(wanted: Mapping[str, str], found: Mapping[str, Mapping[str, str]]) -> None:
    """Refuse workers whose build differs.

    Parameters
    ----------
    wanted : mapping
        `build` of the process that asks.
    found : mapping of worker's name to its `build`

    Raises
    ------
    InputError
        One error that names every difference, and the workers that have it.

    Examples
    --------
    >>> require_same_build({"numpy": "2.3"}, {"tcp://a:1": {"numpy": "2.2"}})
    Traceback (most recent call last):
    kdcal_core.errors.InputError: 1 worker has other versions than this process: numpy 2.2 in
    place of 2.3 (tcp://a:1). Install the same versions on every machine, ...
    """
    workers: dict[str, list[str]] = {}
    for worker, has in found.items():
        for name, one in wanted.items():
            other = has.get(name, "missing")
            if other != one:
                workers.setdefault(f"{name} {other} in place of {one}", []).append(worker)
    if not workers:
        return
    n = len({one for names in workers.values() for one in names})
    said = [f"{what} ({listed(names, _NAMED)})" for what, names in workers.items()]
    raise InputError(
        f"{counted(n, 'worker')} {'has' if n == 1 else 'have'} other versions than this process: "
        + printable(listed(said, _NAMED), 1000),
        fix="Install the same versions on every machine, with the same constraints file, and start "
        "the workers again.",
    )
