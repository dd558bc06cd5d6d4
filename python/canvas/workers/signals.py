"""How Ctrl-C, SIGTERM and a terminal that closes end a command: soon, once, with exit code 130.

    while modules load    at once: nothing has begun, and an import is not to be unwound half-way
    while a subcommand works    as KeyboardInterrupt, so that it tidies up and says how to go on
    on the way out        not at all: a second Ctrl-C disturbs nothing

A signal that is ignored from outside (nohup, a background job of a plain shell) stays ignored.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Handler = Callable[[int, Any], None]


def interrupt_at_any() -> None:
    """From now on each of them raises KeyboardInterrupt, unless one is on its way out already."""

    def interrupt(number: int, frame: object) -> None:
        if not isinstance(sys.exc_info()[1], KeyboardInterrupt):
            raise KeyboardInterrupt

    _set(interrupt)


def ignore_all() -> None:
    """From now on none of them does anything: the process is ending."""
    _set(signal.SIG_IGN)


@contextmanager
def loading(what: str) -> Iterator[None]:
    """While `what` is imported each of them ends the process at once, with a message."""

    def leave(number: int, frame: object) -> None:
        message = f"canvas: stopped while {what} was loading, nothing had begun: "
        try:
            os.write(2, f"{message}the same command starts it\n".encode())
        except OSError:
            pass  # nobody is there to read it
        os._exit(130)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _set(leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _set(handler: Any) -> dict[signal.Signals, Any]:
    """Handle those that are not ignored; what did so before."""
    before = {number: signal.getsignal(number) for number in ENDING}
    before = {number: old for number, old in before.items() if old is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handler)
    return before
