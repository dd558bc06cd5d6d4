"""canvas search: draw, train, prune and time kernels, and print the results as a table."""

from __future__ import annotations

import argparse

from ..options import OPTIONS, read_options
from ..reporting.displays import WAYS, wanted_way
from ..study.learn import kernels_of
from ..text import printable
from .command import (
    Parser,
    add_log_dir,
    add_options,
    end_by_sigterm_too,
    find_names_here,
    need_torch,
)


def run(words: list[str]) -> int:
    given = vars(parser().parse_args(words))
    given["learn"] = kernels_of(given["learn"])
    out, fresh, progress = given.pop("out"), given.pop("fresh"), given.pop("progress")
    log_dir = given.pop("log_dir")
    with need_torch("search"):
        from ..runner import driver
    find_names_here(read_options(given))
    end_by_sigterm_too()
    report = driver.search(
        **given, out=out, fresh=fresh, progress=wanted_way(progress), log_dir=log_dir
    )
    print(report)
    print(*map(printable, report.next_steps), sep="\n")
    return 0 if report.chosen else 1


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas search",
        example="canvas search --model resnet8 --data digits-scattered --budget macs=0.5x",
        description="Search for kernels that replace the convolutions of a network within a\n"
        "budget. A draw is a random legal kernel. A draw that fits the budget is a find: it\n"
        "is trained and timed, and pruned early if it is worse than others. The table shows\n"
        "the best finds, the unchanged network and well-known operators (the controls).\n"
        "The same command continues an interrupted search.",
        epilog="Progress goes to standard error, conclusion and table to standard output. Exit\n"
        "codes: 0, 1 if nothing was found, 2 for bad input, 130 after Ctrl-C (finished trials\n"
        "are kept).",
    )
    add_options(parser, OPTIONS)
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the study (default: canvas-runs/MODEL-DATA)"
    )
    parser.add_argument("--fresh", action="store_true", help="start over: remove the study in DIR")
    parser.add_argument(
        "--progress",
        choices=WAYS,
        help="live: a table if standard error is a terminal, otherwise lines; off: only the "
        "result (default: CANVAS_PROGRESS, or live)",
    )
    add_log_dir(parser)
    return parser
