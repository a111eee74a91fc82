"""From files to a scored review, and every way in which that can go wrong."""

import io
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import onnx
import pandas as pd
import pytest
import xgboost

from kdcal_core.data import Roles
from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled
from kdcal_core.models import load_model
from kdcal_core.review import (
    ReviewReader,
    Workspace,
    add_model,
    add_table,
    changes,
    create_review,
    read_review,
    score,
    set_roles,
    split_table,
)
from kdcal_core.review.samples import samples_root

DIGITS = samples_root() / "digits"
pytestmark = pytest.mark.usefixtures("work_here")


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "home")


@pytest.fixture
def review_id(workspace):
    return create_review(workspace).id


@pytest.fixture(scope="module")
def net_home(tmp_path_factory):
    """A workspace with one scored review of a network; tests only read it."""
    workspace = Workspace(tmp_path_factory.mktemp("home"))
    review_id = create_review(workspace).id
    add_model(workspace, review_id, DIGITS / "model.onnx", "my net.onnx")
    for which in ("calibration", "evaluation"):
        add_table(workspace, review_id, which, DIGITS / f"{which}.parquet", f"my {which}.parquet")
    return workspace, score(workspace, review_id)


def csv(frame: pd.DataFrame) -> io.BytesIO:
    return io.BytesIO(frame.to_csv(index=False).encode())


def predictions(n=60, seed=0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    p = np.round(rng.uniform(size=n), 6)
    label = np.where(rng.uniform(size=n) < p, "yes", "no")
    return pd.DataFrame({"proba_no": 1 - p, "proba_yes": p, "label": label})


ROLES = Roles(target="label", outputs=(("no", "proba_no"), ("yes", "proba_yes")))


def load_predictions(workspace, review_id, frame, name="my table.csv", roles=ROLES):
    add_table(workspace, review_id, "calibration", csv(frame), name)
    set_roles(workspace, review_id, roles)


def everything(workspace, review_id):
    """All but seals, of which there is one for each table."""
    names = sorted(path.name for path in workspace.folder(review_id).iterdir())
    seals = [name for name in names if name.endswith(".sha256")]
    assert seals == [f"{name}.sha256" for name in names if name.endswith(".arrow")]
    return [name for name in names if name not in seals]


def test_a_model_and_two_tables(net_home):
    workspace, review = net_home
    assert review.ready
    assert review.has_evaluation
    assert review.title == "my net.onnx"
    assert review.classes == tuple("0123456789")
    assert list(review.tables) == ["calibration", "evaluation"]
    assert review.tables["calibration"].name == "my calibration.parquet"
    assert review.roles.target == "digit"
    for which in ("calibration", "evaluation"):
        frame = pd.read_parquet(DIGITS / f"{which}.parquet")
        model = load_model(DIGITS / "model.onnx")
        scored = ReviewReader(workspace, review.id).scored(which)
        np.testing.assert_array_equal(scored.proba, model.predict_proba(frame))
        assert [review.classes[k] for k in scored.y] == frame[review.roles.target].astype(
            str
        ).tolist()
        assert scored.digest == review.sets[which].digest
        assert not scored.proba.flags.writeable
        assert review.accuracy[which] == np.mean(scored.proba.argmax(axis=1) == scored.y)
        found = ReviewReader(workspace, review.id).frame(which)
        pd.testing.assert_frame_equal(found, frame, check_dtype=False)


def test_it_is_there_after_a_restart(net_home):
    workspace, review = net_home
    assert read_review(Workspace(workspace.root), review.id) == review


def test_only_what_the_review_refers_to_is_kept(net_home):
    workspace, review = net_home
    expected = {"review.json", review.model_file}
    expected |= {table.file for table in review.tables.values()}
    expected |= {one.folder for one in review.sets.values()}
    assert set(everything(workspace, review.id)) == expected


def test_fitness_is_that_of_the_scored_rows(net_home):
    workspace, review = net_home
    found = ReviewReader(workspace, review.id).fitness("evaluation")
    assert found.n_rows == 600
    assert found.accuracy == review.accuracy["evaluation"]


def test_predictions_only(workspace, review_id):
    frame = predictions()
    load_predictions(workspace, review_id, frame)
    review = score(workspace, review_id)
    scored = ReviewReader(workspace, review_id).scored("calibration")
    assert review.model is None
    assert review.classes == ("no", "yes")
    assert not review.has_evaluation
    np.testing.assert_allclose(scored.proba[:, 1], frame["proba_yes"], atol=1e-12)
    assert scored.y.tolist() == (frame["label"] == "yes").astype(int).tolist()


def test_one_column_for_the_positive_class_of_two(workspace, review_id):
    frame = predictions().drop(columns="proba_no")
    load_predictions(
        workspace, review_id, frame, roles=Roles(target="label", outputs=(("yes", "proba_yes"),))
    )
    review = score(workspace, review_id)
    assert review.classes == ("no", "yes")
    scored = ReviewReader(workspace, review_id).scored("calibration")
    np.testing.assert_allclose(scored.proba[:, 1], frame["proba_yes"], atol=1e-12)


def test_one_column_of_a_sorted_table_with_long_labels(workspace, review_id):
    long = "a very long name of a class that no column of examples would show whole: "
    n = 11_000
    label = [f"{long}yes"] * n + [f"{long}no"] * 10
    frame = pd.DataFrame({"p": np.linspace(0, 1, n + 10), "label": label})
    add_table(workspace, review_id, "calibration", csv(frame), "t.csv")
    review = score(workspace, review_id)
    # whose class only the rows say: the column is highest where the label is "no"
    assert review.classes == (f"{long}yes", f"{long}no")
    assert review.roles.class_by == "rows"


def test_one_column_of_a_class_that_the_target_lacks(workspace, review_id):
    frame = predictions().drop(columns="proba_no")
    roles = Roles(target="label", outputs=(("Ja", "proba_yes"),))
    load_predictions(workspace, review_id, frame, roles=roles)
    with pytest.raises(InputError, match="'Ja' that is not among the classes") as caught:
        score(workspace, review_id)
    assert (caught.value.file, caught.value.column) == ("my table.csv", "proba_yes")


@pytest.mark.parametrize("model", ["net.onnx", "trees.json"])
def test_a_value_beyond_single_precision_is_reported_with_its_place(
    workspace, review_id, tmp_path, model
):
    path = tmp_path / model
    if model == "net.onnx":
        path.write_bytes(_small_net())
    else:
        rng = np.random.default_rng(0)
        data = xgboost.DMatrix(rng.normal(size=(50, 2)), rng.integers(0, 2, 50))
        xgboost.train({"objective": "binary:logistic"}, data, 2).save_model(path)
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "z": [0.0, 1.0, 1e300], "y": [0, 1, 0]})
    add_model(workspace, review_id, path, model)
    add_table(workspace, review_id, "calibration", csv(frame), "t.csv")
    set_roles(workspace, review_id, Roles(target="y", features=("x", "z")))
    with pytest.raises(InputError, match="too large") as caught:
        score(workspace, review_id)
    assert (caught.value.file, caught.value.column, caught.value.row) == ("t.csv", "z", 3)


def _small_net() -> bytes:
    """softmax(x W), its inputs without names."""
    weight = onnx.numpy_helper.from_array(np.eye(2, dtype=np.float32), "W")
    nodes = [
        onnx.helper.make_node("MatMul", ["X", "W"], ["z"]),
        onnx.helper.make_node("Softmax", ["z"], ["p"], axis=1),
    ]
    x, p = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 2]) for name in "Xp"
    )
    graph = onnx.helper.make_graph(nodes, "g", [x], [p], [weight])
    opsets = [onnx.helper.make_opsetid("", 17)]
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_a_stray_word_among_the_numbers_of_a_nameless_feature(workspace, review_id, tmp_path):
    (tmp_path / "net.onnx").write_bytes(_small_net())
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0], "z": [0.0, "oops", 2.0], "y": [0, 1, 0]})
    add_model(workspace, review_id, tmp_path / "net.onnx", "net.onnx")
    add_table(workspace, review_id, "calibration", csv(frame), "t.csv")
    set_roles(workspace, review_id, replace(read_review(workspace, review_id).roles, target="y"))
    with pytest.raises(InputError, match="'oops'") as caught:
        score(workspace, review_id)
    assert (caught.value.file, caught.value.column, caught.value.row) == ("t.csv", "z", 2)


def test_rows_deleted_behind_the_app_are_reported(workspace, review_id):
    load_predictions(workspace, review_id, predictions())
    review = score(workspace, review_id)
    folder = workspace.folder(review_id)
    (folder / review.sets["calibration"].folder / "proba.npy").unlink()
    (folder / review.tables["calibration"].file).unlink()
    for step in (
        lambda: ReviewReader(workspace, review_id).scored("calibration"),
        lambda: ReviewReader(workspace, review_id).frame("calibration"),
        lambda: score(workspace, review_id),
    ):
        with pytest.raises(InputError, match="no longer kept"):
            step()


def _damage(content):
    """An array's file as an accident, a full disk or somebody else may leave it."""
    array = np.load(io.BytesIO(content))
    other = io.BytesIO()
    np.save(other, np.array([{}], dtype=object), allow_pickle=True)
    for changed in (array[:-1], array.astype(np.float32), array - 2, array[:, None]):
        file = io.BytesIO()
        np.save(file, changed)
        yield file.getvalue()
    huge = content.replace(str(len(array)).encode(), str(10**15).encode(), 1)
    yield from (content[:-5], content[:40], b"", b"PK\x03\x04", b"junk", huge, other.getvalue())


@pytest.mark.parametrize("name", ["proba.npy", "y.npy", "weight.npy"])
def test_damaged_arrays_are_reported(workspace, review_id, name):
    load_predictions(workspace, review_id, predictions().assign(w=np.arange(1.0, 61.0)))
    set_roles(workspace, review_id, replace(ROLES, weight="w"))
    info = score(workspace, review_id).sets["calibration"]
    path = workspace.folder(review_id) / info.folder / name
    whole = path.read_bytes()
    for damaged in _damage(whole):
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=f"{name} of the review {review_id} is damaged"):
            ReviewReader(workspace, review_id).scored("calibration")
    path.write_bytes(whole)
    assert ReviewReader(workspace, review_id).scored("calibration").n_rows == 60


@pytest.mark.parametrize("kept", [0, 100, 1_000_000])
def test_a_damaged_table_is_reported(workspace, review_id, kept):
    load_predictions(workspace, review_id, predictions())
    review = read_review(workspace, review_id)
    path = workspace.folder(review_id) / review.tables["calibration"].file
    path.write_bytes(path.read_bytes()[:kept][:-9])
    with pytest.raises(InputError, match="damaged"):
        ReviewReader(workspace, review_id).frame("calibration")


def test_weights_arrive_and_count_in_the_digest(workspace, review_id):
    frame = predictions().assign(w=np.arange(1.0, 61.0))
    load_predictions(workspace, review_id, frame)
    plain = score(workspace, review_id).sets["calibration"].digest
    assert ReviewReader(workspace, review_id).scored("calibration").weight is None
    set_roles(workspace, review_id, replace(ROLES, weight="w"))
    weighted = score(workspace, review_id).sets["calibration"].digest
    found = ReviewReader(workspace, review_id).scored("calibration")
    assert found.weight.tolist() == frame["w"].tolist()
    assert plain != weighted


def test_changing_roles_takes_the_scores_away_and_the_same_roles_do_not(workspace, review_id):
    load_predictions(workspace, review_id, predictions())
    assert score(workspace, review_id).ready
    assert set_roles(workspace, review_id, ROLES).ready
    assert not set_roles(workspace, review_id, replace(ROLES, output_kind="logit")).scored
    with pytest.raises(InputError, match="not been scored"):
        ReviewReader(workspace, review_id).scored("calibration")


def test_a_split_column_divides_the_rows(workspace, review_id, texts):
    frame = predictions(90).assign(part=["train", "cal", "test"] * 30)
    load_predictions(workspace, review_id, frame, roles=replace(ROLES, split="part"))
    review = split_table(workspace, review_id)
    assert {which: one.n_rows for which, one in review.tables.items()} == {
        "calibration": 30,
        "evaluation": 30,
    }
    texts(review.notes[-1])
    assert review.training.n_rows == 30
    kept = ReviewReader(workspace, review_id).frame("training")
    expected = frame[frame["part"] == "train"].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, expected, check_dtype=False)
    assert review.roles.split is None
    assert review.tables["calibration"].digest != review.tables["evaluation"].digest
    review = score(workspace, review_id)
    y = ReviewReader(workspace, review_id).scored("evaluation").y
    expected = frame["label"][frame["part"] == "test"]
    assert [review.classes[k] for k in y] == expected.tolist()
    with pytest.raises(InputError, match="no table to divide"):
        split_table(workspace, review_id)


@pytest.mark.parametrize(("which", "row"), [("cal", 41), ("test", 42)])
def test_a_fault_after_dividing_names_the_row_of_the_file(workspace, review_id, which, row):
    frame = predictions(90).assign(part=["train", "cal", "test"] * 30)
    frame.loc[row - 1, "proba_yes"] = 7.0
    assert frame.loc[row - 1, "part"] == which
    load_predictions(workspace, review_id, frame, roles=replace(ROLES, split="part"))
    split_table(workspace, review_id)
    with pytest.raises(InputError, match="above 1") as caught:
        score(workspace, review_id)
    assert (caught.value.column, caught.value.row) == ("proba_yes", row)


@pytest.mark.usefixtures("real_workers")
@pytest.mark.parametrize("first", ["model", "table"])
def test_files_added_at_once_know_of_each_other(workspace, review_id, first):
    adult = DIGITS.parent / "adult"
    steps_ = {
        "model": partial(add_model, workspace, review_id, adult / "model.json", "m.json"),
        "table": partial(
            add_table,
            *(workspace, review_id, "calibration", adult / "calibration.parquet", "c.parquet"),
        ),
    }
    threads = [threading.Thread(target=steps_.pop(first))]
    threads += [threading.Thread(target=step) for step in steps_.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    review = read_review(workspace, review_id)
    assert review.roles.features == review.model.feature_names


def test_a_step_that_waits_for_another_can_be_cancelled(workspace, review_id):
    with changes.one_file_at_a_time(workspace, review_id, None), pytest.raises(Cancelled):
        add_model(*(workspace, review_id, DIGITS / "model.onnx", "m.onnx"), cancelled=lambda: True)
    assert everything(workspace, review_id) == ["review.json"]


def test_a_split_without_calibration_rows_is_refused(workspace, review_id):
    frame = predictions().assign(part="test")
    load_predictions(workspace, review_id, frame, roles=replace(ROLES, split="part"))
    before = everything(workspace, review_id)
    with pytest.raises(InputError, match="no row for calibration") as caught:
        split_table(workspace, review_id)
    assert (caught.value.file, caught.value.column) == ("my table.csv", "part")
    assert everything(workspace, review_id) == before


@pytest.mark.parametrize("name", ["model.pkl", "model.joblib", "innocent.onnx"])
def test_pickles_are_refused_before_anything_is_kept(workspace, review_id, name):
    with pytest.raises(InputError, match="pickle") as caught:
        add_model(workspace, review_id, io.BytesIO(b"\x80\x04\x95" + bytes(50)), name)
    assert caught.value.file == name
    assert everything(workspace, review_id) == ["review.json"]


@pytest.mark.usefixtures("real_workers")
@pytest.mark.parametrize("name", ["a.onnx", "b.skops", "c.json", "d.txt", "e.pt2", "f"])
def test_what_is_no_model_names_the_file_and_leaves_nothing(workspace, review_id, name):
    with pytest.raises(InputError) as caught:
        add_model(workspace, review_id, io.BytesIO(b"not a model at all"), name)
    assert caught.value.file == name
    assert everything(workspace, review_id) == ["review.json"]


@pytest.mark.usefixtures("real_workers")
@pytest.mark.parametrize("content", [b"", b"\n\n", b"\x00\x01\x02" * 100, b"PAR1" + bytes(40)])
def test_what_is_no_table_names_the_file_and_leaves_nothing(workspace, review_id, content):
    with pytest.raises(InputError) as caught:
        add_table(workspace, review_id, "calibration", io.BytesIO(content), "bad <b>.csv")
    assert caught.value.file == "bad <b>.csv"
    assert everything(workspace, review_id) == ["review.json"]


def spoil(column, row, value):
    def change(frame):
        frame = frame.astype({column: object})
        frame.loc[row - 1, column] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "words", "column", "row"),
    [
        (spoil("label", 7, "maybe"), "unknown", "label", 7),
        (spoil("label", 8, None), "missing", "label", 8),
        (spoil("proba_yes", 9, 0.123), "sum to", None, 9),
        (spoil("proba_yes", 10, None), "missing", "proba_yes", 10),
        (lambda frame: frame.assign(label="no"), "only the class 'no'", "label", None),
    ],
)
def test_bad_rows_are_found_when_scoring_and_nothing_is_lost(
    workspace, review_id, change, words, column, row
):
    load_predictions(workspace, review_id, change(predictions()))
    before, kept = read_review(workspace, review_id), everything(workspace, review_id)
    with pytest.raises(InputError, match=words) as caught:
        score(workspace, review_id)
    place = (caught.value.file, caught.value.column, caught.value.row)
    assert place == ("my table.csv", column, row)
    assert read_review(workspace, review_id) == before
    assert everything(workspace, review_id) == kept


def test_a_bad_feature_value_names_the_table_column_and_row(workspace, review_id):
    frame = pd.read_parquet(DIGITS / "calibration.parquet")
    frame = frame.astype(float)
    frame.loc[41, "pixel_1_2"] = np.inf
    add_model(workspace, review_id, DIGITS / "model.onnx", "m.onnx")
    add_table(workspace, review_id, "calibration", csv(frame), "rows.csv")
    with pytest.raises(InputError, match="infinite") as caught:
        score(workspace, review_id)
    place = (caught.value.file, caught.value.column, caught.value.row)
    assert place == ("rows.csv", "pixel_1_2", 42)


def test_a_failed_score_keeps_the_scores_before(workspace, review_id, monkeypatch):
    load_predictions(workspace, review_id, predictions())
    scored = score(workspace, review_id)

    def broken(*args, **kwargs):
        raise InputError("It broke")

    monkeypatch.setattr(changes, "run_limited", broken)
    with pytest.raises(InputError, match="It broke"):
        score(workspace, review_id)
    assert read_review(workspace, review_id) == scored
    assert ReviewReader(workspace, review_id).scored("calibration").n_rows == 60


def test_a_change_while_scoring_throws_the_result_away(workspace, review_id, monkeypatch):
    load_predictions(workspace, review_id, predictions())
    run = changes.run_limited

    def meanwhile(*args, **kwargs):
        reply = run(*args, **kwargs)
        set_roles(workspace, review_id, replace(ROLES, output_kind="logit"))
        return reply

    monkeypatch.setattr(changes, "run_limited", meanwhile)
    with pytest.raises(InputError, match="changed meanwhile"):
        score(workspace, review_id)
    assert not read_review(workspace, review_id).scored
    assert len(everything(workspace, review_id)) == 2


@pytest.mark.usefixtures("real_workers")
def test_cancel_leaves_no_trace(workspace, review_id):
    load_predictions(workspace, review_id, predictions())
    kept = everything(workspace, review_id)
    with pytest.raises(Cancelled):
        score(workspace, review_id, cancelled=lambda: True)
    with pytest.raises(Cancelled):
        add_table(
            workspace, review_id, "evaluation", csv(predictions()), "e.csv", cancelled=lambda: True
        )
    assert everything(workspace, review_id) == kept


@pytest.mark.parametrize(
    "reply",
    [
        {"table": {"name": "x"}, "roles": {}},
        [],
        {"table": None, "roles": None},
        {},
    ],
)
def test_a_hostile_reply_is_refused(workspace, review_id, monkeypatch, reply):
    monkeypatch.setattr(changes, "run_limited", lambda *args, **kwargs: reply)
    with pytest.raises(InputError, match="malformed reply"):
        add_table(workspace, review_id, "calibration", io.BytesIO(b"x"), "t.csv")
    assert everything(workspace, review_id) == ["review.json"]


def test_a_hostile_reply_cannot_name_files(workspace, review_id, monkeypatch):
    load_predictions(workspace, review_id, predictions())
    outside = workspace.root / "precious"
    outside.write_text("kept")
    run = changes.run_limited

    def hostile(*args, **kwargs):
        reply = run(*args, **kwargs)
        reply["calibration"]["folder"] = "../precious"
        return reply

    monkeypatch.setattr(changes, "run_limited", hostile)
    score(workspace, review_id)
    assert ReviewReader(workspace, review_id).scored("calibration").n_rows == 60
    set_roles(workspace, review_id, replace(ROLES, output_kind="logit"))
    assert outside.read_text() == "kept"


def test_the_evaluation_table_needs_the_same_columns(workspace, review_id):
    load_predictions(workspace, review_id, predictions())
    kept = everything(workspace, review_id)
    other = csv(predictions().rename(columns={"proba_yes": "p"}))
    with pytest.raises(InputError, match="lacks a column") as caught:
        add_table(workspace, review_id, "evaluation", other, "other.csv")
    assert (caught.value.file, caught.value.column) == ("other.csv", "proba_yes")
    assert everything(workspace, review_id) == kept
    assert add_table(
        workspace, review_id, "evaluation", csv(predictions(20, seed=1)), "e.csv"
    ).has_evaluation


def test_a_new_calibration_table_drops_an_evaluation_table_that_does_not_fit(workspace, review_id):
    load_predictions(workspace, review_id, predictions())
    add_table(workspace, review_id, "evaluation", csv(predictions(20)), "e.csv")
    other = csv(predictions().rename(columns={"label": "target"}))
    review = add_table(workspace, review_id, "calibration", other, "new.csv")
    assert list(review.tables) == ["calibration"]
    assert "dropped" in review.notes[-1]


@pytest.mark.parametrize(
    ("roles", "classes", "words"),
    [
        (replace(ROLES, target="gone"), None, "lacks a column"),
        (replace(ROLES, weight="label"), None, "two roles"),
        (ROLES, ("a",), "1 class names, but 2 outputs"),
        (ROLES, ("a", "a"), "occurs twice"),
    ],
)
def test_wrong_roles_are_refused_and_the_old_ones_stay(workspace, review_id, roles, classes, words):
    load_predictions(workspace, review_id, predictions())
    with pytest.raises(InputError, match=words):
        set_roles(workspace, review_id, roles, classes)
    assert read_review(workspace, review_id).roles == ROLES


def test_scoring_says_what_is_missing(workspace, review_id):
    with pytest.raises(InputError, match="no calibration table"):
        score(workspace, review_id)
    load_predictions(workspace, review_id, predictions(), roles=replace(ROLES, target=None))
    with pytest.raises(InputError, match="true class"):
        score(workspace, review_id)
    set_roles(workspace, review_id, Roles(target="label"))
    with pytest.raises(InputError, match="neither a model nor a probability"):
        score(workspace, review_id)


@pytest.mark.usefixtures("real_workers")
def test_progress_reaches_one(workspace, review_id):
    add_model(workspace, review_id, DIGITS / "model.onnx", "m.onnx")
    add_table(workspace, review_id, "calibration", DIGITS / "calibration.parquet", "c.parquet")
    seen = []
    score(workspace, review_id, progress=lambda share, note: seen.append((share, note)))
    assert seen[-1] == (1.0, "600 of 600 rows")


def test_what_the_reader_warns_of_stands_in_the_notes(workspace, review_id, monkeypatch):
    run = changes.run_limited

    def warning(*args, **kwargs):
        return {**run(*args, **kwargs), "notes": ["It is of another version."]}

    monkeypatch.setattr(changes, "run_limited", warning)
    review = add_model(workspace, review_id, DIGITS / "model.onnx", "m.onnx")
    assert review.notes == ("It is of another version.",)


def test_files_are_private(net_home):
    workspace, review = net_home
    folder = workspace.folder(review.id)
    for path in (folder, folder / review.sets["calibration"].folder):
        assert path.stat().st_mode & 0o077 == 0
