"""The operator library against torch: each row of the table is one program, evaluated whole by the
interpreter on random inputs and compared with torch's own operator in float64.

A row is what a user would write after `canvas operator`.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
import scipy.sparse  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import canvas  # noqa: E402
from canvas import _core  # noqa: E402

torch.set_num_threads(1)

ROOT = Path(__file__).resolve().parents[2]
CANVAS = Path(sys.executable).parent / "canvas"

Values = dict[str, str]
Tensors = list[torch.Tensor]  # X, W, B as the program wants them

ROWS = """
zero_pad1d channels=3 length=5 padding=2
zero_pad1d batch=2 channels=1 length=1 padding=0x3
zero_pad1d channels=2 length=7 padding=0
zero_pad1d channels=2 length=4 padding=4x1
zero_pad1d channels=1 length=11 padding=1
zero_pad2d channels=3 height=5 width=4 padding=1
zero_pad2d batch=2 channels=1 height=1 width=1 padding=2x0
zero_pad2d channels=2 height=3 width=7 padding=1x2x3x0
zero_pad2d channels=2 height=3 width=2 padding=0
zero_pad2d channels=1 height=2 width=13 padding=0x5

conv1d in_channels=3 length=11 out_channels=4 kernel=3
conv1d batch=2 in_channels=4 length=13 out_channels=6 kernel=5 stride=2 padding=2 bias=1 groups=2
conv1d in_channels=2 length=1 out_channels=3 kernel=1
conv1d in_channels=2 length=17 out_channels=2 kernel=2 stride=5 padding=1
conv1d in_channels=5 length=19 out_channels=5 kernel=3 dilation=4 padding=3 groups=5 bias=1
conv1d in_channels=1 length=4 out_channels=2 kernel=4 padding=0x2

conv2d_nchw in_channels=3 height=7 width=5 out_channels=4 kernel=3 padding=1
conv2d_nchw batch=2 in_channels=4 height=1 width=1 out_channels=6 kernel=1 bias=1
conv2d_nchw in_channels=2 height=11 width=13 out_channels=3 kernel=2x3 stride=4x5 padding=1x0
conv2d_nchw in_channels=6 height=9 width=8 out_channels=4 kernel=3x1 dilation=2x1 groups=2 bias=1
conv2d_nchw in_channels=5 height=6 width=7 out_channels=10 kernel=3 groups=5 padding=1 stride=2
conv2d_nchw in_channels=1 height=1 width=9 out_channels=1 kernel=1x7 padding=0x3
conv2d_nchw in_channels=2 height=5 width=5 out_channels=2 kernel=3 padding=0x1x2x0

conv2d_nhwc height=7 width=5 in_channels=3 out_channels=4 kernel=3 padding=1
conv2d_nhwc batch=2 height=1 width=1 in_channels=4 out_channels=6 kernel=1 bias=1
conv2d_nhwc height=11 width=13 in_channels=2 out_channels=3 kernel=2x3 stride=4x5 padding=1x0
conv2d_nhwc height=9 width=8 in_channels=6 out_channels=4 kernel=3x1 dilation=2 groups=2 bias=1
conv2d_nhwc height=9 width=8 in_channels=6 out_channels=4 kernel=3 groups=2 padding=1 weights=hwio
conv2d_nhwc height=5 width=3 in_channels=7 out_channels=7 kernel=3 groups=7 padding=1 weights=hwio

conv2d_nchwc in_channels=8 height=5 width=6 in_block=4 out_channels=6 out_block=3 kernel=3 \
 padding=1
conv2d_nchwc batch=2 in_channels=3 height=1 width=1 in_block=3 out_channels=2 out_block=1 kernel=1
conv2d_nchwc in_channels=8 height=9 width=7 in_block=2 out_channels=12 out_block=3 kernel=3x2 \
 stride=2x1 groups=2 bias=1
conv2d_nchwc in_channels=5 height=7 width=7 in_block=1 out_channels=5 out_block=1 kernel=3 groups=5
conv2d_nchwc in_channels=16 height=3 width=11 out_channels=32 kernel=1x3 dilation=1x3 padding=0x2 \
 bias=1

depthwise_conv2d_nchw in_channels=3 height=7 width=5 kernel=3 padding=1
depthwise_conv2d_nchw in_channels=3 height=7 width=5 factor=2 kernel=3 bias=1 stride=2
depthwise_conv2d_nchw batch=2 in_channels=1 height=1 width=1 kernel=1 bias=1
depthwise_conv2d_nchw in_channels=4 height=11 width=8 factor=3 kernel=5x3 dilation=2x1 padding=3x1
depthwise_conv2d_nchw in_channels=2 height=7 width=7 kernel=2 stride=5

conv_transpose1d in_channels=3 length=5 out_channels=4 kernel=3
conv_transpose1d batch=2 in_channels=4 length=7 out_channels=6 kernel=4 stride=2 padding=1 bias=1 \
 groups=2
conv_transpose1d in_channels=1 length=1 out_channels=1 kernel=1
conv_transpose1d in_channels=3 length=4 out_channels=3 kernel=3 stride=5 dilation=2 groups=3 \
 output_padding=4
conv_transpose1d in_channels=2 length=11 out_channels=2 kernel=2 padding=3 stride=3 bias=1
conv_transpose1d in_channels=2 length=6 out_channels=3 kernel=3 padding=2x0 stride=2

conv_transpose2d_nchw in_channels=3 height=4 width=5 out_channels=2 kernel=3
conv_transpose2d_nchw batch=2 in_channels=4 height=4 width=4 out_channels=6 kernel=4 stride=2 \
 padding=1 groups=2 bias=1
conv_transpose2d_nchw in_channels=2 height=1 width=1 out_channels=3 kernel=2x1
conv_transpose2d_nchw in_channels=3 height=3 width=5 out_channels=3 kernel=3x2 stride=3x1 \
 dilation=1x2 output_padding=2x1 groups=3
conv_transpose2d_nchw in_channels=1 height=5 width=3 out_channels=1 kernel=2 padding=2x1 \
 stride=3x4 bias=1
conv_transpose2d_nchw in_channels=2 height=3 width=3 out_channels=2 kernel=3 padding=1x0x0x2 \
 output_padding=1 stride=2

im2col_nchw in_channels=3 height=5 width=7 kernel=3 padding=1
im2col_nchw batch=2 in_channels=4 height=6 width=5 kernel=3x2 stride=2x3 groups=2 padding=1x0
im2col_nchw in_channels=1 height=1 width=1 kernel=1
im2col_nchw in_channels=5 height=7 width=9 kernel=2 dilation=3x2 groups=5
im2col_nchw batch=3 in_channels=2 height=4 width=3 kernel=4x1 stride=5

im2col_nhwc height=5 width=7 in_channels=3 kernel=3 padding=1
im2col_nhwc batch=2 height=6 width=5 in_channels=4 kernel=3x2 stride=2x3 padding=1x0
im2col_nhwc height=1 width=1 in_channels=1 kernel=1
im2col_nhwc height=7 width=9 in_channels=5 kernel=2 dilation=3x2
im2col_nhwc batch=3 height=4 width=3 in_channels=2 kernel=4x1 stride=5

gemm_conv2d_nchw in_channels=3 height=5 width=7 out_channels=4 kernel=3 padding=1
gemm_conv2d_nchw batch=2 in_channels=4 height=6 width=5 out_channels=6 kernel=3x2 stride=2x3 \
 groups=2 bias=1
gemm_conv2d_nchw in_channels=1 height=1 width=1 out_channels=2 kernel=1 bias=1
gemm_conv2d_nchw in_channels=5 height=7 width=9 out_channels=5 kernel=2 dilation=3x2 groups=5
gemm_conv2d_nchw batch=3 in_channels=2 height=4 width=3 out_channels=1 kernel=4x1 stride=5

gemm_conv2d_nhwc height=5 width=7 in_channels=3 out_channels=4 kernel=3 padding=1
gemm_conv2d_nhwc batch=2 height=6 width=5 in_channels=4 out_channels=6 kernel=3x2 stride=2x3 bias=1
gemm_conv2d_nhwc height=1 width=1 in_channels=1 out_channels=2 kernel=1 bias=1
gemm_conv2d_nhwc height=7 width=9 in_channels=5 out_channels=5 kernel=2 dilation=3x2
gemm_conv2d_nhwc batch=3 height=4 width=3 in_channels=2 out_channels=1 kernel=4x1 stride=5

gemv m=5 k=7
gemv m=1 k=1
gemv m=13 k=3 transpose_a=1
gemv m=1 k=31
gemv m=17 k=1 transpose_a=1
gemm m=5 k=7 n=3
gemm m=1 k=1 n=1
gemm m=13 k=3 n=11 transpose_a=1
gemm m=4 k=5 n=6 transpose_b=1
gemm m=7 k=2 n=1 transpose_a=1 transpose_b=1
batch_gemm batch=2 m=5 k=7 n=3
batch_gemm batch=1 m=1 k=1 n=1
batch_gemm batch=3 m=13 k=3 n=2 transpose_a=1
batch_gemm batch=2 m=4 k=5 n=6 transpose_b=1
batch_gemm batch=5 m=7 k=2 n=1 transpose_a=1 transpose_b=1
linear in_features=7 out_features=3
linear batch=5 in_features=7 out_features=3 bias=1
linear in_features=1 out_features=1 bias=1
linear batch=13 in_features=11 out_features=1
linear batch=2 in_features=1 out_features=17 bias=1

bsr_gemm m=5 k=7 n=32 blocks=9
bsr_gemm m=1 k=1 n=1 blocks=1 block_rows=1
bsr_gemm m=7 k=12 n=15 blocks=4 block_rows=3 block_columns=4 bias=1
bsr_gemm m=3 k=5 n=8 blocks=40 block_rows=1 bias=1
bsr_gemm m=2 k=35 n=22 blocks=1 block_rows=11 block_columns=7
bsr_conv2d_nhwc height=5 width=4 in_channels=3 out_channels=32 kernel=3 padding=1 blocks=23
bsr_conv2d_nhwc batch=2 height=6 width=5 in_channels=4 out_channels=6 kernel=3x2 stride=2x3 \
 blocks=7 block_rows=3 block_columns=4 bias=1
bsr_conv2d_nhwc height=1 width=1 in_channels=1 out_channels=2 kernel=1 blocks=1 block_rows=2 bias=1
bsr_conv2d_nhwc height=7 width=9 in_channels=5 out_channels=5 kernel=2 dilation=3x2 blocks=60 \
 block_rows=1
bsr_conv2d_nhwc height=4 width=3 in_channels=2 out_channels=8 kernel=4x1 stride=5 blocks=1 \
 block_rows=4 block_columns=8

mean shape=5
mean shape=3x4x5 dim=1
mean shape=2x3x5x7 dim=2,3
mean shape=1x1 dim=-1
mean shape=2x3x2x3x2 dim=0,-1,2
softmax shape=5
softmax shape=3x7
softmax shape=2x3x5 dim=1
softmax shape=1x1 dim=0
softmax shape=2x3x5 dim=0,2
softmax shape=4x1x6x3 dim=-2

max_pool1d channels=2 length=9 kernel=3
max_pool1d channels=1 length=10 kernel=4 stride=3 padding=2 ceil_mode=1
max_pool1d batch=2 channels=3 length=1 kernel=1
max_pool1d channels=1 length=17 kernel=3 dilation=4 stride=2 padding=1
max_pool1d channels=2 length=7 kernel=2 stride=5 ceil_mode=1
max_pool2d_nchw channels=2 height=8 width=7 kernel=3 stride=2 padding=1
max_pool2d_nchw channels=1 height=7 width=9 kernel=2x3 ceil_mode=1
max_pool2d_nchw batch=2 channels=3 height=1 width=1 kernel=1 stride=3
max_pool2d_nchw channels=1 height=11 width=13 kernel=2 dilation=3x2 stride=1x4 padding=1x0
max_pool2d_nchw channels=2 height=5 width=6 kernel=3 stride=4 padding=1 ceil_mode=1
max_pool2d_nhwc height=8 width=7 channels=2 kernel=3 stride=2 padding=1
max_pool2d_nhwc height=7 width=9 channels=1 kernel=2x3 ceil_mode=1
max_pool2d_nhwc batch=2 height=1 width=1 channels=3 kernel=1
max_pool2d_nhwc height=11 width=13 channels=1 kernel=2 dilation=3x2 stride=1x4 padding=1x0
max_pool2d_nhwc height=5 width=6 channels=2 kernel=3 stride=4 padding=1 ceil_mode=1
avg_pool1d channels=2 length=9 kernel=3
avg_pool1d channels=1 length=10 kernel=4 stride=3 padding=2 ceil_mode=1
avg_pool1d channels=1 length=10 kernel=4 stride=3 padding=2 ceil_mode=1 count_include_pad=0
avg_pool1d batch=2 channels=3 length=1 kernel=1
avg_pool1d channels=1 length=17 kernel=3 stride=2 padding=1 count_include_pad=0
avg_pool1d channels=2 length=7 kernel=2 stride=5 ceil_mode=1
avg_pool2d_nchw channels=2 height=8 width=7 kernel=3 stride=2 padding=1
avg_pool2d_nchw channels=2 height=8 width=7 kernel=3 stride=2 padding=1 count_include_pad=0
avg_pool2d_nchw channels=1 height=7 width=9 kernel=2x3 ceil_mode=1
avg_pool2d_nchw batch=2 channels=3 height=1 width=1 kernel=1 stride=3
avg_pool2d_nchw channels=2 height=5 width=6 kernel=3 stride=2 padding=1 ceil_mode=1
avg_pool2d_nchw channels=2 height=5 width=6 kernel=4x3 stride=3 padding=2x1 ceil_mode=1 \
 count_include_pad=0
avg_pool2d_nhwc height=8 width=7 channels=2 kernel=3 stride=2 padding=1
avg_pool2d_nhwc height=8 width=7 channels=2 kernel=3 stride=2 padding=1 count_include_pad=0
avg_pool2d_nhwc height=7 width=9 channels=1 kernel=2x3 ceil_mode=1
avg_pool2d_nhwc batch=2 height=1 width=1 channels=3 kernel=1
avg_pool2d_nhwc height=5 width=6 channels=2 kernel=3 stride=2 padding=1 ceil_mode=1
"""
LINES = [line for line in ROWS.replace("\\\n", "").splitlines() if line]
LIBRARY = {
    row["name"]: row
    for row in json.loads(
        subprocess.run([CANVAS, "operator", "--json"], capture_output=True, check=True).stdout
    )
}


# ---- what torch says ----------------------------------------------------------------------------


def numbers(value: str, count: int) -> list[int]:
    """A number for each of `count` places: 3 -> [3, 3], 1x0 -> [1, 1, 0, 0] of four."""
    given = [int(n) for n in re.split("[x,]", value)]
    return [n for n in given for _ in range(count // len(given))]


def flag(v: Values, name: str) -> bool:
    return v.get(name) == "1"


def padded(x: torch.Tensor, v: Values, axes: int, value: float = 0) -> torch.Tensor:
    """The last axes with what padding= says around them."""
    edges = numbers(v.get("padding", "0"), 2 * axes)
    pairs = [edges[2 * i : 2 * i + 2] for i in reversed(range(axes))]
    return F.pad(x, [n for pair in pairs for n in pair], value=value)


def windows(v: Values, axes: int) -> dict[str, list[int]]:
    return {name: numbers(v.get(name, "1"), axes) for name in ("stride", "dilation")}


def bias(t: Tensors, v: Values) -> torch.Tensor | None:
    return t[2].flatten() if flag(v, "bias") else None


def conv(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor | None, v: Values) -> torch.Tensor:
    axes = x.dim() - 2
    function = F.conv1d if axes == 1 else F.conv2d
    groups = int(v.get("groups", 1))
    return function(padded(x, v, axes), w, b, groups=groups, **windows(v, axes))


def conv_plain(t: Tensors, v: Values) -> torch.Tensor:
    return conv(t[0], t[1], bias(t, v), v)


def conv_nhwc(t: Tensors, v: Values) -> torch.Tensor:
    w = t[1].permute(3, 2, 0, 1) if v.get("weights") == "hwio" else t[1]
    return conv(t[0].permute(0, 3, 1, 2), w, bias(t, v), v).permute(0, 2, 3, 1)


def conv_nchwc(t: Tensors, v: Values) -> torch.Tensor:
    n, blocks, h, wide, block = t[0].shape
    x = t[0].permute(0, 1, 4, 2, 3).reshape(n, blocks * block, h, wide)
    w = t[1].permute(0, 5, 1, 4, 2, 3).flatten(0, 1).flatten(1, 2)
    y = conv(x, w, bias(t, v), v)
    out = t[1].shape[5]
    return y.unflatten(1, (-1, out)).permute(0, 1, 3, 4, 2)


def depthwise(t: Tensors, v: Values) -> torch.Tensor:
    groups = {"groups": v["in_channels"]}
    return conv(t[0], t[1].flatten(0, 1).unsqueeze(1), bias(t, v), v | groups)


def transposed(t: Tensors, v: Values) -> torch.Tensor:
    axes = t[0].dim() - 2
    function = F.conv_transpose1d if axes == 1 else F.conv_transpose2d
    edges = numbers(v.get("padding", "0"), 2 * axes)
    more = numbers(v.get("output_padding", "0"), axes)
    options = {"groups": int(v.get("groups", 1)), **windows(v, axes)}
    if edges[::2] == edges[1::2]:
        options |= {"padding": edges[::2], "output_padding": more}
        return function(t[0], t[1], bias(t, v), **options)
    full = function(t[0], t[1], bias(t, v), output_padding=more, **options)
    for i in range(axes):
        size = full.shape[2 + i] - edges[2 * i] - edges[2 * i + 1]
        full = full.narrow(2 + i, edges[2 * i], size)
    return full


def im2col_nchw(t: Tensors, v: Values) -> torch.Tensor:
    groups = int(v.get("groups", 1))
    columns = F.unfold(padded(t[0], v, 2), numbers(v["kernel"], 2), **windows(v, 2))
    columns = columns.unflatten(1, (groups, -1))  # batch, group, element, window
    return columns.permute(1, 2, 0, 3).flatten(2)


def im2col_nhwc(t: Tensors, v: Values) -> torch.Tensor:
    kernel = numbers(v["kernel"], 2)
    x = padded(t[0].permute(0, 3, 1, 2), v, 2)
    columns = F.unfold(x, kernel, **windows(v, 2)).unflatten(1, (-1, kernel[0] * kernel[1]))
    return columns.permute(0, 3, 2, 1).flatten(0, 1).flatten(1)


def gemm_nhwc(t: Tensors, v: Values) -> torch.Tensor:
    kernel = numbers(v["kernel"], 2)
    w = t[1].unflatten(1, (*kernel, -1)).permute(0, 3, 1, 2)
    y = conv(t[0].permute(0, 3, 1, 2), w, bias(t, v), v)
    return y.permute(0, 2, 3, 1).flatten(0, 2)


def matmul(t: Tensors, v: Values) -> torch.Tensor:
    a = t[0].mT if flag(v, "transpose_a") else t[0]
    b = t[1].mT if flag(v, "transpose_b") else t[1]
    return a @ b


def bsr(t: Tensors, v: Values) -> scipy.sparse.bsr_matrix:
    """The matrix of the inputs W, ind and ptr, as scipy reads them."""
    data, ind, ptr = (x.numpy() for x in t[1:4])
    rows, columns = data.shape[1] * (len(ptr) - 1), bsr_columns(v)
    return scipy.sparse.bsr_matrix(
        (data, ind.astype(np.int32), ptr.astype(np.int32)), shape=(rows, columns)
    )


def bsr_columns(v: Values) -> int:
    if "k" in v:
        return int(v["k"])
    height, width = numbers(v["kernel"], 2)
    return int(v["in_channels"]) * height * width


def bsr_gemm(t: Tensors, v: Values) -> torch.Tensor:
    y = torch.from_numpy((bsr(t, v) @ t[0].numpy().T).T)
    return y + t[4] if flag(v, "bias") else y


def bsr_conv(t: Tensors, v: Values) -> torch.Tensor:
    return gemm_nhwc([t[0], torch.from_numpy(bsr(t, v).toarray()), *t[4:]], v)


def dims(v: Values, otherwise: str) -> list[int]:
    return [int(n) for n in v.get("dim", otherwise).split(",")]


def mean(t: Tensors, v: Values) -> torch.Tensor:
    return t[0].mean(dims(v, "0"))


def softmax(t: Tensors, v: Values) -> torch.Tensor:
    along = dims(v, "-1")
    if len(along) == 1:
        return F.softmax(t[0], along[0])
    return (t[0] - t[0].logsumexp(along, keepdim=True)).exp()


def pool(t: Tensors, v: Values, largest: bool) -> torch.Tensor:
    axes = t[0].dim() - 2
    kernel = numbers(v["kernel"], axes)
    options = {
        "stride": numbers(v.get("stride", v["kernel"]), axes),
        "padding": numbers(v.get("padding", "0"), axes),
        "ceil_mode": flag(v, "ceil_mode"),
    }
    if largest:
        function = F.max_pool1d if axes == 1 else F.max_pool2d
        return function(t[0], kernel, dilation=numbers(v.get("dilation", "1"), axes), **options)
    options["count_include_pad"] = v.get("count_include_pad", "1") == "1"
    return (F.avg_pool1d if axes == 1 else F.avg_pool2d)(t[0], kernel, **options)


def last(function: Callable[[Tensors, Values], torch.Tensor]) -> object:
    """The same with the channels last."""

    def answer(t: Tensors, v: Values) -> torch.Tensor:
        return function([t[0].permute(0, 3, 1, 2)], v).permute(0, 2, 3, 1)

    return answer


def max_pool(t: Tensors, v: Values) -> torch.Tensor:
    return pool(t, v, largest=True)


def avg_pool(t: Tensors, v: Values) -> torch.Tensor:
    return pool(t, v, largest=False)


TORCH = {
    "zero_pad1d": lambda t, v: padded(t[0], v, 1),
    "zero_pad2d": lambda t, v: padded(t[0], v, 2),
    "conv1d": conv_plain,
    "conv2d_nchw": conv_plain,
    "conv2d_nhwc": conv_nhwc,
    "conv2d_nchwc": conv_nchwc,
    "depthwise_conv2d_nchw": depthwise,
    "conv_transpose1d": transposed,
    "conv_transpose2d_nchw": transposed,
    "im2col_nchw": im2col_nchw,
    "im2col_nhwc": im2col_nhwc,
    "gemm_conv2d_nchw": conv_plain,
    "gemm_conv2d_nhwc": gemm_nhwc,
    "gemv": matmul,
    "gemm": matmul,
    "batch_gemm": matmul,
    "linear": lambda t, v: F.linear(t[0], t[1], bias(t, v)),
    "bsr_gemm": bsr_gemm,
    "bsr_conv2d_nhwc": bsr_conv,
    "mean": mean,
    "softmax": softmax,
    "max_pool1d": max_pool,
    "max_pool2d_nchw": max_pool,
    "max_pool2d_nhwc": last(max_pool),
    "avg_pool1d": avg_pool,
    "avg_pool2d_nchw": avg_pool,
    "avg_pool2d_nhwc": last(avg_pool),
}


# ---- tests --------------------------------------------------------------------------------------


def split(line: str) -> tuple[str, Values]:
    name, *words = line.split()
    return name, dict(word.split("=", 1) for word in words)


def sizes(program: str, kind: str, name: str = r"\w+") -> list[list[int]]:
    """Of the inputs ("in "), or of a stage, as the text declares them."""
    found = re.findall(rf"^{kind}{name} ?(?:\w+ )?\[(.*?)\]", program, re.M)
    return [[int(size) for size in re.findall(r":(\d+)", axes)] for axes in found]


def inputs_of(program: str, values: Values, seed: int) -> Tensors:
    torch.manual_seed(seed)
    inputs = [torch.randn(s, dtype=torch.float64) for s in sizes(program, "in ")]
    if "blocks" in values:
        inputs[2:4] = block_places(inputs, values)
    return inputs


def evaluate(program: str, inputs: Tensors) -> torch.Tensor:
    data = _core.evaluate(program, [x.numpy().tobytes() for x in inputs])
    (shape,) = sizes(program, "", "Y")
    return torch.from_numpy(np.frombuffer(data).copy()).reshape(shape)


def block_places(inputs: Tensors, values: Values) -> Tensors:
    """ind and ptr of as many blocks, anywhere: rows without a block among them."""
    data, rows = inputs[1], len(inputs[3]) - 1
    columns = bsr_columns(values) // data.shape[2]
    places = torch.randperm(rows * columns)[: len(data)].sort().values
    starts = torch.searchsorted(places, torch.arange(rows + 1) * columns)
    return [(places % columns).double(), starts.double()]


@pytest.mark.parametrize("line", LINES)
def test_equals_torch(line: str) -> None:
    name, values = split(line)
    program = canvas.operator_program(name, **values)
    inputs = inputs_of(program, values, len(line))
    wanted = TORCH[name](inputs, values)
    result = evaluate(program, inputs)
    assert result.shape == wanted.shape
    torch.testing.assert_close(result, wanted, rtol=1e-12, atol=1e-12)


def test_every_operator_has_five_shapes() -> None:
    counts = {name: sum(split(line)[0] == name for line in LINES) for name in LIBRARY}
    assert not {name: count for name, count in counts.items() if count < 5}
    assert TORCH.keys() == LIBRARY.keys()


@pytest.mark.parametrize("name", LIBRARY)
def test_data_types(name: str) -> None:
    """Data, weights and result have the type asked for; everything else at least as wide a one."""
    line = next(line for line in LINES if split(line)[0] == name)
    values = split(line)[1]
    assert " f64" not in canvas.operator_program(name, **values)
    program = canvas.operator_program(name, **values, dtype="f64")
    assert " f32" not in program
    stages = [line for line in program.splitlines() if " = " in line]
    assert all(re.match(r"\w+ f64 \[", line) for line in stages)
    program = canvas.operator_program(name, **values, dtype="bf16")
    floats = [line for line in program.splitlines() if re.match("in .* (f32|f64|bf16) ", line)]
    assert all(" bf16 [" in line for line in floats)
    assert re.search(r"^Y bf16 \[", program, re.M)


PUBLISHED = sorted((ROOT / "examples/operators").glob("*.txt"))


def lines_of(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if line and line[0] != "#"]


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_shapes_equal_torch(path: Path) -> None:
    """At 200 elements, the first and the last among them; layers of too many elements are left to
    their smaller likes.
    """
    for line in lines_of(path):
        name, values = split(line)
        program = canvas.operator_program(name, **values)
        if max(int(np.prod(s)) for s in sizes(program, r"(?:in )?")) > 1 << 23:
            continue
        inputs = inputs_of(program, values, 1)
        wanted = TORCH[name](inputs, values).flatten()
        at = torch.randint(len(wanted), (200,))
        at[0], at[1] = 0, len(wanted) - 1
        data = _core.evaluate(
            program, [x.numpy().tobytes() for x in inputs], at.numpy().astype(np.int64).tobytes()
        )
        result = torch.from_numpy(np.frombuffer(data).copy())
        torch.testing.assert_close(result, wanted[at], rtol=1e-10, atol=1e-10, msg=line)


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_shapes_build(path: Path) -> None:
    lines = lines_of(path)
    assert len(lines) >= 5
    for line in lines:
        name, values = split(line)
        program = canvas.operator_program(name, **values)
        assert sizes(program, "", "Y"), line


def command(*words: str, given: str) -> str:
    done = subprocess.run(
        [CANVAS, *words], input=given, capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def first_padded() -> list[str]:
    """Of each operator the first row whose program has a stage `pad`."""
    found: dict[str, str] = {}
    for line in LINES:
        name, values = split(line)
        if "\npad" in canvas.operator_program(name, **values):
            found.setdefault(name, line)
    return list(found.values())


@pytest.mark.parametrize("line", first_padded())
def test_padding_may_go_into_its_reader(line: str) -> None:
    name, values = split(line)
    program = canvas.operator_program(name, **values)
    inlined = command("edit", "-", "inline", "pad", given=program)
    assert "pad" not in inlined
    inputs = [torch.randn(s, dtype=torch.float64) for s in sizes(program, "in ")]
    assert torch.equal(evaluate(inlined, inputs), evaluate(program, inputs))


# A schedule of the notebook, the operator that it is for, and what it calls the stages.
NOTEBOOK = {
    "e3_values": (
        "gemm_conv2d_nhwc batch=2 height=6 width=8 in_channels=8 out_channels=32 kernel=3"
        " padding=1",
        {"Y": "cout"},
    ),
    "e4_values": (
        "bsr_conv2d_nhwc batch=2 height=6 width=8 in_channels=8 out_channels=64 kernel=3 padding=1"
        " blocks=40 block_columns=2",
        {"parts": "CC", "Y": "C"},
    ),
    "e5_values": ("bsr_gemm m=12 k=48 n=64 blocks=40", {"parts": "BM", "Y": "RS"}),
    "e6_values": (
        "conv2d_nhwc batch=2 height=9 width=10 in_channels=8 out_channels=32 kernel=3"
        " weights=hwio",
        {"Y": "C"},
    ),
}


@pytest.mark.parametrize("name", NOTEBOOK)
def test_schedules_of_the_notebook_fit(name: str) -> None:
    line, names = NOTEBOOK[name]
    operator, values = split(line)
    program = canvas.operator_program(operator, **values)
    if name.startswith("e3"):
        program = command("edit", "-", "cache", "Y", "as", "ccache", given=program)
    for ours, theirs in names.items():
        program = re.sub(rf"\b{ours}\b", theirs, program)
    schedule = f"examples/schedules/{name}.schedule"
    assert command("schedule", "check", "-", schedule, given=program).startswith("ok")


def test_python_writes_arguments() -> None:
    spelled = canvas.operator_program(
        "conv2d_nchw",
        in_channels=4,
        height=5,
        width=5,
        out_channels=2,
        kernel=(3, 1),
        padding=[1, 0],
        bias=True,
        dtype="f64",
    )
    words = "in_channels=4 height=5 width=5 out_channels=2 kernel=3x1 padding=1x0 bias=1 dtype=f64"
    done = subprocess.run(
        [CANVAS, "operator", "conv2d_nchw", *words.split()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert spelled == done.stdout


def test_python_raises_messages() -> None:
    with pytest.raises(canvas.CanvasError, match="did you mean 'conv2d_nchw'"):
        canvas.operator_program("conv2d_nchv")
    with pytest.raises(canvas.CanvasError, match="needs m=NUMBER"):
        canvas.operator_program("gemm")
    with pytest.raises(canvas.CanvasError, match="no operator has such a name"):
        canvas.operator_program("ünbekannt" * 20)
