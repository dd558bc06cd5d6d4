"""canvas pareto: the front of a study as a table, and as a picture."""

from __future__ import annotations

from .errors import CanvasError


def run(words: list[str]) -> int:
    raise CanvasError("canvas pareto is not there yet")
