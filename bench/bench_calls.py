"""What a call of a compiled network takes from Python.

    ./dev bench calls [--find FILE] [--beside PYTHON] [--turns N] [--json]

Networks are one ReLU of 128 numbers and ResNet-8@16, with --find also with that kernel or pack in
the place of its convolutions. One image, one thread, thread processor time under
torch.no_grad(); a turn is 200 calls, of which the second half counts. With --beside another
checkout's Python (its .venv/bin/python) takes turns with this one, in a process of its own. A
figure is the median of the turns and, in brackets, the fastest; a factor is the median of the
turns' factors, above 1: this one is faster. What the code of a network takes without Python,
`canvas network FILE --time` says.
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


def answer(find: Path | None) -> None:
    """A turn of all networks for each line that comes."""
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
    """A process that answers."""

    def __init__(self, python: str, find: Path | None) -> None:
        command = [python, str(Path(__file__).resolve()), "--answer"]
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
    """Turns: of this side, and of the other where there is one."""
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--find", type=Path)
    parser.add_argument("--beside", metavar="PYTHON", help="of another checkout")
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        return answer(given.find)
    if given.turns < 1:
        parser.error("--turns is from 1 on")
    pythons = [sys.executable, *([given.beside] if given.beside else [])]
    sides = [Side(python, given.find) for python in pythons]
    turns = [[side.turn() for side in sides] for _ in range(given.turns)]
    for side in sides:
        side.close()
    for name in turns[0][0]:
        made = row(name, [[side[name] for side in turn] for turn in turns])
        print(json.dumps(made) if given.json else line(made))
    return None


if __name__ == "__main__":
    main()
