"""The decorators that make a function of the core a job.

`review_task` declares what the function does, in words, and which parts of a review it reads. It
provides the request, whose key covers all that the result depends on, the run in a worker process,
and the reading of the stored result as the type that the function returns.

::

    @review_task("Counting rows", reads=("calibration",))
    def count(sets: Sets, *, at_least: int) -> Count: ...

    asked = count.request(workspace, review, at_least=3)   # for JobManager.submit
    found = count.read(folder)                             # a Count

A result is a dataclass that `kdcal_core.store` can save. Arguments are JSON, or the one dataclass
``settings``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_type_hints

from kdcal_core.data import ScoredSet
from kdcal_core.distributions import RegressionSet
from kdcal_core.errors import InputError
from kdcal_core.jobs import job_key
from kdcal_core.once import Once
from kdcal_core.progress import Progress, silent
from kdcal_core.review import Part, Review, ReviewReader, Which, Workspace
from kdcal_core.review.reader import no_model
from kdcal_core.store import decode, encode, load, save

if TYPE_CHECKING:
    import pandas as pd

    from kdcal_core.diagnostics.summaries import ClassSummary, RegressionSummary
    from kdcal_core.evaluation import Space

# rows times classes (or parameters of a distribution) above which a worker computes
LARGE = 200_000


def is_large(review: Review, reads: Collection[Part] = ()) -> bool:
    """Whether a review has too many rows for the process of the app.

    Parameters
    ----------
    reads : collection of str
        The parts that are read. The scored sets always count, the training and the foreign rows
        only if they are read.

    Examples
    --------
    >>> is_large(Review("a" * 16))
    False
    """
    rows = sum(one.n_rows for one in review.sets.values())
    if "training" in reads and review.training is not None:
        rows += review.training.n_rows
    if "foreign" in reads:
        rows += sum(one.n_rows for one in review.foreign.values())
    stated = len(review.roles.parameters) if review.roles else 0
    return rows * max(1, len(review.classes), stated) > LARGE


Keep = Callable[[tuple[Hashable, ...], Callable[[], Any]], Any]


@dataclass(frozen=True)
class Sets:
    """The parts of a review, read when a task needs them, and the function that reports progress.

    Attributes
    ----------
    reader : ReviewReader
        Refuses parts that the task does not declare.
    progress : callable
    folder : Path, optional
        Folder of the result, where a task may write further files.
    open_space : callable, optional
        Returns a space of a regression by its name, for processes that must not open the model.
    keep : callable
        Called with a key and a function that computes the value kept under it, for values that
        several tasks need. Kept values must not be changed.
    """

    reader: ReviewReader
    progress: Progress = silent
    folder: Path | None = None
    open_space: Callable[[str], Space] | None = None
    keep: Keep = field(default_factory=Once)

    def read(self, which: Which) -> ScoredSet:
        """A scored set of a classification.

        Raises
        ------
        InputError
            As for `kdcal_core.review.ReviewReader.scored`.
        """
        found: ScoredSet = self.keep(("scored", which), lambda: self.reader.scored(which))
        return found

    def summary(self, which: Which) -> ClassSummary | None:
        """The summary of a set with very many rows, which stands for them; None of others.

        Raises
        ------
        InputError
            As for `kdcal_core.review.ReviewReader.scored`.
        """
        found: ClassSummary | None = self.keep(
            ("summary", which), lambda: self.reader.summary(which)
        )
        return found

    def regression_summary(self, which: Which) -> RegressionSummary | None:
        """The summary of a regression's set with very many rows; None of others.

        Raises
        ------
        InputError
            As for `kdcal_core.review.ReviewReader.distributions`.
        """
        found: RegressionSummary | None = self.keep(
            ("summary", which), lambda: self.reader.regression_summary(which)
        )
        return found

    def distributions(self, which: Which) -> RegressionSet:
        """A scored set of a regression.

        Raises
        ------
        InputError
            As for `kdcal_core.review.ReviewReader.distributions`.
        """
        found: RegressionSet = self.keep(("set", which), lambda: self.reader.distributions(which))
        return found

    def frame(self, which: Which, columns: tuple[str, ...] | None = None) -> pd.DataFrame:
        """A set's table with all columns, or only the given ones."""
        found: pd.DataFrame = self.keep(
            ("frame", which, columns), lambda: self.reader.frame(which, columns)
        )
        return found


# declarations of what a task reads, where this depends on its arguments

SUMMED = "rows together, and many as their summary, curves as far as 20 rows"
"""The edition of tasks that take `Sets.summary` where there is one."""

FITTED = "folds whatever the class, whole clusters, weighted graphs"
"""The edition of tasks that fit calibrators."""

BOTH_SETS: tuple[Part, ...] = ("calibration", "evaluation")
ALL_ROWS: tuple[Part, ...] = ("model", "calibration", "evaluation", "training")


def the_set(arguments: dict[str, Any]) -> tuple[Part, ...]:
    """The set in the argument ``which``."""
    which: Part = arguments["which"]
    return (which,)


def the_set_and_its_scale(arguments: dict[str, Any]) -> tuple[Part, ...]:
    """The set in the argument ``which``, and the calibration set, which sets the scale."""
    return tuple(dict.fromkeys(("calibration", *the_set(arguments))))


R = TypeVar("R")
Arguments = dict[str, Any]
Ranges = Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class Request:
    """A task to start as a job with `kdcal_core.jobs.JobManager.submit`.

    Attributes
    ----------
    target : str
        ``"kdcal_core.tasks.decorators:carry_out"``.
    kwargs : dict
        Its arguments, as JSON values.
    key : str
        Digest of all that the result depends on.
    title : str
        What is done, in words.
    review : str
        The id of the review whose rows it reads; empty if it reads none.
    reads : tuple of str, optional
        Files and folders that its process reads, and no others; None for a process that is not
        limited.
    prepared : str
        What runs in its process before it is limited, as for `kdcal_core.jobs.run_limited`.
    """

    target: str
    kwargs: dict[str, Any]
    key: str
    title: str
    review: str = ""
    reads: tuple[str, ...] | None = None
    prepared: str = ""


class Task(Generic[R]):
    """A function of settings and progress that can run as a job.

    Parameters
    ----------
    function : callable
        ``(settings, progress) -> result``; see `task`.
    title : str or callable
        What is done, in words; or a function from the arguments to these words.
    settle : callable, optional
        Checks the settings and fills in open ones.
    edition : str or callable
        A text that changes when the result for the same settings changes.
    """

    def __init__(
        self,
        function: Callable[..., R],
        title: str | Callable[[Arguments], str],
        settle: Callable[..., Any] | None,
        edition: str | Callable[[], str],
    ) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.name = function.__name__
        self._title, self._settle, self._edition = title, settle, edition
        if self.name in _TASKS:
            raise ValueError(f"there are two tasks with the name {self.name}")
        _TASKS[self.name] = self

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        return self.function(*args, **kwargs)

    def title_at(self, **arguments: Any) -> str:
        """What the task does with these arguments, in words. May hold a column's untrusted name."""
        return self._title if isinstance(self._title, str) else self._title(arguments)

    def read(self, folder: str | Path) -> R:
        """The result that a job left in its folder.

        Raises
        ------
        InputError
            Where the result is missing or damaged.
        """
        kind: type[R] = self._hints["return"]
        return load(folder, kind)

    def request(self, settings: Any) -> Request:
        """The job that runs the task.

        Raises
        ------
        InputError
            For settings out of range.
        """
        arguments = {"settings": self._settled(settings)}
        return self._request(arguments, {}, {})

    def run(self, given: Arguments, folder: Path, progress: Progress) -> R:
        """Run the task with the arguments of a request, in a worker process."""
        return self.function(self._settled(self._decoded(given)["settings"]), progress)

    def _settled(self, settings: Any) -> Any:
        return settings if self._settle is None else self._settle(settings)

    def _request(self, arguments: Arguments, read: Arguments, covered: Arguments) -> Request:
        given = {name: _plain(value) for name, value in arguments.items()}
        edition = self._edition if isinstance(self._edition, str) else self._edition()
        key = job_key(f"{_TARGET} {self.name}", {"given": given, **covered}, edition)
        return Request(
            _TARGET,
            {"task": self.name, "given": {**given, **read}, **self._home},
            key,
            self.title_at(**arguments),
            reads=(),
            prepared=_KERNELS,
        )

    def _decoded(self, given: Arguments) -> Arguments:
        if "settings" not in given:
            return given
        return {**given, "settings": decode(self._hints["settings"], given["settings"])}

    @property
    def _home(self) -> dict[str, str]:
        """The module to import, for a task of another room, which a worker does not know."""
        home = self.function.__module__
        return {} if home.startswith(f"{__package__}.") else {"home": home}

    @functools.cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.function)


class ReviewTask(Task[R]):
    """A function of a review's rows that can run as a job.

    Parameters
    ----------
    function : callable
        ``(sets, ...) -> result``; see `review_task`.
    title, edition
        As in `Task`.
    reads : tuple of str or callable
        The parts of the review that are read, and no others; or a function from the arguments to
        them. Where the task opens a finished run, the parts that the run was made from count as
        read, because its arrays have their length.
    needs : callable, optional
        Refuses reviews that the task is not for.
    default : callable, optional
        Returns the default settings for a review. Without it, the defaults of their class apply.
    ranges : mapping, optional
        Lowest and highest value of settings, by name.
    settle : callable, optional
        ``(review, settings) -> settings``: makes further checks and fills in open settings.
    covers : callable, optional
        Returns what else in the review the result depends on.
    """

    def __init__(
        self,
        function: Callable[..., R],
        title: str | Callable[[Arguments], str],
        *,
        reads: tuple[Part, ...] | Callable[[Arguments], tuple[Part, ...]],
        needs: Callable[[Review], None] | None,
        default: Callable[[Review], Any] | None,
        ranges: Ranges,
        settle: Callable[[Review, Any], Any] | None,
        covers: Callable[[Review], Any] | None,
        edition: str | Callable[[], str],
    ) -> None:
        super().__init__(function, title, settle, edition)
        self._reads, self._needs, self._default = reads, needs, default
        self._ranges, self._covers = ranges, covers

    def reads_at(self, **arguments: Any) -> tuple[Part, ...]:
        """The parts of a review that the task reads with these arguments, and no others."""
        return self._reads if isinstance(self._reads, tuple) else self._reads(arguments)

    def request(  # type: ignore[override]  # takes a review first
        self, workspace: Workspace, review: Review | str, settings: Any = None, **others: Any
    ) -> Request:
        """The job that runs the task on a review.

        Parameters
        ----------
        review : Review or str
            The review or its id.
        settings : dataclass, optional
            The settings, where the function takes any.
        others
            Its other arguments, as JSON values.

        Raises
        ------
        InputError
            Where the task is not for this review, or a setting is unknown.
        """
        opened = workspace.read(review) if isinstance(review, str) else review
        arguments = self._checked(opened, {**others, "settings": settings})
        reader = ReviewReader(workspace, opened.id, self.reads_at(**arguments), review=opened)
        known = reader.identity
        read = {"home": str(workspace.root), "review": opened.id, "identity": known}
        covered = {"read": known}
        if self._covers is not None:
            covered["covers"] = self._covers(opened)
        asked = self._request(arguments, {"read": read}, covered)
        folder = str(workspace.folder(opened.id))
        stored = _stored(asked.kwargs["given"], str(workspace.root))
        return replace(asked, review=opened.id, reads=(folder, *stored))

    def run(self, given: Arguments, folder: Path, progress: Progress) -> R:
        """Run the task with the arguments of a request, in a worker process.

        Raises
        ------
        InputError
            Where the review is missing or has changed since.
        """
        arguments = self._decoded(given)
        read = arguments.pop("read")
        reader = ReviewReader(
            Workspace(Path(read["home"])),
            read["review"],
            self.reads_at(**arguments),
            expected=read["identity"],
        )
        arguments = self._checked(reader.review, arguments)
        return self.function(Sets(reader, progress, folder), **arguments)

    def _checked(self, review: Review, arguments: Arguments) -> Arguments:
        if self._needs is not None:
            self._needs(review)
        if "settings" not in self._hints:
            return {name: value for name, value in arguments.items() if name != "settings"}
        settings = arguments.get("settings")
        if settings is None:
            settings = self._hints["settings"]() if self._default is None else self._default(review)
        check_ranges(settings, self._ranges)
        if self._settle is not None:
            settings = self._settle(review, settings)
        return {**arguments, "settings": settings}


def task(
    title: str | Callable[[Arguments], str],
    *,
    settle: Callable[[Any], Any] | None = None,
    edition: str | Callable[[], str] = "",
) -> Callable[[Callable[..., R]], Task[R]]:
    """Make ``(settings, progress) -> result`` a `Task`, which needs no review."""
    return lambda function: Task(function, title, settle, edition)


def review_task(
    title: str | Callable[[Arguments], str],
    *,
    reads: tuple[Part, ...] | Callable[[Arguments], tuple[Part, ...]],
    needs: Callable[[Review], None] | None = None,
    default: Callable[[Review], Any] | None = None,
    ranges: Ranges | None = None,
    settle: Callable[[Review, Any], Any] | None = None,
    covers: Callable[[Review], Any] | None = None,
    edition: str | Callable[[], str] = "",
) -> Callable[[Callable[..., R]], ReviewTask[R]]:
    """Make ``(sets, ...) -> result`` a `ReviewTask` with these parameters."""
    return lambda function: ReviewTask(
        function,
        title,
        reads=reads,
        needs=needs,
        default=default,
        ranges=ranges or {},
        settle=settle,
        covers=covers,
        edition=edition,
    )


_TASKS: dict[str, Task[Any]] = {}
_TARGET = f"{__name__}:carry_out"
_KERNELS = "kdcal_core.tasks.kernels:load_kernels"


def carry_out(
    task: str, given: dict[str, Any], folder: str, progress: Progress, home: str = ""
) -> None:
    """Run a task in a worker process; its ``read`` returns the result from ``folder``.

    Parameters
    ----------
    task : str
        Name of its function.
    given : dict
        Its arguments, as the request encoded them.
    home : str
        The module of kdcal that defines it, if it is not in this room.

    Raises
    ------
    InputError
        As raised by the function.
    """
    if home.startswith("kdcal_core."):
        import_module(home)
    if task not in _TASKS:
        raise ValueError(f"{task!r} is not a task")
    save(Path(folder), _TASKS[task].run(given, Path(folder), progress))


def _stored(given: Any, root: str) -> Iterator[str]:
    """Paths in a task's arguments that lie in the home: stored results, files of the review."""
    if isinstance(given, str) and given.startswith(f"{root}{os.sep}"):
        yield given
    elif isinstance(given, dict):
        for one in given.values():
            yield from _stored(one, root)


def _plain(value: Any) -> Any:
    """An argument as a JSON value."""
    if is_dataclass(value):
        return encode(value)
    return str(value) if isinstance(value, Path) else value


def require_scored(review: Review) -> None:
    """Refuse a review that is not scored.

    Raises
    ------
    InputError
    """
    if not review.ready or review.roles is None:
        raise InputError(
            "The rows have not been scored yet", fix="Finish the review on the Load page."
        )


def require_model(review: Review) -> None:
    """Refuse a review that is not scored or has predictions without their model.

    Raises
    ------
    InputError
    """
    require_scored(review)
    if review.model is None or review.model_file is None:
        raise no_model()


def require_regression(review: Review) -> None:
    """Refuse a review that is not scored or is a classification.

    Raises
    ------
    InputError
    """
    require_scored(review)
    if review.task != "regression":
        raise InputError(
            "The review is of a classification, and recalibration is for regressions",
            fix="Open a regression, or change the task on the Load page.",
        )


def require_classification(
    why: str, *, fix: str = "Use the Recalibration page."
) -> Callable[[Review], None]:
    """Refuse a review that is not scored or is a regression; ``why`` gives the reason."""

    def refuse(review: Review) -> None:
        require_scored(review)
        if review.task != "classification":
            raise InputError(f"The review is of a regression, and {why}", fix=fix)

    return refuse


def check_ranges(settings: Any, ranges: Ranges) -> None:
    """Refuse a setting outside its range; of a tuple each value is checked.

    None, an open setting, is always accepted. Sliders limit settings in the browser, but a modified
    browser may send others.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_ranges(SimpleNamespace(n=0), {"n": (1, 10)})
    Traceback (most recent call last):
    kdcal_core.errors.InputError: The setting 'n' is 0. Choose a number from 1 to 10.
    """
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None and not low <= one <= high:
                raise InputError(
                    f"The setting {name!r} is {one:,}",
                    fix=f"Choose a number from {low:,} to {high:,}.",
                )
