"""Finds the adapter for a model file, first by its content, then by its suffix.

Each module adds its format to the list at its end (`Format.offer`), and every module of
`kdcal_core.models` is imported when the list is first used. So a new format is one new file: how it
is recognised, how it is read, and how models of its library are taken from memory and saved.
"""

from __future__ import annotations

import hashlib
import shlex
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, overload

from kdcal_core.data import Family, Task
from kdcal_core.errors import InputError, missing_library
from kdcal_core.models.output_meaning import Outputs, check_task
from kdcal_core.models.protocol import (
    Ensemble,
    HasCodes,
    HasDropout,
    HasEmbedding,
    HasHead,
    HasLayers,
    HasLogits,
    HasMembers,
    Model,
    ModelInfo,
    NamesActivations,
    Regressor,
    remember_file,
)
from kdcal_core.models.upload_checks import check_class_count, check_model_size
from kdcal_core.offers import import_modules, offer
from kdcal_core.progress import Progress
from kdcal_core.text import listed

_HEAD_BYTES = 512
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib", ".dill", ".sav")
_TORCH_SUFFIXES = (".pt", ".pth", ".ckpt")
# How text and binary pickles and compressed joblib files begin: protocol 2 and later, the
# first opcodes of protocols 0 and 1, then zlib, gzip, bzip2, xz and lz4.
_PICKLE_STARTS = (
    *(bytes([0x80, protocol]) for protocol in range(2, 6)),
    *(b"ccopy_reg\n", b"ccopyreg\n", b"c__builtin__\n", b"cbuiltins\n", b"(dp", b"(lp", b"(ip"),
    *(b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda"),
    *(b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x04\x22\x4d\x18"),
)

# in the order shown
Origin = Literal["any library", "scikit-learn", "boosted trees", "network"]


@dataclass(frozen=True)
class Content:
    """The parts of a file that show its format.

    Attributes
    ----------
    head : bytes
        The first bytes of the file, 512 at most.
    members : tuple of str
        Names of the files in a zip archive; empty for any other file.
    """

    head: bytes
    members: tuple[str, ...] = ()

    def has_member(self, last: str) -> bool:
        """Whether the archive holds a file named ``last``, in any folder."""
        return any(f"/{member}".endswith(f"/{last}") for member in self.members)


@dataclass(frozen=True)
class Library:
    """A library whose models are taken from memory, and saved by ``kdcal convert``.

    Attributes
    ----------
    package : str
        Name under which its classes are imported.
    title : str
        Its name on screens.
    called : str
        The name with its article, for "The file holds an XGBoost model".
    wrap : callable
        ``wrap(model, *, classes, feature_names, task, said)`` wraps a fitted model.
    save : callable
        ``save(model, path, n_features)`` writes a fitted model in the library's format. It returns
        a note for the user that begins with a space, or "".
    """

    package: str
    title: str
    called: str
    wrap: Callable[..., Model | Regressor]
    save: Callable[[Any, Path, int], str]


@dataclass(frozen=True)
class Format:
    """A model format's entry in the list.

    Attributes
    ----------
    key : str
        Stable identifier.
    title : str
        Its name on screens.
    suffixes : tuple of str
        Suffixes of its files, in lower case and with the dot.
    is_content : callable
        Whether a file's :class:`Content` is of the format. At most one format may say yes.
    load : callable
        ``load(path, *, name, task)`` reads a file whose content is of the format. It checks
        everything that reaches compiled code, and imports its library only when called.
    family : str
        Its place in the list.
    library : Library, optional
        The library, where its models can also be taken from memory.
    reports_steps : bool
        Whether ``load`` also takes ``progress``, for files that take seconds to read.
    """

    key: str
    title: str
    suffixes: tuple[str, ...]
    is_content: Callable[[Content], bool]
    load: Callable[..., Model | Regressor]
    family: Origin
    library: Library | None = None
    reports_steps: bool = False

    def offer(self) -> None:
        """Add the format to the list.

        Raises
        ------
        ValueError
            If another format has its key.
        """
        offer(self, _OFFERED, get_args(Origin))


_OFFERED: dict[str, Format] = {}


def model_formats() -> dict[str, Format]:
    """Every model format by key, in the order shown.

    The first call imports their modules, which a reader of tables does not need.
    """
    _import_formats()
    return _OFFERED


@cache
def _import_formats() -> None:
    import_modules([str(Path(__file__).parent)], __package__)
    # a module may have been imported before: the order must not depend on that
    every = sorted(_OFFERED.values(), key=lambda one: one.key)
    _OFFERED.clear()
    for one in every:
        one.offer()


def model_suffixes() -> tuple[str, ...]:
    """Suffixes of the files that :func:`load_model` reads."""
    every = (suffix for one in model_formats().values() for suffix in one.suffixes)
    return tuple(dict.fromkeys(every))


@overload
def load_model(
    path: str | Path,
    *,
    name: str | None = None,
    task: Literal["classification"],
    progress: Progress | None = None,
) -> Model: ...
@overload
def load_model(
    path: str | Path,
    *,
    name: str | None = None,
    task: Literal["regression"],
    progress: Progress | None = None,
) -> Regressor: ...
@overload
def load_model(
    path: str | Path,
    *,
    name: str | None = None,
    task: Task | None = None,
    progress: Progress | None = None,
) -> Model | Regressor: ...
def load_model(
    path: str | Path,
    *,
    name: str | None = None,
    task: Task | None = None,
    progress: Progress | None = None,
) -> Model | Regressor:
    """Load a model file as a model.

    The format follows from the content and must agree with the suffix, so a file that pretends to
    be of another format is refused before a library opens it. The adapters check the content before
    it reaches compiled code, but hostile files should be opened in a worker process with limits
    (``kdcal_core.jobs``).

    Parameters
    ----------
    path : str or Path
        The model file.
    name : str, optional
        Its original name, where it was uploaded under another one; the suffix is taken from it.
    task : {"classification", "regression"}, optional
        What the model must be. By default the file decides: the class of a scikit-learn model, the
        objective of boosted trees, an entry ``task`` or ``family`` of an ONNX or PyTorch file. A
        network without an entry is read as ``task`` says, by default as a classifier.
    progress : callable, optional
        Called with the share done and what is being done; may raise to cancel.

    Returns
    -------
    Model or Regressor

    Raises
    ------
    InputError
        The file is a pickle, of no known format, of a format other than that of its suffix, broken,
        unsafe, larger than a limit of `kdcal_core.quotas`, or of the other task.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import skops.io
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier(max_leaf_nodes=3).fit(*load_iris(return_X_y=True))
    >>> with TemporaryDirectory() as folder:
    ...     skops.io.dump(model, Path(folder) / "tree.skops")
    ...     load_model(Path(folder) / "tree.skops").kind
    'Decision tree, 3 leaves'
    """
    path = Path(path)
    name = path.name if name is None else name
    content = _look_into(path, name)
    refuse_pickle(name, content.head)
    if _is_torch_pickle(content):
        raise _pickle_error(name, torch=True)
    format_ = _recognised(content, name)
    given: dict[str, Any] = {"progress": progress} if format_.reports_steps else {}
    try:
        check_model_size(path.stat().st_size, "The model")
        model = format_.load(path, name=name, task=task, **given)
        if not isinstance(model, Regressor):
            check_class_count(len(model.classes))
        remember_file(model, path)
        return model
    except InputError as error:
        raise error.at(file=name) from error
    except ModuleNotFoundError as error:
        raise missing_library(error).at(file=name) from error


def refuse_pickle(name: str, head: bytes) -> None:
    """Refuse a pickle, recognised by its first bytes or its name.

    Parameters
    ----------
    name : str
        Name of the file, with its suffix.
    head : bytes
        Its first bytes; eleven are enough.

    Raises
    ------
    InputError
        It is a pickle. The error says why that matters and how to convert it.

    Examples
    --------
    >>> refuse_pickle("model.onnx", b"\\x08\\x0a")
    >>> try:
    ...     refuse_pickle("my forest.pkl", b"\\x80\\x05")
    ... except ValueError as error:
    ...     print(str(error)[-55:])
     kdcal convert 'my forest.pkl' --out 'my forest.skops'.
    """
    named = Path(name).suffix.lower() in (*_PICKLE_SUFFIXES, *_TORCH_SUFFIXES)
    if named or head.startswith(_PICKLE_STARTS):
        raise _pickle_error(name)


@overload
def wrap_model(
    model: Any,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    task: Literal["classification"],
) -> Model: ...
@overload
def wrap_model(
    model: Any,
    *,
    feature_names: Sequence[str] | None = None,
    task: Literal["regression"],
    family: Family | None = None,
    outputs: Sequence[str] | None = None,
) -> Regressor: ...
@overload
def wrap_model(
    model: Any,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    task: Task | None = None,
    family: Family | None = None,
    outputs: Sequence[str] | None = None,
) -> Model | Regressor: ...
def wrap_model(
    model: Any,
    *,
    classes: Sequence[object] | None = None,
    feature_names: Sequence[str] | None = None,
    task: Task | None = None,
    family: Family | None = None,
    outputs: Sequence[str] | None = None,
) -> Model | Regressor:
    """Wrap a fitted model in memory.

    Parameters
    ----------
    model : object
        A fitted scikit-learn classifier or regressor, an ``xgboost.Booster``, ``XGBClassifier`` or
        ``XGBRegressor``, a ``lightgbm.Booster``, ``LGBMClassifier`` or ``LGBMRegressor``, a
        ``torch.nn.Module``, a list of regression models of one output (an ensemble, whose members'
        predictions are samples), or an already wrapped model.
    classes : sequence, optional
        Class names in the order of the probability columns, where the model does not know them.
    feature_names : sequence of str, optional
        Names of the input columns in order, where the model does not know them.
    task : {"classification", "regression"}, optional
        What the model must be; by default the model decides. A ``torch.nn.Module`` is a classifier
        unless ``task``, ``family`` or ``outputs`` is given.
    family : Family, optional
        Kind of predictive distribution of a regression model that does not state it: "normal" for
        outputs mean and std, "gamma" for mean and shape, "dropout" for a module that is sampled
        with its dropout active.
    outputs : sequence of str, optional
        Names of a regression model's output columns, in order.

    Returns
    -------
    Model or Regressor

    Raises
    ------
    InputError
        The model is of no known kind, not fitted or of the other task, or the names do not fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = wrap_model(DecisionTreeClassifier(max_leaf_nodes=3, random_state=0).fit(X, y))
    >>> model.kind, model.classes, model.codes(X[:1]).leaves.tolist()
    ('Decision tree, 3 leaves', ('0', '1', '2'), [[1]])
    >>> from sklearn.linear_model import LinearRegression
    >>> line = wrap_model(LinearRegression().fit(X[:, :1], X[:, 1]))
    >>> line.outputs, line.family, line.predict(X[:2, :1]).shape
    (('mean',), 'point', (2, 1))
    """
    if isinstance(model, Model | Regressor):
        check_task("regression" if isinstance(model, Regressor) else "classification", task)
        return model
    said = Outputs(family, None if outputs is None else tuple(outputs))
    if task is None and said != Outputs():
        task = "regression"
    if isinstance(model, list | tuple):
        check_task("regression", task)
        return Ensemble(
            [wrap_model(m, feature_names=feature_names, task="regression") for m in model]
        )
    library = library_of(model)
    if library is not None:
        return library.wrap(
            model, classes=classes, feature_names=feature_names, task=task, said=said
        )
    raise InputError(
        f"An object of the type {type(model).__name__} is not a model that kdcal knows",
        fix=f"Pass a fitted model of {listed(library_titles(), last='or')}, or write the model's "
        "predictions into a table.",
    )


def library_of(model: Any) -> Library | None:
    """The library of a model in memory; None for an object of any other kind.

    The names of the base classes of the model's class decide, so no library is imported.
    """
    homes = {base.__module__.split(".")[0] for base in type(model).__mro__}
    # scikit-learn last: estimators of other libraries have its base classes too
    for format_ in reversed(model_formats().values()):
        if format_.library is not None and format_.library.package in homes:
            return format_.library
    return None


def library_titles() -> list[str]:
    """Titles of the libraries whose models can be taken from memory."""
    every = (one.library.title for one in model_formats().values() if one.library)
    return list(dict.fromkeys(every))


def model_info(model: Model | Regressor, path: str | Path, name: str) -> ModelInfo:
    """A description of a loaded model, for processes that do not have it in memory.

    Parameters
    ----------
    model : Model or Regressor
        As returned by :func:`load_model`.
    path : str or Path
        The file that it was loaded from. Its SHA-256 identifies the model.
    name : str
        Name of the file on screens.

    Returns
    -------
    ModelInfo
    """
    with Path(path).open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    regressor = model if isinstance(model, Regressor) else None
    classes: tuple[str, ...] = ()
    named = False
    if not isinstance(model, Regressor):
        classes, named = model.classes, model.named_classes
    return ModelInfo(
        kind=model.kind,
        classes=classes,
        named_classes=named,
        n_features=model.n_features,
        feature_names=model.feature_names,
        has_codes=isinstance(model, HasCodes),
        has_embedding=isinstance(model, HasEmbedding),
        digest=digest,
        name=name,
        size_bytes=Path(path).stat().st_size,
        has_logits=isinstance(model, HasLogits),
        has_head=isinstance(model, HasHead),
        other_activations=(model.other_activations if isinstance(model, NamesActivations) else ()),
        task="classification" if regressor is None else "regression",
        outputs=() if regressor is None else regressor.outputs,
        family=None if regressor is None else regressor.family,
        layers=model.layers if isinstance(model, HasLayers) else (),
        has_dropout=isinstance(model, HasDropout),
        has_members=isinstance(model, HasMembers),
    )


def _look_into(path: Path, name: str) -> Content:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise InputError(
            f"The model file cannot be opened: {error.strerror}", fix="Check its path.", file=name
        ) from error
    if not head:
        raise InputError("The model file is empty", fix="Save the model again.", file=name)
    if not head.startswith(b"PK\x03\x04"):
        return Content(head)
    try:
        with zipfile.ZipFile(path) as archive:
            return Content(head, tuple(archive.namelist()))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise InputError(
            "The model file is a broken zip archive",
            fix="It may have been cut off on its way; copy or save it again.",
            file=name,
        ) from error


def _is_torch_pickle(content: Content) -> bool:
    return content.has_member("data.pkl") and not model_formats()["pt2"].is_content(content)


def _recognised(content: Content, name: str) -> Format:
    suffix = Path(name).suffix.lower()
    by_suffix = [one for one in model_formats().values() if suffix in one.suffixes]
    by_content = [one for one in model_formats().values() if one.is_content(content)]
    titles = " and ".join(one.title for one in by_content)
    if not by_suffix:
        known = f"; its content looks like: {titles}" if titles else ""
        raise InputError(
            f"The suffix {suffix!r} names no model format that kdcal reads{known}",
            fix=f"It reads {', '.join(model_suffixes())}.",
            file=name,
        )
    # a file that could be read in two ways is also refused
    if len(by_content) != 1 or by_content[0] not in by_suffix:
        found = f"is of the kind: {titles}" if titles else "is something else"
        raise InputError(
            f"The file's name says {by_suffix[0].title}, but its content {found}",
            fix="Save the model again in the format that the name says, or correct the suffix.",
            file=name,
        )
    return by_content[0]


def _pickle_error(name: str, *, torch: bool = False) -> InputError:
    path = Path(name)
    torch = torch or path.suffix.lower() in _TORCH_SUFFIXES
    out = path.with_suffix(".pt2" if torch else ".skops")
    if out.name == path.name:
        out = path.with_stem(f"{path.stem}_converted")
    options = "--example-width N " if torch else ""
    where = " (N is the number of input columns)" if torch else ""
    return InputError(
        "The file is a pickle, and opening one runs whatever code its author put into it",
        fix=f"Where you trust the file, convert it on your own machine{where}: "
        f"kdcal convert {shlex.quote(str(path))} {options}--out {shlex.quote(str(out))}.",
        file=name,
    )
