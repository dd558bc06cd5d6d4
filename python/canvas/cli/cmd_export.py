"""canvas export: a network with its kernel as files that need no Canvas."""

from __future__ import annotations

import argparse

from ..training.train_options import NETWORK_OPTIONS
from .command import Parser, add_options, find_models_here, need_torch

WHAT = (
    "folder of a training; candidate of a study, as DIR/17 or DIR/grouped; file of a pack; or the "
    "word baseline"
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
        description="Write a network with the kernel of a find in it (a kernel that a search\n"
        "drew and trained) as files that need PyTorch and not Canvas: source, weights, picture,\n"
        "texts, figures.",
        epilog="For a candidate of a study or a training the network and the images are known;\n"
        "a pack needs --model and --data, and a network of your own --model in any case.\n"
        "Exit codes: 0, 2 for bad input.",
    )
    parser.add_argument("what", metavar="WHAT", help=WHAT)
    parser.add_argument("--out", metavar="DIR", required=True, help="the new folder")
    parser.add_argument(
        "--weights", metavar="FILE", help="weights to take along (default: those of a training)"
    )
    add_options(parser, NETWORK_OPTIONS)
    return parser
