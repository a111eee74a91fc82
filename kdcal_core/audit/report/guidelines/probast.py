"""PROBAST+AI: the risk of bias of a study that evaluates a model.

The tool has two parts, the development of a model with 16 signalling questions (3 on participants
and data sources, 4 on predictors, 4 on the outcome, 5 on the analysis) and its evaluation with 18
(3, 4, 4 and 7); applicability is rated in the first three domains. Here is the second part. The
parts, domains and numbers of questions are those of the article's abstract; the order and theme of
each question was compared, on 2026-11-26, with a public transcription of the tool for systematic
reviews (github.com/raphaelfh/prumo), whose numbers are the article's. The words are ours: a person
must look up the questions themselves.
"""

from __future__ import annotations

from kdcal_core.audit.report.guidelines.facts_of_audit import (
    all_of,
    check_answer,
    check_answers,
    discrimination,
    division,
    groups,
    how_predicted,
    limits_beforehand,
    missing_values,
    numbers_of_rows,
    outcome,
    outcome_apart,
    predictors,
    rows_judged,
    sets_alike,
    uncertainty,
    updating,
)
from kdcal_core.audit.report.guidelines.guideline import Guideline, Item, Says, nothing

_ANSWER = "The answer, from yes to no; the question's wording is in the article."
_PARTICIPANTS, _PREDICTORS, _OUTCOME, _ANALYSIS = "1", "2", "3", "4"


def _question(domain: str, number: int, asks: str, says: Says = nothing) -> Item:
    """The theme of a signalling question, by its domain and its place in it."""
    return Item(f"Domain {domain}, question {number}", asks, says, _ANSWER, compared=False)


SIGNALLING = (
    _question(
        _PARTICIPANTS,
        1,
        "Whether the data come from suitable and traceable sources.",
        division,
    ),
    _question(
        _PARTICIPANTS,
        2,
        "Whether the design of the study, such as a cohort or a trial, suits the purpose.",
    ),
    _question(
        _PARTICIPANTS,
        3,
        "Whether the rows that were taken and left out represent those for whom the model is "
        "meant, people of all groups among them.",
        all_of(rows_judged, sets_alike, groups),
    ),
    _question(
        _PREDICTORS,
        1,
        "Whether predictors are defined and measured alike for all rows.",
        predictors,
    ),
    _question(
        _PREDICTORS,
        2,
        "Whether predictors were prepared, for example scaled or extracted, alike for all rows.",
        how_predicted,
    ),
    _question(
        _PREDICTORS,
        3,
        "Whether predictors were measured by people or systems that did not know the outcome.",
    ),
    _question(
        _PREDICTORS,
        4,
        "Whether every predictor is known at the moment at which the model is to be used.",
        predictors,
    ),
    _question(
        _OUTCOME,
        1,
        "Whether the outcome has a suitable definition and was determined well.",
        outcome,
    ),
    _question(
        _OUTCOME,
        2,
        "Whether the outcome was defined and determined alike for all rows.",
    ),
    _question(
        _OUTCOME,
        3,
        "Whether the outcome was determined without the predictors, none of which is in it.",
        outcome_apart,
    ),
    _question(
        _OUTCOME,
        4,
        "Whether the time between predictors and outcome is neither too short nor too long.",
    ),
    _question(
        _ANALYSIS,
        1,
        "Whether the evaluation goes beyond the rows on which the model was developed.",
        all_of(division, sets_alike),
    ),
    _question(
        _ANALYSIS,
        2,
        "Whether there are enough rows, and enough with the outcome.",
        numbers_of_rows,
    ),
    _question(
        _ANALYSIS,
        3,
        "Whether rows with missing values, or whose outcome was not observed to the end, were "
        "handled well.",
        missing_values,
    ),
    _question(
        _ANALYSIS,
        4,
        "Whether classes have the shares of real use in these rows, if they were balanced while "
        "the model was developed.",
        outcome,
    ),
    _question(
        _ANALYSIS,
        5,
        "Whether nothing of these rows leaked into the development, if one table was divided.",
        sets_alike,
    ),
    _question(
        _ANALYSIS,
        6,
        "Whether every step of the development was repeated in each resample, if resamples judge "
        "the model.",
        updating,
    ),
    _question(
        _ANALYSIS,
        7,
        "Whether performance was measured well: calibration, discrimination and the benefit of "
        "decisions.",
        all_of(discrimination, uncertainty, limits_beforehand),
    ),
)

PROBAST = Guideline(
    "PROBAST+AI",
    "Moons et al. (2025), PROBAST+AI, the part on evaluating a model",
    "https://doi.org/10.1136/bmj-2024-082505",
    (
        Item(
            "Domain: participants and data sources",
            "Whether the data suit the evaluation of this model.",
            sets_alike,
            "Sources of the data, and who was included.",
        ),
        Item(
            "Domain: predictors",
            "Whether predictors were defined and measured alike for all, and are known in time.",
            person="How and when predictors were measured.",
        ),
        Item(
            "Domain: outcome",
            "Whether the outcome was determined well, and without knowledge of the predictors.",
            outcome,
            "How the outcome was determined.",
        ),
        Item(
            "Domain: analysis",
            "Whether there were enough rows and events, missing values were handled well, and "
            "discrimination and calibration were both measured.",
            lambda content, audit: " ".join(
                filter(
                    None,
                    (
                        check_answer(content, "KC202"),
                        missing_values(content, audit),
                        check_answers(content, "KC101", "KC001", "KC004", "KC021", "KC022"),
                    ),
                )
            ),
            "The rating of the risk of bias.",
        ),
        Item(
            "Applicability: participants and data sources",
            "Whether these rows are of the people and setting for which the model is meant.",
            sets_alike,
            "The rating of applicability.",
        ),
        Item(
            "Applicability: predictors",
            "Whether predictors are defined and measured as where the model is meant to be used.",
            predictors,
            "The rating of applicability.",
        ),
        Item(
            "Applicability: outcome",
            "Whether the outcome is the one for which the model is meant.",
            outcome,
            "The rating of applicability.",
        ),
        *SIGNALLING,
    ),
)
