"""What a change of the compiler does to the code of default schedules: two builds in turns.

    ./dev bench versions OLD [NEW] [--sampled 300] [--only KIND] [--word WORD]
    ./dev bench versions OLD [NEW] --isa avx512|avx2

OLD and NEW are `canvas` executables, as of another checkout; NEW is build/canvas by default.
Programs are those of `./dev bench defaults`, all or of one KIND; with --sampled the kernels
drawn for the layers of ResNet-18. Programs with the same C in both are counted. Of the others
both shared objects are loaded into one process and take turns of six milliseconds on one thread.
A time is the minimum of all turns, thread processor time; constants are prepared beforehand.
Both outputs are compared first. A factor above 1: the new one is faster.

With --isa nothing runs: the cases of `./dev bench native`, with their hand and default schedules,
are compiled to assembly for that instruction set, and those whose assembly differs are named. So a
table that was measured on another machine is known to hold, row by row.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import cases as programs_of
import compiled_program as code
import contenders
import harness
import numpy as np
from native_cases import LANES, Case, cases

from canvas import _core

TURN = 6e-3  # seconds
WRONG = 1e-4  # of the largest value: how far the two may differ
Row = dict[str, Any]


def programs(only: str | None, sampled: int) -> Iterator[tuple[str, str]]:
    """(name, text) of each."""
    if sampled:
        yield from programs_of.drawn_programs(sampled)
    else:
        yield from programs_of.programs(only)


@dataclass
class Build:
    """One `canvas` and the folder for its files."""

    canvas: Path
    folder: Path

    def written(self, program: Path, ending: str, *words: str | Path) -> Path:
        path = self.folder / f"{program.stem}{ending}"
        command = [self.canvas, "compile", program, "-o", path, *words]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ValueError(done.stderr.strip())
        return path

    def loaded(self, program: Path, text: str, arrays: code.Arrays) -> code.Code:
        """With the arguments that the header declares."""
        header = self.written(program, ".h").read_text()
        library = ctypes.CDLL(str(self.written(program, ".so")))
        inputs, outputs = _core.signature(text)
        name = re.findall(r"^program (\w+)", text, re.M)[0]
        made = code.aligned([np.zeros(row[2], code.TYPES[row[1]]) for row in outputs])
        known = dict(zip([row[0] for row in (*inputs, *outputs)], [*arrays, *made]))
        packed = re.search(rf"^#define {name}_packed_bytes (\d+)", header, re.M)
        if packed:
            known["packed"] = code.aligned([np.zeros(int(packed[1]), np.uint8)])[0]
            prepare = getattr(library, f"{name}_prepare")
            if prepare(*self._given(header, f"{name}_prepare", known)):
                raise MemoryError("there is no memory for what is prepared")
        function, given = getattr(library, name), self._given(header, name, known)
        return code.Code(lambda: function(*given) and known, made, 0)

    @staticmethod
    def _given(header: str, name: str, known: dict[str, Any]) -> list[ctypes.c_void_p]:
        found = re.search(rf"^int {name}\(([^)]*)\);", header, re.M)
        assert found
        names = [re.findall(r"\w+", word)[-1] for word in found[1].split(",")]
        return code.addresses([known[name] for name in names])


def difference(a: code.Arrays, b: code.Arrays) -> float:
    """The largest difference, relative to the largest value."""
    worst = 0.0
    for x, y in zip(a, b):
        most = max(float(np.abs(x.astype("f8")).max(initial=0)), 1e-30)
        worst = max(worst, float(np.abs(x.astype("f8") - y).max(initial=0)) / most)
    return worst


def turns(calls: list[code.Call], count: int) -> list[list[float]]:
    """Seconds of a call, by build and turn."""
    timers = {str(i): partial(code.once, call) for i, call in enumerate(calls)}
    taken = contenders.turns(timers, count, slice_s=TURN, warm=0, least_warm=1, slow=math.inf)
    return list(taken.values())


def measure(name: str, text: str, builds: list[Build], count: int) -> Row | None:
    """None where both write the same C."""
    program = builds[0].folder.parent / f"{re.sub(r'[^A-Za-z0-9]+', '_', name)}.program"
    program.write_text(text)
    if len({build.written(program, ".c").read_text() for build in builds}) == 1:
        return None
    arrays = code.random_inputs(text)
    made = [build.loaded(program, text, arrays) for build in builds]
    for one in made:
        one.call()
    apart = difference(made[0].outputs, made[1].outputs)
    if not apart <= WRONG:
        return {"name": name, "error": f"the two differ by {apart:.1e} of the largest value"}
    old, new = (1e6 * min(seconds) for seconds in turns([one.call for one in made], count))
    return {"name": name, "old_us": old, "new_us": new, "factor": old / new}


def native_programs(case: Case, isa: str, canvas: Path) -> Iterator[tuple[str, str, list[str]]]:
    """(name, text, words of the schedule), by hand and by default."""
    hand, name = case.hands[isa], f"{case.name} b{case.batch}"
    schedule = code.ROOT / "bench" / "native" / f"{hand.schedule}.schedule"
    words = ["--schedule", str(schedule), *(["--set", hand.values] if hand.values else [])]
    text = case.program(hand.block)
    yield f"{name} hand", text, words
    if case.plain:
        command = [canvas, "operator", *case.plain.split()]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    yield f"{name} default", text, []


def assembly(source: Path, isa: str) -> str:
    march = {"avx512": "x86-64-v4", "avx2": "x86-64-v3"}[isa]
    words = ["gcc", "-O2", f"-march={march}", "-S", "-fno-ident", "-o", "-", source]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def other_assembly(builds: list[Build], isa: str, words: list[str]) -> tuple[list[str], int]:
    """Names of the cases whose assembly differs, and how many there are in all."""
    others, count = [], 0
    machine = code.ROOT / "examples" / "machines" / f"{isa}.txt"
    program = builds[0].folder.parent / "case.program"
    for case in cases():
        for name, text, schedule in native_programs(case, isa, builds[1].canvas):
            if not all(word in name for word in words):
                continue
            program.write_text(text)
            given = ("--machine", machine, *schedule)
            both = [assembly(build.written(program, ".c", *given), isa) for build in builds]
            count += 1
            if both[0] != both[1]:
                others.append(name)
    return others, count


def line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']:40} {row['error']}"
    return (
        f"{row['name']:40} {row['old_us']:9.1f} -> {row['new_us']:9.1f} us  {row['factor']:5.2f}"
    )


def summary(rows: list[Row], same: int) -> str:
    factors = [row["factor"] for row in rows if "factor" in row]
    wrong = len(rows) - len(factors)
    words = f"{same} programs have the same code; {len(factors)} another"
    if factors:
        mean = harness.geometric(factors)
        words += f": {mean:.3f} times as fast in the geometric mean, "
        words += f"{statistics.median(factors):.2f} in the median, least {min(factors):.2f}, "
        words += f"most {max(factors):.2f}; of all "
        words += f"{math.exp(sum(map(math.log, factors)) / (same + len(factors))):.3f}"
    return words + (f"; {wrong} not compared" if wrong else "")


RECORDED = {"old": ("old_us", "us"), "new": ("new_us", "us"), "factor": ("factor", "times")}


def options() -> argparse.Namespace:
    parser = harness.parser(__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path, nargs="?", default=code.ROOT / "build" / "canvas")
    parser.add_argument("--sampled", type=int, default=0, metavar="COUNT")
    parser.add_argument("--only", choices=list(programs_of.KINDS))
    parser.add_argument("--isa", choices=list(LANES))
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--word", action="append", default=[], dest="words")
    given = parser.parse_args()
    if given.isa and (given.only or given.sampled or given.json or given.record):
        parser.error("--isa is of the cases of bench native: no --only, --sampled or results")
    return given


def show(given: argparse.Namespace, builds: list[Build], recorder: harness.Recorder) -> None:
    rows, same = [], 0
    table = "sampled" if given.sampled else given.only or "all kinds"
    for name, text in programs(given.only, given.sampled):
        if not all(word in name for word in given.words):
            continue
        row = measure(name, text, builds, given.turns)
        if row is None:
            same += 1
            continue
        rows.append(row)
        print(json.dumps(row) if given.json else line(row), flush=True)
        recorder.add(table, name, harness.pick(row, RECORDED))
    if not given.json:
        print(summary(rows, same))


def main() -> None:
    given = options()
    recorder = harness.Recorder("versions", given.record)
    for path in (given.old, given.new):
        if not os.access(path, os.X_OK) or not path.is_file():
            sys.exit(f"versions: '{path}' is no executable")
    with tempfile.TemporaryDirectory() as folder:
        builds = []
        for name, canvas in (("old", given.old), ("new", given.new)):
            (Path(folder) / name).mkdir()
            builds.append(Build(canvas.resolve(), Path(folder) / name))
        if given.isa:
            others, count = other_assembly(builds, given.isa, given.words)
            print(*others, f"{count - len(others)} of {count} have the same assembly", sep="\n")
        else:
            show(given, builds, recorder)


if __name__ == "__main__":
    try:
        harness.run(main)
    except ValueError as error:
        sys.exit(f"versions: {error}")
