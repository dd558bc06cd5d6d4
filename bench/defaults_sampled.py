"""Kernels drawn for the layers of ResNet-18, at batch 1: the default schedule beside the PyTorch
module that Canvas writes for the same kernel, run eagerly.

Number i of a seed is drawn, its sizes are solved for half of the multiply-accumulates and weights
of all layers, and one layer is drawn by the number. The module's weights are the program's; what
depends on weights alone is prepared beforehand, as the callable of `KernelPack.compile` does. Both
outputs are compared with the module in float64 before any clock is read.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from defaults_code import ROOT, Arrays, c_text, compiled, in_turns, kind_of, nests, ratio

import canvas
from canvas import _core

BUDGET = "macs=0.5x,params=0.5x"
TARGETS = ROOT / "examples" / "targets" / "resnet18.txt"
WRONG = 1e-4  # of the largest value, or 4 times what torch is off
Row = dict[str, Any]


def draws(seed: int, first: int) -> Iterator[tuple[int, canvas.KernelPack, int]]:
    """(number, pack, target) of those that fit the budget."""
    targets = TARGETS.read_text()
    number = first
    while True:
        drawn = _core.draw(targets, seed, number, "")
        if drawn is not None:
            try:
                text = _core.solve(drawn[0], targets, BUDGET, f"G={drawn[1]}")
            except ValueError:
                text = ""
            if text:
                pack = canvas.KernelPack(text)
                yield number, pack, random.Random(number).randrange(len(pack.targets))
        number += 1


def programs(count: int) -> Iterator[tuple[str, str]]:
    """(name, text) of so many, one target each."""
    for (number, pack, target), _ in zip(draws(1, 0), range(count)):
        yield f"draw {number} {pack.targets[target]}", _core.lower(pack.text, target, 1)


def operands(program: str, module: Any) -> Arrays:
    """An image, and the module's weights as the program takes them."""
    rows = _core.signature(program)[0]
    image = torch.randn(rows[0][2], generator=torch.Generator().manual_seed(1))
    weights = [getattr(module, row[0]).detach().reshape(row[2]) for row in rows[1:]]
    return [np.ascontiguousarray(array.numpy()) for array in [image, *weights]]


def off(result: Any, wanted: Any) -> float:
    """The largest difference, of the largest value."""
    worst = (torch.as_tensor(result, dtype=torch.float64).reshape(-1) - wanted.reshape(-1)).abs()
    return float(worst.max() / wanted.abs().max().clamp_min(1e-30))


def measure(number: int, pack: canvas.KernelPack, target: int, samples: int) -> Row:
    program = _core.lower(pack.text, target, 1)
    _, c, h, w = _core.signature(program)[0][0][2]
    module: Any = pack.module(c, h, w, target=pack.targets[target]).eval()
    arrays = operands(program, module)
    text = c_text(program)
    row: Row = {"draw": number, "target": pack.targets[target], "kernel": pack.kernel}
    code = compiled(program, arrays)
    row |= {"kb": len(text) / 1000, "compile_s": code.seconds}
    image = torch.from_numpy(arrays[0])
    with torch.inference_mode():
        code.call()
        made = code.outputs[0].copy()
        theirs = module(image)
        wanted = module.double()(image.double())
        module.float()
        row |= {"error": off(made, wanted), "torch_error": off(theirs, wanted)}
        if not row["error"] <= max(WRONG, 4 * row["torch_error"]):
            return row | {"wrong": True}
        ours, eager = in_turns([code.call, lambda: module(image)], samples)
    row |= {"us": 1e6 * statistics.median(ours), "torch_us": 1e6 * statistics.median(eager)}
    row["ratio"] = ratio(eager, ours)
    if row["ratio"] < 1:
        row["reason"] = reason(program, arrays)
    return row


def reason(program: str, arrays: Arrays) -> str:
    """The nest that takes longest: its share, what it goes into, the stage that it computes."""
    found = nests(program, arrays)
    total = sum(nest.seconds for nest in found) or 1
    slow = found[0]
    name = slow.stores[0] if slow.stores else "?"
    line = re.search(rf"^{re.escape(name)}\[.*$", program, re.M)
    stage = line[0] if line else name
    return f"{100 * slow.seconds / total:.0f} % {kind_of(slow)}: {stage}"


def stored(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run(count: int, seed: int, samples: int, path: Path) -> Iterator[Row]:
    """Rows of the file, and then new ones, which go there as they come."""
    known = stored(path)
    yield from known[:count]
    first = known[-1]["draw"] + 1 if known else 0
    left = count - len(known)
    for number, pack, target in draws(seed, first):
        if left <= 0:
            return
        left -= 1
        try:
            row = measure(number, pack, target, samples)
        except Exception as error:
            row = {"draw": number, "target": pack.targets[target], "kernel": pack.kernel}
            row["failed"] = f"{type(error).__name__}: {error}"
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        yield row


# ---- what is printed ---------------------------------------------------------------------------


def line(row: Row) -> str:
    name = f"draw {row['draw']} {row['target']}"
    if "ratio" not in row:
        why = row.get("failed") or f"wrong by {row['error']:.2g}"
        return f"{name:34} {why}"
    text = f"{name:34} {row['us']:9.1f} us  torch {row['torch_us']:9.1f} us {row['ratio']:6.2f}"
    text += f" {row['kb']:6.1f} kB {row['compile_s']:5.2f} s"
    return text + (f"  {row['reason']}" if "reason" in row else "")


def geometric(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(r) for r in ratios)) if ratios else math.nan


BOUNDS = (0, 0.5, 0.8, 1, 1.5, 2, 3, 5, 10, math.inf)


def summary(rows: list[Row]) -> str:
    good = [row for row in rows if "ratio" in row]
    ratios = sorted(row["ratio"] for row in good)
    if not ratios:
        return "no kernel was measured"
    lines = [
        f"{len(good)} of {len(rows)} kernels were right and timed: geometric mean "
        f"{geometric(ratios):.2f}, median {statistics.median(ratios):.2f}, least {ratios[0]:.2f}, "
        f"most {ratios[-1]:.1f}; {sum(r < 1 for r in ratios)} are slower than torch",
        "", "| times torch | kernels |", "|---|---|",
    ]  # fmt: skip
    for low, high in pairwise(BOUNDS):
        shown = f"{low} to {high}" if high < math.inf else f"over {low}"
        lines.append(f"| {shown} | {sum(low <= r < high for r in ratios)} |")
    kb, seconds = (sorted(row[key] for row in good) for key in ("kb", "compile_s"))
    lines += [
        "",
        f"C: median {statistics.median(kb):.1f} kB, most {kb[-1]:.0f}; the compiler took "
        f"{statistics.median(seconds):.2f} s in the median, {seconds[-1]:.1f} at most.",
    ]
    return "\n".join(lines)


def losses(rows: list[Row]) -> str:
    lost = sorted((row for row in rows if row.get("ratio", 1) < 1), key=lambda row: row["ratio"])
    if not lost:
        return "No kernel is slower than torch."
    kinds = Counter(re.sub(r"^\d+ % |: .*$", "", row.get("reason", "?")) for row in lost)
    lines = [", ".join(f"{count} {kind}" for kind, count in kinds.most_common()), "",
             "| draw | layer | times torch | us | torch us | most of its time |",
             "|---|---|---|---|---|---|"]  # fmt: skip
    for row in lost:
        why = row.get("reason", "").replace("|", "\\|")
        lines.append(
            f"| {row['draw']} | {row['target']} | {row['ratio']:.2f} | {row['us']:.0f} | "
            f"{row['torch_us']:.0f} | {why} |"
        )
    return "\n".join(lines)
