"""The worker of ``kdcal calibrate``: it fits, judges and writes the calibrator."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from kdcal_core.calibration.export import save_calibrator
from kdcal_core.calibration.settings import configured
from kdcal_core.cli.diagnose_report import plain
from kdcal_core.progress import Progress
from kdcal_core.review import ReviewReader, Workspace
from kdcal_core.tasks.export_fit import READS, Fitted, Gain, Wanted, fit_and_judge


def fit_and_save(
    home: str,
    review_id: str,
    key: str,
    settings: dict[str, Any],
    layer: str | None,
    out: str,
    seed: int,
    progress: Progress,
) -> dict[str, Any]:
    """Fit the calibrator of this key on a scored review, judge it and write its file.

    Parameters
    ----------
    home : str
        Folder of the workspace.
    settings : dict
        As :func:`kdcal_core.calibration.settings.configured` takes them.
    layer : str or None
        Hidden layer of the model whose activations its regions are cut from.
    out : str
        The file to write.
    seed : int
        Of every draw.

    Returns
    -------
    dict
        ``title``, ``rows``, ``notes``, and ``estimates`` as the file's card has them, each with
        its ``change``, ``change_low``, ``change_high`` and ``verdict``; None for a bound of an
        interval that is not given.

    Raises
    ------
    InputError
        The calibrator needs data that the review does not have, or the rows do not suffice.
    """
    wanted = Wanted(key, configured(key, settings, seed=seed), layer, seed=seed)
    made = fit_and_judge(ReviewReader(Workspace(Path(home)), review_id, READS), wanted, progress)
    save_calibrator(made.calibrator, out, made.card)
    return {
        "title": made.card.title,
        "rows": made.data.calibration.n_rows,
        "notes": made.card.notes,
        "estimates": plain(_with_changes(made)),
    }


def _with_changes(made: Fitted) -> list[dict[str, Any]]:
    """The card's estimates, each with its change on the same rows and the verdict."""
    if made.found is None:
        return []
    gain = Gain.of(made.found)
    measures = {one.title: one for one in made.found.measures if one.key in gain.pairs}
    pairs = {title: gain.pairs[one.key] for title, one in measures.items()}
    return [
        {
            **asdict(one),
            "change": pairs[one.label].difference.value,
            "change_low": pairs[one.label].difference.low,
            "change_high": pairs[one.label].difference.high,
            "percent": gain.after.scores[measures[one.label].key].percent,
            "verdict": pairs[one.label].verdict,
        }
        for one in made.card.estimates
    ]
