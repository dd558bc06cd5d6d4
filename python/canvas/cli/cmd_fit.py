"""canvas fit: start from a trained network, fit operators to its layers, choose one for each."""

from __future__ import annotations

import argparse

from ..errors import CanvasError
from ..fit_options import FIT_BY_NAME, FIT_OPTIONS, read_fit_options
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
    options = read_fit_options(given)
    for name in ("model", "data"):
        if options[name] is None:
            raise CanvasError(f"a fit needs {FIT_BY_NAME[name].flag} {FIT_BY_NAME[name].metavar}")
    with need_torch("fit"):
        from ..fitting.fit_model import fit_model
        from ..runner.driver import study_folder
    find_names_here(options)
    end_by_sigterm_too()
    folder = study_folder(out, None, {**options, "model": f"fit-{options['model']}"})
    report = fit_model(options, folder, fresh, wanted_way(progress), log_dir)
    print(report)
    print(*map(printable, report.next_steps), sep="\n")
    return 0 if report.chosen else 1


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas fit",
        example="canvas fit --model resnet8 --weights resnet8.pt --data digits-scattered "
        "--budget latency=0.6x --budget macs=0.3x",
        description="Make a trained network faster. Operators are fitted to single layers of the\n"
        "network: well-known ones and drawn kernels, at several sizes. For each budget an\n"
        "integer program chooses one operator per layer; the network is then tuned by\n"
        "distillation. The table compares it with your network, with the same procedure\n"
        "restricted to known operators, and with one known operator everywhere.\n"
        "The same command continues an interrupted fit.",
        epilog="Progress goes to standard error, conclusion and table to standard output. Exit\n"
        "codes: 0, 1 if nothing was found, 2 for bad input, 130 after Ctrl-C (what is done is\n"
        "kept).",
    )
    add_options(parser, FIT_OPTIONS)
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the study (default: canvas-runs/fit-MODEL-DATA)"
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
