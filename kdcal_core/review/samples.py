"""The shipped samples: real models with real held-out rows, each opened by one call."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import kdcal_core
from kdcal_core.data.types import Roles, Task
from kdcal_core.errors import InputError
from kdcal_core.jobs import Progress, run_limited
from kdcal_core.parents.base import ParentInfo
from kdcal_core.review.codec import decode
from kdcal_core.review.model import WHICH, Review, TableInfo
from kdcal_core.review.steps import decode_set, decode_table
from kdcal_core.review.workspace import Workspace

_SECONDS = 120
_TRAINING = "training.parquet"
# the order in which they teach best
_FIRST = (
    "digits",
    "breast_cancer",
    "adult",
    "adult_network",
    "heteroscedastic",
    "diamonds",
    "diamonds_quantiles",
)


def samples_root() -> Path:
    """The folder ``sample_data`` beside the package."""
    return Path(kdcal_core.__file__).parent.parent / "sample_data"


@dataclass(frozen=True)
class Sample:
    """A shipped sample, as its card tells it.

    Attributes
    ----------
    name, title, summary, source, licence, trained : str
    model : str or None
        File of the model; None where the tables carry its predictions.
    calibration, evaluation : str
        Files of the tables.
    target : str
        Column of the true class, or of the outcome.
    class_names : tuple of str
        In the order of the model's outputs; empty in a regression.
    rows : dict
        Number of rows of each table: "calibration", "evaluation", and what else there is.
    task : str
        "classification" or "regression".
    accuracy : float or None
        0 to 1, on the evaluation table; of a classification.
    n_classes : int
    rmse : float or None
        Root mean squared error on the evaluation table; of a regression.
    """

    name: str
    title: str
    summary: str
    model: str | None
    calibration: str
    evaluation: str
    target: str
    source: str
    licence: str
    trained: str
    rows: dict[str, int]
    class_names: tuple[str, ...] = ()
    accuracy: float | None = None
    n_classes: int = 0
    task: Task = "classification"
    rmse: float | None = None


def samples(root: Path | None = None) -> tuple[Sample, ...]:
    """The samples that are there, the simplest to learn from first.

    Examples
    --------
    >>> [sample.name for sample in samples()][:2]
    ['digits', 'breast_cancer']
    """
    cards = [_read_card(path) for path in (root or samples_root()).glob("*/card.json")]

    def place(sample: Sample) -> tuple[int, str]:
        known = sample.name in _FIRST
        return (_FIRST.index(sample.name) if known else len(_FIRST), sample.name)

    return tuple(sorted(cards, key=place))


def start_sample(
    workspace: Workspace,
    name: str,
    *,
    root: Path | None = None,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Review:
    """A new, scored review of a shipped sample.

    Raises
    ------
    InputError
        Where there is no sample of this name.
    """
    sample = next((one for one in samples(root) if one.name == name), None)
    if sample is None:
        raise InputError(f"There is no sample {name!r}", fix="Choose one on the Load page.")
    review_id = workspace.create()
    try:
        return _open(
            workspace, review_id, sample, (root or samples_root()) / name, progress, cancelled
        )
    except BaseException:
        workspace.delete(review_id)
        raise


def _open(
    workspace: Workspace,
    review_id: str,
    sample: Sample,
    source: Path,
    progress: Progress | None,
    cancelled: Callable[[], bool] | None,
) -> Review:
    folder = workspace.folder(review_id)
    model = None
    if sample.model is not None:
        path = workspace.keep(review_id, source / sample.model, sample.model)
        model = {"path": str(path), "name": sample.model}
    files = {"calibration": sample.calibration, "evaluation": sample.evaluation}
    frames = {which: workspace.new_file(review_id, "table.arrow") for which in WHICH}
    folders = {which: folder / f"set-{which}" for which in WHICH}
    tables = [
        {
            "which": which,
            "name": files[which],
            "path": str(source / files[which]),
            "frame_path": str(frames[which]),
            "folder": str(folders[which]),
        }
        for which in WHICH
    ]
    asides = _asides(source)
    aside_frames = {name: workspace.new_file(review_id, "table.arrow") for name in asides}
    reply = run_limited(
        "kdcal_core.review.in_worker:open_sample",
        {
            "model": model,
            "tables": tables,
            "asides": [
                {"name": name, "path": str(path), "frame_path": str(aside_frames[name])}
                for name, path in asides.items()
            ],
            "target": sample.target,
            "classes": list(sample.class_names),
        },
        seconds=_SECONDS,
        what="Opening the sample",
        progress=progress,
        cancelled=cancelled,
    )

    beside: dict[str, TableInfo] = {
        name: decode_table(words, name, aside_frames[name])
        for name, words in zip(asides, reply["asides"], strict=True)
    }
    training = beside.pop(_TRAINING, None)

    def change(review: Review) -> Review:
        return replace(
            review,
            title=sample.title,
            parent=decode(ParentInfo, reply["parent"]) if reply["parent"] else None,
            model_file=Path(model["path"]).name if model else None,
            classes=sample.class_names,
            tables={
                which: decode_table(reply["tables"][which], files[which], frames[which])
                for which in WHICH
            },
            roles=decode(Roles, reply["roles"]),
            sets={which: decode_set(reply["sets"][which], folders[which]) for which in WHICH},
            training=training,
            foreign=beside,
            sample=sample.name,
        )

    return workspace.update(review_id, change)


def _asides(source: Path) -> dict[str, Path]:
    """The training rows and the foreign ones of a sample, by the name they are shown by."""
    found = {_TRAINING: source / _TRAINING} if (source / _TRAINING).exists() else {}
    for path in sorted(source.glob("foreign*.parquet")):
        title = path.stem.removeprefix("foreign").strip("_").replace("_", " ")
        found[title.capitalize() or "Foreign rows"] = path
    return found


def _read_card(path: Path) -> Sample:
    card = json.loads(path.read_text(encoding="utf-8"))
    return decode(Sample, {key: card[key] for key in Sample.__dataclass_fields__ if key in card})
