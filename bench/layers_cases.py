"""The contenders of `./dev bench layers`: replacements of the 3x3 convolutions of ResNet-34.

Images have channels last, weights are constant.

    standard   the convolution itself
    split      NAS-PTE's first sequence: half of the channels of the result in 2 groups, half in 4
    unroll     its second: the first 16 channels from all of the data, the others in 4 groups from
               the data without its first 16 channels
    slabs      its third: the upper and the lower rows, each with weights of its own
    figure 6   examples/kernels/figure6.kernel: a column of 3 in each channel plus the image moved
               along its rows, then all channels mixed; where the layer strides, the image is
               averaged before, and twice as many channels are two such kernels
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from native_cases import Arrays, normal, plain_conv
from native_programs import Conv
from tune_cases import operator

FULL = 16  # channels of `unroll` that see all data
GROUPS = 4


@dataclass(frozen=True)
class Part:
    """A convolution of the data's channels from the first one on."""

    first: int
    inputs: int
    out: int
    groups: int


@dataclass
class Contender:
    name: str
    macs: int
    program: str
    arrays: Arrays  # the image n h w c, then the weights as the program takes them
    torch: Callable[..., list[Any]]  # of the image n c h w and the weights: the results, alike


def weights(*shape: int) -> np.ndarray:
    """kernel, kernel, inputs, outputs"""
    return normal(*shape) * np.float32(np.prod(shape[-4:-1]) ** -0.5)


def head(name: str, c: Conv) -> str:
    data = f"n:{c.batch}, h:{c.size}, w:{c.size}, c:{c.channels}"
    return f"canvas 1\nprogram {name}\nin X f32 [{data}]\n"


def places(c: Conv) -> str:
    return f"n:{c.batch}, h:{c.result}, w:{c.result}"


def pad(c: Conv) -> str:
    """The image with zeros around, as a stage."""
    size, end = c.size + 2, c.size + 1
    inside = f"1 <= h && h < {end} && 1 <= w && w < {end}"
    return (
        f"pad[n:{c.batch}, h:{size}, w:{size}, c:{c.channels}] = "
        f"if {inside} then X[n, h-1, w-1, c] else 0\n"
    )


def window(c: Conv, channel: str, weight: str) -> str:
    """A pixel of a 3x3 window times its weight."""
    by = f"*{c.stride}" if c.stride > 1 else ""
    return f"pad[n, h{by}+kh, w{by}+kw, {channel}] * {weight}"


def part(c: Conv, name: str, weight: str, p: Part) -> str:
    """A stage: channels [group, o] of the result, from some of the data's."""
    few, each = p.inputs // p.groups, p.out // p.groups
    channel = f"g*{few}+c+{p.first}".replace("+0", "")
    value = window(c, channel, f"{weight}[kh, kw, g, c, o]")
    return f"{name}[{places(c)}, g:{p.groups}, o:{each}] = {value} // sum kh:3, kw:3, c:{few}\n"


def hwio(w: Any) -> Any:
    """kernel, kernel, groups, inputs, outputs as torch has them"""
    return w.permute(2, 4, 3, 0, 1).flatten(0, 1)


def parts(name: str, c: Conv, *all_: Part) -> Contender:
    """Convolutions of the same data, a result each; the consumer concatenates them."""
    from torch.nn import functional

    text, arrays = head(name, c), [image(c)]
    names = [f"Y{i}" for i in range(len(all_))]
    for y, p in zip(names, all_):
        few, each = p.inputs // p.groups, p.out // p.groups
        text += f"in W{y} f32 [kh:3, kw:3, g:{p.groups}, c:{few}, o:{each}] const\n"
        arrays.append(weights(3, 3, p.groups, few, each))
    text += pad(c) + "".join(part(c, y, f"W{y}", p) for y, p in zip(names, all_))

    def run(x: Any, *ws: Any) -> list[Any]:
        return [
            functional.conv2d(
                x[:, p.first : p.first + p.inputs], hwio(w), None, c.stride, 1, groups=p.groups
            )
            for w, p in zip(ws, all_)
        ]

    macs = sum(p.out * p.inputs // p.groups for p in all_)
    text += f"out {', '.join(names)}\n"
    return Contender(name, 9 * c.batch * c.result**2 * macs, text, arrays, run)


def image(c: Conv) -> np.ndarray:
    return normal(c.batch, c.size, c.size, c.channels)


def standard(c: Conv) -> Contender:
    from torch.nn import functional

    return Contender(
        "standard",
        c.fmas,
        operator(plain_conv(c)),
        [image(c), weights(3, 3, c.channels, c.out)],
        lambda x, w: [functional.conv2d(x, w.permute(3, 2, 0, 1), None, c.stride, 1)],
    )


def split(c: Conv) -> Contender:
    half = c.out // 2
    return parts("split", c, Part(0, c.channels, half, 2), Part(0, c.channels, half, 4))


def unroll(c: Conv) -> Contender:
    rest = Part(FULL, c.channels - FULL, c.out - FULL, GROUPS)
    return parts("unroll", c, Part(0, c.channels, FULL, 1), rest)


def slabs(c: Conv) -> Contender:
    import torch
    from torch.nn import functional

    rows = (c.result + 1) // 2
    text = (
        head("slabs", c)
        + f"in W f32 [s:2, kh:3, kw:3, c:{c.channels}, o:{c.out}] const\n"
        + pad(c)
        + f"Y[{places(c)}, o:{c.out}] = {window(c, 'c', f'W[h/{rows}, kh, kw, c, o]')}"
        + f" // sum kh:3, kw:3, c:{c.channels}\nout Y\n"
    )

    def run(x: Any, w: Any) -> list[Any]:
        oihw = w.permute(0, 4, 3, 1, 2)
        both = [functional.conv2d(x, part, stride=c.stride, padding=1) for part in oihw]
        return [torch.cat([both[0][:, :, :rows], both[1][:, :, rows:]], 2)]

    arrays = [image(c), weights(2, 3, 3, c.channels, c.out)]
    return Contender("slabs", c.fmas, text, arrays, run)


def figure6(c: Conv) -> Contender:
    import torch
    from torch.nn import functional

    k, size, copies = c.channels, c.result, c.out // c.channels
    source, text = "X", head("figure6", c)
    text += f"in w0 f32 [r:{copies}, kh:3, c:{k}] const\nin w1 f32 [c:{k}, o:{c.out}] const\n"
    if c.stride > 1:
        text += f"P[{places(c)}, c:{k}] = X[n, h*2+kh, w*2+kw, c] // mean kh:2, kw:2\n"
        source = "P"
    text += (
        f"T[r:{copies}, {places(c)}, c:{k}] = (if w < 1 then {source}[n, h, {size - 1}, c]"
        f" else {source}[n, h, w-1, c]) + (if 1 <= h then {source}[n, h-1, w, c] * w0[r, 0, c]"
        f" else 0) + {source}[n, h, w, c] * w0[r, 1, c] + (if h < {size - 1} then"
        f" {source}[n, h+1, w, c] * w0[r, 2, c] else 0)\n"
        f"Y[{places(c)}, o:{c.out}] = T[o/{k}, n, h, w, c] * w1[c, o] // sum c:{k}\nout Y\n"
    )

    def run(x: Any, column: Any, mix: Any) -> list[Any]:
        x = functional.avg_pool2d(x, 2) if c.stride > 1 else x
        made = []
        for i in range(copies):
            down = functional.conv2d(x, column[i].T.reshape(k, 1, 3, 1), None, 1, (1, 0), 1, k)
            w = mix[:, i * k : (i + 1) * k].T.reshape(k, k, 1, 1)
            made.append(functional.conv2d(down + torch.roll(x, 1, 3), w))
        return [torch.cat(made, 1)]

    arrays = [image(c), normal(copies, 3, k), normal(k, c.out) * np.float32(k**-0.5)]
    macs = c.batch * size**2 * (c.out * k + 3 * k * copies)
    return Contender("figure 6", macs, text, arrays, run)


# name: sizes, how often ResNet-34 has it
LAYERS = {
    "64@56": (Conv(64, 56, 64), 6),
    "64-128@56 s2": (Conv(64, 56, 128, stride=2), 1),
    "128@28": (Conv(128, 28, 128), 7),
    "128-256@28 s2": (Conv(128, 28, 256, stride=2), 1),
    "256@14": (Conv(256, 14, 256), 11),
    "256-512@14 s2": (Conv(256, 14, 512, stride=2), 1),
    "512@7": (Conv(512, 7, 512), 5),
}
CONTENDERS = {
    "standard": standard,
    "split": split,
    "unroll": unroll,
    "slabs": slabs,
    "figure 6": figure6,
}
