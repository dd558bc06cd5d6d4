"""The cases of `./dev bench native`: programs with hand schedules, for oneDNN and torch too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import native_programs as programs
import numpy as np
from contenders import Chain
from native_programs import Conv

Arrays = list[np.ndarray]
LANES = {"avx512": 16, "avx2": 8}
HANDS = ("avx512", "avx2")


@dataclass
class Hand:
    """A schedule of bench/native, the block that weights are packed in, its numbers."""

    schedule: str
    block: int
    values: str = ""


@dataclass
class Case:
    """`pack` and `plain_pack` give the arrays that the programs take."""

    name: str
    batch: int
    fmas: int  # 0: it is bound by memory or by something else
    hands: dict[str, Hand]
    program: Callable[[int], str]  # of the block
    arrays: Callable[[], Arrays]  # as torch takes them; images n h w c
    torch: Callable[..., Any]  # a function of tensors
    pack: Callable[[Arrays, int], Arrays] = lambda arrays, block: arrays
    plain: str = ""  # arguments of `canvas operator` for the default; "": the hand program
    plain_pack: Callable[[Arrays], Arrays] = lambda arrays: arrays
    onednn: Callable[[Chain, Arrays], tuple[int, tuple[int, ...], bool]] | None = None
    images: tuple[int, ...] = ()  # arrays that are images
    goal: str = "onednn"  # or "torch": the better of eager and compiled; "fused": op by op
    floor: dict[str, float] = field(default_factory=lambda: {"avx512": 0.95, "avx2": 0.92})


def normal(*shape: int) -> np.ndarray:
    random = np.random.default_rng(sum(shape))
    return random.standard_normal(shape, dtype=np.float32)


def hands(avx512: Hand, avx2: Hand) -> dict[str, Hand]:
    return {"avx512": avx512, "avx2": avx2}


# ---- convolutions ------------------------------------------------------------------------------


def conv_arrays(c: Conv) -> Arrays:
    inputs = c.channels // c.groups
    scale = np.float32((inputs * c.kernel**2) ** -0.5)
    image = normal(c.batch, c.size, c.size, c.channels)
    return [image, normal(c.out, inputs, c.kernel, c.kernel) * scale]


def packed(arrays: Arrays, block: int) -> Arrays:
    """o i h w -> blocks h w i block"""
    image, w = arrays
    blocks = w.reshape(w.shape[0] // block, block, *w.shape[1:])
    return [image, np.ascontiguousarray(blocks.transpose(0, 3, 4, 2, 1))]


def conv_torch(c: Conv) -> Callable[..., Any]:
    from torch.nn import functional

    def run(x: Any, w: Any) -> Any:
        return functional.conv2d(x, w, stride=c.stride, padding=c.padding, groups=c.groups)

    return run


def conv_onednn(c: Conv, chain: Chain, arrays: Arrays, winograd: bool = False
                ) -> tuple[int, tuple[int, ...], bool]:  # fmt: skip
    image, w = arrays
    if c.groups > 1:
        w = w.reshape(c.groups, c.out // c.groups, *w.shape[1:])
    result = (c.batch, c.out, c.result, c.result)
    x, weights = chain.image(image), chain.tensor(w)
    made = chain.convolution(x, image, weights, w, result, c.stride, c.padding, winograd=winograd)
    return made, result, True


def plain_conv(c: Conv) -> str:
    return (
        f"conv2d_nhwc batch={c.batch} height={c.size} width={c.size} in_channels={c.channels} "
        f"out_channels={c.out} kernel={c.kernel} stride={c.stride} padding={c.padding} "
        f"groups={c.groups} weights=hwio"
    )


def hwio(arrays: Arrays) -> Arrays:
    return [arrays[0], np.ascontiguousarray(arrays[1].transpose(2, 3, 1, 0))]


def conv_case(name: str, c: Conv, by_isa: dict[str, Hand], batch: int) -> Case:
    c = replace(c, batch=batch)
    program = programs.thin if c.channels < 4 else programs.conv
    return Case(name, batch, c.fmas, by_isa, lambda block: program(c, block),
                lambda: conv_arrays(c), conv_torch(c), packed, plain_conv(c), hwio,
                lambda chain, arrays: conv_onednn(c, chain, arrays), (0,))  # fmt: skip


def depthwise_case(name: str, c: Conv, by_isa: dict[str, Hand], batch: int) -> Case:
    def pack(arrays: Arrays, block: int) -> Arrays:
        return [arrays[0], np.ascontiguousarray(arrays[1][:, 0].transpose(1, 2, 0))]

    case, c = conv_case(name, c, by_isa, batch), replace(c, batch=batch)
    return replace(case, program=lambda block: programs.depthwise(c, block), pack=pack, plain="")


def transposed_case(name: str, c: Conv, by_isa: dict[str, Hand], batch: int) -> Case:
    from torch.nn import functional

    c = replace(c, batch=batch)

    def arrays() -> Arrays:
        scale = np.float32((4 * c.channels) ** -0.5)
        return [
            normal(batch, c.size, c.size, c.channels),
            normal(c.channels, c.out, 4, 4) * scale,
        ]

    def pack(given: Arrays, block: int) -> Arrays:
        image, w = given  # phase i, tap a: row 2a + 1 - i of the window
        phases = np.stack(
            [np.stack([w[:, :, 1 - i :: 2, 1 - j :: 2] for j in range(2)]) for i in range(2)]
        )
        split = phases.reshape(2, 2, c.channels, c.out // block, block, 2, 2)
        return [image, np.ascontiguousarray(split.transpose(0, 1, 3, 5, 6, 2, 4))]

    def onednn(chain: Chain, given: Arrays) -> tuple[int, tuple[int, ...], bool]:
        image, w = given
        result = (batch, c.out, 2 * c.size, 2 * c.size)
        swapped = np.ascontiguousarray(w.transpose(1, 0, 2, 3))
        x, weights = chain.image(image), chain.tensor(swapped)
        made = chain.convolution(x, image, weights, swapped, result, 2, 1, transposed=True)
        return made, result, True

    return Case(name, batch, batch * 4 * c.size**2 * c.out * c.channels * 4, by_isa,
                lambda block: programs.transposed(c, block), arrays,
                lambda x, w: functional.conv_transpose2d(x, w, stride=2, padding=1), pack,
                onednn=onednn, images=(0,))  # fmt: skip


def figure6_case(name: str, c: Conv, by_isa: dict[str, Hand], batch: int) -> Case:
    import torch
    from torch.nn import functional

    c = replace(c, batch=batch)

    def arrays() -> Arrays:
        k = c.channels
        mixing = normal(c.out, k) * np.float32(k**-0.5)
        return [normal(batch, c.size, c.size, k), normal(k, 3), mixing]

    def pack(given: Arrays, block: int) -> Arrays:
        image, column, mix = given
        blocks = mix.reshape(c.out // block, block, c.channels).transpose(0, 2, 1)
        return [image, np.ascontiguousarray(column.T), np.ascontiguousarray(blocks)]

    def run(x: Any, column: Any, mix: Any) -> Any:
        k = c.channels
        mixed = functional.conv2d(x, column.view(k, 1, 3, 1), padding=(1, 0), groups=k)
        return functional.conv2d(mixed + torch.roll(x, 1, 3), mix.view(c.out, k, 1, 1))

    def onednn(chain: Chain, given: Arrays) -> tuple[int, tuple[int, ...], bool]:
        image, column, mix = given
        k = c.channels
        shape, result = (batch, k, c.size, c.size), (batch, c.out, c.size, c.size)
        x = chain.image(image)
        w = column.reshape(k, 1, 1, 3, 1)
        d = chain.convolution(x, image, chain.tensor(w), w, shape, 1, (1, 0))
        x = chain.like(x, d)
        total = chain.sum(d, chain.shift(x, shape))
        last = mix.reshape(c.out, k, 1, 1)
        made = chain.convolution(total, image, chain.tensor(last), last, result, 1, 0)
        return made, result, True

    floor = (1.5 if batch == 1 else 2.0) if c.size == 56 else 0.0
    return Case(name, batch, batch * c.size**2 * c.channels * (c.out + 4), by_isa,
                lambda block: programs.figure6(c, block), arrays, run, pack, onednn=onednn,
                images=(0,), goal="fused", floor=dict.fromkeys(HANDS, floor))  # fmt: skip


# ---- products ----------------------------------------------------------------------------------


def gemm_case(name: str, m: int, n: int, k: int, by_isa: dict[str, Hand]) -> Case:
    def pack(given: Arrays, block: int) -> Arrays:
        a, b = given
        blocks = -(-n // block)
        filled = np.zeros((k, blocks * block), np.float32)
        filled[:, :n] = b
        return [a, np.ascontiguousarray(filled.reshape(k, blocks, block).transpose(1, 0, 2))]

    def onednn(chain: Chain, given: Arrays) -> tuple[int, tuple[int, ...], bool]:
        return chain.product(*given, (m, n)), (m, n), False

    return Case(name, 1, m * n * k, by_isa, lambda block: programs.gemm(m, n, k, block),
                lambda: [normal(m, k), normal(k, n) * np.float32(k**-0.5)], lambda a, b: a @ b,
                pack, f"gemm m={m} n={n} k={k}", onednn=onednn)  # fmt: skip


def gemv_case(name: str, m: int, k: int, by_isa: dict[str, Hand]) -> Case:
    def onednn(chain: Chain, given: Arrays) -> tuple[int, tuple[int, ...], bool]:
        matrix, x = given
        return chain.product(matrix, x.reshape(k, 1), (m, 1)), (m, 1), False

    return Case(name, 1, m * k, by_isa, lambda block: programs.gemv(m, k, block),
                lambda: [normal(m, k), normal(k)], lambda a, x: a @ x,
                plain=f"gemv m={m} k={k}", onednn=onednn)  # fmt: skip


# ---- rows --------------------------------------------------------------------------------------


def rows_case(name: str, program: Callable[[int, int, int], str], rows: int, columns: int,
              run: Callable[..., Any], by_isa: dict[str, Hand], more: int = 0
              ) -> Case:  # fmt: skip
    return Case(name, 1, 0, by_isa, lambda block: program(rows, columns, block),
                lambda: [normal(rows, columns), *(normal(columns) for _ in range(more))], run,
                goal="torch")  # fmt: skip


def attention_case(name: str, h: int, tokens: int, d: int, by_isa: dict[str, Hand]) -> Case:
    from torch.nn import functional

    return Case(name, 1, 2 * h * tokens * tokens * d, by_isa,
                lambda block: programs.attention(h, tokens, d, block),
                lambda: [normal(h, tokens, d) * scale for scale in (1, 2, 3)],
                functional.scaled_dot_product_attention, goal="torch")  # fmt: skip


# ---- the table ---------------------------------------------------------------------------------

ROWS, BLOCKS, POINTS, THIN = "conv_rows", "conv_blocks", "conv_points", "conv_thin"
IMAGES, DEPTH, DEPTH_ROWS, WIDE = "conv_images", "depthwise", "depthwise_rows", "depthwise_wide"
THIN_STREAM, GROUPS_STREAM = "conv_thin_stream", "conv_groups_stream"
POINTS_AHEAD = "conv_points_ahead"
THIN_STEPS = "conv_thin_channels"
MIX, MIX_ROWS, MIX_STREAM = "figure6", "figure6_rows", "figure6_stream"
MIX_COLUMNS = "figure6_columns"

DENSE = {"3x3 64@56": Conv(64, 56, 64), "3x3 128@28": Conv(128, 28, 128),
         "3x3 256@14": Conv(256, 14, 256), "3x3 512@7": Conv(512, 7, 512),
         "1x1 s2 64-128@56": Conv(64, 56, 128, 1, 2, 0),
         "7x7 s2 3-64@224": Conv(3, 224, 64, 7, 2, 3),
         "3x3 g4 64@56": Conv(64, 56, 64, groups=4)}  # fmt: skip
DEPTHWISE = {"dw 3x3 32@112": Conv(32, 112, 32, groups=32),
             "dw 3x3 144@56": Conv(144, 56, 144, groups=144),
             "dw 3x3 960@7": Conv(960, 7, 960, groups=960),
             "dw 5x5 s2 240@28": Conv(240, 28, 240, 5, 2, 2, groups=240)}  # fmt: skip
TRANSPOSED = {"t 4x4 s2 128-64@28": Conv(128, 28, 64)}
FUSED = {"figure 6 64@56": Conv(64, 56, 64), "figure 6 256@14": Conv(256, 14, 256)}

# AVX-512, AVX2; where the first two are of one image, two more are of 16
BY_HAND = {
    "3x3 64@56": (Hand(ROWS, 32, "wi=14"), Hand(ROWS, 16, "wi=6")),
    "3x3 128@28": (Hand(ROWS, 32, "wi=14"), Hand(BLOCKS, 16, "wi=6")),
    "3x3 256@14": (Hand(BLOCKS, 32, "wi=14"), Hand(BLOCKS, 16, "wi=5"),
                   Hand(BLOCKS, 32, "wi=14"), Hand(IMAGES, 16, "ni=6")),
    "3x3 512@7": (Hand(BLOCKS, 64, "wi=7"), Hand(BLOCKS, 16, "wi=7"),
                  Hand(IMAGES, 32, "ni=8"), Hand(IMAGES, 16, "ni=4")),
    "1x1 s2 64-128@56": (Hand(POINTS, 32, "wi=14"), Hand(POINTS, 16, "wi=4"),
                         Hand(POINTS, 32, "wi=14"), Hand(POINTS, 16, "wi=6")),
    "7x7 s2 3-64@224": (Hand(THIN, 32, "wi=14"), Hand(THIN_STEPS, 16, "wi=6,qi=3"),
                        Hand(THIN_STREAM, 32, "wi=14"), Hand(THIN_STREAM, 16, "wi=6")),
    "3x3 g4 64@56": (Hand(POINTS, 16, "wi=28"), Hand(POINTS, 16, "wi=6"),
                     Hand(GROUPS_STREAM, 16, "wi=28"), Hand(POINTS_AHEAD, 16, "wi=6")),
    "dw 3x3 32@112": (Hand(DEPTH, 0, "wi=7,cv=16"), Hand(DEPTH, 0, "wi=7,cv=8"),
                      Hand(DEPTH_ROWS, 0, "hi=7,cv=16"), Hand(DEPTH_ROWS, 0, "hi=7,cv=8")),
    "dw 3x3 144@56": (Hand(DEPTH_ROWS, 0, "hi=7,cv=16"), Hand(DEPTH_ROWS, 0, "hi=4,cv=8")),
    "dw 3x3 960@7": (Hand(DEPTH, 0, "wi=7,cv=16"), Hand(DEPTH, 0, "wi=7,cv=8")),
    "dw 5x5 s2 240@28": (Hand(WIDE, 0, "wi=14,cv=16"), Hand(WIDE, 0, "wi=7,cv=16"),
                         Hand(WIDE, 0, "wi=14,cv=16"), Hand(WIDE, 0, "wi=7,cv=16")),
    "t 4x4 s2 128-64@28": (Hand("transposed", 32, "wi=14"), Hand("transposed", 16, "wi=6")),
    "figure 6 64@56": (Hand(MIX_ROWS, 64, "tv=64,hi=7"), Hand(MIX_COLUMNS, 16, "hi=3,vi=8"),
                       Hand(MIX_STREAM, 32, "tv=64,hi=7"), Hand(MIX_COLUMNS, 16, "hi=3,vi=8")),
    "figure 6 256@14": (Hand(MIX, 64, "tv=32,wi=7"), Hand(MIX, 16, "tv=16,wi=5")),
}  # fmt: skip

KINDS = (
    (DENSE, conv_case),
    (DEPTHWISE, depthwise_case),
    (TRANSPOSED, transposed_case),
    (FUSED, figure6_case),
)


def cases() -> list[Case]:
    from torch.nn import functional

    found = []
    for batch in (1, 16):
        for shapes, case in KINDS:
            for name, shape in shapes.items():
                first, second = (BY_HAND[name][2:] if batch == 16 else ()) or BY_HAND[name][:2]
                found.append(case(name, shape, hands(first, second), batch))
    found += [
        gemm_case("gemm 1024", 1024, 1024, 1024,
                  hands(Hand("gemm", 64, "oi=4,mi=6"), Hand("gemm", 16, "oi=4,mi=6"))),
        gemm_case("gemm 1000x1003x1017", 1000, 1003, 1017,
                  hands(Hand("gemm_odd", 48, "nb=3,mi=9,ni=48"),
                        Hand("gemm_odd", 24, "nb=3,mi=4,ni=24"))),
        gemv_case("gemv 1024", 1024, 1024,
                  hands(Hand("gemv", 16, "mi=4"), Hand("gemv", 8, "mi=4"))),
        rows_case("softmax 1024x1024", programs.softmax, 1024, 1024,
                  lambda x: functional.softmax(x, -1),
                  hands(Hand("softmax", 64), Hand("softmax", 32))),
        rows_case("layer norm 1024x768", programs.layer_norm, 1024, 768,
                  lambda x, g, b: functional.layer_norm(x, x.shape[1:], g, b),
                  hands(Hand("layer_norm", 64, "cv=64"), Hand("layer_norm", 32, "cv=32")),
                  more=2),
        rows_case("gelu 1024x3072", programs.gelu, 1024, 3072, functional.gelu,
                  hands(Hand("gelu", 0, "cv=32"), Hand("gelu", 0, "cv=32"))),
        attention_case("attention 8x128x64", 8, 128, 64,
                       hands(Hand("attention", 16, "ii=8,ji=32,ev=64,di=32,jq=16"),
                             Hand("attention", 8, "ii=4,ji=16,ev=32,di=16,jq=8"))),
    ]  # fmt: skip
    return found
