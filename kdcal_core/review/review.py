"""The record of a review: its model, its tables, the roles of columns, its scored sets.

The record also lists the columns that describe the rows, and those left out, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from kdcal_core.data.column_doubts import Doubt
from kdcal_core.data.folder_parts import PartialColumn
from kdcal_core.data.labels import default_event
from kdcal_core.data.role_columns import used_columns
from kdcal_core.data.schema import Roles, Task
from kdcal_core.models.protocol import ModelInfo
from kdcal_core.review.question import Question
from kdcal_core.statistics import lags_for
from kdcal_core.text import listed

Which = Literal["calibration", "evaluation"]
WHICH: tuple[Which, ...] = ("calibration", "evaluation")

Owner = tuple[str, str]
"""The provider that identified a person who signed in, and its identifier for them."""


LOOKED_AT = 10_000
"""Rows of a table whose values are counted: enough to separate labels from measurements."""
_WHOLE = re.compile(r"-?\d+(\.0+)?")
_FEWEST_NAMED = 50  # rows; of fewer, numbers may differ by chance
_NEARLY_ALL = 0.95  # share of rows with a value of their own


@dataclass(frozen=True)
class ColumnInfo:
    """One column, as shown when its role is chosen.

    Attributes
    ----------
    name : str
        Untrusted text.
    kind : str
        "number", "text", "boolean" or "date".
    n_missing : int
    n_distinct : int
        Distinct values among the first `LOOKED_AT` rows.
    examples : tuple of str
        Up to three values, cut to 40 characters. Untrusted text.
    pair : tuple of str
        The two labels, not cut, of a column with exactly two; otherwise empty. Untrusted text.
    no_input : str
        Why a column with this content cannot describe a row's region; empty if it can.
    first : tuple of str
        Its values in the first rows, cut to 40 characters. Untrusted text.
    """

    name: str
    kind: Literal["number", "text", "boolean", "date"]
    n_missing: int
    n_distinct: int
    examples: tuple[str, ...]
    pair: tuple[str, ...] = ()
    no_input: str = ""
    first: tuple[str, ...] = ()


@dataclass(frozen=True)
class TableInfo:
    """A table without its rows; ``file`` is its name inside the review's folder.

    ``sha256`` is the digest of this file; empty in reviews of earlier versions. ``digest`` is that
    of the table that was loaded. ``partial`` are the columns that only some files have of the
    folder from which it was gathered; they were left out. ``other_names`` pairs columns with those
    of the calibration table that they may be under other names, while that is asked about.
    """

    name: str
    digest: str
    n_rows: int
    columns: tuple[ColumnInfo, ...]
    notes: tuple[str, ...]
    size_bytes: int
    file: str
    sha256: str = ""
    partial: tuple[PartialColumn, ...] = ()
    other_names: tuple[tuple[str, str], ...] = ()

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names in the table's order."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class SetInfo:
    """A scored set without its rows; ``folder`` is its name inside the review's folder.

    Attributes
    ----------
    digest : str
    n_rows : int
    accuracy : float or None
        Share of rows predicted correctly, 0 to 1; None in a regression.
    folder : str
    rmse : float or None
        Root mean squared error of the predictive means against the outcomes; None in a
        classification.
    outside : int
        Number of outcomes whose PIT is exactly 0 or 1, that is, with probability 0 under their
        distribution.
    spread : float or None
        If predictions are single numbers, the standard deviation of the calibration set's
        residuals, which all rows share.
    notes : tuple of str
        Warnings of the scoring. Untrusted text.
    doubts : tuple of str
        Evidence beyond chance against the classes that the probabilities are assigned to.
        Untrusted text.
    swapped : bool
        Whether two classes are probably exchanged, because the rows are ranked in reverse.
    class_rows : tuple of int
        Rows of each true class; empty in a regression and in reviews of earlier versions.
    units : int
        Clusters or different times of the rows; 0 where no column says so.
    span : tuple of str
        First and last day of the column of times; empty where there is none, or in reviews of
        earlier versions.
    answers : str
        Digest of predictions and outcomes alone, which weights and clusters do not change; empty in
        reviews of earlier versions.
    """

    digest: str
    n_rows: int
    accuracy: float | None
    folder: str
    rmse: float | None = None
    outside: int = 0
    spread: float | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    swapped: bool = False
    class_rows: tuple[int, ...] = ()
    units: int = 0
    span: tuple[str, ...] = ()
    answers: str = ""

    @property
    def known_as(self) -> tuple[str, ...]:
        """The digests by which results of these rows are known, whatever role columns have."""
        return tuple(dict.fromkeys(one for one in (self.digest, self.answers) if one))


@dataclass(frozen=True)
class SignatureInfo:
    """A signature beside the model (OpenSSF Model Signing), and its maker's public key.

    Attributes
    ----------
    file, key_file : str
        Names inside the review's folder; empty for the one that is not there.
    said : str
        What is known of the signature, in words; empty until there are signature and model.
    name, key_name : str
        What their files were called when they were loaded: untrusted text. Earlier versions kept
        none.
    """

    file: str = ""
    key_file: str = ""
    said: str = ""
    name: str = ""
    key_name: str = ""


@dataclass(frozen=True)
class Review:
    """The loaded model and tables, with their settings.

    Attributes
    ----------
    id : str
        Its name in addresses and on disk.
    title : str
        Shown name. Untrusted text.
    model : ModelInfo or None
        None while there is no model, or if the tables contain its predictions.
    model_file : str or None
        The model's name inside the review's folder.
    signature : SignatureInfo or None
        Of the model; None where it is not signed.
    classes : tuple of str
        Class names in the order of the probability columns. Untrusted text.
    tables : dict
        TableInfo under "calibration" and "evaluation".
    roles : Roles or None
        The role of each column, the same for both tables.
    sets : dict
        SetInfo under "calibration" and "evaluation", once scored.
    training : TableInfo or None
        The rows on which the model was trained. A kernel density graph is fitted on them. They are
        not used to calibrate, are not scored and are not needed for `ready`.
    foreign : dict
        TableInfo of foreign rows (out of distribution), under their shown names. Untrusted text.
        They have the features and need no target; they are not needed for `ready` either.
    unplaced : dict
        TableInfo of tables that have the features but not the target, or other names for columns,
        and are used for nothing until somebody says what for, under their shown names. Untrusted
        text.
    watched : dict
        TableInfo of new tables that are held against the review's rows, under their shown names
        and in the order in which they came. Untrusted text. No other result depends on them.
    sample : str or None
        Name of the shipped sample from which it was started.
    notes : tuple of str
        Decisions made while loading, as sentences.
    chosen_task : str or None
        The task that the user chose; None if the files determine it.
    question : Question
        What the review asks about the model: the event, the groups, the limits.
    doubts : tuple of Doubt
        Open questions about the columns of the calibration table.
    answers : dict
        The subject of each settled doubt, and the answer. Untrusted text.
    accepted : tuple of str
        Doubts about the scored rows for which the user confirmed the roles, and about folders
        whose columns the user does without.
    verdict : str
        Of the checks when all were last judged; empty since the rows or the question changed.
    verdict_edition : str
        What the verdict depends on beside the review itself (`kdcal_core.tasks.verdict_edition`);
        empty in reviews of earlier versions.
    first_results : str
        When results of these rows and this model were first shown, in UTC, as earlier versions
        kept it here; empty in others, whose `kdcal_core.review.KnownResults` knows it.
    owner : tuple of str or None
        The person to whom it belongs; None where nobody signed in.
    """

    id: str
    title: str = "New review"
    model: ModelInfo | None = field(default=None, metadata={"formerly": "parent"})
    model_file: str | None = None
    signature: SignatureInfo | None = None
    classes: tuple[str, ...] = ()
    tables: dict[str, TableInfo] = field(default_factory=dict)
    roles: Roles | None = None
    sets: dict[str, SetInfo] = field(default_factory=dict)
    training: TableInfo | None = None
    foreign: dict[str, TableInfo] = field(default_factory=dict)
    unplaced: dict[str, TableInfo] = field(default_factory=dict)
    watched: dict[str, TableInfo] = field(default_factory=dict)
    sample: str | None = None
    notes: tuple[str, ...] = ()
    chosen_task: Task | None = None
    question: Question = field(default_factory=Question)
    doubts: tuple[Doubt, ...] = ()
    answers: dict[str, str] = field(default_factory=dict)
    accepted: tuple[str, ...] = ()
    verdict: str = ""
    verdict_edition: str = ""
    first_results: str = ""
    owner: Owner | None = None

    def owned_by(self, owner: Owner | None) -> Review:
        """The review, belonging to this person."""
        return self if self.owner == owner else replace(self, owner=owner)

    @property
    def task(self) -> Task:
        """Classification or regression: as chosen, or from the roles, or from the model."""
        if self.roles is not None:
            return self.roles.task
        if self.model is not None:
            return self.model.task
        return self.chosen_task or "classification"

    @property
    def scored(self) -> bool:
        """Whether every table has its scored set."""
        return bool(self.tables) and set(self.sets) == set(self.tables)

    @property
    def ready(self) -> bool:
        """Whether results can be shown: scored, and with a calibration set."""
        return self.scored and "calibration" in self.sets

    @property
    def has_evaluation(self) -> bool:
        """Whether there are further held-out rows on which to judge calibrators."""
        return "evaluation" in self.tables

    @property
    def all_tables(self) -> tuple[TableInfo, ...]:
        """The two sets, the training rows, the foreign rows, and those without a place."""
        training = (self.training,) if self.training else ()
        aside = (*self.foreign.values(), *self.unplaced.values())
        return (*self.tables.values(), *training, *aside)

    @property
    def event(self) -> int | None:
        """With two classes, the index of the event if its probability is reviewed; else None."""
        return None if self.question.view == "confidence" else self.event_class

    @property
    def event_class(self) -> int | None:
        """With two classes, the index of the event, whether or not its probability is reviewed."""
        if len(self.classes) != 2:
            return None
        chosen = self.question.event
        if chosen not in self.classes:
            rows = self.sets["calibration"].class_rows if "calibration" in self.sets else ()
            chosen = default_event(self.classes, rows)
        return self.classes.index(chosen or self.classes[1])

    @property
    def accuracy(self) -> dict[str, float]:
        """Share of rows predicted correctly, 0 to 1, for each scored set of a classification."""
        return {
            which: info.accuracy for which, info in self.sets.items() if info.accuracy is not None
        }


def input_columns(review: Review) -> list[str]:
    """The features; without features, the columns without another role that describe the rows.

    The latter must be in every table.
    """
    roles = review.roles or Roles()
    if roles.features:
        return list(roles.features)
    taken = {*used_columns(roles), *_unshared(review)}
    columns = review.tables["calibration"].columns
    return [one.name for one in columns if one.name not in taken and not one.no_input]


def group_columns(review: Review) -> list[str]:
    """Columns that may divide the rows into groups: in every set, and not about the outcome."""
    roles = review.roles or Roles()
    tables = list(review.tables.values())
    stated = {*used_columns(roles)} - {*roles.features}
    return [
        name
        for name in (tables[0].column_names if tables else ())
        if name not in stated and all(name in table.column_names for table in tables)
    ]


def offered_groups(review: Review) -> list[str]:
    """Of `group_columns` those that are offered at first, without identifiers, dates and free text.

    An identifier is a column that no region can use, or whole numbers of which nearly every row has
    another; what the model reads as a feature is none. Columns that the question names are offered.
    """
    table, roles = review.tables.get("calibration"), review.roles or Roles()
    columns = {} if table is None else {one.name: one for one in table.columns}
    looked = 0 if table is None else min(table.n_rows, LOOKED_AT)
    kept = {*review.question.groups, *(roles.features if review.model is not None else ())}
    return [
        name
        for name in group_columns(review)
        if name in kept or not _names_rows(columns[name], looked)
    ]


def _names_rows(column: ColumnInfo, looked: int) -> bool:
    """Whether a column rather names each of its rows, or when it was, than a group of them."""
    if column.no_input or column.kind == "date":
        return True
    counts = column.kind == "number" and all(map(_WHOLE.fullmatch, column.examples))
    return counts and looked >= _FEWEST_NAMED and column.n_distinct >= _NEARLY_ALL * looked


def undeclared_groups(review: Review, declared: Sequence[str] = ()) -> list[str]:
    """Columns of words that a model does not read, where no groups are declared.

    Its faults in such groups show in no region of its inputs.

    Parameters
    ----------
    declared : sequence of str
        The columns whose groups are judged.
    """
    table = review.tables.get("calibration")
    if declared or review.model is None or table is None:
        return []
    read, free = {*(review.roles or Roles()).features}, {*group_columns(review)}
    return [
        one.name
        for one in table.columns
        if one.name in free - read and one.kind in ("text", "boolean") and not one.no_input
    ]


def left_out(review: Review) -> dict[str, str]:
    """Columns that are not inputs, because of their content or by choice, each with the reason.

    Only for predictions without a model; a model's inputs are known, and none is left out.

    Returns
    -------
    dict of str to str
        Reasons in words. The names are untrusted text.
    """
    table = review.tables.get("calibration")
    if review.model is not None or table is None:
        return {}
    taken = {*used_columns(review.roles or Roles()), *input_columns(review)}
    unshared = _unshared(review)
    return {
        one.name: one.no_input
        or ("not in every table" if one.name in unshared else "its role is 'Not used'")
        for one in table.columns
        if one.name not in taken
    }


def left_out_words(columns: Mapping[str, str], what: str = "Not among the inputs") -> str:
    """The columns left out of ``what``, by reason; empty if all are used. Untrusted text.

    Examples
    --------
    >>> left_out_words({"day": "dates or times", "id": "it numbers the rows"})
    'Not among the inputs: day (dates or times); id (it numbers the rows).'
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in columns.items():
        by_reason.setdefault(reason, []).append(name[:80])
    parts = [f"{listed(names)} ({reason})" for reason, names in by_reason.items()]
    return f"{what}: {'; '.join(parts)}." if parts else ""


def dependence_words(review: Review) -> str:
    """How rows that depend on one another are treated; empty for independent ones. Untrusted text.

    Examples
    --------
    >>> held = SetInfo("", 900, 0.9, "", units=120)
    >>> dependence_words(Review("a" * 16, roles=Roles(cluster="ward"), sets={"calibration": held}))
    'Rows of one ward are kept together in folds and intervals: 120 clusters (calibration).'
    """
    roles = review.roles or Roles()
    column = (roles.cluster if roles.time is None else roles.time) or ""
    counts = {which: one.units for which, one in review.sets.items() if one.units}
    if not column or not counts:
        return ""
    if all(counts.get(which) == one.n_rows for which, one in review.sets.items()):
        return "" if roles.time is None else _in_order(column, counts)
    if roles.time is not None:
        return _in_order(column, counts)
    each = listed([f"{n:,} clusters ({which})" for which, n in sorted(counts.items())])
    return f"Rows of one {column[:60]} are kept together in folds and intervals: {each}."


def _in_order(column: str, counts: Mapping[str, int]) -> str:
    each = listed(
        [
            f"{n:,} times, each with the {lags_for(n):,} before it ({which})"
            for which, n in sorted(counts.items())
        ]
    )
    return (
        f"Rows are ordered by {column[:60]}, and near ones may depend on one another: {each}. "
        "Folds are stretches of time, and losses are compared by the test of Diebold and Mariano."
    )


def _unshared(review: Review) -> set[str]:
    """Columns of the calibration table that another table with labels lacks."""
    tables: list[TableInfo] = [review.tables[which] for which in review.tables]
    tables += [review.training] if review.training else []
    names = review.tables["calibration"].column_names
    return {name for name in names if not all(name in table.column_names for table in tables)}
