"""What the Out of distribution page explains, in our own words."""

from __future__ import annotations

WILL_SHOW = (
    "Here you will see how confident the model stays as rows leave its data, beside its **kernel "
    "density version**: the same model, read as regions with a density in each. It keeps its "
    "answers among the data and falls back to the class frequencies far outside (Dey et al.)."
)
TILES = r"""
**OCE** is the mean distance between the largest probability of a foreign row and the largest class
prior (Dey et al., Eq. 20). It assumes that the true class frequencies are known; here they are
those of the rows of the fit ("empirical").

**AUROC** and **FPR at 95% TPR** ask something easier: whether ordinary rows score above foreign
ones, by the log density for the kernel density version, by the largest probability for the model,
which has no density. Confidence is the worse score: a row unlike anything seen gets the class
prior, and where 90% of the rows are of one class the prior is 90% sure itself, as sure as of many
ordinary rows. Calibration is harder than detection: a calibrated model detects foreign rows, but
one that detects them need not be calibrated (appendix A).

No foreign row was used in any fit: the method needs none (section 1).
"""
INSIDE = """
A version that is cautious outside must still answer among the data: it should keep the accuracy and
be no worse calibrated (Dey et al., earlier version, section 3.4). Both columns are
computed on the same ordinary rows.
"""
ADVICE = """
* **Calibrating inside does not correct confidence outside.** ReLU networks grow arbitrarily
  confident far from their data, and isotonic or sigmoid calibration leaves that as it is
  (Dey et al., section 1 of both versions).
* **Calibration is harder than detection.** A calibrated model detects foreign rows; one that
  detects them may still state wrong confidences (Dey et al., appendix A).
* **How far is far enough is not guaranteed.** That confidence falls to the prior is proven in the
  limit of infinite distance only (Prop. 2), and no theorem says how soon for any data (Dey et al.,
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
