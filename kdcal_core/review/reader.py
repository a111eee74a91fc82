"""From a review to its rows: the one reader, and the identity of what was read.

Every computation declares what it reads. `identity` covers exactly that, and a `ReviewReader` with
the same declaration refuses everything else. A result therefore depends only on what its key
covers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from kdcal_core.data.frames import as_pandas
from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.schema import IntArray, Roles, ScoredSet, Task
from kdcal_core.errors import InputError
from kdcal_core.once import Once
from kdcal_core.review.requirements import check_which
from kdcal_core.review.review import WHICH, Review, SetInfo, TableInfo, Which, input_columns
from kdcal_core.review.sealed_files import (
    check_digest,
    check_folder,
    kept,
    regression_arrays,
    scored_arrays,
    table_path,
)
from kdcal_core.review.set_summary import read_fitness, read_regression_summary, read_summary
from kdcal_core.review.workspace import Workspace
from kdcal_core.store import encode

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from kdcal_core.data import Fitness, RegressionFitness
    from kdcal_core.diagnostics.summaries import ClassSummary, RegressionSummary
    from kdcal_core.distributions import RegressionSet
    from kdcal_core.models import HasLayers, Model
    from kdcal_core.statistics import Dependence


def check_scored(workspace: Workspace, review: Review) -> None:
    """Check that every scored set is unchanged; only files in an unknown state are read.

    Raises
    ------
    InputError
        If files of a set are missing or damaged.
    """
    for which, info in review.sets.items():
        folder = workspace.folder(review.id) / info.folder
        with kept(which):
            if not check_folder(folder):  # of an earlier version, or missing
                if review.task == "regression":
                    regression_arrays(folder, info.digest, which)
                else:
                    scored_arrays(folder, review.classes, info.digest, which)


def scored_info(review: Review, which: Which, task: Task) -> SetInfo:
    """The description of a scored set of a review of this task.

    Raises
    ------
    InputError
        If the set has not been scored, or the review is of another task.
    """
    check_which(which)
    if review.task != task:
        raise InputError(
            f"This needs a {task}, but the review is of a {review.task}",
            fix="Choose a page for its task, or change the task on the Load page.",
        )
    info = review.sets.get(which)
    if info is None:
        raise InputError(
            f"The {which} set has not been scored yet", fix="Score it on the Load page."
        )
    return info


Part = Literal["model", "calibration", "evaluation", "training", "foreign"]
"""The parts of a review: the model, a set's table with its scores, the other tables."""
Table = Literal["calibration", "evaluation", "training"]

PARTS: tuple[Part, ...] = get_args(Part)


def identity(review: Review, reads: Collection[Part] = PARTS) -> dict[str, Any]:
    """Everything on which results from these parts depend: contents, roles and classes.

    Parameters
    ----------
    reads : collection of str
        Some of `PARTS`, in any order.

    Returns
    -------
    dict
        JSON with digests, but without the paths or names of files.

    Examples
    --------
    >>> identity(Review("a" * 16), ("model",))["model"] is None
    True
    """
    found: dict[str, Any] = {
        "task": review.task,
        "roles": _roles_identity(review.roles) if review.roles else None,
        "inputs": input_columns(review) if "calibration" in review.tables else [],
        "classes": list(review.classes),
    }
    of_part: dict[Part, Callable[[], Any]] = {
        "model": lambda: review.model.digest if review.model else None,
        "calibration": lambda: _set_identity(review, "calibration"),
        "evaluation": lambda: _set_identity(review, "evaluation"),
        "training": lambda: review.training.digest if review.training else None,
        "foreign": lambda: [[name, table.digest] for name, table in review.foreign.items()],
    }
    for part in PARTS:
        if part in reads:
            found[part] = of_part[part]()
    return found


def _roles_identity(roles: Roles) -> dict[str, Any]:
    """The roles as JSON; without a cluster and a time as in versions that knew neither."""
    found: dict[str, Any] = encode(roles)
    return {k: one for k, one in found.items() if one is not None or k not in ("cluster", "time")}


def _set_identity(review: Review, which: Which) -> list[str | None] | None:
    table, scored = review.tables.get(which), review.sets.get(which)
    return None if table is None else [table.digest, scored.digest if scored else None]


class ReviewReader:
    """Reads the declared parts of a review on demand.

    The review itself is read once. Scored sets, which are memory-mapped, and the open model are
    kept; tables are not, because they take memory.

    Parameters
    ----------
    workspace : Workspace
    review_id : str
    reads : collection of str
        The parts that may be read.
    expected : dict, optional
        The `identity` that the reader must have; a review may change between the request of a job
        and its start.
    review : Review, optional
        The review, if it has already been read.

    Raises
    ------
    InputError
        If there is no such review, or it is not the expected one.
    """

    def __init__(
        self,
        workspace: Workspace,
        review_id: str,
        reads: Collection[Part] = PARTS,
        *,
        expected: dict[str, Any] | None = None,
        review: Review | None = None,
    ) -> None:
        self.workspace = workspace
        self.review = workspace.read(review_id) if review is None else review
        self.reads = frozenset(reads)
        self._folder = workspace.folder(review_id)
        self._once = Once()
        if expected is not None and expected != _as_json(self.identity):
            raise InputError(
                "The review has changed since this was requested", fix="Start it again."
            )

    @property
    def identity(self) -> dict[str, Any]:
        """Everything on which results from this reader depend."""
        return identity(self.review, self.reads)

    @property
    def roles(self) -> Roles:
        """The role of each column."""
        return self.review.roles or Roles()

    @property
    def _together(self) -> str:
        """The column of clusters or times; empty without one. Untrusted text."""
        return self.roles.time or self.roles.cluster or ""

    @property
    def judged(self) -> Which:
        """The set on which results are judged: the evaluation set if there is one."""
        return "evaluation" if self.has("evaluation") else "calibration"

    @property
    def reference(self) -> Table:
        """The table that shows where the data lie: the training rows, if there are any."""
        return "training" if self.has("training") else "calibration"

    def has(self, part: Part) -> bool:
        """Whether the review has a part, which must be declared."""
        self._declared(part)
        review = self.review
        match part:
            case "model":
                return review.model is not None and review.model_file is not None
            case "training":
                return review.training is not None
            case "foreign":
                return bool(review.foreign)
        return part in review.tables

    def name(self, part: Table) -> str:
        """The owner's name for the file of a table. Untrusted text."""
        return self._table(part).name

    def scored(self, which: Which) -> ScoredSet:
        """A scored set of a classification, memory-mapped and read-only.

        Raises
        ------
        InputError
            If the set is not scored, the review is of a regression, or files are damaged.
        """
        check_which(which)
        self._declared(which)
        info = scored_info(self.review, which, "classification")
        at = self._folder / info.folder, self.review.classes, info.digest, which, self._together
        return self._once(("scored", which), lambda: scored_arrays(*at))

    def summary(self, which: Which) -> ClassSummary | None:
        """The summary of a set of a classification with very many rows; None of others.

        Raises
        ------
        InputError
            As `scored`.
        """
        check_which(which)
        self._declared(which)
        info = scored_info(self.review, which, "classification")
        return read_summary(self._folder / info.folder, self.review.classes, which)

    def regression_summary(self, which: Which) -> RegressionSummary | None:
        """The summary of a set of a regression with very many rows; None of others.

        Raises
        ------
        InputError
            As `distributions`.
        """
        check_which(which)
        self._declared(which)
        info = scored_info(self.review, which, "regression")
        return read_regression_summary(self._folder / info.folder, which)

    def distributions(self, which: Which) -> RegressionSet:
        """A scored set of a regression, memory-mapped and read-only.

        Raises
        ------
        InputError
            If the set is not scored, the review is of a classification, or files are damaged.
        """
        check_which(which)
        self._declared(which)
        info = scored_info(self.review, which, "regression")
        at = self._folder / info.folder, info.digest, which, self._together
        return self._once(("distributions", which), lambda: regression_arrays(*at))

    def fitness(self, which: Which) -> Fitness | RegressionFitness:
        """What a scored set is suited for; see `kdcal_core.data.fitness`, `regression_fitness`."""
        from kdcal_core.data import Fitness, RegressionFitness, fitness, regression_fitness
        from kdcal_core.data.fitness import missing_flags

        check_which(which)
        self._declared(which)
        inputs = set(input_columns(self.review))
        columns = self._table(which).columns
        missing = {one.name: one.n_missing for one in columns if one.name in inputs}
        info = scored_info(self.review, which, self.review.task)
        place = self._folder / info.folder
        found: Fitness | RegressionFitness | None
        if self.review.task == "classification":
            found = read_fitness(place, Fitness, which)
            if found is None:
                scored = self.scored(which)
                found = fitness(scored.proba, scored.y, scored.classes)
        else:
            found = read_fitness(place, RegressionFitness, which)
            if found is None:
                rows = self.distributions(which)
                found = regression_fitness(
                    rows.distribution.mean(), rows.y, outside=info.outside, notes=info.notes
                )
        return replace(found, flags=(*found.flags, *missing_flags(missing)))

    def frame(
        self,
        part: Table,
        columns: Sequence[str] | None = None,
        most: int | None = None,
        *,
        coded: bool = False,
    ) -> pd.DataFrame:
        """A table with all or only the given columns; rows count from 0, and ``most`` are drawn.

        With ``coded``, texts are categories, which are faster to read and to count.
        """
        return self._of_table(self._table(part), columns, most, coded).reset_index(drop=True)

    def counts(self, part: Table, columns: Sequence[str]) -> tuple[pd.DataFrame, IntArray]:
        """The distinct rows of these columns of a table, and how often each occurs, (n,)."""
        from kdcal_core.review.scoring import count_rows

        table = self._table(part)
        path = table_path(self._folder, table)
        with kept(table.name):
            return count_rows(str(path), columns)

    def features(self, part: Table) -> pd.DataFrame:
        """The feature columns in the order of the roles; the index is the rows' position."""
        return self._features(self._table(part))

    def foreign(self, name: str) -> pd.DataFrame:
        """The features of foreign rows, by their shown name."""
        self._declared("foreign")
        return self._features(self.review.foreign[name])

    def foreign_dependence(self, name: str) -> tuple[Dependence | None, str]:
        """How foreign rows depend on one another, if their table has the column of the data's own.

        That is the column of clusters or times. The text says why they count as independent all the
        same; it is empty where nothing is in the way. Untrusted text.
        """
        from kdcal_core.data import row_dependence

        self._declared("foreign")
        table, column = self.review.foreign[name], self._together
        if not column or column not in {one.name for one in table.columns}:
            return None, ""
        try:
            found = row_dependence(self._of_table(table, (column,)), self.roles, table.name)
            return None if found is None or found.alone else found, ""
        except InputError as error:
            return None, f"Foreign rows of this table count as independent. {error}"

    def watched(self, name: str, digest: str) -> pd.DataFrame:
        """The rows of a new table with this digest; the index is the rows' position.

        The `identity` does not cover these tables, so the digest is an argument of what reads them.

        Raises
        ------
        InputError
            If the review has no such table, or another one of this name.
        """
        table = self.review.watched.get(name)
        if table is None or table.digest != digest:
            raise InputError(
                "The new table is no longer part of the review", fix="Add it again.", file=name
            )
        return self._of_table(table)

    def labelled(self, part: Table) -> tuple[pd.DataFrame, IntArray]:
        """The features of a table and the true classes, 0 to K - 1, (n,).

        Raises
        ------
        InputError
            For a class that the review does not know, with file and row.
        """
        from kdcal_core.data import feature_frame, target_labels
        from kdcal_core.review.scoring import in_file, in_rows_of

        table = self._table(part)
        frame = self._of_table(table)
        with in_file(table.name), in_rows_of(frame):
            labels = target_labels(frame, self.roles, self.review.classes)
            return feature_frame(frame, self.roles), labels

    @property
    def model_path(self) -> Path | None:
        """Path of the model's file; None if there is no model."""
        self._declared("model")
        return self._folder / self.review.model_file if self.review.model_file else None

    def model(self) -> Model:
        """The open model, after its file is checked against its digest. Call it only in a worker.

        Raises
        ------
        InputError
            If the review has predictions without their model, or the model's file was changed.
        """
        from kdcal_core.models import load_model
        from kdcal_core.review.scoring import in_file

        review, path = self.review, self.model_path
        if review.model is None or path is None:
            raise no_model()
        info = review.model

        def make() -> Model:
            with in_file(info.name):
                check_digest(path, info.digest)
                return cast("Model", load_model(path, name=info.name, task=review.task))

        return self._once(("model",), make)

    def layers(self) -> HasLayers:
        """The open model, if it has hidden layers.

        Raises
        ------
        InputError
            If there is no model, or it names no hidden layer.
        """
        from kdcal_core.models import HasLayers

        if not self.has("model"):
            raise InputError(
                "The review has predictions without their model, so there is no hidden layer",
                fix="Choose the inputs or the predictions as the space.",
            )
        model = self.model()
        if not isinstance(model, HasLayers):
            raise InputError(
                f"This model ({model.kind}) names no hidden layer",
                fix="Choose the inputs or the predictions as the space.",
            )
        return model

    def _features(self, table: TableInfo) -> pd.DataFrame:
        from kdcal_core.data import feature_frame
        from kdcal_core.review.scoring import in_file

        with in_file(table.name):
            return feature_frame(self._of_table(table), self.roles)

    def _of_table(
        self,
        table: TableInfo,
        columns: Sequence[str] | None = None,
        most: int | None = None,
        coded: bool = False,
    ) -> pd.DataFrame:
        from kdcal_core.review.scoring import read_frame

        path = table_path(self._folder, table)
        with kept(table.name):
            return read_frame(str(path), columns, most, coded)

    def _table(self, part: Table) -> TableInfo:
        self._declared(part)
        review = self.review
        table = review.training if part == "training" else review.tables.get(part)
        if table is None:
            raise InputError(f"The review has no {part} table", fix="Add it on the Load page.")
        return table

    def _declared(self, part: str) -> None:
        """Refuse what the identity does not cover, which is a bug and no fault of the review."""
        if part not in self.reads:
            declared = ", ".join(sorted(self.reads)) or "nothing"
            raise RuntimeError(f"{part!r} is read, but only {declared} is declared")


def no_model() -> InputError:
    """The error if a model is needed and the review has none."""
    return InputError(
        "The review has predictions without their model, but rows that are in no table need the "
        "model",
        fix="Add the model on the Load page.",
    )


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    """The value after a round trip through JSON: tuples become lists."""
    import json

    found: dict[str, Any] = json.loads(json.dumps(value))
    return found


@dataclass(frozen=True, eq=False)
class ReviewData:
    """The rows of a scored classification review, with the data that calibrators may read.

    Attributes
    ----------
    calibration : ScoredSet
    evaluation : ScoredSet or None
    classes : tuple of K str
        Untrusted text.
    inputs : dict of str to DataFrame
        The features in the order of the roles, unchanged (categories, missing values), under
        "calibration", "evaluation" and "training" if there are such rows. If no column is a
        feature, the columns without another role that describe the rows and that all these tables
        have.
    groups : dict of str to DataFrame
        Under the same names, the columns that are not features and have no other role, such as
        the user's own partition.
    training_y : (m,) int64 or None
        True classes of the training rows, 0 to K - 1.
    model : Model or None
        The open model, if it is declared and the review has one.
    foreign : dict of str to DataFrame
        Features of foreign rows, if they are declared. Untrusted names.
    foreign_dependence : dict of str to Dependence
        How the rows of such a table depend on one another, where they do.
    """

    calibration: ScoredSet
    evaluation: ScoredSet | None
    classes: tuple[str, ...]
    inputs: dict[str, pd.DataFrame]
    groups: dict[str, pd.DataFrame] = field(default_factory=dict)
    training_y: IntArray | None = None
    model: Model | None = None
    foreign: dict[str, pd.DataFrame] = field(default_factory=dict)
    foreign_dependence: dict[str, Dependence] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in ("inputs", "groups", "foreign"):
            frames = {name: as_pandas(frame) for name, frame in getattr(self, part).items()}
            object.__setattr__(self, part, frames)

    @property
    def training(self) -> tuple[pd.DataFrame, IntArray] | None:
        """Features and true classes of the training rows, if there are any."""
        if self.training_y is None:
            return None
        return self.inputs["training"], self.training_y


def review_data(reader: ReviewReader, *, with_model: bool = False) -> ReviewData:
    """Read a scored classification review; call it in a worker process.

    Parameters
    ----------
    reader : ReviewReader
        Both sets are read; training and foreign rows if they are declared.
    with_model : bool
        Whether to open the model, if there is one.

    Raises
    ------
    InputError
        If the review is of a regression, its calibration set is not scored, a file is missing or
        damaged, or the training rows have a class that the model does not know.
    """
    from kdcal_core.data import target_labels

    review, roles = reader.review, reader.roles
    calibration = reader.scored("calibration")
    evaluation = reader.scored("evaluation") if "evaluation" in review.sets else None
    columns = input_columns(review)
    inputs: dict[str, pd.DataFrame] = {}
    groups: dict[str, pd.DataFrame] = {}
    for which in WHICH:
        if which not in review.sets:
            continue
        frame = reader.frame(which)
        inputs[which], groups[which] = frame[columns], free_columns(frame, roles, columns)
    training_y = None
    if "training" in reader.reads and reader.has("training"):
        frame = reader.frame("training")
        inputs["training"], groups["training"] = frame[columns], free_columns(frame, roles, columns)
        training_y = target_labels(frame, roles, review.classes, file=reader.name("training"))
    foreign = review.foreign if "foreign" in reader.reads and roles.features else {}
    depend = {name: reader.foreign_dependence(name)[0] for name in foreign}
    return ReviewData(
        calibration,
        evaluation,
        review.classes,
        inputs,
        groups,
        training_y,
        reader.model() if with_model and reader.has("model") else None,
        {name: reader.foreign(name).reset_index(drop=True) for name in foreign},
        {name: one for name, one in depend.items() if one is not None},
    )


def free_columns(frame: pd.DataFrame, roles: Roles, columns: list[str]) -> pd.DataFrame:
    """The columns that are neither inputs nor have another role."""
    taken = {*used_columns(roles), *columns}
    return frame[[name for name in frame.columns if name not in taken]]
