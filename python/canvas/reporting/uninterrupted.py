"""Drawing that Ctrl-C does not cut in two: else the wrong lines would be erased afterwards."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Signals that end a command are handled after the block.  Only the main thread is ever
    interrupted, so in any other this does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in ENDING}
    ours = [number for number, handler in before.items() if callable(handler)]
    for number in ours:
        signal.signal(number, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
        for one in came[:1]:
            signal.raise_signal(one)
