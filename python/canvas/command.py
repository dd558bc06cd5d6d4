"""What the verbs written in Python share: a parser whose errors are one sentence, torch on first
need.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from .errors import CanvasError
from .options import printable


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one sentence instead of a page."""

    def error(self, message: str) -> NoReturn:
        raise CanvasError(f"{printable(message)}; {self.prog} --help lists the flags")


@contextmanager
def need_torch(verb: str) -> Iterator[None]:
    """Around the imports of a verb that cannot do without torch: say so where it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise CanvasError(
            f'canvas {verb} needs PyTorch, not installed here: pip install "torch>=2.6"'
        ) from error
