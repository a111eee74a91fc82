"""The shipped samples: real models with real held-out rows, each opened by one call."""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import kdcal_core
from kdcal_core.data.schema import Roles, Task
from kdcal_core.errors import InputError
from kdcal_core.jobs import Cancelled, job_key, run_limited
from kdcal_core.jobs.records import Results
from kdcal_core.models.protocol import ModelInfo
from kdcal_core.progress import Progress
from kdcal_core.review.changes import decode_set, decode_table
from kdcal_core.review.review import WHICH, Review, TableInfo
from kdcal_core.review.sealed_files import check_folder, copy_sealed
from kdcal_core.review.workspace import Workspace
from kdcal_core.store import decode
from kdcal_core.store.disk import digest_of, locked

_SECONDS = 120
_STALE = 3600  # seconds; no sample takes so long to open
_TRAINING = "training.parquet"
_ARROW = "table.arrow"
_OPEN = "kdcal_core.review.in_worker:open_sample"
_KEPT = "samples"
_KEPT_BYTES = 1024**3
# the best order for learning
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
    """The folder ``sample_data``: within an installed package, or beside it in a checkout."""
    package = Path(kdcal_core.__file__).parent
    installed = package / "workshop" / "sample_data"
    return installed if installed.is_dir() else package.with_name("sample_data")


@dataclass(frozen=True)
class Sample:
    """A shipped sample, as its card describes it.

    Attributes
    ----------
    name, title, summary, source, licence, trained : str
    model : str or None
        File of the model; None if the tables contain its predictions.
    calibration, evaluation : str
        Files of the tables.
    target : str
        Column of the true class, or of the outcome.
    class_names : tuple of str
        In the order of the model's outputs; empty in a regression.
    rows : dict
        Number of rows of each table: "calibration", "evaluation", and any others.
    task : str
        "classification" or "regression".
    accuracy : float or None
        0 to 1, on the evaluation table; for a classification.
    n_classes : int
    rmse : float or None
        Root mean squared error on the evaluation table; for a regression.
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
    """The shipped samples, the simplest to learn from first.

    Examples
    --------
    >>> [sample.name for sample in samples()][:2]
    ['digits', 'breast_cancer']
    """
    cards = [
        _read_card(path, path.stat().st_mtime_ns)
        for path in (root or samples_root()).glob("*/card.json")
    ]

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
        If there is no sample of this name.
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
        with suppress(InputError, OSError):  # report only the first failure
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
    files = {"calibration": sample.calibration, "evaluation": sample.evaluation}
    asides = _asides(source)
    reply, kept = _opened(workspace, sample, source, files, asides, progress, cancelled)
    model_file = None
    if sample.model is not None:
        model_file = workspace.keep(review_id, source / sample.model, sample.model).name

    def table(words: Any, name: str, key: str) -> TableInfo:
        path = workspace.new_file(review_id, _ARROW)
        copy_sealed(kept / f"{key}.arrow", path)
        return decode_table(words, name, path)

    tables = {which: table(reply["tables"][which], files[which], which) for which in WHICH}
    beside = {
        name: table(words, name, f"aside-{number}")
        for number, (name, words) in enumerate(zip(asides, reply["asides"], strict=True))
    }
    training = beside.pop(_TRAINING, None)
    for which in WHICH:
        shutil.copytree(kept / f"set-{which}", folder / f"set-{which}")

    def change(review: Review) -> Review:
        return replace(
            review,
            title=sample.title,
            model=decode(ModelInfo, reply["model"]) if reply["model"] else None,
            model_file=model_file,
            classes=sample.class_names,
            tables={which: tables[which] for which in WHICH},
            roles=decode(Roles, reply["roles"]),
            sets={
                which: decode_set(reply["sets"][which], folder / f"set-{which}") for which in WHICH
            },
            training=training,
            foreign=beside,
            sample=sample.name,
        )

    return workspace.update(review_id, change)


def _opened(
    workspace: Workspace,
    sample: Sample,
    source: Path,
    files: dict[str, str],
    asides: dict[str, Path],
    progress: Progress | None,
    cancelled: Callable[[], bool] | None,
) -> tuple[Any, Path]:
    """A worker's description of a sample and the folder of its files, the same at every opening.

    They are stored by the digest of the sample's files and of our code. If several visitors open a
    sample at the same time, one gets a worker and the others wait for it.
    """

    def waiting() -> None:
        if cancelled is not None and cancelled():
            raise Cancelled("Opening the sample")

    digests = [digest_of(path) for path in sorted(source.iterdir()) if path.is_file()]
    key = job_key(_OPEN, {"name": sample.name}, *digests, _code())
    store = Results(workspace.root / _KEPT, _KEPT_BYTES)
    with locked(workspace.lock(key, "sample"), waiting=waiting):
        found = store.read(key)
        if found is not None and _is_whole(store.files(key)):
            return found["result"], store.files(key)
        store.delete(key)
        _remove_stale(workspace.root)
        draft = workspace.root / f"draft-{secrets.token_hex(8)}"
        try:
            reply = ask_worker(
                sample, source, store.begin(draft), files, asides, progress, cancelled
            )
            store.keep(key, draft, reply)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return reply, store.files(key)


def ask_worker(
    sample: Sample,
    source: Path,
    place: Path,
    files: dict[str, str],
    asides: dict[str, Path],
    progress: Progress | None,
    cancelled: Callable[[], bool] | None,
) -> Any:
    """Read and score the sample in a worker, which writes its files to ``place``."""
    model = None
    if sample.model is not None:
        model = {"path": str(source / sample.model), "name": sample.model}
    return run_limited(
        _OPEN,
        {
            "model": model,
            "tables": [
                {
                    "which": which,
                    "name": files[which],
                    "path": str(source / files[which]),
                    "frame_path": str(place / f"{which}.arrow"),
                    "folder": str(place / f"set-{which}"),
                }
                for which in WHICH
            ],
            "asides": [
                {"name": name, "path": str(path), "frame_path": str(place / f"aside-{i}.arrow")}
                for i, (name, path) in enumerate(asides.items())
            ],
            "target": sample.target,
            "classes": list(sample.class_names),
        },
        seconds=_SECONDS,
        what="Opening the sample",
        progress=progress,
        cancelled=cancelled,
    )


def _remove_stale(root: Path) -> None:
    """Remove the drafts of processes that were killed while opening a sample."""
    for draft in root.glob("draft-*"):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > _STALE:
                shutil.rmtree(draft, ignore_errors=True)


def _is_whole(folder: Path) -> bool:
    try:
        return check_folder(folder)
    except (InputError, OSError):
        return False


@cache
def _code() -> str:
    """What identifies this state of our code: a release, or an edited checkout."""
    root = Path(kdcal_core.__file__).parent
    stats = sorted((str(path), path.stat()) for path in root.rglob("*.py"))
    text = "".join(f"{path} {stat.st_size} {stat.st_mtime_ns}\n" for path, stat in stats)
    return hashlib.sha256(f"{kdcal_core.__version__}\n{text}".encode()).hexdigest()


def _asides(source: Path) -> dict[str, Path]:
    """The training rows and foreign rows of a sample, by their shown name."""
    found = {_TRAINING: source / _TRAINING} if (source / _TRAINING).exists() else {}
    for path in sorted(source.glob("foreign*.parquet")):
        title = path.stem.removeprefix("foreign").strip("_").replace("_", " ")
        found[title.capitalize() or "Foreign rows"] = path
    return found


@cache
def _read_card(path: Path, changed: int) -> Sample:
    """A card, read again where it has ``changed``: the Load page shows them all in every run."""
    card = json.loads(path.read_text(encoding="utf-8"))
    return decode(Sample, {key: card[key] for key in Sample.__dataclass_fields__ if key in card})
