"""canvas search: draw, train, prune and time kernels, and print the table."""

from __future__ import annotations

import argparse

from ..options import OPTIONS, read_options
from ..reporting.displays import WAYS, wanted_way
from .command import Parser, add_options, end_by_sigterm_too, find_models_here, need_torch


def run(words: list[str]) -> int:
    given = vars(parser().parse_args(words))
    out, fresh, progress = given.pop("out"), given.pop("fresh"), given.pop("progress")
    with need_torch("search"):
        from ..runner import driver
    read_options(given)
    find_models_here(given["model"])
    end_by_sigterm_too()
    report = driver.search(**given, out=out, fresh=fresh, progress=wanted_way(progress))
    print(report)
    print(f"The table is in '{report.folder / 'pareto.csv'}', each find in a folder beside it.")
    return 0 if report.chosen else 1


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas search",
        example="canvas search --model resnet8 --data digits-scattered --budget macs=0.5x",
        description="Search for kernels that replace the convolutions of a network under a\n"
        "budget. A draw is a random legal kernel; one whose sizes fit the budget is a\n"
        "find, which is trained, pruned where it lags behind, and timed. The table shows\n"
        "the best finds beside the unchanged network and well-known operators (the\n"
        "controls). The same command continues.",
        epilog="Progress goes to standard error, the table to standard output. Exit codes: 0,\n"
        "1 without any find, 2 for bad input, 130 after Ctrl-C (finished trials are kept).",
    )
    add_options(parser, OPTIONS)
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the study (default: canvas-runs/MODEL-DATA)"
    )
    parser.add_argument(
        "--fresh", action="store_true", help="start over: remove the study that is in DIR"
    )
    parser.add_argument(
        "--progress",
        choices=WAYS,
        help="live: a table where standard error is a terminal, else lines; off: nothing but the "
        "result (default: CANVAS_PROGRESS, else live)",
    )
    return parser
