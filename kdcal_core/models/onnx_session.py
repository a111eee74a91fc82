"""Running an ONNX graph in ONNX Runtime."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError
from kdcal_core.models.onnx_input import Feed, Inputs

_MOST_THREADS = 2
_SEVERITY_ERROR = 3


def open_session(model: Any) -> Any:
    """A session that runs on the processor with few threads."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _MOST_THREADS
    options.inter_op_num_threads = 1
    options.log_severity_level = _SEVERITY_ERROR
    try:
        return onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:  # the runtime's C++ errors share no narrower base
        _raise_for_memory(error)
        raise InputError(
            f"ONNX Runtime refuses the model: {_first_line(error)}",
            fix="Export it again for a version that the installed runtime knows.",
        ) from error


def run(session: Any, names: list[str], feed: Feed) -> list[NDArray[Any]]:
    """The named tensors for a batch of rows."""
    taken = {value.name for value in session.get_inputs()}
    try:
        values = session.run(names, {key: v for key, v in feed.items() if key in taken})
    except Exception as error:  # as above
        _raise_for_memory(error)
        raise InputError(
            f"ONNX Runtime cannot run the model: {_first_line(error)}",
            fix="Check that the table's columns are those that the model takes.",
        ) from error
    return [np.asarray(value) for value in values]


def padded(part: Feed, n_rows: int, inputs: Inputs) -> Feed:
    """A last block filled up with empty rows, where the graph insists on a number of rows."""
    lacking = (inputs.batch or n_rows) - n_rows
    if not lacking:
        return part
    filler = inputs.trial(lacking)
    return {key: np.concatenate([values, filler[key]]) for key, values in part.items()}


def flat(values: NDArray[Any]) -> NDArray[Any]:
    """One row of numbers an example."""
    return values.reshape(len(values), prod(values.shape[1:]))


def _raise_for_memory(error: Exception) -> None:
    if "allocate memory" in str(error) or "bad_alloc" in str(error):
        raise MemoryError("ONNX Runtime ran out of memory") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
