"""Where the time of a compiled network goes: its calls one by one, timed interleaved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from .native_network import DTYPES
from .native_part import NativePart
from .specialization import Specialization

HEAD = ["group", "results", "time us", "share", "GFLOP/s", "bytes"]
PYTORCH = "(PyTorch)"


@dataclass(frozen=True)
class Group:
    """One call of the network: what it computes of the text's programs and values; seconds are the
    median of the rounds, `flops` twice the multiplications, `bytes` all that it reads and writes.
    """

    program: str
    results: str
    seconds: float
    share: float
    flops: int
    bytes: int

    @property
    def gflops(self) -> float:
        return self.flops / self.seconds / 1e9 if self.seconds else 0.0


@dataclass(frozen=True)
class NetworkReport:
    """Groups in the order of the calls; `seconds` of the whole, PyTorch's part and the way in and
    out of Python with it.  Printed, it is a table; `to_json` gives the same as data.
    """

    groups: list[Group]
    seconds: float
    rounds: int
    left: Mapping[str, int]  # what stays in PyTorch: operator and reason -> how many

    def to_json(self) -> dict[str, Any]:
        rows = [{**asdict(group), "gflops": group.gflops} for group in self.groups]
        return {"seconds": self.seconds, "rounds": self.rounds, "left": dict(self.left),
                "groups": rows}  # fmt: skip

    def __str__(self) -> str:
        rows = [HEAD, *(_cells(group) for group in self.groups)]
        whole = sum(group.seconds for group in self.groups)
        lines = [*_aligned(rows), f"groups {1e6 * whole:.1f} us, a call {1e6 * self.seconds:.1f} "
                 f"us: medians of {self.rounds} rounds"]  # fmt: skip
        return "\n".join([*lines, *(f"in PyTorch: {why} ({n})" for why, n in self.left.items())])


def report_of(
    size: Specialization, weights: Sequence[Any], example: Sequence[Any], rounds: int
) -> NetworkReport:
    inputs = [value.clone() if isinstance(value, Tensor) else value for value in example]
    strides = [None] * (size.lifted.out_spec.num_leaves + len(size.lifted.rebound))
    bound = size.bind(weights)

    def call() -> None:
        with size.unchanged(weights):
            size.run(bound, inputs, strides)

    whole = _timed(call, rounds)
    rows: list[tuple[str, str, float, int, int]] = []
    for part in size.parts:
        rows += _part_rows(part, rounds)
    if size.cut.left:
        rest = max(0.0, whole - sum(row[2] for row in rows))
        rows.append((PYTORCH, f"{sum(size.cut.left.values())} operators", rest, 0, 0))
    total = sum(row[2] for row in rows) or 1.0
    groups = [Group(p, r, s, s / total, flops, b) for p, r, s, flops, b in rows]
    return NetworkReport(groups, whole, rounds, dict(size.cut.left))


def _part_rows(part: NativePart, rounds: int) -> Iterator[tuple[str, str, float, int, int]]:
    network, inputs = part.network, [_drawn(row) for row in part.network.inputs]
    taken = network.seconds(part.packed(), inputs, rounds)
    for (program, results, macs, moved), column in zip(network.calls, taken):
        names = results if isinstance(results, str) else " ".join(results)
        yield program, names, median(column), 2 * macs, moved


def _drawn(row: Any) -> Tensor:
    """An input: normal, or indices within their range."""
    dtype, shape = DTYPES[row[1]], tuple(row[2])
    if dtype == torch.int32:
        return torch.randint(row[3], row[4] + 1, shape, dtype=dtype)
    return torch.randn(shape, dtype=dtype)


def _timed(run: Any, rounds: int) -> float:
    run()
    taken = []
    for _ in range(rounds):
        start = perf_counter()
        run()
        taken.append(perf_counter() - start)
    return median(taken)


def _cells(group: Group) -> list[str]:
    rate = f"{group.gflops:.1f}" if group.flops else ""
    size = str(group.bytes) if group.bytes else ""
    share = f"{100 * group.share:.1f} %"
    return [group.program, group.results, f"{1e6 * group.seconds:.1f}", share, rate, size]


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        cells = [cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in
                 enumerate(zip(row, widths))]  # fmt: skip
        yield "  ".join(cells).rstrip()
