"""Column roles: guessed right on tables as people make them, checked before use."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import (
    Roles,
    Table,
    check_roles,
    feature_frame,
    guess_roles,
    numeric_matrix,
    output_matrix,
    table_from_frame,
    target_labels,
    weight_column,
)
from kdcal_core.errors import InputError

RNG = np.random.default_rng(0)
N = 200


def outputs(names: list[str], *, logits: bool = False) -> dict[str, np.ndarray]:
    values = RNG.dirichlet(np.ones(len(names)), N)
    values = 5 * np.log(values) if logits else values
    return dict(zip(names, values.T, strict=True))


def labels(*names: object) -> np.ndarray:
    return np.resize(np.array(names, dtype=object), N)


@pytest.mark.parametrize("prefix", ["proba_", "prob_", "p_", "probability_", "Proba ", "score_"])
def test_outputs_by_prefix(prefix: str) -> None:
    frame = pd.DataFrame({"x": RNG.normal(size=N), "y": labels("cat", "dog", "owl")})
    columns = [f"{prefix}{name}" for name in ("owl", "cat", "dog")]
    frame = frame.assign(**outputs(columns))
    roles = guess_roles(frame)
    assert roles.target == "y"
    assert dict(roles.outputs) == {
        "cat": f"{prefix}cat",
        "dog": f"{prefix}dog",
        "owl": f"{prefix}owl",
    }
    assert [name for name, _ in roles.outputs] == ["cat", "dog", "owl"]
    assert roles.output_kind == "probability"
    assert roles.features == ("x",)


def test_outputs_follow_the_models_order() -> None:
    frame = pd.DataFrame({**outputs(["p_a", "p_b"]), "y": labels("a", "b")})
    assert guess_roles(frame, classes=("b", "a")).outputs == (("b", "p_b"), ("a", "p_a"))


def test_counted_outputs_get_the_class_names() -> None:
    for first in (0, 1):
        columns = [f"proba_{first + i}" for i in range(12)]
        names = tuple(f"c{i:02d}" for i in range(12))
        frame = pd.DataFrame({**outputs(columns), "label": labels(*names)})
        assert guess_roles(frame).outputs == tuple(zip(names, columns, strict=True))


def test_outputs_named_as_classes() -> None:
    frame = pd.DataFrame({"y": labels(0, 1, 2), **outputs(["0", "1", "2"])})
    assert guess_roles(frame).outputs == (("0", "0"), ("1", "1"), ("2", "2"))


def test_logits() -> None:
    frame = pd.DataFrame({"y": labels(0, 1), **outputs(["logit_0", "logit_1"], logits=True)})
    assert guess_roles(frame).output_kind == "logit"
    frame = pd.DataFrame({"y": labels(0, 1), **outputs(["score_0", "score_1"], logits=True)})
    assert guess_roles(frame).output_kind == "logit"


@pytest.mark.parametrize("name", ["proba", "p_1", "prob_1", "score", "p_yes", "y_prob"])
def test_single_output(name: str) -> None:
    frame = pd.DataFrame({"y": labels("no", "yes"), name: RNG.random(N)})
    assert guess_roles(frame).outputs == (("yes", name),)


@pytest.mark.parametrize("prefix", ["p", "proba", "score"])
@pytest.mark.parametrize(
    ("names", "present"), [("abc", "ac"), ("012", "02"), ("123", "13"), ("犬猫鳥", "犬鳥")]
)
def test_a_class_without_rows_keeps_its_output(prefix: str, names: str, present: str) -> None:
    columns = [f"{prefix}_{name}" for name in names]
    frame = pd.DataFrame({**outputs(columns), "y": labels(*present)})
    assert guess_roles(frame).outputs == tuple(zip(names, columns, strict=True))


def test_a_stray_column_of_the_same_prefix_is_no_class() -> None:
    columns = ["proba_a", "proba_b"]
    frame = pd.DataFrame({**outputs(columns), "proba_max": 0.7, "y": labels("a", "b")})
    assert guess_roles(frame).outputs == (("a", "proba_a"), ("b", "proba_b"))


def test_outputs_that_do_not_sum_to_one_are_all_outputs_for_the_checks_to_refuse() -> None:
    frame = pd.DataFrame({"p_a": 0.4, "p_b": 0.5, "y": labels("a", "b")})
    assert guess_roles(frame).outputs == (("a", "p_a"), ("b", "p_b"))


@pytest.mark.parametrize(
    ("column", "present", "named"),
    [("p_1", "12", "1"), ("p_2", "12", "2"), ("p_0", "01", "0"), ("p_a", "ab", "a")],
)
def test_a_single_output_speaks_of_the_class_it_names(
    column: str, present: str, named: str
) -> None:
    frame = pd.DataFrame({column: np.linspace(0, 1, 40), "y": labels(*present)[:40]})
    assert guess_roles(frame).outputs == ((named, column),)


def test_several_single_outputs_are_no_guess() -> None:
    halves = np.linspace(0, 1, 40)
    frame = pd.DataFrame({"p_1": halves, "p_2": halves, "p_3": 0.1, "y": labels("a", "b")[:40]})
    assert guess_roles(frame).outputs == ()


def test_features_that_look_like_outputs() -> None:
    frame = pd.DataFrame(
        {"p_value": RNG.normal(size=N), "p_height": RNG.normal(size=N), "y": labels(0, 1)}
    )
    roles = guess_roles(frame)
    assert roles.outputs == ()
    assert roles.features == ("p_value", "p_height")


def test_all_single_roles() -> None:
    frame = pd.DataFrame(
        {
            "id": np.arange(N),
            "a": RNG.normal(size=N),
            "weight": RNG.random(N),
            "Diagnosis": labels("B", "M"),
            "y_pred": labels("B", "M"),
            "split": labels("cal", "Test"),
            "sample_weight": RNG.random(N) + 0.1,
            "note": labels("u", "v", "w"),
        }
    )
    roles = guess_roles(frame, n_features=2)
    assert roles == Roles(
        target="Diagnosis",
        features=("a", "weight"),
        predicted="y_pred",
        split="split",
        weight="sample_weight",
    )
    assert guess_roles(frame.assign(split=labels("x", "y"))).split is None


def test_features_by_name_are_never_taken_for_another_role() -> None:
    frame = pd.DataFrame({"class": [1, 2, 3] * 4, "b": range(12), "grade": labels("x", "y")[:12]})
    roles = guess_roles(frame, classes=("x", "y"), feature_names=("b", "gone", "class"))
    assert roles.features == ("b", "class")
    assert roles.target == "grade"


def test_target_by_content() -> None:
    frame = pd.DataFrame({"kind": labels("a", "b"), "x": RNG.normal(size=N)})
    assert guess_roles(frame).target == "kind"
    assert guess_roles(frame[["x"]]).target is None
    assert guess_roles(frame, classes=("u", "v")).target is None


@pytest.mark.parametrize("held", [("a",), ("a", "b", "c")], ids=["one class", "one unknown"])
def test_a_target_with_one_class_or_an_unknown_one_is_found_for_the_checks_to_refuse(
    held: tuple[str, ...],
) -> None:
    frame = pd.DataFrame({"x": RNG.normal(size=N), "result": labels(*held), "kind": "z"})
    assert guess_roles(frame, classes=("a", "b"), feature_names=("x",)).target == "result"
    predictions = frame.assign(**outputs(["p_a", "p_b"]))
    assert guess_roles(predictions).target == "result"
    assert guess_roles(predictions.drop(columns="result")).target is None


def test_one_output_beside_a_target_of_one_class() -> None:
    frame = pd.DataFrame({"prob_1": RNG.random(N), "y": 1})
    assert guess_roles(frame).outputs == (("1", "prob_1"),)


FRAME = pd.DataFrame(
    {"a": [1.0, 2.0, 3.0], "b": [4, 5, 6], "y": ["u", "v", "u"], "p": [0.25, 0.5, 1.0]}
)
ROLES = Roles(target="y", features=("a", "b"))


def fault(frame: pd.DataFrame, roles: Roles, **options: object) -> InputError:
    options = {"needs_outputs": False, **options}
    with pytest.raises(InputError) as caught:
        check_roles(frame, roles, file="f.csv", **options)
    assert caught.value.file == "f.csv"
    return caught.value


def test_good_roles_pass() -> None:
    check_roles(FRAME, ROLES, n_features=2, needs_outputs=False)
    check_roles(FRAME, ROLES, feature_names=("b", "a"), needs_outputs=False)
    single = replace(ROLES, outputs=(("v", "p"),))
    check_roles(FRAME, single, classes=("u", "v"), needs_outputs=True)


def test_bad_roles() -> None:
    assert "target" in fault(FRAME, Roles(features=("a",))).what
    assert fault(FRAME, replace(ROLES, weight="w")).column == "w"
    assert fault(FRAME, replace(ROLES, weight="a")).column == "a"
    error = fault(FRAME, ROLES, feature_names=("a", "b", "c", "d"))
    assert "2 features" in error.what
    assert "'c' and 'd'" in error.what
    error = fault(FRAME, ROLES, n_features=3)
    assert "3 features, but 2" in error.what
    assert (
        "2 features, but 3"
        in fault(FRAME, replace(ROLES, features=("a", "b", "p")), feature_names=("a", "b")).what
    )
    assert "only the class 'u'" in fault(FRAME.assign(y="u"), ROLES).what
    assert "no label" in fault(FRAME.assign(y=None), ROLES).what
    assert "outputs" in fault(FRAME, ROLES, needs_outputs=True).what


def test_text_among_numbers() -> None:
    frame = FRAME.assign(a=["1", "oops", "3"])
    error = fault(frame, ROLES)
    assert (error.column, error.row) == ("a", 2)
    check_roles(FRAME.assign(a=["red", "blue", "red"]), ROLES, needs_outputs=False)


def test_outputs_must_match_the_classes() -> None:
    roles = replace(ROLES, features=(), outputs=(("u", "a"), ("w", "b")))
    options = {"classes": ("u", "v"), "needs_outputs": True}
    assert fault(FRAME, roles, **options).column == "b"
    roles = replace(roles, outputs=(("u", "a"), ("v", "b")))
    assert "'w'" in fault(FRAME, roles, classes=("u", "v", "w"), needs_outputs=True).what


def test_target_labels() -> None:
    table = table_from_frame(FRAME, "t.csv")
    assert target_labels(table, ROLES, ("v", "u")).tolist() == [1, 0, 1]
    with pytest.raises(InputError, match=r"t\.csv.*'y', row 2"):
        target_labels(table, ROLES, ("u", "x"))


def test_output_matrix() -> None:
    frame = pd.DataFrame({"q": [0.25, 1.0], "r": [0.75, 0.0]})
    roles = Roles(outputs=(("a", "q"), ("b", "r")))
    assert output_matrix(frame, roles, ("b", "a")).tolist() == [[0.75, 0.25], [0.0, 1.0]]
    logit = replace(roles, output_kind="logit")
    expected = np.exp(frame.to_numpy()) / np.exp(frame.to_numpy()).sum(axis=1, keepdims=True)
    assert np.allclose(output_matrix(frame, logit, ("a", "b")), expected)


@pytest.mark.parametrize("positive", [0, 1])
def test_single_output_matrix(positive: int) -> None:
    classes = ("no", "yes")
    roles = Roles(outputs=((classes[positive], "p"),))
    value = np.array([0.0, 0.25, 1.0])
    proba = output_matrix(pd.DataFrame({"p": value}), roles, classes)
    assert np.array_equal(proba[:, positive], value)
    assert np.array_equal(proba[:, 1 - positive], 1 - value)
    logit = output_matrix(pd.DataFrame({"p": [-2.0]}), replace(roles, output_kind="logit"), classes)
    assert logit[0, positive] == pytest.approx(1 / (1 + np.exp(2)))


@pytest.mark.parametrize(
    ("values", "kind"),
    [([0.5, 1.5], "probability"), ([0.5, -0.1], "probability"), ([0.5, np.nan], "logit")],
)
def test_single_output_faults(values: list[float], kind: str) -> None:
    roles = Roles(outputs=(("b", "p"),), output_kind=kind)
    with pytest.raises(InputError) as caught:
        output_matrix(pd.DataFrame({"p": values}), roles, ("a", "b"), file="f.csv")
    assert (caught.value.column, caught.value.row, caught.value.file) == ("p", 2, "f.csv")


def test_output_faults_name_the_column() -> None:
    roles = Roles(outputs=(("a", "q"), ("b", "r")))
    for value in (np.nan, np.inf, "text", -0.5):
        frame = pd.DataFrame({"q": [0.5, 0.5], "r": [0.5, value]})
        with pytest.raises(InputError) as caught:
            output_matrix(frame, roles, ("a", "b"))
        assert (caught.value.column, caught.value.row) == ("r", 2)


def test_weight_column() -> None:
    assert weight_column(FRAME, ROLES) is None
    assert weight_column(FRAME, replace(ROLES, weight="b")).tolist() == [4, 5, 6]
    for value in (0.0, -1.0, np.nan, np.inf):
        frame = FRAME.assign(w=[1.0, value, 1.0])
        with pytest.raises(InputError) as caught:
            weight_column(frame, replace(ROLES, weight="w"))
        assert (caught.value.column, caught.value.row) == ("w", 2)


def test_feature_frame() -> None:
    table = Table(FRAME, "digest", "t.csv")
    assert list(feature_frame(table, replace(ROLES, features=("b", "a")))) == ["b", "a"]
    with pytest.raises(InputError, match=r"t\.csv.*'z'"):
        feature_frame(table, Roles(features=("a", "z")))
    with pytest.raises(InputError, match="feature"):
        feature_frame(FRAME, Roles())


def test_numeric_matrix() -> None:
    frame = pd.DataFrame(
        {
            "f": [1.5, np.nan],
            "i": pd.array([1, None], dtype="Int64"),
            "flag": [True, False],
            "text": ["3", "4"],
            "day": pd.to_datetime(["2020-01-01", "2020-01-02"]),
            "inf": [0.0, np.inf],
        }
    )
    matrix = numeric_matrix(frame, ["text", "f", "i", "flag"], allow_missing=True)
    assert np.array_equal(matrix, [[3, 1.5, 1, 1], [4, np.nan, np.nan, 0]], equal_nan=True)
    for column, row in (("f", 2), ("i", 2), ("inf", 2), ("day", None)):
        with pytest.raises(InputError) as caught:
            numeric_matrix(frame, [column], allow_missing=False)
        assert (caught.value.column, caught.value.row) == (column, row)


@pytest.mark.parametrize("column", ["p_default", "prob_default", "pd", "PD"])
def test_a_probability_of_default_speaks_of_the_defaulters(column: str) -> None:
    frame = pd.DataFrame({"loan": [7, 8, 9], column: [0.1, 0.7, 0.2], "default": [0, 1, 0]})
    assert guess_roles(frame).outputs == (("1", column),)


def test_without_a_model_whatever_describes_the_rows_is_an_input() -> None:
    frame = pd.DataFrame(
        {
            "customer_id": np.arange(N),
            "age": RNG.normal(size=N),
            "region": labels("north", "south", None),
            "comment": [f"call {i}" for i in range(N)],
            "opened": pd.date_range("2026-01-01", periods=N),
            "member": RNG.random(N) < 0.5,
            **outputs(["p_0", "p_1"]),
            "y": labels(0, 1),
        }
    )
    assert guess_roles(frame).features == ("age", "region", "member")
    # a model that names no columns takes numbers, and one that names them takes these
    assert guess_roles(frame, n_features=3).features == ("customer_id", "age", "member")
    assert guess_roles(frame, n_features=2).features == ("age", "member")
    # without what numbers the rows there are too few: nothing is left out
    only = frame[["customer_id", "y"]].assign(account_id=np.arange(N))
    assert guess_roles(only, n_features=1).features == ("customer_id", "account_id")
    assert guess_roles(frame, feature_names=("comment", "age")).features == ("comment", "age")


@pytest.mark.parametrize("values", [("no", "yes"), (0, 1), (False, True), ("1", "2")])
@pytest.mark.parametrize(
    "column",
    ["p_default", "pd_12m", "default_prob", "probability of default", "Score.model", "risk_score"],
)
def test_the_only_share_that_is_named_a_probability_speaks_of_the_positive_class(
    column: str, values: tuple[object, object]
) -> None:
    frame = pd.DataFrame({"rate": RNG.random(N), column: RNG.random(N), "label": labels(*values)})
    roles = guess_roles(frame)
    assert roles.outputs == ((str(values[1]), column),)
    assert roles.features == ("rate",)


def test_the_positive_class_need_not_be_the_second() -> None:
    frame = pd.DataFrame({"p_bad": RNG.random(N), "label": labels("Yes", "zero")})
    assert guess_roles(frame).outputs == (("Yes", "p_bad"),)


@pytest.mark.parametrize(
    "changed",
    [
        {"p_bad": RNG.random(N), "bad_score": RNG.random(N)},  # two of them
        {"p_bad": 100 * RNG.random(N)},  # no share
        {"p_bad": RNG.integers(0, 2, N)},  # the two ends alone
        {"p_bad": labels("low", "high")},
        {"perhaps": RNG.random(N)},  # another word
        {"p_bad": RNG.random(N), "label": labels("a", "b", "c")},  # of which of three?
    ],
)
def test_anything_less_is_no_guess(changed: dict[str, np.ndarray]) -> None:
    assert guess_roles(pd.DataFrame({"label": labels(0, 1), **changed})).outputs == ()


def test_a_models_input_is_never_taken_for_its_output() -> None:
    frame = pd.DataFrame({"age": RNG.random(N), "p_bad": RNG.random(N), "label": labels(0, 1)})
    assert guess_roles(frame, n_features=2).features == ("age", "p_bad")


def test_a_model_of_classes_reads_many_numbers_and_predicts_the_column_of_few_values() -> None:
    frame = pd.DataFrame(
        {
            "customer_id": np.repeat(np.arange(N // 2), 2),
            "branch": labels("north", "south", "west"),
            "income": 1000.0 + np.arange(N),
            "age": RNG.integers(18, 80, N),
            "default": labels("no", "yes"),
        }
    )
    for classes in (None, ("0", "1"), ("no", "yes")):
        roles = guess_roles(frame, classes=classes, n_features=3)
        assert (roles.target, roles.features) == ("default", ("customer_id", "income", "age"))
    customers = np.arange(3 * N) // 2  # enough of them to see that several rows belong to each
    larger = pd.concat([frame] * 3, ignore_index=True).assign(customer_id=customers)
    assert guess_roles(larger, n_features=2).features == ("income", "age")
    # without another column of that kind the name decides, and the scoring says what is wrong
    assert guess_roles(frame.drop(columns="default"), n_features=3).target == "income"


def test_a_known_target_decides_what_is_guessed_besides() -> None:
    frame = pd.DataFrame({"flag": labels("a", "b", "c"), "p_bad": RNG.random(N)})
    frame = frame.assign(bad=labels(0, 1), label=labels("x", "y", "z"))
    assert guess_roles(frame).outputs == ()
    roles = guess_roles(frame, target="bad")
    assert (roles.target, roles.outputs) == ("bad", (("1", "p_bad"),))
    assert roles.features == ("flag", "label")
    assert guess_roles(frame, target="gone").target == "label"


RATINGS = [f"{letter}{number}" for letter in "ABC" for number in (1, 2, 3)] + ["D"]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("other", ["sector", "category"])  # a column of few values; one named so
def test_the_target_is_the_column_that_holds_the_outputs_classes(first: bool, other: str) -> None:
    rating = {"rating": labels(*RATINGS)}
    rest = {other: labels("tech", "retail", "energy"), **outputs([f"prob_{r}" for r in RATINGS])}
    roles = guess_roles(pd.DataFrame({**rating, **rest} if first else {**rest, **rating}))
    assert roles.target == "rating"
    assert roles.outputs == tuple((r, f"prob_{r}") for r in RATINGS)
    assert roles.features == (other,)


def test_of_columns_that_hold_classes_the_target_holds_most() -> None:
    frame = pd.DataFrame({"mark": labels(*range(10)), **outputs([f"prob_{i}" for i in range(10)])})
    frame = frame.assign(children=labels(0, 1, 2), y_pred=labels(*range(10)))
    assert guess_roles(frame).target == "mark"
    # a named one keeps its place where no other holds all classes
    assert guess_roles(frame.assign(label=labels(0, 11)).drop(columns="mark")).target == "label"


@pytest.mark.parametrize(
    ("output", "target"),
    [
        ("p_default", "defaulted"),
        ("p_default", "has_defaulted"),
        ("prob_churn", "churned"),
        ("readmit_probability", "readmitted_30d"),
        ("p_conversion", "converted"),
        ("prob_x", "flag_x"),
        ("risk", "died"),
        ("pd", "default_flag"),
        ("score", "fraudulent"),
        ("score", "approved"),
    ],
)
def test_a_column_of_two_values_that_follows_is_not_taken_for_the_target(
    output: str, target: str
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            output: rng.random(200),
            target: rng.integers(0, 2, 200),
            "previous_default": rng.integers(0, 2, 200),
            "branch": rng.integers(0, 2, 200),
        }
    )
    roles = guess_roles(frame)
    assert roles.target == target
    assert roles.outputs == (("1", output),)


def test_a_plain_name_of_the_target_comes_before_what_the_probability_is_named_after() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (200, 2))
    frame = pd.DataFrame(bits, columns=["default", "target"]).assign(p_default=rng.random(200))
    assert guess_roles(frame).target == "target"
    subject = frame.rename(columns={"default": "defaulted", "target": "class"})
    assert guess_roles(subject).target == "defaulted"
