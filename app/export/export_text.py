"""Words of the page Choose and export."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from math import isfinite

from app.shared.charts import file_stem
from kdcal_core.calibration.export import CalibratorCard
from kdcal_core.diagnostics import Estimate, interval_text, value_text
from kdcal_core.evaluation import Comparison, Gain
from kdcal_core.regression import RecalibratorCard
from kdcal_core.review import Review
from kdcal_core.tasks import ExportRecord
from kdcal_core.text import listed, seconds_text

Card = CalibratorCard | RecalibratorCard

_LONGEST = 40

WILL_SHOW = (
    "Here you will see what this calibrator gains over the model as it is, its reliability before "
    "and after and how it changes a score. You can save it: as one file that scores new rows "
    "anywhere, and as part of the model's ONNX file if ONNX can express it."
)
FAR = (
    "The rows used to judge here are like the data. This calibrator is made for rows far from "
    "them, where it states the prior: see Compare (far outside) and Out of distribution."
)
REGIONS_OF = (
    "A tree may cut the columns themselves, or the outputs of a hidden layer of the network "
    "(Durfee et al., section 5); or the values of a column, such as a branch or a device, are the "
    "regions."
)
NO_COLUMNS = "Choose at least one column to divide the rows by."
FEW_TREES = (
    "Kernel densities are slow to fit in many regions, so 10 trees are grown instead of 100. On "
    "3,000 rows that still takes about a minute, and about five minutes without an evaluation set, "
    "because each fold is fitted."
)
USE = """
**Who may use it.** Anybody who has the model. The file contains no rows, only the fitted values,
the names of columns and classes, and digests. The kernel density graph is the exception: most of
its regions have one row, whose features are the region's centre, and up to 64 rows are used to
recognise the model. Share its file as you would share the rows.

Every file is read without pickle, so opening it runs no code. Every part of it is checked, and a
truncated or altered file is refused.

@MODEL@

**For which rows.** For rows like those of the calibration set. It does not know where the data end,
unless it is the kernel density graph: the page Out of distribution shows the model's confidence
there.

**Which rows chose its values.** The calibration set alone. Salamon et al. (section VIII) list four
ways to choose fitted values: on a second test set, on a validation set, by cross-validation, or on
the rows of the test itself. kdcal judges on the evaluation set, or by cross-fitting where there is
none, so no row judges a calibrator that was fitted on it.

**When to fit it again.** When the model is trained again, when the rows in use have changed, or
when a new audit shows that confidence and accuracy disagree. The page Compare then shows whether
another calibrator is better.
"""
_MODEL = """**With which model.** Only with this one. The file contains the SHA-256 of the model's
file. It refuses any other model, even the same one trained again."""
_NO_MODEL = """**With which model.** With the model that made these predictions. Only you can check
this: the review has no model, so the file cannot recognise it and refuses no other."""
TRY = (
    "A file written by this page or by `kdcal calibrate`. You will see its card, whether it "
    "belongs to this model, and its effect on the rows of this review. It is opened in a separate "
    "process, and no code in it is run."
)


def use(review: Review) -> str:
    """Who may use the file, with which model, for which rows, and until when."""
    return USE.replace("@MODEL@", _NO_MODEL if review.model is None else _MODEL)


def tile_note(gain: Gain, key: str) -> str:
    """The note under a tile: the model's value, and the change on the same rows."""
    before, after, pair = gain.of_measure(key)
    if not isfinite(pair.difference.low):
        return f"model {value_text(after, before.value)}; too few rows to tell"
    change, low, high = (
        value_text(after, value)
        for value in (pair.difference.value, pair.difference.low, pair.difference.high)
    )
    return f"model {value_text(after, before.value)}, change {change} ({low} to {high})"


def fitted_on(record: ExportRecord) -> str:
    """The rows on which the file was fitted."""
    sentence = f"Fitted on {record.n_fit:,} calibration rows"
    if record.n_training:
        sentence += f"; the regions were found on {record.n_training:,} training rows"
    return f"{sentence}, in {seconds_text(record.fit_seconds)}."


def compared(found: Comparison, chosen: str) -> str:
    """The result of a finished comparison for the chosen calibrator. Names in it are ours."""
    best = found.method(found.best["log_loss"])
    best_name = "the model as it is" if best.key == found.reference else best.name
    close = found.close_to_best("log_loss")
    rows = f"these {found.n:,} rows"
    if chosen not in {one.key for one in found.methods}:
        return f"The last comparison left it out; in it {best_name} has the lowest log loss."
    if chosen == best.key:
        others = len(close) - 1
        if not others:
            return f"In the last comparison it is better than all others on {rows}, by log loss."
        apart = "one other" if others == 1 else f"{others} others"
        return (
            f"In the last comparison it has the lowest log loss; {apart} cannot be told apart from "
            f"it on {rows}."
        )
    if chosen in close:
        smallest = " It is the smallest such calibrator." if chosen == preselected(found) else ""
        return (
            f"In the last comparison it cannot be told apart from {best_name}, which has the "
            f"lowest log loss on {rows}.{smallest}"
        )
    return f"In the last comparison it is worse than {best_name} on {rows}, by log loss."


def chosen_there(found: Comparison, gain: Gain, key: str) -> bool:
    """Whether a comparison on the same rows has chosen this calibrator."""
    judged = gain.comparison
    same = (found.judged, found.n, found.folds) == (judged.judged, judged.n, judged.folds)
    return same and len(found.methods) > 2 and preselected(found) == key


def flattered(found: Comparison) -> str:
    """A note that the gain looks too large if the same rows chose the calibrator."""
    return (
        f"These rows also chose it, among {len(found.methods) - 1:,} calibrators, so its gain "
        "looks slightly larger than it is."
    )


def preselected(found: Comparison) -> str | None:
    """The smallest of the best calibrators by log loss; None if the model as it is is one."""
    take = found.smallest_of_best("log_loss")
    return None if take == found.reference else take


def file_name(review: Review, key: str, suffix: str) -> str:
    """The name of a downloaded file; a long title ends with a whole word."""
    stem = file_stem(review.title)
    if len(stem) > _LONGEST:
        whole = stem[: _LONGEST + 1].rpartition("-")[0]
        stem = whole or stem[:_LONGEST]
    return f"{stem}-{file_stem(key)}{suffix}"


def region_choice(choice: tuple[str, str]) -> str:
    """The source of a calibrator's regions. Contains untrusted text."""
    kind, name = choice
    named = {"inputs": "The inputs", "several": "Several columns"}
    return named.get(kind) or f"{kind.capitalize()} {name[:_LONGEST]}"


def python_lines(name: str, card: CalibratorCard, *, reads_rows: bool) -> str:
    """Lines of Python that calibrate new rows, and run unchanged.

    ``X`` is a data frame of new rows, or ``proba`` the model's probabilities if there is no model.
    """
    if card.model is None:
        inputs = ", X" if reads_rows else ""
        return (
            f"# proba: the model's probabilities, (n, {len(card.classes)})\n"
            "from kdcal_core import load_calibrator\n\n"
            f"calibrator = load_calibrator({name!r})\n"
            f"calibrated = calibrator.predict_proba(proba{inputs})\n"
        )
    return (
        "# X: a data frame of new rows\n"
        "from kdcal_core import load_calibrator\n\n"
        "# refused with any other model than the one that was calibrated\n"
        f"calibrator = load_calibrator({name!r}, model={card.model.name!r})\n"
        "scored = calibrator.score_rows(X)  # scored.proba, .predicted, .confidence\n"
    )


ON_COMMAND_LINE = (
    "On the command line, for tables of any length; `--keep id,date` writes such columns of the "
    "table beside the scores:"
)


def score_line(name: str, card: Card, predictions: str = "new_predictions.csv") -> str:
    """The command that scores a table."""
    words = ["kdcal", "score", "--calibrator", name]
    if card.model is None:
        words += ["--predictions", predictions]
    else:
        words += ["--model", card.model.name, "--data", "new_rows.csv"]
    return shlex.join([*words, "--out", "scored.csv"])


def card_rows(card: CalibratorCard) -> Mapping[str, str]:
    """The card as lines of a table. Untrusted text."""
    rows = {"Calibrator": card.title}
    settings = ", ".join(f"{name} = {value}" for name, value in card.parameters.items())
    rows["Settings"] = settings or "none"
    rows |= model_rows(card, "not known, only its predictions")
    rows["Classes"] = listed(card.classes, 12)
    if card.layer is not None:
        rows["Hidden layer"] = card.layer
    return rows | origin_rows(card)


def model_rows(card: Card, unknown: str) -> dict[str, str]:
    """The model of a card, or ``unknown``, and the tables of the fit. Untrusted text."""
    rows = {"Model": unknown}
    if card.model is not None:
        rows["Model"] = f"{card.model.name} ({card.model.kind})"
        rows["SHA-256 of the model"] = card.model.digest
    for which, mark in card.data.items():
        rows[f"{which.capitalize()} set"] = f"{mark.name}, {mark.rows:,} rows"
        rows[f"SHA-256 of the {which} set"] = mark.digest
    return rows


def origin_rows(card: Card) -> dict[str, str]:
    """A card's columns, estimates, notes, and when and how it was fitted. Untrusted text."""
    rows = {"Columns": listed(card.features, 12)} if card.features else {}
    for one in card.estimates:
        width = Estimate("", "", one.after, one.low, one.high, one.n)
        rows[one.label] = (
            f"{value_text(width, one.before)} before, {value_text(width)} after "
            f"({interval_text(width)}), {one.n:,} rows, {one.judged}"
        )
    for at, note in enumerate(card.notes, 1):
        rows["Note" if len(card.notes) == 1 else f"Note {at}"] = note
    rows["Fitted"] = f"{card.created} (UTC), kdcal {card.kdcal_version}"
    if card.seed is not None:
        rows["Seed"] = str(card.seed)
    return rows


def breakable(value: str) -> str:
    """A digest in groups, so that a line can break between them; other text unchanged.

    Examples
    --------
    >>> breakable("0123456789abcdef" * 4)[:26], breakable("no digest")
    ('01234567 89abcdef 01234567', 'no digest')
    """
    if not re.fullmatch("[0-9a-f]{64}", value):
        return value
    return " ".join(value[at : at + 8] for at in range(0, 64, 8))


def belongs(has_model: bool, review: Review) -> str:
    """Whether a file that was tried is for the model of the review."""
    if review.model is None:
        return (
            "The review has no model, so kdcal cannot check whether the file belongs to the "
            "model that made these predictions."
            if has_model
            else "Neither the file nor the review has a model. The classes agree; nothing else can "
            "be checked."
        )
    if has_model:
        return "It belongs to this model: the SHA-256 of the model's file is the same."
    return (
        "It was fitted on predictions without their model, so kdcal cannot check whether these "
        "came from this model."
    )
