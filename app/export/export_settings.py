"""The calibrator to export: the choice, which the address keeps, and its settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import streamlit as st

from app.export import export_results
from app.export import export_text as text
from app.shared import foreign_results, graph_settings
from app.shared.graph_settings import ALPHAS
from app.shared.one_of import several_of
from kdcal_core.calibration import (
    BY_TREE,
    CALIBRATOR_FAMILIES,
    CALIBRATORS,
    INNER_MAPS,
    Family,
)
from kdcal_core.review import Review
from kdcal_core.tasks import ExportSettings, few_trees, partition_columns, usable_calibrators
from kdcal_core.text import in_sentence

ADDRESS = "calibrator"
_USUAL = "recommended"
_INPUTS = ("inputs", "")
_ALPHA = 0.01  # the calibrator's own
_PRUNED = (BY_TREE, "heterogeneous_auc")
Choice = tuple[str, str]  # a kind, and the name of a layer or column
_KEPT: dict[str, Any] = {"persist_state": "session"}


def choose(review: Review) -> ExportSettings | None:
    """The settings in the card; None until all are chosen."""
    usable = usable_calibrators(review)
    keys = [
        key
        for family in get_args(Family)
        for key, why in usable.items()
        if why is None and CALIBRATORS[key].family == family
    ]
    compared = export_results.comparison_of(review)
    key: str = st.selectbox(
        "Calibrator",
        options=keys,
        index=keys.index(_first(keys, None if compared is None else text.preselected(compared))),
        format_func=_named,
        key=f"export_calibrator_{review.id}",
        help="The calibrators that this review can use. The page Compare compares them with "
        "each other.",
        **_KEPT,
    )
    if st.query_params.get(ADDRESS) != key:
        st.query_params[ADDRESS] = key
    entry = CALIBRATORS[key]
    st.markdown(f"{entry.description} Described in {entry.reference}.")
    if compared is not None:
        st.caption(text.compared(compared, key))
    if entry.family == "partition":
        return _regions(review, key)
    chosen = ExportSettings(key, event=review.event)
    return _kernel_density(review, chosen) if entry.family == "kernel density" else chosen


def _first(keys: list[str], best: str | None) -> str:
    """The calibrator in the address, or that of the last comparison, or a default."""
    asked = st.query_params.get(ADDRESS)
    return next(one for one in (asked, best, _USUAL, keys[0]) if one in keys)


def _named(key: str) -> str:
    entry = CALIBRATORS[key]
    family, _ = CALIBRATOR_FAMILIES[entry.family]
    known = in_sentence(family) in (in_sentence(entry.label), in_sentence(entry.name))
    return f"{entry.label}: {entry.name}" + ("" if known else f" ({in_sentence(family)})")


def _kernel_density(review: Review, chosen: ExportSettings) -> ExportSettings:
    """The settings of the kernel density version; distance, floor and prior are those of its pages.

    Exponent and blend are chosen by the data.
    """
    shares = foreign_results.prior_of(review, None)
    alpha: float = st.select_slider(
        "Alpha: ordinary rows that may count as unknown",
        options=ALPHAS,
        value=_ALPHA,
        format_func=lambda share: f"{share:.1%}",
        key="foreign_alpha",
        disabled=graph_settings.floor_is_fixed(review.id),
        **_KEPT,
    )
    if shares is None:  # a job counts the classes
        return chosen
    further = graph_settings.choose(review.id, review.classes, tuple(shares.tolist()))
    return replace(
        chosen,
        distance=further.distance,
        alpha=None if alpha == _ALPHA else alpha,
        log_floor=further.log_floor,
        prior=further.prior,
    )


def _regions(review: Review, key: str) -> ExportSettings | None:
    """The settings of calibration region by region; None until all are chosen."""
    choices = _choices(review, key)
    places = st.columns(4 if len(choices) > 1 else 3, vertical_alignment="bottom")
    kind, name = _INPUTS
    if len(choices) > 1:
        with places[0]:
            kind, name = st.selectbox(
                "Regions of",
                options=choices,
                format_func=text.region_choice,
                key=f"export_of_{review.id}_{key}",
                help=text.REGIONS_OF,
                **_KEPT,
            )
    by_trees = kind in (_INPUTS[0], "layer")
    with places[-3]:
        inner: str = st.selectbox(
            "In each region",
            options=list(INNER_MAPS),
            format_func=INNER_MAPS.__getitem__,
            key="export_inner",
            help="Regions with few rows borrow from the region around them.",
            **_KEPT,
        )
    depth, rows = _size(key, places[-2], places[-1], by_trees)
    prune = by_trees and key in _PRUNED and _pruned(key)
    if few_trees(key, inner) is not None:
        st.caption(text.FEW_TREES)
    regions = ExportSettings(key, inner, event=review.event)
    if kind == "several":
        columns = _several(review)
        return replace(regions, columns=columns) if columns else None
    if kind == "column":
        return replace(regions, columns=(name,))
    layer = name if kind == "layer" else None
    return replace(regions, max_depth=depth, min_rows=rows, prune=prune, layer=layer)


def _choices(review: Review, key: str) -> list[Choice]:
    """The possible sources of the regions."""
    layers = review.model.layers if review.model is not None else ()
    columns = partition_columns(review) if key == BY_TREE else ()
    several = [("several", "")] if len(columns) > 1 else []
    return [
        _INPUTS,
        *(("layer", name) for name in layers),
        *several,
        *(("column", name) for name in columns),
    ]


def _size(key: str, left: Any, right: Any, by_trees: bool) -> tuple[int | None, int | None]:
    """Depth of the trees, and fewest rows in a region."""
    with left:
        depth: int | None = st.number_input(
            "Depth",
            min_value=1,
            max_value=12,
            value=None,
            placeholder="Best by measurement",
            key=f"export_depth_{key}",
            disabled=not by_trees,
            help="Number of conditions that define a region.",
            **_KEPT,
        )
    with right:
        rows: int | None = st.number_input(
            "Fewest rows",
            min_value=1,
            max_value=10**6,
            value=None,
            placeholder="By rule",
            key=f"export_rows_{key}",
            disabled=not by_trees,
            help="Calibration rows in a region of a tree.",
            **_KEPT,
        )
    return depth, rows


def _pruned(key: str) -> bool:
    return st.toggle(
        "Cut the tree back",
        key=f"export_prune_{key}",
        help="Use the size with the best cross-validated log loss; the depth above is then the "
        "largest one tried.",
        **_KEPT,
    )


def _several(review: Review) -> tuple[str, ...]:
    chosen = several_of(
        "Columns",
        {name: name for name in partition_columns(review)},
        key=f"export_columns_{review.id}",
        help="Each combination of their values is a region; numbers are cut into ten ranges.",
        **_KEPT,
    )
    return tuple(chosen)
