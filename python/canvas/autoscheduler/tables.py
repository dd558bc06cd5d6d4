"""The tasks that AutoScheduler's task.py registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

# category, name, func, args, target, dev_id
Row = tuple[str, str, Callable[..., Any], tuple[Any, ...], str, int]


def built_in_rows() -> Iterator[Row]:
    yield from ()
