"""A process that reads an uploaded file reaches that file, its folder, and nothing else."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from job_probes import can_limit

from kdcal_core.cli import main
from kdcal_core.jobs import JobManager, confinement, sandbox
from kdcal_core.jobs.sandbox import confine, named_paths

TRY = """
import json, os, socket, sys, tempfile
from multiprocessing.pool import ThreadPool
import kdcal_core
from kdcal_core.jobs.sandbox import confine
request, folder, port, secret = json.loads(sys.argv[1])
thread = ThreadPool(1)
if not confine(request, folder):
    print("unlimited")
    raise SystemExit
def tried(what):
    try:
        return str(what() or "done")
    except OSError as error:
        return type(error).__name__
import sklearn.tree  # installed libraries are read as before
print(json.dumps({
    "own": tried(lambda: open(request["path"]).read()),
    "result": tried(lambda: open(folder + "/found.npy", "w").close()),
    "moved": tried(lambda: (os.mkdir(folder + "/a"), os.replace(folder + "/found.npy",
                                                                folder + "/a/b")) and None),
    "temporary": tried(lambda: tempfile.TemporaryFile().close()),
    "memory": tried(lambda: open("/proc/meminfo").close()),
    "secret": tried(lambda: open(secret).read()),
    "changed": tried(lambda: open(request["path"], "w").close()),
    "listed": tried(lambda: os.listdir(os.path.dirname(secret))),
    "accounts": tried(lambda: open("/etc/passwd").read()),
    "others": tried(lambda: open(f"/proc/{os.getppid()}/environ", "rb").read()),
    "program": tried(lambda: os.execv("/bin/true", ["true"])),
    "network": tried(lambda: socket.create_connection(("127.0.0.1", port), 5).close()),
    "datagram": tried(lambda: socket.socket(type=socket.SOCK_DGRAM)),
    "service": tried(lambda: socket.socket(socket.AF_UNIX)),
    "several paths": tried(lambda: socket.socket(proto=262)),  # TCP that Landlock does not see
    "another thread": thread.apply(tried, [lambda: socket.socket()]),
    "pair": tried(lambda: [one.close() for one in socket.socketpair()] and None),
    "checkout": tried(lambda: open(kdcal_core.__path__[0] + "/../pyproject.toml").close()),
}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has Landlock")
def test_a_confined_process_reaches_what_its_request_names(tmp_path: Path) -> None:
    file, secret, folder = tmp_path / "in" / "a.csv", tmp_path / "key", tmp_path / "out"
    for one in (file.parent, folder):
        one.mkdir()
    file.write_text("a,b")
    secret.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        words = json.dumps(
            [{"path": str(file)}, str(folder), listening.getsockname()[1], str(secret)]
        )
        ran = subprocess.run(
            [sys.executable, "-P", "-c", TRY, words], capture_output=True, text=True, timeout=120
        )
    assert ran.returncode == 0, ran.stderr
    if ran.stdout == "unlimited\n":
        pytest.skip("this kernel has no Landlock")
    found = json.loads(ran.stdout)
    refused = {key for key, answer in found.items() if answer == "PermissionError"}
    assert found["own"] == "a,b"
    assert refused == {
        *("secret", "changed", "listed", "accounts", "others", "program", "checkout"),
        *("network", "datagram", "service", "several paths", "another thread"),
    }
    assert {key: found[key] for key in found.keys() - refused - {"own"}} == dict.fromkeys(
        ("result", "moved", "temporary", "memory", "pair"), "done"
    )


def test_paths_are_found_wherever_a_request_names_them(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("")
    request = {
        "path": str(file),
        "tables": [{"frame_path": str(tmp_path / "new" / "a.arrow"), "folder": str(tmp_path)}],
        "paths": {"training": str(tmp_path / "part" / "b.arrow")},
        "name": "/etc/passwd",  # a stranger names files, columns and classes
        "classes": ["/etc", "/root/.ssh"],
        "roles": {"target": "/etc", "outputs": [["/etc", "/root"]]},
        "folder": "/a\0b",
        "rows": 3,
    }
    assert named_paths(request) == (
        {file},
        {tmp_path / "new", tmp_path / "part", tmp_path},
    )


def test_without_the_library_nothing_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py_landlock", None)
    assert confine({}, None) is False


MAY = ("write its result", "write temporary files", "share its work", "see the memory")


@pytest.mark.skipif(not can_limit(), reason="this kernel has no Landlock")
def test_a_job_reaches_its_review_and_its_result_and_nothing_else(tmp_path: Path) -> None:
    """As the model of a review would, in the real process of a job."""
    manager = JobManager(folder=tmp_path / "jobs")
    review, outside = tmp_path / "review", tmp_path / "other" / "secret"
    for one in (review, outside.parent):
        one.mkdir()
    (review / "rows").write_text("rows ")
    stored = tmp_path / "stored"
    stored.write_text("stored")
    outside.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        kwargs: dict[str, Any] = {
            "within": [str(review / "rows"), str(stored)],
            "outside": str(outside),
            "port": listening.getsockname()[1],
        }
        job_id = manager.submit(
            "job_probes:reach",
            kwargs,
            title="Reaching out",
            key="reach",
            reads=[str(review), str(stored)],
        )
        job = manager.wait(job_id, 120)
    assert job.error is None
    found = dict(job.result)
    assert found.pop("read what it may") == "rows stored"
    assert {one for one, answer in found.items() if answer == "done"} == {*MAY}
    assert {answer for one, answer in found.items() if one not in MAY} == {"PermissionError"}
    assert [one.name for one in job.folder.rglob("*")] == ["made", "a.npy"]
    assert list((tmp_path / "jobs").rglob("temporary")) == []


class Landlock:
    """Stands in for the library on another kernel."""

    LandlockError = type("LandlockError", (Exception,), {})
    LandlockDisabledError = type("LandlockDisabledError", (LandlockError,), {})

    def __init__(self, found: int | type[Exception]) -> None:
        self.found = found

    def get_abi_version(self) -> int:
        if isinstance(self.found, int):
            return self.found
        raise self.found


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (7, "reach only the files that they need, and no network."),
        (1, "reach only the files that they need, but any network: this kernel cannot filter"),
        (Landlock.LandlockDisabledError, "all that this account does: Landlock is switched off"),
        (Landlock.LandlockError, "all that this account does: this kernel has no Landlock"),
        (None, "all that this account does: py-landlock is not installed."),
    ],
)
def test_what_this_machine_cannot_limit_is_said(
    found: Any, expected: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setitem(sys.modules, "py_landlock", None if found is None else Landlock(found))
    monkeypatch.setattr(sandbox, "can_refuse_sockets", lambda: found == 7)
    assert expected in confinement().sentence
    assert bool(confinement().why) is (found != 7)
    assert main(["limits"]) == 0
    assert expected in capsys.readouterr().out


def test_limits_as_json_say_whether_files_and_network_are_closed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["limits", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["confinement"]
    assert (said["files"], said["network"]) == (confinement().files, confinement().network)
