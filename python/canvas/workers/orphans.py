"""What a child started and left behind is found by a mark and killed.

A process group holds what stays in it; a daemon leaves it, and a driver that was itself killed
cannot tidy up.  So every child carries CANVAS_CHILD=DRIVER:SINCE:NUMBER in its environment, which
all that it starts inherits.  DRIVER and SINCE name the driver's process for good: an id alone
comes back.  Only where there is a /proc; elsewhere nothing is found.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

MARK = "CANVAS_CHILD"
LOOKS = 5

_numbers = itertools.count()


def new_mark() -> str:
    """A mark for the next child of this process."""
    return f"{os.getpid()}:{born(os.getpid())}:{next(_numbers)}"


def kill_marked(mark: str) -> None:
    """Kill every process that carries `mark`."""
    _kill(lambda found: found == mark)


def kill_orphans() -> None:
    """Kill what children of drivers that are gone left behind."""
    _kill(lambda found: born(int(found.split(":")[0])) != found.split(":")[1])


def _kill(wanted: Callable[[str], bool]) -> None:
    """Look again after killing: what was just being forked is found by a later look only."""
    for _ in range(LOOKS):
        found = [process for process, mark in _marked() if wanted(mark)]
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except OSError:
                pass  # it is gone, or not ours to kill
        if not found:
            break


def _marked() -> Iterator[tuple[int, str]]:
    """The living processes that carry a mark."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # another user's, or it is gone
            continue
        for word in words:
            name, _, mark = word.decode("ascii", "replace").partition("=")
            if name == MARK and mark.count(":") == 2 and mark.split(":")[0].isdigit():
                yield int(entry.name), mark


def born(process: int) -> str:
    """When a process began, in the system's ticks; "" where there is none."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""
