"""Which adapter reads which file: found by content first, by the file's suffix second.

A new model format is one new module with ``load(path, *, name, task)`` and one line in
``FORMATS``.
"""

from __future__ import annotations

import hashlib
import shlex
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, cast, overload

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
# The mark that follows an opening brace in UBJSON: the type of the first name's length.
_UBJ_LENGTHS = (b"i", b"U", b"I", b"l", b"L", b"$", b"#")
_SMALL_NUMBERS = tuple(bytes([number]) for number in range(1, 32))


@dataclass(frozen=True)
class _Content:
    """What is looked at to recognise a format: the first bytes, and a zip archive's file names."""

    head: bytes
    members: tuple[str, ...] = ()

    def has_member(self, last: str) -> bool:
        return any(f"/{member}".endswith(f"/{last}") for member in self.members)


@dataclass(frozen=True)
class Format:
    """One model format: how people call it, its suffixes, how to recognise it, who reads it."""

    title: str
    suffixes: tuple[str, ...]
    is_content: Callable[[_Content], bool]
    module: str


def _is_pt2(content: _Content) -> bool:
    return content.has_member("archive_format") and content.has_member("models/model.json")


def _is_skops(content: _Content) -> bool:
    return "schema.json" in content.members


def _is_json(content: _Content) -> bool:
    text = content.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return text[:1] == b"{" and text[1:].lstrip()[:1] in (b'"', b"}", b"")


def _is_ubj(content: _Content) -> bool:
    return content.head[:1] == b"{" and content.head[1:2] in _UBJ_LENGTHS


def _is_lightgbm(content: _Content) -> bool:
    return content.head.replace(b"\r\n", b"\n").startswith(b"tree\nversion=")


def _is_onnx(content: _Content) -> bool:
    # A serialised ModelProto begins with its field 1, the IR version: a small number.
    return content.head[:1] == b"\x08" and content.head[1:2] in _SMALL_NUMBERS


FORMATS: tuple[Format, ...] = (
    Format("PyTorch exported program", (".pt2",), _is_pt2, "torch_model"),
    Format("scikit-learn skops file", (".skops",), _is_skops, "skops_file"),
    Format("XGBoost JSON model", (".json",), _is_json, "xgboost_model"),
    Format("XGBoost UBJSON model", (".ubj",), _is_ubj, "xgboost_model"),
    Format("LightGBM text model", (".txt",), _is_lightgbm, "lightgbm_model"),
    Format("ONNX model", (".onnx",), _is_onnx, "onnx_model"),
)

#: Suffixes of the files that :func:`load_model` reads, for the uploader.
MODEL_SUFFIXES: tuple[str, ...] = (".onnx", ".skops", ".json", ".ubj", ".txt", ".pt2")


@overload
def load_model(
    path: str | Path, *, name: str | None = None, task: Literal["classification"]
) -> Model: ...
@overload
def load_model(
    path: str | Path, *, name: str | None = None, task: Literal["regression"]
) -> Regressor: ...
@overload
def load_model(
    path: str | Path, *, name: str | None = None, task: Task | None = None
) -> Model | Regressor: ...
def load_model(
    path: str | Path, *, name: str | None = None, task: Task | None = None
) -> Model | Regressor:
    """Load a model file as a model.

    The format follows from the content and must agree with the suffix, so that a file that
    pretends to be another is refused before any library opens it. The adapters check the
    content before it reaches compiled code, yet a hostile file belongs into a worker process
    with limits (``kdcal_core.jobs``).

    Parameters
    ----------
    path : str or Path
        The model file.
    name : str, optional
        Its name for people, where it was uploaded under another one; its suffix counts.
    task : {"classification", "regression"}, optional
        What the model must be. By default the file's own words decide: the class of a
        scikit-learn model, the objective of boosted trees, an entry ``task`` or ``family`` of an
        ONNX or PyTorch file. A network that says nothing follows ``task``, and without one is
        read as a classifier.

    Returns
    -------
    Model or Regressor

    Raises
    ------
    InputError
        The file is a pickle, of no known format, of another format than its suffix says,
        broken, unsafe, or of the other task.

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
    try:
        load = import_module(f"kdcal_core.models.{format_.module}").load
        model = cast(Model | Regressor, load(path, name=name, task=task))
        remember_file(model, path)
        return model
    except InputError as error:
        raise error.at(file=name) from error
    except ModuleNotFoundError as error:
        raise missing_library(error).at(file=name) from error


def refuse_pickle(name: str, head: bytes) -> None:
    """Refuse a pickle, by its first bytes or by its name.

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
    """Take a fitted model in memory as a model.

    Parameters
    ----------
    model : object
        A fitted scikit-learn classifier or regressor, an ``xgboost.Booster``, ``XGBClassifier``
        or ``XGBRegressor``, a ``lightgbm.Booster``, ``LGBMClassifier`` or ``LGBMRegressor``, a
        ``torch.nn.Module``, a list of regression models of one output (an ensemble, whose
        members' predictions are samples), or a model already.
    classes : sequence, optional
        Class names in the order of the probability columns, where the model does not know them.
    feature_names : sequence of str, optional
        Names of the input columns in order, where the model does not know them.
    task : {"classification", "regression"}, optional
        What the model must be; known from the model where left out. A ``torch.nn.Module`` is a
        classifier unless ``task``, ``family`` or ``outputs`` is given.
    family : Family, optional
        Kind of predictive distribution of a regression model, where the model does not say:
        "normal" for outputs mean and std, "gamma" for mean and shape, "dropout" for a module
        that is sampled with its dropout active.
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
    # The libraries are looked up by name in the model's own bases: none is imported for a
    # model of another.
    home = {base.__module__.split(".")[0] for base in type(model).__mro__}
    for package, module in _IN_MEMORY.items():
        if package in home:
            wrap = getattr(import_module(f"kdcal_core.models.{module[0]}"), module[1])
            return cast(
                Model | Regressor,
                wrap(model, classes=classes, feature_names=feature_names, task=task, said=said),
            )
    raise InputError(
        f"An object of the type {type(model).__name__} is no model that kdcal knows",
        fix="Pass a fitted scikit-learn, XGBoost or LightGBM model or a torch.nn.Module, or "
        "write the model's predictions into a table.",
    )


# XGBClassifier and LGBMClassifier have scikit-learn's bases too, so they come first.
_IN_MEMORY: dict[str, tuple[str, str]] = {
    "xgboost": ("xgboost_model", "wrap"),
    "lightgbm": ("lightgbm_model", "wrap"),
    "torch": ("torch_model", "wrap"),
    "sklearn": ("sklearn_model", "wrap"),
}


def model_info(model: Model | Regressor, path: str | Path, name: str) -> ModelInfo:
    """Describe a loaded model for those who do not hold it.

    Parameters
    ----------
    model : Model or Regressor
        What :func:`load_model` returned.
    path : str or Path
        The file that it was loaded from; its SHA-256 becomes the identity of the model.
    name : str
        Name of the file for people.

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


def _look_into(path: Path, name: str) -> _Content:
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
        return _Content(head)
    try:
        with zipfile.ZipFile(path) as archive:
            return _Content(head, tuple(archive.namelist()))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError) as error:
        raise InputError(
            "The model file is a broken zip archive",
            fix="It may have been cut off on its way; copy or save it again.",
            file=name,
        ) from error


def _is_torch_pickle(content: _Content) -> bool:
    return content.has_member("data.pkl") and not _is_pt2(content)


def _recognised(content: _Content, name: str) -> Format:
    suffix = Path(name).suffix.lower()
    by_suffix = next((f for f in FORMATS if suffix in f.suffixes), None)
    by_content = next((f for f in FORMATS if f.is_content(content)), None)
    if by_suffix is None:
        known = f"; its content looks like: {by_content.title}" if by_content else ""
        raise InputError(
            f"The suffix {suffix!r} names no model format that kdcal reads{known}",
            fix=f"It reads {', '.join(MODEL_SUFFIXES)}.",
            file=name,
        )
    if by_content is not by_suffix:
        found = f"is of the kind: {by_content.title}" if by_content else "is something else"
        raise InputError(
            f"The file is named like a {by_suffix.title}, but its content {found}",
            fix="Save the model again in the format that the name says, or correct the suffix.",
            file=name,
        )
    return by_suffix


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
