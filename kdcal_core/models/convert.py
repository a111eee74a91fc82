"""Turn a pickled model into a file that kdcal opens, on the machine of a user who trusts it.

This is the one place that opens pickles. Only ``kdcal convert`` uses it; the app never calls it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from kdcal_core.data import FloatArray
from kdcal_core.errors import InputError
from kdcal_core.models.formats import (
    Library,
    library_of,
    library_titles,
    load_model,
    model_formats,
    wrap_model,
)
from kdcal_core.models.protocol import Features, Model, Regressor
from kdcal_core.text import listed

_TORCH_SUFFIXES = (".pt", ".pth", ".ckpt")
_TRIAL_ROWS = 64
# Files store float32 leaves; the model in memory may hold more digits.
_TOLERANCE = 1e-5


def convert(
    source: str | Path,
    out: str | Path,
    *,
    kind: str | None = None,
    example_width: int | None = None,
) -> str:
    """Open a pickle that the user trusts and save its model in a format that kdcal opens.

    The written file is loaded again with all checks and must give the same answers as the model in
    memory on 64 random rows. Otherwise the file is deleted.

    Parameters
    ----------
    source : str or Path
        A pickle or joblib file, or a whole PyTorch module saved by ``torch.save``. Opening it runs
        any code that it contains.
    out : str or Path
        File to write, with a suffix of the library's format: ``.skops`` for scikit-learn, ``.json``
        or ``.ubj`` for XGBoost.
    kind : str, optional
        The package whose model the file must hold, such as "sklearn" or "torch"; any by default.
    example_width : int, optional
        Number of input columns of a PyTorch module, which does not store it.

    Returns
    -------
    str
        A sentence that says what was written.

    Raises
    ------
    InputError
        The file cannot be opened or holds no model that kdcal knows, or ``out`` has the wrong
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
    found = _library_of(model, source)
    if kind is not None and found.package != kind:
        raise InputError(
            f"The file holds {found.called} model, not {_called(kind)} one", file=source.name
        )
    formats = [one for one in model_formats().values() if one.library is found]
    suffixes = [suffix for one in formats for suffix in one.suffixes]
    if out.suffix.lower() not in suffixes:
        raise InputError(
            f"A{found.called[1:]} model is written as {' or '.join(suffixes)}",
            fix=f"Name it {out.with_suffix(suffixes[0]).name!r}.",
            file=out.name,
        )
    if found.package == "torch":
        if example_width is None:
            raise InputError(
                "A PyTorch module does not know its number of input columns",
                fix="Give it with --example-width.",
                file=source.name,
            )
        from kdcal_core.models.torch_model import wrap_module

        before: Model | Regressor = wrap_module(model.eval(), n_features=example_width)
    else:
        before = wrap_model(model)
    draft = out.with_name(f".draft-{out.name}")
    try:
        note = found.save(model, draft, before.n_features)
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
    except Exception as error:  # a pickle may raise any error
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"The file cannot be opened as a pickle: {line[:200]}",
            fix="Open it where the packages that saved it are installed.",
            file=source.name,
        ) from error


def _library_of(model: Any, source: Path) -> Library:
    found = library_of(model)
    if found is not None:
        return found
    fix = f"kdcal converts models of {listed(library_titles())}."
    if isinstance(model, dict):
        fix = (
            "It may hold a network's weights only: load them into the network in Python and save "
            "that with torch.export.save."
        )
    raise InputError(
        f"The file holds an object of the type {type(model).__name__}", fix=fix, file=source.name
    )


def _called(package: str) -> str:
    named = (one.library for one in model_formats().values() if one.library is not None)
    return next((one.called for one in named if one.package == package), f"a {package}")


def _compare(before: Model | Regressor, after: Model | Regressor) -> str:
    """Compare two models on random rows, if the model takes any."""
    if not getattr(before, "numeric", True):
        return " It takes columns of text: compare it with the original on rows of your own."
    rows = _random_rows(before)
    one, other = _answers(before, rows), _answers(after, rows)
    if one.shape != other.shape:
        raise InputError("The converted model gives a different number of columns")
    # Probabilities are compared by absolute difference, other numbers relative to their size.
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
