"""The figure of a study, drawn by matplotlib: accuracy against what it costs.

    points, words --> lines of text measured --> axes, marks, bars --> labels placed --> a file

As wide as a column of a paper; its colours are told apart by the colour-blind, and shapes tell the
kinds apart without colour.  Text is measured by the renderer, in the font that matplotlib brings;
the same points give the same bytes.  No display is needed or opened.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..text import printable
from .drawn import DPI, SMALL, empty_figure, own_settings
from .labels import Box, nearest, place_labels, tie, wrap

FORMS = ("svg", "png", "pdf")

# Blue and vermilion of Okabe and Ito's palette, the latter darker to be read as text.
INK, GREY, BLUE, VERMILION = "#222222", "#9a9a9a", "#0072b2", "#c95400"
COLOURS = {"baseline": INK, "control": VERMILION, "front": BLUE, "find": GREY}
SIZES = {"baseline": 8.5, "control": 5.2, "front": 4.6, "find": 2.6}  # of marks, points
SHAPES = "s^DPXhp<>d"  # of controls, from the first again where there are more
BELOW = "v"  # a find below the axis

WIDTH, PLOT_HEIGHT = 252.0, 150.0  # points; 252 are 3.5 inches
LEFT, RIGHT, FOOT = 34.0, 8.0, 26.0
FONT, LINE = 7.5, 8.6


class Axis(NamedTuple):
    """What can be drawn to the right."""

    text: str
    better: int  # 1: more is better, -1: less


@dataclass(frozen=True)
class Point:
    """A candidate in the units of the axes: `x` a ratio, `y` and `error` in percent.  The kind
    `front` is that of finds with a name: the chosen ones, and those on the front.
    """

    name: str
    kind: str  # baseline, control, front or find
    x: float
    y: float
    error: float
    picked: bool = False
    on_front: bool = False

    @property
    def label(self) -> str:
        return "unchanged" if self.kind == "baseline" else self.name

    def __str__(self) -> str:
        name = f"find {self.name}" if self.kind in ("front", "find") else self.name
        return f"{name}: {self.y:.2f} % (+- {self.error:.2f}) at {self.x:.3g}x"


def draw(
    points: Sequence[Point], x: Axis, y: str, caption: str, title: str, form: str = "svg"
) -> bytes:
    """The figure as a file of one of FORMS."""
    with own_settings():
        return complete(points, x, y, caption, title).save(form)


def complete(points: Sequence[Point], x: Axis, y: str, caption: str, title: str) -> Drawing:
    """The drawing, whose caption tells the names that found no room."""
    drawing = Drawing(points, x, y, caption, title)
    if not (unnamed := drawing.unnamed()):
        return drawing
    return Drawing(points, x, y, f"{caption} No room for the names of {unnamed}.", title)


class Drawing:
    """A figure with everything at its place; `labels` are its texts in the order of
    `labelled()`, None where there is no room, and `marks` its signs by point.
    """

    def __init__(self, points: Sequence[Point], x: Axis, y: str, caption: str, title: str) -> None:
        self.points, self.x = list(points), x
        self.title = printable(title) or f"{y} against {x.text}"
        low, high = limits([edge for point in self._leading() for edge in edges(point)])
        self.foot = low
        if below := sum(point.y < low for point in points):
            caption += f" Triangles at the foot: {below} below the axis."
        heads = self._wrapped(printable(title), FONT + 0.5)
        lines = self._wrapped(printable(caption), SMALL)
        legend = 13.0 if any(point.kind in ("front", "find") for point in points) else 4.0
        top = 3 + LINE * 1.3 * len(heads) + legend
        self.height = top + PLOT_HEIGHT + FOOT + LINE * (len(lines) + 0.4)
        self.figure = empty_figure(WIDTH, self.height)
        self._write(heads, 8.0, FONT + 0.5, INK, 1.3)
        rect = (LEFT, self.height - top - PLOT_HEIGHT, WIDTH - LEFT - RIGHT, PLOT_HEIGHT)
        scale = (WIDTH, self.height, WIDTH, self.height)
        self.axes = self.figure.add_axes([a / b for a, b in zip(rect, scale)])
        self._axes(y, low, high)
        self.marks = [self._mark(point) for point in self.points]
        self._front()
        self._bars()
        self.renderer = self.figure.canvas.get_renderer()
        self.labels = self._place_labels()
        self._write(lines, top + PLOT_HEIGHT + FOOT + LINE * 0.6, SMALL, "#555555", 1.0)

    def save(self, form: str) -> bytes:
        told = "\n".join(map(str, self.points))
        about: dict[str, dict[str, Any]] = {
            "svg": {"Date": None, "Title": self.title, "Description": told},
            "png": {"Software": None, "Title": self.title, "Description": told},
            "pdf": {"CreationDate": None, "Title": self.title, "Subject": told},
        }
        file = io.BytesIO()
        self.figure.savefig(file, format=form, dpi=DPI, metadata=about[form])
        return file.getvalue()

    def of_kind(self, *kinds: str) -> list[Point]:
        return [point for point in self.points if point.kind in kinds]

    def labelled(self) -> list[Point]:
        """The most important first: baseline, controls, then finds from the most accurate."""
        finds = sorted(self.of_kind("front"), key=lambda point: -point.y)
        return self.of_kind("baseline") + self.of_kind("control") + finds

    def unnamed(self) -> str:
        """The names that found no room, the first few of them."""
        names = [p.label for p, text in zip(self.labelled(), self.labels) if text is None]
        more = [f"{len(names) - 8} more"] if len(names) > 8 else []
        return ", ".join([*names[:8], *more])

    def _leading(self) -> list[Point]:
        """What the axes must hold; other finds may be far below."""
        return [point for point in self.points if point.kind != "find"] or self.points

    # ---- text ---------------------------------------------------------------------------------

    def _wrapped(self, text: str, size: float) -> list[str]:
        """Lines that are no wider than the figure, as the renderer measures them."""
        measure = empty_figure(WIDTH, 10).text(0, 0, "", fontsize=size)
        renderer = measure.figure.canvas.get_renderer()

        def width(line: str) -> float:
            measure.set_text(line)
            return float(measure.get_window_extent(renderer).width) * 72 / DPI

        return wrap(text, width, WIDTH - 12)

    def _write(
        self, lines: Sequence[str], top: float, size: float, colour: str, spacing: float
    ) -> None:
        """Lines from `top` points below the upper edge."""
        for number, line in enumerate(lines):
            y = 1 - (top + LINE * spacing * number) / self.height
            self.figure.text(
                6 / WIDTH, y, line, fontsize=size, color=colour, va="center", gid="words"
            )

    # ---- axes and marks -----------------------------------------------------------------------

    def _axes(self, y: str, low: float, high: float) -> None:
        from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

        axes = self.axes
        axes.set_ylim(low, high)
        values = [point.x for point in self.points]
        if is_wide(values):
            axes.set_xscale("log")
            first, last = limits([math.log10(value) for value in values])
            axes.set_xlim(10**first, 10**last)
            axes.xaxis.set_major_locator(FixedLocator(log_ticks(first, last)))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.set_xlim(*limits(values))
            axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}x"))
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.tick_params(width=0.6, length=2.5, pad=2)
        axes.grid(color="#e6e6e6", linewidth=0.5)
        axes.set_xlabel(self.x.text, fontsize=SMALL + 0.4, labelpad=2)
        axes.set_ylabel(y, fontsize=FONT, labelpad=2)
        for point in self.of_kind("baseline"):
            style = {"color": INK, "linewidth": 0.6, "linestyle": (0, (2, 3)), "zorder": 1}
            axes.axhline(point.y, **style)
            axes.axvline(point.x, **style)

    def _mark(self, point: Point) -> Any:
        """The sign of a point."""
        is_below = point.y < self.foot
        shape = {"baseline": "*", "control": self._shape(point)}.get(point.kind, "o")
        bottom, top = self.axes.get_ylim()
        height = bottom + 0.02 * (top - bottom) if is_below else point.y
        style = {
            "marker": BELOW if is_below else shape,
            "markersize": SIZES[point.kind] + 0.8 * is_below,
            "markerfacecolor": COLOURS[point.kind],
            "markeredgecolor": "white",
            "markeredgewidth": 0.4,
            "zorder": 3 + list(SIZES)[::-1].index(point.kind),
            "gid": str(point).partition(":")[0],
        }
        if point.picked:
            self.axes.plot(
                [point.x],
                [height],
                marker="o",
                markersize=11,
                fillstyle="none",
                color=INK,
                markeredgewidth=0.8,
                zorder=9,
                gid="ring",
            )
        return self.axes.plot([point.x], [height], linestyle="", **style)[0]

    def _shape(self, point: Point) -> str:
        controls = self.of_kind("control")
        return SHAPES[controls.index(point) % len(SHAPES)] if point in controls else ""

    def corners(self) -> list[tuple[float, float]]:
        """Of the line in steps: what is reached at each cost, from left to right."""
        corners: list[tuple[float, float]] = []
        front = [point for point in self.points if point.on_front]
        for point in sorted(front, key=lambda point: (point.x, -point.y)):
            if corners and corners[-1] == (point.x, point.y):
                continue
            if corners:
                x, y = corners[-1]
                corners.append((x, point.y) if self.x.better > 0 else (point.x, y))
            corners.append((point.x, point.y))
        return corners

    def _front(self) -> None:
        """The steps, and a legend of the finds; all else has its name beside it."""
        from matplotlib.lines import Line2D

        corners = self.corners()
        if corners:
            xs, ys = zip(*corners)
            self.axes.plot(xs, ys, color=BLUE, linewidth=0.9, zorder=2, gid="steps")
        shown = [
            Line2D([], [], marker="o", color=COLOURS[kind], label=text, **style)
            for kind, text, style in (
                ("front", "finds on the front or chosen", {"markersize": 4.6, "linewidth": 0.9}),
                ("find", "other finds", {"markersize": 2.6, "linestyle": ""}),
            )
            if self.of_kind(kind)
        ]
        if shown:
            self.axes.legend(
                handles=shown,
                loc="lower left",
                bbox_to_anchor=(0, 1.0),
                ncols=2,
                frameon=False,
                borderaxespad=0.2,
                handletextpad=0.5,
                columnspacing=1.2,
                markerscale=1.0,
            )

    def _bars(self) -> None:
        for point in self.labelled():
            self.axes.errorbar(
                [point.x],
                [point.y],
                [[point.error]],
                color=COLOURS[point.kind],
                linewidth=0.7,
                capsize=1.6,
                capthick=0.7,
                fmt="none",
                zorder=2.5,
            )

    # ---- labels -------------------------------------------------------------------------------

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Where a value stands: points from the upper left corner of the figure."""
        left, up = self.axes.transData.transform((x, y)) * 72 / DPI
        return float(left), self.height - float(up)

    def box(self, artist: Any) -> Box:
        """What a sign or a text covers, in the same units."""
        extent = artist.get_window_extent(self.renderer)
        left, low, right, high = (value * 72 / DPI for value in extent.extents)
        return Box(left, self.height - high, right, self.height - low)

    def _place_labels(self) -> list[Any]:
        """Texts beside their marks, tied to them by a line where they had to go far."""
        marked = self.labelled()
        texts = [
            self.figure.text(0, 0, p.label, fontsize=SMALL, color=COLOURS[p.kind], gid="label")
            for p in marked
        ]
        sizes = [self.box(text) for text in texts]
        anchors = [
            (*self.at(point.x, point.y), size.right - size.left, size.bottom - size.top)
            for point, size in zip(marked, sizes)
        ]
        places = place_labels(
            anchors,
            self.box(self.axes.patch),
            [grown(self.box(line), 0.4) for line in self.axes.lines if is_sign(line)],
            self._crossed(),
        )
        return [
            self._label(text, anchor, size, place)
            for text, anchor, size, place in zip(texts, anchors, sizes, places)
        ]

    def _label(
        self, text: Any, anchor: tuple[float, float, float, float], size: Box, place: Box | None
    ) -> Any:
        if place is None:
            text.remove()
            return None
        # The origin of the text lies inside of its box: move it as the box moves.
        text.set_position(
            ((place.left - size.left) / WIDTH, (size.bottom - place.bottom) / self.height)
        )
        x, y = anchor[:2]
        if tie(x, y, place):
            from matplotlib.lines import Line2D

            ends = ((x, y), nearest(x, y, place))
            xs, ys = ([end[0] / WIDTH for end in ends], [1 - end[1] / self.height for end in ends])
            style = {"color": text.get_color(), "linewidth": 0.4, "gid": "tie", "zorder": 1}
            self.figure.add_artist(Line2D(xs, ys, transform=self.figure.transFigure, **style))
        return text

    def _crossed(self) -> list[Box]:
        """What a label should not cover where there is room elsewhere: bars and lines."""
        boxes = []
        for point in self.labelled():
            (x, low), (_, high) = (self.at(point.x, point.y + s * point.error) for s in (-1, 1))
            boxes.append(Box(x - 2, high, x + 2, low))
        area = self.box(self.axes.patch)
        for point in self.of_kind("baseline"):
            x, y = self.at(point.x, point.y)
            boxes.append(Box(area.left, y - 1, area.right, y + 1))
            boxes.append(Box(x - 1, area.top, x + 1, area.bottom))
        for one, other in itertools.pairwise(self.corners()):
            (a, b), (c, d) = self.at(*one), self.at(*other)
            boxes.append(Box(min(a, c) - 1, min(b, d) - 1, max(a, c) + 1, max(b, d) + 1))
        return boxes


def is_sign(line: Any) -> bool:
    """Whether a line of the axes is the sign of a point or the ring around one."""
    return line.get_gid() not in (None, "steps")


def edges(point: Point) -> tuple[float, float]:
    return point.y - point.error, point.y + point.error


def grown(box: Box, by: float) -> Box:
    return Box(box.left - by, box.top - by, box.right + by, box.bottom + by)


def limits(values: Sequence[float]) -> tuple[float, float]:
    """Of an axis: a little more than what is shown."""
    low, high = min(values), max(values)
    room = 0.12 * (high - low) or abs(high) * 0.1 or 1.0
    return low - room, high + room


def is_wide(values: Sequence[float]) -> bool:
    """Whether ratios span so much that their logarithms are drawn."""
    return min(values) > 0 and max(values) / min(values) > 8


def log_ticks(first: float, last: float) -> list[float]:
    """Round numbers from 10^first to 10^last, four or more where there are as many."""
    found: list[float] = []
    for digits in ((1,), (1, 3), (1, 2, 5)):
        found = [
            digit * 10.0**decade
            for decade in range(math.floor(first), math.ceil(last))
            for digit in digits
            if first <= math.log10(digit) + decade <= last
        ]
        if len(found) >= 4:
            break
    return found
