"""What supervisors of banks ask of the management of models."""

from __future__ import annotations

from kdcal_core.audit.report.guidelines.facts_of_audit import (
    all_of,
    baseline,
    findings,
    how_predicted,
    limits_beforehand,
    made_again,
    model_signature,
    preparation,
    second_person,
    sets_alike,
    updating,
    verdict,
)
from kdcal_core.audit.report.guidelines.guideline import Guideline, Item

SR = Guideline(
    "SR 26-2",
    "Federal Reserve, SR 26-2 (2026), Revised Guidance on Model Risk Management, section V",
    "https://www.federalreserve.gov/supervisionreg/srletters/SR2602.htm",
    (
        Item(
            "Conceptual soundness",
            "Whether design, data and assumptions of the model suit its purpose.",
            person="Purpose, design, assumptions and their limits.",
        ),
        Item(
            "Outcomes analysis",
            "What the model stated against what happened.",
            verdict,
        ),
        Item(
            "Ongoing monitoring",
            "Whether the model still works as products, customers and data change.",
            baseline,
            "How often the model is audited again, and what triggers it sooner.",
        ),
    ),
)

SS = Guideline(
    "SS1/23",
    "Prudential Regulation Authority, SS1/23 (2023), Model risk management principles for banks",
    "https://www.bankofengland.co.uk/prudential-regulation/publication/2023/may/"
    "model-risk-management-principles-for-banks-ss",
    (
        Item(
            "Principle 3.3",
            "Tests of performance and stability while a model is developed.",
            sets_alike,
            "Tests of the developers.",
        ),
        Item(
            "Principle 4.1",
            "A function of validation that is independent and effective.",
            person="Who validates, with which independence and authority.",
            compared=False,
        ),
        Item(
            "Principle 4.2",
            "An independent review of inputs, calculations and outputs of the model, of its "
            "soundness for its purpose, and of the evidence from its development.",
            all_of(second_person, limits_beforehand, verdict, findings),
            "Why the reviewers are independent of the developers; soundness, and the evidence of "
            "the development.",
            compared=False,
        ),
        Item(
            "Principle 4.3",
            "A check that inputs are right and representative, that code and systems compute "
            "what is intended, and that reports are accurate and complete.",
            all_of(preparation, model_signature, how_predicted, made_again),
            "The check of the process and the systems in which the model is used.",
            compared=False,
        ),
        Item(
            "Principle 4.4",
            "Monitoring of performance against limits.",
            lambda content, audit: f"{verdict(content, audit)} {limits_beforehand(content, audit)}",
            "The plan of monitoring.",
        ),
        Item(
            "Principle 4.5",
            "Validation again from time to time.",
            person="When the model is validated again.",
        ),
        Item(
            "Principle 5.1",
            "Adjustments after the model, such as a calibrator, are justified and reviewed.",
            updating,
            "Who reviews the adjustment, and until when it holds.",
        ),
    ),
)
