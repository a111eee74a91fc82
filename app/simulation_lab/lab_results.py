"""Results of the lab for classifications, cached for each run and setting of the graphs."""

from __future__ import annotations

from app.shared.kept import by_digest
from kdcal_core.diagnostics import Estimate
from kdcal_core.simulation import Simulated
from kdcal_core.tasks import (
    GraphChoice,
    LabAnswers,
    LabRun,
    LabSettings,
    Method,
    drawn_rows,
    fixed_answers,
    graph_answers,
    measured,
)


def answers_of(run: LabRun, key: str, choice: GraphChoice) -> dict[Method, LabAnswers]:
    """Every method's outputs: those without settings, and both graphs at ``choice``."""
    fixed, moved = _fixed(key, run=run), _moved(key, choice, run=run)
    named: tuple[Method, ...] = ("model", "isotonic", "sigmoid")
    papers: tuple[Method, ...] = ("geodesic_paper", "euclidean_paper")
    return {
        **{method: fixed[method] for method in named},
        "geodesic": moved["geodesic"],
        "euclidean": moved["euclidean"],
        **{method: fixed[method] for method in papers},
    }


def measures_of(
    run: LabRun, key: str, choice: GraphChoice, answers: dict[Method, LabAnswers]
) -> dict[Method, dict[str, Estimate]]:
    """The measures of every method."""
    chosen = {"geodesic": choice, "euclidean": choice}
    return {
        method: _measured(key, method, chosen.get(method), run=run, answers=answers[method])
        for method in answers
    }


@by_digest
def _fixed(key: str, *, run: LabRun) -> dict[Method, LabAnswers]:
    return fixed_answers(run)


@by_digest
def _moved(key: str, choice: GraphChoice, *, run: LabRun) -> dict[Method, LabAnswers]:
    moved = graph_answers(run, choice)
    return {"geodesic": moved["geodesic"], "euclidean": moved["euclidean"]}


@by_digest
def _measured(
    key: str, method: Method, choice: GraphChoice | None, *, run: LabRun, answers: LabAnswers
) -> dict[str, Estimate]:
    return measured(run, answers)


@by_digest
def glance_of(settings: LabSettings) -> Simulated:
    """A few hundred rows of a simulation, for its preview."""
    return drawn_rows(settings, 600, seed=0)
