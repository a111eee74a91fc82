"""The network's blocks by torch: the same answers as the compiled ones, on any device."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kdcal_core.partition import _cuda, _network, default_exponents, pack_bits

torch = pytest.importorskip("torch")
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def random_codes(rng, n, widths):
    return pack_bits([rng.random((n, width)) < 0.6 for width in widths])


def assert_same_nearest(prepared, start, stop, device):
    one = _network.nearest_block(prepared, start, stop)
    other = _cuda.nearest_block(prepared, start, stop, device)
    assert [part.tolist() for part in one] == [part.tolist() for part in other]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("widths", [(1,), (64, 65), (1000, 3), (2049,), (300,) * 8])
def test_masses_agree(widths, device, monkeypatch):
    monkeypatch.setattr(_cuda, "COLUMNS", 2 * _network.LANES)
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 3, (150, 3))
    prepared = _network.prepare_masses(random_codes(rng, 150, widths), counts, default_exponents())
    expected = _network.masses_block(prepared, 11, 140)
    got = _cuda.masses_block(prepared, 11, 140, device)
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("device", DEVICES)
@settings(max_examples=30, deadline=None)
@given(
    widths=st.lists(st.sampled_from([1, 2, 3, 70]), min_size=1, max_size=30),
    n_polytopes=st.integers(1, 150),
    seed=st.integers(0, 10**6),
)
def test_nearest_agrees_to_the_last_tie(device, widths, n_polytopes, seed):
    rng = np.random.default_rng(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_cuda, "COLUMNS", 2 * _network.LANES)
        prepared = _network.prepare_nearest(
            random_codes(rng, 20, widths),
            random_codes(rng, n_polytopes, widths),
            rng.integers(0, 3, (20, 2)).astype(float),
            rng.integers(0, 3, (n_polytopes, 2)).astype(float),
        )
        assert_same_nearest(prepared, 2, 19, device)


@pytest.mark.parametrize("device", DEVICES)
def test_nearest_agrees_where_no_product_is_exact(device):
    rng = np.random.default_rng(4)
    widths = (2500,) * 7
    prepared = _network.prepare_nearest(
        random_codes(rng, 30, widths),
        random_codes(rng, 90, widths),
        rng.normal(size=(30, 2)),
        rng.normal(size=(90, 2)),
    )
    assert_same_nearest(prepared, 0, 30, device)


def test_torch_is_imported_only_where_it_may_pay():
    script = (
        "import sys; from kdcal_core.partition import _cuda;"
        "assert not _cuda.usable('cpu');"
        "assert not _cuda.usable('auto', 1000);"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_device_is_used_where_there_is_one():
    assert _cuda.usable("cuda") is torch.cuda.is_available()
    assert _cuda.usable("auto", _cuda.WORTH_IMPORTING) is torch.cuda.is_available()
    assert not _cuda.usable("cpu", _cuda.WORTH_IMPORTING)
