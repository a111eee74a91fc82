"""What the Out of distribution page explains, in our own words."""

from __future__ import annotations

WILL_SHOW = (
    "Here you will see how confident the model stays as rows leave its data, beside its **kernel "
    "density version**: the same model, read as regions with a density in each. It keeps its "
    "answers among the data and falls back to the class frequencies far outside (papers 000 and "
    "001)."
)
DISTANCE = r"""
**Across**: how far rows lie from the centre of the data. At 1 lies the farthest row of the training
set (of the calibration set where there is none), every feature measured in its standard deviation;
the shaded part is where the data are. **Up**:
the largest probability, averaged over 1,000 rows spread evenly over each sphere (paper 000 section
3.1.1), with the band that holds the middle 80% of them. **Dashes**: the largest class prior, where
confidence should end, because of a row unlike all others only the class frequencies are known. The
sentence above says from which radius on the line and its band stay within 0.02 of it. That radius
may lie inside the shaded part: with many features, a point in a random direction is unlike every
row long before it is as far out as the farthest one.

**The model** may stay sure all the way: a ReLU network becomes arbitrarily confident far away, and
a forest answers as in its outermost leaves (papers 000 and 001, section 1). **Isotonic, sigmoid
and KDE** see only the model's probabilities and not the row, so they treat a foreign row like an
ordinary one with the same probabilities: they do not correct confidence outside.

**The kernel density version** finds the region nearest to a row by the share of trees, or of
activation paths, that they have in common, and asks the one Gaussian there (Eqs. 6, 11, 12 and
19). It is not a kernel density estimate over all rows: only the nearest region counts, so it works
with many features (appendix A). A floor $c$ is added to each class's density:

$$g_y(x)=\frac{(\tilde f_y(x)+c)\,P(y)}{\sum_k(\tilde f_k(x)+c)\,P(k)}\qquad\text{(Eqs. 8 and 9)}$$

Among the data, where $c$ is small against the densities, that is the class share of the region. It
is blended there with the model's own answer, by weights chosen on held-out rows, because neither is
always the better one (our addition to the papers). Far out every $\tilde f$ is small against $c$,
and the answer is the prior (Prop. 2). **Euclidean** finds the nearest region by Euclidean distance
instead; paper 000 (section 3.1.1) continues with geodesic, which works with more features.
"""
TILES = r"""
**OCE** is the mean distance between the largest probability of a foreign row and the largest class
prior (paper 000 Eq. 20). It assumes that the true class frequencies are known; here they are those
of the rows of the fit ("empirical").

**AUROC** and **FPR at 95% TPR** ask something easier: whether ordinary rows score above foreign
ones, by the log density for the kernel density version, by the largest probability for the model,
which has no density. Confidence is the worse score: a row unlike anything seen gets the class
prior, and where 90% of the rows are of one class the prior is 90% sure itself, as sure as of many
ordinary rows. Calibration is harder than detection: a calibrated model detects foreign rows, but
one that detects them need not be calibrated (appendix A).

No foreign row was used in any fit: the method needs none (section 1).
"""
DENSITY = r"""
The log density $\log\sum_y P(y)\tilde f_y(x)$ of ordinary rows (filled) and of the foreign rows
(line). Left is far from the data; the axis is stretched near the densest row. A row left of the
**floor** counts as unknown. At the floor, region and prior have equal weight in the answer of the
kernel density version; farther left the prior has more, 98% at four units from the floor.

The floor is a quantile of the held-out rows' log densities, the $\lfloor\alpha(h+1)\rfloor$-th
smallest of $h$: a fresh row like them falls below it with probability at most
$\max(\alpha, 1/(h+1))$. The constant that paper 000 prints would lower the accuracy among the data.
There is no such guarantee for foreign rows: how many are found depends on how foreign they are, and
paper 000 proves only the limit at infinite distance (Prop. 2).
"""
SELECTION = r"""
The kernel is raised to the power $\gamma\log n$ (paper 000 Eq. 18). With a small exponent the rows
of distant regions count too, which smooths the class shares; with a large one only a region's own
rows count. The exponent with the least log loss on held-out rows is chosen, and of equal ones the
largest. The losses are those of the class shares alone, before the model's own answer is blended
in.
"""
INSIDE = """
A version that is cautious outside must still answer among the data: it should keep the accuracy and
be no worse calibrated (paper 001 section 3.4). Both columns are computed on the same ordinary rows.
"""
ADVICE = """
* **Calibrating inside does not correct confidence outside.** ReLU networks grow arbitrarily
  confident far from their data, and isotonic or sigmoid calibration leaves that as it is (papers
  000 and 001, section 1).
* **Calibration is harder than detection.** A calibrated model detects foreign rows; one that
  detects them may still state wrong confidences (paper 000, appendix A).
* **How far is far enough is not guaranteed.** That confidence falls to the prior is proven in the
  limit of infinite distance only (Prop. 2), and no theorem says how soon for any data (paper 000,
  appendix A): look at the chart. Only the share of ordinary rows called unknown is bounded.
* **The prior must be right.** OCE and the answer outside assume the class frequencies of the fit.
  Where those of new rows differ, both are wrong.
* **No foreign rows are needed.** The version is fitted post hoc from the model and ordinary rows,
  so it does not favour one kind of foreign rows.
* **Prefer geodesic to Euclidean distance.** It follows what the model has learned and works with
  many features; with Euclidean distance, irrelevant features count as much as relevant ones.
* **It keeps every region that holds a row.** Storage and time grow with the rows of the fit; very
  large data would need merged regions (section 4.2).
"""
FITTED_ON = {
    "training": "The kernel density version is fitted on the model's training rows, so it knows "
    "where the model has seen data. The model was fitted on those rows too, so its regions look "
    "purer than they are; exponent and floor come from the calibration set, which the model has "
    "never seen.",
    "calibration": "The review holds no training set, so the kernel density version is fitted on "
    "seven tenths of the calibration set. Its class shares are unbiased, because the model has "
    "never seen these rows, but there are fewer rows, and places where only training rows lie "
    "count as unknown. Add the training set on the Load page to see the difference.",
}
PAPERS = (
    "Paper 000: Dey et al., *Simple Calibration via Geodesic Kernels*. Paper 001: Dey et al., "
    "*Deep Discriminative to Kernel Density Graph for In- and Out-of-distribution Calibrated "
    "Inference*."
)
