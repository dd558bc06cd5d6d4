"""Depth-wise convolutions with channels last whose lines under a window are more than the first
cache, or nearly so: of networks for small machines, at all strides, batches of 1 to 16 images.
"""

from __future__ import annotations

import torch
from defaults_cases import Case
from torch.nn import functional

PROGRAM = """canvas 1
program depthwise
in X f32 [n:{n}, h:{size}, w:{size}, c:{channels}]
in W f32 [kh:{k}, kw:{k}, c:{channels}] const
Y[n:{n}, h:{out}, w:{out}, c:{channels}] = \
if {pad} <= h*{stride}+kh && h*{stride}+kh < {end} && {pad} <= w*{stride}+kw && w*{stride}+kw < \
{end} then X[n, h*{stride}+kh-{pad}, w*{stride}+kw-{pad}, c] * W[kh, kw, c] else 0 \
// sum kh:{k}, kw:{k}
out Y
"""


def depthwise(channels: int, size: int, window: int = 3, stride: int = 1, batch: int = 1) -> Case:
    pad = window // 2

    def run(x: list[torch.Tensor]) -> torch.Tensor:
        weights = x[1].permute(2, 0, 1)[:, None]
        image = x[0].permute(0, 3, 1, 2)
        return functional.conv2d(image, weights, stride=stride, padding=pad, groups=channels)

    text = PROGRAM.format(
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


def windows() -> list[Case]:
    return [
        depthwise(32, 112),
        depthwise(96, 112, stride=2),
        depthwise(48, 112, window=5),
        depthwise(144, 56),
        depthwise(128, 56),
        depthwise(144, 56, stride=2),
        depthwise(144, 56, window=5),
        depthwise(144, 56, window=5, stride=2),
        depthwise(144, 28),
        depthwise(256, 28),
        depthwise(240, 28, stride=2),
        depthwise(240, 28, window=5),
        depthwise(240, 28, window=5, stride=2),
        depthwise(480, 28),
        depthwise(240, 14),
        depthwise(512, 14),
        depthwise(672, 14),
        depthwise(672, 14, window=5),
        depthwise(672, 14, window=5, stride=2),
        depthwise(960, 14),
        depthwise(960, 7),
        depthwise(240, 28, window=5, batch=4),
        depthwise(480, 14, window=5, batch=4),
        depthwise(144, 28, batch=16),
        depthwise(144, 56, batch=16),
        depthwise(240, 28, window=5, stride=2, batch=16),
        depthwise(480, 14, window=5, batch=16),
        depthwise(960, 7, batch=16),
    ]
