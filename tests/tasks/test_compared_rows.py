"""Two judged rows in a forest: the task's pairs against the leaves of the model's own trees."""

from __future__ import annotations

import json

import pytest
from small_reviews import quiet

from kdcal_core.errors import InputError
from kdcal_core.tasks import compared_rows
from kdcal_core.tasks.decorators import carry_out


def compared(forest, folder, **given):
    request = compared_rows.request(forest.workspace, forest.review.id, output_layer=None, **given)
    carry_out(**json.loads(json.dumps(request.kwargs)), folder=str(folder), progress=quiet)
    return compared_rows.read(folder).pairs


def test_the_pairs_are_rows_of_the_judged_set(forest, tmp_path):
    """Dey et al., Eq. 11, with the leaves that scikit-learn reports."""
    evaluation = forest.tables["evaluation"]
    leaves = forest.model.apply(evaluation[["a", "b"]])
    near, far = compared(forest, tmp_path)
    assert near.rows[0] == far.rows[0]
    for one in (near, far):
        first, second = one.rows
        equal = [a == b for a, b in zip(leaves[first], leaves[second], strict=True)]
        assert one.pair.same.tolist() == equal
        assert one.pair.kernel == pytest.approx(sum(equal) / 20)
        kinds = sorted(evaluation["kind"].unique())
        assert [kinds[label] for label in one.labels] == evaluation["kind"].iloc[
            [*one.rows]
        ].tolist()
    shared = [(leaves[near.rows[0]] == row).mean() for row in leaves]
    assert near.pair.kernel == pytest.approx(max(one for one in shared if one < 1))
    assert far.pair.kernel == pytest.approx(min(shared))


def test_two_chosen_rows(forest, tmp_path):
    (one,) = compared(forest, tmp_path, rows=[70, 3])
    leaves = forest.model.apply(forest.tables["evaluation"][["a", "b"]])
    assert one.rows == (70, 3)
    assert one.pair.kernel == pytest.approx((leaves[70] == leaves[3]).mean())


def test_a_row_that_does_not_exist(forest, tmp_path):
    with pytest.raises(InputError, match="no row 81 among the 80"):
        compared(forest, tmp_path, rows=[0, 80])
