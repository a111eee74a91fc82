"""The compiled arithmetic of Newton's method. Imported only when needed: numba is heavy."""

from __future__ import annotations

import numpy as np

from kdcal_core.calibration.regions._small_kernels import Array, compiled, invert, quadratic

# Newton decrement, as a share of the node's loss, below which one last step ends a fit.
_DONE = 1e-11
# The rounding of a sum over the rows, as a share of it.
_ROUNDING = 1e-12
# Share of the bound in the curvature after a first step that failed; it goes up or down by four.
_DAMPING = 0.01


@compiled
def propose(
    theta: Array,
    centre: Array,
    pull: Array,
    gradient: Array,
    curvature: Array,
    bound: Array,
    damping: Array,
    going: Array,
    ahead: Array,
    decrement: Array,
) -> None:
    """The next step of each node that is going, into ``ahead``, and what it promises."""
    m, q = theta.shape
    inverse, slope = np.empty((q, q)), np.empty(q)
    for at in range(m):
        if not going[at]:
            continue
        for i in range(q):
            slope[i] = gradient[at, i]
            for j in range(q):
                slope[i] += pull[at, i, j] * (theta[at, j] - centre[at, j])
                own = curvature[at, i, j]
                inverse[i, j] = own + pull[at, i, j] + damping[at] * (bound[at, i, j] - own)
        invert(inverse)
        decrement[at] = quadratic(inverse, slope)
        for i in range(q):
            step = 0.0
            for j in range(q):
                step += inverse[i, j] * slope[j]
            ahead[at, i] = theta[at, i] - step


@compiled
def judge(
    ahead: Array,
    decrement: Array,
    found_value: Array,
    found_gradient: Array,
    found_curvature: Array,
    centre: Array,
    pull: Array,
    theta: Array,
    value: Array,
    gradient: Array,
    curvature: Array,
    damping: Array,
    going: Array,
) -> bool:
    """Take the steps that go down, damp the others, and say whether any node is still going."""
    more = False
    for at in range(len(theta)):
        if not going[at]:
            continue
        done = decrement[at] <= _DONE * (1.0 + abs(value[at]))
        before = value[at] + 0.5 * quadratic(pull[at], theta[at] - centre[at])
        after = found_value[at] + 0.5 * quadratic(pull[at], ahead[at] - centre[at])
        lower = after <= before - 1e-4 * decrement[at] + _ROUNDING * abs(before)
        if done or lower:
            theta[at] = ahead[at]
            value[at] = found_value[at]
            gradient[at] = found_gradient[at]
            curvature[at] = found_curvature[at]
            damping[at] = 0.25 * damping[at] if damping[at] > _DAMPING else 0.0
        else:
            damping[at] = min(max(4.0 * damping[at], _DAMPING), 1.0)
        going[at] = not done
        more |= not done
    return more
