"""canvas pareto: the front of a study as a table, and as a figure."""

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
        raise CanvasError("--x and --title are of a plot: give --plot FILE")
    if given.plot == "-" and given.format:
        raise CanvasError("--plot - takes standard output for itself: leave --format away")
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
        "operators), and of the finds (kernels drawn at random that fit the budget) those\n"
        "on the front. With --plot also draw it: accuracy, on the test images where there\n"
        "are finals, against what --x says.",
        epilog="The study may still be growing. Exit codes: 0, 1 when nothing is trained to the\n"
        "end yet, 2 for bad input.",
    )
    parser.add_argument("folder", metavar="DIR", help="the --out folder of a search")
    parser.add_argument(
        "-f",
        "--format",
        choices=("table", "json", "csv"),
        help="of the table; accuracies of json and csv are 0..1 (default: table)",
    )
    parser.add_argument(
        "--plot",
        metavar="FILE",
        help="write a figure, as its ending says: .svg, .png or .pdf; - is SVG on standard "
        "output, without a table",
    )
    parser.add_argument(
        "--x", choices=tuple(X_AXES), help="what the plot's x axis shows (default: latency)"
    )
    parser.add_argument("--title", metavar="TEXT", help="a line above the plot (default: none)")
    return parser


def pareto_text(folder: Path, form: str) -> str:
    """The table of the study in `folder` as table, json or csv, without the last line break."""
    with Study.read(folder) as study:
        report = make_report(study)
    if all(row.status != "done" for row in report.rows):
        raise NoSolution(f"nothing in the study '{folder}' is trained to the end yet")
    if form == "table":
        return report.text
    if form == "csv":
        return pareto_csv(report).rstrip("\n")
    return json.dumps(pareto_rows(report), indent=1)
