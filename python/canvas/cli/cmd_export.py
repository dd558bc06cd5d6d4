"""canvas export: export a kernel and its network as files that need no Canvas."""

from __future__ import annotations

import argparse

from ..training.train_options import NETWORK_OPTIONS
from .command import Parser, add_options, find_models_here, need_torch

WHAT = (
    "folder of a training; candidate of a study, such as DIR/17 or DIR/grouped; file of a pack; "
    "or the word baseline"
)


def run(words: list[str]) -> int:
    given = vars(parser().parse_args(words))
    with need_torch("export"):
        from ..deploy.export import export
    find_models_here(given["model"])
    folder = export(given.pop("what"), given.pop("out"), **given)
    print(f"'{folder}' holds {', '.join(sorted(path.name for path in folder.iterdir()))}")
    return 0


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas export",
        example="canvas export trained --out mynet",
        description="Write a network whose convolutions are replaced by a kernel of a search as\n"
        "files that need PyTorch but not Canvas: source, weights, picture, texts, numbers.",
        epilog="A candidate of a study and a training determine the network and the images. A\n"
        "pack needs --model and --data. A network of your own always needs --model.\n"
        "Exit codes: 0, 2 for bad input.",
    )
    parser.add_argument("what", metavar="WHAT", help=WHAT)
    parser.add_argument("--out", metavar="DIR", required=True, help="the new folder")
    parser.add_argument(
        "--weights", metavar="FILE", help="weights to export (default: those of the training)"
    )
    add_options(parser, NETWORK_OPTIONS)
    return parser
