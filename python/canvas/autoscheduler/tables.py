"""The tasks that AutoScheduler's task.py registers."""

from __future__ import annotations

from collections.abc import Iterator

from .task import Task


def built_in_tasks() -> Iterator[Task]:
    yield from ()
