"""The choice of foreign rows on the Out of distribution page, and where they come from."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app.shared import graph_results, job_results, session, uploads, waiting
from app.shared.emphasis import emphasis
from app.shared.foreign_results import Chosen
from app.shared.graph_results import Fit, Foreign
from kdcal_core.review import Review, remove_foreign
from kdcal_core.tasks import ForeignKind, ForeignSettings, score_foreign
from kdcal_core.text import escape_markdown, formatted

SHIFTS = (-50.0, -20.0, -10.0, -5.0, -2.0, 2.0, 5.0, 10.0, 20.0, 50.0)
_NAMES = {
    "sphere": "Spheres around the data, as in the papers",
    "uniform": "Random values within each column's limits",
    "shuffled": "Own rows, each feature shuffled",
    "shifted": "Own rows, one feature shifted far",
}
_HELP = """
Where can rows unlike the data come from?

* **Your own table** with the model's features: another site, another year, another camera.
* **Random values** between the smallest and the largest of each column; whole numbers stay whole,
  and categories come from the column. Every value is possible; their combinations are new.
* **Spheres** around the centre of the data, as in the papers. The farthest ordinary row is at
  radius 1, with every feature in units of its standard deviation. They are points in every
  direction, not possible rows: an age may be negative.
* **Shuffled**: ordinary rows with each feature shuffled separately.
* **Shifted**: ordinary rows with one feature moved by a number of its standard deviations, as
  after a change of units. The new value may be impossible.
"""


def foreign_rows(review: Review, fit: Fit | None) -> Foreign | None:
    """The foreign rows with the model's outputs; until then the job's progress.

    While the model scores other tables, the last outputs remain on the page.
    """
    asked = score_foreign.request(
        session.workspace(), review.id, graph_folder=None if fit is None else fit.folder
    )
    memory = f"foreign_shown_{review.id}"
    job = job_results.finished(asked, review.id, offer=None if fit is not None else _offer)
    fitted = fit.key if fit is not None else ""
    if job is not None:
        st.session_state[memory] = (fitted, job.key)
    else:
        last_fit, last = st.session_state.get(memory, ("", ""))
        job = waiting.find(last) if last and last_fit == fitted else None
    if job is not None and job.state == "done":
        return graph_results.foreign_of(job)
    if review.foreign:  # one of them may be the reason for missing outputs
        with st.expander("Your own rows", icon=":material/upload_file:"):
            _own_rows(review)
    return None


def _offer() -> bool:
    """An explanation and a button, for a model without a kernel density version."""
    made = ForeignSettings()
    n = (len(made.radii) + 2) * made.n  # spheres, noise, shuffled rows
    with st.container(border=True):
        st.markdown(
            "Here you will see how confident the model and its calibrators are far from the data, "
            "and how well that confidence separates foreign rows from ordinary ones. The model "
            f"scores {n:,} rows made from its data, which takes a few seconds."
        )
        return st.button(
            "Score foreign rows",
            key="ask_foreign",
            type=emphasis(),
            icon=":material/play_arrow:",
        )


def choose(review: Review, base: Foreign, fit: Fit | None) -> Chosen | None:
    """The foreign rows to show; None while the model scores them."""
    names = [one.name for one in base.record.of_kind("uploaded")]
    options = [("uploaded", name) for name in names] + [(kind, "") for kind in _kinds(review, base)]
    key = f"foreign_kind_{review.id}"
    _take_up_new(review, names, key)
    if st.session_state.get(key) not in options:
        st.session_state.pop(key, None)
    what, how, own = st.columns([2, 2.4, 1], vertical_alignment="bottom")
    below = st.container()
    with what:
        kind, name = st.selectbox(
            "Foreign rows",
            options=options,
            format_func=lambda option: option[1][:80] or _NAMES[option[0]],
            key=key,
            persist_state="session",
            help=_HELP,
        )
    with own, st.popover("Your own rows", icon=":material/upload_file:", width="stretch"):
        _own_rows(review)
    with how:
        if kind == "sphere":
            return _sphere(base)
        if kind == "shifted":
            return _shifted(review, fit, below)
        return _named(base, kind, name)


def _kinds(review: Review, base: Foreign) -> list[str]:
    """The kinds of rows that can be made; possible rows come first if spheres are impossible."""
    order: tuple[ForeignKind, ...] = ("sphere", "uniform", "shuffled")
    if base.record.n_bounded:
        order = ("uniform", "sphere", "shuffled")
    made = [kind for kind in order if base.record.of_kind(kind)]
    return [*made, *(["shifted"] if _numeric(review) else [])]


def _take_up_new(review: Review, names: list[str], key: str) -> None:
    """Choose a table that has just been uploaded."""
    memory = f"foreign_names_{review.id}"
    new = [name for name in names if name not in st.session_state.setdefault(memory, names)]
    st.session_state[memory] = names
    if new:
        st.session_state[key] = ("uploaded", new[-1])


def _named(base: Foreign, kind: str, name: str) -> Chosen:
    one = next(
        one for one in base.record.of_kind() if one.kind == kind and (not name or one.name == name)
    )
    return Chosen(base, one, name or _NAMES[kind])


def _sphere(base: Foreign) -> Chosen:
    radii = [float(radius) for radius in base.record.radii]
    radius = st.select_slider(
        "Radius (1 = the farthest row of the data)",
        options=radii,
        value=min(radii, key=lambda at: abs(at - 2.0)),
        format_func=lambda at: f"{at:g}",
        key="foreign_radius",
        persist_state="session",
    )
    one = base.record.of_kind("sphere")[radii.index(radius)]
    return Chosen(base, one, f"Sphere of radius {radius:g}")


def _shifted(review: Review, fit: Fit | None, below: DeltaGenerator) -> Chosen | None:
    """One feature shifted: computed on choice, for all sizes together."""
    which, size = st.columns(2)
    feature = which.selectbox(
        "Feature",
        options=_numeric(review),
        format_func=lambda name: name[:60],
        key=f"foreign_feature_{review.id}",
        persist_state="session",
    )
    by = size.select_slider(
        "Standard deviations",
        options=SHIFTS,
        value=10.0,
        format_func=lambda at: formatted(at, "+g"),
        key="foreign_shift",
        persist_state="session",
    )
    asked = score_foreign.request(
        session.workspace(),
        review.id,
        ForeignSettings(radii=(), shifted_feature=feature, shifts=SHIFTS),
        graph_folder=None if fit is None else fit.folder,
    )
    with below:
        job = job_results.finished(asked, review.id)
        foreign = None if job is None else graph_results.foreign_of(job)
    if foreign is None:
        return None
    sets = {one.value: one for one in foreign.record.of_kind("shifted")}
    if by not in sets:
        below.caption(escape_markdown(" ".join(foreign.record.notes), 400))
        return None
    return Chosen(
        foreign, sets[by], f"{feature[:60]} shifted by {formatted(by, '+g')} standard deviations"
    )


def _numeric(review: Review) -> list[str]:
    assert review.roles is not None
    table = review.training or review.tables["calibration"]
    numbers = {column.name for column in table.columns if column.kind == "number"}
    return [name for name in review.roles.features if name in numbers]


def _own_rows(review: Review) -> None:
    """The uploader, and the loaded tables, each with a way to remove it."""
    uploads.foreign_uploader(review)
    uploads.loaded_tables(review, "foreign", partial(_remove, review.id))


def _remove(review_id: str, name: str) -> None:
    remove_foreign(session.workspace(), review_id, name)
