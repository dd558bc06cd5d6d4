"""What the subcommands written in Python share: a parser whose errors are one message, flags from
rows of options, torch on first need, how a long subcommand ends.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ..errors import CanvasError
from ..options import Option
from ..text import printable
from ..workers import signals


class Parser(argparse.ArgumentParser):
    """argparse whose help ends with an example and whose errors are one message, not a page.

    `example`: a line for a shell; description and epilog are printed line by line as they stand.
    """

    def __init__(self, prog: str, example: str = "", **options: Any) -> None:
        options = {
            "formatter_class": argparse.RawDescriptionHelpFormatter,
            "allow_abbrev": False,
            **options,
        }
        if example:
            options["epilog"] = f"{options.get('epilog', '')}\n\nExample:\n  {example}".lstrip()
        super().__init__(prog, **options)

    def error(self, message: str) -> NoReturn:
        raise CanvasError(f"{printable(message)}; {self.prog} --help lists the flags")


@contextmanager
def need_torch(subcommand: str) -> Iterator[None]:
    """Around the imports of a subcommand that needs torch: say so where it is missing."""
    try:
        with signals.loading("PyTorch"):
            yield
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise CanvasError(
            f'canvas {subcommand} needs PyTorch, not installed here: pip install "torch>=2.6"'
        ) from error


def add_options(parser: argparse.ArgumentParser, rows: Iterable[Option]) -> None:
    """A flag for each option; its text is read later, None stands for one that is not given."""
    for option in rows:
        help = option.help
        if "default" not in help and option.default not in (None, False):
            help += f" (default: {option.default})"
        help = help.replace("%", "%%")
        if option.metavar:
            parser.add_argument(option.flag, dest=option.name, metavar=option.metavar, help=help)
        else:
            parser.add_argument(
                option.flag, dest=option.name, action="store_true", default=None, help=help
            )


def find_models_here(model: str | None) -> None:
    """If the user named code of his own as package.module:callable, look for it in the current
    folder, after everywhere else.  For all else that folder is no place to import from.
    """
    if model and ":" in model and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def end_by_sigterm_too() -> None:
    """Let SIGTERM and a terminal that closes end a long subcommand the way Ctrl-C does."""
    signals.interrupt_at_any()
