"""Speed of the partition's kernels: class masses for a grid of exponents, and nearest polytopes.

References are plain numpy and scipy on as many rows as they can bear; their time for all rows is
that of their share of the rows, since both do every row alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from kdcal_core.partition import (
    Codes,
    LeafCodes,
    class_masses,
    default_exponents,
    find_polytopes,
    nearest_centres,
    nearest_polytopes,
    pack_bits,
)

MODEST, MANY, QUERIES = 10_000, 100_000, 10_000
TREES, WIDTHS = 500, (1000,) * 4
EXPONENTS = default_exponents()
PLAIN_ROWS = 200
SEED = 0

Row = dict[str, Any]


def run() -> list[Row]:
    _compile()
    return [*_forests(), *_networks(), *_others()]


def _forests() -> list[Row]:
    found = []
    x, y = _xor(MANY + QUERIES)
    leaves = _forest(x, y, MODEST, TREES)
    found += _both("forest, XOR", leaves, x, y, MODEST, 3.0, 5.0, _plain_leaves)
    # A fifth of the trees, asked about the data turned by right angles and mirrored: XOR looks
    # the same from there, so the codes are those of a forest of 500.
    turned = [x, x[:, ::-1] * [1, -1], -x, x[:, ::-1] * [-1, 1], x * [1, -1]]
    model = _fit(x[:MANY], y[:MANY], TREES // len(turned))
    leaves = np.concatenate([model.apply(view) for view in turned], axis=1).astype(np.int32)
    found += _both("forest, XOR", leaves, x, y, MANY, 120.0, 15.0, None)
    x, y = _twenty(MANY + QUERIES)
    leaves = _forest(x, y, MODEST, TREES)
    found += _both("forest, 20 features", leaves, x, y, MODEST, 3.0, 5.0, _plain_leaves)
    leaves = _boosted(x, y, MANY)
    found += _both("300 boosted trees of depth 6", leaves, x, y, MANY, 120.0, 15.0, None)
    return found


def _networks() -> list[Row]:
    x, y = _twenty(MANY + QUERIES)
    words = _activations(x)
    return [
        *_both("network 4 x 1000, 20 features", words, x, y, MODEST, 10.0, 5.0, _plain_layers),
        *_both("network 4 x 1000, 20 features", words, x, y, MANY, 240.0, 15.0, None),
    ]


def _others() -> list[Row]:
    x, y = _twenty(MANY + QUERIES)
    leaves = _forest(x, y, MODEST, TREES)
    seconds = _seconds(lambda: find_polytopes(LeafCodes(leaves)))
    plain = _seconds(lambda: np.unique(leaves[:MODEST], axis=0)) * len(leaves) / MODEST
    name = f"np.unique, {MODEST:,} rows scaled"
    rows = [_row("merge rows", "find_polytopes, 500 trees", len(leaves), seconds, name, plain, 5.0)]
    seconds = _seconds(lambda: nearest_centres(x[MANY:], x[:MANY]))
    plain = _scaled(lambda rows: cdist(x[MANY:][:rows], x[:MANY]).argmin(axis=1), QUERIES)
    what = f"nearest_centres, 20 features, {QUERIES:,} rows against n"
    return [*rows, _row("nearest centre", what, MANY, seconds, _reference("cdist"), plain, None)]


def _both(
    name: str,
    rows: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    n: int,
    masses_goal: float,
    nearest_goal: float,
    plain_kernel: Callable[[np.ndarray, np.ndarray], np.ndarray] | None,
) -> list[Row]:
    """Class masses of n rows, and the nearest polytopes of the queries after them."""
    polytopes = find_polytopes(_codes(rows[:n]))
    counts = np.zeros((len(polytopes.codes), int(y.max()) + 1), dtype=np.int64)
    np.add.at(counts, (polytopes.index, y[:n]), 1)
    centres = np.zeros((len(polytopes.codes), x.shape[1]))
    np.add.at(centres, polytopes.index, x[:n] / polytopes.sizes[polytopes.index][:, None])
    masses = _seconds(lambda: class_masses(polytopes.codes, counts, EXPONENTS))
    queries, places = _codes(rows[-QUERIES:]), x[-QUERIES:]
    nearest = _seconds(lambda: nearest_polytopes(queries, polytopes.codes, places, centres))
    plain_masses = plain_nearest = reference = None
    if plain_kernel is not None:
        merged, asked = rows[:n][_first_rows(polytopes.index)], rows[-QUERIES:]
        reference = _reference(plain_kernel.__doc__ or "")

        def plain(m: int) -> list[np.ndarray]:
            kernel = plain_kernel(merged[:m], merged)
            return [kernel**exponent @ counts for exponent in EXPONENTS]

        plain_masses = _scaled(plain, len(merged))
        plain_nearest = _scaled(lambda m: plain_kernel(asked[:m], merged).argmax(axis=1), QUERIES)
    what = f"nearest_polytopes, {QUERIES:,} rows against n"
    return [
        _row(name, "class_masses, 21 exponents", n, masses, reference, plain_masses, masses_goal),
        _row(name, what, n, nearest, reference, plain_nearest, nearest_goal),
    ]


def _plain_leaves(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy, tree by tree"""
    same = np.zeros((len(a), len(b)))
    for ours, theirs in zip(a.T, b.T, strict=True):
        same += ours[:, None] == theirs[None, :]
    return same / a.shape[1]


def _plain_layers(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """scipy's cdist hamming, layer by layer"""
    kernel = np.ones((len(a), len(b)))
    for layer in np.split(np.arange(sum(WIDTHS)), len(WIDTHS)):
        kernel *= 1 - cdist(a[:, layer], b[:, layer], "hamming")
    return kernel


def _codes(rows: np.ndarray) -> Codes:
    """Leaf ids are integers; activations are bits, a thousand a layer."""
    if rows.dtype != bool:
        return LeafCodes(np.ascontiguousarray(rows))
    return pack_bits(np.split(rows, len(WIDTHS), axis=1))


def _first_rows(index: np.ndarray) -> np.ndarray:
    return np.unique(index, return_index=True)[1]


def _xor(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(SEED)
    side = rng.choice([-1, 1], (n, 2))
    return 0.5 * side + rng.normal(0, 0.25, (n, 2)), (side.prod(axis=1) > 0).astype(np.int64)


def _twenty(n: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = make_classification(n, 20, n_informative=8, n_redundant=4, random_state=SEED)
    return x, y


def _fit(x: np.ndarray, y: np.ndarray, n_trees: int) -> RandomForestClassifier:
    return RandomForestClassifier(n_trees, n_jobs=-1, random_state=SEED).fit(x, y)


def _forest(x: np.ndarray, y: np.ndarray, n: int, n_trees: int) -> np.ndarray:
    return _fit(x[:n], y[:n], n_trees).apply(x).astype(np.int32)


def _boosted(x: np.ndarray, y: np.ndarray, n: int) -> np.ndarray:
    from xgboost import XGBClassifier

    model = XGBClassifier(n_estimators=300, max_depth=6, random_state=SEED).fit(x[:n], y[:n])
    return model.apply(x).astype(np.int32)


def _activations(x: np.ndarray) -> np.ndarray:
    """Activations of a ReLU network with random weights, (n, units) of bool."""
    rng = np.random.default_rng(SEED)
    active = np.empty((len(x), sum(WIDTHS)), dtype=bool)
    values, begin = x.astype(np.float32), 0
    for width in WIDTHS:
        weights = rng.normal(0, np.sqrt(2 / values.shape[1]), (values.shape[1], width))
        values = values @ weights.astype(np.float32) + rng.normal(0, 0.1, width).astype(np.float32)
        np.maximum(values, 0, out=values)
        active[:, begin : begin + width] = values > 0
        begin += width
    return active


def _compile() -> None:
    """Compiling is done once a machine and does not belong to the figures."""
    bits = np.array([[True, False], [False, True]])
    rng = np.random.default_rng(SEED)
    few, many = (rng.integers(0, n, (600, 30)).astype(np.int32) for n in (300, 4))
    for codes in (LeafCodes(few), LeafCodes(many), pack_bits([bits, bits])):
        n = len(codes)
        class_masses(codes, np.ones((n, 2), dtype=np.int64), EXPONENTS)
        nearest_polytopes(codes, codes, np.zeros((n, 1)), np.zeros((n, 1)))
    nearest_centres(np.zeros((1, 1)), np.zeros((1, 1)))


def _reference(name: str) -> str:
    return f"{name}, {PLAIN_ROWS} rows scaled"


def _scaled(call: Callable[[int], object], n_rows: int) -> float:
    return _seconds(lambda: call(PLAIN_ROWS)) * n_rows / PLAIN_ROWS


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _row(
    name: str,
    what: str,
    n: int,
    seconds: float,
    reference: str | None,
    reference_seconds: float | None,
    goal: float | None,
) -> Row:
    return {
        "name": name,
        "what": what,
        "n": n,
        "seconds": seconds,
        "reference": reference,
        "reference_seconds": reference_seconds,
        "ratio": None if reference_seconds is None else reference_seconds / seconds,
        "goal": goal,
    }
