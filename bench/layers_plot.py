"""The figure of `./dev bench layers`: how many times faster than the tuned standard convolution, a
group of bars for each layer. SVG as text: the same rows, the same bytes."""

from __future__ import annotations

from typing import Any
from xml.sax.saxutils import escape

Row = dict[str, Any]

# Okabe and Ito's palette, which the colour-blind tell apart
COLOURS = {"split": "#e69f00", "unroll": "#56b4e9", "slabs": "#999999", "figure 6": "#0072b2"}
BAR, GAP, LEFT, TOP, HEIGHT, FOOT = 15, 22, 44, 44, 220, 52
STYLE = 'font-family="DejaVu Sans, Arial, sans-serif" font-size="11" fill="#222222"'


def text(x: float, y: float, words: str, anchor: str = "middle", size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(words)}</text>"
    )


def grid(top: float, right: float, step: float) -> list[str]:
    lines, value = [], 0.0
    while value <= top:
        y = TOP + HEIGHT * (1 - value / top)
        ink = "#222222" if value == 1 else "#dddddd"
        lines.append(f'<path d="M{LEFT} {y:.1f}H{right:.1f}" stroke="{ink}"/>')
        lines.append(text(LEFT - 6, y + 4, f"{value:g}x", "end"))
        value += step
    return lines


def key(x: float) -> list[str]:
    parts = []
    for name, colour in COLOURS.items():
        parts.append(f'<rect x="{x:.1f}" y="24" width="10" height="10" fill="{colour}"/>')
        parts.append(text(x + 14, 33, name, "start"))
        x += 34 + 7 * len(name)
    return parts


def bars(row: Row, x: float, top: float) -> list[str]:
    parts = []
    for i, (name, colour) in enumerate(COLOURS.items()):
        speed = row["faster"].get(name)
        if speed is None:
            continue
        tall, left = HEIGHT * speed / top, x + i * BAR
        parts.append(
            f'<rect x="{left:.1f}" y="{TOP + HEIGHT - tall:.1f}" width="{BAR - 2}" '
            f'height="{tall:.1f}" fill="{colour}"/>'
        )
        parts.append(text(left + BAR / 2 - 1, TOP + HEIGHT - tall - 3, f"{speed:.1f}", size=9))
    middle = x + len(COLOURS) * BAR / 2
    parts.append(text(middle, TOP + HEIGHT + 16, row["name"].removesuffix(" s2")))
    if row["name"].endswith(" s2"):
        parts.append(text(middle, TOP + HEIGHT + 30, "stride 2"))
    return parts


def draw(rows: list[Row], title: str, remark: str) -> str:
    rows = [row for row in rows if row.get("faster")]
    most = max((speed for row in rows for speed in row["faster"].values()), default=1.0)
    step = 0.5 if most < 4 else 1.0 if most < 10 else 2.0
    top = (most // step + 1) * step
    group = len(COLOURS) * BAR + GAP
    right = LEFT + GAP + group * len(rows)
    parts = [text(LEFT, 14, title, "start", 12), *key(LEFT), *grid(top, right, step)]
    for i, row in enumerate(rows):
        parts += bars(row, LEFT + GAP + i * group, top)
    parts.append(text(LEFT, TOP + HEIGHT + FOOT - 4, remark, "start", 10))
    size = f'width="{right + 10:.0f}" height="{TOP + HEIGHT + FOOT}"'
    first = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {STYLE}>'
    return "\n".join(
        [first, '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>\n"]
    )
