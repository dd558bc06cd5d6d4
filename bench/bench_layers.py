"""The 3x3 layers of ResNet-34 one by one: the standard convolution, NAS-PTE's three sequences and
the kernel of figure 6, each tuned natively, on one core.

    ./dev bench layers [--json] [--rounds N] [--seconds S] [--report FILE] [LAYER...]

Each contender (bench/layers_cases.py) is tuned by `quick` for S seconds, from nothing, and its
result compared with torch's; then all five of a layer and oneDNN's standard convolution take
turns in one process, timed by the thread's processor time. `faster` is the median of the rounds'
ratios to the tuned standard convolution. LAYERs choose those whose names hold one of them.
--report writes the table into the page and the figure beside it, as .svg.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bench_native
import numpy as np
from bench_native import duration
from bench_tune import FOLDER, Bench, Native, geometric
from layers_cases import CONTENDERS, LAYERS, Contender
from layers_plot import COLOURS, draw
from native_cases import conv_onednn
from native_onednn import Chain
from native_programs import Conv
from native_worker import Timer, aligned, check, ratio, turns

Row = dict[str, Any]
QUIET = 1.5  # of a load average: above it others ran, too
LOADED = "measured while other programs loaded the machine: no result"


def tuned(bench: Bench, c: Contender, row: Row) -> Native:
    """The winner as code, once it answers what torch does."""
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
    return lambda calls: bench.speed.time(chain.run, chain.pointers, calls)


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


def page(rows: list[Row], about: dict[str, str], figure: str) -> str:
    command = " ".join(["./dev bench layers", *sys.argv[1:]])
    lines = [f"- {k}: {v}" for k, v in [*about.items(), ("command", command)]]
    parts = ["\n".join(lines), f"![times faster than the standard convolution]({figure})"]
    return "\n\n".join([*parts, summary(rows) + ".", table(rows), work(rows)]) + "\n"


def write(report: Path, rows: list[Row], about: dict[str, str]) -> None:
    figure = report.with_suffix(".svg")
    title = "ResNet-34's 3x3 layers: times faster than the tuned standard convolution"
    figure.write_text(draw(rows, title, about.get("remark", about["processor"])))
    bench_native.write_report(report, "layers", page(rows, about, figure.name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="one object per layer")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=7, help="for each search")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", type=Path, help="write table and figure")
    parser.add_argument("words", nargs="*", metavar="LAYER", help="only those that hold one")
    options = parser.parse_intermixed_args()
    for folder in (FOLDER, bench_native.FOLDER):
        folder.mkdir(parents=True, exist_ok=True)
    about = bench_native.setting()
    if os.getloadavg()[0] > QUIET:
        about["remark"] = LOADED
    bench, rows = Bench(options), []
    for row in measured(bench):
        rows.append(row)
        if options.json:
            print(json.dumps({**row, **about}), flush=True)
        else:
            print(table([row]).splitlines()[2], flush=True)
    if rows and not options.json:
        print(summary(rows))
    if rows and options.report:
        write(options.report, rows, about)


if __name__ == "__main__":
    main()
