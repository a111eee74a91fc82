"""KC101: whether rows are ranked well enough to be of use."""

from __future__ import annotations

from kdcal_core.checks.area_under_roc import from_summary, influence, measured
from kdcal_core.checks.check import Check, Way
from kdcal_core.review import Limit

Check(
    code="KC101",
    title="Discrimination",
    question="Does the model rank rows of a class above the others?",
    fault="it tells the classes apart too poorly",
    family="usefulness",
    tasks=("classification",),
    limit=Limit(low=0.7),
    bounds=(0.0, 1.0),
    lasting=True,
    measured=measured,
    remedy="No calibrator can change the order of the rows by much. The model needs better "
    "inputs, more rows or another method.",
    page="reliability",
    method="The area under the ROC curve, with DeLong's interval on the log-odds.",
    from_summary=Way(from_summary),
    influence=influence,
    no_chance="a calibrated model may have any value, and one that puts rows in no order has 0.5, "
    "which can be the lower end",
).offer()
