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
def server() -> Iterator[str]:
    """The address of a running server."""
    bin_folder = programs()
    if bin_folder is None:
        raise SystemExit("PostgreSQL is not installed: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="kdcal-postgres-"))
    # the server refuses to run as root
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    if as_user:
        shutil.chown(folder, "postgres")
    data, port = folder / "data", _free_port()
    run = [*as_user, str(bin_folder / "pg_ctl"), "-D", str(data), "-l", str(folder / "log"), "-w"]
    options = " ".join(f"-c {one}" for one in _OPTIONS)
    try:
        _quietly(
            [*as_user, str(bin_folder / "initdb"), "-D", str(data), "-A", "trust", "-U", "kdcal"]
        )
        rules = data / "pg_hba.conf"
        rules.write_text(f"host all {ASKED} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        _quietly([*run, "-o", f"-p {port} -k {folder} -h 127.0.0.1 {options}", "start"])
        yield f"postgresql://kdcal@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*run, "-m", "immediate", "stop"], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


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
