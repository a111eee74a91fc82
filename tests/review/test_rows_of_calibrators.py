"""What calibrators read of a review: probabilities, features, and what stands aside."""

import io

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_table,
    add_training,
    create_review,
    review_data,
    score,
    set_roles,
    set_task,
    start_sample,
)

ROLES = Roles(target="label", outputs=(("no", "p_no"), ("yes", "p_yes")))
pytestmark = pytest.mark.usefixtures("work_here")


def csv(frame):
    return io.BytesIO(frame.to_csv(index=False).encode())


def rows(n=40, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n).round(6)
    return pd.DataFrame(
        {
            "age": np.where(rng.uniform(size=n) < 0.2, np.nan, rng.normal(size=n).round(6)),
            "p_no": 1 - p,
            "job": rng.choice(["cook", "smith"], n),
            "p_yes": p,
            "label": np.where(rng.uniform(size=n) < p, "yes", "no"),
            "site": rng.choice(["north", "south"], n),
        }
    )


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "home")


def made(workspace, roles, *, evaluation=None, training=None):
    review_id = create_review(workspace).id
    add_table(workspace, review_id, "calibration", csv(rows()), "rows.csv")
    if evaluation is not None:
        add_table(workspace, review_id, "evaluation", csv(evaluation), "more.csv")
    set_roles(workspace, review_id, roles)
    if training is not None:
        add_training(workspace, review_id, csv(training), "training.csv")
    score(workspace, review_id)
    return review_id


def test_features_stand_in_the_order_of_the_roles_as_they_are(workspace):
    roles = Roles(target="label", outputs=ROLES.outputs, features=("job", "age"))
    review_id = made(workspace, roles, evaluation=rows(30, 1), training=rows(50, 2))
    data = review_data(ReviewReader(workspace, review_id))
    assert data.classes == ("no", "yes")
    assert set(data.inputs) == {"calibration", "evaluation", "training"}
    for which, n, seed in (("calibration", 40, 0), ("evaluation", 30, 1), ("training", 50, 2)):
        want = rows(n, seed)
        got = data.inputs[which]
        assert list(got) == ["job", "age"]
        assert got["job"].tolist() == want["job"].tolist()
        np.testing.assert_array_equal(got["age"], want["age"])
        assert data.groups[which]["site"].tolist() == want["site"].tolist()
        assert list(data.groups[which]) == ["site"]
    np.testing.assert_allclose(data.calibration.proba[:, 1], rows()["p_yes"])
    assert data.evaluation.n_rows == 30
    features, labels = data.training
    assert features is data.inputs["training"]
    np.testing.assert_array_equal(labels, rows(50, 2)["label"] == "yes")
    assert data.model is None
    assert data.foreign == {}


def test_of_bare_predictions_every_column_without_a_role_that_all_tables_have(workspace):
    review_id = made(workspace, ROLES, evaluation=rows(30, 1).drop(columns="site"))
    data = review_data(ReviewReader(workspace, review_id))
    assert list(data.inputs["calibration"]) == list(data.inputs["evaluation"]) == ["age", "job"]
    assert list(data.groups["calibration"]) == ["site"]
    assert list(data.groups["evaluation"]) == []
    assert data.training is None


def test_predictions_alone_have_no_inputs(workspace):
    review_id = create_review(workspace).id
    frame = rows()[["p_no", "p_yes", "label"]]
    add_table(workspace, review_id, "calibration", csv(frame), "rows.csv")
    set_roles(workspace, review_id, ROLES)
    score(workspace, review_id)
    data = review_data(ReviewReader(workspace, review_id))
    assert data.inputs["calibration"].shape == (40, 0)
    assert data.evaluation is None


def test_the_model_and_the_foreign_rows_come_where_they_are_asked_for(workspace):
    review = start_sample(workspace, "xor_forest")
    sets = "calibration", "evaluation"
    bare = review_data(ReviewReader(workspace, review.id, sets), with_model=False)
    assert bare.model is None
    assert bare.training is None
    assert not bare.foreign
    data = review_data(ReviewReader(workspace, review.id), with_model=True)
    assert set(data.foreign) == set(review.foreign)
    some = data.inputs["calibration"].iloc[:20]
    np.testing.assert_allclose(
        data.model.predict_proba(some), data.calibration.proba[:20], atol=1e-12
    )
    for frame in data.foreign.values():
        assert list(frame) == list(some)


def test_a_regression_is_refused(workspace):
    review_id = create_review(workspace).id
    set_task(workspace, review_id, "regression")
    with pytest.raises(InputError, match="regression"):
        review_data(ReviewReader(workspace, review_id))
