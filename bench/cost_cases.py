"""The operators of `./dev bench cost`: those that the formula was fitted to, and held-out ones."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import native_programs as programs
from native_programs import Conv, constant
from tune_cases import convolution

from canvas import _core


@dataclass(frozen=True)
class Case:
    program: Callable[[], str]
    hand: str = ""  # of bench/native; "": none
    values: str = ""
    points: bool = False  # random ones of the tuner's sketches, instead of edits


def points(words: str) -> Case:
    """All inputs but the first are constant weights, packed beforehand."""

    def program() -> str:
        text: str = operator(words)()
        rest = re.findall(r"^in .*$", text, re.M)
        for line in rest[1:]:
            text = text.replace(line, f"{line} const")
        return text

    return Case(program, points=True)


def of_points(program: Callable[[], str]) -> Case:
    return Case(program, points=True)


def operator(words: str) -> Callable[[], str]:
    name, _, arguments = words.partition(" ")
    return lambda: _core.operator_program(name, arguments)


def conv(c: Conv, block: int = 32) -> Callable[[], str]:
    return lambda: programs.conv(c, block)


NHWC = "conv2d_nhwc kernel=3 padding=1 weights=hwio"
CASES = {
    "conv 3x3 64@56": Case(conv(Conv(64, 56, 64)), "conv_rows", "wi=14"),
    "conv 3x3 256@14": Case(conv(Conv(256, 14, 256)), "conv_rows", "wi=14"),
    "conv 3x3 64@28 nchw": Case(
        operator(
            "conv2d_nchw in_channels=64 height=28 width=28 out_channels=64 kernel=3 padding=1"
        )
    ),
    "conv 1x1 256@14": Case(conv(Conv(256, 14, 256, kernel=1, padding=0)), "conv_rows", "wi=14"),
    "conv 3x3 512@7": Case(conv(Conv(512, 7, 512), 64), "conv_blocks", "wi=7"),
    "depthwise 144@56": Case(
        lambda: programs.depthwise(Conv(144, 56, 144, groups=144), 1),
        "depthwise_rows",
        "hi=7,cv=16",
    ),
    "gemm 512": Case(lambda: programs.gemm(512, 512, 512, 32), "gemm", "oi=4,mi=8"),
    "gemm 250x253x257": Case(operator("gemm m=250 n=253 k=257"), "gemm_odd", "mi=8,ni=32"),
    "gemv 1024": Case(lambda: programs.gemv(1024, 1024, 16), "gemv", "mi=4"),
    "softmax 512x1024": Case(lambda: programs.softmax(512, 1024, 64), "softmax"),
    "layer norm 512x768": Case(lambda: programs.layer_norm(512, 768, 64), "layer_norm", "cv=64"),
    "gelu 512x1024": Case(lambda: programs.gelu(512, 1024, 0), "gelu"),
    "max pool 64@112": Case(
        operator("max_pool2d_nchw channels=64 height=112 width=112 kernel=3 stride=2 padding=1")
    ),
    "figure 6 64@56": Case(
        lambda: programs.figure6(Conv(64, 56, 64), 64), "figure6_rows", "tv=64,hi=7"
    ),
    "points of conv 3x3 64@56": points(
        f"{NHWC} height=56 width=56 in_channels=64 out_channels=64"
    ),
    "points of conv 3x3 256@14": points(
        f"{NHWC} height=14 width=14 in_channels=256 out_channels=256"
    ),
    "points of conv 3x3 512@7": points(
        f"{NHWC} height=7 width=7 in_channels=512 out_channels=512"
    ),
    "points of conv 3x3 512@7 batch 10": points(
        f"{NHWC} batch=10 height=7 width=7 in_channels=512 out_channels=512"
    ),
    "points of conv 3x3 128@28 nchw": points(
        "conv2d_nchw kernel=3 padding=1 height=28 width=28 in_channels=128 out_channels=128"
    ),
    "points of depthwise 144@56 nhwc": of_points(
        lambda: constant(programs.depthwise(Conv(144, 56, 144, groups=144), 0), 1)
    ),
    "points of depthwise 32@112 nhwc": of_points(
        lambda: constant(programs.depthwise(Conv(32, 112, 32, groups=32), 0), 1)
    ),
    "points of depthwise 144@56 nchw": points(
        "depthwise_conv2d_nchw height=56 width=56 in_channels=144 kernel=3 padding=1"
    ),
    "points of gemm 500x512x520": points("gemm m=500 n=512 k=520"),
    "points of bsr conv 128@28": points(
        "bsr_conv2d_nhwc height=28 width=28 in_channels=128 out_channels=128 kernel=3 padding=1"
        " block_rows=16 block_columns=1 blocks=3686"
    ),
    "points of softmax 512x1000": points("softmax shape=512x1000"),
}

HELD_OUT = {
    "points of conv 3x3 96@35": points(
        f"{NHWC} height=35 width=35 in_channels=96 out_channels=96"
    ),
    "points of conv 3x3 48@112 stride 2": points(
        f"{NHWC} height=112 width=112 in_channels=48 out_channels=96 stride=2"
    ),
    "points of conv 1x1 192@28": points(
        "conv2d_nhwc kernel=1 weights=hwio height=28 width=28 in_channels=192 out_channels=64"
    ),
    "points of conv 5x5 48@27 nchw": points(
        "conv2d_nchw kernel=5 padding=2 height=27 width=27 in_channels=48 out_channels=128"
    ),
    "points of conv 3x3 256@16 dilated": of_points(
        lambda: convolution((16, 16), 256, 128, 3, 1, 2, 2)
    ),
    "points of conv 3x3 192@20 groups 3": of_points(
        lambda: convolution((20, 20), 192, 192, 3, 1, 1, 1, 3)
    ),
    "points of conv1d 128@512": of_points(lambda: convolution((512,), 128, 64, 7, 1, 3)),
    "points of conv3d 32@8x28x28": of_points(lambda: convolution((8, 28, 28), 32, 32, 3, 1, 1)),
    "points of gemm 256x256x1024": points("gemm m=256 n=256 k=1024"),
    "points of gemm 384x768x640": points("gemm m=384 n=768 k=640"),
    "points of gemm 2000x24x300": points("gemm m=2000 n=24 k=300"),
    "points of batch gemm 12x128x64": points("batch_gemm batch=12 m=128 n=128 k=64"),
    "points of depthwise 240@28 nchw": points(
        "depthwise_conv2d_nchw height=28 width=28 in_channels=240 kernel=5 padding=2"
    ),
    "points of conv_transpose 96@14": points(
        "conv_transpose2d_nchw in_channels=96 height=14 width=14 out_channels=48 kernel=4"
        " stride=2 padding=1"
    ),
    "points of bsr conv 64@28": points(
        "bsr_conv2d_nhwc height=28 width=28 in_channels=64 out_channels=64 kernel=3 padding=1"
        " block_rows=16 block_columns=1 blocks=691"
    ),
    "points of softmax 200x333": points("softmax shape=200x333"),
    "gemv 700x2048": Case(operator("gemv m=700 k=2048")),
    "max pool 96@55 nhwc": Case(
        operator("max_pool2d_nhwc channels=96 height=55 width=55 kernel=3 stride=2")
    ),
}
