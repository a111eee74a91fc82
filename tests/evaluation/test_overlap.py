"""Rows that both sets have."""

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import ScoredSet
from kdcal_core.data.equal_rows import are_fine, equal_rows, row_keys
from kdcal_core.evaluation.overlap import SetRows, matched, overlap, overlap_note, shared
from kdcal_core.review import ReviewData


def rows(n, seed, decimals=None):
    rng = np.random.default_rng(seed)
    p = rng.uniform(size=n)
    p = p if decimals is None else p.round(decimals)
    y = rng.integers(0, 2, n)
    return ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "", "")


def features(n, seed):
    rng = np.random.default_rng(seed)
    age = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    return pd.DataFrame({"age": age, "job": rng.choice(["cook", None], n)})


def joined(first, second, index):
    return ScoredSet(
        np.concatenate([first.proba[index], second.proba]),
        np.concatenate([first.y[index], second.y]),
        first.classes,
        "",
        "",
    )


def test_the_same_features_and_class_whatever_the_columns_types():
    cal, new = rows(80, 0), rows(30, 1)
    X, other = features(80, 0), features(30, 1)
    both = joined(cal, new, np.arange(20))
    Z = pd.concat([X.iloc[:20], other], ignore_index=True)
    Z["age"] = Z["age"].astype("Float64")
    Z["job"] = Z["job"].astype("category")
    matched = overlap(ReviewData(cal, both, cal.classes, {"calibration": X, "evaluation": Z}))
    a = [(*t, int(k)) for t, k in zip(X.astype(str).itertuples(index=False), cal.y, strict=True)]
    W = pd.concat([X.iloc[:20], other], ignore_index=True).astype(str)
    b = [(*t, int(k)) for t, k in zip(W.itertuples(index=False), both.y, strict=True)]
    assert matched.rows == sum(t in set(a) for t in b) >= 20


def test_another_class_is_another_row():
    cal = rows(50, 0)
    flipped = ScoredSet(cal.proba, 1 - cal.y, cal.classes, "", "")
    X = {"calibration": features(50, 0), "evaluation": features(50, 0)}
    X = {name: frame[["age"]].fillna(0.0) + np.arange(50)[:, None] for name, frame in X.items()}
    assert overlap(ReviewData(cal, flipped, cal.classes, X)).rows == 0
    assert overlap(ReviewData(cal, cal, cal.classes, X)).rows == 50


def test_probabilities_tell_where_there_are_no_features_or_they_number_the_rows():
    cal, new = rows(300, 0), rows(100, 1)
    both = joined(cal, new, np.arange(40))
    bare = ReviewData(cal, both, cal.classes, {})
    assert overlap(bare).rows == 40
    numbered = {
        "calibration": pd.DataFrame({"id": np.arange(300)}),
        "evaluation": pd.DataFrame({"id": np.arange(1000, 1140)}),
    }
    assert overlap(ReviewData(cal, both, cal.classes, numbered)).rows == 40


def test_probabilities_of_few_values_match_by_chance_and_that_says_nothing(texts):
    for seed in range(20):
        cal, new = rows(300, seed, decimals=2), rows(200, 100 + seed, decimals=2)
        found = overlap(ReviewData(cal, new, cal.classes, {}))
        assert found.pairs > 100
        assert not found.beyond_chance
        assert "no sign" in overlap_note(found).sentence
    texts(overlap_note(found).sentence)


def test_coarse_probabilities_do_not_blur_what_fine_features_show():
    rng = np.random.default_rng(0)
    cal, new = rows(300, 0, decimals=1), rows(200, 1, decimals=1)
    X = {
        "calibration": pd.DataFrame({"x": rng.normal(size=300)}),
        "evaluation": pd.DataFrame({"x": rng.normal(size=200)}),
    }
    found = overlap(ReviewData(cal, new, cal.classes, X))
    assert (found.by, found.rows) == ("features", 0)
    assert found.share[2] < 0.05


def test_features_of_a_few_uneven_values_do_not_match_beyond_chance():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        both = [pd.DataFrame(rng.binomial(1, 0.2, (1000, 3))) for _ in range(2)]
        sets = rows(1000, seed), rows(1000, 100 + seed)
        X = dict(zip(("calibration", "evaluation"), both, strict=True))
        found = overlap(ReviewData(*sets, sets[0].classes, X))
        assert found.rows > 900
        assert not found.beyond_chance
    X["evaluation"] = pd.DataFrame(rng.normal(size=(1000, 3)))
    X["calibration"] = X["evaluation"].sample(200, random_state=0).reset_index(drop=True)
    again = ScoredSet(sets[1].proba, np.zeros(1000, dtype=int), sets[1].classes, "", "")
    some = ScoredSet(sets[0].proba[:200], np.zeros(200, dtype=int), again.classes, "", "")
    found = overlap(ReviewData(some, again, again.classes, X))
    assert found.rows == 200
    assert found.beyond_chance


def test_without_an_evaluation_set_there_is_nothing_to_share():
    cal = rows(10, 0)
    assert overlap(ReviewData(cal, None, cal.classes, {})) is None


def coarse(n, seed):
    """Rows of few distinct values, many of which equal each other."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.integers(0, 12, (n, 3))), rows(n, seed)


def test_equal_rows_are_reported_with_what_chance_gives_and_warned_of_only_beyond_it(texts):
    (X, cal), (Z, new) = coarse(3000, 0), coarse(2000, 1)
    plain = overlap(ReviewData(cal, new, cal.classes, {"calibration": X, "evaluation": Z}))
    assert plain.rows > 500
    texts(overlap_note(plain).sentence)
    assert overlap_note(plain).sentence.startswith(f"{plain.rows:,} of 2,000 rows")
    assert f"chance gives {plain.expected:,.0f}" in overlap_note(plain).sentence
    copied = joined(cal, new, np.arange(1500))
    both = pd.concat([X.iloc[:1500], Z], ignore_index=True)
    many = overlap(ReviewData(cal, copied, cal.classes, {"calibration": X, "evaluation": both}))
    assert many.beyond_chance
    assert [overlap_note(one).about for one in (plain, many)] == [None, "copies"]
    texts(overlap_note(many).sentence, "shared")
    assert f"{many.pairs:,} pairs" in overlap_note(many).sentence


def test_as_many_copies_as_are_said_not_to_stand_out_do_not():
    (X, cal), (Z, new) = coarse(3000, 0), coarse(2000, 1)
    bare = overlap(ReviewData(cal, new, cal.classes, {"calibration": X, "evaluation": Z}))
    hidden = int(overlap_note(bare).sentence.split("about ")[1].split()[0].replace(",", ""))
    for share, seen in ((0.5, False), (3.0, True)):
        taken = np.arange(int(share * hidden))
        both = pd.concat([X.iloc[taken], Z], ignore_index=True)
        found = overlap(
            ReviewData(
                cal, joined(cal, new, taken), cal.classes, {"calibration": X, "evaluation": both}
            )
        )
        assert found.beyond_chance == seen


def test_no_equal_rows_no_words_and_one_is_one(texts):
    (X, cal), n = coarse(300, 0), 300
    apart = {"calibration": X, "evaluation": X + 100}
    assert overlap_note(overlap(ReviewData(cal, rows(n, 1), cal.classes, apart))) is None
    wide = pd.DataFrame(np.random.default_rng(0).normal(size=(n, 2)))
    one = wide + 100.0
    one.iloc[0] = wide.iloc[0]
    same = overlap(ReviewData(cal, cal, cal.classes, {"calibration": wide, "evaluation": one}))
    texts(overlap_note(same).sentence)


def test_a_small_set_without_equal_rows_of_its_own_is_no_sign_of_copies():
    """The small set's own rows cannot say how often values match; those of the large one can."""
    for small, large in ((50, 5000), (5000, 50)):
        for seed in range(30):
            rng = np.random.default_rng(seed)
            X = {
                name: pd.DataFrame({"code": rng.integers(0, 2000, n)})
                for name, n in (("calibration", small), ("evaluation", large))
            }
            cal, new = rows(small, seed), rows(large, 100 + seed)
            found = overlap(ReviewData(cal, new, cal.classes, X))
            assert found.rows > 0
            assert not found.beyond_chance, seed


@pytest.mark.parametrize(("n", "m", "values"), [(200, 200, 20_000), (300, 50, 8000)])
def test_rows_of_many_values_are_taken_for_copies_in_at_most_five_percent(n, m, values):
    """Two sets of 200 of 20,000 values often match where no two rows within them do."""
    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        first, second = (pd.DataFrame({"code": rng.integers(0, values, k)}) for k in (n, m))
        found = equal_rows(row_keys(first), row_keys(second), fine=are_fine(first, second))
        alarms += found.beyond_chance
    assert alarms <= 20


def test_a_handful_of_copies_among_whole_numbers_is_still_seen(texts):
    rng = np.random.default_rng(0)
    first, second = (pd.DataFrame({"code": rng.integers(0, 10**7, 200)}) for _ in range(2))
    second.iloc[:6] = first.iloc[:6]
    found = equal_rows(row_keys(first), row_keys(second), fine=are_fine(first, second))
    assert found.beyond_chance
    second.iloc[3:6] += 10**8
    few = equal_rows(row_keys(first), row_keys(second), fine=are_fine(first, second))
    assert (few.pairs, few.beyond_chance) == (3, False)
    texts(few.words("evaluation set", "calibration set", ""))


def test_keys_stay_those_that_a_watch_has_stored():
    numbers = pd.DataFrame({"a": [1, -0.0, None], "b": [True, False, True]})
    texts = pd.DataFrame({"a": [1, -0.0, None], "b": ["x", None, "y"]})
    assert row_keys(numbers, np.array([0, 1, 1])).tolist() == [
        5_124_631_898_145_126_471,
        14_809_054_211_766_604_116,
        7_241_394_794_325_101_597,
    ]
    assert row_keys(texts).tolist() == [
        17_964_852_340_668_585_268,
        795_226_583_379_773_069,
        6_393_505_365_192_199_284,
    ]


def described(seed, n=60, decimals=7):
    rng = np.random.default_rng(seed)
    return SetRows(
        "evaluation",
        pd.DataFrame({"a": rng.normal(size=n).round(decimals)}),
        rng.integers(0, 2, n),
    )


def some_of(rows, at):
    return SetRows(rows.kind, rows.inputs.iloc[at].reset_index(drop=True), rows.y[at])


def test_the_same_rows_in_one_order_are_known_by_file_columns_or_outcomes():
    rows = described(0)
    assert matched(rows, rows, same_file=True).by == "file"
    found = matched(rows, some_of(rows, np.arange(60)))
    assert (found.by, found.whole, found.found) == ("columns", True, None)
    assert np.array_equal(found.rows, np.arange(60))
    alone = SetRows("evaluation", None, rows.y)
    assert matched(alone, alone).by == "outcomes"
    for found in (matched(rows, rows), matched(alone, alone)):
        assert found.rows.tolist() == found.other.tolist() == list(range(60))


def test_sorted_classes_alone_are_no_sign_of_the_same_rows():
    sorted_rows = SetRows("evaluation", None, np.repeat([0, 1], 30))
    assert matched(sorted_rows, sorted_rows).by == "unknown"
    assert matched(sorted_rows, sorted_rows, same_file=True).by == "file"
    flat = SetRows("evaluation", pd.DataFrame({"a": np.ones(60)}), sorted_rows.y)
    assert not matched(flat, flat).whole


def test_a_file_with_another_target_is_no_proof():
    rows = described(0)
    flipped = SetRows("evaluation", rows.inputs, 1 - rows.y)
    assert matched(rows, flipped, same_file=True).by == "none"


def test_rows_are_matched_one_by_one_whatever_their_order():
    both = described(0)
    order = np.random.default_rng(1).permutation(60)[:40]
    part = some_of(both, order)
    found = matched(both, part)
    assert (found.by, found.whole) == ("some", False)
    assert found.rows.tolist() == sorted(order.tolist())
    assert (order[found.other] == found.rows).all()
    assert found.found.rows == 40


def test_a_row_that_occurs_twice_is_not_matched():
    both = described(0)
    twice = some_of(both, np.r_[0:60, 5])
    found = matched(both, twice)
    assert 5 not in found.rows
    assert len(found.rows) == 59
    assert found.found.rows == 60


def test_rows_that_are_equal_by_chance_are_not_matched():
    coarse = [described(seed, 200, 1) for seed in (0, 1)]
    found = matched(*coarse)
    assert found.by == "none"
    assert found.found.rows > 0
    assert len(found.rows) == 0


def numbered(n: int, first: int, seed: int, *, fine: bool = True) -> pd.DataFrame:
    """Rows that a column numbers; of measured or of coarse values otherwise."""
    rng = np.random.default_rng(seed)
    other = rng.normal(size=n) if fine else rng.integers(0, 5, n)
    return pd.DataFrame(
        {
            "loan": np.arange(first, first + n),
            "ref": [f"R{at}" for at in range(first, first + n)],
            "age": rng.integers(18, 80, n),
            "other": other,
        }
    )


def test_copies_with_another_number_are_copies() -> None:
    held, new = numbered(400, 0, 0), numbered(300, 5_000, 1)
    new.loc[:99, ["age", "other"]] = held.loc[200:299, ["age", "other"]].to_numpy()
    y, other_y = np.resize([0, 0, 1], 400), np.resize([0, 1, 1], 300)
    other_y[:100] = y[200:300]
    one, two = SetRows("evaluation", new, other_y), SetRows("calibration", held, y)
    found = shared(one, two)
    assert found is not None
    assert (found.rows, found.beyond_chance) == (100, True)
    pairs = matched(one, two)
    assert pairs.by == "some"
    assert pairs.rows.tolist() == list(range(100))
    assert pairs.other.tolist() == list(range(200, 300))


def test_coarse_rows_that_are_numbered_are_no_copies_by_chance() -> None:
    for seed in range(20):
        held = numbered(400, 0, 2 * seed, fine=False)
        new = numbered(300, 5_000, 2 * seed + 1, fine=False)
        found = shared(
            SetRows("evaluation", new, np.resize([0, 1], 300)),
            SetRows("calibration", held, np.resize([0, 1], 400)),
        )
        assert found is not None
        assert not found.beyond_chance


def test_a_number_that_copies_keep_still_counts() -> None:
    held = numbered(400, 0, 0, fine=False).drop(columns=["ref", "age"])
    new = pd.concat([held[:10], numbered(290, 5_000, 1, fine=False)[["loan", "other"]]])
    y = np.resize([0, 1], 400)
    found = shared(
        SetRows("evaluation", new.reset_index(drop=True), y[:300]),
        SetRows("calibration", held, y),
    )
    assert found is not None
    assert (found.rows, found.beyond_chance) == (10, True)
