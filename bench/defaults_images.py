"""Convolutions of 16 images, which come from memory: with few products of an element, as those
that make fewer channels of many, groups of them and windows of one channel each, and with many;
and with channels in blocks of 16, as the passes of a network keep them.
"""

from __future__ import annotations

import torch
from defaults_cases import Case, conv
from defaults_long import product
from torch.nn import functional

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

    def run(x: list[torch.Tensor]) -> torch.Tensor:
        weights = x[1].permute(0, 4, 3, 1, 2).reshape(64, 16, 3, 3)
        image = functional.conv2d(x[0].permute(0, 3, 1, 2), weights, padding=1, groups=4)
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

    def run(x: list[torch.Tensor]) -> torch.Tensor:
        image = x[0].permute(0, 1, 4, 2, 3).flatten(1, 2)
        made = functional.conv2d(image, x[1][:, :, None, None])
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
