"""Explanations on the Regions page."""

from __future__ import annotations

from kdcal_core.diagnostics import (
    Estimate,
    Region,
    RegionSearch,
    estimate_text,
    value_text,
)
from kdcal_core.tasks import RegionsMethod, RegionsRecord, RegionsSettings
from kdcal_core.text import counted

SETTINGS = r"""
* **Forest regions**: the regions of many trees grown on resampled rows, with averaged results. It
  was the best of these on most tables that were measured.
* **Tree regions**: Durfee et al., Algorithm 1. A shallow tree on the training rows separates the
  classes, and each of its regions gets its own Platt map. Without training rows, a fifth of the
  calibration rows grows each of five trees, and the other rows fit its maps.
* **Boosted regions**: a sequence of maps, each on the regions where the previous ones are still
  wrong (section 5; the text of section 13 is missing, so this is our derivation).
* **AUROC regions**: a tree whose splits are chosen to raise the AUROC (our derivation for section
  12).
* **The chosen column**: its values are the regions.

Depth and fewest rows are those set above. The Compare page and the export use each calibrator's own
depth: 3 for Tree and AUROC regions, 2 for Boosted and 6 for Forest regions. Regions with few rows
borrow from the region around them. Maps are fitted on the calibration set and judged on the
evaluation set; without one, each calibration row is calibrated with the other four fifths.

**Boosted trees on the logits, a second model**, are no calibrator and cannot be exported. They
start from the model's logits after one map for all rows, read the columns again as a further model
would, and are judged on the same rows. Where they gain more than calibration does, the model itself
is at fault.
"""
ADVICE = """
* **When it is worthwhile** (Durfee et al., section 5.1): the model is over-confident, the inputs
  divide into regions that can be told apart, and there are enough rows that the model has not seen.
  All three are checked above on these rows.
* **Fresh rows are better than validation rows.** Algorithm 1 calibrates on validation rows. If
  these were also used to choose the model, they look too good. A separate calibration set is
  preferable (section 5.1).
* **Over-confidence alone does not change the order.** Correcting it with one map corrects the
  stated probabilities but not the AUROC; only partitions change that (sections 2 and 4.1).
* **Tuning matters less.** In the paper's experiments the calibrated AUROC hardly depended on the
  learning rate, so calibration may save a part of the search (sections 6.3, 7).
* **Do not expect the lift to grow with the model.** The paper claims it for all data sets, but its
  own Table 1 does not show it.
"""


SEARCHES = (
    "**Quick**: half of the rows are used to find the regions and the other half to judge them; "
    "sliders take effect at once. Of a million rows or more, 500,000 are drawn for this; the "
    "intervals of a region with a tenth of them are then at most 0.6% wide to either side. "
    "**Thorough**: all rows are used to find the regions, which are then compared with what the "
    "same search finds if the model is right. It finds more, above all faults that two columns "
    "define, and starts only on request."
)
HARDER = (
    "Grows the tree on all rows, and 200 more trees on outcomes drawn from the stated "
    "probabilities, which show what chance gives. It finds more than the quick search, above all "
    "faults that two columns define, takes up to minutes for a million rows, and the result is "
    "kept. The price: p values are at least 0.005, and intervals are wider. With few rows the page "
    "does this by itself."
)
QUICK_SHOWN = (
    "The quick search is shown. Its p values may differ from those of the thorough search, which "
    "is judged on all rows, not on a part of them."
)
QUICK_UNTIL_THEN = "There is no thorough search with these settings yet, so the quick one is shown."


def thorough_shown(search: RegionSearch) -> str:
    """A note that the thorough search is shown, and why its p values differ."""
    return (
        "The thorough search is shown. Its p values may differ from those of the quick search, "
        "which is judged on a part of the rows and corrected for its own regions only. Here they "
        "are corrected for every region that could have been found, and with "
        f"{search.redraws:,} redraws they are at least {1.0 / (search.redraws + 1.0):.3f}."
    )


def standing(ranked: bool) -> str:
    """The order of a column's regions, in a sentence."""
    if ranked:
        return "Values with the strongest evidence come first."
    return "Ordered from low to high; missing values come last."


def corrected(search: RegionSearch) -> str:
    """The correction of a search's p values."""
    if search.redraws:
        return "corrected for every region that the search could have found (redraws)"
    return "corrected for the number of regions (Holm)"


def other_target(target: str | int, event: str) -> str:
    """For two classes, if nothing is found: which faults this question cannot show.

    If a class is stated too often, its predictions are over-confident and those of the other class
    under-confident. If both are stated too surely, each class's probability is too high in some
    places and too low in others. Either may cancel.
    """
    if isinstance(target, str):
        return (
            "A class that is stated too often everywhere may not show here: also look at the "
            f"stated probability of {event}."
        )
    return (
        "A model that is too sure of both classes may not show here: also look at the confidence."
    )


def rule_words(search: RegionSearch, region: Region) -> str:
    """A region's rule, starting with the condition that separates it from its neighbour."""
    if search.tree is None or not region.conditions:
        return region.words
    asked = search.tree.feature[search.tree.ancestors(region.leaf)[:-1]].tolist()
    words = {
        column: condition.words
        for column, condition in zip(dict.fromkeys(asked), region.conditions, strict=True)
    }
    return "; ".join(words[column] for column in dict.fromkeys(reversed(asked)))


def judged_words(record: RegionsRecord) -> str:
    """The rows on which the methods were fitted and judged."""
    if record.judged_on == "evaluation":
        how = (
            f"Fitted on the {record.n_fit:,} calibration rows, judged on the "
            f"{record.n_judged:,} evaluation rows"
        )
    else:
        how = f"Each of the {record.n_judged:,} calibration rows is calibrated with the other folds"
    trees = (
        f"; trees of the classes are grown on {record.n_training:,} training rows"
        if record.n_training
        else ""
    )
    return f"{how}{trees}."


def settings_words(settings: RegionsSettings) -> str:
    """The settings of the methods, in a sentence."""
    if settings.max_depth is None and settings.min_rows is None:
        return "Every calibrator has its own settings here, as on Compare and in exported files."
    depth = (
        "their own number of questions"
        if settings.max_depth is None
        else counted(settings.max_depth, "question")
    )
    least = "an automatic number of" if settings.min_rows is None else f"{settings.min_rows:,}"
    trees = {"boosted": "boosted ones at most", "forest": "a forest"}
    many = [phrase for key, phrase in trees.items() if key in settings.partitions]
    more = f", {settings.n_trees} trees in {' and '.join(many)}" if many else ""
    return (
        f"Settings: trees of at most {depth}, {least} rows or more in a region{more}. With each "
        "calibrator's own settings the numbers are those of Compare."
    )


def auc_note(method: RegionsMethod) -> str:
    """The note under the AUROC tile: the value before, and the lift."""
    assert method.auc is not None
    lift = method.auc.lift
    return f"{value_text(method.auc.a)} before; lift {estimate_text(lift, chance=False)}"


def loss_note(method: RegionsMethod, before: Estimate) -> str:
    """The note under the log loss tile: the value before, and the paired change."""
    assert method.difference is not None
    change = method.difference
    return f"{value_text(before)} before; change {estimate_text(change, chance=False)}"
