"""The front of a study as a figure: what is shown of it, in which words.

    study -> Points (what is marked, in data units), caption -> figure.py -> a file

Where there are finals, the accuracy is the mean on the test split and only what was scored there
is shown: validation and test accuracies never share an axis.
"""

from __future__ import annotations

import math
import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..arguments import PATH, TEXT, checked
from ..errors import CanvasError, NoSolution
from ..files import named_file
from ..metric import Metric
from ..study import Candidate, Study
from ..text import printable
from .figure import FORMS, Axis, Point, draw
from .report import Report, make_report, rule_of, trial_counts

X_AXES = {
    "latency": Axis("speed-up over the unchanged network (right is faster)", 1),
    "macs": Axis("MACs, ratio to the unchanged network (left is cheaper)", -1),
    "params": Axis("parameters, ratio to the unchanged network (left is smaller)", -1),
}


@checked(folder=PATH, path=PATH, x=TEXT, title=TEXT)
def plot_pareto(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    x: str = "latency",
    title: str = "",
) -> None:
    """Plot the study in `folder` to `path`, a .svg, .png or .pdf file, completely or not at all.

    `x`: quantity of the x axis: latency, macs or params.  Raises CanvasError if the study cannot
    be read or the file cannot be written, and NoSolution if there is nothing to show yet.
    """
    form = Path(path).suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise CanvasError(
            f"a plot is a file that ends in .svg, .png or .pdf, not '{printable(os.fspath(path))}'"
        )
    with Study.read(Path(folder)) as study:
        content = pareto_figure(study, x, title, form)
    try:
        with named_file(Path(path)) as file:
            file.write(content)
    except OSError as error:
        raise CanvasError(
            f"cannot write '{printable(os.fspath(path))}': {error.strerror}"
        ) from error


def pareto_figure(study: Study, x: str = "latency", title: str = "", form: str = "svg") -> bytes:
    """The figure as the content of a file of one of FORMS."""
    if x not in X_AXES:
        raise CanvasError(f"x is {', '.join(X_AXES)}, not '{printable(x)}'")
    return draw_points(study, read_points(study, x), x, title, form)


def draw_points(
    study: Study, points: Sequence[Point], x: str, title: str = "", form: str = "svg"
) -> bytes:
    """The figure of these points of a study as the content of a file."""
    split = "test" if is_tested(study) else "validation"
    words = caption(study, points, x)
    return draw(points, X_AXES[x], axis_of(study.metric, split), words, title, form)


# ---- what is shown ----------------------------------------------------------------------------


def read_points(study: Study, x: str, report: Report | None = None) -> list[Point]:
    """The finished candidates that have both figures: baseline, controls, finds.  `report` is that
    of the study (default: made here).
    """
    rows = [row for row in study.candidates() if row.status == "done"]
    if not rows:
        raise NoSolution(f"no training of the study '{study.folder}' is complete yet")
    baseline = next((row for row in rows if row.kind == "baseline"), None)
    if baseline is None:
        raise NoSolution(
            f"no ratios in the study '{study.folder}': the unchanged network is not trained yet"
        )
    tested = is_tested(study)
    images = study.fact("test_images") if tested else study.validation_images()
    report, metric = report or make_report(study), study.metric
    points: list[Point] = []
    picked = report.picked
    for row in rows:
        value, share = ratio(row, baseline, x), row.test_mean if tested else row.val_accuracy
        if value is None or share is None or not math.isfinite(value + share):
            continue
        chosen = picked is not None and row.id == picked.id
        error = metric.amount(standard_error(row, share, images))
        height = metric.amount(share)
        points.append(
            Point(
                printable(row.name), row.kind, value, height, error, chosen, unit=unit_of(metric)
            )
        )
    if not points and all(row.val_accuracy is None for row in rows):
        raise NoSolution(f"the task of the study '{study.folder}' has no metric: nothing to plot")
    if not points:
        raise NoSolution(f"no latency is taken in the study '{study.folder}' yet: --x macs")
    up = 1 if metric.higher_is_better else -1
    return mark_front(points, X_AXES[x].better, {row.name for row in report.best_finds}, up)


def axis_of(metric: Metric, split: str) -> Axis:
    """The words at the axis of what networks are judged by."""
    unit = "%" if metric.is_share else metric.unit
    words = [unit] if unit else []
    words += [] if metric.higher_is_better else ["lower is better"]
    text = f"{split} {metric.name}" + (f" ({', '.join(words)})" if words else "")
    return Axis(text, 1 if metric.higher_is_better else -1)


def unit_of(metric: Metric) -> str:
    """The unit of a value of the axis, with the blank before it."""
    return " %" if metric.is_share else f" {metric.unit}".rstrip()


def is_tested(study: Study) -> bool:
    """Whether there are finals, so that the test split is shown."""
    return any(row.tests for row in study.candidates())


def ratio(row: Candidate, baseline: Candidate, x: str) -> float | None:
    """A candidate's place on the axis; None if the figure was not taken."""
    if x == "latency":
        return row.speedup
    ours, theirs = getattr(row, x), getattr(baseline, x)
    return ours / theirs if ours is not None and theirs else None


def standard_error(row: Candidate, share: float, images: int) -> float:
    """The spread over the seeds, else the standard error of a share of so many images."""
    if row.test_spread is not None:
        return row.test_spread
    if not row.metric.per_example:
        return 0.0
    return math.sqrt(max(share * (1 - share), 0.0) / max(images, 1))


def mark_front(
    points: Sequence[Point], better: int, chosen: Container[str] = (), up: int = 1
) -> list[Point]:
    """The points with their fronts.  The finds that no point beats on both axes drawn, controls
    and the unchanged network included as in the table, and those of `chosen` become `front`.
    `on_front` are the points that none of their own kind beats.  `better` is 1 where more of x
    is, else -1, `up` the same for y.
    """

    def beaten(point: Point, others: Iterable[Point]) -> bool:
        return any(
            better * other.x >= better * point.x
            and up * other.y >= up * point.y
            and (other.x, other.y) != (point.x, point.y)
            for other in others
        )

    def marked(point: Point) -> Point:
        own = (p for p in points if p.is_find == point.is_find and p.kind != "baseline")
        named = point.is_find and (not beaten(point, points) or point.name in chosen)
        kind = "front" if named else point.kind
        return replace(point, kind=kind, on_front=not beaten(point, own))

    return [marked(point) for point in points]


def caption(study: Study, points: Sequence[Point], x: str) -> str:
    """What is drawn and what is not, in words."""
    counts, options = trial_counts(study), study.options()
    tested = is_tested(study)
    shown = sum(point.kind in ("front", "find") for point in points)
    hidden = [
        f"{counts[kind]} {kind}" for kind in ("pruned", "rejected", "failed") if counts[kind]
    ]
    if counts["done"] > shown:
        missing = "not among the finalists" if tested else "not timed"
        hidden.insert(0, f"{counts['done'] - shown} {missing}")
    text = f"{shown} find{'' if shown == 1 else 's'}"
    text += f"; not shown: {', '.join(hidden)}. " if hidden else ". "
    seeds = max((len(row.tests) for row in study.candidates()), default=0)
    if seeds > 1:
        text += f"Bars: standard deviation over {seeds} seeds"
    elif study.metric.per_example:
        images = study.fact("test_images") if tested else study.validation_images()
        text += f"Bars: standard error of {images} images"
    else:
        text += "One seed, no bars"
    text += "."
    if x == "latency":
        processor = study.machine().get("processor", "unknown processor")
        text += f" Latency: batch {options.get('latency_batch', 1)}, one thread, {processor}."
    if any(point.picked for point in points):
        word, _, limit = rule_of(options, study.metric).partition(" within ")
        text += f" Ring: {word}"
        unit = study.metric.unit
        text += f" within {f'{limit} {unit}'.rstrip()} of the unchanged network." if limit else "."
    return text
