"""ResNet-34's 3x3 convolutions and four replacements, each tuned natively, layer by layer.

    ./dev bench layers [--rounds N] [--seconds S] [--figure FILE.svg] [LAYER...]

Contenders are the standard convolution, NAS-PTE's three sequences and the kernel of figure 6.
`quick` tunes each for S seconds from nothing, and each result is compared
with torch's. Then the five of a layer and oneDNN's standard convolution take turns in one
process, timed by the thread's processor time. A speed is the median of the rounds' ratios to the
tuned standard convolution. LAYERs choose those whose names hold one of them. --figure draws the
bars.

Images have channels last, weights are constant.

    standard   the convolution itself
    split      NAS-PTE's first sequence: half of the channels of the result in 2 groups, half in 4
    unroll     its second: the first 16 channels from all of the data, the others in 4 groups from
               the data without its first 16 channels
    slabs      its third: the upper and the lower rows, each with weights of its own
    figure 6   examples/kernels/figure6.kernel: a column of 3 in each channel plus the image moved
               along its rows, then all channels mixed; where the layer strides, the image is
               averaged before, and twice as many channels are two such kernels
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import harness
import numpy as np
from bench_native import duration
from contenders import Chain, Timer, aligned, check, ratio, turns
from harness import geometric
from native_cases import Arrays, conv_onednn, normal, plain_conv
from native_programs import Conv
from tune_cases import operator
from tune_worker import Bench, Native, of_chain

Row = dict[str, Any]
QUIET = 1.5  # of a load average: above it others ran, too
LOADED = "measured while other programs loaded the machine: no result"
# Okabe and Ito's palette for colour-blind readers
COLOURS = {"split": "#e69f00", "unroll": "#56b4e9", "slabs": "#999999", "figure 6": "#0072b2"}
BAR, GAP, LEFT, TOP, HEIGHT, FOOT = 15, 22, 44, 44, 220, 52
STYLE = 'font-family="DejaVu Sans, Arial, sans-serif" font-size="11" fill="#222222"'


# ---- the contenders -----------------------------------------------------------------------------

FULL = 16  # channels of `unroll` that see all data
GROUPS = 4


@dataclass(frozen=True)
class Part:
    """A convolution of the data's channels from the first one on."""

    first: int
    inputs: int
    out: int
    groups: int


@dataclass
class Contender:
    name: str
    macs: int
    program: str
    arrays: Arrays  # the image n h w c, then the weights as the program takes them
    torch: Callable[..., list[Any]]  # of the image n c h w and the weights: the results, alike


def weights(*shape: int) -> np.ndarray:
    """kernel, kernel, inputs, outputs"""
    return normal(*shape) * np.float32(np.prod(shape[-4:-1]) ** -0.5)


def head(name: str, c: Conv) -> str:
    data = f"n:{c.batch}, h:{c.size}, w:{c.size}, c:{c.channels}"
    return f"canvas 1\nprogram {name}\nin X f32 [{data}]\n"


def places(c: Conv) -> str:
    return f"n:{c.batch}, h:{c.result}, w:{c.result}"


def pad(c: Conv) -> str:
    """The image with zeros around, as a stage."""
    size, end = c.size + 2, c.size + 1
    inside = f"1 <= h && h < {end} && 1 <= w && w < {end}"
    return (
        f"pad[n:{c.batch}, h:{size}, w:{size}, c:{c.channels}] = "
        f"if {inside} then X[n, h-1, w-1, c] else 0\n"
    )


def window(c: Conv, channel: str, weight: str) -> str:
    """A pixel of a 3x3 window times its weight."""
    by = f"*{c.stride}" if c.stride > 1 else ""
    return f"pad[n, h{by}+kh, w{by}+kw, {channel}] * {weight}"


def part(c: Conv, name: str, weight: str, p: Part) -> str:
    """A stage: channels [group, o] of the result, from some of the data's."""
    few, each = p.inputs // p.groups, p.out // p.groups
    channel = f"g*{few}+c+{p.first}".replace("+0", "")
    value = window(c, channel, f"{weight}[kh, kw, g, c, o]")
    return f"{name}[{places(c)}, g:{p.groups}, o:{each}] = {value} // sum kh:3, kw:3, c:{few}\n"


def hwio(w: Any) -> Any:
    """kernel, kernel, groups, inputs, outputs as torch has them"""
    return w.permute(2, 4, 3, 0, 1).flatten(0, 1)


def parts(name: str, c: Conv, *all_: Part) -> Contender:
    """Convolutions of the same data, a result each; the consumer concatenates them."""
    from torch.nn import functional

    text, arrays = head(name, c), [image(c)]
    names = [f"Y{i}" for i in range(len(all_))]
    for y, p in zip(names, all_):
        few, each = p.inputs // p.groups, p.out // p.groups
        text += f"in W{y} f32 [kh:3, kw:3, g:{p.groups}, c:{few}, o:{each}] const\n"
        arrays.append(weights(3, 3, p.groups, few, each))
    text += pad(c) + "".join(part(c, y, f"W{y}", p) for y, p in zip(names, all_))

    def run(x: Any, *ws: Any) -> list[Any]:
        return [
            functional.conv2d(
                x[:, p.first : p.first + p.inputs], hwio(w), None, c.stride, 1, groups=p.groups
            )
            for w, p in zip(ws, all_)
        ]

    macs = sum(p.out * p.inputs // p.groups for p in all_)
    text += f"out {', '.join(names)}\n"
    return Contender(name, 9 * c.batch * c.result**2 * macs, text, arrays, run)


def image(c: Conv) -> np.ndarray:
    return normal(c.batch, c.size, c.size, c.channels)


def standard(c: Conv) -> Contender:
    from torch.nn import functional

    return Contender(
        "standard",
        c.fmas,
        operator(plain_conv(c)),
        [image(c), weights(3, 3, c.channels, c.out)],
        lambda x, w: [functional.conv2d(x, w.permute(3, 2, 0, 1), None, c.stride, 1)],
    )


def split(c: Conv) -> Contender:
    half = c.out // 2
    return parts("split", c, Part(0, c.channels, half, 2), Part(0, c.channels, half, 4))


def unroll(c: Conv) -> Contender:
    rest = Part(FULL, c.channels - FULL, c.out - FULL, GROUPS)
    return parts("unroll", c, Part(0, c.channels, FULL, 1), rest)


def slabs(c: Conv) -> Contender:
    import torch
    from torch.nn import functional

    rows = (c.result + 1) // 2
    text = (
        head("slabs", c)
        + f"in W f32 [s:2, kh:3, kw:3, c:{c.channels}, o:{c.out}] const\n"
        + pad(c)
        + f"Y[{places(c)}, o:{c.out}] = {window(c, 'c', f'W[h/{rows}, kh, kw, c, o]')}"
        + f" // sum kh:3, kw:3, c:{c.channels}\nout Y\n"
    )

    def run(x: Any, w: Any) -> list[Any]:
        oihw = w.permute(0, 4, 3, 1, 2)
        both = [functional.conv2d(x, part, stride=c.stride, padding=1) for part in oihw]
        return [torch.cat([both[0][:, :, :rows], both[1][:, :, rows:]], 2)]

    arrays = [image(c), weights(2, 3, 3, c.channels, c.out)]
    return Contender("slabs", c.fmas, text, arrays, run)


def figure6(c: Conv) -> Contender:
    import torch
    from torch.nn import functional

    k, size, copies = c.channels, c.result, c.out // c.channels
    source, text = "X", head("figure6", c)
    text += f"in w0 f32 [r:{copies}, kh:3, c:{k}] const\nin w1 f32 [c:{k}, o:{c.out}] const\n"
    if c.stride > 1:
        text += f"P[{places(c)}, c:{k}] = X[n, h*2+kh, w*2+kw, c] // mean kh:2, kw:2\n"
        source = "P"
    text += (
        f"T[r:{copies}, {places(c)}, c:{k}] = (if w < 1 then {source}[n, h, {size - 1}, c]"
        f" else {source}[n, h, w-1, c]) + (if 1 <= h then {source}[n, h-1, w, c] * w0[r, 0, c]"
        f" else 0) + {source}[n, h, w, c] * w0[r, 1, c] + (if h < {size - 1} then"
        f" {source}[n, h+1, w, c] * w0[r, 2, c] else 0)\n"
        f"Y[{places(c)}, o:{c.out}] = T[o/{k}, n, h, w, c] * w1[c, o] // sum c:{k}\nout Y\n"
    )

    def run(x: Any, column: Any, mix: Any) -> list[Any]:
        x = functional.avg_pool2d(x, 2) if c.stride > 1 else x
        made = []
        for i in range(copies):
            down = functional.conv2d(x, column[i].T.reshape(k, 1, 3, 1), None, 1, (1, 0), 1, k)
            w = mix[:, i * k : (i + 1) * k].T.reshape(k, k, 1, 1)
            made.append(functional.conv2d(down + torch.roll(x, 1, 3), w))
        return [torch.cat(made, 1)]

    arrays = [image(c), normal(copies, 3, k), normal(k, c.out) * np.float32(k**-0.5)]
    macs = c.batch * size**2 * (c.out * k + 3 * k * copies)
    return Contender("figure 6", macs, text, arrays, run)


# name: sizes, how often ResNet-34 has it
LAYERS = {
    "64@56": (Conv(64, 56, 64), 6),
    "64-128@56 s2": (Conv(64, 56, 128, stride=2), 1),
    "128@28": (Conv(128, 28, 128), 7),
    "128-256@28 s2": (Conv(128, 28, 256, stride=2), 1),
    "256@14": (Conv(256, 14, 256), 11),
    "256-512@14 s2": (Conv(256, 14, 512, stride=2), 1),
    "512@7": (Conv(512, 7, 512), 5),
}
CONTENDERS = {
    "standard": standard,
    "split": split,
    "unroll": unroll,
    "slabs": slabs,
    "figure 6": figure6,
}


# ---- measuring ----------------------------------------------------------------------------------


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
