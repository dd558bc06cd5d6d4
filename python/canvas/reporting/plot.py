"""The front of a study as an SVG figure: accuracy against what it costs.

    study -> Points (what is marked, in data units) -> Figure (scales, labels, marks) -> SVG text

Drawn here and not by a plotting library, so that a figure needs nothing installed and the same
study gives the same bytes.  It is as wide as a column of a paper, its colours are told apart by
the colour-blind, and shapes tell the kinds apart without colour.  Where there are finals, the
accuracy is the mean on the test split and only what was scored there is shown: validation and
test accuracies never share an axis.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from ..errors import CanvasError, NoSolution
from ..study import Candidate, Study
from ..text import printable
from .labels import Box, nearest, place_labels, text_width, tie, wrap
from .report import PICK, make_report, trial_counts, write_atomically


class Axis(NamedTuple):
    """What can be drawn to the right."""

    text: str
    better: int  # 1: more is better, -1: less


X_AXES = {
    "latency": Axis("speed-up over the unchanged network (right is faster)", 1),
    "macs": Axis("MACs, ratio to the unchanged network (left is cheaper)", -1),
    "params": Axis("parameters, ratio to the unchanged network (left is smaller)", -1),
}

# Blue and vermilion of Okabe and Ito's palette, the latter darker to be read as text.
INK, GREY, BLUE, VERMILION = "#222222", "#9a9a9a", "#0072b2", "#c95400"
WIDTH, PLOT_HEIGHT = 336.0, 196.0  # pixels; 336 are 3.5 inches
LEFT, RIGHT = 40.0, 10.0
FONT, SMALL = 10.0, 8.5


def plot_pareto(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    x: str = "latency",
    title: str = "",
) -> None:
    """Write the figure of the study in `folder` to `path`, an .svg file, at once or not at all.

    `x`: latency, macs or params.  Raises CanvasError where the study cannot be read or the file
    not be written, NoSolution (exit code 1) where nothing can be shown yet.
    """
    if Path(path).suffix.lower() != ".svg":
        raise CanvasError(
            f"a plot is a file that ends in .svg, not '{printable(os.fspath(path))}'"
        )
    with Study.read(Path(folder)) as study:
        text = pareto_svg(study, x, title)
    try:
        write_atomically(Path(path), text)
    except OSError as error:
        raise CanvasError(
            f"cannot write '{printable(os.fspath(path))}': {error.strerror}"
        ) from error


def pareto_svg(study: Study, x: str = "latency", title: str = "") -> str:
    """The figure as text."""
    if x not in X_AXES:
        raise CanvasError(f"x is {', '.join(X_AXES)}, not '{printable(x)}'")
    points = read_points(study, x)
    split = "test" if is_tested(study) else "validation"
    words = caption(study, points, x)
    return Figure(points, X_AXES[x], f"{split} accuracy (%)", words, title).svg()


# ---- what is shown ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A candidate in the units of the axes: `x` a ratio, `y` and `error` in percent."""

    name: str
    kind: str  # baseline, control, front or find
    x: float
    y: float
    error: float
    picked: bool = False


def read_points(study: Study, x: str) -> list[Point]:
    """The finished candidates that have both figures: baseline, controls, finds."""
    rows = [row for row in study.candidates() if row.status == "done"]
    if not rows:
        raise NoSolution(f"nothing in the study '{study.folder}' is trained to the end yet")
    baseline = next((row for row in rows if row.kind == "baseline"), None)
    if baseline is None:
        raise NoSolution(
            f"no ratios in the study '{study.folder}': the unchanged network is not trained yet"
        )
    tested = is_tested(study)
    images = study.fact("test_images") if tested else study.validation_images()
    picked = make_report(study).picked
    points = []
    for row in rows:
        value, share = ratio(row, baseline, x), row.test_mean if tested else row.val_accuracy
        if value is None or share is None or not math.isfinite(value + share):
            continue
        chosen = picked is not None and row.id == picked.id
        error = 100 * standard_error(row, share, images)
        points.append(Point(printable(row.name), row.kind, value, 100 * share, error, chosen))
    if not points:
        raise NoSolution(f"no latency is taken in the study '{study.folder}' yet: --x macs")
    return mark_front(points, X_AXES[x].better)


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
    return math.sqrt(max(share * (1 - share), 0.0) / max(images, 1))


def mark_front(points: Sequence[Point], better: int) -> list[Point]:
    """The finds that no other find beats on both axes drawn become `front`; `better` is 1 where
    more of x is, else -1.
    """

    def beaten(point: Point) -> bool:
        return any(
            other.kind == "find"
            and better * other.x >= better * point.x
            and other.y >= point.y
            and (other.x, other.y) != (point.x, point.y)
            for other in points
        )

    return [
        replace(point, kind="front") if point.kind == "find" and not beaten(point) else point
        for point in points
    ]


def caption(study: Study, points: Sequence[Point], x: str) -> str:
    """What is drawn and what is not, in words."""
    counts, options = trial_counts(study), study.options()
    tested = is_tested(study)
    shown = sum(point.kind in ("front", "find") for point in points)
    hidden = [f"{counts[kind]} {kind}" for kind in ("pruned", "failed") if counts[kind]]
    if counts["done"] > shown:
        missing = "not among the finalists" if tested else "not timed"
        hidden.insert(0, f"{counts['done'] - shown} {missing}")
    text = f"{shown} find{'' if shown == 1 else 's'}"
    text += f"; not shown: {', '.join(hidden)}. " if hidden else ". "
    seeds = max((len(row.tests) for row in study.candidates()), default=0)
    if seeds > 1:
        text += f"Bars: standard deviation over {seeds} seeds"
    else:
        images = study.fact("test_images") if tested else study.validation_images()
        text += f"Bars: standard error of {images} images"
    text += "."
    if x == "latency":
        processor = study.machine().get("processor", "unknown processor")
        text += f" Latency: batch {options.get('latency_batch', 1)}, one thread, {processor}."
    if any(point.picked for point in points):
        word, _, limit = options.get("pick", PICK).partition(" within ")
        text += f" Ring: {word}"
        text += f" within {limit} points of the unchanged network." if limit else "."
    return text


# ---- scales -----------------------------------------------------------------------------------


class Scale:
    """Maps low..high to start..end in pixels; logarithmic where the values span decades."""

    def __init__(
        self, values: Sequence[float], start: float, end: float, may_log: bool = False
    ) -> None:
        low, high = min(values), max(values)
        self.log = may_log and low > 0 and high / low > 8
        self.start, self.end = start, end
        low, high = self._of(low), self._of(high)
        pad = 0.12 * (high - low) or abs(high) * 0.1 or 1.0
        self.low, self.high = low - pad, high + pad

    def _of(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def __call__(self, value: float) -> float:
        part = (self._of(value) - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round numbers within the scale, four to eight of them or so."""
        if not self.log:
            step = nice_step((self.high - self.low) / 5)
            first, last = math.ceil(self.low / step), math.floor(self.high / step)
            return [n * step for n in range(first, last + 1)]
        decades = range(math.floor(self.low), math.ceil(self.high))
        for digits in ((1,), (1, 3), (1, 2, 5)):
            found = [
                digit * 10.0**decade
                for decade in decades
                for digit in digits
                if self.low <= math.log10(digit) + decade <= self.high
            ]
            if len(found) >= 4:
                break
        return found


def nice_step(least: float) -> float:
    """The least of 1, 2, 5, 10, 20, 50, ... (and their tenths) that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))


# ---- marks ------------------------------------------------------------------------------------


def _star() -> list[tuple[float, float]]:
    turns = [math.pi * (n / 5 - 0.5) for n in range(10)]
    return [
        ((0.55, 1.35)[n % 2 == 0] * math.cos(turn), (0.55, 1.35)[n % 2 == 0] * math.sin(turn))
        for n, turn in enumerate(turns)
    ]


# Corners of marks of radius 1: the baseline's, then one for each control, from the first again
# where there are more controls than shapes.
STAR = _star()
DOWN = [(0.0, 1.1), (1.05, -0.8), (-1.05, -0.8)]
SHAPES = (
    [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
    [(0.0, -1.1), (1.05, 0.8), (-1.05, 0.8)],
    [(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)],
    DOWN,
    [(-0.4, -1.1), (0.4, -1.1), (0.4, -0.4), (1.1, -0.4), (1.1, 0.4), (0.4, 0.4), (0.4, 1.1),
     (-0.4, 1.1), (-0.4, 0.4), (-1.1, 0.4), (-1.1, -0.4), (-0.4, -0.4)],
    [(-1.1, -0.5), (0.0, -1.1), (1.1, -0.5), (1.1, 0.5), (0.0, 1.1), (-1.1, 0.5)],
)  # fmt: skip
RADIUS = {"baseline": 4.6, "control": 4.0, "front": 3.2, "find": 1.8}
COLOURS = {"baseline": INK, "control": VERMILION, "front": BLUE, "find": GREY}


def number(value: float) -> str:
    return f"{value:.1f}".replace("-0.0", "0.0")


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f"<line {ends} {style}/>"


def words(x: float, y: float, text: str, style: str = "") -> str:
    return f'<text x="{number(x)}" y="{number(y)}"{style and " "}{style}>{escape(text)}</text>'


def mark(point: Point, shape: Sequence[tuple[float, float]] | None, x: float, y: float) -> str:
    """The sign of a point, with what it is as a tooltip; `shape` None is a disc."""
    radius = RADIUS[point.kind]
    style = f'fill="{COLOURS[point.kind]}" stroke="#ffffff" stroke-width="0.6"'
    if shape is None:
        sign = f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" {style}/>'
    else:
        corners = " ".join(f"{number(x + radius * a)},{number(y + radius * b)}" for a, b in shape)
        sign = f'<polygon points="{corners}" {style}/>'
    return f"<g><title>{escape(describe(point))}</title>{sign}</g>"


def describe(point: Point) -> str:
    """A point in words."""
    name = f"find {point.name}" if point.kind in ("front", "find") else point.name
    return f"{name}: {point.y:.2f} % (+- {point.error:.2f}) at {point.x:.3g}x"


# ---- the figure -------------------------------------------------------------------------------


class Figure:
    """Everything at its place; `svg()` is its text.  Pixels, y downwards."""

    def __init__(self, points: Sequence[Point], x: Axis, y: str, caption: str, title: str) -> None:
        self.points, self.x, self.y = list(points), x, y
        inner = WIDTH - 2 * 8
        self.title = wrap(printable(title), FONT + 1, inner)
        top = 6.0 + 14 * len(self.title)
        if any(point.kind in ("front", "find") for point in points):
            self.legend_y = top + 8
            top += 18
        self.area = Box(LEFT, top, WIDTH - RIGHT, top + PLOT_HEIGHT)
        self.across = Scale([p.x for p in points], self.area.left, self.area.right, may_log=True)
        bars = [p.y + sign * p.error for p in points for sign in (-1, 1) if p.kind != "find"]
        self.up = Scale(bars or [p.y for p in points], self.area.bottom, self.area.top)
        self.labels = self._place_labels()
        if below := sum(map(self.is_below, points)):
            caption += f" Triangles at the foot: {below} below the axis."
        self.caption = wrap(printable(caption), SMALL, inner)
        self.height = self.area.bottom + 36 + 11 * len(self.caption) + 2

    def at(self, point: Point) -> tuple[float, float]:
        return self.across(point.x), self.up(point.y)

    def is_below(self, point: Point) -> bool:
        """The axis ends at what is marked; finds far below it stand at its foot."""
        return point.y < self.up.low

    def of_kind(self, *kinds: str) -> list[Point]:
        return [point for point in self.points if point.kind in kinds]

    def front(self) -> list[Point]:
        """From left to right."""
        return sorted(self.of_kind("front"), key=lambda point: (point.x, -point.y))

    def svg(self) -> str:
        parts = [
            self._head(),
            *self._axes(),
            *self._references(),
            *self._finds(),
            self._steps(),
            *self._bars(),
            *self._marks(),
            *self._names(),
            *self._legend(),
            *self._texts(),
        ]
        return "\n".join(part for part in parts if part) + "\n</svg>\n"

    # ---- labels

    def _labelled(self) -> list[Point]:
        """The most important first: baseline, controls, then finds from the most accurate."""
        finds = sorted(self.of_kind("front"), key=lambda point: -point.y)
        return self.of_kind("baseline") + self.of_kind("control") + finds

    def _label(self, point: Point) -> str:
        return "unchanged" if point.kind == "baseline" else point.name

    def _place_labels(self) -> list[Box | None]:
        marked = self._labelled()
        anchors = [(*self.at(p), text_width(self._label(p), SMALL)) for p in marked]
        return place_labels(
            anchors,
            SMALL,
            self.area,
            [self._sign(point) for point in marked],
            [self._sign(point) for point in self.of_kind("find")]
            + [self._bar(point) for point in marked]
            + self._step_boxes()
            + self._reference_boxes(),
        )

    def _sign(self, point: Point) -> Box:
        """What a mark covers."""
        x, y = self.at(point)
        radius = RADIUS[point.kind] + (3 if point.picked else 0.5)
        return Box(x - radius, y - radius, x + radius, y + radius)

    def _bar(self, point: Point) -> Box:
        x, low, high = self.across(point.x), point.y - point.error, point.y + point.error
        return Box(x - 2, self.up(high), x + 2, self.up(low))

    def _step_boxes(self) -> list[Box]:
        corners = self._corners()
        return [
            Box(min(a[0], b[0]) - 1, min(a[1], b[1]) - 1, max(a[0], b[0]) + 1, max(a[1], b[1]) + 1)
            for a, b in itertools.pairwise(corners)
        ]

    def _reference_boxes(self) -> list[Box]:
        left, top, right, bottom = self.area
        at = [self.at(point) for point in self.of_kind("baseline")]
        return [Box(left, y - 1, right, y + 1) for _, y in at] + [
            Box(x - 1, top, x + 1, bottom) for x, _ in at
        ]

    # ---- parts

    def _head(self) -> str:
        width, height = f"{WIDTH:.0f}", f"{math.ceil(self.height)}"
        data = "\n".join(describe(point) for point in self.points)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" role="img"\n'
            f'     font-family="Helvetica, Arial, sans-serif" font-size="{SMALL}" fill="{INK}">\n'
            f"<title>{escape(' '.join(self.title) or f'{self.y} against {self.x.text}')}</title>\n"
            f"<desc>\n{escape(data)}\n</desc>\n"
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
        )

    def _axes(self) -> list[str]:
        left, top, right, bottom = self.area
        grid, tick = 'stroke="#e6e6e6" stroke-width="0.6"', f'stroke="{INK}" stroke-width="0.8"'
        parts = []
        for value in self.up.ticks():
            y = self.up(value)
            parts += [
                line(left, y, right, y, grid),
                words(left - 5, y + 3, f"{value:g}", 'text-anchor="end"'),
            ]
        for value in self.across.ticks():
            x = self.across(value)
            parts += [
                line(x, top, x, bottom, grid),
                line(x, bottom, x, bottom + 3, tick),
                words(x, bottom + 12, f"{value:.6g}x", 'text-anchor="middle"'),
            ]
        parts += [line(left, top, left, bottom, tick), line(left, bottom, right, bottom, tick)]
        return parts

    def _finds(self) -> list[str]:
        return [
            mark(point, DOWN, self.across(point.x), self.area.bottom - 3)
            if self.is_below(point)
            else mark(point, None, *self.at(point))
            for point in self.of_kind("find")
        ]

    def _references(self) -> list[str]:
        """Where the unchanged network stands, across the whole plot."""
        style = f'stroke="{INK}" stroke-width="0.7" stroke-dasharray="2 3"'
        left, top, right, bottom = self.area
        parts = []
        for point in self.of_kind("baseline"):
            x, y = self.at(point)
            parts += [line(left, y, right, y, style), line(x, top, x, bottom, style)]
        return parts

    def _corners(self) -> list[tuple[float, float]]:
        """Of the step line: what the finds reach at each cost."""
        corners: list[tuple[float, float]] = []
        for point in self.front():
            x, y = self.at(point)
            if corners:
                before = corners[-1]
                corners.append((before[0], y) if self.x.better > 0 else (x, before[1]))
            corners.append((x, y))
        return corners

    def _steps(self) -> str:
        corners = " ".join(f"{number(x)},{number(y)}" for x, y in self._corners())
        style = f'fill="none" stroke="{BLUE}" stroke-width="1.1"'
        return f'<polyline points="{corners}" {style}/>' if corners else ""

    def _bars(self) -> list[str]:
        parts = []
        for point in self._labelled():
            box, x = self._bar(point), self.across(point.x)
            style = f'stroke="{COLOURS[point.kind]}" stroke-width="0.8"'
            parts += [
                line(x, box.top, x, box.bottom, style),
                line(box.left, box.top, box.right, box.top, style),
                line(box.left, box.bottom, box.right, box.bottom, style),
            ]
        return parts

    def _marks(self) -> list[str]:
        parts = [mark(point, None, *self.at(point)) for point in self.front()]
        for count, point in enumerate(self.of_kind("control")):
            parts.append(mark(point, SHAPES[count % len(SHAPES)], *self.at(point)))
        parts += [mark(point, STAR, *self.at(point)) for point in self.of_kind("baseline")]
        for point in self.points:
            if point.picked:
                x, y = self.at(point)
                ring = f'r="7" fill="none" stroke="{INK}" stroke-width="0.9"'
                parts.append(f'<circle cx="{number(x)}" cy="{number(y)}" {ring}/>')
        return parts

    def _names(self) -> list[str]:
        """The labels; one that had to go far is tied to its mark."""
        parts = []
        for point, box in zip(self._labelled(), self.labels):
            if box is None:
                continue
            colour = COLOURS[point.kind]
            x, y = self.at(point)
            if tie(x, y, box):
                style = f'stroke="{colour}" stroke-width="0.5"'
                parts.append(line(x, y, *nearest(x, y, box), style))
            side, anchor = (box.left + box.right) / 2, "middle"
            if box.left > x or box.right < x:
                side, anchor = (box.left, "start") if box.left > x else (box.right, "end")
            style = f'text-anchor="{anchor}" fill="{colour}"'
            parts.append(words(side, box.bottom - 1.5, self._label(point), style))
        return parts

    def _legend(self) -> list[str]:
        """Of the finds; everything else has its name beside it."""
        parts, x = [], self.area.left
        for kind, text in (("front", "finds on the front, by number"), ("find", "other finds")):
            if not self.of_kind(kind):
                continue
            style = f'r="{number(RADIUS[kind])}" fill="{COLOURS[kind]}"'
            if kind == "front":
                stroke = f'stroke="{BLUE}" stroke-width="1.1"'
                parts.append(line(x, self.legend_y, x + 16, self.legend_y, stroke))
            parts += [
                f'<circle cx="{number(x + 8)}" cy="{number(self.legend_y)}" {style}/>',
                words(x + 20, self.legend_y + 3, text),
            ]
            x += 28 + 0.85 * text_width(text, SMALL)
        return parts

    def _texts(self) -> list[str]:
        left, top, right, bottom = self.area
        middle = 'text-anchor="middle"'
        big = f'{middle} font-size="{FONT}"'
        turned = f'{big} transform="rotate(-90 11 {number((top + bottom) / 2)})"'
        parts = [
            words(WIDTH / 2, 14 + 14 * count, text, f'{middle} font-size="{FONT + 1}"')
            for count, text in enumerate(self.title)
        ]
        parts += [
            words((left + right) / 2, bottom + 26, self.x.text, big),
            words(11, (top + bottom) / 2, self.y, turned),
        ]
        parts += [
            words(8, bottom + 42 + 11 * count, text, 'fill="#555555"')
            for count, text in enumerate(self.caption)
        ]
        return parts
