"""Groups of `./dev bench tune` that compare searches: parts of `quick`, methods, sparse, drawn.

`ablation` is `quick` of the layers at batch 1 without one of its parts. `methods` are the gemm
of AutoScheduler's README and the notebook's four shapes, tuned by the methods of both documents
and by ours for the same seconds. `sparse` are block-sparse 3x3 convolutions, blocks of 16 output
channels, against the same layer dense. `sampled` are kernels drawn for ResNet-18 beside their
defaults.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
from contenders import Timer, ratio, turns
from harness import geometric
from native_cases import conv_arrays, hwio, plain_conv
from native_programs import Conv
from tune_cases import RESNET, Case, layers, operator
from tune_worker import finished

from canvas import _core

Row = dict[str, Any]


def skipped(bench: Any, known: list[Row], group: str, name: str) -> bool:
    """Whether a row is stored already, or no WORD chooses it."""
    stored = any(row["group"] == group and row["name"] == name for row in known)
    return stored or any(word not in name for word in bench.options.words)


# ---- ablation -----------------------------------------------------------------------------------

SHORTLIST = 24  # trials that quick begins with
PARTS: dict[str, dict[str, Any]] = {
    "quick": {"method": "quick"},
    "no descent": {"method": "quick", "trials": SHORTLIST},
    "no model": {"method": "random"},  # as many trials as quick took
    "no trials": {"method": "oneshot"},
}


def ablated(bench: Any, case: Case) -> Row:
    row: Row = {"group": "ablation", "name": case.name, "batch": case.batch}
    row["seconds"], row["trials"] = {}, {}
    arrays, program = case.arrays(), case.program()
    tensors = bench.tensors(case, arrays)
    wanted = bench.wanted(case, tensors)
    tuned: dict[str, Any] = {}
    for name, how in PARTS.items():
        more = {"trials": tuned["quick"].trials} if name == "no model" else {}
        tuned[name], row["seconds"][name] = bench.search(
            program, seed=bench.options.seed, **how, **more
        )
        row["trials"][name] = tuned[name].trials
    timers: dict[str, Timer] = {}
    kept = bench.add_native(program, tuned, case.pack(arrays), wanted, timers)
    times = turns(timers, bench.options.rounds)
    assert kept
    row["parts"] = {name: ratio(times, name, ["quick"]) for name in times}
    quick = tuned["quick"]
    row["parts"]["no finals"] = quick.after / quick.first if quick.first else None
    return row


def ablation_table(found: list[Row]) -> str:
    """Speeds as parts of quick's; trials and CPU seconds of the searches, as PARTS has them."""
    names = [*PARTS, "no finals", "default"]
    lines = [
        f"| case | {' | '.join(names)} | trials | CPU s |",
        "|" + "---|" * (len(names) + 3),
    ]
    for row in found:
        if "parts" not in row:
            lines.append(f"| {row['name']} | {row['error']} |" + " |" * (len(names) + 1))
            continue
        cells = [f"{row['parts'].get(n) or math.nan:.2f}" for n in names]
        seconds = ", ".join(f"{s:.1f}" for s in row["seconds"].values())
        trials = ", ".join(str(count) for count in row["trials"].values())
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {trials} | {seconds} |")
    parts = [row["parts"] for row in found if "parts" in row]
    means = [geometric([p[n] for p in parts if p.get(n)]) for n in names]
    return "\n".join([*lines, f"| mean | {' | '.join(f'{m:.3f}' for m in means)} | | |"])


def ablation(bench: Any, known: list[Row]) -> Iterator[Row]:
    for case in layers():
        if case.batch > 1 or skipped(bench, known, "ablation", case.name):
            continue
        try:
            yield ablated(bench, case)
        except Exception as error:
            yield {"group": "ablation", "name": case.name, "batch": 1, "error": str(error)}


# ---- methods ------------------------------------------------------------------------------------

METHODS = ("searching", "q", "random", "ga", "quick")
PRINTED = {  # milliseconds on one thread of a Xeon Gold 6248, and of what
    "notebook 3x3 64@256": "240 (its best)",
}


def flops(case: Case) -> float:
    image, weights = (row[2] for row in _core.signature(case.program())[0][:2])
    if case.name.startswith("gemm"):
        return 2.0 * image[0] * image[1] * weights[1]
    return 2.0 * math.prod(image[:3]) * math.prod(weights)


def compared(bench: Any, case: Case) -> Row:
    row: Row = {"group": "methods", "name": case.name, "batch": case.batch}
    row["gflop"] = 1e-9 * flops(case)
    arrays, program = case.arrays(), case.program()
    tensors = bench.tensors(case, arrays)
    wanted = bench.wanted(case, tensors)
    found: dict[str, Any] = {}
    row["seconds"], row["trials"] = {}, {}
    for method in METHODS:
        found[method], row["seconds"][method] = bench.search(
            program, method, seed=bench.options.seed, seconds=bench.options.seconds
        )
        row["trials"][method] = found[method].trials
    timers: dict[str, Timer] = {}
    kept = bench.add_native(program, found, case.pack(arrays), wanted, timers)
    bench.add_onednn(case, arrays, wanted, timers, row)
    times = turns(timers, bench.options.rounds)
    assert kept
    row["us"] = {name: 1e6 * statistics.median(t) for name, t in times.items()}
    return row


def methods_table(found: list[Row]) -> str:
    """Milliseconds (GFLOP/s; trials) of each."""
    names = [*METHODS, "default", "onednn"]
    lines = [f"| case | {' | '.join(names)} | the document, ms |", "|" + "---|" * (len(names) + 2)]
    for row in found:
        if "us" not in row:
            lines.append(f"| {row['name']} | {row['error']} |" + " |" * len(names))
            continue
        cells = []
        for name in names:
            taken = row["us"].get(name)
            trials = f"; {row['trials'][name]}" if name in row["trials"] else ""
            speed = 1e6 * row["gflop"] / taken if taken else math.nan
            cells.append(f"{taken / 1e3:.1f} ({speed:.0f}{trials})" if taken else "")
        printed = PRINTED.get(row["name"], "")
        lines.append(f"| {row['name']} | {' | '.join(cells)} | {printed} |")
    return "\n".join(lines)


def methods(bench: Any, known: list[Row]) -> Iterator[Row]:
    for case in layers():
        if not case.name.startswith(("gemm 1024", "notebook")):
            continue
        if skipped(bench, known, "methods", case.name):
            continue
        try:
            yield compared(bench, case)
        except Exception as error:
            yield {"group": "methods", "name": case.name, "batch": case.batch,
                   "error": f"{type(error).__name__}: {error}"}  # fmt: skip


# ---- sparse -------------------------------------------------------------------------------------

SPARSITIES = (0.4, 0.6, 0.9)
ROWS = 16  # output channels of a block
GOALS = {0.4: 1.0, 0.6: 0.72, 0.9: 0.30}  # of the dense time, at most


def sparse_weights(c: Conv, sparsity: float) -> tuple[list[np.ndarray], np.ndarray]:
    """(blocks, column of each, where those of a row begin), and the same as o i h w."""
    random = np.random.default_rng(int(100 * sparsity))
    columns, rows = 9 * c.channels, c.out // ROWS
    kept = round((1 - sparsity) * columns)
    scale = np.float32((9 * c.channels) ** -0.5)
    blocks = random.standard_normal((rows * kept, ROWS, 1), dtype=np.float32) * scale
    chosen = [np.sort(random.choice(columns, kept, replace=False)) for _ in range(rows)]
    dense = np.zeros((c.out, columns), np.float32)
    for row, places in enumerate(chosen):
        dense[row * ROWS : (row + 1) * ROWS, places] = blocks[
            row * kept : (row + 1) * kept, :, 0
        ].T
    starts = np.arange(rows + 1, dtype=np.int32) * kept
    flat = np.concatenate(chosen).astype(np.int32)
    return [blocks, flat, starts], dense.reshape(c.out, 3, 3, c.channels).transpose(0, 3, 1, 2)


def sparse_program(c: Conv, blocks: int) -> str:
    return operator(
        f"bsr_conv2d_nhwc batch={c.batch} height={c.size} width={c.size} in_channels={c.channels} "
        f"out_channels={c.out} kernel=3 padding=1 block_rows={ROWS} block_columns=1 "
        f"blocks={blocks}"
    )


def measured_sparse(bench: Any, c: Conv, sparsity: float, dense: Any) -> Row:
    from torch.nn import functional

    name = f"{c.channels}@{c.size} {sparsity:.0%}"
    row: Row = {"group": "sparse", "name": name, "batch": c.batch}
    row["goal_ratio"] = GOALS[sparsity]
    image = conv_arrays(c)[0]
    weights, whole = sparse_weights(c, sparsity)
    x, w = (bench.torch.from_numpy(np.ascontiguousarray(a)) for a in (image, whole))
    wanted = functional.conv2d(x.permute(0, 3, 1, 2), w, padding=1).permute(0, 2, 3, 1)
    wanted = np.ascontiguousarray(wanted.numpy())
    timers: dict[str, Timer] = {}
    program = sparse_program(c, len(weights[1]))
    found = bench.tuned(program, row)
    kept = bench.add_native(program, found, [image, *weights], wanted, timers)
    timers["dense"] = dense.timer
    times = turns(timers, bench.options.rounds)
    return finished(row, times, ["dense"], len(kept))


def sparse(bench: Any, known: list[Row]) -> Iterator[Row]:
    for channels, size in RESNET:
        c = Conv(channels, size, channels)
        names = {sparsity: f"{channels}@{size} {sparsity:.0%}" for sparsity in SPARSITIES}
        if all(skipped(bench, known, "sparse", name) for name in names.values()):
            continue
        tuned, _ = bench.search(operator(plain_conv(c)), "quick", seconds=bench.options.seconds)
        dense = bench.native(tuned.program, tuned.schedule, hwio(conv_arrays(c)))
        for sparsity, name in names.items():
            try:
                yield measured_sparse(bench, c, sparsity, dense)
            except Exception as error:
                yield {"group": "sparse", "name": name, "batch": 1, "error": str(error)}


# ---- drawn kernels ------------------------------------------------------------------------------

SAMPLED = 60


def sampled(bench: Any, known: list[Row]) -> Iterator[Row]:
    """Number by number, the quick search beside the default schedule."""
    from cases import draws, operands

    done = sum(row["group"] == "sampled" for row in known)
    for count, (index, pack, target) in enumerate(draws(1, 0)):
        if count == SAMPLED:
            return
        if count < done:
            continue
        row: Row = {"group": "sampled", "name": f"draw {index}", "batch": 1}
        try:
            program = _core.lower(pack.text, target, 1)
            _, c, h, w = _core.signature(program)[0][0][2]
            module: Any = pack.module(c, h, w, target=pack.targets[target]).eval()
            arrays = operands(program, module)
            wanted = module.double()(bench.torch.from_numpy(arrays[0]).double()).float().numpy()
            timers: dict[str, Timer] = {}
            found = bench.tuned(program, row)
            kept = bench.add_native(program, found, arrays, wanted, timers)
            yield finished(row, turns(timers, bench.options.rounds), ["default"], len(kept))
        except Exception as error:
            yield {**row, "error": f"{type(error).__name__}: {error}"}
