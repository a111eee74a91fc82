"""Operators that an exported program may call: arithmetic on tensors, nothing else.

Left out on purpose: what reads or maps files (``from_file``), writes into given memory
(``out`` overloads, ``set_``, ``resize_``), shows memory that nobody wrote (``empty``), views
storage freely (``as_strided``), or draws random numbers.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from kdcal_core.errors import InputError

_ACTIVATIONS = """
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
_ALLOWED = frozenset(f"{_ACTIVATIONS}{_LAYERS}{_SHAPES}{_MATHS}{_IN_PLACE}".split())
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
    """The function that an exported graph names, or None for a check that may be left out.

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
