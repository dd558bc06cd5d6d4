# ruff: noqa: E501
"""The programs that benchmarks of default schedules share, each with the same computation for torch.

    operators   operators at shapes of networks
    kernels     those of examples/kernels at ResNet-18's layers
    odd         programs with channels first, besides convolutions, as
                `torch.compile(backend="canvas")` receives them: poolings, copies, norms, odd sizes,
                transposed convolutions, guarded loads
    long        products whose reduction is longer than rows and columns
    images      convolutions of 16 images, which come from memory
    windows     depth-wise convolutions with channels last whose lines under a window exceed L1, or
                nearly so

Kernels are also drawn for ResNet-18.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from harness import ROOT, solved_draws

import canvas
from canvas import _core

Tensors = list[torch.Tensor]
LAYERS = {"64@56": "C=64,H=56,W=56", "256@14": "C=256,H=14,W=14", "512@7": "C=512,H=7,W=7"}


@dataclass(frozen=True)
class Case:
    """A program and what torch calls it."""

    name: str
    program: str
    torch: Callable[[Tensors], Any]
    same: bool = True  # both compute from the same arrays: results are compared


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
    batch: int = 1,
) -> Case:
    padding = dilation * (window // 2)
    program = _core.operator_program(
        f"conv2d_{layout}",
        f"in_channels={c} height={size} width={size} out_channels={k} kernel={window} "
        f"stride={stride} padding={padding} groups={groups} dilation={dilation} batch={batch}",
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
        depthwise("depth-wise 7x7 96@56 nchw", 96, 56, 7),
        depthwise("depth-wise 7x7 192@28 nchw", 192, 28, 7),
        depthwise("depth-wise 7x7 384@14 nchw", 384, 14, 7),
        depthwise("depth-wise 7x7 768@7 nchw", 768, 7, 7),
        conv("depth-wise 7x7 768@7 b16 nchw", 768, 768, 7, 7, groups=768, layout="nchw", batch=16),
        depthwise("depth-wise 7x7 s2 64@56 nchw", 64, 56, 7, 2),
        conv("depth-wise 7x7 s2 192@28 nchw", 192, 192, 28, 7, 2, 192, layout="nchw"),
        conv("depth-wise 7x7 s2 192@28 b4 nchw", 192, 192, 28, 7, 2, 192, layout="nchw", batch=4),
        call("transposed 4x4 s2 nchw", "conv_transpose2d_nchw",
             "in_channels=64 height=28 width=28 out_channels=32 kernel=4 stride=2 padding=1",
             lambda x: F.conv_transpose2d(x[0], x[1], None, 2, 1)),
        call("gemm 1024", "gemm", "m=1024 k=1024 n=1024", lambda x: x[0] @ x[1]),
        call("gemm 1000x1003x1017", "gemm", "m=1000 k=1003 n=1017", lambda x: x[0] @ x[1]),
        call("gemm 333x200x777", "gemm", "m=333 k=200 n=777", lambda x: x[0] @ x[1]),
        call("gemm 333x200x777 b^T", "gemm", "m=333 k=200 n=777 transpose_b=1",
             lambda x: x[0] @ x[1].T),
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

    return Case(name, program, run, False)  # the module has weights of its own


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


# ---- long sums ----------------------------------------------------------------------------------


def product(rows: int, columns: int, steps: int, transposed: str = "") -> Case:
    """`transposed`: which operand is stored transposed: "a", "b" or ""."""
    a, b = transposed == "a", transposed == "b"
    program = _core.operator_program(
        "gemm", f"m={rows} n={columns} k={steps} transpose_a={int(a)} transpose_b={int(b)}"
    )
    name = f"{rows}x{steps}x{columns}" + (f" {transposed}^T" if transposed else "")
    return Case(name, program, lambda x: (x[0].T if a else x[0]) @ (x[1].T if b else x[1]))


def gram(samples: int, features: int) -> Case:
    program = (
        f"canvas 1\nprogram gram\nin X f32 [k:{samples}, i:{features}]\n"
        f"Y[i:{features}, j:{features}] = X[k, i] * X[k, j] // sum k:{samples}\nout Y\n"
    )
    return Case(f"gram {samples}x{features}", program, lambda x: x[0].T @ x[0])


def long_sums() -> list[Case]:
    return [
        gram(100000, 64),
        gram(4096, 256),
        product(64, 64, 100000),
        product(64, 64, 100000, "b"),
        product(64, 64, 4096),
        product(128, 128, 1024),
        product(128, 128, 2048),
        product(128, 128, 8192),
        product(96, 100, 3001),
        product(49, 128, 2048),
        product(32, 32, 20000, "a"),
        product(512, 512, 8192, "a"),
        product(256, 1024, 16384),
    ]


# ---- many images --------------------------------------------------------------------------------

GROUPED = """canvas 1
program grouped
in X f32 [n:{n}, h:56, w:56, c:64]
in W f32 [g:4, kh:3, kw:3, c:16, o:16]
Y[n:{n}, h:56, w:56, g:4, o:16] = if 1 <= h+kh && h+kh < 57 && 1 <= w+kw && w+kw < 57 then \
X[n, h+kh-1, w+kw-1, g*16+c] * W[g, kh, kw, c, o] else 0 // sum kh:3, kw:3, c:16
out Y
"""


def groups(batch: int) -> Case:
    """Four groups of 16 channels, which follow each other in a pixel, with weights in blocks."""

    def run(x: Tensors) -> Any:
        weights = x[1].permute(0, 4, 3, 1, 2).reshape(64, 16, 3, 3)
        image = F.conv2d(x[0].permute(0, 3, 1, 2), weights, padding=1, groups=4)
        return image.unflatten(1, (4, 16)).permute(0, 3, 4, 1, 2)

    return Case(f"groups in pixels 64@56 b{batch}", GROUPED.format(n=batch), run)


BLOCKS = """canvas 1
program blocks
in X f32 [n:16, a:{blocks}, h:{size}, w:{size}, b:16]
in W f32 [o:{outputs}, c:{channels}] const
Y[n:16, o:{output_blocks}, h:{size}, w:{size}, v:16] = \
X[n, a, h, w, b] * W[o*16+v, a*16+b] // sum a:{blocks}, b:16
out Y
"""


def in_blocks(channels: int, outputs: int, size: int) -> Case:
    """A convolution of 1x1, channels in blocks of 16 on both sides."""

    def run(x: Tensors) -> Any:
        image = x[0].permute(0, 1, 4, 2, 3).flatten(1, 2)
        made = F.conv2d(image, x[1][:, :, None, None])
        return made.unflatten(1, (outputs // 16, 16)).permute(0, 1, 3, 4, 2)

    program = BLOCKS.format(
        blocks=channels // 16,
        channels=channels,
        outputs=outputs,
        output_blocks=outputs // 16,
        size=size,
    )
    return Case(f"1x1 {channels}->{outputs}@{size} b16 in blocks", program, run)


def many_images() -> list[Case]:
    return [
        conv("1x1 144->24@56 b16", 144, 24, 56, 1, batch=16),
        conv("1x1 96->24@56 b16", 96, 24, 56, 1, batch=16),
        conv("1x1 32->16@112 b16", 32, 16, 112, 1, batch=16),
        conv("1x1 192->32@28 b16", 192, 32, 28, 1, batch=16),
        conv("1x1 512->128@28 b16", 512, 128, 28, 1, batch=16),
        conv("1x1 256->64@56 b16", 256, 64, 56, 1, batch=16),
        conv("1x1 128->128@56 b16", 128, 128, 56, 1, batch=16),
        conv("1x1 64->64@56 b16", 64, 64, 56, 1, batch=16),
        conv("1x1 64->256@56 b16", 64, 256, 56, 1, batch=16),
        conv("1x1 24->144@56 b16", 24, 144, 56, 1, batch=16),
        conv("1x1 64->128 s2@56 b16", 64, 128, 56, 1, 2, batch=16),
        conv("3x3 64@56 b16", 64, 64, 56, batch=16),
        conv("grouped 4 64@56 b16", 64, 64, 56, groups=4, batch=16),
        conv("grouped 32 128@56 b16", 128, 128, 56, groups=32, batch=16),
        groups(1),
        groups(16),
        conv("depth-wise 144@56 b16", 144, 144, 56, groups=144, batch=16),
        in_blocks(192, 32, 28),
        in_blocks(144, 32, 28),
        in_blocks(960, 160, 7),
        in_blocks(320, 1280, 7),
        product(50176, 24, 144),
        product(12544, 64, 512),
    ]


# ---- windows beyond L1 --------------------------------------------------------------------------

DEPTHWISE_LAST = """canvas 1
program depthwise
in X f32 [n:{n}, h:{size}, w:{size}, c:{channels}]
in W f32 [kh:{k}, kw:{k}, c:{channels}] const
Y[n:{n}, h:{out}, w:{out}, c:{channels}] = \
if {pad} <= h*{stride}+kh && h*{stride}+kh < {end} && {pad} <= w*{stride}+kw && w*{stride}+kw < \
{end} then X[n, h*{stride}+kh-{pad}, w*{stride}+kw-{pad}, c] * W[kh, kw, c] else 0 \
// sum kh:{k}, kw:{k}
out Y
"""


def depthwise_last(
    channels: int, size: int, window: int = 3, stride: int = 1, batch: int = 1
) -> Case:
    pad = window // 2

    def run(x: Tensors) -> Any:
        weights = x[1].permute(2, 0, 1)[:, None]
        image = x[0].permute(0, 3, 1, 2)
        return F.conv2d(image, weights, stride=stride, padding=pad, groups=channels)

    text = DEPTHWISE_LAST.format(
        n=batch,
        size=size,
        channels=channels,
        k=window,
        out=(size + 2 * pad - window) // stride + 1,
        stride=stride,
        pad=pad,
        end=size + pad,
    )
    strided = f" s{stride}" if stride > 1 else ""
    images = f" b{batch}" if batch > 1 else ""
    return Case(f"dw {window}x{window}{strided} {channels}@{size}{images}", text, run)


WINDOWS = (  # channels, size, window, stride, batch
    (32, 112, 3, 1, 1), (96, 112, 3, 2, 1), (48, 112, 5, 1, 1), (144, 56, 3, 1, 1),
    (128, 56, 3, 1, 1), (144, 56, 3, 2, 1), (144, 56, 5, 1, 1), (144, 56, 5, 2, 1),
    (144, 28, 3, 1, 1), (256, 28, 3, 1, 1), (240, 28, 3, 2, 1), (240, 28, 5, 1, 1),
    (240, 28, 5, 2, 1), (480, 28, 3, 1, 1), (240, 14, 3, 1, 1), (512, 14, 3, 1, 1),
    (672, 14, 3, 1, 1), (672, 14, 5, 1, 1), (672, 14, 5, 2, 1), (960, 14, 3, 1, 1),
    (960, 7, 3, 1, 1), (240, 28, 5, 1, 4), (480, 14, 5, 1, 4), (144, 28, 3, 1, 16),
    (144, 56, 3, 1, 16), (240, 28, 5, 2, 16), (480, 14, 5, 1, 16), (960, 7, 3, 1, 16),
)  # fmt: skip


def windows() -> list[Case]:
    return [depthwise_last(*row) for row in WINDOWS]


# ---- odd programs -------------------------------------------------------------------------------


def odd(name: str, inputs: str, stages: str, run: Callable[[Tensors], Any]) -> Case:
    """`inputs`: NAME [axes], separated by ";" (f32 without a type); the last stage is the
    result."""
    rows = [row.strip() for row in inputs.split(";")]
    ins = "".join(f"in {r if ' i32 ' in r else r.replace(' [', ' f32 [', 1)}\n" for r in rows)
    lines = [line.strip() for line in stages.strip().splitlines()]
    result = lines[-1].split("[", 1)[0]
    return Case(
        name, "canvas 1\nprogram odd\n" + ins + "\n".join(lines) + f"\nout {result}\n", run
    )


def channels_last(x: torch.Tensor) -> torch.Tensor:
    """An image with channels last, as torch sees it."""
    return x.permute(0, 3, 1, 2)


def group_norm(channels: int, size: int, groups: int) -> Case:
    each = channels // groups
    inner = f"g:{groups}, i:{each}, h:{size}, w:{size}"
    return odd(
        f"group norm {groups} of {channels}@{size}",
        f"X [n:1, c:{channels}, h:{size}, w:{size}]; G [c:{channels}]; B [c:{channels}]",
        f"""M[n:1, g:{groups}] = X[n, g*{each}+i, h, w] // mean {inner.split(", ", 1)[1]}
        V[n:1, g:{groups}] = (X[n, g*{each}+i, h, w] - M[n, g]) * (X[n, g*{each}+i, h, w] - M[n, g]) // mean {inner.split(", ", 1)[1]}
        Y[n:1, c:{channels}, h:{size}, w:{size}] = (X[n, c, h, w] - M[n, c/{each}]) / sqrt(V[n, c/{each}] + 0.00001) * G[c] + B[c]""",
        lambda x: F.group_norm(x[0], groups, x[1], x[2]),
    )  # fmt: skip


def group_norm_last(channels: int, size: int, groups: int) -> Case:
    each = channels // groups
    return odd(
        f"group norm {groups} of {channels}@{size} nhwc",
        f"X [n:1, h:{size}, w:{size}, c:{channels}]; G [c:{channels}]; B [c:{channels}]",
        f"""M[n:1, g:{groups}] = X[n, h, w, g*{each}+i] // mean i:{each}, h:{size}, w:{size}
        V[n:1, g:{groups}] = (X[n, h, w, g*{each}+i] - M[n, g]) * (X[n, h, w, g*{each}+i] - M[n, g]) // mean i:{each}, h:{size}, w:{size}
        Y[n:1, h:{size}, w:{size}, c:{channels}] = (X[n, h, w, c] - M[n, c/{each}]) / sqrt(V[n, c/{each}] + 0.00001) * G[c] + B[c]""",
        lambda x: F.group_norm(channels_last(x[0]), groups, x[1], x[2]),
    )  # fmt: skip


def pools() -> list[Case]:
    return [
        call("max pool 3 s2 64@112 nchw", "max_pool2d_nchw",
             "channels=64 height=112 width=112 kernel=3 stride=2 padding=1",
             lambda x: F.max_pool2d(x[0], 3, 2, 1)),
        call("max pool 3 s2 64@112 nhwc", "max_pool2d_nhwc",
             "channels=64 height=112 width=112 kernel=3 stride=2 padding=1",
             lambda x: F.max_pool2d(channels_last(x[0]), 3, 2, 1)),
        call("max pool 2 s2 64@112 nchw", "max_pool2d_nchw",
             "channels=64 height=112 width=112 kernel=2 stride=2",
             lambda x: F.max_pool2d(x[0], 2)),
        odd("average pool 3 192@35", "X [n:1, c:192, h:35, w:35]",
            """S[n:1, c:192, h:35, w:35] = if 1 <= h+i && h+i < 36 && 1 <= w+j && w+j < 36 then X[n, c, h+i-1, w+j-1] else 0 // sum i:3, j:3
            Y[n:1, c:192, h:35, w:35] = S[n, c, h, w] / 9""",
            lambda x: F.avg_pool2d(x[0], 3, 1, 1)),
        odd("adaptive pool 512@14 to 7", "X [n:1, c:512, h:14, w:14]",
            "Y[n:1, c:512, h:7, w:7] = X[n, c, h*2+i, w*2+j] // mean i:2, j:2",
            lambda x: F.adaptive_avg_pool2d(x[0], 7)),
        odd("adaptive pool 256@13 to 6", "X [n:1, c:256, h:13, w:13]",
            "Y[n:1, c:256, h:6, w:6] = X[n, c, i, j] // mean i:h*13/6..(h*13+18)/6, j:w*13/6..(w*13+18)/6",
            lambda x: F.adaptive_avg_pool2d(x[0], 6)),
        odd("mean over h, w 512@7", "X [n:1, c:512, h:7, w:7]",
            "Y[n:1, c:512] = X[n, c, h, w] // mean h:7, w:7", lambda x: x[0].mean((2, 3))),
        odd("mean over h, w 64@56", "X [n:1, c:64, h:56, w:56]",
            "Y[n:1, c:64] = X[n, c, h, w] // mean h:56, w:56", lambda x: x[0].mean((2, 3))),
        odd("mean over h, w 64@56 nhwc", "X [n:1, h:56, w:56, c:64]",
            "Y[n:1, c:64] = X[n, h, w, c] // mean h:56, w:56", lambda x: x[0].mean((1, 2))),
        odd("mean over h, w 512@7 nhwc", "X [n:1, h:7, w:7, c:512]",
            "Y[n:1, c:512] = X[n, h, w, c] // mean h:7, w:7", lambda x: x[0].mean((1, 2))),
        odd("mean over a, b 64x32x1024", "X [a:64, b:32, c:1024]",
            "Y[c:1024] = X[a, b, c] // mean a:64, b:32", lambda x: x[0].mean((0, 1))),
    ]  # fmt: skip


BILINEAR = """Y[n:1, c:64, h:56, w:56] = (X[n, c, max((h-1)/2, 0), max((w-1)/2, 0)] * (0.25 + 0.5 * real(w%2)) + X[n, c, max((h-1)/2, 0), min((w-1)/2+1, 27)] * (0.75 - 0.5 * real(w%2))) * (0.25 + 0.5 * real(h%2)) + (X[n, c, min((h-1)/2+1, 27), max((w-1)/2, 0)] * (0.25 + 0.5 * real(w%2)) + X[n, c, min((h-1)/2+1, 27), min((w-1)/2+1, 27)] * (0.75 - 0.5 * real(w%2))) * (0.75 - 0.5 * real(h%2))"""


def moves() -> list[Case]:
    return [
        odd("nearest x2 64@28", "X [n:1, c:64, h:28, w:28]",
            "Y[n:1, c:64, h:56, w:56] = X[n, c, h/2, w/2]",
            lambda x: F.interpolate(x[0], scale_factor=2)),
        odd("bilinear x2 64@28", "X [n:1, c:64, h:28, w:28]", BILINEAR,
            lambda x: F.interpolate(x[0], scale_factor=2, mode="bilinear")),
        odd("pad 1 64@56", "X [n:1, c:64, h:56, w:56]",
            "Y[n:1, c:64, h:58, w:58] = if 1 <= h && h < 57 && 1 <= w && w < 57 then X[n, c, h-1, w-1] else 0",
            lambda x: F.pad(x[0], (1, 1, 1, 1))),
        odd("reflection pad 1 64@56", "X [n:1, c:64, h:56, w:56]",
            "Y[n:1, c:64, h:58, w:58] = X[n, c, min(max(max(1-h, h-1), 0), 55-max(h-56, 0)), min(max(max(1-w, w-1), 0), 55-max(w-56, 0))]",
            lambda x: F.pad(x[0], (1, 1, 1, 1), mode="reflect")),
        odd("cat 64+32@28", "A [n:1, c:64, h:28, w:28]; B [n:1, c:32, h:28, w:28]",
            "Y[n:1, c:96, h:28, w:28] = if c < 64 then A[n, c, h, w] else B[n, c-64, h, w]",
            lambda x: torch.cat([x[0], x[1]], 1)),
        odd("cat 32+32@28 nhwc", "A [n:1, h:28, w:28, c:32]; B [n:1, h:28, w:28, c:32]",
            "Y[n:1, h:28, w:28, c:64] = if c < 32 then A[n, h, w, c] else B[n, h, w, c-32]",
            lambda x: torch.cat([x[0], x[1]], 3)),
        odd("cat 20+12+5@14 nhwc", "A [n:1, h:14, w:14, c:20]; B [n:1, h:14, w:14, c:12]; C [n:1, h:14, w:14, c:5]",
            "Y[n:1, h:14, w:14, c:37] = if c < 20 then A[n, h, w, c] else (if c < 32 then B[n, h, w, c-20] else C[n, h, w, c-32])",
            lambda x: torch.cat(x, 3)),
        odd("half the channels 116@28", "X [n:1, c:116, h:28, w:28]",
            "Y[n:1, c:58, h:28, w:28] = X[n, c+58, h, w]", lambda x: x[0][:, 58:].contiguous()),
        odd("every second pixel 64@56", "X [n:1, c:64, h:56, w:56]",
            "Y[n:1, c:64, h:28, w:28] = X[n, c, h*2, w*2]",
            lambda x: x[0][:, :, ::2, ::2].contiguous()),
        odd("nchw to nhwc 64@56", "X [n:1, c:64, h:56, w:56]",
            "Y[n:1, h:56, w:56, c:64] = X[n, c, h, w]",
            lambda x: x[0].permute(0, 2, 3, 1).contiguous()),
        odd("nhwc to nchw 64@56", "X [n:1, h:56, w:56, c:64]",
            "Y[n:1, c:64, h:56, w:56] = X[n, h, w, c]",
            lambda x: channels_last(x[0]).contiguous()),
        odd("twice nhwc, nchw 64@64", "X [n:1, h:64, w:64, c:64]",
            "Y[n:1, c:64, h:64, w:64] = X[n, h, w, c] * 2",
            lambda x: channels_last(x[0]).mul(2).contiguous()),
        odd("sum of nhwc, nchw 256@32", "A [n:1, h:32, w:32, c:256]; B [n:1, h:32, w:32, c:256]",
            "Y[n:1, c:256, h:32, w:32] = A[n, h, w, c] + B[n, h, w, c]",
            lambda x: channels_last(x[0] + x[1]).contiguous()),
        odd("cat 32+32@128 of nhwc, nchw", "A [n:1, h:128, w:128, c:32]; B [n:1, h:128, w:128, c:32]",
            "Y[n:1, c:64, h:128, w:128] = if c < 32 then A[n, h, w, c] else B[n, h, w, c-32]",
            lambda x: channels_last(torch.cat([x[0], x[1]], 3)).contiguous()),
        odd("twice nchw, nhwc 64@64", "X [n:1, c:64, h:64, w:64]",
            "Y[n:1, h:64, w:64, c:64] = X[n, c, h, w] * 2",
            lambda x: x[0].permute(0, 2, 3, 1).mul(2).contiguous()),
        odd("heads of 128x768", "X [b:1, t:128, i:768]",
            "Y[b:1, h:12, t:128, d:64] = X[b, t, h*64+d]",
            lambda x: x[0].view(1, 128, 12, 64).transpose(1, 2).contiguous()),
        odd("pixel shuffle 2 64@28", "X [n:1, c:64, h:28, w:28]",
            "Y[n:1, c:16, h:56, w:56] = X[n, c*4 + h%2*2 + w%2, h/2, w/2]",
            lambda x: F.pixel_shuffle(x[0], 2)),
        odd("channel shuffle 2 116@28", "X [n:1, c:116, h:28, w:28]",
            "Y[n:1, c:116, h:28, w:28] = X[n, c%2*58 + c/2, h, w]",
            lambda x: F.channel_shuffle(x[0], 2)),
        odd("roll 3 96@56 nhwc", "X [n:1, h:56, w:56, c:96]",
            "Y[n:1, h:56, w:56, c:96] = X[n, (h+3)%56, (w+3)%56, c]",
            lambda x: x[0].roll((-3, -3), (1, 2))),
        odd("windows 7 of 96@56 nhwc", "X [n:1, h:56, w:56, c:96]",
            "Y[a:8, b:8, i:7, j:7, c:96] = X[0, a*7+i, b*7+j, c]",
            lambda x: x[0].view(1, 8, 7, 8, 7, 96).permute(0, 1, 3, 2, 4, 5).contiguous()),
        odd("embedding 128 of 5000x768", "I i32 [t:128] 0..5000; W [v:5000, d:768]",
            "Y[t:128, d:768] = W[I[t], d]", lambda x: F.embedding(x[0], x[1])),
    ]  # fmt: skip


def norms() -> list[Case]:
    return [
        odd("softmax over channels 21@56", "X [n:1, c:21, h:56, w:56]",
            """M[n:1, h:56, w:56] = X[n, c, h, w] // max c:21
            E[n:1, c:21, h:56, w:56] = exp(X[n, c, h, w] - M[n, h, w])
            S[n:1, h:56, w:56] = E[n, c, h, w] // sum c:21
            Y[n:1, c:21, h:56, w:56] = E[n, c, h, w] / S[n, h, w]""",
            lambda x: x[0].softmax(1)),
        odd("layer norm over channels 96@56", "X [n:1, c:96, h:56, w:56]; G [c:96]; B [c:96]",
            """M[n:1, h:56, w:56] = X[n, c, h, w] // mean c:96
            V[n:1, h:56, w:56] = (X[n, c, h, w] - M[n, h, w]) * (X[n, c, h, w] - M[n, h, w]) // mean c:96
            Y[n:1, c:96, h:56, w:56] = (X[n, c, h, w] - M[n, h, w]) / sqrt(V[n, h, w] + 0.000001) * G[c] + B[c]""",
            lambda x: F.layer_norm(x[0].permute(0, 2, 3, 1), (96,), x[1], x[2], 1e-6)
            .permute(0, 3, 1, 2).contiguous()),
        group_norm(64, 56, 32),
        group_norm(128, 28, 32),
        group_norm(256, 14, 32),
        *(group_norm_last(*row) for row in ((64, 56, 32), (96, 56, 32), (128, 28, 32), (320, 32, 32))),
        odd("batch norm 64@56", "X [n:1, c:64, h:56, w:56]; M [c:64]; V [c:64]; G [c:64]; B [c:64]",
            "Y[n:1, c:64, h:56, w:56] = (X[n, c, h, w] - M[c]) / sqrt(V[c]*V[c] + 0.00001) * G[c] + B[c]",
            lambda x: F.batch_norm(x[0], x[1], x[2] * x[2], x[3], x[4])),
        odd("norm of channels 256@14", "X [n:1, c:256, h:14, w:14]",
            """S[n:1, h:14, w:14] = X[n, c, h, w] * X[n, c, h, w] // sum c:256
            Y[n:1, c:256, h:14, w:14] = X[n, c, h, w] / max(sqrt(S[n, h, w]), 0.000000000001)""",
            lambda x: F.normalize(x[0], dim=1)),
        odd("sigmoid gate 144@28", "X [n:1, c:144, h:28, w:28]; S [n:1, c:144]",
            "Y[n:1, c:144, h:28, w:28] = X[n, c, h, w] / (1 + exp(-S[n, c]))",
            lambda x: x[0] * torch.sigmoid(x[1])[:, :, None, None]),
        odd("hard swish 72@28", "X [n:1, c:72, h:28, w:28]",
            "Y[n:1, c:72, h:28, w:28] = X[n, c, h, w] * min(max(X[n, c, h, w] + 3, 0), 6) / 6",
            lambda x: F.hardswish(x[0])),
        odd("add and relu 64@56", "A [n:1, c:64, h:56, w:56]; B [n:1, c:64, h:56, w:56]",
            "Y[n:1, c:64, h:56, w:56] = max(A[n, c, h, w] + B[n, c, h, w], 0)",
            lambda x: F.relu(x[0] + x[1])),
    ]  # fmt: skip


def stencil(size: int) -> Case:
    """Five points without padding."""
    inner = size - 2
    weight = torch.tensor([[0.0, 1, 0], [1, -4, 1], [0, 1, 0]]).view(1, 1, 3, 3)
    return odd(
        f"five points of {size}x{size}",
        f"X [h:{size}, w:{size}]",
        f"Y[h:{inner}, w:{inner}] = X[h, w+1] + X[h+1, w] + X[h+1, w+2] + X[h+2, w+1] - 4 * X[h+1, w+1]",
        lambda x: F.conv2d(x[0][None, None], weight),
    )  # fmt: skip


def sums() -> list[Case]:
    return [
        conv("3x3 groups of 2 64@28 nhwc", 64, 64, 28, groups=32),
        conv("3x3 groups of 4 128@56 nhwc", 128, 128, 56, groups=32),
        conv("3x3 groups of 4 128@56 nchw", 128, 128, 56, groups=32, layout="nchw"),
        conv("1x1 3->10@38 nhwc", 3, 10, 38, 1),
        stencil(40),
        odd("convolution of 3 64@1000", "X [n:1, c:64, l:1000]; W [o:64, c:64, k:3]",
            "Y[n:1, o:64, l:998] = X[n, c, l+k] * W[o, c, k] // sum c:64, k:3",
            lambda x: F.conv1d(x[0], x[1])),
        odd("linear 1x512x1000", "X [n:1, i:512]; W [o:1000, i:512]; B [o:1000]",
            """S[n:1, o:1000] = X[n, i] * W[o, i] // sum i:512
            Y[n:1, o:1000] = S[n, o] + B[o]""",
            lambda x: F.linear(x[0], x[1], x[2])),
        odd("unfold 3 16@28", "X [n:1, c:16, h:28, w:28]",
            "Y[n:1, c:16, i:3, j:3, h:26, w:26] = X[n, c, h+i, w+j]",
            lambda x: F.unfold(x[0], 3)),
    ]  # fmt: skip


def transposed(
    name: str, channels: int, size: int, out: int, kernel: int, stride: int, padding: int
) -> Case:
    return call(
        name, "conv_transpose2d_nchw",
        f"in_channels={channels} height={size} width={size} out_channels={out} kernel={kernel} stride={stride} padding={padding}",
        lambda x: F.conv_transpose2d(x[0], x[1], None, stride, padding),
    )  # fmt: skip


def sizes() -> list[Case]:
    """Sizes that vectors do not divide, and steps other than one forward."""
    return [
        odd("transpose 1001x1003", "X [i:1001, j:1003]", "Y[j:1003, i:1001] = X[i, j]",
            lambda x: x[0].t().contiguous()),
        odd("transposed and added 1001x1003", "X [i:1001, j:1003]; B [j:1003, i:1001]",
            "Y[j:1003, i:1001] = X[i, j] * 2 + B[j, i]", lambda x: torch.add(x[1], x[0].t(), alpha=2)),
        odd("nhwc to nchw 64@57", "X [n:1, h:57, w:57, c:64]",
            "Y[n:1, c:64, h:57, w:57] = X[n, h, w, c]",
            lambda x: channels_last(x[0]).contiguous()),
        odd("flip of rows 100x1001", "X [i:100, j:1001]", "Y[i:100, j:1001] = X[i, 1000-j]",
            lambda x: x[0].flip(1)),
        odd("roll 17 of 100001", "X [i:100001]", "Y[i:100001] = X[(i+17)%100001]",
            lambda x: x[0].roll(-17)),
        odd("roll 20 64@56", "X [c:64, h:56, w:56]", "Y[c:64, h:56, w:56] = X[c, h, (w+20)%56]",
            lambda x: x[0].roll(-20, 2)),
        odd("matrix transposed times vector 1003x1001", "A [k:1003, m:1001]; X [k:1003]",
            "Y[m:1001] = A[k, m] * X[k] // sum k:1003", lambda x: x[0].t() @ x[1]),
        odd("matrix transposed times vector 2048", "A [k:2048, m:2048]; X [k:2048]",
            "Y[m:2048] = A[k, m] * X[k] // sum k:2048", lambda x: x[0].t() @ x[1]),
        odd("mean of columns 1003x1003", "A [k:1003, m:1003]", "Y[m:1003] = A[k, m] // mean k:1003",
            lambda x: x[0].mean(0)),
        conv("1x1 64->96@57 nchw", 64, 96, 57, 1, layout="nchw"),
        transposed("transposed 5x5 s2 32-16@20", 32, 20, 16, 5, 2, 2),
        transposed("transposed 5x5 s3 32-16@13", 32, 13, 16, 5, 3, 1),
        transposed("transposed 4x4 s3 32-16@13", 32, 13, 16, 4, 3, 0),
        transposed("transposed 9x9 s4 32-16@13", 32, 13, 16, 9, 4, 2),
        odd("transposed 8x8 s8 64-32@14", "X [n:1, c:64, h:14, w:14]; W [c:64, o:32, kh:8, kw:8]",
            "Y[n:1, o:32, h:112, w:112] = X[n, c, h/8, w/8] * W[c, o, h%8, w%8] // sum c:64",
            lambda x: F.conv_transpose2d(x[0], x[1], None, 8)),
        call("transposed 3x3x3 s2 16-16@9", "conv_transpose3d_ncdhw",
             "in_channels=16 depth=9 height=9 width=9 out_channels=16 kernel=3 stride=2",
             lambda x: F.conv_transpose3d(x[0], x[1], None, 2)),
    ]  # fmt: skip


INSIDE = "1 <= h+kh && h+kh < 33 && 1 <= w+kw && w+kw < 33"
OUTSIDE = "h+kh < 1 || h+kh >= 33 || w+kw < 1 || w+kw >= 33"
PIXEL, WEIGHT = "X[n, h+kh-1, w+kw-1, c]", "W[o, c, kh, kw]"
BORDERS = {
    "the image is 0": f"(if {INSIDE} then {PIXEL} else 0) * {WEIGHT}",
    "the product is 0": f"if {INSIDE} then {PIXEL} * {WEIGHT} else 0",
    "outside is 0": f"if {OUTSIDE} then 0 else {PIXEL} * {WEIGHT}",
    "not outside": f"if !({OUTSIDE}) then {PIXEL} * {WEIGHT} else 0",
}


def borders() -> list[Case]:
    """The padding boundary of one convolution, written in several ways."""
    return [
        odd(f"3x3 3->32@32, {name}", "X [n:1, h:32, w:32, c:3]; W [o:32, c:3, kh:3, kw:3]",
            f"Y[n:1, h:32, w:32, o:32] = {text} // sum c:3, kh:3, kw:3",
            lambda x: F.conv2d(channels_last(x[0]), x[1], padding=1).permute(0, 2, 3, 1))
        for name, text in BORDERS.items()
    ]  # fmt: skip


def some_terms() -> list[Case]:
    """Guarded products of weights whose rows lie along the reduction."""
    return [
        odd("matrix 64, terms 10 to 49", "A [i:64, k:64]; W [j:64, k:64]",
            "Y[i:64, j:64] = if 10 <= k && k < 50 then A[i, k] * W[j, k] else 0 // sum k:64",
            lambda x: x[0][:, 10:50] @ x[1][:, 10:50].t()),
        odd("matrix 512 times vector, terms from 100", "X [k:512]; W [j:64, k:512]",
            "Y[j:64] = if 100 <= k then X[k] * W[j, k] else 0 // sum k:512",
            lambda x: x[1][:, 100:] @ x[0][100:]),
        odd("3x3 16->32@7, 5 taps", "X [h:7, w:7, c:16]; W [o:32, c:16, kh:3, kw:3]",
            "Y[h:7, w:7, o:32] = if kh*3+kw < 5 then (if 1 <= h+kh && h+kh < 8 && 1 <= w+kw && w+kw < 8 then X[h+kh-1, w+kw-1, c] * W[o, c, kh, kw] else 0) else 0 // sum c:16, kh:3, kw:3",
            lambda x: F.conv2d(x[0].permute(2, 0, 1)[None], x[1] * FIVE, padding=1)[0].permute(1, 2, 0)),
    ]  # fmt: skip


FIVE = (torch.arange(9) < 5).reshape(3, 3)


def odd_programs() -> list[Case]:
    return pools() + moves() + norms() + sums() + sizes() + borders() + some_terms()


# ---- all kinds, and drawn kernels ---------------------------------------------------------------

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
    for number, _, text in solved_draws(TARGETS.read_text(), seed, BUDGET, first=first):
        pack = canvas.KernelPack(text)
        yield number, pack, random.Random(number).randrange(len(pack.targets))


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
