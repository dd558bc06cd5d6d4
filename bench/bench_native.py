"""Hand and default schedules against oneDNN and torch, case by case, on one core.

    ./dev bench native [--isa ISA] [--rounds N] [--compile all|rows|none] [--resume] [WORD...]

`hand` is how many times faster the hand schedule is: than oneDNN (its C API, convolution_direct,
any layout, weights packed beforehand on both sides); softmax, norms, gelu and attention: than the
better of torch eager and torch.compile; figure 6: than the same operators one by one in oneDNN.
Contenders take turns in one process, timed by the thread's processor time; every result is
compared with torch's before. An instruction set that this machine lacks is skipped by name. WORDs
choose cases whose names hold them ("b16" is in the name). Rows go to build/native/rows.jsonl as
they come; --resume keeps the stored ones. --compile rows (the default) runs torch.compile
where it is the yardstick, all everywhere.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import harness
import native_cases
import numpy as np
from compiled_program import narrowed, this_machine
from contenders import (
    Chain,
    Speed,
    Timer,
    aligned,
    build,
    check,
    function_of,
    native,
    of_torch,
    ratio,
)
from contenders import turns as in_turns
from harness import Row, geometric, pick
from native_cases import LANES, Case, Hand
from native_programs import constant, filled

from canvas import _core

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parent / "build" / "native"
NEEDS = {"avx512": "avx512f", "avx2": "avx2"}
LIMITS = {
    "avx512": {},
    "avx2": {
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "ATEN_CPU_CAPABILITY": "avx2",
        "TORCHINDUCTOR_CPP_MARCH": "x86-64-v3",  # of torch.compile; else AVX2 with 32 registers
    },
}
NOISE = 0.02  # a goal is met within it
DEFAULT = 0.8  # of the hand schedule: what a default should reach
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
RECORDED = {"hand": ("ratio", "times"), "default": ("default_ratio", "times"),
            "cycles/FMA": ("cycles_per_fma", ""), "bytes": ("bytes", ""),
            "hand time": ("hand_us", "us"), "oneDNN": ("onednn_us", "us"),
            "torch": ("torch_us", "us"), "compile": ("compile_us", "us")}  # fmt: skip


# ---- one instruction set, in a process of its own: oneDNN reads once which it may use -----------


class Compiler:
    """`canvas compile` for one machine."""

    def __init__(self, folder: Path, isa: str) -> None:
        self.folder = folder / isa
        self.folder.mkdir(exist_ok=True)
        self.machine = self.folder / "machine.txt"
        self.text = narrowed(isa, this_machine())
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
        if case.plain:
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
        times = in_turns(timers, self.rounds)
        clock = self.speed.clock()
        row.update({f"{name}_us": statistics.median(t) * 1e6 for name, t in times.items()})
        rivals = ["torch", "compile"] if case.goal == "torch" else ["onednn"]
        for name, key in (("hand", "ratio"), ("default", "default_ratio")):
            row[key] = ratio(times, name, rivals)
        if case.fmas and "hand" in times and clock:
            vectors = case.fmas / LANES[self.isa]
            row["cycles_per_fma"] = row["hand_us"] * 1e-6 * clock / vectors
        return row


def work(options: argparse.Namespace) -> None:
    """The child: a line of JSON for each case."""
    bench = Bench(options.isa, FOLDER, options.rounds, options.compile)
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


# ---- all of them --------------------------------------------------------------------------------


def measured(isa: str, known: list[Row], options: argparse.Namespace) -> Iterator[Row]:
    """Rows of a child; each is stored before the next begins."""
    done = [[row["name"], row["batch"]] for row in known if row["isa"] == isa]
    command = [sys.executable, __file__, "--isa", isa, "--rounds", str(options.rounds)]
    command += ["--compile", options.compile, "--known", json.dumps(done), *options.words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **LIMITS[isa]}
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(FOLDER / f"inductor-{isa}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as child:
        assert child.stdout
        for line in child.stdout:
            with (FOLDER / "rows.jsonl").open("a") as file:
                file.write(line)
            yield json.loads(line)
    if child.returncode:
        yield {"name": "the rest", "batch": 0, "isa": isa, "error": "the process ended"}


# ---- what is printed ----------------------------------------------------------------------------


def number(row: Row, key: str, form: str = ".2f") -> str:
    value = row.get(key)
    return format(value, form) if isinstance(value, float) else ""


def duration(row: Row, key: str) -> str:
    value = row.get(f"{key}_us")
    if value is None:
        return ""
    return f"{value / 1000:.1f} ms" if value >= 1e4 else f"{value:.0f} us"


def met(row: Row) -> bool | None:
    if row.get("ratio") is None or not row.get("floor"):
        return None
    return row["ratio"] >= row["floor"] * (1 - NOISE)


def verdict(row: Row) -> str:
    words = {None: "", True: "met", False: f"missed ({row.get('floor')})"}
    return row.get("error") or row.get("hand_error") or words[met(row)]


def mean(rows: list[Row], key: str) -> float:
    return geometric(row[key] for row in rows if row.get(key) and row.get("goal") != "fused")


def summary(isa: str, rows: list[Row]) -> str:
    judged = [row for row in rows if met(row) is not None]
    missed = [
        f"{row['name']} b{row['batch']} ({row['ratio']:.2f})" for row in judged if not met(row)
    ]
    below = [
        f"{row['name']} b{row['batch']} ({row['default_ratio'] / row['ratio']:.2f})"
        for row in rows
        if row.get("default_ratio") and row["default_ratio"] < DEFAULT * row["ratio"]
    ]
    text = f"{isa}: geometric mean {mean(rows, 'ratio'):.2f} of hand schedules"
    text += f", {mean(rows, 'default_ratio'):.2f} of default ones"
    text += f" (without figure 6); {len(judged) - len(missed)} of {len(judged)} goals met"
    text += f"; missed: {', '.join(missed)}" if missed else ""
    return text + (f"; defaults below {DEFAULT} of hand: {', '.join(below)}" if below else "")


def setting() -> str:
    """What oneDNN is there; it is built for the children."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    library, why = build(FOLDER)
    return f"{harness.machine()}; oneDNN: {why or Speed(library).version()}"


def record(recorder: harness.Recorder, row: Row) -> None:
    values = pick(row, RECORDED) | {"goal": (verdict(row), "")}
    recorder.add(row["isa"], f"{row['name']} b{row['batch']}", values)


def options() -> argparse.Namespace:
    parser = harness.parser(__doc__)
    parser.add_argument("--isa", choices=list(NEEDS), help="only this instruction set")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--compile", choices=("all", "rows", "none"), default="rows")
    parser.add_argument("--resume", action="store_true", help="keep what was measured before")
    parser.add_argument("--known", help=argparse.SUPPRESS)  # of the child: cases that are done
    parser.add_argument("words", nargs="*", metavar="WORD", help="only cases that hold it")
    return parser.parse_intermixed_args()


def main() -> None:
    given = options()
    if given.known is not None:
        return work(given)
    recorder = harness.Recorder("native", given.record)
    about = setting()
    kept = FOLDER / "rows.jsonl"
    if not given.resume:
        kept.unlink(missing_ok=True)
    rows: list[Row] = (
        [json.loads(t) for t in kept.read_text().splitlines()] if kept.exists() else []
    )
    if not given.json:
        print(about, flush=True)
    for isa, flag in NEEDS.items():
        if given.isa not in (None, isa):
            continue
        if flag not in harness.flags():
            print(f"{isa}: skipped, this machine has no {flag}", file=sys.stderr)
            continue
        for row in measured(isa, rows, given):
            rows.append(row)
            record(recorder, row)
            name = f"{row['name']} b{row['batch']}"
            shown = f"{number(row, 'ratio'):>6}{number(row, 'default_ratio'):>7}"
            text = f"{isa:7}{name:26}{shown}  {verdict(row)}"
            print(json.dumps(row) if given.json else text, flush=True)
    if given.words and not rows:
        print(f"no case's name has the words {' '.join(given.words)}", file=sys.stderr)
        sys.exit(2)
    for isa in NEEDS if not given.json else ():
        here = [row for row in rows if row["isa"] == isa]
        if here:
            print(summary(isa, here))
    return None


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    harness.run(main)
