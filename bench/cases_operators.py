"""Operators at shapes of networks, and the kernels of examples/kernels at ResNet-18's layers.

Each case has the same computation for torch. Among them are products whose reduction is longer
than rows and columns, convolutions of 16 images, which come from memory, and depth-wise
convolutions with channels last whose lines under a window exceed L1, or nearly so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
