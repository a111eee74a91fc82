"""A comparison of calibrators in sentences for a page: what the rows allow to say.

Names of a user's own calibrators pass through: escape the sentences on the way to a screen.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdcal_core.charts.comparison import method_name, ranked
from kdcal_core.diagnostics import estimate_text
from kdcal_core.evaluation import Comparison, PairedDifference
from kdcal_core.text import bytes_text, listed, number_text


def finding(found: Comparison, measure: str) -> str:
    """Who leads by a measure, who cannot be told from it, and whether that beats the model.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.data import ScoredSet
    >>> from kdcal_core.evaluation import compare
    >>> from kdcal_core.review import ReviewData
    >>> p = np.random.default_rng(0).uniform(0.05, 0.95, 400)
    >>> y = (np.random.default_rng(1).random(400) < p).astype(int)
    >>> rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")
    >>> told = compare(["sts"], ReviewData(rows, None, rows.classes, {}), n_boot=200)
    >>> finding(told, "ece")  # doctest: +ELLIPSIS
    'The model as it is and STS cannot be told apart in ECE, on these 400 rows...
    """
    chosen = found.measure(measure)
    if chosen.group == "speed":
        return _speed(found, measure)
    order = ranked(found, measure)
    close = [key for key in order if key in found.close_to_best(measure)]
    others = [key for key in close if key != found.reference]
    title, rows = in_sentence(chosen.title), _rows(found, measure)
    if not others:
        n = len(found.methods) - 1
        return (
            f"The model as it is has the best {title}, beyond chance, on {rows}: "
            f"{'the calibrator is' if n == 1 else f'all {n} calibrators are'} worse."
        )
    best = found.method(found.best[measure])
    if len(close) == 1:
        value = estimate_text(best.scores[measure])
        lead = f"{best.name} has the best {title}, beyond chance, on {rows}: {value}"
    else:
        lead = f"{_named(found, close)} cannot be told apart in {title}, on {rows}"
    pairs = {pair.key: pair for pair in found.paired[measure, "model"]}
    return f"{lead}; {_held(found, pairs, others)}."


def against_model(found: Comparison, measure: str) -> str:
    """Who is better and who is worse than the model by a measure, beyond chance; "" if nobody."""
    if found.measure(measure).group == "speed":
        return ""
    verdicts: dict[str, list[str]] = {"better": [], "worse": [], "cannot be told apart": []}
    order = ranked(found, measure)
    pairs = {pair.key: pair for pair in found.paired[measure, "model"]}
    for key in order:
        if key != found.reference:
            verdicts[pairs[key].verdict].append(key)
    if not verdicts["better"] and not verdicts["worse"]:
        return ""
    parts = []
    for verdict, words in (
        ("better", "Better than the model as it is"),
        ("worse", "Worse than it"),
        ("cannot be told apart", "Not told apart from it"),
    ):
        if verdicts[verdict]:
            parts.append(f"{words}: {_named(found, verdicts[verdict])}.")
    return " ".join(parts)


def in_sentence(title: str) -> str:
    """A measure's title inside a sentence.

    Examples
    --------
    >>> in_sentence("Log loss"), in_sentence("ECE, debiased")
    ('log loss', 'ECE, debiased')
    """
    return title if title[:2].isupper() else title[0].lower() + title[1:]


def judged_text(found: Comparison, n_fit: int) -> str:
    """On which rows calibrators were fitted and judged."""
    if found.folds:
        return (
            f"Cross-fitted: each of {found.n:,} calibration rows is judged by calibrators that "
            f"were fitted on the other folds of {found.folds}. Seed {found.seed}."
        )
    return (
        f"Fitted on {n_fit:,} calibration rows, judged on {found.n:,} rows of the evaluation "
        f"set. Seed {found.seed}."
    )


def comparison_alt(found: Comparison, measures: Sequence[str], order: Sequence[str]) -> str:
    """Alternative text of the dots: the first measure's values in order."""
    key = measures[0]
    values = ", ".join(
        f"{method_name(found, one)} {estimate_text(found.method(one).scores[key])}"
        for one in order[:8]
    )
    titles = ", ".join(found.measure(one).title for one in measures)
    return (
        f"{titles} of {len(order)} methods, with intervals. By {found.measure(key).title}: {values}"
    )


def paired_words(found: Comparison, measure: str, against: str) -> str:
    """How many methods are told apart from what they are held against."""
    title = in_sentence(found.measure(measure).title)
    if against == "model":
        pairs = [one for one in found.paired[measure, "model"] if one.key != found.reference]
        better = [one for one in pairs if one.verdict == "better"]
        worse = [one for one in pairs if one.verdict == "worse"]
        return (
            f"By {title}, {len(better)} of {len(pairs)} calibrators are better than the model as "
            f"it is and {len(worse)} worse, beyond chance and with all of them allowed for."
        )
    best = found.best[measure]
    pairs = [one for one in found.paired[measure, "best"] if one.key != best]
    worse = [one for one in pairs if one.verdict == "worse"]
    name = method_name(found, best)
    return (
        f"By {title}, {name if best != found.reference else name[0].lower() + name[1:]} leads on "
        f"these rows, and {len(worse)} of {len(pairs)} others are worse beyond chance."
    )


def paired_alt(found: Comparison, measure: str, against: str) -> str:
    """Alternative text of the paired differences."""
    pairs = ", ".join(
        f"{method_name(found, one.key)} {estimate_text(one.difference)} ({one.verdict})"
        for one in found.paired[measure, "best" if against == "best" else "model"][:8]
    )
    other = "the best" if against == "best" else "the model as it is"
    return f"Paired differences to {other} in {found.measure(measure).title}: {pairs}"


def reliability_words(found: Comparison, order: Sequence[str]) -> str:
    """How often the bins of each diagram leave the band that chance allows."""
    outside = []
    for key in order:
        (curve,) = found.method(key).reliability.curves
        some = curve.count > 0
        missed = (curve.accuracy < curve.band_low) | (curve.accuracy > curve.band_high)
        outside.append((key, int((missed & some).sum()), int(some.sum())))
    model = next(one for one in outside if one[0] == found.reference)
    fewest = min((one for one in outside if one is not model), key=lambda one: one[1] / one[2])
    return (
        f"Bins outside the band that chance allows: {model[1]} of {model[2]} for the model as "
        f"it is, {fewest[1]} of {fewest[2]} for {method_name(found, fewest[0])}. About one bin in "
        "twenty leaves it by chance alone."
    )


def reliability_alt(found: Comparison, order: Sequence[str]) -> str:
    """Alternative text of the small diagrams."""
    names = ", ".join(method_name(found, key) for key in order)
    return f"Reliability diagrams on one scale with the rows of each bin below: {names}"


def _held(found: Comparison, pairs: dict[str, PairedDifference], keys: Sequence[str]) -> str:
    """Whether these methods are better than the model, with the first one's difference."""
    better = [key for key in keys if pairs[key].verdict == "better"]
    if not better:
        if len(keys) == 1:
            return "it is not told apart from the model as it is"
        return "no calibrator is better than the model as it is beyond chance"
    first = better[0]
    change = pairs[first].difference
    value, low, high = (
        number_text(one, change.high - change.low, change.percent)
        for one in (change.value, change.low, change.high)
    )
    if len(better) == len(keys):
        who = {1: "it is" if len(keys) == 1 else "", 2: "both are"}.get(len(keys), "all are")
    else:
        who = f"{_named(found, better)} {'is' if len(better) == 1 else 'are'}"
    of = "" if len(keys) == 1 else f" of {method_name(found, first)}"
    return f"{who} better than the model as it is (paired difference{of} {value}, {low} to {high})"


def _speed(found: Comparison, measure: str) -> str:
    chosen = found.measure(measure)
    order = [key for key in ranked(found, measure) if key != found.reference]
    first, last = (found.method(order[at]) for at in (0, -1))
    values = [amount(measure, one.scores[measure].value) for one in (first, last)]
    if len(order) == 1:
        return f"{chosen.title}: {first.name} {values[0]}."
    return f"{chosen.title}: from {values[0]} ({first.name}) to {values[1]} ({last.name})."


def amount(measure: str, value: float) -> str:
    """Seconds or bytes for people.

    Examples
    --------
    >>> amount("fit_seconds", 0.0234), amount("size_bytes", 20480)
    ('0.023 s', '20 KiB')
    """
    if measure == "size_bytes":
        return bytes_text(value)
    if value < 0.001:
        return "below 0.001 s"
    return f"{value:,.0f} s" if value >= 100 else f"{value:.2g} s"


def _rows(found: Comparison, measure: str) -> str:
    n = found.paired[measure, "model"][0].difference.n
    return f"these {n:,} rows"


def _named(found: Comparison, keys: Sequence[str]) -> str:
    names = [
        "the model as it is" if key == found.reference else found.method(key).name for key in keys
    ]
    text = listed(names)
    return text[0].upper() + text[1:] if text.startswith("the model") else text
