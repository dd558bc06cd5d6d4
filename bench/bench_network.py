"""Whole networks as native code against torch eager, torch.compile, onnxruntime and OpenVINO.

    ./dev bench network [--threads 1|2] [--find FILE] [--log FILE] [--winograd] [--rounds N]
                        [--resume] [WORD...]
    ./dev bench network --sampled N [--rounds N]

fp32, batch 1 and 16; each network unchanged, with the kernel of figure 6 instead of its dense
convolutions with a window, and with the kernel or pack in FILE (the demo's best find), whose sizes
are solved for half of the MACs in other networks than ResNet-8. Engines take turns in one process:
processor time with one thread, wall time with more. Every result is compared with double precision
first. `ratio` is times faster than the fastest peer on the same network, `over unchanged` than the
fastest way to run the network without the kernel, ours included. --log takes schedules from a
tuning log; --winograd adds canvas.compile(winograd=4), which is compared with its like only. WORDs
choose cases by whole parts of their names ("ResNet-18", "224", "figure6", "b1"). Missing peers
(pip install -r bench/requirements-network.txt) are skipped by name. Rows go to
build/network/rows.jsonl; --resume keeps those there. --sampled times N sampled kernels in ResNet-8
against the unchanged network: half solved for 0.5x of the MACs, half for 0.3x, with norms.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import harness
import network_worker
import torch
from harness import geometric, spread
from network_cases import NETWORKS, Case, cases, trained
from network_worker import PEERS, Engine, turns

import canvas

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "network"
ROWS = FOLDER / "rows.jsonl"
LIMIT = 900  # seconds of one case
NOISE = 0.02
Row = dict[str, Any]


SEED = 2  # of sampled kernels
BUDGETS = ("0.5x", "0.3x")
ENGINES = ("canvas", "canvas log", "canvas winograd", *PEERS)


# ---- goals: (which rows, the figure, at least) -------------------------------------------------


def goals(row: Row) -> Iterator[tuple[str, float]]:
    unchanged = row["kernel"] == "unchanged"
    if unchanged and row["network"].endswith("@224"):
        yield "canvas ratio", 0.8
        if "canvas log ratio" in row:
            yield "canvas log ratio", 1.0
    if unchanged and row["batch"] == 1 and row["network"] in ("ResNet-8@16", "ResNet-18@32"):
        yield "canvas over compile", 2.0
    if row["kernel"] == "figure6" and row["network"] == "ResNet-18@224":
        yield "canvas over unchanged", 2.5
    if row["kernel"] == "find" and row["network"] == "ResNet-8@16":
        yield "canvas over unchanged", 1.3


def verdict(row: Row) -> str:
    if row["threads"] != 1:
        return ""
    parts = []
    for name, least in goals(row):
        value = row.get(name)
        short = name.removeprefix("canvas ")
        if value is None:
            parts.append(f"{short}: not measured")
        else:
            met = "met" if value >= least * (1 - NOISE) else "missed"
            fewer = row.get(name.replace("canvas", "canvas winograd", 1), 0)
            permitted = met == "missed" and fewer >= least * (1 - NOISE)
            more = f", met with winograd: {fewer:.2f}" if permitted else ""
            parts.append(f"{met} ({short} {least:g}{more})")
    return ", ".join(parts)


# ---- measuring ---------------------------------------------------------------------------------


def chosen(options: argparse.Namespace) -> Iterator[Case]:
    for case in cases(options.find is not None):
        parts = {*case.name.lower().split(), *case.name.lower().replace("@", " ").split()}
        if parts.issuperset(word.lower() for word in options.words):
            yield case


def one(case: Case, options: argparse.Namespace) -> Row:
    command = [sys.executable, str(HERE / "network_worker.py"), case.name, str(options.threads)]
    command += [str(FOLDER), "--rounds", str(options.rounds)]
    command += ["--find", str(options.find)] if options.find else []
    command += ["--log", str(options.log)] if options.log else []
    command += ["--winograd"] if options.winograd else []
    threads = str(options.threads)
    setting = {**os.environ, "OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    row: Row = {"name": case.name, "network": case.network.name, "kernel": case.kernel,
                "batch": case.batch, "threads": options.threads}  # fmt: skip
    try:
        done = subprocess.run(command, env=setting, capture_output=True, text=True, timeout=LIMIT)
        lines = [line for line in done.stdout.splitlines() if line.startswith('{"name"')]
        if lines:
            return json.loads(lines[-1])
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        row["errors"] = {"case": f"status {done.returncode}: {last}"[:300]}
    except subprocess.TimeoutExpired:
        row["errors"] = {"case": f"not done in {LIMIT} s"}
    return row


def key(row: Row) -> tuple[str, int]:
    return row["name"], row["threads"]


def measured(options: argparse.Namespace) -> Iterator[tuple[Row, bool]]:
    """Rows, and whether they are new."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    known = {}
    if options.resume and ROWS.exists():
        known = {key(row): row for row in map(json.loads, ROWS.read_text().splitlines())}
    ROWS.write_text("".join(json.dumps(row) + "\n" for row in known.values()))
    for case in chosen(options):
        row = known.get((case.name, options.threads))
        new = row is None
        if row is None:
            row = one(case, options)
            with ROWS.open("a") as file:
                file.write(json.dumps(row) + "\n")
        yield row, new


# ---- sampled kernels ----------------------------------------------------------------------------


def conversion() -> Any:
    torch.manual_seed(0)
    images = Case(NETWORKS[0], "unchanged", 1).images()
    dense = lambda layer, path: layer.groups == 1  # noqa: E731
    return canvas.convert(NETWORKS[0].make().eval(), images, filter_fn=dense)


def draws(targets: str, count: int) -> Iterator[tuple[str, int, str]]:
    """(budget, number of the draw, pack) of those that fit it; the first half has the first."""
    number = -1
    for at in range(count):
        budget = BUDGETS[at * len(BUDGETS) // count]
        fitting = harness.solved_draws(
            targets, SEED, f"macs={budget},params=none", more="norm=batch", first=number + 1
        )
        number, _, pack = next(fitting)
        yield budget, number, pack


def sampled(count: int, rounds: int) -> Iterator[Row]:
    torch.set_num_threads(1)
    case = Case(NETWORKS[0], "unchanged", 1)
    images = case.images()
    with torch.no_grad():
        unchanged = canvas.compile(case.model(None), images)
        for budget, number, pack in draws(conversion().targets, count):
            model = canvas.replace(conversion().model, canvas.KernelPack(pack))
            changed = canvas.compile(trained(model).eval(), images)
            networks = {"changed": changed, "unchanged": unchanged}
            engines: dict[str, Engine] = {
                name: partial(network, images) for name, network in networks.items()
            }
            times = turns(engines, time.process_time, rounds)
            ratios = [u / c for c, u in zip(times["changed"], times["unchanged"])]
            yield {
                "budget": budget,
                "draw": number,
                "ms": 1e3 * statistics.median(times["changed"]),
                "over unchanged": statistics.median(ratios),
                "spread": spread(ratios),
            }


# ---- what is printed ----------------------------------------------------------------------------


def milliseconds(row: Row, name: str) -> str:
    value = row.get(f"{name} ms")
    if value is None:
        return "-" if name in row.get("errors", {}) else ""
    return f"{value:.3g} +- {row[f'{name} spread']:.2g}"


def figure(row: Row, name: str) -> str:
    value = row.get(name)
    return "" if value is None else f"{value:.2f} +- {row[name + ' spread']:.2f}"


def line(row: Row) -> str:
    parts = [f"{name} {milliseconds(row, name)}" for name in ENGINES if milliseconds(row, name)]
    text = f"{row['name']:28} ms: {', '.join(parts)}  ratio {figure(row, 'canvas ratio')}"
    if "canvas over unchanged" in row:
        text += f"  over unchanged {figure(row, 'canvas over unchanged')}"
    if "cold_s" in row:
        text += f"  compiled in {row['cold_s']:.1f} s, from the cache in {row['cached_s']:.2f} s"
    wrong = "".join(f"\n  {name}: {why}" for name, why in row.get("errors", {}).items())
    return f"{text}  {verdict(row)}{wrong}"


def sampled_line(row: Row) -> str:
    ratio = f"{row['over unchanged']:.2f} +- {row['spread']:.2f}"
    return f"{row['budget']} draw {row['draw']:3}  {row['ms']:.4f} ms  over unchanged {ratio}"


def sampled_summary(rows: list[Row]) -> str:
    means = []
    for name, chosen in [("all", rows), *((b, [r for r in rows if r["budget"] == b])
                                          for b in BUDGETS)]:  # fmt: skip
        if chosen:
            means.append(f"{name} {geometric(row['over unchanged'] for row in chosen):.2f}")
    least = min(row["over unchanged"] for row in rows)
    return f"geometric mean over unchanged: {', '.join(means)}; least {least:.2f}"


def record(recorder: harness.Recorder, row: Row) -> None:
    images = "one image" if row["batch"] == 1 else f"{row['batch']} images"
    threads = f"{row['threads']} thread{'s' if row['threads'] > 1 else ''}"
    values: dict[str, tuple[Any, str]] = {name: (row.get(f"{name} ms"), "ms") for name in ENGINES}
    spreads = {name: row[f"{name} spread"] for name in ENGINES if f"{name} spread" in row}
    best = "canvas log" if "canvas log ratio" in row else "canvas"
    for name in ("ratio", "over unchanged"):
        values[name] = (row.get(f"{best} {name}"), "times")
        if f"{best} {name} spread" in row:
            spreads[name] = row[f"{best} {name} spread"]
    values["goal"] = (verdict(row), "")
    recorder.add(f"{images}, {threads}", row["name"], values, spreads)
    if "cold_s" in row:
        taken = {"empty cache": (row["cold_s"], "s"), "again": (row["cached_s"], "s")}
        recorder.add("compile time", row["network"], taken)


def show_sampled(count: int, rounds: int, as_json: bool, recorder: harness.Recorder) -> None:
    rows = []
    for row in sampled(count, rounds):
        rows.append(row)
        print(json.dumps(row) if as_json else sampled_line(row), flush=True)
        values = {"canvas": (row["ms"], "ms"), "over unchanged": (row["over unchanged"], "times")}
        name = f"{row['budget']} draw {row['draw']}"
        recorder.add("sampled", name, values, {"over unchanged": row["spread"]}, seed=SEED)
    if not as_json:
        print(sampled_summary(rows))


def options() -> argparse.Namespace:
    parser = harness.parser(__doc__)
    parser.add_argument("words", nargs="*", metavar="WORD", help="cases that hold all of them")
    parser.add_argument("--threads", type=int, choices=(1, 2), default=1)
    parser.add_argument("--find", type=Path, help="kernel or pack that the search found")
    parser.add_argument("--log", type=Path, help="schedules from this tuning log, too")
    parser.add_argument("--winograd", action="store_true", help="with fewer products, too")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    parser.add_argument("--sampled", type=int, metavar="N", help="only N sampled kernels")
    return parser.parse_args()


def main() -> None:
    given = options()
    recorder = harness.Recorder("network", given.record)
    if given.sampled:
        show_sampled(given.sampled, given.rounds, given.json, recorder)
        return
    for name in PEERS:
        if not network_worker.there(name):
            print(f"skipped: {name} is not installed", file=sys.stderr)
    if not any(chosen(given)):
        sys.exit(f"no case's name has all of the words {' '.join(given.words)}")
    for row, new in measured(given):
        print(json.dumps(row) if given.json else line(row), flush=True)
        if new:
            record(recorder, row)


if __name__ == "__main__":
    harness.run(main)
