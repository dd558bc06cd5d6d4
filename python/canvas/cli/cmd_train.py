"""canvas train: train a network with a kernel of a search to the end."""

from __future__ import annotations

import argparse

from ..text import printable_lines
from ..training.train_options import THREADS, TRAIN_OPTIONS
from .command import (
    Parser,
    add_log_dir,
    add_options,
    end_by_sigterm_too,
    find_models_here,
    need_torch,
)

WHAT = (
    "candidate of a study, such as DIR/17, DIR/grouped, DIR/baseline or DIR/find-0017; file of a "
    "pack; or the word baseline for the unchanged network"
)


def run(words: list[str]) -> int:
    given = vars(parser().parse_args(words))
    with need_torch("train"):
        from ..deploy import trainer
    find_models_here(given["model"])
    end_by_sigterm_too()
    trained = trainer.train_network(given.pop("what"), **given)
    print(printable_lines(str(trained)))
    print(f"The weights are in '{trained.folder / trainer.BEST}', the log in '{trainer.LOG}'.")
    return 0


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas train",
        example="canvas train runs/demo/find-0017 --epochs 60 --out trained",
        description="Train a network whose convolutions are replaced by a kernel of a search.\n"
        "Each epoch writes a checkpoint and a line of the log; the test split is scored once, at\n"
        "the end. A candidate of a study determines the network, the images and the seed;\n"
        "flags override them. A network of your own always needs --model.",
        epilog="Progress goes to standard error, the result to standard output. Exit codes: 0,\n"
        "2 for bad input or a failed training, 130 after Ctrl-C. Complete epochs are kept:\n"
        "the same command with --resume continues, also after kill -9.",
    )
    parser.add_argument("what", metavar="WHAT", help=WHAT)
    add_options(parser, [*TRAIN_OPTIONS, THREADS])
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder of the training (default: train-NAME in the study, or in canvas-runs)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="continue after the last stored epoch in DIR"
    )
    parser.add_argument(
        "--re-solve",
        action="store_true",
        help="choose the kernel's sizes anew for these images, for the same share of MACs",
    )
    parser.add_argument(
        "--device",
        default="auto",
        metavar="auto|cpu|cuda[:N]",
        help="device of the training (default: auto)",
    )
    add_log_dir(parser)
    return parser
