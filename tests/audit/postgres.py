"""A PostgreSQL server for the tests: ``python tests/audit/postgres.py COMMAND ...`` runs a command
beside it, with ``KDCAL_TEST_DATABASE_URL`` set, and stops it afterwards.

It needs Debian's package postgresql. Its data lie in a temporary folder and are not written to the
disk with care, so it is fast and for tests alone.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "KDCAL_TEST_DATABASE_URL"
ASKED = "kdcal_asked"
"""The user whom the server asks for a password; there is none that is right."""
_OPTIONS = ("fsync=off", "full_page_writes=off", "max_connections=200")


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; None where PostgreSQL is not installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].parent if found else None


@contextmanager
def server(folder: Path | None = None) -> Iterator[str]:
    """The address of a running server; its files lie in a new folder, of this name if one is given.

    After ``stop``, which waits for one that is ending by itself, ``start`` starts it again.
    """
    if programs() is None:
        raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
    if folder is None:
        folder = Path(tempfile.mkdtemp(prefix="kdcal-postgres-"))
    else:
        folder.mkdir()
    if _as_user():
        shutil.chown(folder, "postgres")
    data, port = folder / "data", _free_port()
    try:
        _quietly([*_program("initdb"), "-D", str(data), "-A", "trust", "-U", "kdcal"])
        rules = data / "pg_hba.conf"
        rules.write_text(f"host all {ASKED} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        url = f"postgresql://kdcal@127.0.0.1:{port}/postgres"
        start(folder, url)
        yield url
    finally:
        stop(folder)
        shutil.rmtree(folder, ignore_errors=True)


def start(folder: Path, url: str) -> None:
    """Start the server of a folder at its address."""
    port = url.rpartition("/")[0].rpartition(":")[2]
    options = " ".join(f"-c {one}" for one in _OPTIONS)
    run = [*_program("pg_ctl"), "-D", str(folder / "data"), "-l", str(folder / "log"), "-w"]
    _quietly([*run, "-o", f"-p {port} -k {folder} -h 127.0.0.1 {options}", "start"])


def stop(folder: Path) -> None:
    """Stop the server of a folder at once, if it runs."""
    run = [*_program("pg_ctl"), "-D", str(folder / "data"), "-w", "-m", "immediate", "stop"]
    subprocess.run(run, capture_output=True, check=False)


def _program(name: str) -> list[str]:
    found = programs()
    assert found is not None
    return [*_as_user(), str(found / name)]


def _as_user() -> list[str]:
    """What runs a program as a user whom the server accepts: it refuses to run as root."""
    return ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _quietly(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        raise SystemExit(f"{command[-1]}: {done.stdout}{done.stderr}")


def main(command: list[str]) -> int:
    """Run the command beside a server."""
    with server() as url:
        return subprocess.run(command, env={**os.environ, VARIABLE: url}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
