"""Explanations on the Recalibration page."""

from __future__ import annotations

from kdcal_core.charts import cited_in
from kdcal_core.evaluation import RecalibratorScores
from kdcal_core.tasks import space_title

WILL_SHOW = (
    "Here you will see the same predictions before and after a repair that needs no new training: "
    "outcomes outside their intervals, the reliability of quantiles, and the gain in every "
    "measure. The model is not changed; its predicted distributions are adjusted to the "
    f"outcomes of the calibration set. {cited_in('Torres et al.')}"
)
SETTINGS = r"""
* **Methods.** *Local* uses, for each row, the PIT values of its nearest calibration rows (Torres et
  al., Algorithm 1). *Global* uses all calibration rows for every row, and *isotonic* one rising map
  of probabilities for all rows (section 2). Both correct the total and leave local faults.
  *Local where needed* repairs only rows whose neighbourhood is wrong beyond chance (our addition).
  Where the model is right, it costs almost nothing, while local costs 1 to 2% of CRPS.
  *Density estimation* trains a small network that learns the outcome's quantiles from the model's
  own forecast, so large and small predictions are corrected differently (section 4.3).
  *Pooled local* joins a row's few neighbours with many more that know the tails: a wider
  neighbourhood, and the rows with a similar prediction (our addition). *Recommended* fits several
  of these on parts of the calibration rows and takes the simplest that is as good as the best. It
  may keep the model as it is, and takes several times as long.
  *Nearest neighbour regression* does not use the model and is included for comparison, and so is
  *quantile boosting*, boosted trees on the inputs and the model's prediction. If it beats every
  repair, the columns hold signal that the model does not use, and a better model is the answer.
* **Space**: defines which rows are near each other. It can be the inputs, the model's prediction,
  both (our addition, and usually the best on real tables), or a hidden layer of the model.
  Intermediate layers have fewer dimensions than many inputs and leave out what the model has
  learned to ignore (section 3). Every coordinate is standardised.
* **Neighbours.** Few neighbours follow local faults closely but are noisy; many are stable but blur
  local faults (section 3). "Chosen by CRPS" tries several numbers and all spaces on calibration
  rows, each judged on rows it has not seen (cross-fitted). This is our addition to the paper, which
  uses 1,000. A distance uses all rows within it, in standard deviations of the space, and at least
  the 50 nearest.
* **Tails.** The paper's weighted sample ends at the outermost neighbour. With smoothing, the
  model's own tails continue beyond it (our addition). The amount is chosen by the CRPS of
  calibration rows that were left out: outcomes with two peaks need little smoothing, and one wide
  kernel for all would blur them.
"""
WORK = r"""
Each method is fitted on the calibration set. If there is an evaluation set, all measures come from
it. Otherwise each calibration row is repaired with the rows of the other folds, so no row affects
its own repair.
"""
TILES = ("crps", "coverage95", "smis95", "rmse")
"""Measures of the tiles and of the table of methods."""
BEFORE = """
Below each tile is the value for the model as it is and, if there is one, the paired change. Each
row is compared with itself, so the change is known more precisely than the two values. If the
interval of the change contains 0, the change may be chance.
"""
ADVICE = """
* **Always look locally.** Coverage near the stated level over all rows can hide opposite local
  faults (sections 4.1, 4.2 and 5). A global or isotonic repair corrects the total and leaves them.
* **The squared error need not fall.** Recalibration corrects distributions and does not aim to
  minimise MSE (section 5). Where the model's mean was wrong, the mean changes too, and the error
  may fall; where it was right, the error stays the same or rises slightly.
* **Few neighbours: less bias, more noise.** With a small k the repaired intervals follow the noise
  of a few rows; with a k as large as the calibration set the repair is global (section 3).
* **Prediction takes longer.** Each new row needs a search for its neighbours, and the calibration
  set must be stored with the model (section 5). The table above shows the times on this machine.
* **Calibration rows must be fresh.** Rows that were used to train or select the model have PIT
  values that look too good, and the repair would learn too little. The authors use their validation
  set (sections 2 and 3); a set that was not used for early stopping either is safer.
* **Few samples say little about the tails.** If the model gives m samples, like an ensemble or
  passes with dropout, central intervals wider than (m - 1) / (m + 1) end in tails that are fitted
  beyond the samples; a repair stretches them to match the outcomes.
* **Only for similar rows.** A repair holds for rows like the calibration rows. Far from all of them
  even the nearest rows are not similar, and the repair has no information about a row.
"""


def local_finding(model: RecalibratorScores, method: RecalibratorScores, space: str) -> str:
    """How many neighbourhoods are wrong beyond chance before and after the repair."""
    if not method.looked_at:
        return "Too few rows to test neighbourhoods."
    return (
        f"Place by place ({space_title(space).lower()}): {model.needed:,} of "
        f"{model.looked_at:,} neighbourhoods were found wrong beyond chance, "
        f"{f'{method.needed:,}' if method.needed else 'none'} after the repair."
    )


def outside_notes(outside: int) -> tuple[str, ...]:
    """How many judged outcomes are impossible under the model's distributions.

    Examples
    --------
    >>> outside_notes(0)
    ()
    """
    if not outside:
        return ()
    verb = "outcome has" if outside == 1 else "outcomes have"
    return (
        f"{outside:,} judged {verb} a PIT value of exactly 0 or 1: the model gives values this far "
        "out probability 0.",
    )
