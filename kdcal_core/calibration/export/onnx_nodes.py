"""Writes nodes of an ONNX graph in double precision, and names its operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdcal_core.errors import InputError

_PREFIX = "kdcal_"


class Nodes:
    """Collects nodes and constants; each method returns the name of its result tensor.

    The operators are the same in version 13 and all later ones. Tensors are (n, k) unless a method
    says otherwise.

    Examples
    --------
    >>> nodes = Nodes()
    >>> nodes.add("p", 1.0)
    'kdcal_1'
    >>> [node.op_type for node in nodes.nodes], [constant.name for constant in nodes.constants]
    (['Add'], ['kdcal_0'])
    """

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._n = 0

    def node(self, kind: str, *inputs: str | float | NDArray[Any], **attributes: Any) -> str:
        """One operator; array and number inputs become constants."""
        from onnx import helper

        names = [one if isinstance(one, str) else self.constant(one) for one in inputs]
        made = self._name()
        self.nodes.append(helper.make_node(kind, names, [made], **attributes))
        return made

    def constant(self, value: float | NDArray[Any]) -> str:
        """A number or an array; floats become double, whole numbers int64, booleans bool."""
        from onnx import numpy_helper

        array = np.asarray(value)
        array = array.astype(
            {"i": np.int64, "u": np.int64, "b": np.bool_}.get(array.dtype.kind, np.float64)
        )
        name = self._name()
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def constant_like(self, like: str, value: float) -> str:
        """A number in the shape of another tensor."""
        return self.add(self.mul(like, 0.0), value)

    def add(self, a: str, b: str | float | NDArray[Any]) -> str:
        return self.node("Add", a, b)

    def mul(self, a: str, b: str | float | NDArray[Any]) -> str:
        return self.node("Mul", a, b)

    def less(self, one: float, a: str) -> str:
        """one - a."""
        return self.node("Sub", one, a)

    def row_sum(self, a: str) -> str:
        """Sum over the columns, (n, 1); with more dimensions, over the last."""
        return self.node("ReduceSum", a, np.array([-1]), keepdims=1)

    def over_layers(self, a: str) -> str:
        """Sum of (n, L, K) over L, (n, K)."""
        return self.node("ReduceSum", a, np.array([1]), keepdims=0)

    def column(self, a: str, at: int) -> str:
        """One column, (n, 1)."""
        return self.node("Gather", a, np.array([at]), axis=1)

    def columns(self, parts: list[str]) -> str:
        """Columns side by side; with more dimensions, along the last."""
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=-1)

    def look_up(self, table: str, at: str) -> str:
        """Rows of a table by their int64 numbers ``at``, in the shape of ``at``."""
        return self.node("Gather", table, at, axis=0)

    def log(self, a: str, floor: float) -> str:
        """log of a, or of ``floor`` where a is smaller."""
        return self.node("Log", self.node("Max", a, floor))

    def softplus(self, a: str) -> str:
        """log(1 + exp(a)), finite for every a."""
        away = self.node("Exp", self.node("Neg", self.node("Abs", a)))
        return self.add(self.node("Max", a, 0.0), self.node("Log", self.add(away, 1.0)))

    def double(self, condition: str) -> str:
        """1 where the condition holds, and 0 elsewhere."""
        from onnx import TensorProto

        return self.node("Cast", condition, to=TensorProto.DOUBLE)

    def largest(self, a: str, n_classes: int) -> str:
        """1 in the column of each row's largest entry, the first of equal ones, and 0 elsewhere."""
        at = self.node("ArgMax", a, axis=1, keepdims=1)
        return self.double(self.node("Equal", at, np.arange(n_classes)[None, :]))

    def shares(self, a: str, n_classes: int) -> str:
        """Rows scaled to sum to one in the last dimension; a row of zeros becomes uniform."""
        total = self.row_sum(a)
        none = self.double(self.node("Equal", total, 0.0))
        filled = self.add(a, self.mul(none, np.full((1, n_classes), 1.0)))
        return self.node("Div", filled, self.row_sum(filled))

    def count_above(self, x: str, corners: NDArray[Any], *, inclusive: bool) -> str:
        """Number of corners below x, (n,) int64; ``inclusive`` counts those at x too."""
        from onnx import TensorProto

        kind = "GreaterOrEqual" if inclusive else "Greater"
        found = self.row_sum(self.double(self.node(kind, x, corners[None, :])))
        return self.node("Reshape", self.node("Cast", found, to=TensorProto.INT64), np.array([-1]))

    def step(self, at: str, values: NDArray[Any]) -> str:
        """values[at - 1] with the index clipped to the table, (n, 1); ``at`` (n,) counts from 1."""
        first = self.node("Sub", at, np.array(1))
        inside = self.node("Max", self.node("Min", first, np.array(len(values) - 1)), np.array(0))
        return self.node("Gather", values[:, None], inside, axis=0)

    def cubic(self, x: str, corners: NDArray[Any], coefficients: NDArray[Any]) -> str:
        """A piecewise polynomial, (n, 1), constant beyond its corners.

        ``coefficients`` (p, g - 1) holds those of each piece, highest power first, in the distance
        from the corner (g,) where the piece begins.
        """
        inside = self.node("Max", self.node("Min", x, float(corners[-1])), float(corners[0]))
        at = self.count_above(inside, corners, inclusive=True)
        distance = self.node("Sub", inside, self.step(at, corners[:-1]))
        found = self.step(at, coefficients[0])
        for row in coefficients[1:]:
            found = self.add(self.mul(found, distance), self.step(at, row))
        return found

    def _name(self) -> str:
        name = f"{_PREFIX}{self._n}"
        self._n += 1
        return name


_LEAST_OPSET, _USUAL_OPSET = 13, 17


def check_opset(model: Any) -> None:
    """Declare the standard operators if the model does not, and refuse too old a version.

    Raises
    ------
    InputError
    """
    from onnx import helper

    opset = next((one for one in model.opset_import if one.domain in ("", "ai.onnx")), None)
    if opset is None:
        model.opset_import.append(helper.make_opsetid("", _USUAL_OPSET))
    elif opset.version < _LEAST_OPSET:
        raise InputError(
            f"The model's operators are of version {opset.version}, and the calibrator needs "
            f"{_LEAST_OPSET} or newer",
            fix="Export the model again with a newer opset, or use the calibrator file.",
        )


def name_domains(model: Any, nodes: Nodes) -> None:
    """Declare the operator sets that the model did not use."""
    from onnx import helper

    named = {one.domain for one in model.opset_import}
    for domain in sorted({node.domain for node in nodes.nodes if node.domain} - named):
        model.opset_import.append(helper.make_opsetid(domain, 1))
