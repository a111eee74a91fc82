"""Refuse sockets to a process, where Linux can filter its system calls (seccomp).

Landlock limits connections over TCP, from Linux 6.7. Datagrams, raw sockets, TCP over several paths
and the sockets of this machine's services stay open. A process of kdcal that reads a stranger's
file, or runs a model, needs none of them. It may still use what it has: pipes and pairs of sockets.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import socket
import sys
from collections.abc import Sequence
from functools import lru_cache

# of each processor: its name in the filter, and the numbers of `socket` and `seccomp`
_CALLS = {"x86_64": (0xC000003E, 41, 317), "aarch64": (0xC00000B7, 198, 277)}
_IO_URING_SETUP = 425  # which opens sockets without calling `socket`
_OTHER_CALLS = 0x40000000  # those of a second set on x86_64, which has the same ones again
_NO_NEW_PRIVILEGES = 38  # of prctl(2)
_SET_FILTER, _ALL_THREADS, _GET_AVAILABLE = 1, 1, 2  # of seccomp(2)
_REFUSE = 0x00050000 | errno.EACCES
_ALLOW = 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_NUMBER, _PROCESSOR, _DOMAIN, _TYPE, _PROTOCOL = 0, 4, 16, 24, 32  # where a call's facts lie
_NEXT, _TO_ALLOW, _TO_REFUSE = 0, -1, -2

_Step = tuple[int, int, int, int]  # what, with which value, where to if it holds, and if not


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_so", ctypes.c_uint8),
        ("if_not", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Instruction)))


@lru_cache(maxsize=1)
def can_refuse_sockets() -> bool:
    """Whether this system can refuse sockets to a process.

    Examples
    --------
    >>> can_refuse_sockets() in (True, False)
    True
    """
    if sys.platform != "linux" or platform.machine() not in _CALLS or sys.maxsize < 2**32:
        return False
    asked = ctypes.c_uint32(_REFUSE & 0xFFFF0000)
    return _seccomp(_GET_AVAILABLE, 0, ctypes.byref(asked)) == 0


def refuse_sockets(*, local: bool = False, internet: bool = False) -> bool:
    """Let this process and those that it starts open no socket any more, in none of its threads.

    Parameters
    ----------
    local : bool
        Whether it may reach sockets of this machine, which processes of one job use.
    internet : bool
        Whether it may use TCP, as far as Landlock lets it, and ask for addresses of hosts.

    Returns
    -------
    bool
        False where the system cannot do it.
    """
    if not can_refuse_sockets():
        return False
    steps = [
        *_steps(local=local, internet=internet),
        (_RETURN, _REFUSE, _NEXT, _NEXT),
        (_RETURN, _ALLOW, _NEXT, _NEXT),
    ]
    targets = {_TO_REFUSE: len(steps) - 2, _TO_ALLOW: len(steps) - 1}
    made = (_Instruction * len(steps))()
    for at, (code, value, *ways) in enumerate(steps):
        so, no = (targets[way] - at - 1 if way < 0 else way for way in ways)
        made[at] = _Instruction(code, so, no, value)
    program = _Program(len(steps), made)
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    return _seccomp(_SET_FILTER, _ALL_THREADS, ctypes.byref(program)) == 0


def _steps(*, local: bool, internet: bool) -> Sequence[_Step]:
    processor, opens, _ = _CALLS[platform.machine()]
    steps: list[_Step] = [
        (_LOAD, _PROCESSOR, _NEXT, _NEXT),
        (_EQUAL, processor, _NEXT, _TO_REFUSE),  # else the numbers mean other calls
        (_LOAD, _NUMBER, _NEXT, _NEXT),
        (_AT_LEAST, _OTHER_CALLS, _TO_REFUSE, _NEXT),
        (_EQUAL, _IO_URING_SETUP, _TO_REFUSE, _NEXT),
        (_EQUAL, opens, _NEXT, _TO_ALLOW),
        (_LOAD, _DOMAIN, _NEXT, _NEXT),
    ]
    if local:
        steps.append((_EQUAL, socket.AF_UNIX, _TO_ALLOW, _NEXT))
    if internet:
        steps += [
            (_EQUAL, socket.AF_INET, 1, _NEXT),
            (_EQUAL, socket.AF_INET6, _NEXT, _TO_REFUSE),
            (_LOAD, _TYPE, _NEXT, _NEXT),
            (_AND, 0xF, _NEXT, _NEXT),  # without flags
            (_EQUAL, socket.SOCK_STREAM, 1, _NEXT),
            (_EQUAL, socket.SOCK_DGRAM, _NEXT, _TO_REFUSE),
            (_LOAD, _PROTOCOL, _NEXT, _NEXT),
            *(
                (_EQUAL, protocol, _TO_ALLOW, _NEXT)
                for protocol in (0, socket.IPPROTO_TCP, socket.IPPROTO_UDP)
            ),
        ]
    return steps


def _seccomp(operation: int, flags: int, value: object) -> int:
    call = ctypes.CDLL(None).syscall
    call.restype = ctypes.c_long
    number = _CALLS[platform.machine()][2]
    return int(call(ctypes.c_long(number), operation, flags, value))
