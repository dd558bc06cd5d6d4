"""Where the labels of a figure stand: near what they name, over nothing else.

Greedy placement of rectangles in pixels, y downwards; the widths of texts are upper bounds, as the
font that will draw them is not known here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

CROSSING = 20.0  # to cover a line or a dot is as bad as to stand so many pixels further away
TIED = 8.0  # a label further away than this is tied to its mark by a line
REACH = (5.0, 10.0, 17.0, 26.0, 38.0, 52.0, 70.0)  # how far from its mark a label may stand


class Box(NamedTuple):
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """The area that both cover."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across * down if across > 0 and down > 0 else 0.0

    def within(self, other: Box) -> bool:
        return (
            other.left <= self.left
            and other.top <= self.top
            and self.right <= other.right
            and self.bottom <= other.bottom
        )


def place_labels(
    anchors: Sequence[tuple[float, float, float]],
    height: float,
    area: Box,
    taken: Iterable[Box],
    avoided: Sequence[Box],
) -> list[Box | None]:
    """A place for each label (x and y of its mark, the label's width), near its mark.

    Greedy: labels come in the order of their importance, and each takes the cheapest place within
    `area` that is free of `taken` and of earlier labels.  A place costs its distance, and CROSSING
    for each of `avoided` that it covers and each label that its tie would cross.  None where there
    is no place.
    """
    blocked, crossed = list(taken), list(avoided)
    labels: list[Box] = []
    places: list[Box | None] = []
    for x, y, width in anchors:
        free = [
            (reach + CROSSING * (covers(box, crossed) + struck(tie(x, y, box), labels)), box)
            for reach in REACH
            for box in around(x, y, width, height, reach)
            if box.within(area) and not covers(box, blocked + labels)
        ]
        best = min(free, key=lambda place: place[0])[1] if free else None
        places.append(best)
        if best:
            labels.append(best)
            crossed += tie(x, y, best)
    return places


def covers(box: Box, others: Iterable[Box]) -> int:
    """How many of the others it overlaps."""
    return sum(box.overlap(other) > 0 for other in others)


def struck(dots: Sequence[Box], labels: Sequence[Box]) -> int:
    """How many labels are touched by dots of a line."""
    return sum(covers(label, dots) > 0 for label in labels)


def nearest(x: float, y: float, box: Box) -> tuple[float, float]:
    """The point of a box that is nearest to (x, y)."""
    return min(max(x, box.left), box.right), min(max(y, box.top), box.bottom)


def tie(x: float, y: float, box: Box) -> list[Box]:
    """The line that ties a label to its mark, as dots; none where it is near enough without."""
    near_x, near_y = nearest(x, y, box)
    if math.hypot(near_x - x, near_y - y) <= TIED:
        return []
    dots = [(x + (near_x - x) * n / 8, y + (near_y - y) * n / 8) for n in range(1, 8)]
    return [Box(x - 1, y - 1, x + 1, y + 1) for x, y in dots]


def around(x: float, y: float, width: float, height: float, reach: float) -> list[Box]:
    """Places around a mark, the usual ones first: right, left, above, below, the corners."""
    corner = 0.75 * reach
    offsets = [
        (reach, -height / 2),
        (-reach - width, -height / 2),
        (-width / 2, -reach - height),
        (-width / 2, reach),
        (corner, -corner - height),
        (-corner - width, -corner - height),
        (corner, corner),
        (-corner - width, corner),
    ]
    return [Box(x + dx, y + dy, x + dx + width, y + dy + height) for dx, dy in offsets]


def text_width(text: str, size: float) -> float:
    """An upper bound in pixels for the usual sans-serif fonts."""

    def advance(letter: str) -> float:
        if letter in " ,.:;()|!'ijlftrI-":
            return 0.4
        return 1.0 if letter in "mwMW%" or ord(letter) > 0x2E7F else 0.66

    return size * sum(map(advance, text))


def wrap(text: str, size: float, width: float) -> list[str]:
    """Lines of at most `width` pixels; a word that is longer is cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}", size) <= width:
            lines[-1] += f" {word}"
            continue
        lines.append("")
        for letter in word:
            if text_width(lines[-1] + letter, size) > width:
                lines.append("")
            lines[-1] += letter
    return lines
