"""The table of operators: a row is a name in ATen, the family it belongs to, and the function that
writes its program. Families are files, and add their rows when they are imported.

A function takes the writer and the arguments of the operator's schema in order, with defaults:
tensors as `Value` or, where they are known, torch tensors. It gives a value, or a list of them
with None for those that have no program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    name: str  # "aten.relu.default"
    family: str
    write: Callable[..., Any]


ROWS: dict[str, Row] = {}


def add(family: str, names: str, write: Callable[..., Any]) -> None:
    """Rows of one function: names with blanks between, ".default" left out."""
    for name in names.split():
        full = name if name.startswith("canvas.") else f"aten.{name}"
        full = full if full.count(".") == 2 else f"{full}.default"
        ROWS[full] = Row(full, family, write)


def operator(family: str, names: str) -> Callable[[Any], Any]:
    """`add` as a decorator."""

    def take(write: Any) -> Any:
        add(family, names, write)
        return write

    return take
