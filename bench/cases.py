"""The programs that benchmarks of default schedules share: by kind, and drawn for ResNet-18."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from cases_odd import odd_programs
from cases_operators import ROOT, example_kernels, long_sums, many_images, operators, windows

import canvas
from canvas import _core

KINDS = {
    "operators": operators,
    "kernels": example_kernels,
    "odd": odd_programs,
    "long": long_sums,
    "images": many_images,
    "windows": windows,
}
BUDGET = "macs=0.5x,params=0.5x"
TARGETS = ROOT / "examples" / "targets" / "resnet18.txt"


def programs(only: str | None) -> Iterator[tuple[str, str]]:
    """(name, text) of all, or of one kind."""
    for kind, cases in KINDS.items():
        if only in (None, kind):
            yield from ((case.name, case.program) for case in cases())


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


def drawn_programs(count: int) -> Iterator[tuple[str, str]]:
    """(name, text) of the first draws of seed 1, one layer each."""
    for (number, pack, target), _ in zip(draws(1, 0), range(count)):
        yield f"draw {number} {pack.targets[target]}", _core.lower(pack.text, target, 1)


def operands(program: str, module: Any) -> list[np.ndarray]:
    """An image, and the module's weights as the program takes them."""
    rows = _core.signature(program)[0]
    image = torch.randn(rows[0][2], generator=torch.Generator().manual_seed(1))
    weights = [getattr(module, row[0]).detach().reshape(row[2]) for row in rows[1:]]
    return [np.ascontiguousarray(array.numpy()) for array in [image, *weights]]
