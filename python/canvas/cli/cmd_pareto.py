"""canvas pareto: print the Pareto front of a study as a table, and plot it."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from ..errors import CanvasError, NoSolution
from ..reporting.plot import X_AXES, pareto_figure, plot_pareto
from ..reporting.report import make_report, pareto_csv, pareto_rows
from ..study import Study
from .command import Parser


def run(words: list[str]) -> int:
    given = parser().parse_args(words)
    if given.plot is None and (given.x or given.title):
        raise CanvasError("--x and --title apply to a plot: give --plot FILE")
    if given.plot == "-" and given.format:
        raise CanvasError("--plot - writes to standard output: leave out --format")
    folder, x, title = Path(given.folder), given.x or "latency", given.title or ""
    if given.plot == "-":
        with Study.read(folder) as study:
            print(pareto_figure(study, x, title).decode(), end="")
        return 0
    text = pareto_text(folder, given.format or "table")
    if given.plot is not None:
        plot_pareto(folder, given.plot, x, title)
    print(text)
    return 0


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas pareto",
        example="canvas pareto canvas-runs/resnet8-digits-scattered --plot front.svg",
        description="Print the table of a study: the unchanged network, the controls (well-known\n"
        "operators) and the finds (kernels of the search that fit the budget) on the Pareto\n"
        "front. --plot also plots it: accuracy, on the test images if there were finals,\n"
        "against the quantity of --x.",
        epilog="The search may still be running. Exit codes: 0, 1 if no training is complete\n"
        "yet, 2 for bad input.",
    )
    parser.add_argument("folder", metavar="DIR", help="the --out folder of a search")
    parser.add_argument(
        "-f",
        "--format",
        choices=("table", "json", "csv"),
        help="format of the table; accuracies in json and csv are 0..1 (default: table)",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="write a figure to a .svg, .png or .pdf file; - writes SVG to standard output "
        "instead of the table",
    )
    parser.add_argument(
        "--x", choices=tuple(X_AXES), help="quantity on the x axis of the plot (default: latency)"
    )
    parser.add_argument("--title", metavar="TEXT", help="title of the plot (default: none)")
    return parser


def pareto_text(folder: Path, form: str) -> str:
    """The table of the study in `folder` as table, json or csv, without the last line break."""
    with Study.read(folder) as study:
        report = make_report(study)
    if all(row.status != "done" for row in report.rows):
        raise NoSolution(f"no training of the study '{folder}' is complete yet")
    if form == "table":
        return report.text
    if form == "csv":
        return pareto_csv(report).rstrip("\n")
    return json.dumps(pareto_rows(report), indent=1)
