"""The works that a report cites: those that its texts name, by author and title."""

from __future__ import annotations

from collections.abc import Iterable

from kdcal_core.audit.content import AuditContent
from kdcal_core.charts import PAPERS

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


def _texts(content: AuditContent) -> Iterable[str]:
    yield VERDICTS
    for chart in content.charts:
        yield chart.how_to_read
    for result in content.checked.results:
        yield result.check.method
        yield from (part.estimate.interval for part in result.parts)
    for estimate in content.estimates:
        yield estimate.interval
