"""What torch, NumPy and SciPy say that the operators of the library compute: TORCH, by name.

A reference takes the inputs of the operator's program in order, and the words of its call; it
answers the first result, or all of several.
"""

import re
from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse
import torch
from torch.nn import functional as F

Values = dict[str, str]
Tensors = list[torch.Tensor]  # X, W, B as the program wants them


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
    function = (F.conv1d, F.conv2d, F.conv3d)[axes - 1]
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
    function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[axes - 1]
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


def last(
    function: Callable[[Tensors, Values], torch.Tensor],
) -> Callable[[Tensors, Values], torch.Tensor]:
    """The same with the channels last."""

    def answer(t: Tensors, v: Values) -> torch.Tensor:
        return function([t[0].permute(0, 3, 1, 2)], v).permute(0, 2, 3, 1)

    return answer


def max_pool(t: Tensors, v: Values) -> torch.Tensor:
    return pool(t, v, largest=True)


def avg_pool(t: Tensors, v: Values) -> torch.Tensor:
    return pool(t, v, largest=False)


# ---- zeros, masks, shifts, indices --------------------------------------------------------------


def pad_nchwc(t: Tensors, v: Values) -> torch.Tensor:
    return padded(t[0].permute(0, 1, 4, 2, 3), v, 2).permute(0, 1, 3, 4, 2)


def expand(t: Tensors, v: Values) -> torch.Tensor:
    axes = t[0].dim() - 2
    steps = numbers(v.get("stride", "1"), axes)
    y = t[0].new_zeros(
        *t[0].shape[:2], *((n - 1) * s + 1 for n, s in zip(t[0].shape[2:], steps, strict=True))
    )
    y[(..., *(slice(None, None, s) for s in steps))] = t[0]
    return y


def col2img(t: Tensors, v: Values) -> torch.Tensor:
    batch, height, width = (int(v.get(name, 1)) for name in ("batch", "height", "width"))
    planes = t[0].unflatten(2, (batch, height, width))
    return planes.permute(2, 0, 1, 3, 4).flatten(1, 2)


def masked(w: torch.Tensor, itself: bool) -> torch.Tensor:
    """The weights [.., height, width] without those of later pixels in reading order."""
    w = w.clone()
    rows, columns = w.shape[-2:]
    w[..., rows // 2, columns // 2 + itself :] = 0
    w[..., rows // 2 + 1 :, :] = 0
    return w


def pixelcnn(t: Tensors, v: Values) -> torch.Tensor:
    return conv_nhwc([t[0], masked(t[1], v["mask_type"] == "B"), *t[2:]], v)


def halves(x: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=1)
    return first.tanh() * second.sigmoid()


def gatedpixelcnn(t: Tensors, v: Values) -> Tensors:
    x = t[0].permute(0, 3, 1, 2)
    height, width = numbers(v["kernel"], 2)
    down, right = numbers(v.get("dilation", "1"), 2)
    edges = (height // 2 * down, width // 2 * right)
    vertical = F.conv2d(x, masked(t[1], True), padding=edges, dilation=(down, right))
    row = masked(t[3].unsqueeze(2), True)
    along = F.conv2d(x, row, padding=(0, edges[1]), dilation=(1, right))
    horizontal = along + F.conv2d(vertical, t[2][..., None, None])
    y = F.conv2d(halves(horizontal), t[4][..., None, None]) + x
    more = t[5][..., None, None] if flag(v, "class_vector") else 0
    return [y.permute(0, 2, 3, 1), halves(vertical + more).permute(0, 2, 3, 1)]


def shift_by(x: torch.Tensor, place: torch.Tensor, v: Values) -> torch.Tensor:
    """Each channel convolved with a window that is one at `place`, zero elsewhere."""
    kernel, options = numbers(v["kernel"], 2), windows(v, 2)
    ones = F.one_hot(place, kernel[0] * kernel[1]).to(x).reshape(-1, 1, *kernel)
    x = x.permute(0, 3, 1, 2)
    edges: list[int] = []
    for i in (1, 0):
        size, span = x.shape[2 + i], (kernel[i] - 1) * options["dilation"][i] + 1
        missing = (size - 1) * options["stride"][i] + span - size
        edges += [missing // 2, missing - missing // 2]
    y = F.conv2d(F.pad(x, edges), ones, groups=x.shape[1], **options)
    return y.permute(0, 2, 3, 1)


def shift(t: Tensors, v: Values) -> torch.Tensor:
    return shift_by(t[0], t[1].long(), v)


def shift_argmax(t: Tensors, v: Values) -> torch.Tensor:
    return shift_by(t[0], t[1].flatten(1).argmax(1), v)


def unpool_options(v: Values, axes: int) -> dict[str, list[int]]:
    stride = numbers(v.get("stride", v["kernel"]), axes)
    return {"stride": stride, "padding": numbers(v.get("padding", "0"), axes)}


def unpool(t: Tensors, v: Values) -> torch.Tensor:
    axes = t[0].dim() - 2
    function = F.max_unpool1d if axes == 1 else F.max_unpool2d
    return function(t[0], t[1].long(), numbers(v["kernel"], axes), **unpool_options(v, axes))


# ---- products, statistics, a cell ---------------------------------------------------------------


def mttkrp(t: Tensors, v: Values) -> torch.Tensor:
    return torch.einsum("mkl,kn,ln->mn", *t)


def lstm(t: Tensors, v: Values) -> Tensors:
    x, h, c, w, wh = t[:5]
    cell = torch.nn.LSTMCell(x.shape[1], h.shape[1], flag(v, "bias"), dtype=x.dtype)
    given = dict(
        zip(("weight_ih", "weight_hh", "bias_ih", "bias_hh"), (w, wh, *t[5:]), strict=False)
    )
    cell.load_state_dict(given)
    with torch.no_grad():
        return list(cell(x, (h, c)))


def circulant_matrix(first: np.ndarray) -> np.ndarray:
    """The matrix whose blocks begin with the rows `first` [rows, columns, block]."""
    return np.block([[scipy.linalg.circulant(row).T for row in blocks] for blocks in first])


def circulant_linear(t: Tensors, v: Values) -> torch.Tensor:
    return F.linear(t[0], torch.from_numpy(circulant_matrix(t[1].numpy())), bias(t, v))


def nearest_circulant(t: Tensors, v: Values) -> torch.Tensor:
    x, size = t[0].numpy(), int(v["block"])
    rows, columns = x.shape[0] // size, x.shape[1] // size
    first = np.empty((rows, columns, size))
    for i, j, s in np.ndindex(first.shape):
        block = x[i * size : (i + 1) * size, j * size : (j + 1) * size]
        first[i, j, s] = np.roll(block, -s, axis=1).trace() / size
    y = np.zeros_like(x)
    y[: rows * size, : columns * size] = circulant_matrix(first)
    return torch.from_numpy(y)


def batch_norm(t: Tensors, v: Values) -> torch.Tensor:
    return F.batch_norm(t[0], None, None, training=True, eps=float(v.get("epsilon", "1e-5")))


Reference = Callable[[Tensors, Values], torch.Tensor | Tensors]
TORCH: dict[str, Reference] = {
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
    "zero_pad2d_nchwc": pad_nchwc,
    "zero_pad3d": lambda t, v: padded(t[0], v, 3),
    "zero_expand1d": expand,
    "zero_expand2d": expand,
    "zero_expand3d": expand,
    "conv3d_ncdhw": conv_plain,
    "conv_transpose3d_ncdhw": transposed,
    "pixelcnn": pixelcnn,
    "gatedpixelcnn": gatedpixelcnn,
    "shiftconv2d_nhwc": shift,
    "shiftconv2d_nhwc_argmax": shift_argmax,
    "col2img_nchw": col2img,
    "bilinear": lambda t, v: F.bilinear(*t[:3], t[3] if flag(v, "bias") else None),
    "mttkrp3d": mttkrp,
    "lstmcell": lstm,
    "block_circulant_linear": circulant_linear,
    "block_circulant_matrix": nearest_circulant,
    "variance": lambda t, v: t[0].var(dims(v, "0")),
    "batch_normalization2d": batch_norm,
    "pointwise_multiply": lambda t, v: t[0] * t[1],
    "maxunpooling1d": unpool,
    "maxunpooling2d": unpool,
}
