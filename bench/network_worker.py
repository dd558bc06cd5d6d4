"""One case of `./dev bench network`, in a process of its own.

    network_worker.py CASE THREADS FOLDER [--find FILE] [--log FILE] [--winograd] [--rounds N]

Every engine's result is compared with PyTorch's in double precision before it is timed. Engines
take turns: by the processor time of the process with one thread, by the wall clock with more. A
ratio is the median of the rounds' ratios. Prints one object.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import network_peers
import torch
from network_cases import Case, cases
from torch import Tensor, nn

Row = dict[str, Any]
SLICE = 0.025  # seconds of half of an engine's turn
ENOUGH = 20.0  # seconds of all turns after which three rounds are enough
UNCHANGED = "unchanged "  # before the name of an engine: the network without the kernel
BOUND = 2e-3  # of the largest result: largest difference from double precision


OURS = ("canvas", "canvas log", "canvas winograd")


def contenders(log: str | None, winograd: bool, peers: dict[str, Any]) -> dict[str, Any]:
    ways = {"canvas": network_peers.native(None), **peers}
    if log:
        ways["canvas log"] = network_peers.native(log)
    if winograd:
        ways["canvas winograd"] = network_peers.native(log, winograd=4)
    return {name: way for name, way in ways.items() if name in OURS or network_peers.there(name)}


def prepared(model: nn.Module, images: Tensor, row: Row, options: argparse.Namespace,
             prefix: str = "", peers: dict[str, Any] = network_peers.PEERS,
             ) -> dict[str, network_peers.Engine]:  # fmt: skip
    exact = copy.deepcopy(model).double()(images.double())
    engines = {}
    for way_name, way in contenders(options.log, options.winograd, peers).items():
        name = prefix + way_name
        try:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                engine = way(model, images, options.threads, Path(folder))
            error = float((engine().double() - exact).abs().max() / exact.abs().max())
        except Exception as failure:  # of its own: the others go on
            row["errors"][name] = f"{type(failure).__name__}: {failure}".splitlines()[0][:200]
            continue
        row["difference"][name] = error
        if error < BOUND:
            engines[name] = engine
        else:
            row["errors"][name] = f"wrong: differs by {error:.1e} of the largest result"
    return engines


def turns(engines: dict[str, network_peers.Engine], clock: Callable[[], float],
          rounds: int) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of one forward, by engine and round, in a new order in each round: whoever has two
    turns one after the other finds its weights in the caches. The first half of a turn does not
    count, nor does the first round: the third cache keeps what was asked for several times."""
    times: dict[str, list[float]] = {name: [] for name in engines}
    order, shuffled = list(engines), random.Random(1)
    calls = dict.fromkeys(engines, 1)
    began = time.perf_counter()
    for turn in range(rounds + 1):
        shuffled.shuffle(order)
        for name in order:
            engine = engines[name]
            for _ in range(calls[name]):
                engine()
            start = clock()
            for _ in range(calls[name]):
                engine()
            seconds = (clock() - start) / calls[name]
            if turn:
                times[name].append(seconds)
            calls[name] = max(1, min(1000, round(SLICE / max(seconds, 1e-6))))
        if turn >= 3 and time.perf_counter() - began > ENOUGH:
            break
    return times


def spread(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def ratios(times: dict[str, list[float]], rivals: list[str], name: str) -> list[float]:
    """How many times faster than the best of the rivals, round by round."""
    best = min(rivals, key=lambda rival: statistics.median(times[rival]))
    return [theirs / ours for theirs, ours in zip(times[best], times[name])]


def rivals_of(name: str, every: list[str]) -> list[str]:
    """What rounds more, by Winograd's convolutions, is compared with what rounds more only."""
    return [rival for rival in every if "winograd" in name or "winograd" not in rival]


def compile_seconds(model: nn.Module, images: Tensor) -> tuple[float, float]:
    """Of the network's text to native code: with an empty cache, and again."""
    from canvas import _core, aten

    with torch.no_grad():
        text = aten.import_graph(torch.export.export(model, (images,))).text
    before = os.environ.get("CANVAS_CACHE")
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CANVAS_CACHE"] = folder
        try:
            for _ in range(2):
                start = time.perf_counter()
                _core.network_compile(text)
                taken.append(time.perf_counter() - start)
        finally:
            os.environ.pop("CANVAS_CACHE")
            if before is not None:
                os.environ["CANVAS_CACHE"] = before
    return taken[0], taken[1]


def measure(case: Case, options: argparse.Namespace) -> Row:
    row: Row = {"name": case.name, "network": case.network.name, "kernel": case.kernel,
                "batch": case.batch, "threads": options.threads, "errors": {},
                "difference": {}}  # fmt: skip
    model, images = case.model(options.find and options.find.read_text()), case.images()
    engines = prepared(model, images, row, options)
    if case.kernel != "unchanged":
        before = Case(case.network, "unchanged", case.batch)
        engines |= prepared(before.model(None), images, row, options, UNCHANGED)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times = turns(engines, clock, options.rounds)
    for name, seconds in times.items():
        row[f"{name} ms"] = statistics.median(seconds) * 1e3
        row[f"{name} spread"] = spread(seconds) * 1e3
    against = {
        "ratio": [name for name in network_peers.PEERS if name in times],
        "over compile": [name for name in ["compile"] if name in times],
        "over unchanged": [name for name in times if name.startswith(UNCHANGED)],
    }
    for name in OURS:
        for kind, every in against.items():
            rivals = rivals_of(name, every)
            if name in times and rivals:
                values = ratios(times, rivals, name)
                row[f"{name} {kind}"] = statistics.median(values)
                row[f"{name} {kind} spread"] = spread(values)
    if options.threads == 1 and case.kernel == "unchanged" and case.batch == 1:
        row["cold_s"], row["cached_s"] = compile_seconds(model, images)
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("threads", type=int)
    parser.add_argument("folder")
    parser.add_argument("--find", type=Path)
    parser.add_argument("--log")
    parser.add_argument("--winograd", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    case = next(case for case in cases(find=True) if case.name == options.case)
    with torch.no_grad():
        row = measure(case, options)
    print(json.dumps(row))
    sys.stdout.flush()
    os._exit(0)  # engines with threads of their own have crashed at the end


if __name__ == "__main__":
    main()
