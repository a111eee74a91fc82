"""Tables as people have them: what each was taken for, and what is asked about it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kdcal_core.data import Reading, Roles, output_matrix, read_columns, read_table, target_labels
from kdcal_core.data.forecast_columns import outcome_column, parameter_columns
from kdcal_core.data.role_columns import true_labels
from kdcal_core.errors import InputError

N = 300
RNG = np.random.default_rng(0)
P = RNG.beta(0.8, 3.0, N).round(6)
LOGIT = np.log(P / (1.0 - P))
EVENT = (RNG.random(N) < P).astype(int)
OTHER = RNG.integers(0, 2, N)  # of two values, and of no use
AGE = RNG.normal(50, 10, N).round(2)
REGION = np.resize(["north", "south", "west"], N)
THREE = RNG.dirichlet(np.ones(3), N).round(6)
THREE[:, 2] = 1 - THREE[:, 0] - THREE[:, 1]
KIND = np.array([RNG.choice(3, p=np.clip(p, 0, 1) / np.clip(p, 0, 1).sum()) for p in THREE])
NAMES = np.array(["ant", "bee", "cat"])
X = RNG.uniform(2, 20, N)
FORECAST = (110 * X - 460).round(3)
SOLD = (FORECAST + RNG.normal(0, 300, N)).round(3)
LOWER, UPPER = FORECAST - 493.0, FORECAST + 493.0  # holds 90% of the outcomes

RATE = RNG.uniform(1, 9, N).round(2)
COUNT = RNG.poisson(RATE)
DOZEN = {f"p_{k}": column for k, column in enumerate(RNG.dirichlet(np.ones(12), N).T)}
SIXTY = {f"p_{k}": column for k, column in enumerate(RNG.dirichlet(np.ones(60), N).T)}

SHARE = P + RNG.normal(0, 0.1, N)


BY_COUNT = [",".join(one) for one in (NAMES, NAMES[np.argsort(-np.bincount(KIND))])]


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({name.replace("__", " "): column for name, column in columns.items()})


def proba(prefix: str = "p_", names: Any = NAMES, scale: float = 1.0) -> dict[str, Any]:
    return {f"{prefix}{name}": scale * THREE[:, at] for at, name in enumerate(names)}


def csv(table: pd.DataFrame, **options: Any) -> bytes:
    return table.to_csv(**{"index": False, **options}).encode()


def parquet(table: pd.DataFrame) -> bytes:
    stream = io.BytesIO()
    table.to_parquet(stream)
    return stream.getvalue()


def yes_no(values: Any, yes: str = "yes", no: str = "no") -> Any:
    return np.where(np.asarray(values) == 1, yes, no)


def signed(percentages: Any) -> list[str]:
    """As people write them, half of them with a decimal comma and a space."""
    return [
        f"{one:.4f}%" if at % 2 else f"{one:.4f} %".replace(".", ",")
        for at, one in enumerate(percentages)
    ]


def money(values: Any) -> list[str]:
    """As people write dollars and euros, by turns."""
    return [f"${one:,.0f}" for one in values]


def euros(values: Any) -> list[str]:
    return [f"{one:,.2f} €".translate(str.maketrans(",.", ".,")) for one in values]


VOTES = RNG.binomial(5, P) / 5
CREDIT = (850 - 540 * P).round()  # from 310
TWO = [[1.0 - p, p] for p in P]

LOANS = frame(age=AGE, default=OTHER, defaulted=EVENT, p_default=P)
SOLD_TABLE = frame(price=SOLD, prediction=FORECAST, lower=LOWER, upper=UPPER)
SHUFFLED = frame(p_1=P, y=EVENT).sample(frac=1.0, random_state=0)

DAYS = pd.date_range("2026-01-01", periods=100).strftime("%Y-%m-%d").repeat(3)
VISITS = pd.concat([frame(patient_id=range(N), age=AGE, y=EVENT, p_1=P)] * 2)
ORDERS = pd.concat([frame(customer=[f"c{i}" for i in range(N)], price=SOLD, forecast=FORECAST)] * 2)

# name: (the file, what it is taken for); "asks" are the questions, "notes" words of the notes
SHAPES: dict[str, tuple[bytes | Callable[[], bytes], dict[str, Any]]] = {
    # one probability of two classes
    "y and p": (csv(frame(y=EVENT, p=P)), {"target": "y", "outputs": {"1": "p"}}),
    "y_true and y_prob": (
        csv(frame(y_true=EVENT, y_prob=P)),
        {"target": "y_true", "outputs": {"1": "y_prob"}},
    ),
    "words and one score": (
        csv(frame(id=np.arange(N), score=P, outcome=yes_no(EVENT))),
        {"target": "outcome", "outputs": {"yes": "score"}, "features": ()},
    ),
    "a prediction that is a share": (
        csv(frame(prediction=P, label=EVENT)),
        {"target": "label", "outputs": {"1": "prediction"}},
    ),
    "true and false": (
        csv(frame(fraud=EVENT == 1, fraud_score=P)),
        {"target": "fraud", "outputs": {"True": "fraud_score"}},
    ),
    "minus one and one": (
        csv(frame(p_1=P, y=2 * EVENT - 1)),
        {"target": "y", "outputs": {"1": "p_1"}},
    ),
    "one and two": (
        csv(frame(p_default=P, label=EVENT + 1)),
        {"target": "label", "outputs": {"2": "p_default"}, "class_by": "rows"},
    ),
    "a column of no known class": (
        csv(frame(score=P, grp=yes_no(EVENT, "b", "a"))),
        {"target": "grp", "outputs": {"b": "score"}, "class_by": "rows"},
    ),
    # a probability for each class
    "two columns by name": (
        csv(frame(proba_no=1 - P, proba_yes=P, label=yes_no(EVENT))),
        {"target": "label", "outputs": {"no": "proba_no", "yes": "proba_yes"}},
    ),
    "three columns by name": (
        csv(frame(species=NAMES[KIND], **proba())),
        {"target": "species", "outputs": {"ant": "p_ant", "bee": "p_bee", "cat": "p_cat"}},
    ),
    "three columns, counted from 0": (
        csv(frame(label=NAMES[KIND], **proba("prob_", range(3)))),
        {"outputs": {"ant": "prob_0", "bee": "prob_1", "cat": "prob_2"}},
    ),
    "labels from 1, columns from 0": (
        csv(frame(label=KIND + 1, **proba("prob_", range(3)))),
        {"outputs": {"1": "prob_0", "2": "prob_1", "3": "prob_2"}},
    ),
    "classes as numbers in another order": (
        csv(frame(y=np.array([2, 0, 1])[KIND], **proba("proba_", (2, 0, 1)))),
        {"outputs": {"0": "proba_0", "1": "proba_1", "2": "proba_2"}},
    ),
    "classes before the word, in another order": (
        csv(
            frame(
                y=NAMES[KIND], cat_proba=THREE[:, 2], ant_proba=THREE[:, 0], bee_proba=THREE[:, 1]
            )
        ),
        {"outputs": {"ant": "ant_proba", "bee": "bee_proba", "cat": "cat_proba"}},
    ),
    "classes after more than one word": (
        csv(frame(y=NAMES[KIND], **proba("P(y=", ("ant)", "bee)", "cat)")))),
        {"outputs": {"ant": "P(y=ant)", "bee": "P(y=bee)", "cat": "P(y=cat)"}},
    ),
    "as H2O writes them": (
        csv(frame(predict=(P > 0.5) * 1, p1=P, p0=1 - P, y=EVENT)),
        {"outputs": {"0": "p0", "1": "p1"}, "predicted": "predict", "features": ()},
    ),
    "as SAS writes them": (
        csv(frame(LOAN=AGE, BAD=EVENT, P_BAD1=P, P_BAD0=1 - P)),
        {"target": "BAD", "outputs": {"0": "P_BAD0", "1": "P_BAD1"}, "features": ("LOAN",)},
    ),
    "as Azure writes them": (
        csv(frame(age=AGE, income=EVENT, Scored__Labels=OTHER, Scored__Probabilities=P)),
        {
            "target": "income",
            "outputs": {"1": "Scored Probabilities"},
            "predicted": "Scored Labels",
            "features": ("age",),
        },
    ),
    "a probability in German beside inputs": (
        csv(frame(Alter=AGE, Ausfall=EVENT, Wahrscheinlichkeit=P)),
        {"target": "Ausfall", "outputs": {"1": "Wahrscheinlichkeit"}, "features": ("Alter",)},
    ),
    "named after other classes than the labels": (
        csv(frame(y=EVENT, prob_good=1 - P, prob_bad=P)),
        {"asks": ["order"], "choices": ["0,1", "1,0"], "says": "after other classes than the"},
    ),
    "a lone share of no known name": (
        csv(frame(y=EVENT, s1=P, region=REGION)),
        {
            "asks": ["outputs"],
            "choices": ["1,s1", "0,s1", "model"],
            "says": "'s1' holds numbers from 0 to 1, and no name says that it is a probability",
            "features": ("s1", "region"),
        },
    ),
    "a share with a class's number as its name, beside another share": (
        csv(frame(**{"0": P.round(3), "utilisation": (AGE / 200).clip(0, 1)}, y=EVENT)),
        {
            "asks": ["outputs"],
            "choices": ["1,0", "0,0", "1,utilisation", "0,utilisation", "model"],
            "says": "no name says that one of them is a probability",
        },
    ),
    "two measured numbers of no known names": (
        csv(frame(id=range(N), house=SOLD, valuation=FORECAST)),
        {
            "target": None,
            "asks": ["order"],
            "choices": ["house,valuation", "valuation,house"],
            "says": "no name says which is the outcome",
        },
    ),
    "least and greatest beside a forecast": (
        csv(frame(price=SOLD, forecast=FORECAST, min=LOWER, max=UPPER)),
        {"task": "regression", "target": "price", "parameters": {}, "asks": ["level"]},
    ),
    "from and to beside a forecast": (
        csv(frame(price=SOLD, forecast=FORECAST, **{"from": LOWER, "to": UPPER})),
        {"task": "regression", "target": "price", "parameters": {}, "asks": ["level"]},
    ),
    "from and to of a journey": (
        csv(frame(price=SOLD, forecast=FORECAST, km_from=AGE, km_to=AGE + 9)),
        {"task": "regression", "target": "price", "parameters": {"mean": "forecast"}},
    ),
    "visits of patients": (
        csv(VISITS),
        {
            "target": "y",
            "features": ("age",),
            "asks": ["cluster"],
            "choices": ["patient_id", ""],
            "says": "'patient_id' (300 in 600 rows) names what several rows belong to",
        },
    ),
    "orders of customers": (
        csv(ORDERS),
        {
            "task": "regression",
            "parameters": {"mean": "forecast"},
            "asks": ["cluster"],
            "choices": ["customer", ""],
        },
    ),
    "loans by the day": (
        csv(frame(applied=DAYS, age=AGE, default=EVENT, p_default=P)),
        {
            "target": "default",
            "features": ("age",),
            "asks": ["time"],
            "choices": ["applied", ""],
            "says": "'applied' (100 different ones in 300 rows) holds dates or times",
        },
    ),
    "loans by the month": (  # too few times to say how alike near ones are
        csv(frame(month=[f"2026-{1 + i % 12:02}" for i in range(N)], age=AGE, default=EVENT, p=P)),
        {"target": "default", "features": ("age",)},
    ),
    "demand by the second": (
        csv(frame(timestamp=1_780_000_000 + 60 * np.arange(N), price=SOLD, forecast=FORECAST)),
        {"task": "regression", "target": "price", "asks": ["time"], "features": ()},
    ),
    "survey weights": (
        csv(frame(y=EVENT, p_1=P, age=AGE, survey__weight=X)),
        {"weight": "survey weight", "features": ("age",)},
    ),
    "an input that the forecast is computed from": (
        csv(frame(size=X, forecast=FORECAST, revenue=SOLD)),
        {
            "task": "regression",
            "target": "revenue",
            "asks": ["target"],
            "choices": ["revenue", "size"],
        },
    ),
    "a share among features": (
        csv(frame(y=EVENT, utilisation=P, age=AGE)),
        {"outputs": {}, "features": ("utilisation", "age")},
    ),
    "columns called as the classes": (
        csv(frame(y=NAMES[KIND], ant=THREE[:, 0], bee=THREE[:, 1], cat=THREE[:, 2])),
        {"outputs": {"ant": "ant", "bee": "bee", "cat": "cat"}},
    ),
    "a class without rows": (
        csv(frame(y=NAMES[KIND], **proba())[KIND != 1]),
        {"outputs": {"ant": "p_ant", "bee": "p_bee", "cat": "p_cat"}},
    ),
    "logits": (
        csv(frame(y=KIND, **{f"logit_{k}": np.log(THREE[:, k].clip(1e-6)) for k in range(3)})),
        {"kind": "logit", "outputs": {"0": "logit_0", "1": "logit_1", "2": "logit_2"}},
    ),
    "a lone column of log odds": (
        csv(frame(age=AGE, y=EVENT, logit=LOGIT)),
        {"kind": "logit", "outputs": {"1": "logit"}, "notes": "log odds", "features": ("age",)},
    ),
    "a lone column that may hold log odds": (
        csv(frame(age=AGE, y=yes_no(EVENT), score=LOGIT)),
        {"asks": ["scale"], "choices": ["logit", "other"], "outputs": {}, "says": "log odds"},
    ),
    "predictions that may be log odds": (
        csv(frame(age=AGE, y=EVENT, prediction=LOGIT)),
        {"asks": ["scale"], "choices": ["logit", "other"], "outputs": {}},
    ),
    "a margin that may hold log odds, beside a feature below zero": (
        csv(frame(celsius=AGE - 40.5, y=EVENT, raw_margin=LOGIT)),
        {"asks": ["scale"], "outputs": {}, "features": ("celsius",)},
    ),
    "a feature below zero": (
        csv(frame(celsius=AGE - 40.5, y=EVENT)),
        {"asks": [], "outputs": {}, "features": ("celsius",)},
    ),
    "with a predicted class": (
        csv(frame(y=NAMES[KIND], y_pred=NAMES[THREE.argmax(1)], **proba())),
        {"target": "y", "predicted": "y_pred"},
    ),
    "a split and weights": (
        csv(frame(y=EVENT, p=P, split=np.resize(["cal", "test"], N), sample_weight=1.5)),
        {"split": "split", "weight": "sample_weight", "outputs": {"1": "p"}},
    ),
    "a dozen classes as numbers, whose columns might be quantiles": (
        csv(frame(y=np.arange(N) % 12, **DOZEN)),
        {"target": "y", "outputs": 12},
    ),
    "sixty classes as numbers, in per cent": (
        csv(frame(y=np.arange(N) % 60, **{n: 100 * c for n, c in SIXTY.items()})),
        {"target": "y", "outputs": 60, "kind": "percent", "notes": "divided by 100"},
    ),
    # which column is the target
    "default beside defaulted": (
        csv(LOANS),
        {"asks": ["target"], "choices": ["default", "defaulted"], "outputs": {"1": "p_default"}},
    ),
    "default of three values": (
        csv(LOANS.assign(default=np.resize(["yes", "no", "unknown"], N))),
        {"target": "defaulted", "outputs": {"1": "p_default"}, "notes": "and not 'default'"},
    ),
    "income beside defaulted, in numbers": (
        csv(frame(age=AGE, income=1000 * AGE, defaulted=EVENT, probability=P)),
        {"target": "defaulted", "outputs": {"1": "probability"}, "notes": "and not 'income'"},
    ),
    "income of two values, of which the predictions know nothing": (
        csv(frame(age=AGE, income=yes_no(OTHER, "high", "low"), defaulted=EVENT, probability=P)),
        {"asks": ["target"], "choices": ["income", "defaulted"], "class_by": "order"},
    ),
    "income, and nothing that the predictions follow more": (
        csv(frame(sex=yes_no(OTHER, "f", "m"), income=EVENT, probability=P)),
        {"target": "income", "asks": [], "outputs": {"1": "probability"}},
    ),
    "a feature called default": (
        csv(frame(age=AGE, default=yes_no(OTHER), y=yes_no(EVENT), p_yes=P)),
        {"target": "y", "asks": ["target"], "choices": ["y", "default"]},
    ),
    "no column is named, two could be it": (
        csv(frame(smoker=OTHER, result=EVENT, score=P)),
        {"target": "result", "asks": ["target"], "choices": ["result", "smoker"]},
    ),
    "no column is named, one fits": (
        csv(frame(region=REGION, result=EVENT, score=P)),
        {"target": "result", "outputs": {"1": "score"}, "features": ("region",)},
    ),
    "a category that is no class": (
        csv(frame(category=REGION, y=yes_no(EVENT), p_yes=P, p_no=1 - P)),
        {"target": "y", "outputs": {"no": "p_no", "yes": "p_yes"}},
    ),
    # the top label alone
    "label, prediction, confidence": (
        csv(
            frame(
                label=NAMES[KIND],
                prediction=NAMES[THREE.argmax(1)],
                confidence=THREE.max(1),
            )
        ),
        {
            "outputs": {},
            "asks": ["outputs"],
            "choices": ["right"],
            "says": "can judge whether predictions are right",
        },
    ),
    "of two classes": (
        csv(frame(label=EVENT, prediction=(P > 0.5).astype(int), score=np.maximum(P, 1 - P))),
        {
            "outputs": {"1": "score"},
            "kind": "confidence",
            "predicted": "prediction",
            "features": (),
            "notes": "the other class has the rest",
        },
    ),
    "of two classes, predicted in other words": (
        csv(frame(label=EVENT, prediction=yes_no(P > 0.5), confidence=np.maximum(P, 1 - P))),
        {"outputs": {}, "asks": ["outputs"], "says": "for example 'p_0' and 'p_1'"},
    ),
    "confidence of two classes in per cent": (
        csv(frame(label=EVENT, prediction=(P > 0.5) * 1, confidence=100 * np.maximum(P, 1 - P))),
        {"outputs": {}, "asks": ["scale"], "choices": ["percent", "other"]},
    ),
    "confidence of several classes in per cent": (
        csv(
            frame(
                label=NAMES[KIND],
                prediction=NAMES[THREE.argmax(1)],
                confidence=100 * THREE.max(1),
            )
        ),
        {"outputs": {}, "asks": ["outputs"], "choices": ["percent_right"]},
    ),
    # percentages
    "percentages of each class": (
        csv(frame(species=NAMES[KIND], **proba(scale=100.0))),
        {"kind": "percent", "notes": "divided by 100", "outputs": 3},
    ),
    "one column of percentages": (
        csv(frame(defaulted=EVENT, p_default=100 * P)),
        {"asks": ["scale"], "outputs": {}, "choices": ["percent", "logit", "other"]},
    ),
    "one column of percentages with their sign": (
        csv(frame(rate=signed(X), defaulted=EVENT, p_default=signed(100 * P))),
        {"outputs": {"1": "p_default"}, "features": (), "notes": "percentages: read as shares"},
    ),
    "percentages below one with their sign": (
        csv(frame(defaulted=EVENT, p_default=signed(P))),
        {"outputs": {"1": "p_default"}},
    ),
    "percentages of each class with their sign": (
        csv(frame(species=NAMES[KIND], **{n: signed(c) for n, c in proba(scale=100.0).items()})),
        {"outputs": 3, "notes": "percentages: read as shares"},
    ),
    "confidence of several classes with a percent sign": (
        csv(
            frame(
                label=NAMES[KIND],
                prediction=NAMES[THREE.argmax(1)],
                confidence=signed(100 * THREE.max(1)),
            )
        ),
        {"outputs": {}, "asks": ["outputs"], "choices": ["right"]},
    ),
    "a target in steps of percentages": (
        csv(frame(label=yes_no(EVENT, "10%", "5%"), p=P)),
        {"target": "label", "outputs": {"10%": "p"}, "class_by": "rows"},
    ),
    "percentages of each class, rounded": (
        csv(frame(species=NAMES[KIND], **proba(scale=100.0)).round(1)),
        {"kind": "percent", "outputs": 3, "notes": "rounded numbers: each row is divided by its"},
    ),
    "probabilities of two decimals": (
        csv(frame(species=NAMES[KIND], **proba()).round(2)),
        {"outputs": 3, "notes": "rounded numbers: each row is divided by its sum"},
    ),
    # an index
    "an index without a name": (
        csv(frame(p_1=P, y=EVENT), index=True),
        {"notes": "'Unnamed: 0' only numbers the rows", "features": (), "outputs": {"1": "p_1"}},
    ),
    "an index of shuffled rows": (
        csv(SHUFFLED, index=True),
        {"notes": "'Unnamed: 0' only numbers the rows", "features": ()},
    ),
    "an index saved twice": (
        csv(frame(p_1=P, y=EVENT).reset_index(names="Unnamed: 0"), index=True),
        {"notes": "'Unnamed: 0.1' only numbers the rows", "features": ()},
    ),
    "a column called index": (
        csv(frame(index=np.arange(N), age=AGE, p_1=P, y=EVENT)),
        {"notes": "'index' only numbers the rows", "features": ("age",)},
    ),
    "a Parquet index": (
        lambda: parquet(SHUFFLED),
        {"target": "y", "outputs": {"1": "p_1"}, "features": ()},
    ),
    # headers
    "a dump whose header is 0,1,y": (
        csv(pd.DataFrame({"0": 1 - P, "1": P, "y": EVENT})),
        {"target": "y", "outputs": {"0": "0", "1": "1"}},
    ),
    "the same with words": (
        csv(pd.DataFrame({"0": 1 - P, "1": P, "y": yes_no(EVENT)})),
        {"asks": ["order"], "choices": ["no,yes", "yes,no"]},
    ),
    "a dump whose header is 0,1,2": (
        csv(pd.DataFrame({"0": 1 - P, "1": P, "2": EVENT})),
        {"target": "2", "outputs": {"0": "0", "1": "1"}},
    ),
    "no header, probabilities and class": (
        csv(frame(a=1 - P, b=P, c=EVENT), header=False),
        {"target": "column_3", "asks": ["order"], "choices": ["0,1", "1,0"]},
    ),
    "no header, class first": (
        csv(pd.DataFrame(np.column_stack([THREE, KIND])).iloc[:, [3, 0, 1, 2]], header=False),
        {"target": "column_1", "asks": ["order"], "choices": ["0,1,2"]},
    ),
    "no header, inputs and class": (
        csv(frame(a=AGE, b=AGE**2, c=EVENT), header=False),
        {"target": "column_3", "outputs": {}, "asks": ["outputs"], "says": "no header"},
    ),
    "columns called out1 and out2": (
        csv(frame(out1=1 - P, out2=P, truth=yes_no(EVENT, "b", "a"))),
        {"asks": ["order"], "choices": ["a,b", "b,a"]},
    ),
    # other ways to write a file
    "semicolons and decimal commas": (
        csv(frame(p_1=P, y=EVENT), sep=";", decimal=","),
        {"target": "y", "outputs": {"1": "p_1"}},
    ),
    "UTF-16 with tabs": (
        frame(p_1=P, y=EVENT).to_csv(index=False, sep="\t").encode("utf-16"),
        {"target": "y", "outputs": {"1": "p_1"}},
    ),
    # regressions
    "outcome, mean and std": (
        csv(frame(x=X, y=SOLD, mean=FORECAST, std=300.0)),
        {"task": "regression", "family": "normal", "target": "y", "features": ("x",)},
    ),
    "an outcome of no known name, mean and one std for all": (
        csv(frame(obs=SOLD, mean=FORECAST, std=300.0)),
        {
            "task": "regression",
            "family": "normal",
            "target": "obs",
            "parameters": {"mean": "mean", "std": "std"},
        },
    ),
    "the same of other names, with one shape": (
        csv(frame(obs=SOLD - SOLD.min() + 1, mu=FORECAST - FORECAST.min() + 1, shape=2.0)),
        {"task": "regression", "family": "gamma", "target": "obs"},
    ),
    "quantiles": (
        csv(frame(y=SOLD, q05=LOWER, q50=FORECAST, q95=UPPER)),
        {"task": "regression", "parameters": {"0.05": "q05", "0.5": "q50", "0.95": "q95"}},
    ),
    "samples": (
        csv(frame(y=SOLD, **{f"sample_{k}": FORECAST + k for k in range(1, 5)})),
        {"task": "regression", "family": "samples"},
    ),
    "outcome and prediction": (
        csv(frame(y=SOLD, prediction=FORECAST)),
        {"task": "regression", "family": "point", "parameters": {"mean": "prediction"}},
    ),
    "an outcome of no known name": (
        csv(frame(sold=SOLD, forecast=FORECAST)),
        {"task": "regression", "target": "sold", "parameters": {"mean": "forecast"}},
    ),
    "two outcomes": (
        csv(frame(price=SOLD, cost=X.round(3), prediction=FORECAST)),
        {"task": "regression", "asks": ["target"], "choices": ["price", "cost"]},
    ),
    "bounds of no known level": (
        csv(SOLD_TABLE),
        {
            "task": "regression",
            "asks": ["level"],
            "parameters": {},
            "says": "It holds",
            "choices": ["0.5", "0.8", "0.9", "0.95", "0.99", "none"],
            "features": (),
        },
    ),
    "bounds of a named level": (
        csv(frame(sales=SOLD, yhat=FORECAST, yhat_lower_80=LOWER, yhat_upper_80=UPPER)),
        {
            "parameters": {"0.1": "yhat_lower_80", "0.5": "yhat", "0.9": "yhat_upper_80"},
            "notes": "read as an interval of 80%",
        },
    ),
    "bounds of no known words around every prediction": (
        csv(frame(y_test=SOLD, y_pred=FORECAST, y_pis_low=LOWER, y_pis_high=UPPER)),
        {"task": "regression", "target": "y_test", "asks": ["level"], "features": ()},
    ),
    "inputs called low and high that hold few predictions": (
        csv(frame(y=SOLD, fit=FORECAST, tide__low=AGE, tide__high=AGE + 9)),
        {
            "task": "regression",
            "parameters": {"mean": "fit"},
            "features": ("tide low", "tide high"),
        },
    ),
    "quantiles named by their levels in per cent": (
        csv(pd.DataFrame({"y": SOLD, "fit": FORECAST, "2.5%": LOWER, "97.5 %": UPPER})),
        {"task": "regression", "parameters": {"0.025": "2.5%", "0.975": "97.5 %"}},
    ),
    "bounds without a prediction": (
        csv(frame(age=AGE, stay=SOLD, lower90=LOWER, upper90=UPPER)),
        {
            "task": "regression",
            "target": "stay",
            "parameters": {"0.05": "lower90", "0.95": "upper90"},
        },
    ),
    "bounds without a prediction or a level": (
        csv(frame(visit=np.arange(len(AGE)), stay=SOLD, lower=LOWER, upper=UPPER, age=AGE)),
        {"task": "regression", "target": "stay", "asks": ["level"], "features": ("age",)},
    ),
    "two named intervals": (
        csv(
            pd.DataFrame({"y": SOLD, "Lo 80": LOWER, "Hi 80": UPPER}).assign(
                **{"Lo 95": LOWER - 300, "Hi 95": UPPER + 300}
            )
        ),
        {"parameters": {"0.025": "Lo 95", "0.1": "Lo 80", "0.9": "Hi 80", "0.975": "Hi 95"}},
    ),
    "bounds of counts are not the outcome": (
        csv(
            frame(sales=COUNT, forecast=RATE.round(), lower_bound=COUNT - 2, upper_bound=COUNT + 3)
        ),
        {"task": "regression", "target": "sales", "asks": ["level"], "features": ()},
    ),
    "counts and a predicted mean": (
        csv(frame(visits=COUNT, predicted=RATE)),
        {"task": "regression", "target": "visits", "parameters": {"mean": "predicted"}},
    ),
    "counts of a known name, and what is expected": (
        csv(frame(region=REGION, y=COUNT, expected=RATE, age=AGE)),
        {"task": "regression", "target": "y", "features": ("region", "age")},
    ),
    "classes as numbers, a predicted class and its confidence": (
        csv(frame(label=KIND, pred_class=THREE.argmax(1), pred=THREE.max(1))),
        {"target": "label"},
    ),
    "counts among features": (
        csv(frame(rooms=OTHER + 1, visits=COUNT, age=AGE, forecast=RATE)),
        {"task": "regression", "asks": ["target"], "choices": ["visits", "age"]},
    ),
    "quantiles named by their levels alone": (
        csv(pd.DataFrame({"y": SOLD, "0.05": LOWER, "0.5": FORECAST, "0.95": UPPER})),
        {"task": "regression", "parameters": {"0.05": "0.05", "0.5": "0.5", "0.95": "0.95"}},
    ),
    "columns named as shares, in no order": (
        csv(pd.DataFrame({"y": SOLD, "0.05": UPPER, "0.5": FORECAST, "0.95": LOWER})),
        {"task": "regression", "parameters": {}, "features": ("0.05", "0.5", "0.95")},
    ),
    "outcomes and forecasts with a percent sign": (
        csv(frame(region=REGION, rate=signed(X), y=signed(SHARE), mean=signed(P), std=signed(P))),
        {"task": "regression", "target": "y", "family": "normal", "features": ("region",)},
    ),
    "quantiles with a percent sign, and an outcome of no known name": (
        csv(frame(lgd=signed(SHARE), q05=signed(P - 1), q50=signed(P), q95=signed(P + 1))),
        {"task": "regression", "target": "lgd", "notes": "and 1 more hold percentages"},
    ),
    "an outcome with a percent sign and forecasts without": (
        csv(frame(y=signed(SHARE), prediction=100 * P)),
        {
            "task": "regression",
            "asks": ["outputs"],
            "parameters": {},
            "says": "'y' holds percentages with their sign and the column 'prediction' holds",
        },
    ),
    "bounds are not the outcome": (
        csv(frame(sold=SOLD, forecast=FORECAST, low=LOWER, high=UPPER)),
        {"target": "sold", "asks": ["level"]},
    ),
    # answers that were graded
    "answers of a language model with their confidence": (
        csv(frame(topic=REGION, verbalized__confidence=P, is_correct=yes_no(EVENT))),
        {"target": "is_correct", "outputs": {"yes": "verbalized confidence"}, "class_by": "name"},
    ),
    "graded answers with a confidence in per cent, and a category": (
        csv(
            frame(
                category=REGION,
                answer=NAMES[KIND],
                confidence=100 * P,
                gold=NAMES[KIND],
                correct=EVENT == 1,
            )
        ),
        {
            "target": "correct",
            "outputs": {},
            "asks": ["scale"],
            "predicted": None,
            "features": ("category", "confidence"),  # and neither answer
        },
    ),
    "graded answers with log probabilities": (
        csv(frame(category=REGION, logprob=np.log(P), correct=EVENT)),
        {
            "target": "correct",
            "outputs": {"1": "logprob"},
            "kind": "log_probability",
            "features": ("category",),
            "notes": "logarithms of probabilities: the exponential was taken",
        },
    ),
    "a prediction that was graded as well": (
        csv(
            frame(
                category=REGION,
                label=NAMES[KIND],
                prediction=NAMES[KIND[::-1]],
                confidence=1 - P / 2,
                correct=(KIND[::-1] == KIND),
            )
        ),
        {
            "target": "label",
            "predicted": "prediction",
            "outputs": {},
            "features": ("category", "confidence"),  # and not whether it is right
            "asks": ["outputs"],
            "choices": ["right"],
        },
    ),
    # amounts
    "amounts in dollars": (
        csv(frame(region=REGION, price=money(1000 + X), forecast=money(900 + 10 * X))),
        {"task": "regression", "target": "price", "parameters": {"mean": "forecast"}},
    ),
    "amounts in euros with decimal commas": (
        csv(frame(kind=REGION, price=euros(110 * X), forecast=euros(1000 + X)), sep=";"),
        {"task": "regression", "target": "price", "parameters": {"mean": "forecast"}},
    ),
    "an input in dollars": (
        csv(frame(income=money(1e4 * X), y=EVENT, p_1=P)),
        {"target": "y", "features": ("income",)},
    ),
    "brackets of amounts are classes": (
        csv(frame(label=yes_no(EVENT, ">$50,000", "<=$50,000"), p=P)),
        {"target": "label", "outputs": {">$50,000": "p"}, "class_by": "rows"},
    ),
    # scores
    "a score in thousandths": (
        csv(frame(score=(1000 * P).round(), y=EVENT)),
        {
            "outputs": {},
            "asks": ["scale"],
            "choices": ["permille", "other"],
            "says": "higher in the rows of '1' (AUROC 0.",
        },
    ),
    "a credit score": (
        csv(frame(age=AGE, credit__score=CREDIT, defaulted=EVENT)),
        {
            "outputs": {},
            "features": ("age",),
            "asks": ["scale"],
            "choices": ["other"],
            "says": "higher in the rows of '0' (AUROC 0.",
        },
    ),
    "a score in German, far below zero and above": (
        csv(frame(Punktzahl=(100 * LOGIT).round(), Ausfall=EVENT)),
        {"asks": ["scale"], "choices": ["other"], "says": "does not say how likely the event is"},
    ),
    "a score among many inputs": (
        csv(frame(a=AGE, b=X, c=RATE, d=SOLD, credit_score=CREDIT, defaulted=EVENT)),
        {"outputs": {}, "features": ("a", "b", "c", "d", "credit_score")},
    ),
    "a score beside a probability": (
        csv(frame(credit_score=CREDIT, defaulted=EVENT, p_default=P)),
        {"outputs": {"1": "p_default"}, "features": ("credit_score",)},
    ),
    # lists
    "lists of probabilities in Parquet, classes that count from 0": (
        lambda: parquet(
            frame(label=EVENT * 1.0, rawPrediction=TWO, probability=TWO, prediction=EVENT * 1.0)
        ),
        {
            "outputs": {"0": "probability[0]", "1": "probability[1]"},
            "predicted": "prediction",
            "features": (),
        },
    ),
    "lists of probabilities in text, named classes": (
        csv(frame(species=NAMES[KIND], probs=[str(row) for row in THREE.tolist()])),
        {
            "outputs": {"ant": "probs[0]", "bee": "probs[1]", "cat": "probs[2]"},
            "asks": ["order"],
            "choices": BY_COUNT,
            "says": "nothing says in which order",
        },
    ),
    "vectors of two named classes in text": (
        csv(frame(y=yes_no(EVENT), probability=[f"DenseVector({row})" for row in TWO])),
        {"asks": ["order"], "choices": ["no,yes", "yes,no"], "outputs": 2},
    ),
    "more probabilities in a list than classes": (
        csv(frame(y=yes_no(EVENT), probability=[str(row) for row in THREE.tolist()])),
        {"outputs": {}, "asks": ["outputs"], "says": "lists of 3 numbers, and 'y' 2 classes"},
    ),
    "intervals in text are categories": (
        csv(frame(band=np.resize(["[20, 30]", "[30, 40]"], N), y=EVENT, p_1=P)),
        {"outputs": {"1": "p_1"}, "features": ("band",)},
    ),
    # shares in place of classes
    "votes of annotators beside a probability": (
        csv(frame(age=AGE, label=VOTES, probability=P)),
        {
            "target": "label",
            "outputs": {},
            "features": ("age",),
            "asks": ["labels"],
            "choices": ["majority", "share"],
            "says": "write each row twice",
        },
    ),
    "votes of no known name": (
        csv(frame(share_toxic=VOTES, p_toxic=P)),
        {"target": "share_toxic", "asks": ["labels"], "choices": ["majority", "share"]},
    ),
    "votes beside percentages with their sign": (
        csv(frame(label=VOTES, probability=signed(100 * P))),
        {"target": "label", "asks": ["labels"]},
    ),
    "shares that a forecast is made of": (
        csv(frame(y=SHARE.clip(0, 1), prediction=P)),
        {"task": "regression", "target": "y", "parameters": {"mean": "prediction"}},
    ),
    "a column that is below zero throughout": (
        csv(frame(y=EVENT, score=np.log(P))),
        {
            "target": "y",
            "outputs": {},
            "asks": ["scale"],
            "choices": ["logit", "log_probability", "other"],
            "says": "may be log odds or logarithms",
        },
    ),
}

# name: (the file, what is said of it)
REFUSED: dict[str, tuple[bytes, str]] = {
    "a blank name in the middle": (b"a,,y\n1,2,0\n3,4,1\n", "Column 2 has no name"),
    "the same name twice": (b"p,p,y\n.1,.2,0\n.3,.4,1\n", "appear more than once"),
    "a header alone": (b"p,y\n", "no rows"),
    "a short row": (b"p,y\n.1,0\n.3\n", "The row has 1 field"),
    "an archive": (b"PK\x03\x04" + bytes(40), "ZIP archive"),
}


def reading_of(
    content: bytes | Callable[[], bytes], **options: Any
) -> tuple[pd.DataFrame, Reading]:
    table = read_table(io.BytesIO(content() if callable(content) else content), name="table")
    return table.frame, read_columns(table, **options)


def test_the_confidence_in_a_predicted_class_is_its_probability() -> None:
    content, _ = SHAPES["of two classes"]
    frame, reading = reading_of(content)
    matrix = output_matrix(frame, reading.roles, ("0", "1"))
    np.testing.assert_allclose(matrix, np.column_stack([1 - P, P]), atol=1e-9)
    swapped = output_matrix(frame, reading.roles, ("1", "0"))
    np.testing.assert_allclose(swapped, matrix[:, ::-1])
    with pytest.raises(InputError, match="says nothing without the predicted class"):
        output_matrix(frame, replace(reading.roles, predicted=None), ("0", "1"))


@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_table_is_taken_for(shape: str) -> None:
    content, wanted = SHAPES[shape]
    _, found = reading_of(content)
    roles = found.roles
    outputs = dict(roles.outputs)
    choices = [choice.answer for doubt in found.doubts for choice in doubt.choices]
    seen = {
        "target": roles.target,
        "outputs": len(outputs) if isinstance(wanted.get("outputs"), int) else outputs,
        "kind": roles.output_kind,
        "class_by": roles.class_by,
        "features": roles.features,
        "predicted": roles.predicted,
        "split": roles.split,
        "weight": roles.weight,
        "task": roles.task,
        "family": roles.family,
        "parameters": dict(roles.parameters),
        "asks": [doubt.about for doubt in found.doubts],
        "choices": choices,
    }
    # what is not asked for is not doubted either
    wanted = {"asks": [], "kind": "probability", "class_by": "name", **wanted}
    words = " ".join(doubt.sentence for doubt in found.doubts)
    assert wanted.pop("says", "") in words
    assert wanted.pop("notes", "") in " ".join(found.notes)
    assert {key: seen[key] for key in wanted} == wanted


def test_log_probabilities_are_exponentiated() -> None:
    content, _ = SHAPES["graded answers with log probabilities"]
    table, reading = reading_of(content)
    matrix = output_matrix(table, reading.roles, ("0", "1"))
    np.testing.assert_allclose(matrix, np.column_stack([1 - P, P]), atol=1e-9)
    assert reading_of(csv(table.assign(logprob=table["logprob"] + 1.0)))[1].roles == reading.roles
    names = tuple(map(str, NAMES))
    several = Roles(outputs=tuple((one, one) for one in names), output_kind="log_probability")
    logs = pd.DataFrame(np.log(THREE), columns=names)
    np.testing.assert_allclose(output_matrix(logs, several, names), THREE, atol=1e-9)
    with pytest.raises(InputError, match=r"A log probability is above 0 \(.*column 'bee', row 4"):
        output_matrix(logs.assign(bee=np.where(logs.index == 3, 0.1, logs["bee"])), several, names)


@pytest.mark.parametrize("shape", REFUSED)
def test_what_is_no_table_is_refused_with_the_reason(shape: str) -> None:
    content, words = REFUSED[shape]
    with pytest.raises(InputError, match=words):
        reading_of(content)


def test_there_are_forty_shapes_and_more() -> None:
    assert len(SHAPES) + len(REFUSED) > 40


@pytest.mark.parametrize(
    ("shape", "about"),
    [(shape, about) for shape, (_, wanted) in SHAPES.items() for about in wanted.get("asks", ())],
)
def test_every_answer_settles_its_question(shape: str, about: str) -> None:
    content, _ = SHAPES[shape]
    _, found = reading_of(content)
    doubt = next(one for one in found.doubts if one.about == about)
    for choice in doubt.choices:
        _, settled = reading_of(content, answers={about: choice.answer})
        assert about not in [one.about for one in settled.doubts]
        if about == "target":
            assert settled.roles.target == choice.answer
        if about == "cluster":
            assert settled.roles.cluster == (choice.answer or None)
        if about == "time":
            assert settled.roles.time == (choice.answer or None)


def test_a_share_and_two_numbers_of_no_known_name_are_read_as_answered() -> None:
    content = SHAPES["a lone share of no known name"][0]
    _, found = reading_of(content, answers={"outputs": "1,s1"})
    assert (found.roles.outputs, found.roles.class_by) == ((("1", "s1"),), "name")
    assert found.roles.features == ("region",)
    assert reading_of(content, answers={"outputs": "model"})[1].roles.outputs == ()
    content = SHAPES["two measured numbers of no known names"][0]
    _, found = reading_of(content, answers={"order": "valuation,house"})
    assert (found.roles.task, found.roles.family) == ("regression", "point")
    assert (found.roles.target, found.roles.parameters) == ("valuation", (("mean", "house"),))


def test_a_target_is_chosen_with_the_rate_and_the_mean_prediction_in_view() -> None:
    _, found = reading_of(csv(LOANS))
    feature, target = (choice.shows for choice in found.doubts[0].choices)
    assert f"class 1: {OTHER.mean():.1%} of the rows, mean prediction {P.mean():.1%}" in feature
    assert f"class 1: {EVENT.mean():.1%} of the rows, mean prediction {P.mean():.1%}" in target
    assert "AUROC" in target


@pytest.mark.parametrize("shape", ["a lone column that may hold log odds"])
def test_log_odds_are_turned_into_probabilities_once_confirmed(shape: str) -> None:
    table, found = reading_of(SHAPES[shape][0], answers={"scale": "logit"})
    assert found.roles.outputs == (("yes", "score"),)
    assert "score" not in found.roles.features
    proba = output_matrix(table, found.roles, ("no", "yes"))
    np.testing.assert_allclose(proba[:, 1], P, atol=1e-6)
    _, other = reading_of(SHAPES[shape][0], answers={"scale": "other"})
    assert (other.roles.outputs, other.doubts) == ((), ())


@pytest.mark.parametrize("shape", ["percentages of each class", "one column of percentages"])
def test_percentages_are_read_as_shares(shape: str) -> None:
    table, found = reading_of(SHAPES[shape][0], answers={"scale": "percent"})
    classes = ("ant", "bee", "cat") if "each" in shape else ("0", "1")
    wanted = THREE if "each" in shape else np.column_stack([1 - P, P])
    np.testing.assert_allclose(output_matrix(table, found.roles, classes), wanted, atol=2e-6)


def test_percentages_with_their_sign_are_shares() -> None:
    content, _ = SHAPES["one column of percentages with their sign"]
    table, found = reading_of(content)
    wanted = np.column_stack([1 - P, P])
    for kind in ("probability", "percent"):
        roles = replace(found.roles, output_kind=kind)
        np.testing.assert_allclose(output_matrix(table, roles, ("0", "1")), wanted, atol=1e-6)
    with pytest.raises(InputError, match="leave the percent signs out"):
        output_matrix(table, replace(found.roles, output_kind="logit"), ("0", "1"))
    table.loc[5, "p_default"] = "0.5"  # a share or a percentage?
    with pytest.raises(InputError, match="leave the percent signs out"):
        output_matrix(table, found.roles, ("0", "1"))


def test_rows_of_rounded_probabilities_are_divided_by_their_sum() -> None:
    classes = ("ant", "bee", "cat")
    for shape, unit in (
        ("percentages of each class, rounded", 100.0),
        ("probabilities of two decimals", 1.0),
    ):
        table, found = reading_of(SHAPES[shape][0])
        written = table[[f"p_{name}" for name in classes]].to_numpy() / unit
        assert np.abs(written.sum(axis=1) - 1).max() > 0.0009
        matrix = output_matrix(table, found.roles, classes)
        np.testing.assert_allclose(matrix, written / written.sum(axis=1, keepdims=True))
    table = table.copy()
    table.loc[3, "p_ant"] += 0.03  # more than rounding explains
    with pytest.raises(InputError, match="row 4"):
        output_matrix(table, found.roles, classes)
    table.loc[3, "p_ant"] -= 0.030001  # not all numbers are rounded
    with pytest.raises(InputError, match="not to 1"):
        output_matrix(table, found.roles, classes)


def test_outcomes_and_forecasts_with_a_percent_sign_are_shares() -> None:
    roles = Roles("y", task="regression", family="point", parameters=(("mean", "m"),))
    table = pd.DataFrame({"y": ["42%", None, "7,5 %"], "m": ["40%", "41%", "-1.5%"]}).loc[[0, 2]]
    np.testing.assert_allclose(outcome_column(table, roles), [0.42, 0.075])
    np.testing.assert_allclose(parameter_columns(table, roles)["mean"], [0.4, -0.015])
    np.testing.assert_allclose(outcome_column(table[["y"]], roles), [0.42, 0.075])
    for mixed in (table.assign(m=[40.0, 41.0]), table.assign(y=[0.42, 0.075])):
        for columns in (outcome_column, parameter_columns):
            with pytest.raises(InputError, match="Write all of them with a percent sign, or all"):
                columns(mixed, roles)
    with pytest.raises(InputError, match="holds no numbers"):  # a model's unit is not known
        outcome_column(table, replace(roles, parameters=()))


def test_a_confidence_in_per_cent_is_divided_by_100_once_that_is_said() -> None:
    content, _ = SHAPES["confidence of two classes in per cent"]
    table, asked = reading_of(content)
    assert f"mean prediction {P.mean():.1%}" in asked.doubts[0].choices[0].shows
    table, found = reading_of(content, answers={"scale": "percent"})
    assert not found.doubts
    matrix = output_matrix(table, found.roles, ("0", "1"))
    np.testing.assert_allclose(matrix, np.column_stack([1 - P, P]), atol=1e-9)
    _, refused = reading_of(content, answers={"scale": "other"})
    assert refused.roles.outputs == ()


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("label, prediction, confidence", "right"),
        ("confidence of several classes in per cent", "percent_right"),
    ],
)
def test_the_confidence_alone_judges_whether_predictions_are_right(shape: str, kind: str) -> None:
    right = THREE.argmax(1) == KIND
    content, _ = SHAPES[shape]
    _, asked = reading_of(content)
    (choice,) = asked.doubts[0].choices
    assert f"class right: {right.mean():.1%} of the rows" in choice.shows
    assert f"mean prediction {THREE.max(1).mean():.1%}" in choice.shows
    table, found = reading_of(content, answers={"outputs": kind})
    assert (found.doubts, found.roles.outputs) == ((), (("right", "confidence"),))
    assert "right as often as stated" in found.notes[0]
    assert target_labels(table, found.roles, ("wrong", "right")).tolist() == right.tolist()
    matrix = output_matrix(table, found.roles, ("wrong", "right"))
    np.testing.assert_allclose(matrix[:, 1], THREE.max(1), atol=1e-6)


def test_predictions_that_are_never_right_or_always_are_not_judged_so() -> None:
    rows = frame(label=NAMES[KIND], prediction=KIND, confidence=THREE.max(1))
    for predicted in (THREE.argmax(1), NAMES[KIND]):
        _, found = reading_of(csv(rows.assign(prediction=predicted)))
        assert [(one.about, one.choices) for one in found.doubts] == [("outputs", ())]


def test_a_missing_prediction_is_neither_right_nor_wrong() -> None:
    roles = Roles("y", outputs=(("right", "p"),), output_kind="right", predicted="said")
    rows = pd.DataFrame({"y": ["ant", None, "bee"], "said": ["ant", "bee", "ant"]})
    assert true_labels(rows, roles).isna().tolist() == [False, True, False]
    with pytest.raises(InputError, match=r"predicted class is missing.*row 3"):
        true_labels(rows.assign(said=["ant", "bee", None]), roles)


def test_log_odds_from_0_to_100_are_turned_into_probabilities_once_that_is_said() -> None:
    z = np.abs(RNG.normal(0, 3, N))
    content = csv(frame(defaulted=EVENT, score=z))
    _, asked = reading_of(content)
    said = [one.answer for one in asked.doubts[0].choices]
    assert said == ["percent", "logit", "other"]
    assert (
        f"mean prediction {np.mean(1 / (1 + np.exp(-z))):.1%}" in asked.doubts[0].choices[1].shows
    )
    table, found = reading_of(content, answers={"scale": "logit"})
    p = output_matrix(table, found.roles, ("0", "1"))[:, 1]
    np.testing.assert_allclose(p, 1 / (1 + np.exp(-z)))


def test_percentages_without_a_target_are_asked_about_all_the_same() -> None:
    rows = pd.DataFrame({"proba_ant": 5 + P, "proba_bee": 6 - P, "age": AGE})
    found = read_columns(rows, task="classification")
    assert found.roles.target is None
    assert [one.shows for doubt in found.doubts for one in doubt.choices] == ["", "", ""]


@pytest.mark.parametrize("name", ["prediction", "mean", "median"])
def test_a_point_between_two_bounds_is_said_to_be_read_as_the_median(name: str) -> None:
    table = SOLD_TABLE.rename(columns={"prediction": name})
    _, found = reading_of(csv(table), answers={"level": "0.9"})
    assert dict(found.roles.parameters)["0.5"] == name
    said = f"'{name}' lies within every interval and was read as the median."
    also = " Of skewed distributions a mean is another number: leave it out."
    assert found.notes[0] == (said if name == "median" else said + also)


@pytest.mark.parametrize(("level", "ends"), [("0.8", ("0.1", "0.9")), ("0.9", ("0.05", "0.95"))])
def test_the_ends_of_an_interval_are_quantiles_of_the_level_that_was_said(
    level: str, ends: tuple[str, str]
) -> None:
    _, found = reading_of(csv(SOLD_TABLE), answers={"level": level})
    assert found.roles.family == "quantiles"
    lower, upper = ends
    assert dict(found.roles.parameters) == {lower: "lower", "0.5": "prediction", upper: "upper"}
    outside = SOLD_TABLE.assign(prediction=SOLD_TABLE["upper"] + 1)
    _, found = reading_of(csv(outside), answers={"level": level})
    assert dict(found.roles.parameters) == {lower: "lower", upper: "upper"}


def test_a_target_by_name_gives_way_to_a_column_of_the_model_s_number_of_classes() -> None:
    table = frame(age=AGE, readmitted=yes_no(EVENT), outcome=np.resize(["a", "b", "c"], len(AGE)))
    found = read_columns(table, feature_names=("age",), n_classes=2)
    assert found.roles.target == "readmitted"
    assert [doubt.about for doubt in found.doubts] == ["classes"]
    three = read_columns(table, feature_names=("age",), n_classes=3)
    assert three.roles.target == "outcome"
    alone = read_columns(table.drop(columns="readmitted"), feature_names=("age",), n_classes=2)
    assert alone.roles.target == "outcome"  # scoring says what is wrong with it


def test_a_risk_is_a_probability() -> None:
    said = pd.Series(np.linspace(0.01, 0.99, len(EVENT)))
    found = read_columns(frame(age=AGE, predicted_risk=said, died=yes_no(EVENT)))
    assert (found.roles.target, found.roles.outputs) == ("died", (("yes", "predicted_risk"),))


def test_a_prediction_may_be_used_without_its_interval() -> None:
    _, found = reading_of(csv(SOLD_TABLE), answers={"level": "none"})
    assert (found.roles.family, found.roles.parameters) == ("point", (("mean", "prediction"),))


def test_what_a_model_reads_is_no_target() -> None:
    table = LOANS.drop(columns="p_default")
    found = read_columns(table, feature_names=("age", "default"))
    assert (found.roles.target, found.doubts) == ("defaulted", ())
    found = read_columns(table, feature_names=("age",), classes=("0", "1"))
    assert [doubt.about for doubt in found.doubts] == ["target"]


def test_a_model_that_names_no_classes_asks_for_their_order() -> None:
    table = frame(age=AGE, y=yes_no(EVENT))
    found = read_columns(table, n_classes=2, n_features=1)
    assert [choice.answer for choice in found.doubts[0].choices] == ["natural", "reversed"]
    for answer, names in (("natural", ("no", "yes")), ("reversed", ("yes", "no"))):
        settled = read_columns(table, n_classes=2, n_features=1, answers={"classes": answer})
        assert (settled.classes, settled.doubts) == (names, ())
    # labels counted from 1 are named by one click; those that count from 0 need none
    three = read_columns(frame(age=AGE, y=KIND + 1), n_classes=3, n_features=1)
    assert [choice.words for choice in three.doubts[0].choices] == ["1, 2 then 3"]
    assert read_columns(frame(age=AGE, y=KIND), n_classes=3, n_features=1).doubts == ()
    assert read_columns(table, classes=("no", "yes"), n_classes=2, n_features=1).doubts == ()


def test_a_model_that_counts_its_classes_asks_which_labels_they_are() -> None:
    """A scikit-learn model fitted to 0 and 1, and a table that says no and yes."""
    table, counted = frame(age=AGE, y=yes_no(EVENT)), ("0", "1")
    found = read_columns(table, classes=counted, n_classes=2, n_features=1)
    assert [choice.words for choice in found.doubts[0].choices] == ["no then yes", "yes then no"]
    assert found.doubts[0].sentence.startswith("The model's file only counts its 2 classes, and")
    answers = {"classes": "natural"}
    settled = read_columns(table, classes=counted, n_features=1, answers=answers)
    assert (settled.classes, settled.doubts) == (("no", "yes"), ())
    # labels that are 0 and 1 need no question, and other names than numbers are no count
    assert read_columns(frame(age=AGE, y=EVENT), classes=counted, n_features=1).doubts == ()
    assert read_columns(table, classes=("bad", "good"), n_features=1).doubts == ()


def test_an_index_that_the_model_reads_stays() -> None:
    found = read_columns(frame(index=np.arange(N), y=EVENT), feature_names=("index",))
    assert (found.roles.features, found.notes) == (("index",), ())


def test_no_other_column_stands_in_for_a_target_of_one_value() -> None:
    table = frame(defaulted=np.zeros(N, int), owner=OTHER, p_default=P)
    _, found = reading_of(csv(table))
    assert found.roles.target is None
    three = np.array(["north", "south", "west"])[np.arange(N) % 3]
    _, beside = reading_of(csv(table.assign(income=np.arange(N) * 100, branch=three)))
    assert beside.roles.target is None
    _, said = reading_of(csv(table), answers={"target": "owner"})
    assert said.roles.target == "owner"
    _, plain = reading_of(csv(table.assign(year=2026).drop(columns="defaulted")))
    assert plain.roles.target == "owner"
