"""Winograd's convolution against the direct one, by hand and by default, on one core.

    ./dev bench winograd [--isa ISA] [--rounds N] [--batch N,N] [--errors] [WORD...]

The 3x3 convolutions of ResNet-18 after the edit `winograd Y 4`, weights transformed beforehand
as oneDNN's are. Columns are times faster than our direct convolution (the hand schedule of
`./dev bench native`). Contenders take turns in one process, timed by the thread's processor
time; each is compared with the direct one before. --errors compares with fp64 instead. WORDs
choose cases whose names hold them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import bench_native
import harness
import numpy as np
from bench_native import Compiler
from contenders import WRONG, Chain, Speed, Timer, aligned, build, native, turns
from harness import pick
from native_cases import BY_HAND, DENSE, Hand, conv_arrays, packed
from native_programs import Conv, constant, conv

SHAPES = ("3x3 64@56", "3x3 128@28", "3x3 256@14", "3x3 512@7")
ISAS = ("avx512", "avx2")
# block of channels and numbers, of one image and of more
TILES = {
    "avx512": {
        "3x3 64@56": ((32, "ni=1,hm=1,hi=2,wi=7"), (32, "ni=1,hm=1,hi=2,wi=7")),
        "3x3 128@28": ((32, "ni=1,hm=1,hi=2,wi=7"), (32, "ni=2,hm=1,hi=2,wi=7")),
        "3x3 256@14": ((64, "ni=1,hm=2,hi=2,wi=4"), (64, "ni=5,hm=2,hi=2,wi=4")),
        "3x3 512@7": ((64, "ni=1,hm=1,hi=2,wi=2"), (64, "ni=10,hm=1,hi=2,wi=2")),
    },
    "avx2": {
        "3x3 64@56": ((16, "ni=1,hm=1,hi=1,wi=5"), (16, "ni=1,hm=1,hi=1,wi=5")),
        "3x3 128@28": ((16, "ni=1,hm=1,hi=1,wi=4"), (16, "ni=1,hm=2,hi=1,wi=4")),
        "3x3 256@14": ((16, "ni=1,hm=4,hi=1,wi=4"), (16, "ni=5,hm=4,hi=1,wi=4")),
        "3x3 512@7": ((16, "ni=1,hm=1,hi=2,wi=2"), (16, "ni=10,hm=1,hi=2,wi=2")),
    },
}


def edited(program: str, tile: int = 4) -> str:
    command = ["canvas", "edit", "-", "winograd", "Y", str(tile)]
    done = subprocess.run(command, input=program, capture_output=True, text=True, check=True)
    return done.stdout


class Case:
    def __init__(self, name: str, batch: int, isa: str, compiler: Compiler, speed: Speed) -> None:
        shape = DENSE[name]
        self.conv = Conv(shape.channels, shape.size, shape.out, batch=batch)
        self.name, self.isa, self.compiler, self.speed = name, isa, compiler, speed
        self.arrays = conv_arrays(self.conv)
        self.timers: dict[str, Timer] = {}
        self.worst: dict[str, float] = {}
        self.wanted: np.ndarray | None = None

    def check(self, name: str, made: np.ndarray) -> None:
        if self.wanted is None:
            self.wanted = made.copy()
        error = np.abs(made - self.wanted).max() / np.abs(self.wanted).max()
        self.worst[name] = float(error)
        if not error < WRONG:
            raise RuntimeError(f"{name} is wrong by {error:.2g} of the largest value")

    def add(self, name: str, program: str, hand: Hand | None, block: int) -> None:
        c = self.conv
        out = aligned(np.full((c.batch, c.result, c.result, c.out), np.nan, np.float32))
        function, given = self.compiler.function(name, program, hand, packed(self.arrays, block))
        timer = native(self.speed, function, given, out)
        timer(1)
        self.check(name, out)
        self.timers[name] = timer

    def add_onednn(self, name: str, winograd: bool) -> None:
        if not self.speed.onednn:
            return
        chain, c = Chain(self.speed), self.conv
        image, w = self.arrays
        result = (c.batch, c.out, c.result, c.result)
        x, weights = chain.image(image), chain.tensor(w)
        try:
            made = chain.convolution(x, image, weights, w, result, 1, 1, winograd=winograd)
            self.speed.time(chain.run, chain.pointers, 1)
        except RuntimeError:
            return  # it has none for this instruction set
        self.check(name, chain.read(made, result, True))
        self.timers[name] = lambda calls: self.speed.time(chain.run, chain.pointers, calls)

    def row(self, rounds: int) -> dict[str, Any]:
        direct = BY_HAND[self.name][ISAS.index(self.isa)]
        block, values = TILES[self.isa][self.name][self.conv.batch > 1]
        hand = Hand("winograd", block, values)
        program = constant(conv(self.conv, direct.block), 1)
        self.add("direct", program, direct, direct.block)
        fewer = edited(constant(conv(self.conv, hand.block), 1))
        self.add("winograd", fewer, hand, hand.block)
        self.add("winograd_default", fewer, None, hand.block)
        self.add_onednn("onednn", False)
        self.add_onednn("onednn_winograd", True)
        times = turns(self.timers, rounds)
        row: dict[str, Any] = {"name": self.name, "batch": self.conv.batch, "isa": self.isa}
        for name, taken in times.items():
            row[f"{name}_us"] = statistics.median(taken) * 1e6
            row[name] = statistics.median(d / t for d, t in zip(times["direct"], taken))
        row["error"] = self.worst["winograd"]
        return row


COLUMNS = ("direct", "winograd", "winograd_default", "onednn", "onednn_winograd")


def line(row: dict[str, Any]) -> str:
    cells = [row["name"], str(row["batch"]), f"{row['direct_us']:.0f} us"]
    cells += [f"{row[name]:.2f}" if name in row else "" for name in COLUMNS[1:]]
    return f"| {' | '.join([*cells, format(row['error'], '.1e')])} |"


RECORDED = {"direct": ("direct_us", "us"), "winograd": ("winograd", "times"),
            "by default": ("winograd_default", "times"), "oneDNN": ("onednn", "times"),
            "its Winograd": ("onednn_winograd", "times"), "error": ("error", "")}  # fmt: skip


def errors(compiler: Compiler, speed: Speed, channels: int) -> dict[str, float]:
    """Largest errors relative to the largest value, beside the sum in fp64; numbers are normal."""
    import torch

    c = Conv(channels, 24, channels)
    image, w = arrays = conv_arrays(c)
    x, k = torch.from_numpy(image).permute(0, 3, 1, 2).double(), torch.from_numpy(w).double()
    wanted = torch.nn.functional.conv2d(x, k, padding=1).permute(0, 2, 3, 1).numpy()
    program, found = constant(conv(c, 16), 1), {}
    texts = {"direct": program, "tiles of 2": edited(program, 2), "tiles of 4": edited(program, 4)}
    for name, text in texts.items():
        out = aligned(np.full(wanted.shape, np.nan, np.float32))
        function, given = compiler.function("errors", text, None, packed(arrays, 16))
        native(speed, function, given, out)(1)
        found[name] = float(np.abs(out - wanted).max() / np.abs(wanted).max())
    return found


def show_errors(compiler: Compiler, speed: Speed, recorder: harness.Recorder) -> None:
    print("| channels | direct | tiles of 2 | tiles of 4 |\n|---|---|---|---|")
    for channels in (64, 256, 512):
        found = errors(compiler, speed, channels)
        cells = [f"{error:.1e}" for error in found.values()]
        print(f"| {' | '.join([str(channels), *cells])} |", flush=True)
        values = {name: (error, "") for name, error in found.items()}
        recorder.add("errors", f"{channels} channels", values)


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--isa", choices=ISAS, default="avx512")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batch", default="1,10")
    parser.add_argument("--errors", action="store_true", help="errors instead of times")
    parser.add_argument("words", nargs="*", metavar="WORD")
    options = parser.parse_intermixed_args()
    if bench_native.NEEDS[options.isa] not in harness.flags():
        print(f"skipped: this machine has no {options.isa}")
        return
    recorder = harness.Recorder("winograd", options.record)
    folder = bench_native.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    library, _ = build(folder)
    compiler, speed = Compiler(folder, options.isa), Speed(library)
    if options.errors:
        show_errors(compiler, speed, recorder)
        return
    if not options.json:
        print("| case | batch | direct | winograd | by default | oneDNN | its Winograd | error |")
        print("|---|---|---|---|---|---|---|---|")
    for batch in map(int, options.batch.split(",")):
        for name in SHAPES:
            if all(word in f"{name} b{batch}" for word in options.words):
                row = Case(name, batch, options.isa, compiler, speed).row(options.rounds)
                print(json.dumps(row) if options.json else line(row), flush=True)
                recorder.add(options.isa, f"{name} b{batch}", pick(row, RECORDED))


if __name__ == "__main__":
    harness.run(main)
