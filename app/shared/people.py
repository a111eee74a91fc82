"""Who acts: the person in whose name a page writes to the record of audits."""

from __future__ import annotations

from app.shared import reviews_here, sign_in
from kdcal_core.audit import Person


def current_person() -> Person:
    """The person in front of the page, and why the name is believed.

    Where nobody signs in it is the user of the operating system, whom nobody checked.
    """
    return sign_in.person_in_front()


def may_work(who: Person) -> bool:
    """Whether a person may list audits and write to the record.

    On a server that others visit too, nobody knows who a visitor is that did not sign in.
    """
    return who.identity is not None or reviews_here.at_this_machine()
