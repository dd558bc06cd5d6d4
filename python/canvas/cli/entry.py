"""The `canvas` command where Python is installed.

A subcommand of SUBCOMMANDS is the module cmd_NAME with `run(words)` and `parser()`.  The core runs
all others, prints the help and rejects unknown subcommands.  Bad input gives one message on
standard error and exit code 2; no solution gives 1, Ctrl-C 130.
"""

from __future__ import annotations

import importlib
import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _core
from ..errors import CanvasError, NoSolution
from ..text import printable
from .completion import ways_to_end

SUBCOMMANDS = (
    "search", "fit", "trials", "pareto", "report", "study", "replay", "train", "export", "env",
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` without the program's name (default: the process's).  Returns the
    exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started the process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    try:
        code = run(words)
        sys.stdout.flush()
        return code
    except NoSolution as error:
        return print_message(error, 1)
    except CanvasError as error:
        return print_message(error, 2)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        drop_output()  # so that the last flush at exit is quiet too
        return 141
    except OSError as error:
        return print_message(f"{error.strerror}: {place_of(error)}", 2)
    except sqlite3.Error as error:
        return print_message(f"the study cannot be used: {error}", 2)


def place_of(error: OSError) -> str:
    """The file of an error, with the variable that names PyTorch's cache if the file is in it."""
    name = str(error.filename or "standard output")
    cache = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    chosen = cache and Path(name).is_relative_to(cache)
    return f"'{name}', which TORCHINDUCTOR_CACHE_DIR names" if chosen else f"'{name}'"


def run(words: list[str]) -> int:
    """Run a subcommand, its help or its shell completion, in Python or in the core."""
    if words and words[0] in SUBCOMMANDS:
        return int(subcommand(words[0]).run(words[1:]))
    if len(words) == 2 and words[0] == "help" and words[1] in SUBCOMMANDS:
        return int(subcommand(words[1]).run(["--help"]))
    if len(words) > 3 and words[:2] == ["completion", "--"] and words[2] in SUBCOMMANDS:
        for line in ways_to_end(subcommand(words[2]).parser(), words[3:]):
            print(line)
        return 0
    return core(words)


def subcommand(name: str) -> Any:
    return importlib.import_module(f".cmd_{name}", __package__)


def print_message(error: Exception | str, code: int) -> int:
    """Print one message on standard error.  Unwritten output is dropped: Python would try to write
    it again at exit.
    """
    try:
        print("canvas:", printable(" ".join(str(error).split())), file=sys.stderr, flush=True)
    except OSError:
        pass  # nobody is there to read it
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()
    return code


def drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def drop_errors() -> None:
    """Drop unwritten text of standard error: Python would try again at exit, fail and exit with
    120.
    """
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def core(words: list[str]) -> int:
    """Run a subcommand of the core, with the signal handlers of a C program."""
    sys.stdout.flush()
    sys.stderr.flush()
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["canvas", *words])


if __name__ == "__main__":
    sys.exit(main())
