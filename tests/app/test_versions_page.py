"""The Versions page: two audits side by side, an estimate over time, and what it needs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import streamlit as st
from app_pages import healthy, launch, settle, specs, words
from made_reviews import line, review_of, too_sure
from streamlit.testing.v1 import AppTest
from texts.snapshot import Texts, visible
from workerless import working_here

from kdcal_core.audit import (
    URL,
    AuditContent,
    AuditSettings,
    Moment,
    Person,
    Project,
    Record,
    audit_settings,
    changed_facts,
    make_audit,
)
from kdcal_core.data.equal_rows import EqualRows
from kdcal_core.review import (
    KnownResults,
    Limit,
    ReviewReader,
    Workspace,
    read_review,
    rename_review,
    score,
    set_roles,
    start_sample,
)
from kdcal_core.tasks import Sets, SharedRows

PAGE = "versions"
HOSTILE = "<img src=x onerror=alert(1)> *a* [b](c)"
ME = Person("Me", believed="a test")


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> AuditContent:
    """An audit of checks that take no time."""
    workspace = Workspace(tmp_path_factory.mktemp("reviews"))
    with working_here():
        review = score(workspace, start_sample(workspace, "breast_cancer").id)
        settings = audit_settings(review)
        quick = AuditSettings(
            *(HOSTILE, settings.which, settings.event),
            limits=settings.limits,
            codes=("KC001", "KC002", "KC101"),
        )
        return make_audit(Sets(ReviewReader(workspace, review.id, review=review)), settings=quick)


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Record]:
    monkeypatch.setenv("KDCAL_HOME", str(tmp_path / "home"))
    monkeypatch.delenv(URL, raising=False)
    months = iter(range(1, 13))
    clock = lambda: Moment(f"2026-{next(months):02}-03T09:00:00.000000Z", "a test")  # noqa: E731
    monkeypatch.setattr("app.shared.reviews_here.at_this_machine", lambda: True)
    opened = Record(clock=clock)
    yield opened
    opened.database.close()


def better(content: AuditContent) -> AuditContent:
    """A later audit: another model, half the log loss, a limit of its own, a check that fails."""
    model = content.subject.model
    assert model is not None
    first, *others = content.checked.results
    verdict = "fail" if first.verdict != "fail" else "pass"
    parts = tuple(replace(one, verdict=verdict) for one in first.parts)
    results = (replace(first, verdict=verdict, limit=Limit(high=0.02), parts=parts), *others)
    estimates = tuple(
        replace(one, value=one.value / 9, low=one.low / 9, high=one.high / 9)
        if one.label == "Log loss"
        else one
        for one in content.estimates
    )
    return replace(
        content,
        title="Later",
        subject=replace(content.subject, model=replace(model, digest="f" * 64)),
        limits={**content.limits, "KC001": Limit(high=0.02)},
        checked=replace(content.checked, results=results),
        estimates=estimates,
    )


@pytest.fixture
def project(record: Record, content: AuditContent) -> Project:
    made = record.create(HOSTILE, ME)
    record.draft(made.id, content, ME)
    record.draft(made.id, better(content), ME)
    return record.project(made.id)


def headings(at: AppTest) -> list[str]:
    return [one.value for one in at.header]


def test_two_audits_stand_side_by_side(project: Project) -> None:
    at = healthy(launch(PAGE))
    side, trend = headings(at)
    assert side.startswith("The later audit is better in Log loss; ")
    assert "cannot be told apart" in side
    assert "in the last audit, and fails its limit (at most 0.02)" in visible(trend)
    said = words(at)
    assert "The same rows: both judged the file" in said
    assert "Changed: Model's digest and Limit of KC001" in said
    assert "1 changed verdict" in [one.value for one in at.subheader]
    assert len(at.title) == 1


def test_what_changed_and_every_verdict_and_estimate_are_tables(project: Project) -> None:
    at = healthy(launch(PAGE))
    facts, verdicts, estimates, trend = (one.value for one in at.dataframe)
    assert list(facts["What"]) == ["Model's digest", "Limit of KC001 (overall calibration)"]
    assert facts["Later"].iloc[-1] == "at most 0.02"
    assert len(verdicts) == 3
    assert list(estimates["Is"]).count("better") == 1
    assert trend["Audit"].iloc[0] == "Later"
    assert trend["Model"].iloc[0].endswith(", ffffffffffff")
    assert list(trend["State"]) == ["draft"] * 2
    assert list(trend["Calibrator"]) == [""] * 2
    assert trend["Judged file"].nunique() == 1


def test_charts_of_both_audits_and_the_trend_are_drawn(project: Project) -> None:
    at = healthy(launch(PAGE))
    assert len(specs(at)) == 3  # differences, the kept charts on the same axes, the trend
    chosen = next(one for one in at.get("button_group") if one.key == "versions_chart")
    assert "reliability" in chosen.value
    at = healthy(at.checkbox(key="versions_side_reliability").check().run())
    assert len(specs(at)) == 4


@pytest.mark.parametrize("same", [True, False])
def test_regions_lie_on_the_same_axes_only_if_they_are_the_same(
    record: Record, content: AuditContent, same: bool
) -> None:
    made = record.create("Regions", ME)
    table = "rule,rows,gap,gap_low,gap_high\nx <= 1,90,0.1,0.0,0.2\nx > 1,90,0.1,0.0,0.2\n"
    for rules in (table, table if same else table.replace("x > 1", "x > 2")):
        kept = replace(content.charts[0], key="regions", title="Regions", table=rules)
        record.draft(made.id, replace(content, charts=(kept,)), ME)
    at = healthy(launch(PAGE))
    assert len(specs(at)) == (2 if same else 3)  # of two audits, one or two, and the trend
    assert ("The audits found other regions" in words(at)) == (not same)
    assert "Every estimate of both audits is the same." in words(at)


def test_a_kept_chart_of_no_numbers_is_an_error_of_its_audit(
    record: Record, project: Project, content: AuditContent
) -> None:
    first, *others = content.charts
    broken = replace(first, table="mean_confidence,observed_frequency\nhigh,low\n")
    record.draft(project.id, replace(content, title="Odd", charts=(broken, *others)), ME)
    at = launch(PAGE)
    assert not at.exception
    assert "This is not an audit that kdcal wrote" in at.error[0].value


def test_names_are_text_and_not_markup(project: Project) -> None:
    at = healthy(launch(PAGE))
    kinds = (at.header, at.subheader, at.markdown, at.caption)
    said = " ".join(one.value for kind in kinds for one in kind)
    assert "<img" not in said
    assert "*a*" not in said.replace("\\*", "")
    assert all("<img" not in str(spec) for spec in specs(at))


def test_another_estimate_over_time(project: Project) -> None:
    at = healthy(launch(PAGE))
    choice = at.selectbox(key=f"versions_estimate_{project.id}")
    assert choice.options[0] == "Overall calibration"
    at = healthy(choice.select("Log loss of the full vector, probabilities clipped at 1e-12").run())
    assert headings(at)[1].startswith("Log loss is ")
    assert "limit" not in headings(at)[1]


def test_more_than_two_audits_and_another_pair(
    record: Record, project: Project, content: AuditContent
) -> None:
    tables = tuple(replace(one, digest="0" * 64) for one in content.subject.tables)
    subject = replace(content.subject, tables=tables)
    other = replace(content, title="Third", subject=subject, sums={})
    record.draft(project.id, other, ME)
    at = healthy(launch(PAGE))
    assert "Other rows" in words(at)
    choice = at.selectbox(key=f"versions_one_{project.id}")
    assert choice.value == list(project.audits)[1]
    at = healthy(choice.set_value(next(iter(project.audits))).run())
    assert at.dataframe[1].value.shape == (3, 3)  # without the one between them
    assert "No verdict changed" in [one.value for one in at.subheader]
    last = at.selectbox(key=f"versions_other_{project.id}").value
    at = healthy(at.selectbox(key=f"versions_one_{project.id}").set_value(last).run())
    assert "Choose two different audits." in words(at)


def test_several_audits_are_held_against_a_chosen_one(
    record: Record, project: Project, content: AuditContent
) -> None:
    tables = tuple(replace(one, digest="0" * 64) for one in content.subject.tables)
    subject = replace(content.subject, tables=tables)
    other = replace(content, title="Third", subject=subject, sums={})
    record.draft(project.id, other, ME)
    first, second, third = record.project(project.id).audits
    at = healthy(launch(PAGE))
    at.selectbox(key=f"versions_one_{project.id}").set_value(first)
    at = healthy(at.selectbox(key=f"versions_other_{project.id}").set_value(second).run())
    at = healthy(at.selectbox(key=f"versions_more_{project.id}_0").set_value(third).run())
    side = visible(headings(at)[0])
    assert re.search(
        r"Later \(3 March 2026, 09:00 UTC\) is better in 1 and worse in 0 of \d+ est", side
    )
    assert re.search(r"; Third \(3 April 2026, 09:00 UTC\) in 0 and 0 of \d+\.$", side)
    said = words(at)
    assert re.search(
        r"Later \(3 March 2026, 09:00 UTC\) is better than .* in Log loss;", visible(said)
    )
    assert "The same rows: Later (3 March 2026, 09:00 UTC), whose differences are paired." in said
    assert "Other rows: Third (3 April 2026, 09:00 UTC), whose" in said
    facts, verdicts, estimates, _ = (one.value for one in at.dataframe)
    assert verdicts.shape == (3, 4)
    assert facts.shape[1] == estimates.shape[1] - 2 == 4
    assert list(estimates["Is: Later (3 March 2026, 09:00 UTC)"]).count("better") == 1
    assert set(estimates["Is: Third (3 April 2026, 09:00 UTC)"]) == {"not told apart"}
    drawn = next(one for one in at.get("button_group") if one.key == "versions_drawn")
    assert "Better" in str(specs(at)[0])
    at = healthy(drawn.set_value(1).run())
    assert "Better" not in str(specs(at)[0])
    assert "Chosen minus first audit" in str(specs(at)[0])  # the first need not be the earliest


def test_several_audits_are_called_what_the_choices_call_them(
    record: Record, content: AuditContent
) -> None:
    record._clock = lambda: Moment("2026-01-03T09:00:00.000000Z", "a test")
    made = record.create("A project", ME)
    first, second, third = (
        record.draft(made.id, replace(content, title="Same"), ME).id for _ in range(3)
    )
    at = healthy(launch(PAGE))
    at.selectbox(key=f"versions_other_{made.id}").set_value(third)
    at.selectbox(key=f"versions_one_{made.id}").set_value(second)
    at = healthy(at.selectbox(key=f"versions_more_{made.id}_0").set_value(first).run())
    drafted = [f"3 January 2026, 09:00 UTC, {one[:8]}" for one in (first, second, third)]
    # a closed choice shows how its label begins, and titles may be long
    assert at.selectbox(key=f"versions_one_{made.id}").options == [
        f"{one} · Same" for one in drafted
    ]
    labels = [f"Same ({one})" for one in drafted]
    assert visible(headings(at)[0]).startswith(f"Against {labels[1]}, {labels[0]} is better in 0")
    assert re.search(rf"; {re.escape(labels[2])} in 0 and 0 of \d+\.$", visible(headings(at)[0]))


def test_audits_that_ask_something_else_are_one_clear_error(
    record: Record, project: Project, content: AuditContent
) -> None:
    record.draft(project.id, replace(content, subject=replace(content.subject, event=None)), ME)
    at = launch(PAGE)
    assert not at.exception
    assert [visible(one.value) for one in at.error] == [
        "The audits are of other tasks, classes or events.\n\nCompare audits of the same task and "
        "classes, about the same event."
    ]
    assert "2 audits of 3 left out" in words(at)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_audits_say_what_is_needed(
    record: Record, content: AuditContent, n: int, texts: Texts
) -> None:
    made = record.create("A project", ME)
    for _ in range(n):
        record.draft(made.id, content, ME)
    at = healthy(launch(PAGE))
    assert not headings(at)
    assert "It needs two audits of one project." in words(at)
    assert [one.proto.page for one in at.get("page_link")] == ["audits", ""]
    texts(at)


def test_an_audit_whose_file_is_gone_is_one_clear_error(project: Project, record: Record) -> None:
    last = list(project.audits.values())[-1]
    record.files.delete(last.facts.content)
    st.cache_resource.clear()
    at = launch(PAGE)
    assert not at.exception
    assert at.error
    assert len(at.title) == 1


def test_a_database_that_cannot_be_reached_is_one_clear_error(
    record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URL, "postgresql://nobody@127.0.0.1:9/none")
    at = launch(PAGE)
    assert not at.exception
    assert len(at.error) == 1
    assert len(at.title) == 1


def test_nobody_unknown_sees_audits_on_a_shared_server(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.shared.people.may_work", lambda who: False)
    at = healthy(launch(PAGE))
    assert not headings(at)
    assert "not signed in" in words(at)


@pytest.fixture
def own(record: Record) -> Iterator[Workspace]:
    """The reviews of this machine."""
    with working_here():
        yield Workspace()


def chosen(at: AppTest, review_id: str, other: str) -> AppTest:
    choice = at.selectbox(key=f"versions_review_{review_id}")
    return healthy(settle(healthy(choice.set_value(other).run())))


def test_two_reviews_of_the_same_rows_are_paired(
    own: Workspace, texts: Texts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.versions.versions_reviews.day_text", lambda when: "3 March 2026")
    table = too_sure(300, 0)
    before = review_of(own, calibration=table)
    after = review_of(own, calibration=table.assign(yes=table["yes"], more=range(300)))
    rename_review(own, before, HOSTILE)
    at = healthy(launch(PAGE, after))
    assert not headings(at)
    at = chosen(at, after, before)
    (side,) = headings(at)
    assert "cannot be told apart" in side
    said = words(at)
    assert "The same rows: 300 rows are equal in 1 column" in said
    assert "Changed: Inputs and Calibration table" in said
    assert len(specs(at)) == 2  # the differences, and the curves of both
    facts, estimates = (one.value for one in at.dataframe)
    assert list(facts.columns) == ["What", "Other review", "Open review"]
    assert set(estimates["Is"]) == {"not told apart"}
    known = KnownResults().read()  # for their audits
    assert known is not None
    assert {read_review(own, one).sets["calibration"].digest for one in (before, after)} == set(
        known.rows
    )
    texts(at)


def test_the_open_review_is_held_against_several(own: Workspace) -> None:
    table = too_sure(300, 0)
    worse = table.assign(
        yes=(table["yes"] ** 4).clip(1e-6), no=1.0 - (table["yes"] ** 4).clip(1e-6)
    )
    rows = (table.assign(more=range(300)), worse, table)
    first, second, after = (review_of(own, calibration=one) for one in rows)
    for title, one in (("Equal", first), ("Worse", second)):
        rename_review(own, one, title)
    at = chosen(healthy(launch(PAGE, after)), after, first)
    more = at.selectbox(key=f"versions_more_{after}_0")
    at = healthy(settle(healthy(more.set_value(second).run())))
    side = visible(headings(at)[0])
    assert re.match(
        r"The open review is better in 0 and worse in 0 of \d+ estimates than Equal; in [1-9]\d* "
        r"and \d+ of \d+ than Worse\.",
        side,
    )
    said = visible(words(at))
    assert "The open review and Equal cannot be told apart in any of" in said
    assert "The open review is better than Worse in" in said
    facts, estimates = (one.value for one in at.dataframe)
    assert list(facts.columns) == ["What", "Open review", "Equal", "Worse"]
    assert "better" in set(estimates["Is: Worse"])


def test_other_columns_of_one_table_are_a_difference(own: Workspace) -> None:
    table = too_sure(300, 0)
    before, after = (
        review_of(own, calibration=table.assign(weight=1.0 + weight * np.arange(300) / 300))
        for weight in (0, 1)
    )
    roles = read_review(own, after).roles
    unused = tuple(one for one in roles.features if one != "weight")
    set_roles(own, after, replace(roles, weight="weight", features=unused))
    score(own, after)
    facts = changed_facts(read_review(own, before), read_review(own, after))
    assert ("Weights", "none", "weight") in facts


def test_two_reviews_of_other_rows_say_so(own: Workspace) -> None:
    before, after = (review_of(own, calibration=too_sure(300, seed)) for seed in (0, 1))
    at = chosen(healthy(launch(PAGE, after)), after, before)
    assert "Other rows: none of 300 and 300 rows is in both" in words(at)


def test_rows_whose_columns_were_rescaled_are_said_to_be_alike(own: Workspace) -> None:
    table = too_sure(300, 0)
    before, after = (
        review_of(own, calibration=table.assign(feature=scale * table["feature"]))
        for scale in (1.0, 2.54)
    )
    at = chosen(healthy(launch(PAGE, after)), after, before)
    assert (
        "No row of 300 and 300 rows has the same columns in both, but their true classes and "
        "predictions are equal in the same order"
    ) in words(at)


def test_two_regressions_are_compared(own: Workspace) -> None:
    table = line(200, 0)
    before = review_of(own, calibration=table)
    after = review_of(own, calibration=table.assign(mean=table["true_mean"], std=30 * table["x"]))
    at = chosen(healthy(launch(PAGE, after)), after, before)
    assert headings(at)[0].startswith("The open review is better in CRPS")
    assert "Not compared row by row: RMSE" in words(at)
    assert "Not paired: RMSE, " in words(at)
    assert len(specs(at)) == 2


def test_without_another_review_the_page_says_what_it_needs(own: Workspace) -> None:
    review_of(own, calibration=line(60, 0))  # of another task
    review_id = review_of(own, calibration=too_sure(60, 0))
    at = healthy(launch(PAGE, review_id))
    assert "Comparing needs another review on this machine" in words(at)
    assert not at.selectbox


def test_reviews_of_others_are_not_offered(own: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, mine = (review_of(own, calibration=too_sure(60, seed)) for seed in (0, 1))
    own.update(theirs, lambda one: one.owned_by(("https://id.example.org", "ann")))
    at = healthy(launch(PAGE, mine))
    assert "Comparing needs another review" in words(at)
    monkeypatch.setattr("app.shared.reviews_here.at_this_machine", lambda: False)
    at = healthy(launch(PAGE, mine))
    assert "not signed in" in words(at)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by": "file"}, "The same rows: both judged 300 rows of the file"),
        ({"by": "outcomes"}, "true classes of 300 rows are equal in the same order, and no column"),
        ({"by": "unknown", "paired": 0}, "It cannot be said how many rows both have"),
        (
            {"by": "some", "matched": 250, "weighted_alike": 240, "paired": 240},
            "240 rows of 300 and 300 rows are in both, matched by their content. Differences are "
            "paired row by row on these alone. 10 rows with another weight left out.",
        ),
        (
            {"by": "file", "weighted_alike": 0, "paired": 0},
            "300 rows of 300 and 300 rows are in both, but 300 of them have another weight",
        ),
        (
            {
                "by": "some",
                "matched": 40,
                "weighted_alike": 40,
                "paired": 0,
                "equal": EqualRows(41, 300, 0.0, 41, 0.0),
            },
            "41 rows of the open review are in the other too (41 pairs, chance gives 0): 40 can be "
            "matched one by one, and a comparison on them alone needs 50% of the smaller set, so "
            "the intervals",
        ),
    ],
)
def test_how_far_the_rows_are_the_same(own: Workspace, change: dict[str, Any], said: str) -> None:
    from app.versions.versions_reviews import rows_words

    review = own.read(review_of(own, calibration=too_sure(60, 0)))
    rows = SharedRows("columns", 300, 300, 300, 300, 300, None, ("a",), 1)
    assert said in rows_words(replace(rows, **change), review)


def test_a_chosen_review_that_is_gone_is_chosen_no_more(own: Workspace) -> None:
    first, _, open_one = (review_of(own, calibration=too_sure(60, seed)) for seed in (0, 1, 2))
    at = chosen(healthy(launch(PAGE, open_one)), open_one, first)
    assert headings(at)
    own.delete(first)
    at = healthy(at.run())
    assert not headings(at)
    assert len(at.selectbox(key=f"versions_review_{open_one}").options) == 1
