"""Work done in forked children: each is a copy of this process with one thread, so that a job may
use everything that is there and only its result travels back.

A child that dies costs its job alone.  Children ignore Ctrl-C and die with this process, whatever
ends it.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import connection
from typing import Any

import torch

from ..errors import CanvasError
from ..workers.worker import live_and_die_with


@dataclass
class _Child:
    process: Any
    pipe: Any
    job: int = -1  # none
    ends: list[Any] = field(default_factory=list)


def run_forked(
    function: Callable[[Any], Any],
    jobs: Sequence[Any],
    workers: int,
    until: float = math.inf,
    lost: Any = None,
) -> Iterator[tuple[int, Any]]:
    """(i, function(jobs[i])) for every job, in the order in which they end, `workers` at a time.
    No job begins after `until` (time.monotonic()).  Where a child is lost, its result is `lost`,
    or lost(why) where that is a function.

    Raises CanvasError as `function` does in a child, and RuntimeError with the traceback of any
    other error.
    """
    children: list[_Child] = []
    left = list(reversed(range(len(jobs))))
    try:
        while True:
            while left and time.monotonic() < until:
                free = next((child for child in children if child.job < 0), None)
                if free is None and len(children) < workers:
                    free = _fork(function, jobs, children)
                    children.append(free)
                if free is None:
                    break
                free.job = left.pop()
                free.pipe.send(free.job)
            busy = [child for child in children if child.job >= 0]
            if not busy:
                return
            for pipe in connection.wait([child.pipe for child in busy]):
                child = next(child for child in busy if child.pipe is pipe)
                yield child.job, _result(child, children, lost)
    finally:
        for child in children:
            child.process.kill()
        for child in children:
            child.process.join()
            child.pipe.close()


def _result(child: _Child, children: list[_Child], lost: Any) -> Any:
    try:
        kind, value = child.pipe.recv()
    except (EOFError, OSError):
        child.process.join()
        children.remove(child)
        child.pipe.close()
        code = child.process.exitcode or 0
        names = {int(number): number.name for number in signal.Signals}
        hint = " (out of memory?)" if code == -signal.SIGKILL else ""
        why = f"its process was ended by {names.get(-code, f'exit code {code}')}{hint}"
        return lost(why) if callable(lost) else lost
    if kind == "refused":
        raise CanvasError(value)
    if kind == "error":
        raise RuntimeError(value)
    child.job = -1
    return value


def _fork(function: Callable[[Any], Any], jobs: Sequence[Any], others: Sequence[_Child]) -> _Child:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    inherited = [ours, *(other.pipe for other in others)]
    process = context.Process(
        target=_serve, args=(function, jobs, theirs, inherited, os.getpid()), daemon=True
    )
    try:
        process.start()
    except OSError as error:
        raise CanvasError(f"no child process can be started: {error.strerror}") from error
    theirs.close()
    return _Child(process, ours)


def _serve(
    function: Callable[[Any], Any],
    jobs: Sequence[Any],
    pipe: Any,
    inherited: Sequence[Any],
    driver: int,
) -> None:
    """The whole life of a child: results for the numbers of jobs that the pipe brings."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # not those of a live table
    for other in inherited:
        other.close()
    live_and_die_with(driver)
    # A loader of the user's may have workers of its own, which daemonic processes may not.
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    while True:
        try:
            job = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer: tuple[str, Any] = ("done", function(jobs[job]))
        except CanvasError as error:
            answer = ("refused", str(error))
        except Exception:
            answer = ("error", traceback.format_exc())
        pipe.send(answer)
