"""canvas report: write a study as one page of HTML."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import CanvasError
from ..reporting.page import page_of, report, watch
from .command import Parser, end_by_sigterm_too


def run(words: list[str]) -> int:
    given = parser().parse_args(words)
    if given.html == "-":
        if given.watch:
            raise CanvasError("--html - writes to standard output: leave out --watch")
        sys.stdout.write(page_of(Path(given.folder)))
        return 0
    if given.watch:
        end_by_sigterm_too()
        path = watch(given.folder, given.html, lambda line: print(line, flush=True))
    else:
        path = report(given.folder, given.html)
    print(f"The page is in '{path}'.")
    return 0


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas report",
        example="canvas report canvas-runs/resnet8-digits-scattered --watch",
        description="Write a study as one page of HTML: the conclusion, the table and the front,\n"
        "training curves, the operator of each layer, rejections with their reasons, time and\n"
        "cost, and the commands to repeat it. The page has no scripts and loads nothing, so that\n"
        "one file is all to keep or to send.",
        epilog="Works for searches and fits, also while they run. The figures need matplotlib.\n"
        "Exit codes: 0, 2 for bad input, for a study without a result, or if the page cannot be\n"
        "written, 130 after Ctrl-C.",
    )
    parser.add_argument("folder", metavar="DIR", help="the --out folder of a search or a fit")
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="the page; - writes it to standard output (default: report.html in DIR)",
    )
    parser.add_argument(
        "--watch",
        action="store_true",
        help="while a search or a fit runs in DIR: write the page again when something was "
        "recorded; an open page follows, every 30 seconds",
    )
    return parser
