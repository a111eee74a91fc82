"""Many gates in one run: the configurations that a file lists, and one result of them all."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Executor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar
from xml.etree import ElementTree

import kdcal_core
from kdcal_core.audit.config import AuditConfig, read_config, read_toml
from kdcal_core.audit.gate import (
    AskedGate,
    Gate,
    Loaded,
    StartedGate,
    ask_gate,
    end_gate,
    gate_folder,
    judge_gate,
    load_gate,
    start_gate,
)
from kdcal_core.audit.gate_words import gate_json, gate_junit
from kdcal_core.audit.junit import plain_xml
from kdcal_core.blocks import in_flight
from kdcal_core.errors import InputError
from kdcal_core.progress import Progress, part_of, silent
from kdcal_core.text import counted, printable

JSON_FORMAT = 1
"""Of `gates_json`: increased when a field is renamed or removed or changes its meaning."""
MOST = 10_000
UNUSABLE = 2
_WORST = (0, 3, 1, UNUSABLE)
"""Exit codes from the best to the worst: what cannot be judged may be worse than a fail."""
_EVERY = 0.2
_LOADING = 0.2  # of a gate's time
T = TypeVar("T")


@dataclass(frozen=True)
class NamedConfig:
    """A configuration of a run.

    Attributes
    ----------
    name : str
        Its path, seen from the file that lists it. Untrusted text.
    path : Path
    """

    name: str
    path: Path


@dataclass(frozen=True)
class GateOutcome:
    """What became of one configuration: its gate, or why its input cannot be used."""

    config: NamedConfig
    gate: Gate | None
    error: str = ""

    @property
    def exit_code(self) -> int:
        """As of `kdcal_core.audit.Gate`, or 2."""
        return UNUSABLE if self.gate is None else self.gate.exit_code

    @property
    def verdict(self) -> str:
        """As of `kdcal_core.audit.Gate`, or "cannot be used"."""
        return "cannot be used" if self.gate is None else self.gate.verdict


def read_configs(path: Path) -> tuple[NamedConfig, ...]:
    """The configurations that a TOML file lists under ``configs``.

    Each entry is a path, or a pattern such as ``"models/*/audit.toml"`` or ``"**/audit.toml"``,
    relative to the file. What a pattern finds comes in the order of names; what is found twice is
    taken once.

    Raises
    ------
    InputError
        If it is not such a file, or an entry finds nothing.
    """
    content = read_toml(
        path,
        "The list of audits",
        name='Name a TOML file with configs = ["models/*/audit.toml"].',
        write='Write configs = ["models/*/audit.toml"].',
    )
    listed = content.get("configs")
    if set(content) != {"configs"} or not isinstance(listed, list) or not listed:
        raise InputError(
            "The list of audits needs configs, and nothing else",
            fix='Write configs = ["models/*/audit.toml"].',
            file=path.name,
        )
    folder = path.absolute().parent
    found: dict[Path, NamedConfig] = {}
    for entry in listed:
        for one in _matching(entry, folder, path):
            name = str(one.relative_to(folder)) if one.is_relative_to(folder) else str(one)
            found.setdefault(one.resolve(), NamedConfig(name, one))
    if len(found) > MOST:
        raise InputError(
            f"{len(found):,} configurations are listed; at most {MOST:,} are audited in one run",
            fix="Split the list.",
            file=path.name,
        )
    return tuple(found.values())


def _matching(entry: Any, folder: Path, path: Path) -> list[Path]:
    error = InputError(
        f"There is no configuration {str(entry)[:120]!r}",
        fix=f"Write a path or a pattern, relative to {path.name}.",
        file=path.name,
    )
    if not isinstance(entry, str) or not entry or "\0" in entry:
        raise error
    plain = folder / entry
    if plain.is_file():
        return [plain]
    try:
        pattern = Path(entry)
        root = Path(pattern.anchor) if pattern.is_absolute() else folder
        inner = str(pattern.relative_to(pattern.anchor)) if pattern.is_absolute() else entry
        paths = sorted(one for one in root.glob(inner) if one.is_file() and one != path.absolute())
    except (ValueError, OSError, NotImplementedError) as fault:
        raise error from fault
    if not paths:
        raise error
    return paths


@dataclass(eq=False)
class _Later(Generic[T]):
    """A call that an executor carries out, or this process once its value is wanted."""

    call: Callable[[Progress], T]
    submitted: Any = None

    def value(self, progress: Progress, note: str) -> T:
        if self.submitted is None:
            return self.call(progress)
        while wait([self.submitted], _EVERY).not_done:
            progress(0.0, note)  # which may raise to cancel
        found: T = self.submitted.result()
        return found


@dataclass(eq=False)
class _Running:
    """A gate under way."""

    config: NamedConfig
    stack: ExitStack = field(default_factory=ExitStack)
    folder: str = ""
    error: str = ""
    started: StartedGate | None = None
    loaded: _Later[Loaded] | None = None
    asked: AskedGate | None = None
    judged: _Later[Any] | None = None


def run_gates(
    configs: Sequence[NamedConfig],
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Generator[GateOutcome, None, None]:
    """Audit what each configuration names, in order.

    Rows are read and checks computed by the executor's workers, which see the files under the same
    names; the record is written, and signed, by this process alone and in the order of the list.

    Parameters
    ----------
    executor : concurrent.futures.Executor, optional
        By default one audit is computed after the other here.

    Yields
    ------
    GateOutcome
        One for each configuration. Input that cannot be used ends its own gate only.
    """
    tell = progress if progress is not None else silent
    ahead = 1 if executor is None else in_flight(executor, 2)
    waiting, n = deque(configs), len(configs)
    loading: deque[_Running] = deque()
    judging: deque[_Running] = deque()
    done, most = 0, 0.0

    def share(now: float, note: str) -> None:
        nonlocal most
        most = max(most, min((done + now) / n, 1.0))  # parts of an audit may begin anew
        tell(most, f"Audit {done + 1:,} of {n:,}: {note}")

    try:
        while done < n:
            while waiting and len(loading) < ahead:
                loading.append(_started(waiting.popleft(), executor))
            while loading and len(judging) < ahead:
                judging.append(loading[0])  # first, so that an error ends it too
                _asked(loading.popleft(), executor, share)
            one = judging[0]
            outcome = _ended(one, share)
            judging.popleft().stack.close()
            done += 1
            tell(done / n, f"{counted(done, 'audit')} of {n:,} done")
            yield outcome
    finally:
        for one in (*loading, *judging):
            for later in (one.loaded, one.judged):
                if later is not None and later.submitted is not None:
                    later.submitted.cancel()
                    wait([later.submitted])
            one.stack.close()


def _step(one: _Running, work: Callable[[], None]) -> None:
    """A step of a gate, unless an earlier one failed."""
    if one.error:
        return
    try:
        work()
    except InputError as error:
        one.error = str(error)


def _submitted(executor: Executor | None, function: Callable[..., T], *given: Any) -> _Later[T]:
    later = _Later(lambda progress: function(*given, progress=progress))
    if executor is not None:
        later.submitted = executor.submit(function, *given)
    return later


def _started(config: NamedConfig, executor: Executor | None) -> _Running:
    one = _Running(config)

    def start() -> None:
        asked = read_config(config.path)
        one.started = start_gate(asked)
        shared = getattr(executor, "folder", None)
        one.folder = str(one.stack.enter_context(gate_folder(shared)))
        one.loaded = _submitted(executor, load_gate, asked, one.folder)

    _step(one, start)
    return one


def _asked(one: _Running, executor: Executor | None, progress: Progress) -> None:
    def ask() -> None:
        assert one.started is not None
        assert one.loaded is not None
        loaded = one.loaded.value(part_of(progress, 0.0, _LOADING), "reading the rows")
        one.asked = ask_gate(one.started, loaded)
        config: AuditConfig = one.started.config
        one.judged = _submitted(
            executor, judge_gate, config, loaded, one.asked.settings, one.folder
        )

    _step(one, ask)


def _ended(one: _Running, progress: Progress) -> GateOutcome:
    made: list[Gate] = []

    def end() -> None:
        assert one.started is not None
        assert one.asked is not None
        assert one.judged is not None
        content = one.judged.value(part_of(progress, _LOADING, 1.0), "computing")
        made.append(end_gate(one.started, one.asked, content))

    _step(one, end)
    return GateOutcome(one.config, made[0] if made else None, one.error)


def worst_code(outcomes: Sequence[GateOutcome]) -> int:
    """The worst exit code: 2 before 1, before 3, before 0.

    Examples
    --------
    >>> worst_code([])
    0
    >>> worst_code([GateOutcome(NamedConfig("a", Path("a")), None, "There is no such file.")])
    2
    """
    return max((one.exit_code for one in outcomes), key=_WORST.index, default=0)


def gates_json(outcomes: Sequence[GateOutcome]) -> dict[str, Any]:
    """What ``kdcal audit run --all`` prints as JSON; its schema is `gates.schema.json`."""
    return {
        "format": JSON_FORMAT,
        "kdcal": kdcal_core.__version__,
        "exit_code": worst_code(outcomes),
        "audits": [
            {
                "config": one.config.name,
                "exit_code": one.exit_code,
                "error": one.error or None,
                "gate": None if one.gate is None else gate_json(one.gate),
            }
            for one in outcomes
        ],
    }


def gates_json_text(outcomes: Sequence[GateOutcome]) -> str:
    """`gates_json` as text."""
    return json.dumps(gates_json(outcomes), indent=2, allow_nan=False) + "\n"


def gates_junit(outcomes: Sequence[GateOutcome]) -> str:
    """One JUnit test suite for each configuration; input that cannot be used is an error."""
    whole = ElementTree.Element("testsuites", name="kdcal")
    for one in outcomes:
        if one.gate is not None:
            suite = ElementTree.fromstring(gate_junit(one.gate).encode())
        else:
            suite = ElementTree.Element("testsuite", tests="1", failures="0", errors="1")
            suite.set("skipped", "0")
            case = ElementTree.SubElement(suite, "testcase", classname="kdcal.audit", name="input")
            words = plain_xml(one.error)
            ElementTree.SubElement(case, "error", message=words, type="cannot be used")
        suite.set("name", plain_xml(f"kdcal {printable(one.config.name, 200)}"))
        whole.append(suite)
    text = ElementTree.tostring(whole, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
