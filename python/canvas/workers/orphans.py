"""What a child started and left behind is found by a mark and killed.

A process group holds what stays in it; a daemon leaves it, and a driver that was itself killed
cannot tidy up.  So every child carries CANVAS_CHILD=FOLDER:NUMBER in its environment, which all
that it starts inherits.  FOLDER is the driver's folder for its children (scratch.py), whose name
holds the driver's place: host, boot and PID namespace.  A process that carries the mark of another
place is left alone, and so is one whose driver holds the lock of FOLDER.  Only where there is a
/proc; elsewhere nothing is found.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

MARK = "CANVAS_CHILD"
LOOKS = 5


def place() -> str:
    """Names where process ids mean the same: the host, its boot, the PID namespace; "" where that
    is not known.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""
    words = "\n".join((os.uname().nodename, boot.strip(), namespace))
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def kill_marked(mark: str) -> None:
    """Kill every process that carries `mark`."""
    _kill(lambda found: found == mark)


def kill_children_of(folder: Path) -> None:
    """Kill every process that carries a mark of `folder`, by whatever path."""
    _kill(lambda found: (named := folder_of(found)) is not None and named.name == folder.name)


def marked_folders() -> set[Path]:
    """The folders that the marks of living processes name."""
    return {folder for _, mark in _marked() if (folder := folder_of(mark)) is not None}


def folder_of(mark: str) -> Path | None:
    """The folder that a mark names; None for a text that is no mark."""
    folder, _, number = mark.rpartition(":")
    whole = folder.startswith("/") and number.isascii() and number.isdigit()
    return Path(folder) if whole else None


def _kill(wanted: Callable[[str], bool]) -> None:
    """Look again after killing: what was just being forked is found by a later look only."""
    for _ in range(LOOKS):
        found = [process for process, mark in _marked() if wanted(mark)]
        for process in found:
            _kill_one(process, wanted)
        if not found:
            break


def _kill_one(process: int, wanted: Callable[[str], bool]) -> None:
    """Kill a process that carries a wanted mark, and not one that has its id by now."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return
    except (AttributeError, OSError):  # before Linux 5.3
        handle = -1
    try:
        if not any(wanted(mark) for mark in _marks(Path(f"/proc/{process}"))):
            return
        if handle >= 0:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        else:
            os.kill(process, signal.SIGKILL)
    except OSError:
        pass  # it is gone, or not ours to kill
    finally:
        if handle >= 0:
            os.close(handle)


def _marked() -> Iterator[tuple[int, str]]:
    """The living processes that carry a mark, but for this one."""
    for entry in Path("/proc").glob("[0-9]*"):
        if entry.name != str(os.getpid()):
            yield from ((int(entry.name), mark) for mark in _marks(entry))


def _marks(entry: Path) -> Iterator[str]:
    """The mark of a process, if it has one; `entry` is its folder in /proc."""
    try:
        words = (entry / "environ").read_bytes().split(b"\0")
    except OSError:  # another user's, or it is gone
        return
    for word in words:
        if word.startswith(MARK.encode() + b"="):
            yield os.fsdecode(word.partition(b"=")[2])
            return
