"""ResNet-34's 3x3 convolutions and four replacements, each tuned natively, layer by layer.

    ./dev bench layers [--rounds N] [--seconds S] [--figure FILE.svg] [LAYER...]

Contenders (layers_cases.py) are the standard convolution, NAS-PTE's three sequences and the
kernel of figure 6. `quick` tunes each for S seconds from nothing, and each result is compared
with torch's. Then the five of a layer and oneDNN's standard convolution take turns in one
process, timed by the thread's processor time. A speed is the median of the rounds' ratios to the
tuned standard convolution. LAYERs choose those whose names hold one of them. --figure draws the
bars.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import harness
import numpy as np
from bench_native import duration
from contenders import Chain, Timer, aligned, check, ratio, turns
from harness import geometric
from layers_cases import CONTENDERS, LAYERS, Contender
from native_cases import conv_onednn
from native_programs import Conv
from tune_worker import Bench, Native, of_chain

Row = dict[str, Any]
QUIET = 1.5  # of a load average: above it others ran, too
LOADED = "measured while other programs loaded the machine: no result"
# Okabe and Ito's palette for colour-blind readers
COLOURS = {"split": "#e69f00", "unroll": "#56b4e9", "slabs": "#999999", "figure 6": "#0072b2"}
BAR, GAP, LEFT, TOP, HEIGHT, FOOT = 15, 22, 44, 44, 220, 52
STYLE = 'font-family="DejaVu Sans, Arial, sans-serif" font-size="11" fill="#222222"'


def tuned(bench: Bench, c: Contender, row: Row) -> Native:
    """The winner as code, after its result was compared with torch's."""
    found, cpu = bench.search(
        c.program, "quick", seconds=bench.options.seconds, seed=bench.options.seed
    )
    row["cpu_s"] = row.get("cpu_s", 0.0) + cpu
    row["rules"][c.name] = found.rule
    row["macs"][c.name] = c.macs
    native = bench.native(found.program, found.schedule, c.arrays)
    native.timer(1)
    tensors = [bench.torch.from_numpy(aligned(a)) for a in c.arrays]
    results = c.torch(tensors[0].movedim(-1, 1), *tensors[1:])
    for out, wanted in zip(native.out, results, strict=True):
        last = np.ascontiguousarray(wanted.movedim(1, -1).numpy())
        check(c.name, out, last.reshape(out.shape))
    return native


def onednn(bench: Bench, c: Conv, standard: Contender) -> Timer | None:
    if not bench.speed.onednn:
        return None
    image, w = standard.arrays
    chain = Chain(bench.speed)
    conv_onednn(c, chain, [image, np.ascontiguousarray(w.transpose(3, 2, 0, 1))])
    return of_chain(bench.speed, chain)


def measure(bench: Bench, name: str, c: Conv, count: int) -> Row:
    row: Row = {"name": name, "count": count, "rules": {}, "macs": {}, "errors": {}}
    made = {key: make(c) for key, make in CONTENDERS.items()}
    timers: dict[str, Timer] = {}
    for key, contender in made.items():
        try:
            timers[key] = tuned(bench, contender, row).timer
        except Exception as error:
            row["errors"][key] = f"{type(error).__name__}: {error}"
    rival = onednn(bench, c, made["standard"])
    if rival:
        timers["onednn"] = rival
    times = turns(timers, bench.options.rounds)
    row.update({f"{key}_us": statistics.median(t) * 1e6 for key, t in times.items()})
    if "standard" in times:
        others = [key for key in COLOURS if key in times]
        row["faster"] = {key: ratio(times, key, ["standard"]) for key in others}
        row["onednn_ratio"] = ratio(times, "standard", ["onednn"])
    return row


def measured(bench: Bench) -> Iterator[Row]:
    words = bench.options.words
    for name, (c, count) in LAYERS.items():
        if not words or any(word in name for word in words):
            yield measure(bench, name, c, count)


# ---- what is printed ---------------------------------------------------------------------------


def cell(row: Row, key: str) -> str:
    if key in row["errors"]:
        return row["errors"][key].replace("|", "\\|")
    speed = row.get("faster", {}).get(key)
    return f"{speed:.2f}x, {duration(row, key)}" if speed else duration(row, key)


def table(rows: list[Row]) -> str:
    names = ["layer", "times", "standard", *COLOURS, "oneDNN, standard", "search, CPU s"]
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    for row in rows:
        cells = [row["name"], str(row["count"]), duration(row, "standard")]
        cells += [cell(row, key) for key in COLOURS]
        cells += [duration(row, "onednn"), f"{row['cpu_s']:.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def work(rows: list[Row]) -> str:
    """Multiply-adds beside those of the standard convolution."""
    lines = [f"| layer | standard | {' | '.join(COLOURS)} |", "|" + "---|" * (2 + len(COLOURS))]
    for row in rows:
        all_, of = row["macs"].get("standard"), row["macs"]
        if all_:
            cells = [f"{of[key] / all_:.2f}" if key in of else "" for key in COLOURS]
            lines.append(f"| {row['name']} | {all_ / 1e6:.0f} M | {' | '.join(cells)} |")
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """Of all layers as often as the network has them."""
    parts = []
    for key in COLOURS:
        good = [row for row in rows if key in row.get("faster", {})]
        if not good:
            continue
        mean = geometric([row["faster"][key] for row in good])
        whole = sum(row["count"] * row["standard_us"] for row in good)
        less = sum(row["count"] * row[f"{key}_us"] for row in good)
        parts.append(f"{key} {mean:.2f}x (all layers of the network {whole / less:.2f}x)")
    return "geometric means: " + ", ".join(parts)


# ---- the figure ---------------------------------------------------------------------------------


def label(x: float, y: float, words: str, anchor: str = "middle", size: int = 11) -> str:
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
        lines.append(label(LEFT - 6, y + 4, f"{value:g}x", "end"))
        value += step
    return lines


def key(x: float) -> list[str]:
    parts = []
    for name, colour in COLOURS.items():
        parts.append(f'<rect x="{x:.1f}" y="24" width="10" height="10" fill="{colour}"/>')
        parts.append(label(x + 14, 33, name, "start"))
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
        parts.append(label(left + BAR / 2 - 1, TOP + HEIGHT - tall - 3, f"{speed:.1f}", size=9))
    middle = x + len(COLOURS) * BAR / 2
    parts.append(label(middle, TOP + HEIGHT + 16, row["name"].removesuffix(" s2")))
    if row["name"].endswith(" s2"):
        parts.append(label(middle, TOP + HEIGHT + 30, "stride 2"))
    return parts


def draw(rows: list[Row], title: str, remark: str) -> str:
    rows = [row for row in rows if row.get("faster")]
    most = max((speed for row in rows for speed in row["faster"].values()), default=1.0)
    step = 0.5 if most < 4 else 1.0 if most < 10 else 2.0
    top = (most // step + 1) * step
    group = len(COLOURS) * BAR + GAP
    right = LEFT + GAP + group * len(rows)
    parts = [label(LEFT, 14, title, "start", 12), *key(LEFT), *grid(top, right, step)]
    for i, row in enumerate(rows):
        parts += bars(row, LEFT + GAP + i * group, top)
    parts.append(label(LEFT, TOP + HEIGHT + FOOT - 4, remark, "start", 10))
    size = f'width="{right + 10:.0f}" height="{TOP + HEIGHT + FOOT}"'
    first = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {STYLE}>'
    return "\n".join(
        [first, '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>\n"]
    )


# ---- the command --------------------------------------------------------------------------------


def record(recorder: harness.Recorder, row: Row) -> None:
    values: dict[str, tuple[Any, str]] = {"standard": (row.get("standard_us"), "us")}
    for name in COLOURS:
        values[name] = (row.get("faster", {}).get(name), "times")
        values[f"{name} time"] = (row.get(f"{name}_us"), "us")
    values["oneDNN"] = (row.get("onednn_us"), "us")
    values["search"] = (row.get("cpu_s"), "CPU s")
    recorder.add("layers", row["name"], values)
    macs = row["macs"]
    if "standard" in macs:
        shares = {name: (macs[name] / macs["standard"], "times") for name in macs}
        del shares["standard"]
        recorder.add("multiply-adds", row["name"], shares)


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=7, help="for each search")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figure", type=Path, help="draw the bars into this file (SVG)")
    parser.add_argument("words", nargs="*", metavar="LAYER", help="only those that hold one")
    options = parser.parse_intermixed_args()
    recorder = harness.Recorder("layers", options.record)
    remark = harness.processor() if os.getloadavg()[0] <= QUIET else LOADED
    bench, rows = Bench(options), []
    for row in measured(bench):
        rows.append(row)
        record(recorder, row)
        print(json.dumps(row) if options.json else table([row]).splitlines()[2], flush=True)
    if rows and not options.json:
        print(f"{summary(rows)}\n\n{work(rows)}")
    if options.words and not rows:
        sys.exit(f"no layer's name has one of the words {' '.join(options.words)}")
    if rows and options.figure:
        title = "ResNet-34's 3x3 layers: times faster than the tuned standard convolution"
        options.figure.write_text(draw(rows, title, remark))


if __name__ == "__main__":
    harness.run(main)
