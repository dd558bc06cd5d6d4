"""How fast programs are that nobody scheduled: the default schedule beside torch eager.

    ./dev bench defaults [NAME ...] [--sampled 40] [--samples 15] [--json]

Cases are operators at shapes that networks have, the kernels of examples/kernels at two layers of
ResNet-18 and, with --sampled, kernels drawn for its layers. Both run in one process on one thread,
in turns; a time is the median of thread processor time, a ratio above 1 is faster than torch.
GFLOP/s count the operations of the program as it stands. What is packed or padded is inside the
time.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
import torch.nn.functional as F

import canvas
from canvas import _core

Tensors = list[torch.Tensor]
ROOT = Path(__file__).resolve().parent.parent
LAYERS = {"64@56": "C=64,H=56,W=56", "256@14": "C=256,H=14,W=14", "512@7": "C=512,H=7,W=7"}


@dataclass(frozen=True)
class Case:
    """A program and what torch calls it."""

    name: str
    program: str
    torch: Callable[[Tensors], Any]


def conv(
    name: str,
    c: int,
    k: int,
    size: int,
    window: int = 3,
    stride: int = 1,
    groups: int = 1,
    dilation: int = 1,
    layout: str = "nhwc",
) -> Case:
    padding = dilation * (window // 2)
    program = _core.operator_program(
        f"conv2d_{layout}",
        f"in_channels={c} height={size} width={size} out_channels={k} kernel={window} "
        f"stride={stride} padding={padding} groups={groups} dilation={dilation}",
    )
    options: dict[str, Any] = {
        "stride": stride,
        "padding": padding,
        "groups": groups,
        "dilation": dilation,
    }

    def run(x: Tensors) -> Any:
        image = x[0].permute(0, 3, 1, 2) if layout == "nhwc" else x[0]
        return F.conv2d(image, x[1], **options)

    return Case(name, program, run)


def depthwise(name: str, c: int, size: int, window: int = 3, stride: int = 1) -> Case:
    program = _core.operator_program(
        "depthwise_conv2d_nchw",
        f"in_channels={c} height={size} width={size} kernel={window} stride={stride} "
        f"padding={window // 2}",
    )
    return Case(name, program, lambda x: F.conv2d(x[0], x[1], None, stride, window // 2, 1, c))


def call(name: str, operator: str, arguments: str, run: Callable[[Tensors], Any]) -> Case:
    return Case(name, _core.operator_program(operator, arguments), run)


ATTENTION = """canvas 1
program attention
in Q f32 [b:8, i:128, d:64]
in K f32 [b:8, j:128, d:64]
in V f32 [b:8, j:128, d:64]
S[b:8, i:128, j:128] = Q[b, i, d] * K[b, j, d] * 0.125 // sum d:64
largest[b:8, i:128] = S[b, i, j] // max j:128
raised[b:8, i:128, j:128] = exp(S[b, i, j] - largest[b, i])
total[b:8, i:128] = raised[b, i, j] // sum j:128
O[b:8, i:128, d:64] = raised[b, i, j] * V[b, j, d] // sum j:128
Y[b:8, i:128, d:64] = O[b, i, d] / total[b, i]
out Y
"""
LAYER_NORM = """canvas 1
program layer_norm
in X f32 [n:512, c:768]
in G f32 [c:768]
in B f32 [c:768]
mean[n:512] = X[n, c] // mean c:768
var[n:512] = (X[n, c] - mean[n]) * (X[n, c] - mean[n]) // mean c:768
Y[n:512, c:768] = (X[n, c] - mean[n]) / sqrt(var[n] + 0.00001) * G[c] + B[c]
out Y
"""
GELU = """canvas 1
program gelu
in X f32 [n:512, c:768]
Y[n:512, c:768] = X[n, c] * 0.5 * (1 + erf(X[n, c] * 0.7071067811865476))
out Y
"""


def operators() -> list[Case]:
    def attend(x: Tensors) -> Any:
        return F.scaled_dot_product_attention(x[0], x[1], x[2])

    return [
        conv("3x3 64@56 nhwc", 64, 64, 56),
        conv("3x3 256@14 nhwc", 256, 256, 14),
        conv("3x3 512@7 nhwc", 512, 512, 7),
        conv("1x1 256@14 nhwc", 256, 256, 14, 1),
        conv("1x1 64->128 s2 nhwc", 64, 128, 56, 1, 2),
        conv("7x7 s2 3->64@224 nhwc", 3, 64, 224, 7, 2),
        conv("grouped 4 64@56 nhwc", 64, 64, 56, groups=4),
        conv("dilated 2 64@28 nhwc", 64, 64, 28, dilation=2),
        conv("depth-wise 144@56 nhwc", 144, 144, 56, groups=144),
        conv("3x3 64@56 nchw", 64, 64, 56, layout="nchw"),
        conv("3x3 128@28 nchw", 128, 128, 28, layout="nchw"),
        conv("3x3 256@14 nchw", 256, 256, 14, layout="nchw"),
        conv("3x3 512@7 nchw", 512, 512, 7, layout="nchw"),
        conv("3x3 s2 64->128 nchw", 64, 128, 56, 3, 2, layout="nchw"),
        conv("1x1 64@56 nchw", 64, 64, 56, 1, layout="nchw"),
        conv("1x1 512@7 nchw", 512, 512, 7, 1, layout="nchw"),
        conv("grouped 4 64@56 nchw", 64, 64, 56, groups=4, layout="nchw"),
        depthwise("depth-wise 32@112 nchw", 32, 112),
        depthwise("depth-wise 144@56 nchw", 144, 56),
        depthwise("depth-wise 960@7 nchw", 960, 7),
        call("transposed 4x4 s2 nchw", "conv_transpose2d_nchw",
             "in_channels=64 height=28 width=28 out_channels=32 kernel=4 stride=2 padding=1",
             lambda x: F.conv_transpose2d(x[0], x[1], None, 2, 1)),
        call("gemm 1024", "gemm", "m=1024 k=1024 n=1024", lambda x: x[0] @ x[1]),
        call("gemm 1000x1003x1017", "gemm", "m=1000 k=1003 n=1017", lambda x: x[0] @ x[1]),
        call("gemm 256 b^T", "gemm", "m=256 k=256 n=256 transpose_b=1", lambda x: x[0] @ x[1].T),
        call("bmm 8x128x64", "batch_gemm", "batch=8 m=128 k=64 n=128", lambda x: x[0] @ x[1]),
        call("linear 64x512x1000", "linear",
             "batch=64 in_features=512 out_features=1000 bias=1",
             lambda x: F.linear(x[0], x[1], x[2])),
        call("gemv 1024", "gemv", "m=1024 k=1024", lambda x: x[0] @ x[1]),
        call("softmax 1024x128", "softmax", "shape=1024x128", lambda x: x[0].softmax(-1)),
        Case("layer norm 512x768", LAYER_NORM, lambda x: F.layer_norm(x[0], (768,), x[1], x[2])),
        Case("gelu 512x768", GELU, lambda x: F.gelu(x[0])),
        call("max pool 3 s2 nchw", "max_pool2d_nchw",
             "channels=64 height=112 width=112 kernel=3 stride=2 padding=1",
             lambda x: F.max_pool2d(x[0], 3, 2, 1)),
        call("avg pool 3 s2 nhwc", "avg_pool2d_nhwc",
             "height=56 width=56 channels=64 kernel=3 stride=2",
             lambda x: F.avg_pool2d(x[0].permute(0, 3, 1, 2), 3, 2)),
        call("mean 64x56x56", "mean", "shape=64x56x56 dim=1,2", lambda x: x[0].mean((1, 2))),
        Case("attention 8x128x64", ATTENTION, attend),
    ]  # fmt: skip


def kernel_case(name: str, pack: canvas.KernelPack, target: int) -> Case:
    program = _core.lower(pack.text, target, 1)
    _, c, h, w = _core.signature(program)[0][0][2]
    kernel: Any = pack.module(c, h, w, target=pack.targets[target]).eval()

    def run(x: Tensors) -> Any:
        return kernel(x[0])

    return Case(name, program, run)


def example_kernels() -> list[Case]:
    cases = []
    for path in sorted((ROOT / "examples" / "kernels").glob("*.kernel")):
        text = path.read_text()
        for layer in ("64@56", "256@14"):
            at = LAYERS[layer]
            for more in ("", ",G=4", ",x0=64", ",G=4,x0=64"):
                window = ",K=3" if "K" in text.split("a = input", 1)[1] else ""
                try:
                    pack = canvas.KernelPack(_core.bind(text, at + window + more))
                except ValueError:
                    try:
                        pack = canvas.KernelPack(_core.bind(text, at + more))
                    except ValueError:
                        continue
                cases.append(kernel_case(f"{path.stem} {layer}", pack, 0))
                break
    return cases


def sampled_kernels(count: int, seed: int) -> list[Case]:
    targets = (ROOT / "examples" / "targets" / "resnet18.txt").read_text()
    distinct = [0, 4, 5, 9, 10, 14, 15]
    cases: list[Case] = []
    index = 0
    while len(cases) < count:
        drawn = _core.draw(targets, seed, index, "")
        index += 1
        if drawn is None:
            continue
        try:
            text = _core.solve(drawn[0], targets, "macs=0.5x,params=0.5x", f"G={drawn[1]}")
        except ValueError:
            continue
        target = distinct[len(cases) % len(distinct)]
        pack = canvas.KernelPack(text)
        cases.append(kernel_case(f"draw {index - 1} {pack.targets[target]}", pack, target))
    return cases


def flops(program: str) -> int:
    """Operations on values, as `canvas count` counts them."""
    words = [sys.executable, "-m", "canvas", "count", "-", "--json"]
    counted = subprocess.run(words, input=program, capture_output=True, text=True, check=True)
    return int(json.loads(counted.stdout)["flops"])


def prepare(program: str) -> tuple[Callable[[], Any], Tensors, list[Any]]:
    """The compiled program as a call, the tensors that it reads, and its outputs."""
    inputs, outputs = _core.signature(program)
    path, function, *_ = _core.compile(program)
    code = getattr(ctypes.CDLL(path), function)
    rng = np.random.default_rng(1)
    read = [
        np.ascontiguousarray(rng.standard_normal(row[2]).astype("f4") / max(1, len(row[2])))
        for row in inputs
    ]
    written = [np.zeros(row[2], "f4") for row in outputs]
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in read + written]
    return (lambda: code(*pointers)), [torch.from_numpy(array) for array in read], written


def once(function: Callable[[], Any], calls: int) -> float:
    begin = time.thread_time()
    for _ in range(calls):
        function()
    return (time.thread_time() - begin) / calls


def in_turns(functions: list[Callable[[], Any]], samples: int) -> list[float]:
    """Median seconds of a call of each; several calls together where they are short."""
    calls = []
    for function in functions:
        function()
        calls.append(max(1, min(200, int(2e-3 / max(once(function, 1), 1e-6)))))
    taken: list[list[float]] = [[] for _ in functions]
    until = time.monotonic() + 4
    for _ in range(samples):
        for times, function, count in zip(taken, functions, calls, strict=True):
            times.append(once(function, count))
        if time.monotonic() > until:
            break
    return [statistics.median(times) for times in taken]


def measure(case: Case, samples: int) -> dict[str, Any]:
    ours, tensors, written = prepare(case.program)
    with torch.inference_mode():
        mine, torchs = in_turns([ours, lambda: case.torch(tensors)], samples)
    return {
        "name": case.name,
        "us": 1e6 * mine,
        "torch_us": 1e6 * torchs,
        "ratio": torchs / mine,
        "gflops": flops(case.program) / mine * 1e-9,
        "finite": bool(all(np.isfinite(array).all() for array in written)),
    }


def geometric(ratios: list[float]) -> float:
    return math.exp(sum(math.log(ratio) for ratio in ratios) / len(ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("names", nargs="*", help="only cases whose names hold one of these")
    parser.add_argument("--sampled", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--samples", type=int, default=15)
    parser.add_argument("--only", choices=["operators", "kernels", "sampled"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    cases = [] if args.only in ("kernels", "sampled") else operators()
    cases += [] if args.only in ("operators", "sampled") else example_kernels()
    cases += sampled_kernels(args.sampled, args.seed) if args.sampled else []
    if args.names:
        cases = [case for case in cases if any(name in case.name for name in args.names)]
    rows = []
    for case in cases:
        row = measure(case, args.samples)
        rows.append(row)
        if args.json:
            print(json.dumps(row), flush=True)
        else:
            ours = f"{row['us']:10.1f} us {row['gflops']:7.1f} GFLOP/s"
            print(f"{row['name']:34} {ours}  torch {row['torch_us']:10.1f} us {row['ratio']:6.2f}")
    if rows and not args.json:
        print(f"geometric mean of {len(rows)}: {geometric([row['ratio'] for row in rows]):.2f}")


if __name__ == "__main__":
    main()
