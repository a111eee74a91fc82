"""Two audits held against each other, and estimates over all audits of a project."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from audit_people import ME
from made_reviews import HOSTILE_CLASS, line, review_of, too_sure
from scipy.special import expit, logit

from kdcal_core.audit import (
    Audit,
    AuditContent,
    AuditDrafted,
    Happened,
    Moment,
    audit_settings,
    compare_audits,
    compare_with_baseline,
    compared_words,
    estimates_beside,
    facts_beside,
    make_audit,
    paired_words,
    same_question,
    trends,
    verdicts_beside,
)
from kdcal_core.charts import trend_table
from kdcal_core.checks import CheckedReview
from kdcal_core.diagnostics import Estimate
from kdcal_core.errors import InputError
from kdcal_core.review import Limit, ReviewReader, Workspace, read_review
from kdcal_core.tasks import Sets

pytestmark = pytest.mark.usefixtures("work_here")

LOSS, SCORE, SHARE, LONE, GAP, SLOPE = (
    Estimate("Loss in full", "Loss", 0.30, 0.28, 0.32, 900),
    Estimate("Score in full", "Score", 0.70, 0.68, 0.72, 900, lower_is_better=False),
    Estimate("Share in full", "Share", 0.50, 0.48, 0.52, 900, lower_is_better=None),
    Estimate("Lone estimate", "Lone", 0.1, 0.0, 0.2, 900),
    Estimate("Gap in full", "Gap", 0.14, 0.12, 0.16, 900, lower_is_better=None, target=0.0),
    Estimate("Slope in full", "Slope", 0.2, 0.15, 0.25, 900, lower_is_better=None, target=1.0),
)


def with_estimates(content: AuditContent, *estimates: Estimate) -> AuditContent:
    """An audit without checks."""
    checked = CheckedReview((), content.checked.level, content.checked.n)
    return replace(content, estimates=estimates, checked=checked)


def moved(estimate: Estimate, by: float) -> Estimate:
    ends = {end: getattr(estimate, end) + by for end in ("value", "low", "high")}
    return replace(estimate, **ends)


def drafted(content: AuditContent, number: int) -> tuple[Audit, AuditContent]:
    event = AuditDrafted(
        *(f"a{number}", f"Quarter {number}", "", content.checked.verdict, content.headline),
        *("model", "rows", content.checked.n, content.limits),
    )
    when = Moment(f"2026-0{number}-01T12:00:00.000000Z", "a test")
    return Audit(Happened(number, when, ME, event)), content


def test_an_audit_is_like_itself(content: AuditContent) -> None:
    found = compare_audits(content, content)
    assert found.same_rows
    assert found.facts == found.only_before == found.only_after == ()
    assert {one.direction for one in found.estimates} == {"not told apart"}
    assert all(one.before == one.after for one in found.verdicts)
    assert found.paired
    assert not any(one.reach > 0.0 for one in found.estimates)
    assert found.unpaired == ()
    n = len(found.estimates)
    assert compared_words(found) == f"The audits cannot be told apart in any of {n} estimates."


def audit_of(workspace: Workspace, codes: tuple[str, ...], **tables: pd.DataFrame) -> AuditContent:
    review = read_review(workspace, review_of(workspace, **tables))
    settings = replace(audit_settings(review), codes=codes)
    return make_audit(Sets(ReviewReader(workspace, review.id, review=review)), settings=settings)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("table", "column", "codes", "ratios"),
    [
        (too_sure, "feature", ("KC011", "KC103", "KC201", "KC203", "KC209"), ("KC103",)),
        (line, "x", ("KC023", "KC121", "KC123", "KC201", "KC203"), ("KC023", "KC121", "KC123")),
    ],
)
def test_repairs_second_sets_ranges_and_tables_are_paired(
    workspace: Workspace,
    table: Callable[..., pd.DataFrame],
    column: str,
    codes: tuple[str, ...],
    ratios: tuple[str, ...],
) -> None:
    def other(rows: pd.DataFrame) -> pd.DataFrame:
        """As another model says: less sure of itself."""
        if "mean" in rows:
            return rows.assign(std=rows["std"] * 0.7)
        said = expit(0.5 * logit(rows["yes"].clip(1e-9, 1 - 1e-9)))
        return rows.assign(**{"yes": said, HOSTILE_CLASS: 1.0 - said})

    sets = {"calibration": table(700, 1), "evaluation": table(900, 2)}
    for one in sets.values():
        one.loc[::9, column] = np.nan
    before = audit_of(workspace, codes, **sets)
    after = audit_of(workspace, codes, **{name: other(one) for name, one in sets.items()})
    found = compare_audits(before, after)
    assert (found.same_rows, found.same_file) == (True, False)
    unpaired = [one for one in found.estimates if one.label in found.unpaired]
    for one in unpaired:  # magnitudes that may be 0
        assert one.before.expected is not None, one.name
        assert min(one.before.low, one.after.low) <= 0.0, one.name
    tables = [one for one in found.estimates if one.name.startswith(("Missing", "Rows in two"))]
    assert len(tables) == 2
    assert all((one.reach, one.difference.value) == (0.0, 0.0) for one in tables)
    measured = [one for one in after.measured.checks if one.code in ratios]
    for part in (part for one in measured for part in one.parts):
        assert part.sums is not None, part.estimate.name
        half = (part.estimate.high - part.estimate.low) / 2.0
        assert part.sums.error == pytest.approx(half / 1.96, rel=0.3)  # Fieller's, to first order


@pytest.mark.parametrize(
    "change",
    [{"task": "regression"}, {"classes": ("a", "b")}, {"event": "another"}],
)
def test_audits_that_ask_something_else_are_refused(
    content: AuditContent, change: dict[str, object]
) -> None:
    other = replace(content, subject=replace(content.subject, **change))
    assert not same_question(content, other)
    with pytest.raises(InputError, match="other tasks, classes or events"):
        compare_audits(content, other)


def test_the_order_of_classes_does_not_count(content: AuditContent) -> None:
    other = replace(
        content, subject=replace(content.subject, classes=content.subject.classes[::-1])
    )
    assert same_question(content, other)


def test_other_rows_are_said_to_be_other(content: AuditContent) -> None:
    tables = tuple(replace(one, digest="0" * 64) for one in content.subject.tables)
    other = replace(content, sums={}, subject=replace(content.subject, tables=tables))
    found = compare_audits(content, other)
    assert (found.same_rows, found.paired, paired_words(found)) == (False, False, "")
    assert {what for what, _, _ in found.facts} == {
        f"{one.part.capitalize()} table" for one in content.subject.tables
    }


def test_audits_of_one_file_that_nothing_pairs_say_so(content: AuditContent) -> None:
    checks = tuple(replace(one, parts=()) for one in content.measured.checks)
    measured = replace(content.measured, checks=checks)
    model = content.subject.model
    assert model is not None
    subject = replace(content.subject, model=replace(model, digest="e" * 64))
    found = compare_audits(replace(content, sums={}, measured=measured, subject=subject), content)
    assert found.same_rows
    assert not found.paired
    assert "Nothing pairs audits of an earlier version" in paired_words(found)


def test_changed_limits_are_facts(content: AuditContent) -> None:
    other = replace(content, limits={**content.limits, "KC001": Limit(high=0.5)})
    ((what, _, after),) = compare_audits(content, other).facts
    assert (what, after) == ("Limit of KC001 (overall calibration)", "at most 0.5")


@pytest.mark.parametrize(
    ("estimate", "by", "direction"),
    [
        (LOSS, 0.1, "worse"),
        (LOSS, -0.1, "better"),
        (SCORE, 0.1, "better"),
        (SCORE, -0.1, "worse"),
        (SHARE, 0.1, "other"),
        (LOSS, 0.01, "not told apart"),
        (LOSS, math.nan, "not told apart"),
        (GAP, -0.15, "better"),
        (GAP, 0.1, "worse"),
        (GAP, -0.4, "worse"),
        (GAP, -0.28, "other"),
        (GAP, -0.01, "not told apart"),
        (SLOPE, 0.78, "better"),
        (SLOPE, 1.0, "better"),
        (SLOPE, 1.6, "other"),
        (SLOPE, -0.2, "worse"),
    ],
)
def test_direction_follows_what_is_better(
    content: AuditContent, estimate: Estimate, by: float, direction: str
) -> None:
    before = with_estimates(content, estimate)
    after = with_estimates(content, moved(estimate, by))
    (one,) = compare_audits(before, after).estimates
    assert one.direction == direction


def test_the_sentence_names_what_is_better_and_worse(content: AuditContent) -> None:
    before = with_estimates(content, LOSS, SCORE, SHARE)
    after = with_estimates(content, moved(LOSS, -0.1), moved(SCORE, -0.1), moved(SHARE, 0.1))
    assert compared_words(compare_audits(before, after)) == (
        "The later audit is better in Loss; worse in Score; 1 differs where neither is better."
    )
    only = with_estimates(content, moved(SHARE, 0.1))
    assert "neither better nor worse; 1 differs" in compared_words(compare_audits(before, only))


def test_several_audits_are_held_against_one_with_one_error_rate(content: AuditContent) -> None:
    many = [replace(LOSS, name=f"Loss {k}", label=f"Loss {k}") for k in range(20)]
    baseline = with_estimates(content, *many)
    # 0.03 away is p = 0.04 for independent rows, which is enough alone and not among 20
    near = with_estimates(content, moved(many[0], 0.03), *many[1:])
    far = with_estimates(content, moved(many[0], -0.1), *many[1:19])
    alone = compare_audits(
        with_estimates(content, many[0]), with_estimates(content, near.estimates[0])
    )
    assert compared_words(alone) == "The later audit is worse in Loss 0."
    one, other = compare_with_baseline(baseline, [near, far])
    assert compared_words(one, "Spring", "Summer") == (
        "Summer and Spring cannot be told apart in any of 20 estimates."
    )
    assert compared_words(other, "Spring", "Autumn") == (
        "Autumn is better than Spring in Loss 0; 18 of 19 estimates cannot be told apart: Loss 1; "
        "Loss 2; Loss 3; and 15 more."
    )
    first, *_, last = estimates_beside([one.estimates, other.estimates])
    assert first.before == many[0]
    assert [each.direction for each in first.after] == ["not told apart", "better"]
    assert [each is None for each in last.after] == [False, True]
    with pytest.raises(InputError, match="other tasks, classes or events"):
        compare_with_baseline(
            baseline, [near, replace(far, subject=replace(far.subject, event="x"))]
        )


def test_facts_and_verdicts_of_several_audits_stand_beside_each_other(
    content: AuditContent,
) -> None:
    first, *others = content.checked.results
    limited = replace(content, limits={**content.limits, "KC001": Limit(high=0.5)})
    failed = replace(first, verdict="fail" if first.verdict != "fail" else "pass")
    judged = replace(content, checked=replace(content.checked, results=(failed, *others[1:])))
    found = compare_with_baseline(content, [limited, judged])
    (fact,) = facts_beside([one.facts for one in found])
    assert fact.after == ("at most 0.5", fact.before)
    verdicts = {one.name: (one.before, *one.after) for one in verdicts_beside((content, judged))}
    assert verdicts[first.code] == (first.verdict, failed.verdict)
    assert verdicts[others[0].code] == (others[0].verdict, None)


def test_an_estimate_that_one_audit_has_is_named(content: AuditContent) -> None:
    before, after = with_estimates(content, LOSS, LONE), with_estimates(content, LOSS, SCORE)
    found = compare_audits(before, after)
    assert [one.name for one in found.estimates] == [LOSS.name]
    assert found.only_before == (LONE.name,)
    assert found.only_after == (SCORE.name,)


def test_equal_labels_are_told_apart(content: AuditContent) -> None:
    pair = [replace(LOSS, name=f"Loss of {one}: in full") for one in "ab"]
    both = with_estimates(content, *pair)
    assert [one.label for one in compare_audits(both, both).estimates] == ["Loss of a", "Loss of b"]


@pytest.mark.parametrize("more", ["", ", of the event's probability"])
def test_what_a_check_judges_is_compared_once(content: AuditContent, more: str) -> None:
    (check, *_) = content.checked.results
    own = check.worst.own
    both = replace(content, estimates=(replace(own, name=own.name + more),))
    labels = [one.label for one in compare_audits(both, both).estimates]
    assert labels.count(check.check.title) == 1
    assert own.label not in labels


def test_a_signed_gap_that_a_check_judges_is_best_at_0(content: AuditContent) -> None:
    before = replace(content, estimates=())
    results = tuple(
        replace(one, parts=tuple(replace(part, estimate=moved(part.own, 9)) for part in one.parts))
        for one in content.checked.results
    )
    after = replace(before, checked=replace(content.checked, results=results))
    found = {one.label: one.direction for one in compare_audits(before, after).estimates}
    assert found["Calibration in the large"] == "worse"
    back = {one.label: one.direction for one in compare_audits(after, before).estimates}
    assert back["Calibration in the large"] == "better"


def test_a_check_that_is_gone_is_left_out(content: AuditContent) -> None:
    results = tuple(replace(one, code="KC999") for one in content.checked.results[:1])
    other = replace(content, checked=replace(content.checked, results=results))
    assert "KC999" in {one.code for one in compare_audits(content, other).verdicts}


def test_trends_begin_with_the_worst_check_of_the_last_audit(content: AuditContent) -> None:
    first, *others = content.checked.results
    last = others[0]
    results = (replace(first, verdict="pass"), replace(last, verdict="fail"), *others[1:])
    later = replace(content, checked=replace(content.checked, results=results))
    found = trends([drafted(content, 1), drafted(later, 2)])
    assert found[0].label == last.check.title
    assert [one.title for one in found[0].points] == ["Quarter 1", "Quarter 2"]
    assert found[0].points[0].limit == last.limit
    table = trend_table(found[0])
    assert table["drafted"].is_monotonic_increasing
    assert list(table["limit"]) == ["\N{MINUS SIGN}3% to 3%"] * 2


def test_trends_begin_with_the_worst_part_and_join_like_with_like(content: AuditContent) -> None:
    first, *others = content.checked.results
    part = first.parts[0]
    parts = (  # the worst one first, which the data made the later estimate
        replace(part, estimate=replace(part.own, name="B", label="B"), name="b", now=None),
        replace(part, estimate=replace(part.own, name="A", label="A"), name="a", now=None),
    )
    both = replace(
        content,
        estimates=tuple(one.estimate for one in parts[::-1]),
        checked=replace(content.checked, results=(replace(first, parts=parts), *others)),
    )
    model = both.subject.model
    assert model is not None
    other = replace(both, subject=replace(both.subject, model=replace(model, digest="f" * 64)))
    found = trends([drafted(one, at) for at, one in enumerate((both, both, other), 1)])
    labels = [one.label for one in found if one.label.startswith(first.check.title)]
    assert [one.rpartition(": ")[2] for one in labels] == ["b", "a"]
    assert [one.joined for one in found[0].points] == [False, True, False]
    assert found[0].points[-1].model.endswith(", ffffffffffff")
    assert {one.state for one in found[0].points} == {"draft"}


def test_trends_leave_out_audits_that_ask_something_else(content: AuditContent) -> None:
    other = replace(content, subject=replace(content.subject, event="another"))
    found = trends([drafted(content, 1), drafted(other, 2), drafted(content, 3)])
    assert all(len(one.points) == 2 for one in found)
    assert trends([]) == ()
