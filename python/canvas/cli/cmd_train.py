"""canvas train: from a find to a trained network."""

from __future__ import annotations

import argparse

from ..text import printable_lines
from ..training.train_options import THREADS, TRAIN_OPTIONS
from .command import Parser, add_options, end_by_sigterm_too, find_models_here, need_torch

WHAT = (
    "candidate of a study, as DIR/17, DIR/grouped, DIR/baseline or DIR/find-0017; or the file of "
    "a pack; or the word baseline for the unchanged network"
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
        description="Train a network with the kernel of a find in it (a kernel that a search\n"
        "drew and trained briefly), to the end: a checkpoint and a line of the log after every\n"
        "epoch, the test split scored once when all is done. For a candidate of a study\n"
        "the network, the images and the seed are the study's; flags override them, and a\n"
        "network of your own has to be named again with --model.",
        epilog="Progress goes to standard error, the result to standard output. Exit codes: 0,\n"
        "2 for bad input or a training that fails, 130 after Ctrl-C (whole epochs are\n"
        "kept; the same command with --resume continues, after kill -9 too).",
    )
    parser.add_argument("what", metavar="WHAT", help=WHAT)
    add_options(parser, [*TRAIN_OPTIONS, THREADS])
    parser.add_argument(
        "--out",
        metavar="DIR",
        help="folder of the training (default: train-NAME in the study's, else in canvas-runs)",
    )
    parser.add_argument(
        "--resume", action="store_true", help="go on after the last epoch that is in DIR"
    )
    parser.add_argument(
        "--device", default="auto", metavar="auto|cpu|cuda", help="where to train (default: auto)"
    )
    return parser
