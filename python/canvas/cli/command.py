"""Shared parts of the Python subcommands: the parser, flags from rows of options, the import of
torch, signals.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from ..arguments import did_you_mean
from ..errors import CanvasError, missing
from ..options import Option
from ..text import printable
from ..workers import signals

PATHS = ("DIR", "FILE", "WHAT")  # metavars


class Parser(argparse.ArgumentParser):
    """argparse with an example at the end of the help, and errors of one message.

    `example`: a shell command; description and epilog keep their line breaks.
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

    def parse_args(self, *given: Any, **named: Any) -> Any:
        """Reject an empty path, which Path would read as the current folder."""
        found = super().parse_args(*given, **named)
        for action in self._actions:
            if action.metavar in PATHS and getattr(found, action.dest, None) == "":
                name = next(iter(action.option_strings), action.metavar)
                raise CanvasError(f"{name} must be a path, not ''")
        return found

    def error(self, message: str) -> NoReturn:
        hint = self._nearest(message)
        raise CanvasError(f"{printable(message)}{hint or f'; {self.prog} --help lists the flags'}")

    def _nearest(self, message: str) -> str:
        """A hint with the known word nearest to an unknown one, or ""."""
        flag = re.match(r"unrecognized arguments: (--[^ =]+)", message)
        if flag:
            return did_you_mean(flag[1], self._option_string_actions)
        choice = re.match(r"argument .*: invalid choice: '([^']*)' \(choose from (.*)\)", message)
        return did_you_mean(choice[1], re.findall(r"[\w.-]+", choice[2])) if choice else ""


@contextmanager
def need_torch(subcommand: str) -> Iterator[None]:
    """Wrap imports that need torch and NumPy: CanvasError if one is not installed."""
    try:
        with signals.loading("PyTorch"):
            yield
    except ModuleNotFoundError as error:
        if not (message := missing(f"canvas {subcommand}", error)):
            raise
        raise CanvasError(message) from error


def add_options(parser: argparse.ArgumentParser, rows: Iterable[Option]) -> None:
    """Add a flag for each option.  Values stay text; None means that the flag is not given."""
    for option in rows:
        help = option.help
        if "default" not in help and option.default not in (None, False):
            help += f" (default: {option.default})"
        help = help.replace("%", "%%")
        if option.metavar:
            action = "append" if option.repeated else "store"
            parser.add_argument(
                option.flag, dest=option.name, action=action, metavar=option.metavar, help=help
            )
        else:
            parser.add_argument(
                option.flag, dest=option.name, action="store_true", default=None, help=help
            )


def add_log_dir(parser: argparse.ArgumentParser) -> None:
    """Add the flag that search, fit and train share."""
    parser.add_argument(
        "--log-dir",
        metavar="DIR",
        help="write each epoch to DIR/epochs.csv and, if TensorBoard is installed, to event files "
        "(docs/logging.md; default: no log)",
    )


def find_models_here(model: str | None) -> None:
    """If the model is the user's own package.module:callable, allow imports from the current
    folder, last in the search path.  Otherwise nothing is imported from that folder.
    """
    if model and ":" in model and os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())


def find_names_here(options: Mapping[str, Any]) -> None:
    """The same for the model, the task and the data of `options`."""
    from ..data import READERS

    for name in ("model", "task"):
        find_models_here(options[name])
    if options["data"].partition(":")[0] not in READERS:
        find_models_here(options["data"])


def end_by_sigterm_too() -> None:
    """Let SIGTERM and SIGHUP end a long subcommand in the way of Ctrl-C."""
    signals.interrupt_at_any()
