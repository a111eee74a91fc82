"""The thorough search for regions: on all rows of a set, held against outcomes drawn anew."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kdcal_core.diagnostics import Estimate, Region, RegionSearch, find_regions
from kdcal_core.diagnostics.regions import RegionFault
from kdcal_core.errors import InputError, InputWarning
from kdcal_core.partition.tree import PartitionTree, bin_inputs, unusable_columns
from kdcal_core.progress import Progress, part_of
from kdcal_core.review import Review, Which, Workspace, load_set, rows_of
from kdcal_core.review.inputs import input_columns
from kdcal_core.store import decode, encode
from kdcal_core.tasks.inputs import Request, check_ranges, request, require_classification
from kdcal_core.tasks.storage import damaged, load_array, load_whole, save_array, save_record

_RANGES = {"max_depth": (1.0, 12.0), "redraws": (20.0, 10_000.0), "seed": (0.0, 2.0**31)}
_READING = 0.05  # share of the progress that reading takes


@dataclass(frozen=True)
class RegionSearchSettings:
    """What is searched, and how.

    Attributes
    ----------
    which : str
        The set whose rows are looked at.
    label : int or None
        The class whose stated probability is looked at; None for the confidence.
    max_depth : int
    min_rows : int or None
        Fewest rows of a region; None for the search's own rule.
    redraws : int
        20 or more.
    seed : int
    """

    which: Which = "calibration"
    label: int | None = None
    max_depth: int = 3
    min_rows: int | None = None
    redraws: int = 200
    seed: int = 0


@dataclass(frozen=True)
class _Found:
    """A region without its rule, which the tree holds."""

    n: int
    effective: float
    share: float
    stated: float
    observed: Estimate
    gap: Estimate
    p_value: float
    minimum_detectable: float | None  # None: no gap would be found
    fault: RegionFault


@dataclass(frozen=True)
class RegionSearchRecord:
    """What was done: the settings, and what was found in each region, in the order of leaves."""

    settings: RegionSearchSettings
    regions: tuple[_Found, ...]
    overall: Estimate
    overall_p: float
    level: float
    target: str


def region_search_request(
    workspace: Workspace, review_id: str, settings: RegionSearchSettings | None = None
) -> Request:
    """The job that searches a review's rows for regions, as `find_regions` does with redraws.

    Raises
    ------
    InputError
        Where the review is not a scored classification, or a setting is none that there is.
    """
    review = workspace.read(review_id)
    settings = settings or RegionSearchSettings()
    _check(review, settings)
    asked = {"settings": encode(settings)}
    return request(
        "kdcal_core.tasks.region_search_run:search_regions",
        "Searching for regions",
        {"home": str(workspace.root), "review": review_id, **asked},
        {**_identity(review, settings.which), **asked},
    )


def _check(review: Review, settings: RegionSearchSettings) -> None:
    require_classification(
        review,
        "outcomes can be drawn anew for classes only",
        fix="Use find_pit_regions, which divides the rows.",
    )
    if settings.which not in review.sets:
        raise InputError(
            f"There is no {settings.which} set", fix="Load one, or search the calibration set."
        )
    check_ranges(settings, _RANGES)
    if settings.min_rows is not None and settings.min_rows < 1:
        raise InputError("A region keeps at least one row", fix="Give a larger number of rows.")
    if settings.label is not None and not 0 <= settings.label < len(review.classes):
        raise InputError(
            f"There is no class number {settings.label}",
            fix=f"Choose one from 0 to {len(review.classes) - 1}.",
        )


def _identity(review: Review, which: Which) -> dict[str, Any]:
    """What results depend on."""
    return {
        "table": review.tables[which].digest,
        "set": review.sets[which].digest,
        "inputs": input_columns(review),
        "roles": encode(review.roles) if review.roles else None,
        "classes": list(review.classes),
    }


def search_regions(
    home: str, review: str, settings: dict[str, Any], folder: str, progress: Progress
) -> dict[str, Any]:
    """Search in a worker process; `RegionSearchRun.read` reads what it left.

    Parameters
    ----------
    home, review : str
        The workspace's folder and the review's id.
    settings : dict
        RegionSearchSettings as JSON.

    Raises
    ------
    InputError
        Where there are no inputs to cut, too few rows, or a file is gone.
    """
    chosen, workspace = decode(RegionSearchSettings, settings), Workspace(Path(home))
    opened = workspace.read(review)
    _check(opened, chosen)
    progress(0.0, "Reading the rows")
    inputs = rows_of(workspace, review, opened.tables[chosen.which])[input_columns(opened)]
    kept = [name for name in inputs.columns if name not in unusable_columns(inputs)]
    if not kept:
        raise InputError(
            "The table holds no inputs to cut into regions",
            fix="Add a table with the rows' features, or columns that describe them.",
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InputWarning)  # pooled categories are named "other"
        binned = bin_inputs(inputs[kept])
    found = find_regions(
        load_set(workspace, review, chosen.which),
        binned,
        target="confidence" if chosen.label is None else chosen.label,
        max_depth=chosen.max_depth,
        min_rows=chosen.min_rows,
        redraws=chosen.redraws,
        seed=chosen.seed,
        progress=part_of(progress, _READING, 1.0),
    )
    _save(Path(folder), chosen, found)
    return {"regions": len(found.regions), "faulty": len(found.faulty)}


def _save(folder: Path, settings: RegionSearchSettings, found: RegionSearch) -> None:
    assert found.tree is not None
    for name, array in found.tree.to_arrays().items():
        save_array(folder, f"tree_{name}", array)
    save_array(folder, "leaf", found.leaf)
    save_record(
        folder,
        RegionSearchRecord(
            settings,
            tuple(_kept(region) for region in found.regions),
            found.overall,
            found.overall_p,
            found.level,
            found.target,
        ),
    )


def _kept(region: Region) -> _Found:
    least = region.minimum_detectable
    return _Found(
        region.n,
        region.effective,
        region.share,
        region.stated,
        region.observed,
        region.gap,
        region.p_value,
        least if np.isfinite(least) else None,
        region.fault,
    )


@dataclass(frozen=True, eq=False)
class RegionSearchRun:
    """A finished search.

    Attributes
    ----------
    settings : RegionSearchSettings
    search : RegionSearch
        Its arrays are read-only.
    """

    settings: RegionSearchSettings
    search: RegionSearch

    @staticmethod
    def check(folder: str | Path) -> RegionSearchSettings:
        """The settings of a finished search, once every file of it is known to be as it was left.

        Raises
        ------
        InputError
            As `read`, which reads the region of each row as well.
        """
        return load_whole(Path(folder), RegionSearchRecord).settings

    @classmethod
    def read(cls, folder: str | Path) -> RegionSearchRun:
        """What `search_regions` left in its folder.

        Raises
        ------
        InputError
            Where it is not there (any more), or damaged.
        """
        path = Path(folder)
        record = load_whole(path, RegionSearchRecord)
        stored = sorted(path.glob("tree_*.npy"))
        arrays = {one.stem.removeprefix("tree_"): load_array(path, one.stem) for one in stored}
        tree, leaf = PartitionTree.from_arrays(arrays), load_array(path, "leaf")
        if len(record.regions) != tree.n_leaves:
            raise damaged()
        n, settings = len(leaf), record.settings
        regions = tuple(_region(tree, at, one) for at, one in enumerate(record.regions))
        search = RegionSearch(
            tree=tree,
            regions=regions,
            overall=record.overall,
            overall_p=record.overall_p,
            n_grow=n,
            n_judge=n,
            seed=settings.seed,
            level=record.level,
            target=record.target,
            leaf=leaf,
            judged=np.arange(n),
            redraws=settings.redraws,
        )
        return cls(settings, search)


def _region(tree: PartitionTree, leaf: int, found: _Found) -> Region:
    least = found.minimum_detectable
    return Region(
        leaf=leaf,
        words=tree.words(leaf),
        conditions=tree.rule(leaf),
        n=found.n,
        effective=found.effective,
        share=found.share,
        stated=found.stated,
        observed=found.observed,
        gap=found.gap,
        p_value=found.p_value,
        adjusted_p=found.p_value,  # it holds for the whole search already
        minimum_detectable=np.inf if least is None else least,
        fault=found.fault,
    )
