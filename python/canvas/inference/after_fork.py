"""A child of a fork: PyTorch's threads are not there, and a parallel loop of OpenMP waits for them
for ever.  What PyTorch does for a compiled network there it does on one thread, and the check,
which runs the whole model, is left out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch


class _Fork:
    """`child`: whether this process is a child of a fork; of os.fork, as the processes of
    multiprocessing are.
    """

    def __init__(self) -> None:
        self.child = False
        os.register_at_fork(after_in_child=self._enter)

    def _enter(self) -> None:
        self.child = True


FORK = _Fork()


def take_one_thread() -> int:
    """In a child of a fork PyTorch computes on one thread from now on; the count before, 0
    elsewhere.
    """
    threads = torch.get_num_threads() if FORK.child else 0
    if threads > 1:
        torch.set_num_threads(1)
    return threads


def give_threads_back(threads: int) -> None:
    if threads > 1:
        torch.set_num_threads(threads)


@contextlib.contextmanager
def on_one_thread() -> Iterator[None]:
    threads = take_one_thread()
    try:
        yield
    finally:
        give_threads_back(threads)
