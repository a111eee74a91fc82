"""What the Regions page explains, in our own words."""

from __future__ import annotations

from collections.abc import Sequence

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
* **Tree regions**: Durfee et al., Algorithm 1. A shallow tree on the training rows separates the
  classes, and each of its regions gets a Platt map of its own. Without training rows, a fifth of
  the calibration rows grows each of five trees and the rest fits its maps.
* **Boosted regions**: maps nested in one another, each on the regions where the ones
  before are still wrong (section 5; the text of section 13 is lost, so this is our derivation).
* **AUROC regions**: a tree whose splits are chosen to raise the AUROC (our derivation for section
  12).
* **Forest regions**: many trees, their answers averaged. **The chosen column**: its values are the
  regions.

Depth and fewest rows are those set above; the Compare page and the export take each calibrator's
own depth, 3 for Tree and AUROC regions, 2 for Boosted and 6 for Forest regions. Regions with few
rows borrow from the region around them. Fitted on the calibration set and judged on the evaluation
set; without one, each calibration row is calibrated by the other four fifths.
"""
ADVICE = """
* **When it pays** (Durfee et al., section 5.1): the model is too sure of itself, the inputs fall
  into regions that can be told apart, and there are enough rows that the model has not seen. All
  three are checked above on these very rows.
* **Fresh rows beat validation rows.** Algorithm 1 calibrates on validation rows; where these also
  chose the model, they flatter it. A calibration set of its own is preferable (section 5.1).
* **Over-confidence alone does not hurt the order.** Correcting it with one map corrects the stated
  probabilities and leaves the AUROC; only partitions change it (sections 2 and 4.1).
* **It narrows what tuning would decide.** In the paper's experiments the calibrated AUROC hardly
  depended on the learning rate, so that calibration may save some of the search (sections 6.3, 7).
* **Do not expect the lift to grow with the model.** The text claims it for all data sets, but its
  own Table 1 does not show it.
"""


SEARCHES = (
    "**Quick**: half of the rows find the regions and the other half judges them; sliders act at "
    "once. **Thorough**: all rows find the regions, which are then compared with what the same "
    "search finds where the model is right. It finds more, above all faults that take two columns "
    "to describe, and starts only on request."
)
HARDER = (
    "Grows the tree on all rows, and 200 trees more on outcomes drawn from the stated "
    "probabilities: what those show is chance. In 5,000 rows it found a gap of 0.15 that takes "
    "two columns to describe in 90% of trials, the quick search in 33%. It takes seconds for "
    "thousands of rows and minutes for a million, and is kept. The price: p values go no lower "
    "than 0.005, and intervals are wider."
)
QUICK_SHOWN = (
    "The quick search is shown. Its p values may differ from those of the thorough search, which "
    "has all rows to judge by, not half of them."
)
QUICK_UNTIL_THEN = (
    "There is no thorough search with these settings yet; until then the quick one is shown."
)


def thorough_shown(search: RegionSearch) -> str:
    """A note that the thorough search is shown, and why its p values differ."""
    return (
        "The thorough search is shown. Its p values may differ from those of the quick search, "
        "which has half of the rows to judge by and corrects for its own regions only. Here they "
        "allow for every region that could have been found, and with "
        f"{search.redraws:,} redraws they go no lower than {1.0 / (search.redraws + 1.0):.3f}."
    )


def standing(ranked: bool) -> str:
    """The order of a column's regions, in a sentence."""
    if ranked:
        return "The values with the strongest evidence stand first."
    return "From low to high, as the column has it; missing values stand last."


def corrected(search: RegionSearch) -> str:
    """What the p values of a search are corrected for."""
    if search.redraws:
        return "corrected for every region that the search could have found (redraws)"
    return "corrected for the number of regions (Holm)"


def other_target(target: str | int, classes: Sequence[str]) -> str:
    """For two classes where nothing is found: which faults this question cannot show.

    Where a class is stated too often, its predictions are over-confident and those of the other
    class under-confident; where both are stated too surely, each class's probability is too high
    here and too low there. Either may cancel.
    """
    if isinstance(target, str):
        return (
            "A class that is stated too often throughout may not show here: ask for the stated "
            f"probability of {classes[1]} too."
        )
    return "A model that is too sure of both classes may not show here: ask for the confidence too."


def rule_words(search: RegionSearch, region: Region) -> str:
    """A region's rule, what splits it off from its neighbour first."""
    if search.tree is None or not region.conditions:
        return region.words
    asked = search.tree.feature[search.tree.ancestors(region.leaf)[:-1]].tolist()
    words = {
        column: condition.words
        for column, condition in zip(dict.fromkeys(asked), region.conditions, strict=True)
    }
    return "; ".join(words[column] for column in dict.fromkeys(reversed(asked)))


def judged_words(record: RegionsRecord) -> str:
    """On which rows the methods were fitted and judged."""
    if record.judged_on == "evaluation":
        how = (
            f"Fitted on the {record.n_fit:,} calibration rows, judged on the "
            f"{record.n_judged:,} evaluation rows"
        )
    else:
        how = f"Each of the {record.n_judged:,} calibration rows is calibrated by the other folds"
    trees = (
        f"; trees of the classes are grown on {record.n_training:,} training rows"
        if record.n_training
        else ""
    )
    return f"{how}{trees}."


def settings_words(settings: RegionsSettings) -> str:
    """How the methods were set, beside their figures."""
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
        f"Set here: trees of at most {depth}, {least} rows or more in a region{more}. With each "
        "calibrator's own settings the figures are those of Compare."
    )


def auc_note(method: RegionsMethod) -> str:
    """Under the tile of the AUROC: what it was, and the lift."""
    assert method.auc is not None
    lift = method.auc.lift
    return f"{value_text(method.auc.a)} before; lift {estimate_text(lift, chance=False)}"


def loss_note(method: RegionsMethod, before: Estimate) -> str:
    """Under the tile of the log loss: what it was, and the change from row to row."""
    assert method.difference is not None
    change = method.difference
    return f"{value_text(before)} before; change {estimate_text(change, chance=False)}"
