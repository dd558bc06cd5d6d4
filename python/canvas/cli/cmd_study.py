"""canvas study merge: several studies of one question as one table."""

from __future__ import annotations

import argparse
import json
from contextlib import ExitStack
from pathlib import Path

from ..errors import CanvasError
from ..reporting.merged import merge, merged_csv, merged_rows, merged_text
from ..study import Study
from .command import Parser


def run(words: list[str]) -> int:
    given = parser().parse_args(words)
    if len(given.folders) < 2:
        raise CanvasError("canvas study merge joins two studies or more: name another folder")
    with ExitStack() as stack:
        studies = [stack.enter_context(Study.read(Path(folder))) for folder in given.folders]
        merged = merge(studies)
    if given.format == "csv":
        print(merged_csv(merged), end="")
    elif given.format == "json":
        print(json.dumps(merged_rows(merged), indent=1))
    else:
        print(merged_text(merged))
    return 0


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas study",
        example="canvas study merge runs/seed-1 runs/seed-2 runs/seed-3",
        description="Join studies of one question into one table: searches, or fits, that differ\n"
        "in --seed, the machine and options that are not part of the question. Each line is a\n"
        "kind of network, with means over the studies +- standard deviation.",
        epilog="Differences and speed-ups are taken within each study, so that machines need not\n"
        "be alike. Exit codes: 0, 2 for bad input.",
    )
    parser.add_argument("action", choices=("merge",), help="merge: join the studies")
    parser.add_argument(
        "folders", metavar="DIR", nargs="+", help="the --out folders of the studies"
    )
    parser.add_argument(
        "-f",
        "--format",
        choices=("table", "json", "csv"),
        default="table",
        help="table: one line for each kind of network; json and csv: the rows of all tables "
        "with study, seed and processor; accuracies there are 0..1 (default: table)",
    )
    return parser
