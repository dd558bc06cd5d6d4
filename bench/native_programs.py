"""Programs for hand schedules: images with channels last, weights packed in blocks of channels.

`block` is the number of output channels of such a block.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Conv:
    """A convolution of `size` x `size` images; `factor` 2 in a transposed one."""

    channels: int
    size: int
    out: int
    kernel: int = 3
    stride: int = 1
    padding: int = 1
    groups: int = 1
    batch: int = 1

    @property
    def result(self) -> int:
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1

    @property
    def fmas(self) -> int:
        window = self.kernel**2 * self.channels // self.groups
        return self.batch * self.result**2 * self.out * window


def image(c: Conv) -> str:
    return f"in X f32 [n:{c.batch}, h:{c.size}, w:{c.size}, c:{c.channels}]\n"


def bordered(c: Conv, weight: str, channel: str = "c") -> str:
    """A pixel of a window times its weight, 0 outside of the image: the form that `border` makes,
    so padding costs nothing."""
    p, end = c.padding, c.size + c.padding
    h, w = f"h*{c.stride}+kh", f"w*{c.stride}+kw"
    inside = f"{p} <= {h} && {h} < {end} && {p} <= {w} && {w} < {end}"
    return f"if {inside} then X[n, {h}-{p}, {w}-{p}, {channel}] * {weight} else 0"


def conv(c: Conv, block: int) -> str:
    """Dense or grouped: W [blocks, kernel, kernel, channels of a group, block]."""
    inputs, each, k = c.channels // c.groups, c.out // c.groups, c.kernel
    channel = "c" if c.groups == 1 else f"o*{block}/{each}*{inputs} + c"
    return (
        f"canvas 1\nprogram conv\n{image(c)}"
        f"in W f32 [o:{c.out // block}, kh:{k}, kw:{k}, c:{inputs}, v:{block}]\n"
        f"Y[n:{c.batch}, h:{c.result}, w:{c.result}, o:{c.out // block}, v:{block}] = "
        f"{bordered(c, 'W[o, kh, kw, c, v]', channel)} // sum kh:{k}, kw:{k}, c:{inputs}\nout Y\n"
    )


def thin(c: Conv, block: int) -> str:
    """For few channels, which are one axis with the columns; q is the axis of a window's row."""
    k, p, n, few = c.kernel, c.padding, c.batch, c.channels
    rows, row, end = c.size + 2 * p, (c.size + 2 * p) * few, (c.size + p) * few
    return (
        f"canvas 1\nprogram conv\nin X f32 [n:{n}, h:{c.size}, w:{c.size * few}]\n"
        f"in W f32 [o:{c.out // block}, kh:{k}, q:{k * few}, v:{block}]\n"
        f"P[n:{n}, h:{rows}, w:{row}] = if {p} <= h && h < {c.size + p} && {p * few} <= w"
        f" && w < {end} then X[n, h-{p}, w-{p * few}] else 0\n"
        f"Y[n:{n}, h:{c.result}, w:{c.result}, o:{c.out // block}, v:{block}] = "
        f"P[n, h*{c.stride}+kh, w*{c.stride * few}+q] * W[o, kh, q, v]"
        f" // sum kh:{k}, q:{k * few}\nout Y\n"
    )


def depthwise(c: Conv, block: int) -> str:
    """W [kernel, kernel, channels]"""
    k = c.kernel
    return (
        f"canvas 1\nprogram depthwise\n{image(c)}in W f32 [kh:{k}, kw:{k}, c:{c.channels}]\n"
        f"Y[n:{c.batch}, h:{c.result}, w:{c.result}, c:{c.channels}] = "
        f"{bordered(c, 'W[kh, kw, c]')} // sum kh:{k}, kw:{k}\nout Y\n"
    )


def transposed(c: Conv, block: int) -> str:
    """Windows of 4 with stride 2: each of the 2 x 2 phases (i, j) of the result sees 2 x 2 pixels.
    W [phases, blocks, 2, 2, channels, block]."""
    n, size, blocks = c.batch, c.size, c.out // block
    h, w = "h+i-a", "w+j-b"
    inside = f"0 <= {h} && {h} < {size} && 0 <= {w} && {w} < {size}"
    return (
        f"canvas 1\nprogram transposed\n{image(c)}"
        f"in W f32 [i:2, j:2, o:{blocks}, a:2, b:2, c:{c.channels}, v:{block}]\n"
        f"Y[n:{n}, h:{size}, i:2, w:{size}, j:2, o:{blocks}, v:{block}] = "
        f"if {inside} then X[n, {h}, {w}, c] * W[i, j, o, a, b, c, v] else 0"
        f" // sum a:2, b:2, c:{c.channels}\nout Y\n"
    )


def gemm(m: int, n: int, k: int, block: int) -> str:
    """W [blocks, k, block], the last block filled up."""
    blocks = -(-n // block)
    result = (
        f"Y[m:{m}, o:{blocks}, v:{block}] = A[m, k] * W[o, k, v]"
        if n % block == 0
        else f"Y[m:{m}, n:{n}] = A[m, k] * W[n/{block}, k, n%{block}]"
    )
    return (
        f"canvas 1\nprogram gemm\nin A f32 [m:{m}, k:{k}]\n"
        f"in W f32 [o:{blocks}, k:{k}, v:{block}]\n{result} // sum k:{k}\nout Y\n"
    )


def gemv(m: int, k: int, block: int) -> str:
    """`block` partial sums along the vector axis first."""
    return (
        f"canvas 1\nprogram gemv\nin A f32 [m:{m}, k:{k}]\nin x f32 [k:{k}]\n"
        f"S[m:{m}, v:{block}] = A[m, r*{block}+v] * x[r*{block}+v] // sum r:{k // block}\n"
        f"Y[m:{m}] = S[m, v] // sum v:{block}\nout Y\n"
    )


def softmax(rows: int, columns: int, block: int) -> str:
    many = columns // block
    return (
        f"canvas 1\nprogram softmax\nin X f32 [r:{rows}, c:{columns}]\n"
        f"L[r:{rows}, v:{block}] = X[r, k*{block}+v] // max k:{many}\n"
        f"M[r:{rows}] = L[r, v] // max v:{block}\n"
        f"E[r:{rows}, c:{columns}] = exp(X[r, c] - M[r])\n"
        f"S[r:{rows}, v:{block}] = E[r, k*{block}+v] // sum k:{many}\n"
        f"T[r:{rows}] = S[r, v] // sum v:{block}\n"
        f"R[r:{rows}] = 1 / T[r]\n"
        f"Y[r:{rows}, c:{columns}] = E[r, c] * R[r]\nout Y\n"
    )


def layer_norm(rows: int, columns: int, block: int) -> str:
    many = columns // block
    return (
        f"canvas 1\nprogram layer_norm\nin X f32 [r:{rows}, c:{columns}]\n"
        f"in g f32 [c:{columns}]\nin b f32 [c:{columns}]\n"
        f"S[r:{rows}, v:{block}] = X[r, k*{block}+v] // sum k:{many}\n"
        f"M[r:{rows}] = S[r, v] // sum v:{block}\n"
        f"D[r:{rows}, v:{block}] = (X[r, k*{block}+v] - M[r]/{columns})"
        f" * (X[r, k*{block}+v] - M[r]/{columns}) // sum k:{many}\n"
        f"V[r:{rows}] = D[r, v] // sum v:{block}\n"
        f"R[r:{rows}] = 1 / sqrt(V[r]/{columns} + 0.00001)\n"
        f"Y[r:{rows}, c:{columns}] = (X[r, c] - M[r]/{columns}) * R[r] * g[c] + b[c]\nout Y\n"
    )


def gelu(rows: int, columns: int, block: int) -> str:
    return (
        f"canvas 1\nprogram gelu\nin X f32 [r:{rows}, c:{columns}]\n"
        f"Y[r:{rows}, c:{columns}] = X[r, c] * (0.5 + 0.5 * erf(X[r, c] * 0.70710678))\nout Y\n"
    )


def attention(heads: int, tokens: int, width: int, block: int) -> str:
    """K is transposed first, so that scores have lanes along the tokens."""
    h, i, d = f"h:{heads}", f"i:{tokens}", f"d:{width}"
    many = tokens // block
    return (
        f"canvas 1\nprogram attention\nin Q f32 [{h}, {i}, {d}]\nin K f32 [{h}, j:{tokens}, {d}]\n"
        f"in V f32 [{h}, j:{tokens}, {d}]\n"
        f"KT[{h}, {d}, j:{tokens}] = K[h, j, d]\n"
        f"A[{h}, {i}, j:{tokens}] = Q[h, i, d] * KT[h, d, j] // sum {d}\n"
        f"L[{h}, {i}, v:{block}] = A[h, i, k*{block}+v] // max k:{many}\n"
        f"M[{h}, {i}] = L[h, i, v] // max v:{block}\n"
        f"E[{h}, {i}, j:{tokens}] = exp((A[h, i, j] - M[h, i]) * {width**-0.5})\n"
        f"S[{h}, {i}, v:{block}] = E[h, i, k*{block}+v] // sum k:{many}\n"
        f"T[{h}, {i}] = S[h, i, v] // sum v:{block}\n"
        f"R[{h}, {i}] = 1 / T[h, i]\n"
        f"O[{h}, {i}, {d}] = E[h, i, j] * V[h, j, d] // sum j:{tokens}\n"
        f"Y[{h}, {i}, {d}] = O[h, i, d] * R[h, i]\nout Y\n"
    )


def figure6(c: Conv, block: int) -> str:
    """The kernel of figure 6: a depth-wise column of 3 plus the image shifted along its rows,
    then all channels mixed. w0 [3, channels], W [blocks, channels, block]. The column is written
    out."""
    n, size, k = c.batch, c.size, c.channels
    return (
        f"canvas 1\nprogram figure6\n{image(c)}in w0 f32 [kh:3, c:{k}]\n"
        f"in W f32 [o:{c.out // block}, c:{k}, v:{block}]\n"
        f"T[n:{n}, h:{size}, w:{size}, c:{k}] = "
        f"(if w < 1 then X[n, h, w+{size - 1}, c] else X[n, h, w-1, c]) + "
        f"(if 1 <= h then X[n, h-1, w, c] * w0[0, c] else 0) + X[n, h, w, c] * w0[1, c] + "
        f"(if h < {size - 1} then X[n, h+1, w, c] * w0[2, c] else 0)\n"
        f"Y[n:{n}, h:{size}, w:{size}, o:{c.out // block}, v:{block}] = "
        f"T[n, h, w, c] * W[o, c, v] // sum c:{k}\nout Y\n"
    )


# ---- texts -------------------------------------------------------------------------------------


def filled(text: str, values: str) -> str:
    """A schedule with its numbers, without comments."""
    for value in filter(None, values.split(",")):
        name, number = value.split("=")
        text = re.sub(rf"\b{name}:\?", f"{name}:{number}", text)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


def constant(program: str, images: int) -> str:
    """All inputs but the first `images` become constant."""
    lines, seen = program.splitlines(), 0
    for number, line in enumerate(lines):
        if line.startswith("in "):
            seen += 1
            if seen > images and not line.endswith(" const"):
                lines[number] = line + " const"
    return "\n".join(lines) + "\n"
