"""PyTorch's operators: what each does to the rows, and which an exported program may call.

The first part classifies them for the search for layers and heads.

A program may not call operators that read or map files (``from_file``), write into given memory
(``out`` overloads, ``set_``, ``resize_``), return uninitialised memory (``empty``), view storage
freely (``as_strided``), or draw random numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from kdcal_core.errors import InputError
from kdcal_core.models.network_layers import Role
from kdcal_core.models.output_meaning import OutputKind

# Operators that pass their first argument on unchanged.
PASSING = frozenset([
    "view", "_unsafe_view", "reshape", "_reshape_alias", "squeeze", "unsqueeze", "flatten",
    "clone", "detach", "alias", "contiguous", "_to_copy", "to", "t", "transpose", "permute",
])  # fmt: skip
KINDS: dict[str, OutputKind] = {
    "_softmax": "probability",
    "softmax": "probability",
    "sigmoid": "probability",
    "sigmoid_": "probability",
    "_log_softmax": "log-probability",
    "log_softmax": "log-probability",
}
#: Position of the rows among the arguments of a linear layer.
_ROWS_AT = {"linear": 0, "mm": 0, "matmul": 0, "addmm": 1}
_AFFINE = PASSING | {
    "add", "sub", "rsub", "neg", "cat", "concat", "stack", "slice", "select", "narrow", "split",
    "split_with_sizes", "chunk", "unbind", "index_select", "index", "gather", "expand", "mean",
    "sum", "dropout", "batch_norm", "native_batch_norm", "cudnn_batch_norm",
    "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "constant_pad_nd",
}  # fmt: skip
#: Attention and whole transformer layers that PyTorch runs as one operation.
_FUSED = {
    "scaled_dot_product_attention": "softmax",
    "_scaled_dot_product_flash_attention_for_cpu": "softmax",
    "_scaled_dot_product_flash_attention": "softmax",
    "_scaled_dot_product_efficient_attention": "softmax",
    "_scaled_dot_product_cudnn_attention": "softmax",
    "_native_multi_head_attention": "softmax",
    "_transformer_encoder_layer_fwd": "transformer layer",
}
_WEIGHTS = frozenset([
    "conv1d", "conv2d", "conv3d", "convolution", "_convolution", "mkldnn_convolution",
    "cudnn_convolution", "bmm", "baddbmm", "mv", "dot", "einsum", "bilinear",
])  # fmt: skip
_RECURRENT = {
    "lstm": "LSTM", "mkldnn_rnn_layer": "LSTM", "_thnn_fused_lstm_cell": "LSTM",
    "_cudnn_rnn": "recurrent", "gru": "GRU", "_thnn_fused_gru_cell": "GRU",
    "rnn_tanh": "recurrent tanh",
}  # fmt: skip
_ACTIVATIONS = {
    "sigmoid": "sigmoid", "hardsigmoid": "hard sigmoid", "tanh": "tanh", "softsign": "softsign",
    "softplus": "softplus", "leaky_relu": "LeakyReLU", "prelu": "PReLU",
    "_prelu_kernel": "PReLU", "elu": "ELU", "selu": "SELU", "celu": "CELU", "gelu": "GELU",
    "erf": "GELU", "silu": "SiLU", "hardswish": "hard swish", "mish": "Mish",
    "hardtanh": "hard tanh or ReLU6", "relu6": "ReLU6", "threshold": "threshold",
    "clamp": "clip", "clamp_min": "clip", "clamp_max": "clip", "glu": "GLU",
    "log_sigmoid": "log-sigmoid", "logsigmoid": "log-sigmoid",
    "log_sigmoid_forward": "log-sigmoid", "_softmax": "softmax", "softmax": "softmax",
    "_log_softmax": "log-softmax", "log_softmax": "log-softmax", **_RECURRENT, **_FUSED,
}  # fmt: skip


def op_name(func: Any) -> str:
    """Name of an operation as the backend runs it: "addmm", "relu_"."""
    return str(func.overloadpacket.__name__) if hasattr(func, "overloadpacket") else ""


def is_relu(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether an operation is a ReLU under one of its names."""
    name = op_name(func).removesuffix("_")
    if name == "relu":
        return True
    if name in ("clamp", "clamp_min"):
        given = dict(zip(("min", "max"), args[1:], strict=False)) | dict(kwargs or {})
        return _is_zero(given.get("min")) and given.get("max") is None
    return name == "threshold" and all(_is_zero(value) for value in args[1:3])


def dense_input(func: Any, args: Any, n_rows: int) -> Any:
    """Input of a linear layer on one vector for each row, (n_rows, d); else None."""
    at = _ROWS_AT.get(op_name(func))
    if at is None or len(args) <= at:
        return None
    rows = args[at]
    return rows if rows.ndim == 2 and len(rows) == n_rows else None


def end_input(func: Any, args: Any, n_rows: int) -> Any:
    """Input of a softmax or sigmoid over one vector or number for each row; else None.

    An operator that works in place has overwritten it.
    """
    name = op_name(func)
    if name not in KINDS or name.endswith("_") or not args:
        return None
    return args[0] if args[0].ndim <= 2 and args[0].shape[:1] == (n_rows,) else None


def role_of(func: Any, args: Any, kwargs: Any, n_rows: int) -> Role:
    """What an operation does to the rows."""
    if is_relu(func, args, kwargs):
        return "relu"
    name = op_name(func)
    if name in _ROWS_AT:
        return "weights" if dense_input(func, args, n_rows) is None else "dense"
    name = name.removesuffix("_")
    if name in _WEIGHTS or name in _RECURRENT or name in _FUSED:
        return "weights"
    if name in ("mul", "div"):
        return "product"
    return "affine" if name in _AFFINE else "other"


def activation_of(func: Any) -> str:
    """Name of an activation in words; "" for any other operation."""
    name = op_name(func)
    return _ACTIVATIONS.get(name) or _ACTIVATIONS.get(name.removesuffix("_"), "")


def ends_linear(name: str) -> bool:
    """Whether an operation is a linear layer."""
    return name in _ROWS_AT


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and value == 0


_NONLINEAR = """
    relu leaky_relu elu selu celu gelu silu mish sigmoid tanh hardtanh hardsigmoid hardswish
    softplus prelu relu6 threshold softmax log_softmax _softmax _log_softmax log_sigmoid
    logsigmoid glu clamp clamp_min clamp_max dropout feature_dropout alpha_dropout
    feature_alpha_dropout
"""
_LAYERS = """
    linear addmm mm bmm matmul mv dot baddbmm einsum bilinear conv1d conv2d conv3d convolution
    batch_norm _native_batch_norm_legit_no_training layer_norm native_layer_norm group_norm
    native_group_norm instance_norm rms_norm embedding scaled_dot_product_attention max_pool1d
    max_pool2d max_pool3d max_pool2d_with_indices avg_pool1d avg_pool2d avg_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d
    adaptive_max_pool1d adaptive_max_pool2d upsample_nearest2d upsample_bilinear2d
"""
_SHAPES = """
    view _unsafe_view reshape flatten unflatten squeeze unsqueeze transpose permute t expand
    expand_as cat concat stack split split_with_sizes chunk unbind slice select index_select narrow
    contiguous clone detach detach_ alias movedim pad constant_pad_nd repeat tile flip roll
    view_as numpy_T sym_size sym_numel to _to_copy type_as lift_fresh lift_fresh_copy gather index
    full full_like zeros zeros_like ones ones_like arange scalar_tensor one_hot
"""
_MATHS = """
    add sub rsub mul div neg abs exp exp2 log log1p log2 expm1 sqrt rsqrt pow square reciprocal
    maximum minimum where eq ne lt le gt ge logical_and logical_or logical_not bitwise_and
    bitwise_or bitwise_not floor ceil round sign sin cos erf sum mean max min amax amin var std
    prod logsumexp cumsum argmax norm linalg_vector_norm isnan nan_to_num floor_divide remainder
    softsign cosine_similarity
"""
_IN_PLACE = """
    relu_ leaky_relu_ elu_ selu_ celu_ silu_ mish_ sigmoid_ tanh_ hardtanh_ hardsigmoid_
    hardswish_ relu6_ threshold_ clamp_ clamp_min_ clamp_max_ dropout_ add_ sub_ mul_ div_ exp_
"""
_ALLOWED = frozenset(f"{_NONLINEAR}{_LAYERS}{_SHAPES}{_MATHS}{_IN_PLACE}".split())
_CHECKS = frozenset(
    [
        "_assert_tensor_metadata",
        "_assert_scalar",
        "_assert_async",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
    ]
)
_SIZES: dict[str, Callable[..., Any]] = {
    f"_operator.{name}": getattr(operator, name)
    for name in ["add", "sub", "mul", "floordiv", "mod", "neg", "eq", "ne", "le", "ge", "lt", "gt"]
}
_ATEN = re.compile(r"torch\.ops\.aten\.([A-Za-z0-9_]{1,64})\.([A-Za-z0-9_]{1,64})", re.ASCII)


def resolve(target: str) -> Callable[..., Any] | None:
    """The function that an exported graph names, or None for a check that may be skipped.

    Parameters
    ----------
    target : str
        As written in the file, for example ``torch.ops.aten.relu.default``.

    Raises
    ------
    InputError
        The name is not on the list.
    """
    import torch

    if target in _SIZES:
        return _SIZES[target]
    match = _ATEN.fullmatch(target)
    name, overload = match.groups() if match else ("", "")
    if name in _CHECKS:
        return None
    if name in _ALLOWED and not overload.endswith("out"):
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None and overload in packet.overloads():
            found: Callable[..., Any] = getattr(packet, overload)
            return found
    raise InputError(
        f"The exported program calls {target[:120]!r}, which is not among the operators that "
        "kdcal runs",
        fix="Export a plain classifier of standard layers, or export it as ONNX.",
    )


def is_in_place(target: str) -> bool:
    """Whether an operator writes into its first argument.

    Examples
    --------
    >>> is_in_place("torch.ops.aten.relu_.default"), is_in_place("torch.ops.aten.relu.default")
    (True, False)
    """
    match = _ATEN.fullmatch(target)
    return match is not None and match.group(1).endswith("_")
