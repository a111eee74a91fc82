"""What the Regions page explains, in our own words."""

from __future__ import annotations

from collections.abc import Sequence

from app.shared.numbers import interval, number
from kdcal_core.diagnostics import Estimate, Region, RegionSearch
from kdcal_core.tasks import RegionsMethod, RegionsRecord, RegionsSettings
from kdcal_core.text import counted

_MARKS = r"""
**How to read the tree.** Every row starts at the left and takes the branch whose words fit it; at
the end of its way it is in one region. Beside each region stands what the model says there on
average and what is seen, with the number of rows. The larger the mark, the more rows. **Red**:
over-confident, the event is rarer than stated; **blue**: under-confident, more frequent; the
stronger the colour, the larger the gap. A hollow region differs by no more than chance explains.
"""
_LINES = r"""
**How to read the chart.** A line for each value of the column, or for each stretch of its numbers.
The upright tick is what the model says there on average, the mark what the rows show, with its
interval. **Red**: over-confident, the event is rarer than stated; **blue**: under-confident, more
frequent; a hollow mark differs from the tick by no more than chance explains. All rows judge, as no
outcome had a say in where the regions lie; p values are corrected for their number (Holm).
"""
_LINES_OF_PIT = r"""
**How to read the chart.** A line for each value of the column, or for each stretch of its numbers,
with the mean of the PIT values there and its interval. At one half, the tick, predictions lie
neither too high nor too low. The colours name the fault, by the place and the spread of the PIT
values (paper 003 section 2); a hollow mark differs by no more than chance explains. All rows judge,
as no outcome had a say in where the regions lie; p values are corrected for their number (Holm).
"""
_HALVES = r"""
**Honest by construction.** Search long enough, and some region looks wrong. So one half of the rows
finds the regions and the other half, whose outcomes had no say in where they lie, judges them; p
values are corrected for their number (Holm). Were the model right everywhere, any region at all
would be coloured in at most 5% of searches. The **minimum detectable gap** of a region is the one
that would be found in four of five searches of this size: smaller faults may hide.
"""
_REDRAWN = r"""
**Honest by construction.** Search long enough, and some region looks wrong. This thorough search
grows its tree on all rows, and then does the same again and again on outcomes drawn anew from the
stated probabilities, as if the model were right everywhere. A region is coloured where its evidence
is larger than the largest of all but 5% of those searches; its p value is the share of them that
reach it. Intervals are widened to hold for all regions that could be found. Evidence is the squared
sum of outcome minus stated probability over its variance (our addition).
"""
_PURPOSES = r"""
**Where it is wrong** grows the tree on outcome minus stated probability: the question of a
review (our addition). **Where classes differ** grows it on the classes, on the training rows if
there are any, as paper 004 does (section 5.1, Algorithm 1). **Along a column**
takes its values, or ten stretches of numbers.
"""
TREE_OF_PIT = r"""
**How to read the tree.** Every row starts at the left and takes the branch whose words fit it; at
the end of its way it is in one region. The larger the mark, the more rows. The colours name the
fault of the predicted distributions there, by the place and the spread of the PIT values (paper 003
section 2); a hollow region differs by no more than chance explains.

One half of the rows finds the regions and the outcomes of the other half judge them; p values are
corrected for their number (Holm), so that of a model that is right everywhere any region is
coloured in at most 5% of searches (our addition).
"""
BESIDE = r"""
Left the rows of the picked region, right all judged rows, on one scale. Points on the dashed line:
stated and observed agree. Grey boxes hold the points of a calibrated model in 95% of all samples
of that size. A model can be right over all rows and wrong in every region, when faults of
opposite sign cancel (paper 004 section 3 builds such a case).
"""
MAPS = r"""
Platt's map of each region (paper 004 section 2.1 and Algorithm 1): log odds times a slope plus an
offset, fitted on the region's rows. **On the dashed line** nothing changes; a line **above** it
says that the class is stated too low there, **below** it too high. A slope **below 1** pulls
probabilities towards one half: the model was too sure. A slope of **0** forgets the score and
leaves the region's rate, so the maps lie between the model and the tree (section 5.2). A
**negative** slope turns the order round and is flagged, never hidden (decision D105). Regions with
few rows lean on the region around them; how much stands beside.
"""
LIFT = r"""
How much larger the AUROC became, as a share of what it was (decision D108), with the interval of
the paired comparison on the same rows (paper 004 Fig. 3 draws it over runs). **One map for all rows
cannot change the order of the rows**, and so leaves the AUROC where it was, however over-confident
the model is (sections 2 and 4.1). Maps that differ from region to region can, and the best ones
only raise it (Lemmas 4.3 and 4.4). Judged on rows that no map was fitted on; where each row is
calibrated by the other folds, every fold has a map of its own, which may move the AUROC by a trace.
"""
SCORES = r"""
How the scores of both labels are spread, on the scale of log odds (paper 004 Fig. 1). An
over-confident model parts its training rows far more cleanly than fresh rows: the two heaps stand
far apart on the left panel and run into each other on the next. Calibration pulls them back to
what fresh rows bear out. What lies beyond 0.1% and 99.9% stands in the outermost bars.
"""
LOSSES = r"""
Each row's log loss after the repair minus before it, on average over rows that no map was fitted
on, with the interval of that difference: rows are compared with themselves. **Left of the dashed
line** stated probabilities have become better. Here one map for all rows counts as well, so what
lies to its left is what the regions add.
"""
BEFORE_AFTER = r"""
Slate: the model as it is; teal: calibrated by regions. Judged on rows that had no part in the fit.
Points on the diagonal say what they see. One map for all rows would mend this picture too; what
only regions can mend is the order of the rows (paper 004 sections 2 and 4).
"""
SETTINGS = r"""
* **Tree regions**: paper 004 Algorithm 1. A shallow tree on the training rows parts the
  classes, and each of its regions gets a Platt map of its own. Without training rows a fifth of the
  calibration rows grows each of five trees and the rest fits its maps (decision D102).
* **Boosted regions**: maps nested in one another, each on the regions where the ones
  before are still wrong (section 5; the text of section 13 is lost, so this is our derivation).
* **AUROC regions**: a tree whose splits are chosen to raise the AUROC (our derivation for section
  12).
* **Forest regions**: many trees, their answers averaged. **The chosen column**: its values are the
  regions.

Depth and fewest rows are those set above; the Compare page and the export take each calibrator's
own depth, 3 for Tree and AUROC regions, 2 for Boosted and 6 for Forest regions. Regions with few
rows are drawn to the region around them. Fitted on the calibration set and judged on the evaluation
set; without one, each calibration row is calibrated by the other four fifths.
"""
ADVICE = """
* **When it pays** (paper 004 section 5.1): the model is too sure of itself, the inputs fall into
  regions that can be told apart, and there are enough rows that the model has not seen. All three
  are checked above on these very rows.
* **Fresh rows beat validation rows.** Algorithm 1 calibrates on validation rows; where these also
  chose the model, they flatter it. A calibration set of its own is preferable (section 5.1).
* **Over-confidence alone does not hurt the order.** Correcting it with one map mends the stated
  probabilities and leaves the AUROC; only partitions change it (sections 2 and 4.1).
* **It narrows what tuning would decide.** In the paper's experiments the calibrated AUROC hardly
  depended on the learning rate, so that calibration may save some of the search (sections 6.3, 7).
* **Do not expect the lift to grow with the model.** The text says so of all data sets; its own
  Table 1 does not bear that out (decision D106).
"""


SEARCHES = (
    "**Quick**: half of the rows find the regions and the other half judges them; sliders act at "
    "once. **Thorough**: all rows find the regions, which are then held against what the same "
    "search finds where the model is right. It finds more, above all faults that take two columns "
    "to name, and must be asked for."
)
HARDER = (
    "Grows the tree on all rows, and 200 trees more on outcomes drawn anew from the stated "
    "probabilities: what those show is chance. In 5,000 rows it found a gap of 0.15 that takes two "
    "columns to name in 90% of trials, the quick search in 33%. It takes seconds for thousands of "
    "rows and minutes for a million, and is kept. The price: p values go no lower than 0.005, and "
    "intervals are wider."
)
QUICK_SHOWN = (
    "The quick search is shown. Its p values may differ from those of the thorough search, which "
    "has all rows to judge by, not half of them."
)
QUICK_UNTIL_THEN = (
    "There is no thorough search with these settings yet; until then the quick one is shown."
)


def tree_reading(search: RegionSearch) -> str:
    """How to read the picture of a search: its tree, or a column's regions."""
    if search.tree is None:
        return _LINES_OF_PIT if search.regression else _LINES
    if search.regression:
        return TREE_OF_PIT
    return _MARKS + (_REDRAWN if search.redraws else _HALVES + _PURPOSES)


def thorough_shown(search: RegionSearch) -> str:
    """That the thorough search is shown, and why its p values are others than the quick one's."""
    return (
        "The thorough search is shown. Its p values may differ from those of the quick search, "
        "which has half of the rows to judge by and corrects for its own regions only. Here they "
        "allow for every region that could have been found, and with "
        f"{search.redraws:,} redraws they go no lower than {1.0 / (search.redraws + 1.0):.3f}."
    )


def standing(ranked: bool) -> str:
    """In which order the regions of a column stand."""
    if ranked:
        return "The values with the strongest evidence stand first."
    return "From low to high, as the column has it; missing values stand last."


def corrected(search: RegionSearch) -> str:
    """What the p values of a search are corrected for."""
    if search.redraws:
        return "corrected for every region that the search could have found (redraws)"
    return "corrected for the number of regions (Holm)"


def other_target(target: str | int, classes: Sequence[str]) -> str:
    """Of two classes, where nothing is found: what is not seen by this question.

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
    many = [told for key, told in trees.items() if key in settings.partitions]
    more = f", {settings.n_trees} trees in {' and '.join(many)}" if many else ""
    return (
        f"Set here: trees of at most {depth}, {least} rows or more in a region{more}. Compare "
        "takes each calibrator's own settings, so its figures may differ."
    )


def auc_note(method: RegionsMethod) -> str:
    """Under the tile of the AUROC: what it was, and the lift."""
    assert method.auc is not None
    lift = method.auc.lift
    return f"{number(method.auc.a)} before; lift {number(lift)} ({interval(lift)})"


def loss_note(method: RegionsMethod, before: Estimate) -> str:
    """Under the tile of the log loss: what it was, and the change from row to row."""
    assert method.difference is not None
    change = method.difference
    return f"{number(before)} before; change {number(change)} ({interval(change)})"
