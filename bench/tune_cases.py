"""The cases of `./dev bench tune`: programs with constant weights, the same for oneDNN and torch.

`ansor` are the ten operators of Ansor's paper, four shapes each, batch 1; `rows` are reductions
along rows whose lengths vectors do not divide.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import native_programs as programs
import numpy as np
from contenders import Chain
from native_cases import Arrays, conv_arrays, conv_onednn, conv_torch, hwio, normal, plain_conv
from native_programs import Conv


@dataclass
class Case:
    group: str
    name: str
    batch: int
    program: Callable[[], str]
    arrays: Callable[[], Arrays]  # as torch takes them; images n h w c
    torch: Callable[..., Any]
    pack: Callable[[Arrays], Arrays] = list  # as the program takes them
    onednn: Callable[[Chain, Arrays], tuple[int, tuple[int, ...], bool]] | None = None
    image: bool = True  # the first array is one: n .. c for us, n c .. for torch
    floor: float = 0.92
    winograd: Callable[[Chain, Arrays], tuple[int, tuple[int, ...], bool]] | None = None


def operator(words: str) -> str:
    done = subprocess.run(
        ["canvas", "operator", *words.split()], check=True, capture_output=True, text=True
    )
    return constant(done.stdout)


def constant(program: str) -> str:
    """With constant weights."""
    return re.sub(r"^(in W .*\])$", r"\1 const", program, flags=re.M)


# ---- layers ------------------------------------------------------------------------------------


def dense(name: str, c: Conv) -> Case:
    return Case("layers", name, c.batch, lambda: operator(plain_conv(c)), lambda: conv_arrays(c),
                conv_torch(c), hwio, partial(conv_onednn, c))  # fmt: skip


def depthwise(name: str, c: Conv) -> Case:
    case = dense(name, c)
    case.program = lambda: constant(programs.depthwise(c, 0))
    case.pack = lambda a: [a[0], np.ascontiguousarray(a[1][:, 0].transpose(1, 2, 0))]
    case.floor = 1.0
    return case


def gemm(m: int, n: int, k: int) -> Case:
    text = (
        f"canvas 1\nprogram gemm\nin A f32 [m:{m}, k:{k}]\nin W f32 [k:{k}, n:{n}]\n"
        f"Y[m:{m}, n:{n}] = A[m, k] * W[k, n] // sum k:{k}\nout Y\n"
    )

    def onednn(chain: Chain, arrays: Arrays) -> tuple[int, tuple[int, ...], bool]:
        return chain.product(arrays[0], arrays[1], (m, n)), (m, n), False

    return Case("layers", f"gemm {m}x{n}x{k}", 1, lambda: constant(text),
                lambda: [normal(m, k), normal(k, n)], lambda a, b: a @ b, onednn=onednn,
                image=False, floor=0.97)  # fmt: skip


NOTEBOOK = ((64, 256), (128, 128), (256, 64), (512, 32))
RESNET = ((64, 56), (128, 28), (256, 14), (512, 7))


def layers() -> list[Case]:
    found = [
        dense(f"notebook 3x3 {channels}@{size}", Conv(channels, size, channels, batch=10))
        for channels, size in NOTEBOOK
    ]
    for batch in (1, 10):
        for channels, size in RESNET:
            c = Conv(channels, size, channels, batch=batch)
            case = dense(f"3x3 {channels}@{size}", c)
            if size > 7:
                case.winograd = partial(conv_onednn, c, winograd=True)
            found.append(case)
    found += [gemm(1024, 1024, 1024), gemm(1000, 1003, 1017)]
    for channels, size in ((32, 112), (144, 56), (960, 7)):
        c = Conv(channels, size, channels, groups=channels)
        found.append(depthwise(f"dw 3x3 {channels}@{size}", c))
    return found


# ---- Ansor's ten operators ---------------------------------------------------------------------


def window(
    sizes: tuple[int, ...], k: int, stride: int, pad: int, dilation: int
) -> tuple[int, ...]:
    return tuple((size + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for size in sizes)


def convolution(sizes: tuple[int, ...], ci: int, co: int, k: int, stride: int = 1, pad: int = 0,
                dilation: int = 1, groups: int = 1) -> str:  # fmt: skip
    """Of any number of spatial axes, channels last; W [kernel, channels of a group, channels]."""
    axes, out = "dhw"[-len(sizes) :], window(sizes, k, stride, pad, dilation)
    few, each = ci // groups, co // groups
    at = [f"{a}*{stride}+k{a}*{dilation}-{pad}" for a in axes]
    inside = " && ".join(f"0 <= {i} && {i} < {size}" for i, size in zip(at, sizes))
    channel = "c" if groups == 1 else f"o/{each}*{few}+c"
    image = ", ".join(f"{a}:{size}" for a, size in zip(axes, sizes))
    kernel = ", ".join(f"k{a}:{k}" for a in axes)
    result = ", ".join(f"{a}:{size}" for a, size in zip(axes, out))
    load = f"X[n, {', '.join(at)}, {channel}]"
    value = f"{load} * W[{', '.join('k' + a for a in axes)}, c, o]"
    body = f"if {inside} then {value} else 0" if pad else value
    return (
        f"canvas 1\nprogram conv\nin X f32 [n:1, {image}, c:{ci}]\n"
        f"in W f32 [{kernel}, c:{few}, o:{co}] const\n"
        f"Y[n:1, {result}, o:{co}] = {body} // sum {kernel}, c:{few}\nout Y\n"
    )


def nd_case(kind: str, number: int, sizes: tuple[int, ...], ci: int, co: int, k: int,
            stride: int, pad: int, dilation: int = 1, groups: int = 1) -> Case:  # fmt: skip
    from torch.nn import functional

    run = (functional.conv1d, functional.conv2d, functional.conv3d)[len(sizes) - 1]
    scale = np.float32((ci // groups * k ** len(sizes)) ** -0.5)

    def arrays() -> Arrays:
        return [normal(1, *sizes, ci), normal(co, ci // groups, *[k] * len(sizes)) * scale]

    def pack(a: Arrays) -> Arrays:
        last = (*range(2, 2 + len(sizes)), 1, 0)
        return [a[0], np.ascontiguousarray(a[1].transpose(last))]

    return Case("ansor", f"{kind} {number}", 1,
                lambda: convolution(sizes, ci, co, k, stride, pad, dilation, groups), arrays,
                lambda x, w: run(x, w, None, stride, pad, dilation, groups), pack)  # fmt: skip


def inside_of(size: int, stride: int, pad: int) -> tuple[list[str], str]:
    """Where a window reads along h and w, and the condition that it is within the image."""
    at = [f"{a}*{stride}+k{a}-{pad}" for a in "hw"]
    return at, " && ".join(f"0 <= {i} && {i} < {size}" for i in at)


def depthwise_case(number: int, size: int, channels: int, k: int, stride: int, pad: int) -> Case:
    case = nd_case("DEP", number, (size, size), channels, channels, k, stride, pad, 1, channels)
    end = window((size,), k, stride, pad, 1)[0]
    at, inside = inside_of(size, stride, pad)
    text = (
        f"canvas 1\nprogram depthwise\nin X f32 [n:1, h:{size}, w:{size}, c:{channels}]\n"
        f"in W f32 [kh:{k}, kw:{k}, c:{channels}] const\n"
        f"Y[n:1, h:{end}, w:{end}, c:{channels}] = if {inside} then X[n, {at[0]}, {at[1]}, c]"
        f" * W[kh, kw, c] else 0 // sum kh:{k}, kw:{k}\nout Y\n"
    )
    case.program = lambda: text
    case.pack = lambda a: [a[0], np.ascontiguousarray(a[1][:, 0].transpose(1, 2, 0))]
    return case


def transposed_case(number: int, size: int, ci: int, co: int, k: int, stride: int,
                    pad: int) -> Case:  # fmt: skip
    """Channels first, as the operator has it."""
    from torch.nn import functional

    words = (
        f"conv_transpose2d_nchw in_channels={ci} height={size} width={size} out_channels={co} "
        f"kernel={k} stride={stride} padding={pad}"
    )
    scale = np.float32((ci * k * k) ** -0.5)
    return Case("ansor", f"T2D {number}", 1, lambda: operator(words),
                lambda: [normal(1, ci, size, size), normal(ci, co, k, k) * scale],
                lambda x, w: functional.conv_transpose2d(x, w, None, stride, pad),
                image=False)  # fmt: skip


def capsule_case(number: int, size: int, ci: int, co: int, k: int, stride: int, pad: int) -> Case:
    """A convolution whose numbers are 4 x 4 matrices."""
    from torch.nn import functional

    end = window((size,), k, stride, pad, 1)[0]
    at, inside = inside_of(size, stride, pad)
    text = (
        f"canvas 1\nprogram capsule\nin X f32 [n:1, h:{size}, w:{size}, i:4, k:4, c:{ci}]\n"
        f"in W f32 [kh:{k}, kw:{k}, k:4, j:4, c:{ci}, o:{co}] const\n"
        f"Y[n:1, h:{end}, w:{end}, i:4, j:4, o:{co}] = if {inside} then "
        f"X[n, {at[0]}, {at[1]}, i, k, c] * W[kh, kw, k, j, c, o] else 0"
        f" // sum kh:{k}, kw:{k}, k:4, c:{ci}\nout Y\n"
    )
    scale = np.float32((ci * k * k * 4) ** -0.5)

    def run(x: Any, w: Any) -> Any:
        """The rows i are images, k and c channels, j and o those of the result."""
        images = x.reshape(size, size, 4, 4 * ci).permute(2, 3, 0, 1)
        weights = w.permute(3, 5, 2, 4, 0, 1).reshape(4 * co, 4 * ci, k, k)
        made = functional.conv2d(images, weights, None, stride, pad)
        return made.reshape(4, 4, co, end, end).permute(3, 4, 0, 1, 2).unsqueeze(0)

    return Case("ansor", f"CAP {number}", 1, lambda: text,
                lambda: [normal(1, size, size, 4, 4, ci), normal(k, k, 4, 4, ci, co) * scale],
                run, image=False)  # fmt: skip


def product_case(number: int, batch: int, n: int, m: int, k: int) -> Case:
    text = (
        f"canvas 1\nprogram product\nin A f32 [b:{batch}, n:{n}, k:{k}]\n"
        f"in B f32 [b:{batch}, k:{k}, m:{m}]\n"
        f"Y[b:{batch}, n:{n}, m:{m}] = A[b, n, k] * B[b, k, m] // sum k:{k}\nout Y\n"
    )
    return Case("ansor", f"GMM {number}", 1, lambda: text,
                lambda: [normal(batch, n, k), normal(batch, k, m)], lambda a, b: a @ b,
                image=False)  # fmt: skip


def norm_case(number: int, batch: int, m: int, n: int) -> Case:
    """The Frobenius norm of each matrix."""
    import torch

    text = (
        f"canvas 1\nprogram norm\nin X f32 [b:{batch}, m:{m}, n:{n}]\n"
        f"S[b:{batch}] = X[b, m, n] * X[b, m, n] // sum m:{m}, n:{n}\n"
        f"Y[b:{batch}] = sqrt(S[b])\nout Y\n"
    )
    return Case("ansor", f"NRM {number}", 1, lambda: text, lambda: [normal(batch, m, n)],
                lambda x: torch.linalg.vector_norm(x, dim=(1, 2)), image=False)  # fmt: skip


ND = {  # kind: (sizes, in, out, kernel, stride, padding[, dilation, groups]), four each
    "C1D": (((256,), 64, 128, 3, 2, 1), ((128,), 128, 256, 1, 2, 0),
            ((64,), 256, 256, 5, 1, 2), ((32,), 512, 512, 3, 1, 1)),
    "C2D": (((224, 224), 3, 64, 7, 2, 3), ((56, 56), 64, 64, 1, 1, 0),
            ((14, 14), 256, 256, 3, 1, 1), ((7, 7), 512, 512, 3, 1, 1)),
    "C3D": (((16, 224, 224), 3, 64, 7, 2, 3), ((16, 56, 56), 64, 64, 1, 1, 0),
            ((16, 14, 14), 256, 256, 3, 1, 1), ((16, 7, 7), 512, 512, 3, 1, 1)),
    "GRP": (((56, 56), 64, 128, 3, 2, 1, 1, 4), ((56, 56), 64, 64, 1, 1, 0, 1, 4),
            ((14, 14), 256, 256, 3, 1, 1, 1, 4), ((7, 7), 512, 512, 3, 1, 1, 1, 4)),
    "DIL": (((224, 224), 3, 64, 7, 2, 3, 2), ((56, 56), 64, 64, 1, 1, 0, 2),
            ((14, 14), 256, 256, 3, 1, 1, 2), ((7, 7), 512, 512, 3, 1, 1, 2)),
}  # fmt: skip
OTHERS = {
    "GMM": (product_case, ((1, 128, 128, 128), (1, 512, 32, 512), (1, 512, 512, 512),
                           (1, 1024, 1024, 1024))),
    "DEP": (depthwise_case, ((112, 32, 3, 1, 1), (112, 64, 3, 2, 1), (14, 512, 3, 2, 1),
                             (7, 1024, 3, 1, 1))),
    "T2D": (transposed_case, ((4, 512, 256, 4, 2, 1), (8, 256, 128, 4, 2, 1),
                              (16, 128, 64, 4, 2, 1), (32, 64, 3, 4, 2, 1))),
    "CAP": (capsule_case, ((16, 32, 32, 3, 2, 1), (8, 32, 32, 3, 1, 1), (16, 8, 16, 3, 2, 1),
                           (8, 16, 16, 3, 1, 1))),
    "NRM": (norm_case, ((1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024))),
}  # fmt: skip


def ansor() -> list[Case]:
    found = [
        nd_case(kind, i + 1, *shape)  # type: ignore[arg-type]
        for kind, shapes in ND.items()
        for i, shape in enumerate(shapes)
    ]
    for make, shapes in OTHERS.values():
        found += [make(i + 1, *shape) for i, shape in enumerate(shapes)]  # type: ignore[operator]
    return found


# ---- rows --------------------------------------------------------------------------------------

ROWS = ((7, 13), (200, 19), (64, 37), (128, 49), (30, 77), (12, 100), (3, 129), (16, 250),
        (50, 511), (5, 1003))  # fmt: skip
LAYER_NORM = """canvas 1
program layer_norm
in X f32 [r:{0}, c:{1}]
mean[r:{0}] = X[r, c] // mean c:{1}
var[r:{0}] = (X[r, c] - mean[r]) * (X[r, c] - mean[r]) // mean c:{1}
Y[r:{0}, c:{1}] = (X[r, c] - mean[r]) / sqrt(var[r] + 0.00001)
out Y
"""


def rows_cases(rows: int, columns: int) -> list[Case]:
    def layer_norm(x: Any) -> Any:
        from torch.nn import functional

        return functional.layer_norm(x, x.shape[1:])

    shape = f"{rows}x{columns}"
    image, vector = [normal(rows, columns)], [normal(rows, columns), normal(columns)]
    cases = (
        ("layer norm", partial(LAYER_NORM.format, rows, columns), image, layer_norm),
        ("softmax", partial(operator, f"softmax shape={shape}"), image, lambda x: x.softmax(-1)),
        ("gemv", partial(operator, f"gemv m={rows} k={columns}"), vector, lambda a, x: a @ x),
        ("mean", partial(operator, f"mean shape={shape} dim=-1"), image, lambda x: x.mean(-1)),
    )
    return [
        Case("rows", f"{name} {shape}", 1, program, arrays.copy, function, image=False)
        for name, program, arrays, function in cases
    ]


GROUPS = {
    "layers": layers,
    "ansor": ansor,
    "rows": lambda: [case for shape in ROWS for case in rows_cases(*shape)],
}
