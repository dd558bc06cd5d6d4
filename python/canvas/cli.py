"""The `canvas` command where Python is installed.

A verb of VERBS is the module cmd_VERB with its `run(words)`; every other verb is the core's, which
also answers unknown ones and prints the help, so that there is one command line.  Bad input is one
sentence on standard error and exit code 2; "none" is 1; Ctrl-C is 130.
"""

from __future__ import annotations

import importlib
import os
import signal
import sqlite3
import sys
from collections.abc import Sequence

from . import _core
from .errors import CanvasError, NoSolution

VERBS = ("search", "trials", "pareto", "replay", "train", "export")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` without the program's name (default: the process's).  Returns the
    exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words and words[0] in VERBS:
            code = importlib.import_module(f".cmd_{words[0]}", __package__).run(words[1:])
        else:
            code = core(words)
        sys.stdout.flush()
        return code
    except NoSolution as error:
        return complain(error, 1)
    except CanvasError as error:
        return complain(error, 2)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that the last flush at exit is quiet too
        return 141
    except OSError as error:
        return complain(f"{error.strerror}: '{error.filename or 'standard output'}'", 2)
    except sqlite3.Error as error:
        return complain(f"the study cannot be used: {error}", 2)


def complain(error: Exception | str, code: int) -> int:
    print("canvas:", " ".join(str(error).split()), file=sys.stderr)
    return code


def core(words: list[str]) -> int:
    """A verb of the core; a reader that goes away ends it like any C program."""
    sys.stdout.flush()
    sys.stderr.flush()
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.main(["canvas", *words])


if __name__ == "__main__":
    sys.exit(main())
