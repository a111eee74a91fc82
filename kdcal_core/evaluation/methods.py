"""The methods of a comparison, and the fit of each on every part of the rows.

Methods come from the registry or from the user; they are fitted here or by an executor's workers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field, fields, is_dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from kdcal_core.blocks import in_flight
from kdcal_core.calibration import (
    Calibrated,
    Calibrator,
    calibrated,
    calibrator_entry,
    fit_calibrator,
)
from kdcal_core.calibration.settings import configured
from kdcal_core.data import FloatArray, IntArray, ScoredSet
from kdcal_core.errors import InputError, quiet
from kdcal_core.forks import Shared, copies_for
from kdcal_core.models import Model
from kdcal_core.progress import Progress, part_of

REFERENCE = "uncalibrated"


@dataclass(frozen=True, eq=False)
class Method:
    """An unfitted calibrator that takes part in a comparison."""

    key: str
    name: str
    family: str
    calibrator: Calibrator
    binary_only: bool = False

    @property
    def asks_model(self) -> bool:
        """Whether its fit needs the open model, which cannot be sent to another process."""
        return bool(has_fit_parameter(self.calibrator, "model"))


def methods_of(
    calibrators: Sequence[str | tuple[str, Calibrator]], seed: int = 0
) -> tuple[Method, ...]:
    """The model's own scores first, then the requested methods.

    Parameters
    ----------
    calibrators : sequence of str or (str, Calibrator)
    seed : int
        Seed of the calibrators named by their key, the same as in an export.

    Raises
    ------
    InputError
        For an unknown key, or one that occurs twice.

    Examples
    --------
    >>> [method.key for method in methods_of(["isotonic"])]
    ['uncalibrated', 'isotonic']
    """
    found = [_method(one, seed) for one in calibrators]
    if all(method.key != REFERENCE for method in found):
        found.insert(0, _method(REFERENCE, seed))
    found.sort(key=lambda method: method.key != REFERENCE)
    keys = [method.key for method in found]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise InputError(
            f"The calibrator {twice!r} is named twice",
            fix="Give each calibrator its own name.",
        )
    return tuple(found)


def _method(one: str | tuple[str, Calibrator], seed: int) -> Method:
    if isinstance(one, str):
        entry, calibrator = calibrator_entry(one), configured(one, {}, seed=seed)
        return Method(one, entry.label, entry.family, calibrator, entry.binary_only)
    key, calibrator = one
    return Method(key, key, "own", calibrator)


Rows = tuple[FloatArray, pd.DataFrame | None]

EVERY = 0.5  # seconds between two reports while parts are fitted elsewhere
IN_FLIGHT = 16  # maximum number of parts that wait for a worker at once: each is sent with its rows
TIMED_ROWS = 10_000
SHORT = 0.1  # seconds; a faster prediction is timed again on more rows


@dataclass(frozen=True, eq=False)
class Part:
    """Rows to fit on, and named rows to predict for: probabilities with the features."""

    words: str
    rows: ScoredSet
    X: pd.DataFrame | None
    asked: dict[str, Rows]
    timed: bool = False


@dataclass(frozen=True, eq=False)
class Task:
    """One fit: a method on a part."""

    method: Method
    part: Part
    training: tuple[pd.DataFrame, IntArray] | None = None
    model: Model | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """The result of a task; where it failed, ``failure`` says why.

    ``n_regions`` counts the regions of all partitions of a calibrator by regions.
    """

    answers: dict[str, Calibrated] = field(default_factory=dict)
    fit_seconds: float = np.nan
    pace: float = np.nan
    size: int = 0
    notes: tuple[str, ...] = ()
    n_regions: int = 0
    failure: str | None = None


def run_tasks(
    tasks: Sequence[Task], progress: Progress | None, executor: Executor | None
) -> list[Answer | None]:
    """Answers in the order of the tasks; None where the method had failed before.

    Tasks that need the model always run in this process. Fits do not depend on each other, so their
    answers do not depend on where or when they run.
    """
    run = _Run(tasks, progress)
    asking = [at for at, task in enumerate(tasks) if task.method.asks_model]
    free = [at for at, task in enumerate(tasks) if not task.method.asks_model]
    if executor is not None:
        _send(run, free, executor)
        run.here(asking)
    elif copies := copies_for(len(free)):
        _share(run, asking, free, copies)
    else:
        run.here(range(len(tasks)))
    return run.answers


class _Run:
    """Tasks, their answers so far, and the methods that failed."""

    def __init__(self, tasks: Sequence[Task], progress: Progress | None) -> None:
        self.tasks = tasks
        self.answers: list[Answer | None] = [None] * len(tasks)
        self.elsewhere: Sized = ()  # what others have done
        self._failed: set[str] = set()
        self._progress = progress
        self._done = 0

    def report(self, at: int) -> Progress | None:
        """Say that a task is computed now; returns the progress of its own steps."""
        done = self._done + len(self.elsewhere)
        low, high = (min(n / len(self.tasks), 1.0) for n in (done, done + 1))
        task = self.tasks[at]
        if self._progress is not None:
            self._progress(low, f"Fitting {task.method.name}: {task.part.words}")
        return part_of(self._progress, low, high)

    def here(self, numbers: Iterable[int]) -> None:
        """Run these tasks in this process."""
        for at in numbers:
            share, key = self.report(at), self.tasks[at].method.key
            if key not in self._failed:
                answer = self.answers[at] = carry_out(self.tasks[at], share)
                if answer.failure is not None:
                    self._failed.add(key)
            self._done += 1


def _share(run: _Run, asking: Sequence[int], free: Sequence[int], copies: int) -> None:
    """Run the tasks here and in copies of this process, which do not ask the open model.

    What fails in a copy is tried again here, where there is more memory.
    """
    order = free[::-1]  # the registry lists the simplest first: they fill the gaps at the end
    with Shared(carry_out, [run.tasks[at] for at in order], copies) as shared:
        run.elsewhere = shared.results
        run.here(asking)
        run.here(order[number] for number in shared.mine())
        while not shared.wait(EVERY):
            run.report(order[0])  # which may raise to cancel
    for number, answer in shared.results.items():
        run.answers[order[number]] = answer if answer.failure is None else None
    run.here([at for at in free if run.answers[at] is None])


def _send(run: _Run, away: Sequence[int], executor: Executor) -> None:
    """Run the tasks on the executor, a few at a time, and wait for all that were started."""
    waiting, running = iter(away), dict[Future[Answer], int]()
    run.elsewhere = done = list[int]()
    most = in_flight(executor, IN_FLIGHT)
    try:
        while True:
            while len(running) < most and (at := next(waiting, None)) is not None:
                running[executor.submit(carry_out, run.tasks[at])] = at
            if not running:
                break
            for future in wait(running, EVERY, FIRST_COMPLETED).done:
                at = running.pop(future)
                done.append(at)
                run.answers[at] = future.result()
                run.report(at)
            if running:
                run.report(next(iter(running.values())))  # which may raise to cancel
    finally:
        for future in running:
            future.cancel()
        wait(running)


def carry_out(task: Task, progress: Progress | None = None) -> Answer:
    """Fit a method, time it and apply it. An error is reported and does not stop other methods."""
    try:
        with quiet():  # notes say it once, for all rows
            return _carried_out(task, progress)
    except FIT_ERRORS as error:
        return Answer(failure=why_it_failed(error))


FIT_ERRORS = (ValueError, ArithmeticError, MemoryError, np.linalg.LinAlgError)
"""What a method may raise (``InputError`` too) where it cannot be fitted on some rows."""


def why_it_failed(error: Exception) -> str:
    """Why a method could not be fitted, as a sentence.

    Examples
    --------
    >>> why_it_failed(ZeroDivisionError("division by zero"))
    'It cannot be fitted on these rows: division by zero.'
    """
    if isinstance(error, InputError):
        return str(error)
    words = str(error).strip().rstrip(".") or type(error).__name__
    return f"It cannot be fitted on these rows: {words}."


def _carried_out(task: Task, progress: Progress | None) -> Answer:
    part, method = task.part, task.method
    n_classes = part.rows.proba.shape[1]
    if method.binary_only and n_classes > 2:
        raise InputError(
            f"It calibrates two classes, and there are {n_classes} here", fix="Choose another one."
        )
    begin = perf_counter()
    fitted = fit_calibrator(
        clone(method.calibrator),
        part.rows,
        part.X,
        training=task.training,
        model=task.model,
        progress=progress
        and (lambda share, note: progress(share, f"{method.name}, {part.words}: {note}")),
    )
    seconds = perf_counter() - begin
    answers = {name: calibrated(fitted, *rows) for name, rows in part.asked.items()}
    pace = _pace(fitted, part.rows.proba, part.X) if part.timed else np.nan
    n_regions = sum(layer.partition.n_leaves for layer in getattr(fitted, "layers_", ()))
    return Answer(answers, seconds, pace, state_bytes(fitted), tuple(fitted.notes_), n_regions)


def _pace(fitted: Calibrator, proba: FloatArray, X: pd.DataFrame | None) -> float:
    """Seconds of prediction per million rows."""
    index = np.arange(min(len(proba), TIMED_ROWS))
    seconds = _timed(fitted, proba, X, index)
    if seconds < SHORT and len(index) < TIMED_ROWS:
        index = np.arange(TIMED_ROWS) % len(proba)
        seconds = _timed(fitted, proba, X, index)
    return seconds / len(index) * 1e6


def _timed(fitted: Calibrator, proba: FloatArray, X: pd.DataFrame | None, index: IntArray) -> float:
    rows = proba[index], None if X is None else X.iloc[index]
    begin = perf_counter()
    calibrated(fitted, *rows)
    return perf_counter() - begin


def state_bytes(fitted: Any) -> int:
    """Bytes of the fitted state: all arrays, numbers and texts in attributes that end with "_".

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> state_bytes(SimpleNamespace(slope_=1.0, edges_=np.zeros(3), level=2.0))
    32
    """
    return sum(
        _bytes(value)
        for name, value in vars(fitted).items()
        if name.endswith("_") and name not in ("notes_", "n_classes_")
    )


def _bytes(value: Any) -> int:
    if value is None:
        return 0
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, bool | int | float | np.generic):
        return 8
    if isinstance(value, dict):
        return sum(map(_bytes, value.values()))
    if isinstance(value, tuple | list):
        return sum(map(_bytes, value))
    if is_dataclass(value):
        return sum(_bytes(getattr(value, one.name)) for one in fields(value))
    return state_bytes(value)
