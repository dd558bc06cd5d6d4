"""canvas replay: train and time a candidate of a study again, and print both."""

from __future__ import annotations

import argparse
from pathlib import Path

from .command import Parser, end_by_sigterm_too, find_models_here, need_torch


def run(words: list[str]) -> int:
    given = parser().parse_args(words)
    with need_torch("replay"):
        from ..runner.replay import replay
    find_models_here(given.model)
    end_by_sigterm_too()
    result = replay(Path(given.study), given.candidate, model=given.model)
    print(result)
    return 0 if result.same else 1


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas replay",
        example="canvas replay runs/demo 17",
        description="Train a candidate of a study again from what the study recorded, time it\n"
        "again, and print both. The study is not changed.",
        epilog="Exit codes: 0, 1 where the training went otherwise than recorded, 2 for bad\n"
        "input.",
    )
    parser.add_argument("study", metavar="DIR", help="the --out folder of a search")
    parser.add_argument(
        "candidate", metavar="NAME", help="baseline, a control's name, or the index of a draw"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the study's network, where that is your own code: package.module:callable",
    )
    return parser
