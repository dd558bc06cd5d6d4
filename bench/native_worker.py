"""One instruction set of `./dev bench native`, in a process of its own: oneDNN reads once which it
may use.

    native_worker.py ISA FOLDER [--rounds N] [--compile all|rows|none] [--known JSON] [WORD...]

Contenders take turns, each after one call that is not timed; a time is the median of the rounds, a
ratio the median of the rounds' ratios. A line of JSON for each case.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import random
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import machines
import native_cases
import numpy as np
from native_cases import LANES, Case, Hand
from native_onednn import Chain, Speed, function_of
from native_programs import constant, filled

from canvas import _core

HERE = Path(__file__).resolve().parent
SLICE = 0.004  # seconds of a contender's turn
WARM = 3  # calls, at least, before a turn is timed
SLOW = 0.3  # seconds of a call after which one is enough
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

Timer = Callable[[int], float]  # calls -> seconds of one


class Compiler:
    """`canvas compile` for one machine."""

    def __init__(self, folder: Path, isa: str) -> None:
        self.folder = folder / isa
        self.folder.mkdir(exist_ok=True)
        self.machine = self.folder / "machine.txt"
        self.text = machines.narrowed(isa, machines.this())
        self.machine.write_text(self.text)

    def canvas(self, *words: str | Path) -> str:
        done = subprocess.run(["canvas", *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def function(
        self, name: str, program: str, hand: Hand | None, given: list[np.ndarray]
    ) -> tuple[Any, list[np.ndarray]]:
        """The function and what it takes before its result; NAME_prepare has been called."""
        (self.folder / f"{name}.program").write_text(program)
        text = None
        if hand:
            text = (HERE / "native" / f"{hand.schedule}.schedule").read_text()
            text = filled(text, hand.values)
        try:
            path, symbol, size, packs, takes = _core.compile(program, text, self.text)
        except ValueError as error:
            raise RuntimeError(str(error)) from error
        return function_of(path, symbol), prepared(path, symbol, (size, packs, takes), given)

    def bytes_moved(self, name: str, hand: Hand) -> float:
        """Into the second cache, as `canvas schedule explain` counts them."""
        schedule = HERE / "native" / f"{hand.schedule}.schedule"
        words = ["--machine", str(self.machine)]
        words += ["--set", hand.values] if hand.values else []
        program = self.folder / f"{name}.program"
        text = self.canvas("schedule", "explain", program, schedule, *words)
        stages = text.partition("\nstage ")[2].splitlines()
        line = next(line for line in stages if line.startswith("all "))
        amounts = re.findall(r"([\d.]+) (B|KiB|MiB|GiB)\b", line)
        return float(amounts[1][0]) * UNITS[amounts[1][1]]


def prepared(path: str, symbol: str, needs: tuple[int, list[bool], list[bool]],
             given: list[np.ndarray]) -> list[np.ndarray]:  # fmt: skip
    """The arrays that the function takes, the memory that its NAME_prepare fills among them."""
    size, packs, takes = needs
    arrays = [aligned(array) for array in given]
    taken = [array for array, wanted in zip(arrays, takes) if wanted]
    if size:
        packed = aligned(np.zeros(size, np.uint8))
        read = [array for array, wanted in zip(arrays, packs) if wanted]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in [*read, packed]]
        if getattr(ctypes.CDLL(path), f"{symbol}_prepare")(*pointers):
            raise RuntimeError("there is no memory for what is prepared")
        taken.append(packed)
    return taken


def timed(timer: Timer) -> tuple[Timer, int]:
    """The timer, and how many calls make a turn."""
    once = min(timer(1), timer(1)) if timer(1) < SLOW else SLOW
    return timer, max(1, int(SLICE / max(once, 1e-7)))


def turns(timers: dict[str, Timer], rounds: int) -> dict[str, list[float]]:
    """In a new order in each round: of arrays larger than a shared cache keeps, those of one
    contender may stay there for as long as the order is the same, 1.5 times as fast. What another
    one has driven out of the caches comes back before the clock runs.
    """
    calls = {name: timed(timer)[1] for name, timer in timers.items()}
    times: dict[str, list[float]] = {name: [] for name in timers}
    order, shuffled = list(timers), random.Random(1)
    for turn in range(rounds):
        shuffled.shuffle(order)
        for name in order:
            timer = timers[name]
            slow = turn and times[name][0] > SLOW
            if slow:
                times[name].append(times[name][0])
                continue
            timer(max(WARM, calls[name] // 2))
            times[name].append(timer(calls[name]))
    return times


def of_torch(function: Callable[..., Any], tensors: list[Any]) -> Timer:
    def timer(calls: int) -> float:
        start = time.thread_time()
        for _ in range(calls):
            function(*tensors)
        return (time.thread_time() - start) / calls

    return timer


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 64, as oneDNN and torch allocate; numpy takes large pages for it."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def native(speed: Speed, function: Any, arrays: list[np.ndarray], out: np.ndarray) -> Timer:
    every = [*arrays, out]
    pointers = (ctypes.c_void_p * len(every))(*(a.ctypes.data for a in every))

    def timer(calls: int) -> float:
        assert len(every)  # they live as long as the timer
        return speed.time(function, pointers, calls)

    return timer


def check(name: str, made: np.ndarray, wanted: np.ndarray) -> None:
    error = np.abs(made.reshape(-1) - wanted.reshape(-1)).max() / np.abs(wanted).max()
    if not error < 1e-4:
        raise RuntimeError(f"{name} is wrong by {error:.2g} of the largest value")


class Bench:
    def __init__(self, isa: str, folder: Path, rounds: int, compiled: str) -> None:
        import torch

        torch.set_num_threads(1)
        torch.set_grad_enabled(False)
        self.torch, self.isa, self.rounds, self.compiled = torch, isa, rounds, compiled
        self.speed = Speed(folder / "native_speed.so")
        self.compiler = Compiler(folder, isa)

    def tensors(self, case: Case, arrays: list[np.ndarray]) -> list[Any]:
        tensors = [self.torch.from_numpy(aligned(a)) for a in arrays]
        for image in case.images:
            tensors[image] = tensors[image].permute(0, 3, 1, 2)
        last = self.torch.channels_last
        return [
            t.contiguous(memory_format=last) if case.images and t.dim() == 4 else t
            for t in tensors
        ]

    def wanted(self, case: Case, tensors: list[Any]) -> np.ndarray:
        result = case.torch(*tensors)
        if case.images:
            result = result.permute(0, 2, 3, 1)
        return np.ascontiguousarray(result.numpy())

    def add_torch(self, case: Case, tensors: list[Any], timers: dict[str, Timer]) -> None:
        timers["torch"] = of_torch(case.torch, tensors)
        if self.compiled == "none" or (self.compiled == "rows" and case.goal != "torch"):
            return
        images = set(case.images)
        weights = [t for i, t in enumerate(tensors) if i not in images] if case.images else []
        function = self.torch.compile(
            (lambda x: case.torch(x, *weights)) if case.images else case.torch
        )
        timers["compile"] = of_torch(function, tensors[:1] if case.images else tensors)

    def add_native(self, case: Case, arrays: list[np.ndarray], wanted: np.ndarray,
                   timers: dict[str, Timer], row: dict[str, Any]) -> None:  # fmt: skip
        hand = case.hands[self.isa]
        programs = {"hand": (case.program(hand.block), hand, case.pack(arrays, hand.block))}
        default, taken = programs["hand"][0], programs["hand"][2]
        if case.plain and case.plain_pack:
            default = self.compiler.canvas("operator", *case.plain.split())
            taken = case.plain_pack(arrays)
        if not case.name.startswith("gemv"):  # its matrix is as new as its vector
            default = constant(default, len(taken) if case.goal == "torch" else 1)
        programs["default"] = (default, None, taken)
        for name, (program, schedule, given) in programs.items():
            out = aligned(wanted)
            out.fill(np.nan)
            try:
                function, taken = self.compiler.function(name, program, schedule, given)
                timer = native(self.speed, function, taken, out)
                timer(1)
                check(name, out, wanted)
            except RuntimeError as error:
                row[f"{name}_error"] = str(error)
                continue
            timers[name] = timer
        if "hand" in timers:
            given = [*programs["hand"][2], wanted]
            moved = self.compiler.bytes_moved("hand", hand)
            row["bytes"] = moved / sum(a.nbytes for a in given)

    def add_onednn(self, case: Case, arrays: list[np.ndarray], wanted: np.ndarray,
                   timers: dict[str, Timer], row: dict[str, Any]) -> None:  # fmt: skip
        if not self.speed.onednn or not case.onednn:
            return
        chain = Chain(self.speed)
        try:
            made, shape, image = case.onednn(chain, arrays)
            self.speed.time(chain.run, chain.pointers, 1)
            check("onednn", chain.read(made, shape, image), wanted)
        except RuntimeError as error:
            row["onednn_error"] = str(error)
            return
        row["implementation"] = chain.implementation()
        timers["onednn"] = lambda calls: self.speed.time(chain.run, chain.pointers, calls)

    def measure(self, case: Case) -> dict[str, Any]:
        row: dict[str, Any] = {"name": case.name, "batch": case.batch, "isa": self.isa}
        row.update(goal=case.goal, floor=case.floor[self.isa])
        arrays = case.arrays()
        tensors = self.tensors(case, arrays)
        wanted = self.wanted(case, tensors)
        timers: dict[str, Timer] = {}
        self.add_native(case, arrays, wanted, timers, row)
        self.add_onednn(case, arrays, wanted, timers, row)
        self.add_torch(case, tensors, timers)
        for timer in timers.values():
            timer(1)
        times = turns(timers, self.rounds)
        clock = self.speed.clock()
        row.update({f"{name}_us": statistics.median(t) * 1e6 for name, t in times.items()})
        rivals = ["torch", "compile"] if case.goal == "torch" else ["onednn"]
        for name, key in (("hand", "ratio"), ("default", "default_ratio")):
            row[key] = ratio(times, name, rivals)
        if case.fmas and "hand" in times and clock:
            vectors = case.fmas / LANES[self.isa]
            row["cycles_per_fma"] = row["hand_us"] * 1e-6 * clock / vectors
        return row


def ratio(times: dict[str, list[float]], name: str, rivals: list[str]) -> float | None:
    """How many times faster than the best of the rivals."""
    there = [rival for rival in rivals if rival in times]
    if name not in times or not there:
        return None
    best = min(there, key=lambda rival: statistics.median(times[rival]))
    return statistics.median(r / t for r, t in zip(times[best], times[name]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("isa", choices=list(LANES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compile", choices=("all", "rows", "none"), default="rows")
    parser.add_argument("--known", default="[]", help="JSON: cases that need no run")
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    bench = Bench(options.isa, options.folder, options.rounds, options.compile)
    known = {tuple(case) for case in json.loads(options.known)}
    for case in native_cases.cases():
        text = f"{case.name} b{case.batch}"
        if any(word not in text for word in options.words) or (case.name, case.batch) in known:
            continue
        try:
            row = bench.measure(case)
        except Exception as error:
            row = {"name": case.name, "batch": case.batch, "isa": options.isa}
            row.update(goal=case.goal, floor=case.floor[options.isa])
            row["error"] = f"{type(error).__name__}: {error}"
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
