"""Whose turn it is: every review gets its share of the places, however much one asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Place:
    """A job that is queued or running: whose it is, and whether it is short work."""

    job_id: str
    owners: tuple[str, ...]
    short: bool = False


class Line:
    """The jobs that are queued and that run.

    Parameters
    ----------
    long_places : int
        How many long jobs may run at once.
    short_places : int
        How many places there are beside them for short jobs, which may take those of long jobs
        too.

    Examples
    --------
    >>> line = Line(1, 1)
    >>> for place in (Place("a", ("me",)), Place("b", ("me",)), Place("c", ("me",), short=True)):
    ...     line.add(place)
    >>> line.next(), line.next(), line.next(), line.position("b")
    ('c', 'a', None, 1)
    """

    def __init__(self, long_places: int, short_places: int) -> None:
        self._long_places = long_places
        self._all_places = long_places + short_places
        self._queued: dict[str, Place] = {}  # in the order they came
        self._running: dict[str, Place] = {}
        self._last_turn: dict[str, int] = {}  # of each owner, counted in jobs begun
        self._turn = 0
        self._orders: dict[bool, list[Place]] = {}  # of short and of long jobs, while they hold

    def add(self, place: Place) -> None:
        """A job comes."""
        self._orders.clear()
        self._queued[place.job_id] = place

    def belong(self, job_id: str, owners: tuple[str, ...]) -> None:
        """A job has other owners: somebody asked for it too, or no longer wants it."""
        self._orders.clear()
        for places in (self._queued, self._running):
            if job_id in places:
                places[job_id] = replace(places[job_id], owners=owners)

    def leave(self, job_id: str) -> None:
        """A job ends, or is stopped before it began."""
        self._orders.clear()
        self._queued.pop(job_id, None)
        self._running.pop(job_id, None)

    def next(self) -> str | None:
        """The job that starts now, which from here on runs; None where there is no place or job.

        Short jobs come first while fewer of them run than there are places kept for them. Of the
        other places each owner gets a share, so that an endless row of uploads holds up no long
        job for ever.
        """
        if len(self._running) >= self._all_places:
            return None
        n_short = sum(place.short for place in self._running.values())
        order = self._order(short=True)
        if len(self._running) - n_short < self._long_places:
            if not order:
                order = self._order(short=False)
            elif n_short >= self._all_places - self._long_places:
                order = in_turn([*self._queued.values()], self._running.values(), self._last_turn)
        if not order:
            return None
        place = order[0]
        self._orders.clear()
        self._running[place.job_id] = self._queued.pop(place.job_id)
        self._turn += 1
        self._last_turn.update(dict.fromkeys(place.owners, self._turn))
        return place.job_id

    def position(self, job_id: str) -> int:
        """1 for the queued job that starts next of its kind."""
        order = self._order(short=self._queued[job_id].short)
        return [place.job_id for place in order].index(job_id) + 1

    def _order(self, *, short: bool) -> list[Place]:
        if short not in self._orders:  # every page that waits asks for it twice a second
            queued, running = (
                [place for place in places.values() if place.short == short]
                for places in (self._queued, self._running)
            )
            self._orders[short] = in_turn(queued, running, self._last_turn)
        return self._orders[short]


def in_turn(
    queued: Sequence[Place], running: Iterable[Place], last_turn: Mapping[str, int]
) -> list[Place]:
    """The queued jobs in the order in which they start.

    First comes the job of whoever has the fewest running, then of whoever had no turn for
    longest, then what came first. So the second job of a review waits while another review has
    none running, and two reviews that ask for many take turns.

    Parameters
    ----------
    queued : sequence of Place
        In the order they came.
    running : iterable of Place
        What runs beside them.
    last_turn : mapping
        For each owner a number that grows with the time at which a job of theirs last started.

    Examples
    --------
    >>> mine = [Place("a1", ("a",)), Place("a2", ("a",)), Place("a3", ("a",))]
    >>> yours = [Place("b1", ("b",)), Place("b2", ("b",))]
    >>> [place.job_id for place in in_turn([*mine, *yours], [], {})]
    ['a1', 'b1', 'a2', 'b2', 'a3']
    """
    load = Counter(owner for place in running for owner in place.owners)
    turns = dict(last_turn)
    left = list(queued)
    order = []
    while left:
        # what several asked for comes when the first of them has their turn
        chosen = min(
            left,
            key=lambda place: min((load[one], turns.get(one, -1)) for one in place.owners),
        )
        left.remove(chosen)
        order.append(chosen)
        load.update(chosen.owners)
        now = max(turns.values(), default=0) + 1
        turns.update(dict.fromkeys(chosen.owners, now))
    return order
