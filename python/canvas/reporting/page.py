"""A study as one page of HTML: `canvas report` and `canvas.report`.

    study --> Report --> sections, each made of escaped text and inline SVG --> one file

    conclusion  front  curves  operators  rejections  cost  commands
                figure.py, curves.py   page_operators.py   page_facts.py

The page has no script and loads nothing; html_parts.py has its style.  It is written at once or
not at all.  While a search runs, `watch` writes it again whenever the study has changed, and until
the last time the page loads itself again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ..arguments import PATH, checked
from ..errors import CanvasError, NoSolution
from ..files import at_once, named_file
from ..stored_options import FIT, command_of
from ..study import FILE, REPORT, Candidate, Study, is_running
from ..text import printable
from .curves import Curve, draw_curves
from .figure import point_id
from .fit_text import FIGURES, fit_cells, fit_details, fit_head_lines, fit_headline
from .front import pick_line, title
from .html_parts import document, element, escaped, figure, section, table
from .inline_svg import inline_svg
from .page_facts import costs, given_up, rejections, reproduce
from .page_operators import operators
from .plot import axis_of, draw_points, read_points
from .report import Report, head_lines, make_report, rule_of
from .table import table_cells
from .verdict import Evidence, conclusions

EVERY = 30  # seconds from one look at a running search to the next, and of the page's refresh
CURVES = 100  # finds without a name whose curves are drawn


@checked(folder=PATH, html=PATH)
def report(folder: str | os.PathLike[str], html: str | os.PathLike[str] | None = None) -> Path:
    """Write the study in `folder` as one page of HTML, completely or not at all; returns its path.

    `html`: the file (default: report.html in `folder`).  Raises CanvasError if the study cannot
    be read, has nothing to report, or the file cannot be written.
    """
    return _write(folder, html, page_of(Path(folder)))


def watch(
    folder: str | os.PathLike[str],
    html: str | os.PathLike[str] | None,
    say: Callable[[str], None],
) -> Path:
    """The same, again and again while a search runs in `folder`; its end, or an exception such as
    Ctrl-C, gives the last page, which does not load itself again.
    """
    place, seen = Path(folder), None
    try:
        while running := is_running(place):
            if seen != (seen := _state(place)):
                path = _write(folder, html, page_of(place, EVERY))
                say(f"The page is '{path}', and follows the search.")
                say = _silent
            time.sleep(EVERY)
    finally:
        path = _write(folder, html, page_of(place, running=running))
    return path


def page_of(folder: Path, refresh: int = 0, running: bool | None = None) -> str:
    """The page of the study in `folder`."""
    is_live = is_running(folder) if running is None else running
    with Study.read(folder) as study:
        return page(study, make_report(study), is_live, refresh)


def _write(folder: str | os.PathLike[str], html: str | os.PathLike[str] | None, text: str) -> Path:
    """Write the page at once; returns its path.  A link that a study brings along is replaced, one
    that the user names is followed.
    """
    path = Path(folder) / REPORT if html is None else Path(html)
    if path.is_file() and path.suffix.lower() not in (".html", ".htm"):
        raise CanvasError(
            f"'{printable(os.fspath(path))}' is there and no page (.html): name another file"
        )
    try:
        with at_once(path) if html is None else named_file(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise CanvasError(
            f"cannot write '{printable(os.fspath(path))}': {error.strerror}"
        ) from error
    return path


def _state(folder: Path) -> tuple[int, ...]:
    """What changes when something is recorded: size and time of the study's files."""
    found: list[int] = []
    for name in (FILE, f"{FILE}-wal"):
        try:
            status = os.stat(folder / name)
        except OSError:
            continue
        if status.st_size:  # a reader makes an empty one
            found += [status.st_size, status.st_mtime_ns]
    return tuple(found)


def _silent(_: str) -> None:
    pass


# ---- the page -----------------------------------------------------------------------------------


def page(study: Study, report: Report, running: bool, refresh: int = 0) -> str:
    """The text of the page; raises CanvasError where a search that has ended has no result."""
    if not report.chosen and not running:
        raise CanvasError(nothing_to_report(study))
    options = study.options()
    name = f"{options.get('model', '')} on {options.get('data', '')}"
    sections = [
        ("front", "Front", front_part(study, report)),
        ("curves", "Training curves", curves_part(study, report)),
        ("operators", "Operators", operators(study, report)),
        ("rejections", "Rejected and failed", rejections(study)),
        ("cost", "Time and cost", costs(study)),
        ("commands", "Commands", reproduce(study, report)),
    ]
    links = "".join(f'<a href="#{key}">{escaped(words)}</a>' for key, words, _ in sections)
    parts = [
        *head(study, report, name, running),
        f"<nav>{links}</nav>",
        result_table(study, report),
        *(section(key, words, *body) for key, words, body in sections),
    ]
    return document(name, "\n".join(parts), refresh)


def nothing_to_report(study: Study) -> str:
    """Why there is no page, with the most frequent reasons of what was given up."""
    counts: dict[str, list[str]] = {}
    for what, _, reason in given_up(study):
        counts.setdefault(what, []).append(reason)
    words = "; ".join(
        f"{what}: {len(found)}, such as: {found[0]}"
        for what, found in sorted(counts.items(), key=lambda item: -len(item[1]))[:3]
    )
    why = f" ({printable(words)[:500] or 'none was trained to the end'})"
    return (
        f"the study in '{study.folder}' has no find to report{why}: canvas trials lists every "
        "candidate with its reason"
    )


def head(study: Study, report: Report, name: str, running: bool) -> list[str]:
    """The conclusion first, then what is behind it."""
    is_fit = command_of(study.options()) == FIT
    evidence = Evidence.of(study)
    if is_fit:
        line, details = fit_headline(report.rows), fit_details(report.rows, evidence)
    else:
        line, details = headline(conclusions(study.candidates(), evidence))
    state = ("running", "state running") if running else ("not running", "state")
    word = "fit" if is_fit else "search"
    parts = [
        f'<p class="faint">{escaped(f"canvas {word}: {name}")} {element("span", *state)}</p>',
        element("h1", line),
    ]
    if details:
        parts.append(f"<ul>{''.join(element('li', text) for text in details)}</ul>")
    judgeable = any(row.val_accuracy is not None for row in report.rows)
    if judgeable or not is_fit:
        rule = rule_of(study.options(), study.metric)
        parts.append(element("p", pick_line(rule, report.rows, report.picked)))
    return parts


def headline(found: Sequence[str]) -> tuple[str, list[str]]:
    """One sentence of the first sentences of the conclusions, and what follows them."""
    halves = [text.removesuffix(".").partition(". ") for text in found]
    return "; ".join(first for first, _, _ in halves) + ".", [f"{x}." for *_, x in halves if x]


def result_table(study: Study, report: Report) -> str:
    """The table of canvas pareto, the row to take in bold."""
    options = study.options()
    taken = {1 + at for at, row in enumerate(report.rows) if row is report.picked}
    if command_of(options) == FIT:
        choices = {row.id: study.choice_of(row.id) for row in report.rows}
        cells = fit_cells(report.rows, choices, report.picked)
        numbers = FIGURES
        lines = fit_head_lines(study, options, report.rows)
    else:
        cells = table_cells(report.rows, report.picked)
        numbers = frozenset(range(1, len(cells[0]) - 1))
        lines = head_lines(study, options, report.rows)
    stripped = [[cell.strip() for cell in row] for row in cells]
    words = "".join(element("p", line, "faint") for line in lines)
    return f'<div class="results">{table(stripped, numbers, taken)}</div>{words}'


def front_part(study: Study, report: Report) -> list[str]:
    """The figure of canvas pareto --plot, by latency where it was measured, and by MACs."""
    drawn, missing = [], ""
    for x in ("latency", "macs"):
        try:
            points = read_points(study, x, report)
            svg = draw_points(study, points, x)
        except NoSolution as error:
            missing = str(error).partition(": --x")[0]
            continue
        except CanvasError as error:  # no matplotlib
            return [element("p", str(error))]
        titles = {point_id(point): str(point) for point in points}
        drawn.append(figure(inline_svg(svg, f"{x}-", titles)))
    if drawn and missing:
        missing = "No speed-up is recorded, so there is no front by latency"
    parts = [f'<div class="figures">{"".join(drawn)}</div>'] if drawn else []
    return parts + ([element("p", f"{missing}.", "faint")] if missing else [])


def curves_part(study: Study, report: Report) -> list[str]:
    """Curves of a search by epoch; of a fit the divergence by tuning, and the screening."""
    metric = study.metric
    is_fit = command_of(study.options()) == FIT
    if is_fit:
        shown = [
            (tuning_curves(study, report), "epochs of tuning", "divergence from the teacher", -1),
            (screening_curves(study), "kernels screened", "least error at the layer", -1),
        ]
    else:
        axis = axis_of(metric, "validation")
        shown = [(training_curves(study, report), "epochs", axis.text, axis.better)]
    drawn = []
    for number, (curves, x, y, better) in enumerate(shown):
        if not curves:
            continue
        try:
            svg = draw_curves(curves, x, y, better, whole=is_fit)
        except CanvasError as error:  # no matplotlib
            return [element("p", str(error))]
        names = {f"curve {curve.name}": f"{curve.name}: {curve.y[-1]:.4g}" for curve in curves}
        drawn.append(figure(inline_svg(svg, f"curve{number}-", names)))
    if not drawn:
        return [element("p", "No training has recorded an epoch yet.")]
    if is_fit:
        words = "A fit records its networks before and after their tuning, not each epoch."
        return [f'<div class="figures">{"".join(drawn)}</div>', element("p", words, "faint")]
    words = (
        "Blue: finds that are on the front or the best of a budget. Dashed: known operators. "
        "Dotted: the unchanged network. A curve is one training, from the search's own seed; the "
        "table has means over seeds."
    )
    if stopped := len(study.select("find", ("pruned", "failed", "waiting"))):
        words += f" Grey: other finds, {stopped} of them stopped early."
    return [f'<div class="figures">{"".join(drawn)}</div>', element("p", words, "faint")]


def kind_of(row: Candidate, report: Report) -> str:
    """As of a Point: finds with a name are `front`."""
    named = {found.id for found in report.best_finds} | report.on_front
    return "front" if row.kind == "find" and row.id in named else row.kind


def training_curves(study: Study, report: Report) -> list[Curve]:
    """The metric on validation by epoch; of finds without a name the best."""
    curves, others = [], 0
    for row in sorted(study.candidates(), key=lambda row: -row.merit):
        values = [study.metric.amount(value) for value in study.curve(row.id)]
        kind = kind_of(row, report)
        others += kind == "find"
        if values and (kind != "find" or others <= CURVES):
            name = "unchanged" if kind == "baseline" else title(row)
            curves.append(Curve(printable(name), kind, range(1, len(values) + 1), values))
    return curves


def tuning_curves(study: Study, report: Report) -> list[Curve]:
    """The divergence from the teacher before and after tuning."""
    return [
        Curve(
            printable(title(row)),
            kind_of(row, report),
            (0, study.tuned_epochs(row.id)),
            (row.divergence, row.tuned_divergence),
        )
        for row in sorted(study.candidates(), key=lambda row: -row.merit)
        if row.kind != "baseline"
        and row.status == "done"
        and row.divergence is not None
        and row.tuned_divergence is not None
    ]


def screening_curves(study: Study) -> list[Curve]:
    """The least error so far, as steps."""
    xs: list[float] = []
    ys: list[float] = []
    for kernel in study.screened():
        if not ys or kernel.error < ys[-1]:
            xs += [kernel.number] * (2 if ys else 1)
            ys += [ys[-1], kernel.error] if ys else [kernel.error]
        last = kernel.number
    return [Curve("best kernel", "front", [*xs, last], [*ys, ys[-1]])] if ys else []
