"""What each operation that PyTorch runs does to the rows, for the search of layers and heads."""

from __future__ import annotations

from typing import Any

from kdcal_core.models.outputs import OutputKind
from kdcal_core.models.relu_layers import Role

# What hands its first argument on without changing the numbers.
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
#: Where the rows stand among the arguments of a linear layer.
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
    """What a linear layer on one vector a row takes, (n_rows, d); None for anything else."""
    at = _ROWS_AT.get(op_name(func))
    if at is None or len(args) <= at:
        return None
    rows = args[at]
    return rows if rows.ndim == 2 and len(rows) == n_rows else None


def end_input(func: Any, args: Any, n_rows: int) -> Any:
    """What a softmax or sigmoid over one vector or number a row takes; None for anything else.

    One that works in place has overwritten it.
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
    """Name of an activation for people, "" for what is none."""
    name = op_name(func)
    return _ACTIVATIONS.get(name) or _ACTIVATIONS.get(name.removesuffix("_"), "")


def ends_linear(name: str) -> bool:
    """Whether an operation is a linear layer."""
    return name in _ROWS_AT


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and value == 0
