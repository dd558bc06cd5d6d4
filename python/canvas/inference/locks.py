"""Locks around operations that modify state shared by calls.

EXPORTING is held during exports and compilations, PACKING while weights are packed.  Calls of a
finished network take no lock.  After a fork the child gets new locks, because the threads that
held the old ones do not exist in it.

Exports and Dynamo both change global state of PyTorch.  EXPORTING therefore acquires Dynamo's own
lock first, which Dynamo holds while it traces and calls this backend.
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
        self._taken: list[Any] = []  # Dynamo's lock or None, one entry per nested entry
        self._threads: list[int] = []  # PyTorch's thread counts to restore, one per nested entry
        self._lost: Any = None
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        """Give up Dynamo's lock if a thread of the parent holds it: the child has one thread."""
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
