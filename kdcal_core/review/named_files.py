"""Make a scored review of files that a caller names, with the roles of their columns.

Commands and audits of a pipeline take the same files and columns. What is not given is guessed as
in the app.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from kdcal_core.data import CONFIDENCES, OutputKind, Roles, Task, classes_of, family_of
from kdcal_core.data.column_doubts import Doubt
from kdcal_core.data.parquet_folder import name_of_parted
from kdcal_core.data.role_guesses import output_kind_named
from kdcal_core.data.schema import Family
from kdcal_core.errors import InputError
from kdcal_core.models import ModelInfo
from kdcal_core.review.added_files import add_model, add_table
from kdcal_core.review.changes import change_review
from kdcal_core.review.further_tables import add_foreign, add_training
from kdcal_core.review.requirements import constant_target, refuse_partial
from kdcal_core.review.review import Review, TableInfo
from kdcal_core.review.signature import SignedPart, add_signature
from kdcal_core.review.steps import create_review, score, set_roles, set_task, settle
from kdcal_core.review.workspace import Workspace
from kdcal_core.text import listed


def command_option(name: str, value: str = "") -> str:
    """How a command is given something.

    Examples
    --------
    >>> command_option("output_kind", "percent")
    '--output-kind percent'
    """
    return f"--{name.replace('_', '-')} {value}".rstrip()


@dataclass(frozen=True)
class NamedFiles:
    """Files and what their columns are, as far as the caller says so.

    Attributes
    ----------
    target : str
        Column of the true class or outcome.
    model : str or None
        A model's file.
    data : str or tuple of str or None
        Rows for it. Rows may be a folder of Parquet files, a pattern, or a tuple of files, folders
        and patterns (`kdcal_core.data.parquet_folder.parquet_files`).
    predictions : str or tuple of str or None
        In place of both: rows with the predictions in columns.
    evaluation, training : str or None
        Further held-out rows; the model's training rows.
    foreign : sequence of str
        Tables of foreign rows.
    signature, signature_key : str or None
        An OpenSSF signature of the model, and its maker's public key.
    task : str or None
    features : tuple of str
        Columns that describe the rows of predictions; a model's are its inputs.
    weight, cluster, time : str or None
        A column. An empty cluster says that rows are independent, whatever columns are named.
    classes : tuple of str or None
        Names in the order of the model's outputs, where it does not know them.
    event : str or None
        The class whose probability is judged.
    outputs : sequence of (class, column) or None
    output_kind : str or None
        What the outputs hold, as `Roles.output_kind`.
    family, parameters, true_mean, by
        Of a regression: what the predictions are, (parameter, column) pairs, a column of true
        means, and columns of regions.
    majority : bool
        As `Roles.majority`.
    option : callable
        ``(name, value) -> words``: how the caller is given something, for errors.
    """

    target: str = ""
    model: str | None = None
    data: str | tuple[str, ...] | None = None
    predictions: str | tuple[str, ...] | None = None
    evaluation: str | None = None
    training: str | None = None
    foreign: Sequence[str] = ()
    signature: str | None = None
    signature_key: str | None = None
    task: Task | None = None
    features: tuple[str, ...] = ()
    weight: str | None = None
    cluster: str | None = None
    time: str | None = None
    classes: tuple[str, ...] | None = None
    event: str | None = None
    outputs: Sequence[tuple[str, str]] | None = None
    output_kind: OutputKind | None = None
    family: Family | None = None
    parameters: Sequence[tuple[str, str]] | None = None
    true_mean: str | None = None
    majority: bool = False
    by: Sequence[str] = ()
    option: Callable[..., str] = command_option

    @property
    def rows(self) -> str | tuple[str, ...]:
        """Where the rows lie; empty without any."""
        return self.data or self.predictions or ""

    @property
    def table(self) -> str:
        """The file of the rows; empty without any.

        Raises
        ------
        InputError
            If they are several files.
        """
        if isinstance(self.rows, str):
            return self.rows
        raise InputError(
            "The rows are in several files",
            fix="Give them as one file.",
            file=name_of_parted(self.rows),
        )


def check_files(given: NamedFiles, *, parted: bool = False) -> None:
    """Refuse files that do not fit together or do not exist, before reading any.

    ``parted`` is for rows that may lie in many files, which are looked for when they are read.
    """
    if given.data and not given.model:
        raise InputError(
            f"{given.option('data')} needs {given.option('model')}",
            fix=f"Or give {given.option('predictions')} alone.",
        )
    if given.predictions and given.model:
        raise InputError(
            f"{given.option('predictions')} takes no {given.option('model')}",
            fix=f"Give {given.option('data')} with {given.option('model')}.",
        )
    if given.signature and not given.model:
        raise InputError(
            f"{given.option('signature')} needs {given.option('model')}",
            fix="It is a signature of the model's file.",
        )
    if given.signature_key and not given.signature:
        raise InputError(
            f"{given.option('signature_key')} needs {given.option('signature')}",
            fix="Give the signature that the key is to verify.",
        )
    check_outputs(given)
    rows = () if parted else (given.table,)
    tables = (*rows, given.evaluation, given.training, *given.foreign)
    for path in (given.model, given.signature, given.signature_key, *tables):
        if path and Path(path).is_dir():
            raise InputError("This is a folder", fix="Give the rows as one file.", file=path)
        if path and not Path(path).is_file():
            raise InputError("There is no such file", fix="Check its path.", file=path)


def check_outputs(given: NamedFiles) -> None:
    """Refuse names of columns of predictions when a model makes the predictions."""
    for name, value in (("outputs", given.outputs), ("output_kind", given.output_kind)):
        if value and not given.predictions:
            raise InputError(
                f"{given.option(name)} needs {given.option('predictions')}",
                fix="A model gives its outputs itself.",
            )


def scored_review(workspace: Workspace, given: NamedFiles) -> Review:
    """A scored review of the files that the user named."""
    review = create_review(workspace)
    if given.task or given.outputs:
        set_task(workspace, review.id, given.task or "classification")
    if given.model:
        model = Path(given.model)
        review = add_model(workspace, review.id, model, model.name)
        parts: tuple[tuple[SignedPart, str | None], ...] = (
            ("signature", given.signature),
            ("signature_key", given.signature_key),
        )
        signed = [(part, Path(path), Path(path).name) for part, path in parts if path]
        if signed:
            review = add_signature(workspace, review.id, signed)
    table = Path(given.table)
    target = given.target
    review = add_table(workspace, review.id, "calibration", table, table.name, target=target)
    if given.majority and any(doubt.about == "labels" for doubt in review.doubts):
        review = settle(workspace, review.id, "labels", "majority")
    constant = None if given.outputs or given.parameters else constant_target(review)
    if constant is not None:
        raise constant
    _refuse_unread(review, given)
    asked = _asked_of_dependence(review, given)
    if review.task == "regression":
        roles = _regression_roles(review, given)
    else:
        _refuse_regression_options(given)
        table_info = review.tables["calibration"]
        roles = _class_roles(given, table_info, review.model, review.roles or Roles())
    set_roles(workspace, review.id, roles, given.classes)
    if asked:
        change_review(workspace, review.id, lambda now: replace(now, doubts=asked))
    if given.evaluation:
        further = Path(given.evaluation)
        add_table(workspace, review.id, "evaluation", further, further.name)
    review = score(workspace, review.id)
    if given.training:
        training = Path(given.training)
        review = add_training(workspace, review.id, training, training.name)
    for one in given.foreign:
        review = add_foreign(workspace, review.id, Path(one), Path(one).name)
    return review


def _asked_of_dependence(review: Review, given: NamedFiles) -> tuple[Doubt, ...]:
    """The questions whether rows of a patient or near in time are alike, where nothing is said."""
    if given.cluster is not None or given.time is not None:
        return ()
    say = given.option
    endings = {
        "cluster": "for that, or an empty name where rows are independent.",
        "time": f"for that, or an empty {say('cluster')} where rows are independent.",
    }
    return tuple(
        replace(
            one,
            sentence=f"{one.sentence} Give {say(one.about, one.choices[0].answer)} "
            f"{endings[one.about]}",
        )
        for one in review.doubts
        if one.about in endings
    )


def _class_roles(
    given: NamedFiles, table: TableInfo, model: ModelInfo | None, guessed: Roles
) -> Roles:
    """The role of each column of a classification: as given, the others as guessed by the app.

    A weight or split column is used only if it is named.
    """
    for column in filter(None, (given.target, given.weight, given.cluster, given.time)):
        need(table, column, "The table has no such column")
    plain = Roles(
        target=given.target,
        weight=given.weight,
        cluster=given.cluster or None,
        time=given.time,
        majority=given.majority,
    )
    if model is None and given.outputs:
        outputs = _said(given, table)
        kind = given.output_kind or output_kind_named([column for _, column in outputs])
        predicted = guessed.predicted if kind in CONFIDENCES else None
        return replace(
            plain, outputs=outputs, output_kind=kind, features=given.features, predicted=predicted
        )
    if model is None:
        outputs = _named(given, guessed.outputs)
        if not outputs:
            say = given.option
            raise InputError(
                "No column holds, by its name and values, the model's "
                "probabilities of the target's classes",
                fix=f"Name them: {say('outputs', 'CLASS=COLUMN')} for each class, or for one of "
                f"two; for logits also {say('output_kind', 'logit')}, for percentages "
                f"{say('output_kind', 'percent')}. Where the target is a quantity, give "
                f"{say('task', 'regression')}.",
                file=table.name,
            )
        kind, by = given.output_kind or guessed.output_kind, guessed.class_by
        predicted = guessed.predicted if kind in CONFIDENCES else None
        return replace(plain, outputs=outputs, output_kind=kind, class_by=by, predicted=predicted)
    for column in model.feature_names or ():
        need(table, column, "The model needs a column that the table does not have")
    return replace(plain, features=model.feature_names or _others(given, table, model, guessed))


def _said(given: NamedFiles, table: TableInfo) -> tuple[tuple[str, str], ...]:
    """The outputs that were named, classes in their natural order."""
    names = [name for name, _ in given.outputs or ()]
    for name, column in given.outputs or ():
        need(table, column, "The table has no such column")
        if names.count(name) > 1:
            raise InputError(
                f"{given.option('outputs')} names two columns for the class {name[:60]!r}",
                fix="Each class has one column.",
            )
    column_of = dict(given.outputs or ())
    return tuple((name, column_of[name]) for name in classes_of(names))


def _named(given: NamedFiles, outputs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    if given.classes is None or len(given.classes) != len(outputs):
        return outputs  # a wrong number of names is reported when the names are set
    columns = (column for _, column in outputs)
    return tuple(zip(given.classes, columns, strict=True))


def _others(
    given: NamedFiles, table: TableInfo, model: ModelInfo, guessed: Roles
) -> tuple[str, ...]:
    """For a model that names no columns: all columns without another role.

    Of more than it takes, those that the app guesses.
    """
    taken = {given.target, given.weight, given.cluster, given.time}
    taken |= {guessed.split, guessed.predicted}
    taken |= {column for _, column in guessed.outputs}
    free = tuple(name for name in table.column_names if name not in taken)
    if len(free) <= model.n_features:
        return free
    return tuple(name for name in free if name in guessed.features)


def _refuse_unread(review: Review, given: NamedFiles) -> None:
    """Refuse columns that may be predictions if only the user can say how to read them.

    Raises
    ------
    InputError
        For the first such question that is not answered.
    """
    say = given.option
    fixes = {
        "labels": f"For the majority give {say('majority')}; for a forecast of the share "
        f"{say('task', 'regression')} and {say('parameters', 'mean=COLUMN')}.",
        "order": f"Name them: {say('outputs', 'CLASS=COLUMN')} for each class.",
        "outputs": "",
        "scale": "",
        "level": f"For an interval of 90%: {say('task', 'regression')} "
        f"{say('family', 'quantiles')} {say('parameters', '0.05=LOWER,0.95=UPPER')} with the names "
        "of the two columns.",
    }
    if review.model is not None or given.outputs or given.parameters:
        return
    for doubt in review.doubts:
        if doubt.about in fixes:
            table, fix = review.tables["calibration"].name, fixes[doubt.about]
            if doubt.about == "scale":
                fix = _scale_fix(doubt, given)
                if review.roles is not None and review.roles.predicted:
                    fix = "If they are, divide them by 100 in the file."
            if doubt.about == "outputs" and doubt.choices:
                kind = say("output_kind", doubt.choices[0].answer)
                words = (say("outputs", "right=COLUMN"), kind, say("event", "right"))
                fix = f"For that give {' '.join(words)}."
            raise InputError(doubt.sentence.removesuffix("."), fix=fix, file=table)


def _scale_fix(doubt: Doubt, given: NamedFiles) -> str:
    """How to say what numbers mean that are no probabilities, and of which class they are."""
    say = given.option
    kinds = [one.answer for one in doubt.choices if one.answer in get_args(OutputKind)]
    if not kinds:
        return ""
    ways = " or ".join(say("output_kind", one) for one in kinds)
    if kinds == ["permille"]:
        named = f"{say('outputs', 'CLASS=COLUMN')} and {ways}"
        return f"If it holds thousandths of a probability, give {named}."
    return f"Give both, {say('outputs', 'CLASS=COLUMN')} and {ways}."


def _refuse_regression_options(given: NamedFiles) -> None:
    """Refuse regression options where the task is a classification.

    Raises
    ------
    InputError
        For the first of them.
    """
    asked = (
        ("family", given.family),
        ("parameters", given.parameters),
        ("true_mean", given.true_mean),
        ("by", given.by),
    )
    for name, value in asked:
        if value:
            raise InputError(
                f"{given.option(name)} is for a regression, and this is a classification",
                fix=f"Give {given.option('task', 'regression')}, or leave it out.",
            )


def _regression_roles(review: Review, given: NamedFiles) -> Roles:
    """The role of each column: as given by the user, otherwise as guessed by the app.

    A weight, cluster or time is used only if the user names it.

    Raises
    ------
    InputError
        For a column that the table does not have, and for what is of classes.
    """
    for name in ("classes", "event", "majority"):
        if getattr(given, name) not in (None, False):
            raise InputError(
                f"{given.option(name)} is for a classification, and this is a regression",
                fix=f"Leave it out, or give {given.option('task', 'classification')}.",
            )
    table = review.tables["calibration"]
    columns = dict(given.parameters or ()).values()
    single = (given.target, given.weight, given.cluster, given.time, given.true_mean)
    for column in filter(None, (*single, *columns, *given.by)):
        need(table, column, "The table has no such column")
    guessed = review.roles or Roles()
    own = set(single)
    free = tuple(pair for pair in guessed.parameters if pair[1] not in own)
    parameters = tuple(given.parameters or free)
    model = review.model
    plain = Roles(
        target=given.target,
        weight=given.weight,
        cluster=given.cluster or None,
        time=given.time,
        task="regression",
        family=given.family or guessed.family,
        true_mean=given.true_mean or (None if guessed.true_mean in own else guessed.true_mean),
    )
    if model is None:
        named = family_of(dict(given.parameters)) if given.parameters else None
        family = given.family or named or guessed.family
        return replace(plain, parameters=parameters, family=family)
    for column in model.feature_names or ():
        need(table, column, "The model needs a column that the table does not have")
    taken = {*own, plain.true_mean, guessed.split}
    others = tuple(name for name in table.column_names if name not in taken)
    return replace(plain, features=model.feature_names or others)


def need(table: TableInfo, column: str, what: str) -> None:
    """Refuse a table without this column, and list the columns it has.

    Raises
    ------
    InputError
        ``what``, with the table and the column; for a column that only some files of a folder
        have, with the first file that lacks it.
    """
    refuse_partial(table, (column,))
    if column not in table.column_names:
        raise InputError(
            what,
            fix=f"Its columns are: {listed(table.column_names, 10)}.",
            file=table.name,
            column=column,
        )


def need_groups(review: Review, columns: Sequence[str]) -> None:
    """Refuse a review of which a table lacks a column of the declared groups.

    Raises
    ------
    InputError
        As :func:`need`.
    """
    for column in columns:
        for table in review.tables.values():
            need(table, column, "The table has no such column")


def event_of(review: Review, given: NamedFiles) -> int | None:
    """The class that is the event, from 0; None without a name.

    Raises
    ------
    InputError
        If the review has no such class.
    """
    if given.event is None:
        return None
    if given.event not in review.classes:
        raise InputError(
            f"{given.option('event')} names no class: {given.event[:60]!r}",
            fix=f"The classes are: {listed(review.classes, 10)}.",
        )
    return review.classes.index(given.event)
