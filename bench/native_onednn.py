"""bench/native_speed.c from Python: its clock, and chains of oneDNN's primitives."""

from __future__ import annotations

import ctypes
import os
import subprocess
from ctypes import c_char_p, c_double, c_int, c_int64, c_void_p
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


def sizes(*values: int) -> ctypes.Array[c_int64]:
    return (c_int64 * len(values))(*values)


def last_strides(shape: tuple[int, ...]) -> ctypes.Array[c_int64]:
    """Of n c h w where the channels stand last."""
    _, c, h, w = shape
    return sizes(h * w * c, 1, w * c, c)


def build(folder: Path) -> tuple[Path, str]:
    """The library, and why it is without oneDNN: "" if it is not."""
    out, made = folder / "native_speed.so", folder / f"native_speed-{os.getpid()}.so"
    base = ["cc", "-O2", "-shared", "-fPIC", str(HERE / "native_speed.c"), "-o", str(made)]
    with_it = subprocess.run([*base, "-DWITH_ONEDNN", "-ldnnl"], capture_output=True, text=True)
    if with_it.returncode:
        subprocess.run(base, check=True)
    made.replace(out)  # a process that loads it meanwhile sees the old one, whole
    return out, "no libdnnl-dev, or not its version 2" if with_it.returncode else ""


class Speed:
    def __init__(self, path: Path) -> None:
        lib = ctypes.CDLL(str(path))
        lib.native_time.restype = lib.native_clock.restype = c_double
        self.lib = lib
        self.onednn = hasattr(lib, "onednn_new")
        if self.onednn:
            lib.onednn_new.restype = c_void_p
            for name in ("onednn_error", "onednn_implementation", "onednn_version"):
                getattr(lib, name).restype = c_char_p

    def time(self, function: object, pointers: object, calls: int) -> float:
        """Seconds of processor time of a call."""
        taken: float = self.lib.native_time(function, pointers, calls)
        if taken < 0:
            raise RuntimeError("the code failed while it was timed")
        return taken / calls

    def clock(self) -> float:
        cycles: float = self.lib.native_clock()
        return cycles

    def version(self) -> str:
        version: bytes = self.lib.onednn_version()
        return version.decode()


class Chain:
    """Primitives in a row; tensors are numbers. oneDNN chooses their layouts."""

    def __init__(self, speed: Speed) -> None:
        self.lib = speed.lib
        self.chain = c_void_p(self.lib.onednn_new())
        self.kept: list[np.ndarray] = []
        self.pointers = (c_void_p * 1)(self.chain)
        self.run = self.lib.onednn_run

    def close(self) -> None:
        self.lib.onednn_free(self.chain)

    def check(self, number: int) -> int:
        error = self.lib.onednn_error(self.chain)
        if error:
            raise RuntimeError(f"oneDNN: {error.decode()}")
        return number

    def implementation(self) -> str:
        text: bytes = self.lib.onednn_implementation(self.chain)
        return text.decode()

    def data(self, array: np.ndarray) -> c_void_p:
        array = np.ascontiguousarray(array)
        self.kept.append(array)
        return c_void_p(array.ctypes.data)

    def tensor(self, array: np.ndarray) -> int:
        data, shape = self.data(array), sizes(*array.shape)
        return self.check(self.lib.onednn_tensor(self.chain, array.ndim, shape, None, data))

    def image(self, array: np.ndarray) -> int:
        """n h w c"""
        n, h, w, c = array.shape
        shape, strides = sizes(n, c, h, w), last_strides((n, c, h, w))
        return self.check(self.lib.onednn_tensor(self.chain, 4, shape, strides, self.data(array)))

    def convolution(
        self,
        x: int,
        image: np.ndarray,
        weights: int,
        w: np.ndarray,
        result: tuple[int, ...],
        stride: int,
        padding: int | tuple[int, int],
        transposed: bool = False,
        winograd: bool = False,
    ) -> int:
        """Of images like `image`; `padding` before and after."""
        n, h, wide, c = image.shape
        before = (padding, padding) if isinstance(padding, int) else padding
        after = []
        for size, out, window, pad in zip((h, wide), result[2:], w.shape[-2:], before):
            large, small = (out, size) if transposed else (size, out)
            after.append((small - 1) * stride + window - large - pad)
        made = self.lib.onednn_convolution(
            self.chain,
            x,
            weights,
            w.ndim,
            sizes(n, c, h, wide),
            sizes(*w.shape),
            sizes(*result),
            sizes(stride, stride),
            sizes(*before),
            sizes(*after),
            int(transposed),
            int(winograd),
        )
        return self.check(made)

    def product(self, a: np.ndarray, b: np.ndarray, result: tuple[int, int]) -> int:
        x, w = self.tensor(a), self.tensor(b)
        made = self.lib.onednn_product(
            self.chain, x, w, 2, sizes(*a.shape), sizes(*b.shape), sizes(*result)
        )
        return self.check(made)

    def like(self, x: int, other: int) -> int:
        """The tensor in the layout of another."""
        return self.check(self.lib.onednn_like(self.chain, x, other))

    def sum(self, a: int, b: int) -> int:
        return self.check(self.lib.onednn_sum(self.chain, a, b))

    def shift(self, x: int, shape: tuple[int, ...]) -> int:
        return self.check(self.lib.onednn_shift(self.chain, x, sizes(*shape)))

    def read(self, tensor: int, shape: tuple[int, ...], image: bool) -> np.ndarray:
        """What a run wrote: an image as n h w c."""
        if not image:
            out = np.empty(shape, np.float32)
            strides = None
        else:
            n, c, h, w = shape
            out, strides = np.empty((n, h, w, c), np.float32), last_strides(shape)
        self.lib.onednn_read(
            self.chain, tensor, len(shape), sizes(*shape), strides, c_void_p(out.ctypes.data)
        )
        self.check(0)
        return out


def function_of(path: str, name: str) -> ctypes._NamedFuncPointer:
    """That of a shared object of `canvas compile`, called with an array of pointers."""
    function = getattr(ctypes.CDLL(path), f"canvas_call_{name}")
    function.restype = c_int
    return function
