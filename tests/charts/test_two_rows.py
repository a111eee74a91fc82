"""Two rows in a forest and in a network: what is drawn is what they share."""

from __future__ import annotations

import numpy as np
import pytest
from texts.snapshot import Texts

from kdcal_core.charts import row_pair_chart
from kdcal_core.charts.two_rows import MOST_LAYERS, MOST_TREES, MOST_UNITS
from kdcal_core.partition import LeafCodes, pack_bits, row_pair


def marks(chart) -> dict[str, int]:
    """The number of marks of each name."""
    return {one.name: len(one.x) for one in chart.figure.data if one.mode == "markers"}


def forest(n_trees: int):
    leaves = np.random.default_rng(0).integers(0, 3, size=(2, n_trees)).astype(np.int32)
    return leaves, row_pair(LeafCodes(leaves), 0, 1)


@pytest.mark.parametrize("dark", [False, True])
def test_each_tree_is_a_line_or_a_fork(dark: bool, texts: Texts) -> None:
    leaves, pair = forest(30)
    chart = row_pair_chart(pair, (4, 1199), dark=dark)
    shared = int((leaves[0] == leaves[1]).sum())
    assert marks(chart) == {
        "Both rows": shared,
        "Row 5 alone": 30 - shared,
        "Row 1,200 alone": 30 - shared,
    }
    assert f"{shared} of 30 trees: K = {shared / 30:.3f}" in chart.finding
    table = chart.table()
    assert table["same"].tolist() == (leaves[0] == leaves[1]).tolist()
    assert table["leaf of row 5"].tolist() == leaves[0].tolist()
    if not dark:
        texts([chart.finding, chart.alt])


def test_of_many_trees_an_even_share_is_drawn_and_all_count() -> None:
    leaves, pair = forest(500)
    chart = row_pair_chart(pair, (0, 1), dark=False)
    drawn = leaves[:, ::5]
    shown = marks(chart)
    assert shown["Both rows"] == (drawn[0] == drawn[1]).sum()
    assert shown["Both rows"] + shown["Row 1 alone"] == MOST_TREES
    assert f"{(leaves[0] == leaves[1]).sum()} of 500 trees" in chart.finding
    assert chart.finding.endswith("100 of 500 trees are drawn.")
    assert len(chart.table()) == 500


def network(*widths: int):
    bits = [np.random.default_rng(width).random((2, width)) < 0.5 for width in widths]
    return bits, row_pair(pack_bits(bits), 0, 1)


def test_each_unit_is_marked_by_the_rows_it_is_on_for(texts: Texts) -> None:
    bits, pair = network(8, 6, 5)
    chart = row_pair_chart(pair, (0, 1), dark=False)
    one, other = (np.concatenate([layer[row] for layer in bits]) for row in (0, 1))
    assert marks(chart) == {
        "On for both": (one & other).sum(),
        "Off for both": (~one & ~other).sum(),
        "On for row 1 only": (one & ~other).sum(),
        "On for row 2 only": (other & ~one).sum(),
    }
    (lines,) = (trace for trace in chart.figure.data if trace.mode == "lines")
    equal = {
        (x, y) for trace in chart.figure.data[1:3] for x, y in zip(trace.x, trace.y, strict=True)
    }
    ends = [(x, y) for x, y in zip(lines.x, lines.y, strict=True) if not np.isnan(x)]
    assert ends
    assert set(ends) <= equal
    shares = [float((layer[0] == layer[1]).mean()) for layer in bits]
    assert f"K = {np.prod(shares):.3f}" in chart.finding
    said = [note.text for note in chart.figure.layout.annotations]
    assert [f"({share:.1%})" in text for share, text in zip(shares, said, strict=True)] == [
        True
    ] * 3
    assert chart.table().groupby("layer")["same"].mean().tolist() == pytest.approx(shares)
    texts([chart.finding, chart.alt, *said])


def test_a_large_network_is_cut_and_says_so() -> None:
    _, pair = network(*[70] * (MOST_LAYERS + 2))
    chart = row_pair_chart(pair, (0, 1), dark=False)
    assert sum(marks(chart).values()) == MOST_LAYERS * MOST_UNITS
    assert (
        f"At most {MOST_UNITS} units of a layer are drawn. The first 8 of 10 layers"
        in chart.finding
    )
    assert len(chart.table()) == 700


def test_a_layer_without_equal_units_has_no_path() -> None:
    opposite = np.array([[True, False], [False, True]])
    chart = row_pair_chart(row_pair(pack_bits([opposite, opposite]), 0, 1), (0, 1), dark=False)
    assert not [trace for trace in chart.figure.data if trace.mode == "lines"]
    assert "K = 0.000" in chart.finding


def test_a_row_with_itself_shares_everything() -> None:
    leaves, _ = forest(10)
    chart = row_pair_chart(row_pair(LeafCodes(leaves), 1, 1), (1, 1), dark=False)
    assert "10 of 10 trees: K = 1.000, geodesic distance 0.000" in chart.finding
    assert chart.table()["same"].all()
    assert len(chart.table().columns) == 4
