"""A comparison in sentences: what the evidence allows, with its numbers."""

from __future__ import annotations

from kdcal_core.diagnostics.comparison.results import Comparison, Verdict
from kdcal_core.diagnostics.findings import estimate_text

NAMED = 6  # so many methods are named; of more the number is told


def comparison_words(comparison: Comparison, measure: str) -> tuple[str, ...]:
    """What one measure allows to say, a sentence each: who leads, who cannot be told from it, and
    who is better or worse than the parent.

    Parameters
    ----------
    measure : str
        Key of one of the comparison's measures.

    Returns
    -------
    tuple of str
        Names of a user's own calibrators in them are untrusted text.

    Examples
    --------
    >>> import numpy as np
    >>> from kdcal_core.data import ScoredSet
    >>> from kdcal_core.diagnostics.comparison import compare
    >>> from kdcal_core.review import ReviewData
    >>> p = np.random.default_rng(0).uniform(0.05, 0.95, 400)
    >>> y = (np.random.default_rng(1).random(400) < p).astype(int)
    >>> rows = ScoredSet(np.column_stack([1 - p, p]), y, ("no", "yes"), "digest", "calibration")
    >>> review = ReviewData(rows, None, rows.classes, {})
    >>> found = compare(["sts"], review, n_boot=200)
    >>> comparison_words(found, "ece")[1]
    'Uncalibrated and STS cannot be told apart on these 400 rows.'
    """
    chosen = comparison.measure(measure)
    best = comparison.method(comparison.best[measure])
    lead = "lowest" if chosen.lower_is_better else "highest"
    estimate = best.scores[measure]
    if chosen.group == "speed":
        value = f"{estimate.value:,.{0 if estimate.value >= 100 else 3}f}"
        return (f"{best.name} has the {lead} value of {chosen.title}: {value}.",)
    shown = estimate_text(estimate)
    sentences = [f"{best.name} has the {lead} value of {chosen.title}: {shown}."]
    n = comparison.paired[measure, "parent"][0].difference.n
    rows = f"these {n:,} rows{' far away' if chosen.group == 'outside' else ''}"
    close = [comparison.method(key).name for key in comparison.close_to_best(measure)]
    others = len(comparison.methods) - len(close)
    if len(close) > 1:
        ordered = [best.name, *(name for name in close if name != best.name)]
        sentences.append(f"{_named(ordered)} cannot be told apart on {rows}.")
    if others and len(close) == 1:
        sentences.append(f"It is better than {_all(others)} on {rows}.")
    sentences += _against_parent(comparison, measure)
    return tuple(sentences)


def _against_parent(comparison: Comparison, measure: str) -> list[str]:
    pairs = [
        pair for pair in comparison.paired[measure, "parent"] if pair.key != comparison.reference
    ]

    def names(verdict: Verdict) -> list[str]:
        return [comparison.method(pair.key).name for pair in pairs if pair.verdict == verdict]

    better, worse, unclear = (
        names("better"),
        names("worse"),
        names("cannot be told apart"),
    )
    sentences = []
    if better:
        sentences.append(f"Better than the parent: {_named(better)}.")
    if worse:
        sentences.append(f"Worse than the parent: {_named(worse)}.")
    if unclear and (better or worse):
        sentences.append(f"Not told apart from the parent: {_named(unclear)}.")
    elif unclear:
        sentences.append("No method can be told apart from the parent.")
    return sentences


def _named(names: list[str]) -> str:
    """ "a, b and c"; beyond six the first ones and the number of the others."""
    if len(names) == 1:
        return names[0]
    if len(names) <= NAMED:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return f"{', '.join(names[: NAMED - 1])} and {len(names) - NAMED + 1} others"


def _all(others: int) -> str:
    return "the other method" if others == 1 else f"all {others} others"
