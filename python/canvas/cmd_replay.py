"""canvas replay: train and time a candidate of a study again, and print both."""

from __future__ import annotations

from .errors import CanvasError


def run(words: list[str]) -> int:
    raise CanvasError("canvas replay is not there yet")
