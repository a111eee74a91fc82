import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kdcal_core.partition import pack_bits

widths = st.lists(st.integers(1, 150), min_size=1, max_size=4)


@given(widths=widths, n_rows=st.integers(1, 5), seed=st.integers(0, 2**16))
def test_every_bit_stands_where_the_docstring_says(widths, n_rows, seed):
    rng = np.random.default_rng(seed)
    layers = [rng.random((n_rows, width)) < 0.5 for width in widths]
    codes = pack_bits(layers)
    assert codes.layer_widths == tuple(widths)
    assert len(codes) == n_rows
    for layer, columns in zip(layers, codes.layer_slices(), strict=True):
        words = codes.words[:, columns]
        for row in range(n_rows):
            for j in range(layer.shape[1]):
                assert (int(words[row, j // 64]) >> (j % 64)) & 1 == layer[row, j]
        used = int(layer.sum())
        assert int(np.bitwise_count(words).sum()) == used


@given(widths=widths, seed=st.integers(0, 2**16))
def test_share_of_equal_bits_by_popcount_is_the_share_of_equal_units(widths, seed):
    rng = np.random.default_rng(seed)
    layers = [rng.random((2, width)) < 0.5 for width in widths]
    codes = pack_bits(layers)
    for layer, columns in zip(layers, codes.layer_slices(), strict=True):
        differing = np.bitwise_count(codes.words[0, columns] ^ codes.words[1, columns]).sum()
        assert differing == (layer[0] != layer[1]).sum()
