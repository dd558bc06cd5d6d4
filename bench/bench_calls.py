"""The time of a call of a compiled network from Python.

    ./dev bench calls [--find FILE] [--beside PYTHON] [--turns N]

Networks are one ReLU of 128 numbers and ResNet-8@16, with --find also with that kernel or pack
instead of its convolutions. One image, one thread, thread processor time under torch.no_grad();
a turn is 200 calls, of which the second half counts. With --beside, another checkout's Python
(its .venv/bin/python) takes turns with this one in a process of its own. A figure is the median
of the turns and, in brackets, the fastest; a factor above 1 means that this one is faster.
`canvas network FILE --time` gives the time of the code without Python.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import torch
from network_cases import Case, cases
from torch import nn

import canvas

CALLS = 100


def networks(find: Path | None) -> dict[str, tuple[nn.Module, torch.Tensor]]:
    case = next(case for case in cases(find=True) if case.name == "ResNet-8@16 find b1")
    unchanged = Case(case.network, "unchanged", 1).model(None)
    found = {
        "ReLU": (nn.ReLU(), torch.randn(1, 8, 4, 4)),
        "ResNet-8@16": (unchanged, case.images()),
    }
    if find is not None:
        found["ResNet-8@16 find"] = (case.model(find.read_text()), case.images())
    return {name: (model.eval(), images) for name, (model, images) in found.items()}


def microseconds(call: Callable[[], Any]) -> float:
    for _ in range(CALLS):
        call()
    start = time.thread_time()
    for _ in range(CALLS):
        call()
    return 1e6 * (time.thread_time() - start) / CALLS


def run_turns(find: Path | None) -> None:
    """A turn of all networks for each line of input."""
    torch.set_num_threads(1)
    with torch.no_grad():
        compiled = {
            name: (canvas.compile(model, images), images)
            for name, (model, images) in networks(find).items()
        }
        for _ in sys.stdin:
            turn = {
                name: microseconds(lambda network=network, images=images: network(images))
                for name, (network, images) in compiled.items()
            }
            print(json.dumps(turn), flush=True)


class Side:
    """A process that runs a turn for each line."""

    def __init__(self, python: str, find: Path | None) -> None:
        command = [python, str(Path(__file__).resolve()), "--child"]
        command += ["--find", str(find.resolve())] if find else []
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def turn(self) -> dict[str, float]:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._process.args[0]} ended with {self._process.wait()}")
        found: dict[str, float] = json.loads(line)
        return found

    def close(self) -> None:
        self._process.communicate()


def row(name: str, turns: list[list[float]]) -> dict[str, Any]:
    """`turns`: of this side and, if there is one, of the other."""
    made: dict[str, Any] = {"name": name}
    for side, column in zip(("call_us", "beside_us"), zip(*turns)):
        made[side] = statistics.median(column)
        made[side.replace("_us", "_least_us")] = min(column)
    if "beside_us" in made:
        made["times"] = statistics.median(other / own for own, other in turns)
    return made


def line(row: dict[str, Any]) -> str:
    text = f"{row['name']:18} {row['call_us']:6.1f} ({row['call_least_us']:.1f}) us"
    if "times" in row:
        text += f", beside {row['beside_us']:6.1f} ({row['beside_least_us']:.1f}) us"
        text += f", {row['times']:.2f} times as fast"
    return text


RECORDED = {"call": ("call_us", "us"), "fastest call": ("call_least_us", "us"),
            "beside": ("beside_us", "us"), "times beside": ("times", "times")}  # fmt: skip


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--find", type=Path)
    parser.add_argument("--beside", metavar="PYTHON", help="of another checkout")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        return run_turns(given.find)
    if given.turns < 1:
        parser.error("--turns is from 1 on")
    recorder = harness.Recorder("calls", given.record)
    pythons = [sys.executable, *([given.beside] if given.beside else [])]
    sides = [Side(python, given.find) for python in pythons]
    turns = [[side.turn() for side in sides] for _ in range(given.turns)]
    for side in sides:
        side.close()
    for name in turns[0][0]:
        made = row(name, [[side[name] for side in turn] for turn in turns])
        print(json.dumps(made) if given.json else line(made))
        recorder.add("calls", name, harness.pick(made, RECORDED))
    return None


if __name__ == "__main__":
    harness.run(main)
