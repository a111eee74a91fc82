"""Turn a pickled model into a file that kdcal opens, on the machine of a user who trusts it.

This is the one place that opens pickles. It stands behind ``kdcal convert`` only, and nothing of
the app calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.formats import load_model, wrap_model
from kdcal_core.models.protocol import Features, Model, Regressor

Kind = Literal["sklearn", "xgboost", "lightgbm", "torch"]

_NAMES: dict[Kind, str] = {
    "sklearn": "a scikit-learn",
    "xgboost": "an XGBoost",
    "lightgbm": "a LightGBM",
    "torch": "a PyTorch",
}
_TORCH_SUFFIXES = (".pt", ".pth", ".ckpt")
_TRIAL_ROWS = 64
# Files keep float32 leaves where the model in memory may hold more digits.
_TOLERANCE = 1e-5


def convert(
    source: str | Path,
    out: str | Path,
    *,
    kind: Kind | None = None,
    example_width: int | None = None,
) -> str:
    """Open a pickle that the user trusts and save its model in a format that kdcal opens.

    What was written is loaded again, with all checks, and must give the same answers as the
    model in memory on 64 random rows; otherwise nothing is left behind.

    Parameters
    ----------
    source : str or Path
        A pickle or joblib file, or a whole PyTorch module saved by ``torch.save``. Opening it
        runs whatever code its author put into it.
    out : str or Path
        Where to write: ``.skops`` for scikit-learn, ``.json`` or ``.ubj`` for XGBoost, ``.txt``
        for LightGBM, ``.pt2`` for PyTorch.
    kind : {"sklearn", "xgboost", "lightgbm", "torch"}, optional
        What the file must hold. Found out by default.
    example_width : int, optional
        Number of input columns of a PyTorch module, which does not know it.

    Returns
    -------
    str
        A sentence that says what was written.

    Raises
    ------
    InputError
        The file cannot be opened, holds no model that kdcal knows, or ``out`` has the wrong
        suffix.

    Examples
    --------
    >>> import pickle
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier(max_leaf_nodes=3).fit(*load_iris(return_X_y=True))
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "tree.pkl"
    ...     _ = path.write_bytes(pickle.dumps(model))
    ...     print(convert(path, Path(folder) / "tree.skops"))
    Wrote tree.skops: Decision tree, 3 leaves. Loaded again, it gives the same probabilities on \
64 random rows.
    """
    source, out = Path(source), Path(out)
    model = _open(source, is_torch=kind == "torch" or source.suffix.lower() in _TORCH_SUFFIXES)
    found = _kind_of(model, source)
    if kind is not None and found != kind:
        raise InputError(
            f"The file holds {_NAMES[found]} model, not {_NAMES[kind]} one", file=source.name
        )
    suffixes, save = _WRITERS[found]
    if out.suffix.lower() not in suffixes:
        raise InputError(
            f"A{_NAMES[found][1:]} model is written as {' or '.join(suffixes)}",
            fix=f"Name it {out.with_suffix(suffixes[0]).name!r}.",
            file=out.name,
        )
    if found == "torch":
        if example_width is None:
            raise InputError(
                "A PyTorch module does not know its number of input columns",
                fix="Give it with --example-width.",
                file=source.name,
            )
        from kdcal_core.models.torch_model import wrap_module

        before: Model | Regressor = wrap_module(model.eval(), n_features=example_width)
        model = (model, example_width)
    else:
        before = wrap_model(model)
    draft = out.with_name(f".draft-{out.name}")
    try:
        note = save(model, draft)
        again = load_model(draft, name=out.name)
        checked = _compare(before, again)
        draft.replace(out)
    finally:
        draft.unlink(missing_ok=True)
    return f"Wrote {out.name}: {again.kind}.{note}{checked}"


def _open(source: Path, *, is_torch: bool) -> Any:
    try:
        if is_torch:
            import torch

            return torch.load(source, map_location="cpu", weights_only=False)
        import joblib  # type: ignore[import-untyped]

        return joblib.load(source)
    except Exception as error:  # a pickle may raise whatever its classes raise
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"The file cannot be opened as a pickle: {line[:200]}",
            fix="Open it where the packages are installed with which it was saved.",
            file=source.name,
        ) from error


def _kind_of(model: Any, source: Path) -> Kind:
    homes = {base.__module__.split(".")[0] for base in type(model).__mro__}
    kinds: tuple[Kind, ...] = ("xgboost", "lightgbm", "torch", "sklearn")
    for kind in kinds:
        if kind in homes:
            return kind
    fix = "kdcal converts scikit-learn, XGBoost and LightGBM models and torch.nn.Module."
    if isinstance(model, dict):
        fix = (
            "It may hold a network's weights only: load them into the network in Python and save "
            "that with torch.export.save."
        )
    raise InputError(
        f"The file holds an object of the type {type(model).__name__}", fix=fix, file=source.name
    )


def _save_sklearn(model: Any, path: Path) -> str:
    import skops.io

    skops.io.dump(model, path)
    return ""


def _save_xgboost(model: Any, path: Path) -> str:
    import json

    booster = model
    if hasattr(model, "get_booster"):
        booster = model.get_booster().copy()
        if hasattr(model, "classes_"):
            names = [str(name) for name in np.asarray(model.classes_).tolist()]
            booster.set_attr(kdcal_classes=json.dumps(names))
    booster.save_model(path)
    return ""


def _save_lightgbm(model: Any, path: Path) -> str:
    booster = getattr(model, "booster_", model)
    booster.save_model(path)
    if not hasattr(model, "classes_"):
        return ""
    names = ", ".join(f"{k} = {name}" for k, name in enumerate(model.classes_))
    return f" LightGBM's files do not name the classes: {names}."


def _save_torch(model_and_width: Any, path: Path) -> str:
    import torch

    module, width = model_and_width
    dtype = next((weights.dtype for weights in module.parameters()), torch.float32)
    # Two rows, because torch takes a single one for a constant.
    example = torch.zeros(2, width, dtype=dtype)
    program = torch.export.export(
        module.eval(), (example,), dynamic_shapes=({0: torch.export.Dim("rows")},)
    )
    torch.export.save(program, path)
    return ""


_WRITERS: dict[str, tuple[tuple[str, ...], Callable[[Any, Path], str]]] = {
    "sklearn": ((".skops",), _save_sklearn),
    "xgboost": ((".json", ".ubj"), _save_xgboost),
    "lightgbm": ((".txt",), _save_lightgbm),
    "torch": ((".pt2",), _save_torch),
}


def _compare(before: Model | Regressor, after: Model | Regressor) -> str:
    """Compare two models on random rows, where random rows can be had."""
    if not getattr(before, "numeric", True):
        return " It takes columns of text: compare it with the original on rows of your own."
    rows = _random_rows(before)
    one, other = _answers(before, rows), _answers(after, rows)
    if one.shape != other.shape:
        raise InputError("The converted model gives another number of columns")
    # Probabilities are compared as they are, other numbers by their size.
    scale = max(1.0, float(np.abs(one).max()))
    distance = np.abs(one - other).max() / scale
    what = "predictions" if isinstance(before, Regressor) else "probabilities"
    if not distance <= _TOLERANCE:
        raise InputError(
            f"The converted model gives other {what}, up to {distance:.2g} away",
            fix="Nothing was written. Use the versions of the packages that saved the model.",
        )
    return f" Loaded again, it gives the same {what} on {_TRIAL_ROWS} random rows."


def _answers(model: Model | Regressor, rows: Features) -> FloatArray:
    return model.predict(rows) if isinstance(model, Regressor) else model.predict_proba(rows)


def _random_rows(model: Model | Regressor) -> Features:
    generator = np.random.default_rng(0)
    numbers = generator.normal(size=(_TRIAL_ROWS, model.n_features))
    names = model.feature_names or [str(j + 1) for j in range(model.n_features)]
    frame = pd.DataFrame(numbers, columns=pd.Index(names))
    for j, known in getattr(model, "categories", {}).items():
        frame.isetitem(j, np.array(known, dtype=object)[generator.integers(len(known), size=64)])
    return frame if model.feature_names else frame.to_numpy()
