"""The network's compiled blocks against the paper's sums written out, and against scipy."""

import itertools
import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from kdcal_core.partition import ActivationCodes, default_exponents, pack_bits
from kdcal_core.partition import _network as network

WIDTHS = [(1,), (63,), (64,), (65,), (1000,), (1, 63, 64, 65), (3, 2, 4), (200, 100, 200)]


def random_bits(rng, n, widths):
    return [rng.random((n, width)) < rng.uniform(0.2, 0.8) for width in widths]


def masses(codes, counts, exponents):
    prepared = network.prepare_masses(codes, counts, np.asarray(exponents, dtype=float))
    return network.masses_block(prepared, 0, len(codes))


def paths_shared(a, b):
    """Dey et al., Eq. 12: the share of paths, one unit a layer, with one string of activations."""
    shared = total = 0
    for path in itertools.product(*(range(len(layer)) for layer in a)):
        strings = [[layer[unit] for layer, unit in zip(row, path, strict=True)] for row in (a, b)]
        shared += strings[0] == strings[1]
        total += 1
    return shared / total


def exact_nearest(query, polytopes, x, centres):
    """Whole numbers of shared paths, then squared distances, then the lowest index."""
    paths = [
        math.prod(int((mine == other).sum()) for mine, other in zip(query, code, strict=True))
        for code in polytopes
    ]
    best = [s for s, shared in enumerate(paths) if shared == max(paths)]
    nearest = min(best, key=lambda s: (sum((x - centres[s]) ** 2), s))
    return nearest, max(paths), len(best) > 1


@pytest.mark.parametrize("widths", [(1,), (2, 3), (4, 1, 3), (3, 2, 2, 3)])
def test_masses_are_those_of_the_paths_enumerated(widths):
    rng = np.random.default_rng(3)
    layers = random_bits(rng, 9, widths)
    rows = list(zip(*layers, strict=True))
    kernel = np.array([[paths_shared(a, b) for b in rows] for a in rows])
    counts = rng.integers(0, 4, (9, 3))
    exponents = np.array([0.5, 1.0, 3.7])
    codes = pack_bits(layers)
    assert network.kernel_block(codes, codes) == pytest.approx(kernel, rel=1e-14)
    expected = np.array([(kernel**e) @ counts for e in exponents])
    assert masses(codes, counts, exponents) == pytest.approx(expected, rel=1e-13, abs=1e-300)


@pytest.mark.parametrize("widths", WIDTHS)
def test_masses_match_scipys_hamming_distances(widths):
    rng = np.random.default_rng(len(widths) + widths[0])
    layers = random_bits(rng, 70, widths)
    kernel = np.prod([1 - cdist(bits, bits, "hamming") for bits in layers], axis=0)
    counts = rng.integers(0, 3, (70, 2))
    exponents = default_exponents()
    expected = np.array([(kernel**e) @ counts for e in exponents])
    assert masses(pack_bits(layers), counts, exponents) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("widths", [(300, 64), (40,) * 60])
def test_an_exponent_weighs_the_same_in_any_grid(widths):
    rng = np.random.default_rng(0)
    codes = pack_bits(random_bits(rng, 100, widths))
    counts = rng.integers(0, 3, (100, 2))
    grid = default_exponents()
    whole = masses(codes, counts, grid)
    for places in ([0], [20, 3], [5, 5], list(range(17)), [*range(20, -1, -1)], [0, *range(21)]):
        part = masses(codes, counts, grid[places])
        assert part == pytest.approx(whole[places], rel=1e-12, abs=1e-300)


@pytest.mark.parametrize(
    ("grid", "n_vectors"),
    [
        (default_exponents(), 1),
        (default_exponents()[::-1], 1),
        (0.5 * 2.0 ** (np.arange(32) / 4), 1),
        (0.5 * 2.0 ** (np.arange(33) / 4), 5),
        (default_exponents()[:8], 1),
        (np.linspace(0.5, 50, 20), 3),
        (np.append(default_exponents(), 1.1), 3),
    ],
)
def test_a_grid_that_quadruples_takes_one_vector(grid, n_vectors):
    rng = np.random.default_rng(9)
    layers = random_bits(rng, 40, (50, 7))
    counts = rng.integers(0, 3, (40, 2))
    kernel = np.prod([1 - cdist(bits, bits, "hamming") for bits in layers], axis=0)
    assert network.prepare_masses(pack_bits(layers), counts, grid).table.shape[1] == n_vectors
    expected = np.array([(kernel**e) @ counts for e in grid])
    assert masses(pack_bits(layers), counts, grid) == pytest.approx(expected, rel=1e-12)


def test_duplicates_weigh_one_and_a_layer_without_an_equal_bit_weighs_nothing():
    ones, zeros = np.ones((1, 70), dtype=bool), np.zeros((1, 70), dtype=bool)
    codes = pack_bits([np.vstack([ones, ones, zeros]), np.ones((3, 5), dtype=bool)])
    counts = np.array([[2, 0], [0, 3], [7, 7]])
    expected = [[2, 3], [2, 3], [7, 7]]
    assert masses(codes, counts, [0.5, 50.0]).tolist() == [expected, expected]


def test_classes_without_rows_and_a_single_polytope():
    code = pack_bits([np.array([[True]])])
    assert masses(code, np.array([[0, 4, 0]]), [1.0]).tolist() == [[[0, 4, 0]]]
    assert not masses(code, np.array([[0, 0]]), [1.0]).any()


def test_a_hundred_thousand_terms_keep_twelve_digits():
    rng = np.random.default_rng(5)
    words = rng.integers(0, 2**63, (100_000, 2), dtype=np.uint64)
    codes = ActivationCodes(words, (64, 64))
    ones = np.ones((100_000, 1), dtype=np.int64)
    prepared = network.prepare_masses(codes, ones, default_exponents())
    got = network.masses_block(prepared, 7, 8)[:, 0, 0]
    equal = 64 - np.bitwise_count(words ^ words[7]).astype(float)
    for value, exponent in zip(got, default_exponents(), strict=True):
        terms = (equal / 64).prod(axis=1) ** exponent
        assert value == pytest.approx(math.fsum(terms), rel=1e-12)


def test_blocks_threads_and_pickles_leave_every_byte():
    rng = np.random.default_rng(1)
    codes = pack_bits(random_bits(rng, 300, (40, 130)))
    queries = pack_bits(random_bits(rng, 300, (40, 130)))
    counts = rng.integers(0, 3, (300, 4))
    x, centres = rng.normal(size=(2, 300, 3))
    spans = [(0, 1), (1, 64), (64, 129), (129, 300)]
    for block, prepared in [
        (network.masses_block, network.prepare_masses(codes, counts, default_exponents())),
        (network.nearest_block, network.prepare_nearest(queries, codes, x, centres)),
    ]:
        whole = block(prepared, 0, 300)
        sent = pickle.loads(pickle.dumps(prepared))
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(block, *zip(*((sent, *span) for span in spans), strict=True)))
        if isinstance(whole, tuple):
            joined = [np.concatenate(values) for values in zip(*parts, strict=True)]
            assert [a.tobytes() for a in joined] == [a.tobytes() for a in whole]
        else:
            assert np.concatenate(parts, axis=1).tobytes() == whole.tobytes()


def test_the_order_of_other_rows_does_not_leak_into_a_rows_own_sum():
    """A polytope's masses depend on the polytopes, not on the block that it is computed in."""
    rng = np.random.default_rng(2)
    codes = pack_bits(random_bits(rng, 200, (90,)))
    prepared = network.prepare_masses(codes, rng.integers(0, 2, (200, 2)), default_exponents())
    whole = network.masses_block(prepared, 0, 200)
    for row in (0, 63, 64, 199):
        alone = network.masses_block(prepared, row, row + 1)
        assert alone.tobytes() == whole[:, row : row + 1].tobytes()


@settings(max_examples=60, deadline=None)
@given(
    widths=st.lists(st.integers(1, 5), min_size=1, max_size=40),
    n_polytopes=st.integers(1, 70),
    seed=st.integers(0, 10**6),
)
def test_nearest_with_its_ties_is_that_of_brute_force(widths, n_polytopes, seed):
    rng = np.random.default_rng(seed)
    layers, asked = random_bits(rng, n_polytopes, widths), random_bits(rng, 6, widths)
    # small whole coordinates: many equal distances, and no rounding in them
    x, centres = rng.integers(0, 3, (6, 2)), rng.integers(0, 3, (n_polytopes, 2))
    prepared = network.prepare_nearest(
        pack_bits(asked), pack_bits(layers), x.astype(float), centres.astype(float)
    )
    index, kernel, tied = network.nearest_block(prepared, 0, 6)
    rows, polytopes = (list(zip(*bits, strict=True)) for bits in (asked, layers))
    for i, query in enumerate(rows):
        nearest, shared, several = exact_nearest(query, polytopes, x[i], centres)
        assert (index[i], bool(tied[i])) == (nearest, several)
        assert kernel[i] == pytest.approx(shared / math.prod(widths), rel=1e-14)


@pytest.mark.parametrize("first", [0, 1])
def test_products_that_float64_cannot_tell_apart_are_told_apart(first):
    """Two Prouhet-Tarry-Escott sets: products of six numbers near 3,000 that differ by 100,800."""
    sets = [(0, 5, 6, 16, 17, 22), (1, 2, 10, 12, 20, 21)]
    equal = 3000 + np.array([sets[first], sets[1 - first]])
    assert math.prod(equal[1 - first].tolist()) - math.prod(equal[first].tolist()) == 100_800
    width = 3100
    polytopes = [np.arange(width) < equal[:, [layer]] for layer in range(6)]
    queries = [np.ones((1, width), dtype=bool)] * 6
    prepared = network.prepare_nearest(
        pack_bits(queries), pack_bits(polytopes), np.zeros((1, 1)), np.zeros((2, 1))
    )
    index, _, tied = network.nearest_block(prepared, 0, 1)
    assert (index[0], tied[0]) == (1 - first, False)


def test_a_query_that_is_a_polytope_finds_it():
    rng = np.random.default_rng(8)
    codes = pack_bits(random_bits(rng, 500, (120, 65)))
    places = rng.normal(size=(500, 2))
    index, kernel, tied = network.nearest_block(
        network.prepare_nearest(codes, codes, places, places), 0, 500
    )
    assert index.tolist() == list(range(500))
    assert kernel.tolist() == [1.0] * 500
    assert not tied.any()


def test_no_compiler_is_loaded_before_a_block_is_computed():
    script = (
        "import sys; from kdcal_core.partition import _network;"
        "assert not {'numba', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_plain_processor_gives_the_same_bytes(tmp_path):
    """Vectors of eight become what the processor has; no sum changes its order with them."""
    script = """if True:
        import hashlib, numpy as np
        from kdcal_core.partition import _network as network, default_exponents, pack_bits
        rng = np.random.default_rng(0)
        codes = pack_bits([rng.random((200, width)) < 0.5 for width in (300, 65)])
        digest = hashlib.sha256()
        for grid in (default_exponents(), np.linspace(1, 9, 20)):
            prepared = network.prepare_masses(codes, rng.integers(0, 3, (200, 3)), grid)
            digest.update(network.masses_block(prepared, 0, 200).tobytes())
        x = rng.normal(size=(200, 30))
        last = codes.layers(1)
        prepared = network.prepare_nearest(last, last, x, x[::-1])
        for part in network.nearest_block(prepared, 0, 200):
            digest.update(part.tobytes())
        print(digest.hexdigest())
    """
    plain = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": "", "NUMBA_CACHE_DIR": tmp_path}
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            check=True,
            capture_output=True,
            env={**os.environ, **{name: str(value) for name, value in extra.items()}},
        ).stdout
        for extra in ({}, plain)
    }
    assert len(digests) == 1
