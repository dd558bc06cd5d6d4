"""Where the labels of a figure stand: near what they name, over nothing else.

Greedy placement of rectangles, y downwards, in the unit of whoever asks (points of a figure).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

CROSSING = 20.0  # to cover a line or a dot is as bad as to stand so much further away
TIED = 8.0  # a label further away than this is tied to its mark by a line
MOST = 40  # labels of a figure: more would hide it, and take long
NEAR = (5.0, 8.0, 12.0, 17.0)  # how far from its mark a label stands if it can
STEP = 6.0  # of the places that are tried where none of these is free


class Box(NamedTuple):
    """A rectangle, y downwards."""

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
    anchors: Sequence[tuple[float, float, float, float]],
    area: Box,
    taken: Iterable[Box],
    avoided: Sequence[Box],
) -> list[Box | None]:
    """A place for each label (x and y of its mark, the label's width and height), near its mark.

    Greedy: labels come in the order of their importance, and each takes the cheapest place within
    `area` that is free of `taken` and of earlier labels.  A place costs its distance, and CROSSING
    for each of `avoided` that it covers and each label that its tie would cross.  None where there
    is no place, and behind the first MOST.
    """
    blocked, crossed = list(taken), list(avoided)
    labels: list[Box] = []
    places: list[Box | None] = [None] * len(anchors)
    for at, (x, y, width, height) in enumerate(anchors[:MOST]):
        best = None
        for offers in (around(x, y, width, height), everywhere(area, width, height)):
            free = [box for box in offers if box.within(area) and not covers(box, blocked)]
            if free:
                best = min(free, key=lambda box: cost(x, y, box, crossed, labels))
                break
        places[at] = best
        if best:
            labels.append(best)
            blocked.append(best)
            crossed += tie(x, y, best)
    return places


def cost(x: float, y: float, box: Box, crossed: Sequence[Box], labels: Sequence[Box]) -> float:
    """What it costs to name the mark at (x, y) there."""
    near_x, near_y = nearest(x, y, box)
    lines = covers(box, crossed) + struck(tie(x, y, box), labels)
    return math.hypot(near_x - x, near_y - y) + CROSSING * lines


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


def around(x: float, y: float, width: float, height: float) -> Iterator[Box]:
    """Places around a mark, the usual ones first: right, left, above, below, the corners."""
    for reach in NEAR:
        corner = 0.75 * reach
        for dx, dy in (
            (reach, -height / 2),
            (-reach - width, -height / 2),
            (-width / 2, -reach - height),
            (-width / 2, reach),
            (corner, -corner - height),
            (-corner - width, -corner - height),
            (corner, corner),
            (-corner - width, corner),
        ):
            yield Box(x + dx, y + dy, x + dx + width, y + dy + height)


def everywhere(area: Box, width: float, height: float) -> Iterator[Box]:
    """Places all over the area."""
    across = max(0, int((area.right - area.left - width) / STEP))
    down = max(0, int((area.bottom - area.top - height) / STEP))
    for row in range(down + 1):
        for column in range(across + 1):
            left, top = area.left + STEP * column, area.top + STEP * row
            yield Box(left, top, left + width, top + height)


def wrap(text: str, width: Callable[[str], float], most: float) -> list[str]:
    """Lines of at most `most` by `width(line)`; a word that is longer is cut."""
    lines: list[str] = []
    for word in text.split():
        if lines and width(f"{lines[-1]} {word}") <= most:
            lines[-1] += f" {word}"
            continue
        lines.append(word)
        while width(lines[-1]) > most and len(lines[-1]) > 1:
            cut = len(lines[-1]) - 1
            while cut > 1 and width(lines[-1][:cut]) > most:
                cut -= 1
            lines[-1:] = [lines[-1][:cut], lines[-1][cut:]]
    return lines
