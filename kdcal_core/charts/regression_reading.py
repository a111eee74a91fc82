"""How to read the regression pictures: Markdown of our own, with paper and equation."""

from __future__ import annotations

PIT_HISTOGRAM = r"""
Each outcome has a **PIT value** (probability integral transform): the probability that its own
predictive distribution gave to values at or below it, $p_i = \hat F_i(y_i)$ (paper 003 section 2).
If the distributions are right, these values are spread evenly from 0 to 1 and every bar has height
1, the dashed line.

**Bars high on the right**: outcomes fall above what was predicted, so predictions are too low;
**on the left**: too high. **High at both ends** (a U): the stated spread is too narrow. **High in
the middle** (a hump): too wide.

Bars of right distributions end inside the grey band, all of them at once in 95% of all samples of
this size. Bars outside are strong, those inside pale. A flat histogram over all rows does not
prove that the model is right: opposite faults in two places cancel. Look at neighbourhoods too.
"""

PIT_PANELS = r"""
The same picture for different groups of rows, on one scale (paper 003 Figs. 1f, 5c and 5d). The
global histogram mixes all neighbourhoods; a model can look right in it and be too low in one place
and too high in another. The grey band is wider where a group has fewer rows. The colour is that of
the fault: amber too low, pink too high, red too narrow, blue too wide; slate where no fault was
found in the model, teal where none was found after recalibration.
"""

ECDF = r"""
The share of PIT values at or below each level, minus the level itself: right distributions stay
around 0 (paper 003 Eq. 1, read for all levels at once). A line **above** 0 has more outcomes below
that quantile than stated, a line **below** 0 fewer. In an S that first rises and then falls below
0 the stated spread is too narrow; first below and then above, too wide.

The grey band is simultaneous: right distributions stay inside everywhere in 95% of all samples.
Unlike a histogram it needs no bins.
"""

LOCAL_MAP = r"""
Each mark is a neighbourhood: a row and the rows nearest to it. Its PIT values are tested as a
sample of their own, and the p values are corrected for the number of neighbourhoods. Colour **and**
shape tell the fault: amber triangles down, predictions too low; pink triangles up, too high; tall
red diamonds, spread too narrow; wide blue diamonds, too wide. Larger and stronger marks are further
off. Small grey marks: nothing found beyond chance, which is not a proof of being right.

Click a mark, or drag a box, to see the PIT histogram of the rows there. Good coverage over all rows
can hide local faults, so always look here (paper 003 sections 4.1, 4.2 and 5).
"""

MISSES = r"""
Every mark is a row at its place on the map; light red ones are outcomes that their interval missed
(paper 003 Figs. 3e and 3f), with the triangle pointing to the side on which they lie. If intervals
are right **everywhere**, misses are strewn evenly over the rows; clusters of them, and regions
without any, are local faults even where the total is right. The same rows are drawn on both sides,
a uniform sample where they are too many; the counts above are those of all rows.
"""

COVERAGE_BY = r"""
The share of outcomes inside their central intervals, bin by bin of one column. The dashed line is
what the intervals state; points above it are cautious, points below too sure. Bars are exact
(Clopper-Pearson) 95% intervals for each bin alone: with twenty bins one may lie off by chance. Bins
of fewer than 100 rows are pale, of fewer than 20 paler. Slate is the model, teal recalibrated.
"""

COVERAGE = r"""
Observed minus stated coverage of central intervals at several levels: above 0 the intervals are
wider than they need to be, below 0 too narrow. Bars are exact (Clopper-Pearson) 95% intervals.
"""

DENSITIES = r"""
The predictive density of single rows before (slate) and after recalibration (teal), with the
outcome as a dashed line (paper 003 Figs. 1c and 5b); the strokes below are the central 95%
intervals. The PIT is the share of each density to the left of the outcome.

After Algorithm 1 a distribution is a set of weighted samples, which has no density of its own: the
curve is a Gaussian kernel density of its quantiles (Silverman's bandwidth) and is called smoothed.
Intervals and PIT values come from the samples themselves. One outcome says little about one
density; the other pictures judge many.
"""

QUANTILES = r"""
**Across**: a stated quantile. **Up**: the share of outcomes at or below it (paper 003 Eq. 1). On
the dashed diagonal both agree. Bars are exact (Clopper-Pearson) intervals of each point alone, the
grey band is where all points of right distributions stay at once. A curve above the diagonal all
along: predictions too high; below: too low. First above and then below it: the stated spread is too
narrow; first below and then above: too wide.
"""

MEASURES = r"""
Each panel is a measure, each line a method; bars are 95% intervals, and the pale band is the
model's own. **CRPS** and **log score** judge the whole distribution, lower is better. **MSE against
the outcomes** has the noise in it and cannot fall to 0; **MSE against the true mean** exists only
where the truth is known (paper 003 Tables 1 and 2 use one each). **sMIS** is the width of the
intervals plus a penalty for each miss, divided by the mean absolute outcome of the calibration set
(paper 003 Eq. 5, as Gneiting and Raftery define the score).

Two methods judged on the same rows share most of their noise: the **changes** below are paired, row
by row, and tell differences that the intervals above would hide. Recalibration is not made to lower
the MSE (paper 003 section 5).
"""

TRUTH = r"""
Each mark is a row: its true mean or standard deviation across, the estimate up (paper 003 Fig. 2).
Right estimates lie on the dashed diagonal. A global repair bends all rows alike; a local one can
move each. Shown only where the truth is known, as in simulations.
"""

INTERVALS = r"""
For each chosen row the central interval by the model (slate) and after recalibration (teal); the
tick is the median, the diamond the outcome. A few rows cannot show coverage: nineteen of twenty
right 95% intervals hold their outcome, on average over many rows.
"""

SELECTION = r"""
Cross-fitted CRPS, lower is better, over the number of neighbours, one curve for each space in which
neighbours are looked for. Few neighbours follow local faults closely but are noisy; many are steady
but blur (paper 003 section 3). The ring is the choice; bars are 95%
intervals of the difference to it, row by row. Choices whose bars reach its height are as good, and
among them a larger k is steadier. Slate is the model without any repair.
"""
