"""The latest rows beside those before: what is compared, and how sure it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import t as student

from kdcal_core.diagnostics.latest_rows import LatestRows, changed_groups, latest_rows
from kdcal_core.errors import InputError
from kdcal_core.statistics import Dependence

FloatArray = np.ndarray


def rows(days: int, each: int, seed: int = 0, shared: float = 0.0) -> tuple[FloatArray, FloatArray]:
    """Uniform values of the rows of days, and their day; those of a day share a normal number.

    That of a day is half that of the day before, and half another.
    """
    rng = np.random.default_rng(seed)
    day = np.repeat(np.arange(days), each)
    of_day = np.zeros(days)
    for at in range(days):
        of_day[at] = 0.5 * of_day[at - 1] + 0.75**0.5 * rng.normal()
    normal = shared**0.5 * of_day[day] + (1.0 - shared) ** 0.5 * rng.normal(size=len(day))
    return ndtr(normal), day


def found(seen: FloatArray, day: FloatArray, weight: FloatArray | None = None) -> list[LatestRows]:
    n = len(seen)
    weight = np.ones(n) if weight is None else weight
    times = Dependence.of("time", day)
    return latest_rows(seen, np.full(n, 0.5), np.full(n, 1 / 12), weight, times)


def test_whole_times_are_compared_whatever_their_order_in_the_table() -> None:
    seen, day = rows(90, 20)
    mixed = np.random.default_rng(1).permutation(len(seen))
    for one, again in zip(found(seen, day), found(seen[mixed], day[mixed]), strict=True):
        late = day >= one.start
        assert one.n == late.sum()
        assert late.mean() <= one.share < ((day >= one.start - 1).mean())
        assert one.change == pytest.approx(seen[late].mean() - seen[~late].mean())
        assert again.start == one.start
        assert again.change == pytest.approx(one.change)
        assert again.error == pytest.approx(one.error)


def test_a_last_time_with_most_rows_is_the_only_part() -> None:
    seen, day = rows(20, 50)
    (one,) = found(seen, np.minimum(day, 9))
    assert (one.start, one.n / len(seen)) == (9, 0.55)


def test_independent_rows_have_about_the_error_of_two_means() -> None:
    """At least: the interval never counts on less variance than the model states."""
    seen, day = rows(400, 10)
    for one in found(seen, day):
        plain = (1 / 12 / one.n + 1 / 12 / (len(seen) - one.n)) ** 0.5
        assert plain <= one.error < 1.6 * plain


def test_weights_count_as_rows_that_occur_more_often() -> None:
    seen, day = rows(60, 30)
    doubled = found(seen, day, np.full(len(seen), 2.0))
    for one, other in zip(found(seen, day), doubled, strict=True):
        assert (one.change, one.error) == pytest.approx((other.change, other.error))


@pytest.mark.parametrize(("days", "each", "shared"), [(24, 40, 0.2), (200, 5, 0.2), (120, 5, 0.0)])
def test_the_level_holds_where_days_depend_on_one_another(
    days: int, each: int, shared: float
) -> None:
    beyond = [
        not one.interval(0.95)[0] <= 0.0 <= one.interval(0.95)[1]
        for seed in range(120)
        for one in found(*rows(days, each, seed, shared))
    ]
    assert np.mean(beyond) < 0.08


def test_a_break_of_the_last_month_is_found_though_it_began_between_two_shares() -> None:
    seen, day = rows(365, 16)
    broken = np.where(day >= 335, np.minimum(seen + 0.3, 1.0), seen)
    parts = {one.share: one for one in found(broken, day)}
    assert parts[1 / 16].interval(0.999)[0] > 0.1
    assert parts[1 / 2].interval(0.999)[0] < 0.0


def test_no_row_that_is_certain_makes_a_change_certain() -> None:
    n, times = 4000, Dependence.of("time", np.repeat(np.arange(100), 40))
    sure = np.zeros(n)
    for one in latest_rows(sure, sure, sure, np.ones(n), times):
        assert one.change == 0.0
        assert one.error > 1.0 / one.n


def test_few_times_or_rows_are_not_compared() -> None:
    seen, day = rows(7, 40)
    with pytest.raises(InputError, match="7 different times"):
        found(seen, day)
    assert found(*rows(50, 1)) == []


def test_a_group_is_compared_with_itself_as_the_equation_says() -> None:
    """One row of the group a day: sums, waves and interval follow by hand, from its rows alone."""
    seen, day = rows(240, 2, 4)
    group = np.tile([0, 1], 240)
    seen[(group == 1) & (day >= 210)] += 1.0
    n = len(seen)
    values = (seen, np.full(n, 0.5), np.full(n, 1 / 12), np.ones(n), Dependence.of("time", day))
    found = [one for one in changed_groups(*values, [(group, "ab")]) if one.latest.share == 1 / 8]
    assert [(one.name, one.looks) for one in found] == [("a", 6), ("b", 6)]
    own = seen[group == 1] - 0.5
    late = np.arange(240) >= 210
    change = own[late].mean() - own[~late].mean()
    waves = int(0.4 * 240 ** (2 / 3))
    # the change itself, and changes at twice, 1.5 times and half the share, are no noise
    steps = np.array([(np.arange(240) >= at) * 1.0 for at in (0, 180, 195, 210, 225)]).T
    place = (np.arange(240)[:, None] + 0.5) * np.arange(1, waves + 2) * np.pi / 240
    apart = np.cos(place) - steps @ np.linalg.solve(steps.T @ steps, steps.T @ np.cos(place))
    slow = np.linalg.eigh(apart @ apart.T)[1].T[::-1][: waves - 3]
    spread = max(np.mean([(own / (1 / 12) ** 0.5 @ one) ** 2 for one in slow]), 1.0)
    added = sum(2 * (0.5**2 + 0.5**2) / m**2 for m in (30, 210))
    error = (spread / 12 * (1 / 30 + 1 / 210) + added) ** 0.5
    half = student.ppf(1 - 0.05 / 2 / 6, len(slow)) * error
    last = found[1]
    assert last.interval(0.95) == pytest.approx((change - half, change + half), rel=1e-6)
    gap = seen - 0.5
    elsewhere = gap[day >= 210].mean() - gap[day < 210].mean()
    assert last.beyond(0.95) == pytest.approx(min(abs(change), abs(change - elsewhere)) / half)


def test_groups_of_few_times_or_rows_are_left_out() -> None:
    seen, day = rows(60, 40)
    group = np.where(day >= 53, 0, np.where(np.arange(len(seen)) % 40 == 0, 1, 2))
    n = len(seen)
    values = (seen, np.full(n, 0.5), np.full(n, 1 / 12), np.ones(n), Dependence.of("time", day))
    divisions = [(group, ["late", "rare", "many"])]
    assert {one.name for one in changed_groups(*values, divisions)} == {"many"}
