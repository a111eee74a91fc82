"""Who acts on this machine and what its clock says, which nobody checked."""

from __future__ import annotations

import getpass
import os
import socket
from functools import cache

from kdcal_core.audit.events import Moment, Person
from kdcal_core.review.known_results import utc_now


def now() -> Moment:
    """The time of this machine's clock."""
    return Moment(utc_now(), f"system clock of {socket.gethostname()}, not compared with another")


@cache
def system_user() -> Person:
    """The user of the operating system, which nobody checked."""
    try:
        import pwd  # the environment, which getpass asks first, says whatever its owner likes

        name = pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        name = getpass.getuser()
    return Person(name, believed=f"account on {socket.gethostname()}, not checked further")
