"""Locks for what changes what calls share: EXPORTING for exports and compilations, PACKING for the
packing of weights alone.  Calls of what is ready take none.  A child of a fork gets fresh ones: a
thread that held them is not there.

Dynamo and exports change the state of PyTorch that is one for all threads, so that an export takes
Dynamo's own lock first, under which that traces and calls this backend.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any

from .after_fork import give_threads_back, take_one_thread


class _Packing:
    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class _Exporting:
    def __init__(self) -> None:
        self._taken: list[Any] = []  # of the thread that holds PACKING, one for each level
        self._threads: list[int] = []  # of PyTorch, in a child of a fork
        self._lost: Any = None
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        """Dynamo's lock may be held by a thread that is not there: nobody else is, either."""
        self._taken, self._threads = [], []
        lock = _of_dynamo(sys.modules.get("torch._dynamo.convert_frame"))
        if lock is not None and lock.acquire(blocking=False):
            lock.release()
        else:
            self._lost = lock

    def __enter__(self) -> None:
        import torch._dynamo.convert_frame as dynamo

        lock = _of_dynamo(dynamo)
        if lock is not None and lock is not self._lost:
            lock.acquire()
        else:
            lock = None
        try:
            PACKING.__enter__()
        except BaseException:  # Ctrl-C while another thread packs
            if lock is not None:
                lock.release()
            raise
        self._taken.append(lock)
        self._threads.append(take_one_thread())

    def __exit__(self, *_: object) -> None:
        lock = self._taken.pop()
        give_threads_back(self._threads.pop())
        PACKING.__exit__()
        if lock is not None:
            lock.release()


def _of_dynamo(module: Any) -> Any:
    return getattr(module, "compile_lock", None)


PACKING = _Packing()
EXPORTING = _Exporting()
