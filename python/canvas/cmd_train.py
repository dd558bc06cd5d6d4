"""canvas train: from a find to a trained network."""

from __future__ import annotations

from .errors import CanvasError


def run(words: list[str]) -> int:
    raise CanvasError("canvas train is not there yet")
