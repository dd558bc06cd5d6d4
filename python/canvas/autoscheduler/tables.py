"""The tasks that AutoScheduler's task.py registers: its shapes, over the operator library.

A task's args are in the order that its key has there.  Two of task.py are not here: its packed
convolution of 1x1, which is for cuda alone, and the gated PixelCNN, whose one shape has other
channels behind it than before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..operators import operator_program
from ..te.write_program import from_program

# category, name, func, args, target, dev_id
Row = tuple[str, str, Callable[..., Any], tuple[Any, ...], str, int]
Words = tuple[str, ...]

# What task.py calls a function, the operator of the library, and its arguments in their order.
_IMAGE: Words = ("batch", "in_channels", "height", "width", "out_channels", "kernel")
_MOVES: Words = ("stride", "padding", "dilation", "groups")
_LINE: Words = ("batch", "in_channels", "length", "out_channels", "kernel", *_MOVES)
_SPACE: Words = ("batch", "in_channels", "depth", *_IMAGE[2:], *_MOVES)
_OPERATORS: dict[str, tuple[str, Words]] = {
    "conv1d": ("conv1d", _LINE),
    "conv_transpose1d": ("conv_transpose1d", _LINE),
    "conv2d": ("conv2d_nchw", (*_IMAGE, *_MOVES)),
    "gemm_conv2d": ("gemm_conv2d_nchw", (*_IMAGE, *_MOVES)),
    "conv_transpose2d": ("conv_transpose2d_nchw", (*_IMAGE, *_MOVES)),
    "depthwise": ("depthwise_conv2d_nchw", (*_IMAGE[:4], "factor", "kernel", *_MOVES[:3], "")),
    "conv3d": ("conv3d_ncdhw", _SPACE),
    "conv_transpose3d": ("conv_transpose3d_ncdhw", _SPACE),
    "gemv": ("gemv", ("m", "k")),
    "gemm": ("gemm", ("m", "k", "n")),
    "bilinear": ("bilinear", ("batch", "in1_features", "in2_features", "out_features")),
    "mttkrp": ("mttkrp3d", ("m", "k", "l", "n")),
    "block_circulant_matrix": ("block_circulant_matrix", ("rows", "columns", "block")),
    "maxunpooling1d": ("maxunpooling1d", ("batch", "channels", "length", "kernel", *_MOVES[:2])),
    "maxunpooling2d": (
        "maxunpooling2d",
        ("batch", "channels", "height", "width", "kernel", *_MOVES[:2]),
    ),
    "pixelcnn": (
        "pixelcnn",
        (
            *("batch", "height", "width", "in_channels", "out_channels", "kernel", "kernel_width"),
            *("mask_type", "bias", "dilation", "stride", "padding"),
        ),
    ),
}


def _function(name: str) -> Callable[..., Any]:
    operator, words = _OPERATORS[name]

    def tensors(*args: Any) -> Any:
        given = {word: arg for word, arg in zip(words, args) if word and arg is not None}
        if (width := given.pop("kernel_width", None)) is not None:
            given["kernel"] = (given["kernel"], width)
        outputs, inputs = from_program(operator_program(operator, **given))
        return [tensor.op for tensor in outputs], [*inputs, *outputs]

    return tensors


# ---- shapes -------------------------------------------------------------------------------------

Shape = tuple[Any, ...]

# Convolutions of images: in_channels, side, out_channels, kernel, stride, padding.
_YOLO = (
    (3, 448, 64, 7, 2, 3), (64, 112, 192, 3, 1, 1), (192, 56, 128, 1, 1, 0),
    (128, 56, 256, 3, 1, 1), (256, 56, 256, 1, 1, 0), (256, 56, 512, 3, 1, 1),
    (512, 28, 256, 1, 1, 0), (256, 28, 512, 3, 1, 1), (512, 28, 512, 1, 1, 0),
    (512, 28, 1024, 3, 1, 1), (1024, 14, 512, 1, 1, 0), (512, 14, 1024, 3, 1, 1),
    (1024, 14, 1024, 3, 1, 1), (1024, 14, 1024, 3, 2, 1), (1024, 7, 1024, 3, 1, 1),
)  # fmt: skip
_GOOGLE = (
    (3, 224, 64, 7, 2, 3), (64, 56, 64, 1, 1, 0), (64, 56, 192, 3, 1, 1), (192, 28, 64, 1, 1, 0),
    (192, 28, 96, 1, 1, 0), (96, 28, 128, 3, 1, 1), (192, 28, 16, 1, 1, 0), (16, 28, 32, 5, 1, 2),
    (192, 28, 32, 1, 1, 0), (256, 28, 128, 1, 1, 0), (128, 28, 192, 3, 1, 1),
    (256, 28, 32, 1, 1, 0), (32, 28, 96, 5, 1, 2), (256, 28, 64, 1, 1, 0),
    (480, 14, 192, 1, 1, 0), (480, 14, 96, 1, 1, 0), (96, 14, 208, 3, 1, 1),
    (480, 14, 16, 1, 1, 0), (16, 14, 48, 5, 1, 2), (480, 14, 64, 1, 1, 0),
    (512, 14, 160, 1, 1, 0), (512, 14, 112, 1, 1, 0), (112, 14, 224, 3, 1, 1),
    (512, 14, 24, 1, 1, 0), (24, 14, 64, 5, 1, 2), (512, 14, 64, 1, 1, 0),
    (512, 14, 128, 1, 1, 0), (128, 14, 256, 3, 1, 1), (512, 14, 144, 1, 1, 0),
    (144, 14, 288, 3, 1, 1), (512, 14, 32, 1, 1, 0), (32, 14, 64, 5, 1, 2),
    (528, 14, 256, 1, 1, 0), (528, 14, 160, 1, 1, 0), (160, 14, 320, 3, 1, 1),
    (528, 14, 32, 1, 1, 0), (32, 14, 128, 5, 1, 2), (528, 14, 128, 1, 1, 0),
    (832, 7, 256, 1, 1, 0), (832, 7, 160, 1, 1, 0), (160, 7, 320, 3, 1, 1), (832, 7, 32, 1, 1, 0),
    (32, 7, 128, 5, 1, 2), (832, 7, 128, 1, 1, 0), (832, 7, 384, 1, 1, 0), (832, 7, 192, 1, 1, 0),
    (192, 7, 384, 3, 1, 1), (832, 7, 48, 1, 1, 0), (48, 7, 128, 5, 1, 2),
)  # fmt: skip
_SQUEEZE = (
    (3, 227, 96, 7, 2, 0), (96, 55, 16, 1, 1, 0), (16, 55, 64, 1, 1, 0), (16, 55, 64, 3, 1, 1),
    (128, 55, 16, 1, 1, 0), (128, 55, 32, 1, 1, 0), (32, 55, 128, 1, 1, 0), (32, 55, 128, 3, 1, 1),
    (256, 27, 32, 1, 1, 0), (32, 27, 128, 1, 1, 0), (32, 27, 128, 3, 1, 1), (256, 27, 48, 1, 1, 0),
    (48, 27, 192, 1, 1, 0), (48, 27, 192, 3, 1, 1), (384, 27, 48, 1, 1, 0), (384, 27, 64, 1, 1, 0),
    (64, 27, 256, 1, 1, 0), (64, 27, 256, 3, 1, 1), (512, 13, 64, 1, 1, 0), (64, 13, 256, 1, 1, 0),
    (64, 13, 256, 3, 1, 1), (512, 13, 1000, 1, 1, 0),
)  # fmt: skip
_RES = (
    (3, 224, 64, 7, 2, 3), (64, 56, 256, 1, 1, 0), (64, 56, 64, 1, 1, 0), (64, 56, 64, 3, 1, 1),
    (256, 56, 64, 1, 1, 0), (256, 56, 512, 1, 2, 0), (256, 56, 128, 1, 2, 0),
    (128, 28, 128, 3, 1, 1), (128, 28, 512, 1, 1, 0), (512, 28, 128, 1, 1, 0),
    (512, 28, 1024, 1, 2, 0), (512, 28, 256, 1, 2, 0), (256, 14, 256, 3, 1, 1),
    (256, 14, 1024, 1, 1, 0), (1024, 14, 256, 1, 1, 0), (1024, 14, 2048, 1, 2, 0),
    (1024, 14, 512, 1, 2, 0), (512, 7, 512, 3, 1, 1), (512, 7, 2048, 1, 1, 0),
    (2048, 7, 512, 1, 1, 0),
)  # fmt: skip
_VGG = tuple(
    (channels, side, out, 3, 1, 1)
    for channels, side, out in (
        (3, 224, 64), (64, 224, 64), (64, 112, 128), (128, 112, 128), (128, 56, 256),
        (256, 56, 256), (256, 28, 512), (512, 28, 512), (512, 14, 512),
    )
)  # fmt: skip
# Depthwise: channels, side, factor, stride.
_MOBILE = (
    (32, 112, 1, 1), (16, 112, 6, 2), (24, 56, 6, 2), (32, 28, 6, 2), (64, 14, 6, 1),
    (96, 14, 6, 2), (160, 7, 6, 1),
)  # fmt: skip
# in_channels, length, out_channels, kernel, padding.
_LINES = (
    (192, 3136, 128, 1, 0), (128, 3136, 256, 9, 1), (512, 784, 256, 1, 0), (256, 784, 512, 9, 1),
    (1024, 196, 512, 1, 0), (512, 196, 1024, 9, 1), (1024, 49, 1024, 9, 1),
)  # fmt: skip
# in_channels, depth, side, out_channels, kernel, stride, padding.
_SPACES = (
    (64, 8, 28, 64, 3, 1, 1), (64, 8, 28, 128, 3, 2, 1), (128, 4, 14, 128, 3, 1, 1),
    (64, 8, 28, 128, 1, 2, 1), (128, 4, 14, 256, 3, 2, 1), (256, 2, 7, 256, 3, 1, 1),
    (128, 4, 14, 256, 1, 2, 1), (256, 2, 7, 512, 3, 2, 1), (512, 1, 3, 512, 3, 1, 1),
    (256, 2, 7, 512, 1, 2, 1),
)  # fmt: skip
_POWERS = (32, 64, 128, 256, 512, 1024)


def _images(
    batch: int, rows: tuple[Shape, ...], dilation: int = 1, groups: int = 1
) -> list[Shape]:
    """The args of conv2d: batch, in, height, width, out, kernel, stride, padding, ..."""
    return [
        (batch, c, side, side, out, k, stride, pad, dilation, groups)
        for c, side, out, k, stride, pad in rows
    ]


# The sets that conv2d, gemm_conv2d and conv_transpose2d are registered for, in their order.
_SETS: dict[str, list[Shape]] = {
    "yolo": _images(1, _YOLO),
    "google": _images(1, _GOOGLE),
    "res": _images(64, _RES),
    "squeeze": _images(1, _SQUEEZE),
    "vgg-16": _images(1, _VGG),
    "test": _images(256, ((256, 14, 512, 1, 1, 0),)),
    "yolo_b8": _images(8, _YOLO),
    "mobile_v2": [
        (1, c, side, side, c * factor, 3, stride, 1, 1, c) for c, side, factor, stride in _MOBILE
    ],
}

# The rest: category, name, function, args.
_REST: dict[tuple[str, str, str], list[Shape]] = {
    ("conv2d", "depthwise", "depthwise"): [
        (1, c, side, side, factor, 3, stride, 1, 1, c) for c, side, factor, stride in _MOBILE
    ],
    ("conv2d", "grouped", "conv2d"): [
        (1, 1024, 14, 14, 512, 1, 1, 0, 1, groups) for groups in (4, 8, 16, 32)
    ],
    ("conv2d", "dilation", "conv2d"): _images(1, _YOLO[4:], dilation=2),
    ("gemv", "gemv", "gemv"): [(n, n) for n in (128, 256, 512, 1024, 2048, 4096)],
    ("gemm", "gemm", "gemm"): [(n, k, m) for n in _POWERS for k in _POWERS for m in _POWERS],
    ("bilinear", "bilinear", "bilinear"): [
        (32, 1024, 1024, 32), (64, 512, 512, 64), (512, 64, 128, 256),
    ],
    ("mttkrp", "mttkrp", "mttkrp"): [
        (128, 256, 512, 64), (128, 256, 256, 128), (256, 128, 256, 128), (256, 128, 128, 256),
        (512, 64, 128, 256), (512, 64, 64, 512), (1024, 32, 32, 1024),
    ],
    ("block_circulant_matrix", "block_circulant_matrix", "block_circulant_matrix"): [
        (1024, columns, block) for columns in (256, 512, 40) for block in (8, 16)
    ],
    ("maxunpooling1d", "maxunpooling1d", "maxunpooling1d"): [
        (1, 128, 114, 2, 2, 0), (1, 256, 56, 2, 2, 0), (1, 512, 28, 2, 2, 0),
        (1, 512, 14, 2, 2, 0),
    ],
    ("maxunpooling2d", "maxunpooling2d", "maxunpooling2d"): [
        (1, 128, 114, 114, 2, 2, 0), (1, 256, 56, 56, 2, 2, 0), (1, 512, 28, 28, 2, 2, 0),
        (1, 512, 14, 14, 2, 2, 0),
    ],
    ("pixelcnn", "pixelcnn", "pixelcnn"): [
        (1, 256, 256, 3, 32, 7, 7, "A", None, 1, 1, 0),
        (1, 128, 128, 256, 256, 3, 3, "B", None, 1, 1, 0),
    ],
}  # fmt: skip


def _back(shape: Shape, sides: int) -> Shape:
    """The transposed convolution that takes a convolution's result back to what it was made of."""
    batch, channels, *rest = shape
    size, (out, k, stride, pad, dilation, groups) = rest[:sides], rest[sides:]
    made = [(n + 2 * pad - dilation * (k - 1) - 1) // stride + 1 for n in size]
    return (batch, out, *made, channels, k, stride, pad, dilation, groups)


def _all_shapes() -> Iterator[tuple[str, str, str, Shape]]:
    """Category, name, function, args."""
    for c, length, out, k, pad in _LINES:
        line = (1, c, length, out, k, 1, pad, 1, 1)
        yield "conv1d", "conv1d", "conv1d", line
        yield "conv_transpose1d", "conv_transpose1d", "conv_transpose1d", _back(line, 1)
    for name, shapes in _SETS.items():
        for number, shape in enumerate(shapes):
            yield "conv2d", f"{name}{number}", "conv2d", shape
            yield "gemm_conv2d", f"{name}{number}", "gemm_conv2d", shape
            yield "conv_transpose2d", f"{name}{number}", "conv_transpose2d", _back(shape, 2)
    for c, depth, side, out, k, stride, pad in _SPACES:
        space = (1, c, depth, side, side, out, k, stride, pad, 1, 1)
        yield "conv3d", "conv3d", "conv3d", space
        yield "conv_transpose3d", "conv_transpose3d", "conv_transpose3d", _back(space, 3)
    for (category, name, function), shapes in _REST.items():
        for shape in shapes:
            yield category, name, function, shape


def built_in_rows() -> Iterator[Row]:
    """For both targets and four devices of each."""
    functions = {name: _function(name) for name in _OPERATORS}
    for category, name, function, args in _all_shapes():
        for target in ("llvm", "cuda"):
            for device in range(4):
                yield category, name, functions[function], args, target, device
