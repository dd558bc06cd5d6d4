"""The figure of a study, drawn by matplotlib: accuracy against what it costs.

    points, words --> lines of text measured --> axes, marks, bars --> labels placed --> a file

As wide as a column of a paper.  The colours are safe for the colour-blind, and finds, controls and
the unchanged network differ in shape and line as well: a filled circle and a solid line, a hollow
mark and a dashed line, a star and dotted lines.  Finds are drawn above controls.  The unchanged
network and the finds with a name set the axes (axis_range.py); what is far worse than these is a
triangle at the edge, with its value in its label.  Text is measured by the renderer, in the font
that matplotlib brings; the same points give the same bytes.  No display is needed or opened.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..text import printable
from .axis_range import Inside, limits, moved_inside, shown_values, typical
from .drawn import DPI, INK, SMALL, empty_figure, own_settings
from .labels import Box, nearest, place_labels, tie, wrap

FORMS = ("svg", "png", "pdf")

# Blue and vermilion of Okabe and Ito's palette, the latter darker to be read as text.
GREY, BLUE, VERMILION, PAPER = "#8f8f8f", "#0072b2", "#c95400", "#ffffff"
GRID, FAINT = "#e6e6e6", "#555555"
COLOURS = {"baseline": INK, "control": VERMILION, "front": BLUE, "find": GREY}
SIZES = {"baseline": 8.5, "control": 5.2, "front": 4.6, "find": 3.2}  # of marks, points
SHAPES = "sDPXhpd8"  # of controls, from the first again where there are more
ABOVE = ("baseline", "control", "find", "front")  # kinds from the lowest to the highest

WIDTH, PLOT_HEIGHT = 252.0, 150.0  # points; 252 are 3.5 inches
LEFT, RIGHT, FOOT = 34.0, 8.0, 26.0
DOTTED, DASHED = (0, (2, 3)), (0, (5, 2))  # lengths of a line and its gap, in line widths
LEGEND = 9.6  # height of a row of it, points
FONT, LINE = 7.5, 8.6


class Axis(NamedTuple):
    """What an axis shows."""

    text: str
    better: int  # 1: more is better, -1: less


@dataclass(frozen=True)
class Point:
    """A candidate in the units of the axes: `x` a ratio, `y` and `error` in percent.  The kind
    `front` is that of finds with a name: the best of each budget, and those on the front.
    """

    name: str
    kind: str  # baseline, control, front or find
    x: float
    y: float
    error: float
    picked: bool = False
    on_front: bool = False  # no point of its own kind, find or not, is better on both axes
    unit: str = " %"  # of y, with the blank before it

    @property
    def is_find(self) -> bool:
        return self.kind in ("front", "find")

    @property
    def label(self) -> str:
        return "unchanged" if self.kind == "baseline" else self.name

    def __str__(self) -> str:
        name = f"find {self.name}" if self.is_find else self.name
        return f"{name}: {self.y:.2f}{self.unit} (+- {self.error:.2f}) at {self.x:.3g}x"


def draw(
    points: Sequence[Point], x: Axis, y: Axis, caption: str, title: str, form: str = "svg"
) -> bytes:
    """The figure as a file of one of FORMS."""
    with own_settings():
        return complete(points, x, y, caption, title).save(form)


def complete(points: Sequence[Point], x: Axis, y: Axis, caption: str, title: str) -> Drawing:
    """The drawing, whose caption tells the names that found no room."""
    drawing = Drawing(points, x, y, caption, title)
    if not (unnamed := drawing.unnamed()):
        return drawing
    return Drawing(points, x, y, f"{caption} No room for the names of {unnamed}.", title)


class Drawing:
    """A figure with everything at its place; `labels` are its texts in the order of
    `labelled()`, None where there is no room, and `marks` its signs by point.
    """

    def __init__(
        self, points: Sequence[Point], x: Axis, y: Axis, caption: str, title: str
    ) -> None:
        self.points, self.x, self.y = list(points), x, y
        self.title = printable(title) or f"{y.text} against {x.text}"
        self.is_log = is_wide([point.x for point in points])
        self.x_limits, self.y_limits = self._limits()
        if outside := sum(any(self.inside(point).sides) for point in points):
            caption += f" Triangles at the edge: {outside} outside the axes."
        heads = self._wrapped(printable(title), FONT + 0.5)
        lines = self._wrapped(printable(caption), SMALL)
        top = 3 + LINE * 1.3 * len(heads) + LEGEND * -(-len(self.legend()) // 2) + 2
        self.height = top + PLOT_HEIGHT + FOOT + LINE * (len(lines) + 0.4)
        self.figure = empty_figure(WIDTH, self.height)
        self._write(heads, 8.0, FONT + 0.5, INK, 1.3)
        rect = (LEFT, self.height - top - PLOT_HEIGHT, WIDTH - LEFT - RIGHT, PLOT_HEIGHT)
        scale = (WIDTH, self.height, WIDTH, self.height)
        self.axes = self.figure.add_axes([a / b for a, b in zip(rect, scale)])
        self._axes()
        self.marks = [self._mark(point) for point in self.points]
        self._front()
        self._bars()
        self.renderer = self.figure.canvas.get_renderer()
        self.labels = self._place_labels()
        self._write(lines, top + PLOT_HEIGHT + FOOT + LINE * 0.6, SMALL, FAINT, 1.0)

    def save(self, form: str) -> bytes:
        values = "\n".join(map(str, self.points))
        about: dict[str, dict[str, Any]] = {
            "svg": {"Date": None, "Title": self.title, "Description": values},
            "png": {"Software": None, "Title": self.title, "Description": values},
            "pdf": {"CreationDate": None, "Title": self.title, "Subject": values},
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

    # ---- what the axes show -------------------------------------------------------------------

    def _across(self, x: float) -> float:
        """A ratio in the unit in which the x axis is linear."""
        return math.log10(x) if self.is_log else x

    def _limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The limits of x, as `_across` has it, and of y.  A point that is far worse than the
        unchanged network and the finds is left outside, and sets neither axis.
        """
        kept = self.of_kind("baseline", "front")
        if not self.of_kind("front"):
            kept = self.of_kind("baseline", "find")
        heights = [point.y for point in self.points]
        most = [p.y for p in kept] if any(p.is_find for p in kept) else typical(heights)
        low, high = shown_values(most or heights, heights, self.y.better)
        while True:
            shown = [point for point in self.points if low <= point.y <= high]
            bars = [point.y + side * point.error for point in shown for side in (-1, 1)]
            low, high = limits(bars)
            if all(not low <= p.y <= high or p in shown for p in self.points):
                break
        return limits([self._across(point.x) for point in [*kept, *shown]]), (low, high)

    def inside(self, point: Point) -> Inside:
        """Where the mark of a point is drawn, in data units."""
        x, beside = moved_inside(self._across(point.x), *self.x_limits)
        y, above = moved_inside(point.y, *self.y_limits)
        across = 10**x if self.is_log else x
        return Inside(across if beside else point.x, y, (beside, above))

    def label_of(self, point: Point) -> str:
        """The name of a point, with its values that the axes do not show."""
        beside, above = self.inside(point).sides
        values = [f"{point.y:.3g}{point.unit}"] * bool(above) + [f"{point.x:.2g}x"] * bool(beside)
        return f"{point.label} ({', '.join(values)})" if values else point.label

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

    def _axes(self) -> None:
        from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

        axes = self.axes
        axes.set_ylim(*self.y_limits)
        first, last = self.x_limits
        if self.is_log:
            axes.set_xscale("log")
            axes.set_xlim(10**first, 10**last)
            axes.xaxis.set_major_locator(FixedLocator(log_ticks(first, last)))
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            axes.set_xlim(first, last)
            axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}x"))
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.tick_params(width=0.6, length=2.5, pad=2)
        axes.grid(color=GRID, linewidth=0.5)
        axes.set_xlabel(self.x.text, fontsize=SMALL + 0.4, labelpad=2)
        axes.set_ylabel(self.y.text, fontsize=FONT, labelpad=2)
        for point in self.of_kind("baseline"):
            style = {"color": INK, "linewidth": 0.6, "linestyle": DOTTED, "zorder": 1}
            axes.axhline(point.y, **style)
            axes.axvline(point.x, **style)

    def _mark(self, point: Point) -> Any:
        """The mark of a point."""
        place, height = self.inside(point), ABOVE.index(point.kind)
        if point.picked:
            self.axes.plot(
                [place.x],
                [place.y],
                marker="o",
                markersize=11,
                fillstyle="none",
                color=INK,
                markeredgewidth=0.8,
                zorder=9,
                gid="ring",
            )
        style = {
            **mark_style(point.kind),
            "marker": place.mark or self._shape(point),
            "markersize": SIZES[point.kind] + 1.6 * (place.mark != ""),
            "zorder": 3 + height,
            "gid": point_id(point),
        }
        return self.axes.plot([place.x], [place.y], linestyle="", **style)[0]

    def _shape(self, point: Point) -> str:
        if point.kind != "control":
            return "*" if point.kind == "baseline" else "o"
        return SHAPES[self.of_kind("control").index(point) % len(SHAPES)]

    def corners(self, finds: bool) -> list[tuple[float, float]]:
        """The corners of the steps that finds reach at each cost, or controls: left to right."""
        corners: list[tuple[float, float]] = []
        kinds = ("front", "find") if finds else ("control",)
        front = [point for point in self.of_kind(*kinds) if point.on_front]
        for point in sorted(front, key=lambda point: (point.x, -point.y)):
            if corners and corners[-1] == (point.x, point.y):
                continue
            if corners:
                x, y = corners[-1]
                corners.append((x, point.y) if self.x.better > 0 else (point.x, y))
            corners.append((point.x, point.y))
        return corners

    def legend(self) -> list[tuple[str, str, tuple[int, tuple[int, ...]] | str]]:
        """Kind, words and line of each entry, of the kinds that are drawn."""
        entries: tuple[tuple[str, str, Any], ...] = (
            ("front", "finds: front or best", "-"),
            ("find", "other finds", ""),
            ("control", "known operators (controls)", DASHED),
            ("baseline", "unchanged network", DOTTED),
        )
        return [entry for entry in entries if self.of_kind(entry[0])]

    def _front(self) -> None:
        """The steps of finds and of controls, and the legend."""
        from matplotlib.lines import Line2D

        for is_find, kind, line, gid in (
            (False, "control", DASHED, "control-steps"),
            (True, "front", "-", "steps"),
        ):
            if corners := self.corners(is_find):
                xs, ys = zip(*corners)
                style = {"color": COLOURS[kind], "linestyle": line, "linewidth": 0.9}
                self.axes.plot(xs, ys, zorder=2 + is_find * 0.2, gid=gid, **style)
        handles = [
            Line2D(
                [],
                [],
                color=COLOURS[kind],
                linestyle=line,
                linewidth=0.6 if kind == "baseline" else 0.9,
                label=text,
                **{
                    **mark_style(kind),
                    "marker": {"baseline": "*", "control": SHAPES[0]}.get(kind, "o"),
                },
            )
            for kind, text, line in self.legend()
        ]
        if handles:
            self.axes.legend(
                handles=handles,
                loc="lower left",
                bbox_to_anchor=(0, 1.0),
                ncols=2,
                frameon=False,
                borderaxespad=0.2,
                handletextpad=0.5,
                columnspacing=1.2,
                labelspacing=0.35,
                markerscale=1.0,
            )

    def _bars(self) -> None:
        for point in self.labelled():
            if any(self.inside(point).sides):
                continue
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
            self.figure.text(
                0, 0, self.label_of(p), fontsize=SMALL, color=COLOURS[p.kind], gid="label"
            )
            for p in marked
        ]
        sizes = [self.box(text) for text in texts]
        anchors = [
            (*self.at(*self.inside(p)[:2]), size.right - size.left, size.bottom - size.top)
            for p, size in zip(marked, sizes)
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
        for corners in (self.corners(True), self.corners(False)):
            for one, other in itertools.pairwise(corners):
                (a, b), (c, d) = self.at(*one), self.at(*other)
                boxes.append(Box(min(a, c) - 1, min(b, d) - 1, max(a, c) + 1, max(b, d) + 1))
        return boxes


def mark_style(kind: str) -> dict[str, Any]:
    """The mark of a kind without its shape: that of a control is hollow."""
    return {
        "markersize": SIZES[kind],
        "markerfacecolor": PAPER if kind == "control" else COLOURS[kind],
        "markeredgecolor": COLOURS[kind] if kind == "control" else PAPER,
        "markeredgewidth": 0.9 if kind == "control" else 0.4,
    }


def point_id(point: Point) -> str:
    """What the mark of a point is called in the file."""
    return str(point).partition(":")[0]


def is_sign(line: Any) -> bool:
    """Whether a line of the axes is the sign of a point or the ring around one."""
    return line.get_gid() not in (None, "steps", "control-steps")


def grown(box: Box, by: float) -> Box:
    return Box(box.left - by, box.top - by, box.right + by, box.bottom + by)


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
