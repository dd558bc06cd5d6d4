"""The `canvas` command where Python is installed.
 `search` and `trials` live here; every other verb is the core's, which also answers unknown ones
and prints the help, so that there is one command line.  Bad input is one sentence on standard
error and exit code 2; "none" is 1; Ctrl-C is 130.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from . import _core
from .errors import CanvasError, NoSolution
from .options import OPTIONS, printable

NO_TORCH = 'canvas search needs PyTorch, not installed here: pip install "torch>=2.6"'


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one sentence instead of a page."""

    def error(self, message: str) -> NoReturn:
        raise CanvasError(f"{printable(message)}; {self.prog} --help lists the flags")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; `argv` without the program's name (default: the process's).  Returns the
    exit code.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    verb = VERBS.get(words[0]) if words else None
    try:
        code = verb(words[1:]) if verb else core(words)
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


# ---- search -----------------------------------------------------------------------------------


def search(words: list[str]) -> int:
    """canvas search: see `search_parser`."""
    given = vars(search_parser().parse_args(words))
    out, fresh = given.pop("out"), given.pop("fresh")
    try:
        from . import driver
    except ModuleNotFoundError as error:
        if error.name == "torch":
            raise CanvasError(NO_TORCH) from error
        raise
    from .options import read_options

    read_options(given)
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # where package.module:callable is looked for last
    signal.signal(signal.SIGTERM, _terminate)
    report = driver.search(**given, out=out, fresh=fresh)
    print(report)
    print(f"The table is in '{report.folder / 'pareto.csv'}', each find in a folder beside it.")
    return 0 if report.front else 1


def _terminate(number: int, frame: object) -> NoReturn:
    raise KeyboardInterrupt


def search_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas search",
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Search for kernels that replace the convolutions of a network under a\n"
        "budget: draw, solve, train, prune, time, and print the table beside the unchanged\n"
        "network and well-known operators. The same command goes on with what is there.",
        epilog="Progress goes to standard error, the table to standard output. Exit codes: 0,\n"
        "1 without any find, 2 for bad input, 130 after Ctrl-C (finished trials are kept).",
    )
    for option in OPTIONS:
        help = option.help
        if "default" not in help and option.default is not None:
            help += f" (default: {option.default})"
        parser.add_argument(
            option.flag, dest=option.name, metavar=option.metavar, help=help.replace("%", "%%")
        )
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the study (default: canvas-runs/MODEL-DATA)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="start over: remove the study that is in DIR"
    )
    return parser


# ---- trials -----------------------------------------------------------------------------------

TRIAL_COLUMNS = (
    "candidate",
    "kernel",
    "status",
    "val_accuracy",
    "kind",
    "primitives",
    "macs",
    "params",
    "latency_ms",
    "speedup",
    "seconds",
    "reason",
)


def trials(words: list[str]) -> int:
    """canvas trials: every candidate of a study, whatever became of it."""
    parser = Parser(
        prog="canvas trials",
        allow_abbrev=False,
        description="List every candidate of a study: the baseline, the controls and all finds, "
        "pruned and failed ones too.",
    )
    parser.add_argument("folder", metavar="DIR", help="the --out folder of a search")
    parser.add_argument(
        "-f", "--format", default="table", choices=("table", "json", "csv"), help="default: table"
    )
    given = parser.parse_args(words)
    rows = trial_rows(Path(given.folder))
    if given.format == "json":
        print(json.dumps(rows, indent=1))
    elif given.format == "csv":
        writer = csv.DictWriter(
            sys.stdout, TRIAL_COLUMNS, extrasaction="ignore", lineterminator="\n"
        )
        writer.writeheader()
        writer.writerows(rows)
    else:
        print(trial_table(rows))
    return 0


def trial_rows(folder: Path) -> list[dict[str, Any]]:
    """One dict per candidate: TRIAL_COLUMNS, and the whole `pack` and `log`; figures not taken
    are None.
    """
    from .report import kernel_summary
    from .study import Study

    with Study.read(folder) as study:
        return [
            {
                "candidate": row.name,
                "kernel": f"Kernel_{row.hash[:16]}" if row.hash else "",
                "status": row.status,
                "val_accuracy": row.val_accuracy,
                "kind": row.kind,
                "primitives": kernel_summary(row),
                "macs": row.macs,
                "params": row.params,
                "latency_ms": row.latency_ms,
                "speedup": row.speedup,
                "seconds": row.seconds,
                "reason": row.reason,
                "curve": study.curve(row.id),
                "pack": row.pack,
                "log": row.log,
            }
            for row in study.candidates()
        ]


def trial_table(rows: Sequence[dict[str, Any]]) -> str:
    from .report import align, short

    def figure(value: float | None, form: str) -> str:
        return "-" if value is None else form.format(value)

    head = [
        "candidate",
        "kernel",
        "status",
        "val_accuracy",
        "macs",
        "params",
        "latency",
        "primitives",
    ]
    body = [
        [
            row["candidate"],
            row["kernel"],
            row["status"],
            figure(row["val_accuracy"], "{:.4f}"),
            short(row["macs"]),
            short(row["params"]),
            figure(row["latency_ms"], "{:.2f} ms"),
            row["primitives"] + (f"  ({row['reason']})" if row["reason"] else ""),
        ]
        for row in rows
    ]
    return align([head, *body], right={3, 4, 5, 6})


VERBS = {"search": search, "trials": trials}

if __name__ == "__main__":
    sys.exit(main())
