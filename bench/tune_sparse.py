"""Block-sparse 3x3 convolutions, blocks of 16 output channels, against the same layer dense: both
tuned by `quick`, the columns of the image made inside the timed region."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import Any

import numpy as np
from native_cases import conv_arrays, hwio, plain_conv
from native_programs import Conv
from native_worker import Timer, ratio, turns
from tune_cases import RESNET, operator

Row = dict[str, Any]
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


def measured(bench: Any, c: Conv, sparsity: float, dense: Any) -> Row:
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
    assert kept
    row.update({f"{key}_us": statistics.median(t) * 1e6 for key, t in times.items()})
    row["ratio"] = ratio(times, "quick", ["dense"])
    row["oneshot_ratio"] = ratio(times, "oneshot", ["quick"])
    row["gain"] = ratio(times, "quick", ["default"])
    return row


def rows(bench: Any, known: list[Row]) -> Iterator[Row]:
    done = {row["name"] for row in known if row["group"] == "sparse"}
    for channels, size in RESNET:
        c = Conv(channels, size, channels)
        if all(f"{channels}@{size} {sparsity:.0%}" in done for sparsity in SPARSITIES):
            continue
        if any(word not in f"{channels}@{size}" for word in bench.options.words):
            continue
        program = operator(plain_conv(c))
        tuned, _ = bench.search(program, "quick", seconds=bench.options.seconds)
        dense = bench.native(tuned.program, tuned.schedule, hwio(conv_arrays(c)))
        for sparsity in SPARSITIES:
            try:
                yield measured(bench, c, sparsity, dense)
            except Exception as error:
                name = f"{channels}@{size} {sparsity:.0%}"
                yield {"group": "sparse", "name": name, "batch": 1, "error": str(error)}
