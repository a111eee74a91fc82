"""Explanations on the Recalibration page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kdcal_core.diagnostics import Estimate, estimate_text, interval_text, value_text
from kdcal_core.evaluation import MODEL, RecalibratorScores, best_repair, recommended, repairs
from kdcal_core.tasks import RecalibrationRecord, space_title

WILL_SHOW = (
    "Here you will see the same predictions before and after a repair that needs no new training: "
    "outcomes outside their intervals, the reliability of quantiles, and the gain in every "
    "measure. The model is not changed; its predicted distributions are adjusted to the "
    "outcomes of the calibration set (Torres et al.)."
)
SETTINGS = r"""
* **Methods.** *Local* uses, for each row, the PIT values of its nearest calibration rows (Torres et
  al., Algorithm 1). *Global* uses all calibration rows for every row, and *isotonic* one rising map
  of probabilities for all rows (section 2). Both correct the total and leave local faults.
  *Local where needed* repairs only rows whose neighbourhood is wrong beyond chance (our addition).
  Where the model is right, it costs almost nothing, while local costs 1 to 2% of CRPS.
  *Density estimation* trains a small network that learns the outcome's quantiles from the model's
  own forecast, so large and small predictions are corrected differently (section 4.3).
  *Nearest neighbour regression* does not use the model and is included for comparison.
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


def finding(model: RecalibratorScores, method: RecalibratorScores) -> str:
    """The gain of the method, or that it cannot be told apart from the model."""
    before, after = model.scores.rows["crps"], method.scores.rows["crps"]
    change = method.differences["crps"]
    paired = f"paired difference {value_text(change)}, {interval_text(change)}, {change.n:,} rows"
    if change.low <= 0.0 <= change.high:
        lead = (
            f"{method.title} and the model cannot be told apart by CRPS: "
            f"{value_text(before)} before, {value_text(after)} after ({paired})"
        )
    else:
        verb = "lowers" if change.value < 0 else "raises"
        lead = (
            f"{method.title} {verb} CRPS from {value_text(change, before.value)} to "
            f"{value_text(change, after.value)} ({paired})"
        )
    held, was = method.scores.rows["coverage95"], model.scores.rows["coverage95"]
    hold = f"{value_text(held)} of the outcomes, before {value_text(was)}"
    return f"{lead}; its 95% intervals hold {hold}."


def local_finding(model: RecalibratorScores, method: RecalibratorScores, space: str) -> str:
    """How many neighbourhoods are wrong beyond chance before and after the repair."""
    if not method.looked_at:
        return "Too few rows to test neighbourhoods."
    return (
        f"Place by place ({space_title(space).lower()}): {model.needed:,} of "
        f"{model.looked_at:,} neighbourhoods were found wrong beyond chance, "
        f"{f'{method.needed:,}' if method.needed else 'none'} after the repair."
    )


def recommendation(methods: Sequence[RecalibratorScores]) -> str:
    """How each repair changes the CRPS, and the recommended one."""
    model = next(one for one in methods if one.key == MODEL).scores.rows["crps"].value
    found = repairs(methods)
    if not found or model <= 0:
        return ""
    changes = ", ".join(
        f"{short_title(one.key, one.title)} {_share(one.differences['crps'], model)}"
        for one in found
    )
    best = best_repair(methods)
    if best is not None:
        lead = f"Recommended by CRPS: {best.title}"
    elif recommended(methods) == MODEL:
        lead = "Recommended by CRPS: the model as it is, because no repair lowers it beyond chance"
    else:
        lead = (
            "No repair lowers the CRPS beyond chance. Recommended: the model as it is, or Local "
            "recalibration where needed, which costs almost nothing where the model is right"
        )
    return f"{lead}. Change of the CRPS: {changes}."


def _share(change: Estimate, whole: float) -> str:
    """A change as a share of the model's CRPS, with its interval."""
    value, low, high = (one / whole for one in (change.value, change.low, change.high))
    share = replace(change, value=value, low=low, high=high, percent=True)
    return estimate_text(share, chance=False)


def tile_note(before: Estimate | None, change: Estimate | None) -> str:
    """The note under a tile: the value before, and the paired change."""
    text = "" if before is None else f"{value_text(before)} before"
    return text if change is None else f"{text}; change {estimate_text(change, chance=False)}"


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


def how_judged(record: RecalibrationRecord) -> str:
    """The rows on which methods were fitted and judged, and the neighbours used."""
    rows = (
        f"Fitted on {record.n_fit:,} calibration rows, judged on {record.n_judged:,} rows of the "
        "evaluation set."
        if record.judged_on == "evaluation"
        else f"No evaluation set: each of {record.n_judged:,} calibration rows was repaired with "
        f"the other folds of {record.settings.folds}."
    )
    return f"{rows} {_neighbours(record)}".strip()


def _neighbours(record: RecalibrationRecord) -> str:
    asked, where = record.settings, space_title(record.space)
    if asked.radius is not None and not asked.choose:
        return f"Neighbours within {asked.radius:g} in the space: {where}."
    chosen = ", chosen by cross-fitted CRPS" if asked.choose else ""
    capped = (
        f" {asked.k:,} were chosen, but there are no more rows."
        if record.k < asked.k and not asked.choose
        else ""
    )
    return f"{record.k:,} neighbours in the space: {where}{chosen}.{capped}"


def short_title(key: str, title: str) -> str:
    """A method's name on a chart."""
    return "Model" if key == MODEL else title.replace(" recalibration", "")
