"""The works that a report cites: those that its texts name, by author and title."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kdcal_core.audit.content import AuditContent
from kdcal_core.calibration import CALIBRATORS
from kdcal_core.charts import PAPERS
from kdcal_core.diagnostics import distinct_labels

STATISTICS = {
    "Agresti and Coull": "Agresti and Coull (1998), Approximate is better than exact for interval "
    "estimation of binomial proportions. *The American Statistician* 52",
    "Anderson and Darling": "Anderson and Darling (1952), Asymptotic theory of certain goodness of "
    "fit criteria based on stochastic processes. *Annals of Mathematical Statistics* 23",
    "Berger 1982": "Berger (1982), Multiparameter hypothesis testing and acceptance sampling. "
    "*Technometrics* 24",
    "Clopper": "[Clopper and Pearson (1934), The use of confidence or fiducial limits illustrated "
    "in the case of the binomial](https://doi.org/10.1093/biomet/26.4.404). *Biometrika* 26",
    "Cox's": "Cox (1958), Two further applications of a model for binary regression. "
    "*Biometrika* 45",
    "DeLong": "[DeLong, DeLong and Clarke-Pearson (1988), Comparing the areas under two or more "
    "correlated receiver operating characteristic curves](https://doi.org/10.2307/2531595). "
    "*Biometrics* 44",
    "Elkan 2001": "Elkan (2001), The foundations of cost-sensitive learning. *IJCAI*",
    "Fan's": "Fan (1996), Test of significance based on wavelet thresholding and Neyman's "
    "truncation. *Journal of the American Statistical Association* 91",
    "Fieller": "Fieller (1954), Some problems in interval estimation. *Journal of the Royal "
    "Statistical Society B* 16",
    "Holm": "Holm (1979), A simple sequentially rejective multiple test procedure. *Scandinavian "
    "Journal of Statistics* 6",
    "Spiegelhalter": "Spiegelhalter (1986), Probabilistic prediction in patient management and "
    "clinical trials. *Statistics in Medicine* 5",
    "Vickers and Elkin": "[Vickers and Elkin (2006), Decision curve analysis: a novel method for "
    "evaluating prediction models](https://doi.org/10.1177/0272989X06295361). *Medical Decision "
    "Making* 26",
    "Zou and Donner": "Zou and Donner (2008), Construction of confidence limits about effect "
    "measures: a general approach. *Statistics in Medicine* 27",
}
"""Each work as Markdown, by the words with which texts cite it."""

TERMS = {
    "AUROC": "how often a row of the class gets a higher probability of it than a row of another "
    "class; 0.5 is guessing, 1 is perfect",
    "Brier score": "mean squared distance between stated probabilities and what happened",
    "CORP": "the split of a score into miscalibration, discrimination and uncertainty by isotonic "
    "regression",
    "CRPS": "continuous ranked probability score, a loss of predictive distributions in units of "
    "the outcome; lower is better",
    "Calibration intercept": "by how much all stated log odds are too low; 0 is right",
    "Calibration slope": "by what the stated log odds must be multiplied; below 1 they are too "
    "extreme, above 1 not extreme enough",
    "Confidence": "the probability that the model gives to the class it predicts",
    "Confidence gap": "mean confidence minus accuracy; above 0 the model is over-confident",
    "ECE": "expected calibration error, the mean distance between stated probability and observed "
    "share over bins of rows; 0 is best, and chance alone makes it larger",
    "Location": "mean PIT value minus one half; above 0 predictions are too low",
    "Log loss": "minus the logarithm of the probability given to what happened, on average; lower "
    "is better",
    "MCE": "maximum calibration error, the largest distance over the bins",
    "OCE": "how far confidence on rows unlike the data lies from the shares of the classes",
    "Observed minus stated": "how often the event happens minus its mean stated probability; below "
    "0 the model states too much",
    "PIT": "probability integral transform, the probability that a predicted distribution gives to "
    "values at or below the outcome; of right distributions spread evenly from 0 to 1",
    "Spread": "standard deviation of PIT values over that of uniform ones, minus 1; above 0 stated "
    "distributions are too narrow",
    "Wasserstein": "mean distance between the PIT values and evenly spread ones; 0 is best",
    "log odds": "the logarithm of a probability over its complement",
    "Net benefit": "true positives minus weighted false positives, per row",
    "prior": "how often each class occurs, before anything is known of a row",
    "sMIS": "scaled mean interval score: width of the intervals plus a penalty for outcomes "
    "outside; lower is better",
}
"""What a reader who knows no machine learning needs, by the words that the report uses."""

VERDICTS = (
    "A check passes where its whole interval lies within the limit (Berger 1982). Fails are "
    "corrected for the number of checks (Holm)."
)
"""How all checks are judged."""


def references(content: AuditContent) -> tuple[str, ...]:
    """Every work that the report's texts name, as Markdown, in the order of its authors."""
    words = " ".join(" ".join(_texts(content)).split())
    found = {text for name, text in {**STATISTICS, **PAPERS}.items() if name in words}
    return tuple(sorted(found, key=lambda one: one.lstrip("[").casefold()))


def terms(content: AuditContent) -> tuple[tuple[str, str], ...]:
    """The terms that the report's tables and findings use, with their meaning, in their order."""
    said = " ".join(_shown(content))
    tried = {part.name for result in content.checked.results for part in result.parts}
    methods = {
        one.label: f"{one.name}. {one.description.removesuffix('.')}"
        for one in CALIBRATORS.values()
        if one.label in tried
    }
    return tuple(
        (term, f"{meaning}.")
        for term, meaning in sorted({**methods, **TERMS}.items(), key=lambda one: one[0].casefold())
        if re.search(rf"\b{re.escape(term)}\b", said)
    )


def _shown(content: AuditContent) -> Iterable[str]:
    for chart in content.charts:
        yield from (chart.title, chart.finding)
    for result in content.checked.results:
        yield from (f"{part.estimate.label}, {part.name}" for part in result.parts)
    for name, label in distinct_labels(content.estimates).items():
        yield from (label, name)


def _texts(content: AuditContent) -> Iterable[str]:
    yield VERDICTS
    for chart in content.charts:
        yield chart.how_to_read
    for result in content.checked.results:
        yield result.check.method
        yield from (part.estimate.interval for part in result.parts)
    for estimate in content.estimates:
        yield estimate.interval
