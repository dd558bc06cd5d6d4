"""``conv2d_NCHWc.x86``, the template of TVM's operator library for convolutions in blocks of
channels on x86: its space and its loops.
"""

from __future__ import annotations

from typing import Any

from .. import te
from ..arguments import shown
from ..te.place import mistake
from .task import get_config, template
from .task.entities import SplitEntity

WIDTH = 64  # columns of the image at a time, at most


def _pair(value: Any, name: str) -> tuple[int, int]:
    pair = (value, value) if isinstance(value, int) else value
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or min(pair) < 0:
        raise mistake(f"conv2d_NCHWc: {name} is one number or two, not {shown(value)}")
    return int(pair[0]), int(pair[1])


def conv2d_NCHWc(
    data: te.Tensor, kernel: te.Tensor, stride: Any, padding: Any, dilation: Any, dtype: str
) -> te.Tensor:
    """data [n, ic/b, h, w, b] with kernel [oc/c, ic/b, kh, kw, b, c]."""
    if data.ndim != 5 or kernel.ndim != 6 or data.shape[4] != kernel.shape[4]:
        raise mistake(
            "conv2d_NCHWc: data is [n, ic/b, h, w, b] and the kernel [oc/c, ic/b, kh, kw, b, c], "
            f"not {list(data.shape)} and {list(kernel.shape)}"
        )
    (sh, sw), (ph, pw), (dh, dw) = (
        _pair(value, name)
        for value, name in ((stride, "stride"), (padding, "padding"), (dilation, "dilation"))
    )
    n, blocks, h, w, block = data.shape
    oc_blocks, _, height, width, _, oc_block = kernel.shape
    oh = (h + 2 * ph - dh * (height - 1) - 1) // sh + 1
    ow = (w + 2 * pw - dw * (width - 1) - 1) // sw + 1
    padded = data
    if ph or pw:
        padded = te.compute(
            (n, blocks, h + 2 * ph, w + 2 * pw, block),
            lambda n, ic, h, w, b: te.if_then_else(
                te.all(h >= ph, h < ph + data.shape[2], w >= pw, w < pw + data.shape[3]),
                data[n, ic, h - ph, w - pw, b],
                0,
            ),
            name="data_pad",
        )
    ic = te.reduce_axis((0, blocks * block), name="ic")
    kh = te.reduce_axis((0, height), name="kh")
    kw = te.reduce_axis((0, width), name="kw")

    def one(n: Any, oc_chunk: Any, oh: Any, ow: Any, oc_block: Any) -> Any:
        chunk, inner = te.indexdiv(ic, block), te.indexmod(ic, block)
        image = padded[n, chunk, oh * sh + kh * dh, ow * sw + kw * dw, inner]
        weight = kernel[oc_chunk, chunk, kh, kw, inner, oc_block]
        return te.sum(image.astype(dtype) * weight.astype(dtype), axis=[ic, kh, kw])

    return te.compute((n, oc_blocks, oh, ow, oc_block), one, name="conv2d_NCHWc")


@template("conv2d_NCHWc.x86")
def conv2d_nchwc_x86(
    data: te.Tensor,
    kernel: te.Tensor,
    strides: Any,
    padding: Any,
    dilation: Any,
    layout: str = "NCHWc",
    out_layout: str = "NCHWc",
    out_dtype: str = "float32",
) -> Any:
    """Loops as of E1 or E2 (docs/schedule.md), chosen by the knob `unroll_kw`."""
    if not layout.startswith("NCHW") or not out_layout.startswith("NCHW"):
        raise mistake(f"conv2d_NCHWc: layouts are NCHWc, not {layout} and {out_layout}")
    conv = conv2d_NCHWc(data, kernel, strides, padding, dilation, out_dtype)
    cfg = get_config()
    block, columns = data.shape[4], conv.shape[3]
    cfg.define_split("tile_ic", data.shape[1] * block, num_outputs=2)
    cfg.define_split("tile_oc", conv.shape[1] * conv.shape[4], num_outputs=2)
    cfg.define_split(
        "tile_ow",
        int(columns),
        num_outputs=2,
        filter=lambda one: one.size[-1] <= WIDTH,
        policy="verbose",
    )
    cfg.define_knob("unroll_kw", [True, False])
    if cfg.is_fallback:
        cfg["tile_ow"] = _fallback_columns(int(columns))
    s = te.create_schedule(conv.op)
    _schedule(s, conv, cfg["tile_ow"].size[-1], int(block), cfg["unroll_kw"].val)
    return s, [data, kernel, conv]


def _fallback_columns(columns: int) -> SplitEntity:
    """The largest divisor up to 31, as the registers of AVX-512 allow."""
    most = max(one for one in range(1, 32) if columns % one == 0)
    return SplitEntity([columns // most, most])


def _schedule(s: Any, conv: te.Tensor, columns: int, block: int, unroll_kw: bool) -> None:
    padded = conv.op.input_tensors[0]
    if padded.op.input_tensors:
        batch, chunk, row, _, _ = s[padded].op.axis
        s[padded].parallel(s[padded].fuse(batch, chunk, row))
    sums = s.cache_write(conv, "global")
    batch, oc_chunk, oh, ow, oc_block = s[conv].op.axis
    ow_chunk, ow_block = s[conv].split(ow, factor=columns, names=("ow", "iw"))
    s[conv].reorder(oc_chunk, oh, ow_chunk, ow_block, oc_block)
    s[conv].parallel(s[conv].fuse(batch, oc_chunk, oh))
    s[conv].vectorize(oc_block)

    s[sums].compute_at(s[conv], ow_chunk)
    _, oc_chunk, oh, ow, oc_block = s[sums].op.axis
    ic, kh, kw = s[sums].op.reduce_axis
    ow_chunk, ow_block = s[sums].split(ow, factor=columns)
    ic_chunk, ic_block = s[sums].split(ic, factor=block, names=("IC", "iic"))
    inner = [ic_block, kw] if unroll_kw else [kw, ic_block]
    s[sums].reorder(oc_chunk, oh, ow_chunk, ic_chunk, kh, *inner, ow_block, oc_block)
    if unroll_kw:
        s[sums].unroll(kw)
    s[sums].vectorize(oc_block)
    s[sums].unroll(ow_block)
