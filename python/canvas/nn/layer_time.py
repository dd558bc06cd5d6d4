"""How long the layers take that a pack replaces, as native code: a screening before any training,
beside the convolutions that stand there.

Each layer is one program with its default schedule, timed by the core in a child of its own, after
its result was compared with the interpreter's.  Layers of the same program are timed once.
"""

from __future__ import annotations

import re

from .. import _core
from ..errors import CanvasError
from .pack import KernelPack

REPEATS = 12  # timed samples of a layer
SECONDS = 1.0  # that they may take

_seconds: dict[str, float] = {}  # by program


def share_of_time(pack: str, targets: str, batch: int = 1) -> float:
    """Seconds of the pack's layers, over those of the convolutions that `targets` (its lines:
    ``name C_in C_out H W window stride groups``) describe, `batch` images each.

    Raises CanvasError with one line where a layer has no code that can be timed.
    """
    names = KernelPack(pack).targets
    lines = [line.split() for line in targets.splitlines() if line.strip()]
    ours = theirs = 0.0
    for name, *sizes in lines:
        if name in names:
            ours += seconds_of(_core.lower(pack, names.index(name), batch))
            theirs += seconds_of(convolution(sizes, batch))
    return ours / theirs


def convolution(sizes: list[str], batch: int) -> str:
    """The program of a target's convolution, padded as a target's is."""
    cin, cout, h, w, window, stride, groups = sizes[:7]  # a dilated one takes as long
    kh, kw = (window.split("x") * 2)[:2]
    program = _core.operator_program(
        "conv2d_nchw",
        f"batch={batch} in_channels={cin} height={h} width={w} out_channels={cout} "
        f"kernel={kh},{kw} padding={int(kh) // 2},{int(kw) // 2} stride={stride} groups={groups}",
    )
    return re.sub(r"^(in W .*)$", r"\1 const", program, flags=re.M)  # packed once


def seconds_of(program: str) -> float:
    if program not in _seconds:
        measurer = _core.measurer(program, repeats=REPEATS, seconds=SECONDS, screen=True)
        verdict = _core.measure(measurer, [(program, None)])[0]
        if verdict["failure"] != "ok":
            raise CanvasError(f"a layer cannot be timed: {verdict['message']}")
        _seconds[program] = float(verdict["median"])
    return _seconds[program]
