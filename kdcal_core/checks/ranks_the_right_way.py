"""KC205: whether rows are ranked in the right direction."""

from __future__ import annotations

from kdcal_core.checks.area_under_roc import from_summary, influence, measured
from kdcal_core.checks.check import Check, Way
from kdcal_core.review import Limit

Check(
    code="KC205",
    title="Ranked the right way round",
    question="Do rows of a class get a higher probability of it than others?",
    fault="it ranks the rows the wrong way round",
    family="data",
    tasks=("classification",),
    limit=Limit(low=0.5),
    bounds=(0.0, 1.0),
    lasting=True,
    measured=measured,
    remedy="No calibrator repairs that. An area below one half usually means that two classes are "
    "exchanged or that the target is another column: check both first.",
    page="load",
    method="The area under the ROC curve, with DeLong's interval on the log-odds.",
    from_summary=Way(from_summary),
    influence=influence,
    no_chance="a calibrated model may have any value, and one that puts rows in no order has 0.5, "
    "which can be the lower end",
).offer()
