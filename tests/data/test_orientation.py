"""Which class a probability speaks of: what names and rows say, and what is said of odd answers."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import mannwhitneyu, norm
from texts.snapshot import Texts

from kdcal_core.data import Roles, guess_roles
from kdcal_core.data.labels import class_of_column, doubts_of_roles, odd_answers, rank_area, swapped

RNG = np.random.default_rng(0)
N = 400


def loans(column: str, first: str = "good", second: str = "bad", target: str = "label"):
    """Rows of which the column is the probability of the first class."""
    p = RNG.random(N)
    y = np.where(RNG.random(N) < p, first, second)
    return pd.DataFrame({column: p, target: y})


@pytest.mark.parametrize(
    ("column", "classes", "meant"),
    [
        ("p_default", ("bad", "good"), "bad"),
        ("default_prob", ("charged off", "fully paid"), "charged off"),
        ("pd_12m", ("bad", "good"), None),
        ("churn_score", ("left", "stayed"), "left"),
        ("p_spam", ("ham", "spam"), "spam"),
        ("prob_not_spam", ("ham", "spam"), None),
        ("p_benign", ("benign", "malignant"), "benign"),
        ("p_healthy", ("cancer", "control"), "control"),
        ("score", ("no", "yes"), "yes"),
        ("score_0", ("0", "1"), "1"),  # the first of some models, perhaps; 1 is the event
        ("p_default", ("1", "2"), None),
        ("score", ("cat", "dog"), None),
    ],
)
def test_names_decide_where_they_say_something(column, classes, meant) -> None:
    found = class_of_column(column, classes)
    assert found == ((meant, "name") if meant else (classes[1], "order"))


def test_a_column_of_the_opposite_of_the_target_speaks_of_the_other_class() -> None:
    assert class_of_column("p_good", ("0", "1"), target="default") == ("0", "name")
    assert class_of_column("p_bad", ("0", "1"), target="default") == ("1", "name")


@pytest.mark.parametrize(("first", "second"), [("good", "bad"), ("bad", "good")])
def test_rows_decide_where_names_do_not_and_it_stays_a_guess(first: str, second: str) -> None:
    roles = guess_roles(loans("score", first, second))
    assert (roles.outputs, roles.class_by) == (((first, "score"),), "rows")
    (doubt,) = doubts_of_roles(roles, ("bad", "good"))
    assert f"probability of {first}, not of {second}" in doubt


def test_names_go_before_rows() -> None:
    """A model that is wrong is not made right by reading it the other way round."""
    frame = loans("p_good", "bad", "good")
    roles = guess_roles(frame)
    assert (roles.outputs, roles.class_by) == ((("good", "p_good"),), "name")
    assert doubts_of_roles(roles, ("bad", "good")) == ()


def test_a_guess_of_p_default_is_no_longer_the_second_class() -> None:
    roles = guess_roles(loans("p_default", "bad", "good"))
    assert (roles.outputs, roles.class_by) == ((("bad", "p_default"),), "name")


def test_swapping_exchanges_two_columns_or_names_the_other_class() -> None:
    roles = Roles(outputs=(("b", "p"),), class_by="order")
    assert swapped(roles, ("a", "b")) == Roles(outputs=(("a", "p"),))
    pair = Roles(outputs=(("a", "p0"), ("b", "p1")))
    assert swapped(swapped(pair, ("a", "b")), ("a", "b")) == pair


def test_the_area_and_its_distance_from_one_half_are_mann_and_whitneys() -> None:
    score = RNG.integers(0, 6, 200) / 5.0  # with ties
    positive = RNG.random(200) < 0.3
    area, errors = rank_area(score, positive)
    wanted = mannwhitneyu(score[positive], score[~positive], use_continuity=False)
    assert area == pytest.approx(wanted.statistic / (positive.sum() * (~positive).sum()))
    assert 2 * norm.sf(abs(errors)) == pytest.approx(wanted.pvalue)
    assert rank_area(score, np.ones(200, dtype=bool)) == (0.5, 0.0)
    assert rank_area(np.ones(200), positive) == (0.5, 0.0)


def test_nothing_is_odd_about_a_model_that_does_its_work() -> None:
    p = RNG.random(N)
    y = (RNG.random(N) < p).astype(np.int64)
    assert odd_answers(np.column_stack([1 - p, p]), y, ("no", "yes")) is None


def test_a_ranking_by_chance_is_not_called_swapped() -> None:
    p = np.full(N, 0.3) + 0.01 * RNG.random(N)
    y = np.r_[np.ones(N // 4, dtype=np.int64), np.zeros(N - N // 4, dtype=np.int64)]
    low = np.where(y == 1, p - 0.0008, p)
    odd = odd_answers(np.column_stack([1 - low, low]), y, ("no", "yes"))
    assert odd is not None
    assert (odd.beyond_chance, odd.swapped) == (False, False)
    assert "Chance explains that" in odd.sentence


def test_too_many_of_the_rarer_class_is_another_fault_than_a_swap(texts: Texts) -> None:
    rng = np.random.default_rng(1)
    p = rng.random(N)
    y = (rng.random(N) < 0.4 * p).astype(np.int64)
    odd = odd_answers(np.column_stack([1 - p, p]), y, ("no", "yes"))
    assert odd is not None
    assert odd.beyond_chance
    assert not odd.swapped
    texts(odd.sentence)


def test_a_risk_that_is_too_extreme_is_no_question_about_the_columns() -> None:
    rng = np.random.default_rng(2)
    risk = rng.beta(1.0, 3.0, N)
    y = (rng.random(N) < risk).astype(np.int64)
    said = 1.0 / (1.0 + (1.0 / risk - 1.0) ** 3 * 0.2)  # its odds to the third power
    odd = odd_answers(np.column_stack([1 - said, said]), y, ("no", "yes"))
    assert odd is not None
    assert "fewer than by always naming the most frequent class" in odd.sentence
    assert not odd.beyond_chance


def test_the_order_of_many_classes_is_named(texts: Texts) -> None:
    y = np.random.default_rng(1).integers(0, 4, N)
    proba = np.full((N, 4), 0.1)
    proba[np.arange(N), (y + 1) % 4] = 0.7
    odd = odd_answers(proba, y, ("a", "b", "c", "d"))
    assert odd is not None
    assert odd.beyond_chance
    texts(odd.sentence)
    assert "a for d, b for a" in odd.sentence
