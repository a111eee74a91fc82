"""The reader of a review's rows, and the identity of what was read.

Every computation declares what it reads. `identity` covers exactly that, and a `ReviewReader` with
the same declaration refuses everything else. So a result depends on nothing that its key leaves
out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

from kdcal_core.data.types import IntArray, Roles, ScoredSet
from kdcal_core.errors import InputError
from kdcal_core.review.complete import check_which
from kdcal_core.review.inputs import input_columns
from kdcal_core.review.loading import scored_info
from kdcal_core.review.model import Review, TableInfo, Which
from kdcal_core.review.seals import check_digest
from kdcal_core.review.stored import regression_arrays, scored_arrays, table_path
from kdcal_core.review.workspace import Workspace
from kdcal_core.store import encode

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from kdcal_core.data import Fitness, RegressionFitness
    from kdcal_core.distributions import RegressionSet
    from kdcal_core.models import HasLayers, Model

T = TypeVar("T")

Part = Literal["model", "calibration", "evaluation", "training", "foreign"]
"""The parts of a review: the model, a set's table with its scores, the other tables."""
Table = Literal["calibration", "evaluation", "training"]

PARTS: tuple[Part, ...] = get_args(Part)


def identity(review: Review, reads: Collection[Part] = PARTS) -> dict[str, Any]:
    """Everything that results from these parts depend on: contents, roles and classes.

    Parameters
    ----------
    reads : collection of str
        Of `PARTS`; in any order.

    Returns
    -------
    dict
        JSON. Digests, but neither the places nor the names of files.

    Examples
    --------
    >>> identity(Review("a" * 16), ("model",))["model"] is None
    True
    """
    found: dict[str, Any] = {
        "task": review.task,
        "roles": encode(review.roles) if review.roles else None,
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


def _set_identity(review: Review, which: Which) -> list[str | None] | None:
    table, scored = review.tables.get(which), review.sets.get(which)
    return None if table is None else [table.digest, scored.digest if scored else None]


class ReviewReader:
    """Reads the declared parts of a review, each on demand.

    The review itself is read once. Scored sets, which are mapped, and the open model are kept;
    tables are not kept, because they take memory.

    Parameters
    ----------
    workspace : Workspace
    review_id : str
    reads : collection of str
        The parts that may be read.
    expected : dict, optional
        The `identity` that the reader must have: a review may change between the request of a
        job and its start.
    review : Review, optional
        The review, if it has been read already.

    Raises
    ------
    InputError
        Where there is no such review, or it is not the expected one.
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
        self._kept: dict[tuple[Any, ...], Any] = {}
        if expected is not None and expected != _as_json(self.identity):
            raise InputError(
                "The review has changed since this was asked for", fix="Ask for it again."
            )

    @property
    def identity(self) -> dict[str, Any]:
        """Everything that results from this reader depend on."""
        return identity(self.review, self.reads)

    @property
    def roles(self) -> Roles:
        """What each column is for."""
        return self.review.roles or Roles()

    @property
    def judged(self) -> Which:
        """The set that results are judged on: the evaluation set where there is one."""
        return "evaluation" if self.has("evaluation") else "calibration"

    @property
    def reference(self) -> Table:
        """The table that shows where the data lie: the training rows, if there are any."""
        return "training" if self.has("training") else "calibration"

    def has(self, part: Part) -> bool:
        """Whether the review holds a part, which has to be declared."""
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
            Where the set is not scored, the review is of a regression, or files are damaged.
        """
        check_which(which)
        self._declared(which)
        info = scored_info(self.review, which, "classification")
        at = self._folder / info.folder, self.review.classes, info.digest, which
        return self._once(("scored", which), lambda: scored_arrays(*at))

    def distributions(self, which: Which) -> RegressionSet:
        """A scored set of a regression, memory-mapped and read-only.

        Raises
        ------
        InputError
            Where the set is not scored, the review is of a classification, or files are damaged.
        """
        check_which(which)
        self._declared(which)
        info = scored_info(self.review, which, "regression")
        at = self._folder / info.folder, info.digest, which
        return self._once(("distributions", which), lambda: regression_arrays(*at))

    def fitness(self, which: Which) -> Fitness | RegressionFitness:
        """What a scored set is fit for; see `kdcal_core.data.fitness` and `regression_fitness`."""
        from kdcal_core.data import fitness, regression_fitness

        inputs = set(input_columns(self.review))
        columns = self._table(which).columns
        missing = {one.name: one.n_missing for one in columns if one.name in inputs}
        if self.review.task == "classification":
            scored = self.scored(which)
            return fitness(scored.proba, scored.y, scored.classes, missing)
        found, info = self.distributions(which), self.review.sets[which]
        return regression_fitness(
            found.distribution.mean(),
            found.y,
            outside=info.outside,
            missing=missing,
            notes=info.notes,
        )

    def frame(self, part: Table, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """A table: all columns, or only those asked for. Rows count from 0."""
        return self._of_table(self._table(part), columns).reset_index(drop=True)

    def features(self, part: Table) -> pd.DataFrame:
        """The feature columns in the order of the roles; the index says where rows stood."""
        return self._features(self._table(part))

    def foreign(self, name: str) -> pd.DataFrame:
        """The features of foreign rows, by the name that they are shown by."""
        self._declared("foreign")
        return self._features(self.review.foreign[name])

    def labelled(self, part: Table) -> tuple[pd.DataFrame, IntArray]:
        """The features of a table and the true classes, 0 to K - 1, (n,).

        Raises
        ------
        InputError
            For a class that the review does not know, with file and row.
        """
        from kdcal_core.data import feature_frame, target_labels
        from kdcal_core.review.reading import in_file, in_rows_of

        table = self._table(part)
        frame = self._of_table(table)
        with in_file(table.name), in_rows_of(frame):
            labels = target_labels(frame, self.roles, self.review.classes)
            return feature_frame(frame, self.roles), labels

    @property
    def model_path(self) -> Path | None:
        """Where the model's file lies; None where there is none."""
        self._declared("model")
        return self._folder / self.review.model_file if self.review.model_file else None

    def model(self) -> Model:
        """The open model, after its file is checked against its digest. Call it only in a worker.

        Raises
        ------
        InputError
            Where the review holds predictions without their model, or its file was changed.
        """
        from kdcal_core.models import load_model
        from kdcal_core.review.reading import in_file

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
        """The open model, whose hidden layers are needed.

        Raises
        ------
        InputError
            Where there is no model, or it names no hidden layer.
        """
        from kdcal_core.models import HasLayers

        if not self.has("model"):
            raise InputError(
                "The review holds predictions without their model, so there is no hidden layer",
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
        from kdcal_core.review.reading import in_file

        with in_file(table.name):
            return feature_frame(self._of_table(table), self.roles)

    def _of_table(self, table: TableInfo, columns: Sequence[str] | None = None) -> pd.DataFrame:
        from kdcal_core.review.reading import read_frame
        from kdcal_core.review.stored import kept

        path = table_path(self._folder, table)
        with kept(table.name):
            return read_frame(str(path), columns)

    def _table(self, part: Table) -> TableInfo:
        self._declared(part)
        review = self.review
        table = review.training if part == "training" else review.tables.get(part)
        if table is None:
            raise InputError(f"The review has no {part} table", fix="Add it on the Load page.")
        return table

    def _declared(self, part: str) -> None:
        """Refuse what the identity does not cover: a fault of the code, not of the review."""
        if part not in self.reads:
            declared = ", ".join(sorted(self.reads)) or "nothing"
            raise RuntimeError(f"{part!r} is read, but only {declared} is declared")

    def _once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if key not in self._kept:
            self._kept[key] = make()
        return cast(T, self._kept[key])


def no_model() -> InputError:
    """The error where a model is needed and the review has none."""
    return InputError(
        "The review holds predictions without their model, and only a model can answer for rows "
        "that are in no table",
        fix="Add the model on the Load page.",
    )


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    """The value as it comes back from JSON: tuples are lists."""
    import json

    found: dict[str, Any] = json.loads(json.dumps(value))
    return found
