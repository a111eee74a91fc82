"""scikit-learn models from ``.skops`` files, checked before scikit-learn sees them.

A ``.skops`` file is a zip archive of numpy arrays and a ``schema.json`` that describes how to build
the objects. skops refuses types that are not trusted, but follows the rest of the file unchecked.
So the schema is read here first and rewritten from parts known to be harmless:

* every type must be in a short list for its kind of entry, in which nothing is callable;
* object ids are dropped, so that one entry cannot stand for another;
* random states and training optimisers are emptied, because a review does not need them;
* only checked arrays are passed on, without Python objects and of the size they claim;
* the nodes of trees are checked before they become a tree (see ``upload_checks``).

Then the sizes of the fitted model's parts are compared (see ``fitted_parts``).
"""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.data import Task
from kdcal_core.errors import InputError, warn
from kdcal_core.models.fitted_parts import check_fitted
from kdcal_core.models.formats import Content, Format, Library
from kdcal_core.models.protocol import Model, Regressor
from kdcal_core.models.sklearn_model import wrap
from kdcal_core.models.upload_checks import (
    check_children,
    check_model_size,
    check_range,
    check_tree_nodes,
    unsafe,
)
from kdcal_core.progress import Progress, part_of
from kdcal_core.store.claims import read_json
from kdcal_core.text import listed

_MAX_MEMBERS = 200_000
_MAX_SCHEMA_BYTES = 2**28
_MAX_SCHEMA_VALUES = 5_000_000  # a tree has about 150
# A larger archive may unpack to at most this many times its size.
_MAX_RATIO, _RATIO_FROM_BYTES = 200, 2**24
_MAX_DEPTH = 60

_NUMBERS = frozenset(
    f"numpy.{name}"
    for name in (
        *("bool", "bool_", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64", "float32", "float64", "str_"),
    )
)
_ESTIMATORS = frozenset(
    f"sklearn.{name}"
    for name in (
        "compose._column_transformer.ColumnTransformer",
        "compose._column_transformer.make_column_selector",
        "compose._target.TransformedTargetRegressor",
        "dummy.DummyClassifier",
        "dummy.DummyRegressor",
        "ensemble._forest.ExtraTreesClassifier",
        "ensemble._forest.ExtraTreesRegressor",
        "ensemble._forest.RandomForestClassifier",
        "ensemble._forest.RandomForestRegressor",
        "ensemble._gb.GradientBoostingClassifier",
        "ensemble._gb.GradientBoostingRegressor",
        "ensemble._hist_gradient_boosting.binning._BinMapper",
        "ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingClassifier",
        "ensemble._hist_gradient_boosting.gradient_boosting.HistGradientBoostingRegressor",
        "ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "gaussian_process._gpr.GaussianProcessRegressor",
        *(
            f"gaussian_process.kernels.{kernel}"
            for kernel in (
                *("ConstantKernel", "DotProduct", "ExpSineSquared", "Exponentiation"),
                *("Hyperparameter", "Matern", "Product", "RBF", "RationalQuadratic", "Sum"),
                "WhiteKernel",
            )
        ),
        "impute._base.SimpleImputer",
        "linear_model._base.LinearRegression",
        "linear_model._bayes.ARDRegression",
        "linear_model._bayes.BayesianRidge",
        "linear_model._coordinate_descent.ElasticNet",
        "linear_model._coordinate_descent.ElasticNetCV",
        "linear_model._coordinate_descent.Lasso",
        "linear_model._coordinate_descent.LassoCV",
        "linear_model._glm.glm.GammaRegressor",
        "linear_model._glm.glm.PoissonRegressor",
        "linear_model._glm.glm.TweedieRegressor",
        "linear_model._huber.HuberRegressor",
        "linear_model._logistic.LogisticRegression",
        "linear_model._quantile.QuantileRegressor",
        "linear_model._ridge.Ridge",
        "linear_model._ridge.RidgeCV",
        "linear_model._stochastic_gradient.SGDRegressor",
        "neural_network._multilayer_perceptron.MLPClassifier",
        "neural_network._multilayer_perceptron.MLPRegressor",
        "pipeline.Pipeline",
        "preprocessing._data.MaxAbsScaler",
        "preprocessing._data.MinMaxScaler",
        "preprocessing._data.PowerTransformer",
        "preprocessing._data.QuantileTransformer",
        "preprocessing._data.RobustScaler",
        "preprocessing._data.StandardScaler",
        "preprocessing._encoders.OneHotEncoder",
        "preprocessing._encoders.OrdinalEncoder",
        # ColumnTransformer stores "passthrough" as one; a function inside would be an unknown type
        "preprocessing._function_transformer.FunctionTransformer",
        "preprocessing._label.LabelBinarizer",
        "preprocessing._label.LabelEncoder",
        "tree._classes.DecisionTreeClassifier",
        "tree._classes.DecisionTreeRegressor",
        "tree._classes.ExtraTreeClassifier",
        "tree._classes.ExtraTreeRegressor",
        "_loss.link.Interval",
        "_loss.link.IdentityLink",
        "_loss.link.LogLink",
        "_loss.link.LogitLink",
        "_loss.link.HalfLogitLink",
        "_loss.link.MultinomialLogit",
        "_loss.loss.AbsoluteError",
        "_loss.loss.ExponentialLoss",
        "_loss.loss.HalfGammaLoss",
        "_loss.loss.HalfPoissonLoss",
        "_loss.loss.HalfSquaredError",
        "_loss.loss.HalfTweedieLoss",
        "_loss.loss.HalfTweedieLossIdentity",
        "_loss.loss.HuberLoss",
        "_loss.loss.PinballLoss",
        "_loss.loss.HalfBinomialLoss",
        "_loss.loss.HalfMultinomialLoss",
    )
)
_EMPTIED = frozenset(
    (
        "numpy.random.mtrand.RandomState",
        "numpy.random._generator.Generator",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    )
)
# Losses, each with its parameters.
_LOSSES = {
    f"sklearn._loss._loss.Cy{name}": n_numbers
    for name, n_numbers in (
        *(("ExponentialLoss", 0), ("HalfBinomialLoss", 0), ("HalfMultinomialLoss", 0)),
        *(("HalfSquaredError", 0), ("AbsoluteError", 0), ("HalfPoissonLoss", 0)),
        *(("HalfGammaLoss", 0), ("PinballLoss", 1), ("HuberLoss", 1), ("HalfTweedieLoss", 1)),
        ("HalfTweedieLossIdentity", 1),
    )
}
_TREE = "sklearn.tree._tree.Tree"
_BUILTINS = frozenset(("builtins.str", "builtins.int", "builtins.float", "builtins.bool"))
_TRUSTED_BY_SKOPS = _BUILTINS | {
    *("builtins.list", "builtins.tuple", "builtins.dict", "numpy.ndarray"),
    *("numpy.int64", "numpy.float64", "numpy.float32", "numpy.int32"),
}
#: The types that each kind of entry may build.
_TYPES: dict[str, frozenset[str]] = {
    "JsonNode": frozenset(("builtins.str",)),
    "ListNode": frozenset(("builtins.list",)),
    "TupleNode": frozenset(("builtins.tuple",)),
    "SetNode": frozenset(("builtins.set",)),
    "DictNode": frozenset(("builtins.dict",)),
    "SliceNode": frozenset(("builtins.slice",)),
    "TypeNode": _NUMBERS | _BUILTINS | {"builtins.object", "numpy.number", "numpy.object_"},
    "DTypeNode": frozenset(("numpy.dtype",)),
    "NdArrayNode": _NUMBERS | {"numpy.ndarray"},
    "ObjectNode": _ESTIMATORS,
    "LossNode": frozenset(_LOSSES),
    "TreeNode": frozenset((_TREE,)),
}
_NOTHING = {
    "__class__": "str",
    "__module__": "builtins",
    "__loader__": "JsonNode",
    "content": "null",
    "is_json": True,
}


def load(
    path: Path, *, name: str, task: Task | None = None, progress: Progress | None = None
) -> Model | Regressor:
    """Load a ``.skops`` file.

    Parameters
    ----------
    path : Path
        The file.
    name : str
        Its name, for messages.
    task : {"classification", "regression"}, optional
        What the model must be.
    progress : callable, optional
        Called with the share done and what is being done; may raise to cancel.

    Returns
    -------
    Model or Regressor

    Raises
    ------
    InputError
        The archive is broken or too large, or the model is of the other task, has types that are
        not known to be harmless, or has trees whose indices or sizes do not fit.
    """
    report = part_of(progress, 0.0, 1.0)
    report(0.0, "Reading the file")
    members = _read_archive(path)
    report(0.3, "Checking the file's parts")
    schema, check = _checked(members, part_of(progress, 0.3, 0.6))
    report(0.6, "Building the model")
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = _built(schema, check)
    except Exception as error:
        raise InputError(
            "scikit-learn cannot build the model: " + _first_line(error),
            fix="It may come from another version of scikit-learn; save it again with this one.",
            file=name,
        ) from error
    check_fitted(model)
    versions = {str(w.message) for w in caught if "version" in type(w.message).__name__.lower()}
    if versions:
        warn(
            f"The model was saved with another version of scikit-learn: {min(versions)}",
            stacklevel=2,
        )
    return wrap(model, task=task)


def _read_archive(path: Path) -> dict[str, bytes]:
    """All members of the archive, after a check of their claimed sizes."""
    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            _check_sizes(infos, path.stat().st_size)
            return {info.filename: archive.read(info) for info in infos}
    except (zipfile.BadZipFile, OSError, ValueError, RuntimeError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"The archive is broken: {_first_line(error)}",
            fix="It may have been cut off on its way; copy or save it again.",
        ) from error


def _check_sizes(infos: list[zipfile.ZipInfo], packed: int) -> None:
    total = sum(info.file_size for info in infos)
    too_dense = total > _RATIO_FROM_BYTES and total > _MAX_RATIO * packed
    if len(infos) > _MAX_MEMBERS or too_dense:
        raise InputError(
            f"The archive of {packed:,} bytes claims {len(infos):,} members of {total:,} bytes",
            fix=f"kdcal opens up to {_MAX_MEMBERS:,} members and {_MAX_RATIO} times the archive's "
            "size.",
        )
    check_model_size(total, "The model's archive")
    if len({info.filename for info in infos}) < len(infos):
        raise unsafe("The archive holds two members with the same name")


def _checked(members: dict[str, bytes], progress: Progress) -> tuple[dict[str, Any], _SchemaCheck]:
    """The schema rewritten from checked entries, and the check with their types and arrays."""
    from kdcal_core.skops_library import skops

    PROTOCOL = skops.io._protocol.PROTOCOL
    text = members.get("schema.json", b"")
    if len(text) > _MAX_SCHEMA_BYTES:
        raise InputError(f"The model's schema holds {len(text):,} bytes, too many to read")
    try:
        schema = read_json(text, most_values=_MAX_SCHEMA_VALUES)
        protocol = schema["protocol"]
    except InputError:
        raise
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise unsafe(f"The model's schema cannot be read: {_first_line(error)}") from error
    if type(protocol) is not int or protocol != PROTOCOL:
        raise InputError(
            f"The file follows version {str(protocol)[:20]} of the skops format, "
            f"kdcal reads version {PROTOCOL}",
            fix=f"Save the model again with skops {skops.__version__}.",
        )
    check = _SchemaCheck(members, progress)
    try:
        root = check.node(schema)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise unsafe(f"The model's schema is broken: {_first_line(error)}") from error
    if check.unknown:
        raise InputError(
            f"The model holds types that kdcal does not open: {listed(sorted(check.unknown))}",
            fix="It opens trees, forests, gradient boosting, linear models, Gaussian processes and "
            "MLPs of scikit-learn with its usual scalers and encoders. Save other models as "
            "ONNX, or write their predictions into a table.",
        )
    return {**root, "protocol": PROTOCOL, "_skops_version": skops.__version__}, check


def _built(schema: dict[str, Any], check: _SchemaCheck) -> Any:
    """The model that the checked schema describes, as `skops.io.loads` builds it.

    skops would read each array again from an archive, and parse its header. It is given the checked
    arrays instead, which halves the time of a large forest.
    """
    from skops.io._audit import Node, audit_tree, get_tree
    from skops.io._numpy import NdArrayNode
    from skops.io._utils import LoadContext

    # skops copies this list at every node
    trusted = sorted(check.types - _TRUSTED_BY_SKOPS)
    tree = get_tree(schema, LoadContext(src=_Names(), protocol=schema["protocol"]), trusted)
    audit_tree(tree, trusted)
    waiting: list[Any] = [tree]
    while waiting:
        match waiting.pop():
            case dict() as several:
                waiting += several.values()
            case list() | tuple() as several:
                waiting += several
            case NdArrayNode(type="numpy") as node:
                name = node.buffer.getvalue().decode()
                if (node.module_name, node.class_name) == ("numpy", "ndarray"):
                    own = check.arrays[name]
                    node._constructed = own if name in check.of_trees else own.copy()
                else:
                    node.buffer = io.BytesIO(check.content(name))
            case Node(children=inner):
                waiting.append(inner)
    return tree.construct()


class _Names:
    """Stands for an archive: a member's content is its name."""

    def read(self, name: str) -> bytes:
        return name.encode()


class _SchemaCheck:
    """Walks a schema, keeps what is harmless, and records the rest."""

    def __init__(self, members: dict[str, bytes], progress: Progress) -> None:
        self._members, self._progress = members, progress
        self._n_trees = self._n_nodes = 0
        self._n_arrays = max(1, len(members) - 1)
        self._readers = {
            "JsonNode": self._scalar,
            "ListNode": self._sequence,
            "TupleNode": self._sequence,
            "SetNode": self._sequence,
            "DictNode": self._mapping,
            "SliceNode": self._slice,
            "TypeNode": self._type,
            "DTypeNode": self._dtype,
            "NdArrayNode": self._ndarray,
            "ObjectNode": self._object,
            "LossNode": self._loss,
            "TreeNode": self._tree,
        }
        self.unknown: set[str] = set()
        self.types: set[str] = set()
        self.arrays: dict[str, NDArray[Any]] = {}
        # those that a tree copies; others may be written to
        self.of_trees: set[str] = set()

    def node(self, state: dict[str, Any], depth: int = 0) -> dict[str, Any]:
        """One entry of the schema, reduced to what is needed to build it."""
        if depth > _MAX_DEPTH:
            raise unsafe("The model's schema is nested too deeply")
        loader, module, class_ = state["__loader__"], state["__module__"], state["__class__"]
        full_name = f"{module}.{class_}"
        if full_name in _EMPTIED:
            return _NOTHING
        if full_name not in _TYPES.get(loader, ()):
            # Entries of an unknown kind are named by kind and type: "FunctionNode os.system".
            kind = "" if loader in _TYPES else f"{loader} "
            self.unknown.add(f"{kind}{full_name}"[:100])
            return _NOTHING
        self.types.add(full_name)
        fields = self._readers[loader](state, depth + 1)
        return {"__class__": class_, "__module__": module, "__loader__": loader, **fields}

    def _nodes(self, states: list[dict[str, Any]], depth: int) -> dict[str, Any]:
        if not isinstance(states, list):
            raise unsafe("A list of the model's schema is not a list")
        return {"content": [self.node(state, depth) for state in states]}

    def _scalar(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        if isinstance(json.loads(state["content"]), list | dict):
            raise unsafe("A scalar of the model's schema is not a number or text")
        return {"content": state["content"], "is_json": True}

    def _sequence(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        return self._nodes(state["content"], depth)

    def _mapping(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        key_types = self.node(state["key_types"], depth)
        content = {key: self.node(value, depth) for key, value in state["content"].items()}
        kinds = key_types.get("content", [])
        if len(kinds) != len(content) or any(k["__loader__"] != "TypeNode" for k in kinds):
            raise unsafe("The keys of the model's schema do not fit their types")
        return {"key_types": key_types, "content": content}

    def _slice(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        ends = {key: state["content"][key] for key in ("start", "stop", "step")}
        if not all(end is None or type(end) is int for end in ends.values()):
            raise unsafe("A slice of the model's schema is not a slice")
        return {"content": ends}

    def _type(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        return {}

    def _dtype(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        content = self.node(state["content"], depth)
        if content["__loader__"] != "NdArrayNode":
            raise unsafe("A data type of the model's schema is not a data type")
        return {"content": content}

    def _ndarray(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        if state["type"] == "json":
            shape = self.node(state["shape"], depth)
            content = self._nodes(state["content"], depth)
            lengths = [json.loads(length["content"]) for length in shape["content"]]
            if not lengths or lengths[0] != len(content["content"]):
                raise unsafe("An array of the model does not have the shape that it claims")
            return {"type": "json", "shape": shape, **content}
        self._array(state)
        return {"type": "numpy", "file": state["file"]}

    def _object(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        content = state.get("content")
        return {} if content is None else {"content": self.node(content, depth)}

    def _loss(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        args = self.node(state["__reduce__"]["args"], depth)
        content = self.node(state["content"], depth)
        n_numbers = _LOSSES[f"{state['__module__']}.{state['__class__']}"]
        numbers = args["content"] if args["__loader__"] == "TupleNode" else []
        plain = all(
            entry["__loader__"] == "JsonNode" and type(json.loads(entry["content"])) in (int, float)
            for entry in numbers
        )
        if not plain or len(numbers) != n_numbers or content["content"]:
            raise unsafe("The loss of the model carries an unknown state")
        return {"__reduce__": {"args": args}, "content": content}

    def _tree(self, state: dict[str, Any], depth: int) -> dict[str, Any]:
        args = self.node(state["__reduce__"]["args"], depth)
        content = self.node(state["content"], depth)
        if args["__loader__"] != "TupleNode" or content["__loader__"] != "DictNode":
            raise unsafe("A tree of the model's schema is not a tree")
        self._n_trees += 1
        if self._n_trees % 10 == 1:
            share = len(self.arrays) / self._n_arrays
            self._progress(min(share, 1.0), f"Checking the trees: {self._n_trees:,}")
        n_features, n_classes, n_outputs = args["content"]
        fields = content["content"]
        self._n_nodes += _integer(fields["node_count"])
        check_tree_nodes(self._n_nodes)
        _check_tree(
            n_features=_integer(n_features),
            n_outputs=_integer(n_outputs),
            n_classes=self._array(n_classes),
            max_depth=_integer(fields["max_depth"]),
            node_count=_integer(fields["node_count"]),
            nodes=self._array(fields["nodes"]),
            values=self._array(fields["values"]),
            where=f"tree {self._n_trees:,}",
        )
        self.of_trees |= {fields["nodes"]["file"], fields["values"]["file"]}
        return {"__reduce__": {"args": args}, "content": content}

    def _array(self, state: dict[str, Any]) -> NDArray[Any]:
        """A stored array, read after a check that its header fits its size."""
        if state["type"] != "numpy" or state["file"] not in self._members:
            raise unsafe("An array of the model is missing")
        name = state["file"]
        if name not in self.arrays:
            self.arrays[name] = _read_npy(self._members[name])
        return self.arrays[name]

    def content(self, name: str) -> bytes:
        """A member as it is in the archive."""
        return self._members[name]


def _read_npy(content: bytes) -> NDArray[Any]:
    try:
        shape, fortran, dtype, start = _header(content)
    except Exception as error:  # numpy parses the header as Python text; its errors vary
        raise unsafe(f"An array of the model cannot be read: {_first_line(error)}") from error
    if dtype.hasobject:
        raise unsafe("An array of the model holds Python objects, which are pickles")
    size = dtype.itemsize
    for length in shape:
        size *= length
    if size != len(content) - start or any(not 0 <= n < 2**31 for n in shape):
        raise unsafe("An array of the model does not have the size that it claims")
    flat = np.frombuffer(content, dtype=dtype, offset=start) if size else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(content: bytes) -> tuple[tuple[int, ...], bool, Any, int]:
    """Shape, order and data type of a stored array, and where its numbers begin."""
    version, n_digits = content[6:8], 2 if content[6:7] == b"\1" else 4
    first = 8 + n_digits
    start = first + int.from_bytes(content[8:first], "little")
    if content[:6] != b"\x93NUMPY" or version not in (b"\1\0", b"\2\0") or start > len(content):
        raise ValueError("it is not an npy file of version 1 or 2")
    return *_parsed_header(content[:start]), start


@lru_cache(maxsize=1024)
def _parsed_header(header: bytes) -> tuple[tuple[int, ...], bool, Any]:
    buffer = io.BytesIO(header)
    if np.lib.format.read_magic(buffer) == (1, 0):
        return np.lib.format.read_array_header_1_0(buffer)
    return np.lib.format.read_array_header_2_0(buffer)


def _integer(state: dict[str, Any]) -> int:
    if state["__loader__"] == "JsonNode":
        value = json.loads(state["content"])
        if type(value) is int and abs(value) < 2**31:
            return value
    raise unsafe("A size of a tree is not an integer")


def _check_tree(
    *,
    n_features: int,
    n_outputs: int,
    n_classes: NDArray[Any],
    max_depth: int,
    node_count: int,
    nodes: NDArray[Any],
    values: NDArray[Any],
    where: str,
) -> None:
    """Check the stored state of one ``sklearn.tree._tree.Tree``."""
    from sklearn.tree._tree import NODE_DTYPE

    if n_outputs > 1:
        raise InputError(
            f"The model predicts {n_outputs:,} targets at once, and kdcal reviews one",
            fix="Train and save a model of one target.",
        )
    if n_outputs != 1 or n_classes.shape != (1,) or n_classes.dtype != np.intp:
        raise unsafe(f"The outputs of {where} are not one class column")
    if n_features < 1 or node_count < 1 or not 0 <= max_depth < node_count:
        raise unsafe(f"The sizes of {where} are out of range")
    if nodes.shape != (node_count,) or nodes.dtype != NODE_DTYPE:
        raise unsafe(f"The nodes of {where} do not fit their number")
    if values.shape != (node_count, 1, int(n_classes[0])) or values.dtype != np.float64:
        raise unsafe(f"The values of {where} do not fit its nodes and classes")
    if not np.isfinite(values).all() or np.isnan(nodes["threshold"]).any():
        raise unsafe(f"The values of {where} are not finite")
    inner = nodes["left_child"] != -1
    if (inner != (nodes["right_child"] != -1)).any():
        raise unsafe(f"A node of {where} has one child only")
    check_children(nodes["left_child"], nodes["right_child"], inner, where=where)
    check_range(nodes["feature"][inner], 0, n_features, what=f"A feature index of {where}")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _save(model: Any, path: Path, n_features: int) -> str:
    from kdcal_core.skops_library import skops

    skops.io.dump(model, path)
    return ""


def _is_skops(content: Content) -> bool:
    return "schema.json" in content.members


Format(
    key="skops",
    title="scikit-learn skops file",
    suffixes=(".skops",),
    is_content=_is_skops,
    load=load,
    family="scikit-learn",
    library=Library("sklearn", "scikit-learn", "a scikit-learn", wrap, _save),
    reports_steps=True,
).offer()
