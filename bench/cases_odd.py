# ruff: noqa: E501
"""Programs of networks with channels first, besides convolutions: each with the same for torch.

They look as `torch.compile(backend="canvas")` receives them: poolings, copies, norms, odd sizes,
transposed convolutions, guarded loads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from cases_operators import Case, call, conv

Tensors = list[torch.Tensor]


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
