"""canvas replay: repeat the training and timing of a candidate of a study."""

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
        description="Repeat the training and the timing of a candidate of a study from its\n"
        "recorded text and options, and print both results. The study is not changed.",
        epilog="Exit codes: 0, 1 if the training differs from the recorded one, 2 for bad\ninput.",
    )
    parser.add_argument("study", metavar="DIR", help="the --out folder of a search")
    parser.add_argument(
        "candidate", metavar="NAME", help="baseline, a control's name, or the index of a draw"
    )
    parser.add_argument(
        "--model",
        metavar="NAME",
        help="the network of the study, if it is your own code: package.module:callable",
    )
    return parser
