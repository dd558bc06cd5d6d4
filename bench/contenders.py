"""How contenders are timed: in turns, checked before; oneDNN and torch among them.

A Timer takes a number of calls and returns the seconds of one. bench/native_speed.c has the clock
and calls oneDNN's C API; a Chain is a list of its primitives, whose tensors are numbers.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import statistics
import subprocess
import time
from collections.abc import Callable
from ctypes import c_char_p, c_double, c_int, c_int64, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
SLICE = 0.004  # seconds of a contender's turn
WARM = 3  # calls, at least, before a turn is timed
SLOW = 0.3  # seconds of a call after which one is enough
WRONG = 1e-4  # difference from the expected result, of its largest value

Timer = Callable[[int], float]  # calls -> seconds of one


# ---- turns --------------------------------------------------------------------------------------


def calls_of(timer: Timer, slice_s: float, slow: float) -> int:
    """How many calls make a turn."""
    once = timer(1)
    if once < slow:
        once = min(timer(1), timer(1))
    return max(1, int(slice_s / max(once, 1e-7)))


def turns(timers: dict[str, Timer], rounds: int, *, slice_s: float = SLICE, warm: float = 0.5,
          least_warm: int = WARM, skip: int = 0, slow: float = SLOW, limit: float = math.inf
          ) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of a call, by contender and round. The order is drawn anew in each round: in a fixed
    order the arrays of one contender can stay in L3, which makes it up to 1.5 times as fast.

    A turn is as many calls as `slice_s` seconds hold. Untimed calls come before it, `warm` times
    as many, at least `least_warm`: they reload what other contenders evicted. The first `skip`
    rounds do not count. Of a contender whose call takes more than `slow` seconds one round is
    measured.
    After `limit` seconds and three rounds no more begin.
    """
    calls = {name: calls_of(timer, slice_s, slow) for name, timer in timers.items()}
    times: dict[str, list[float]] = {name: [] for name in timers}
    order, shuffled = list(timers), random.Random(1)
    until = time.monotonic() + limit
    for turn in range(-skip, rounds):
        shuffled.shuffle(order)
        for name in order:
            timer, taken = timers[name], times[name]
            if taken and taken[0] > slow:
                taken.append(taken[0])
                continue
            timer(max(least_warm, round(warm * calls[name])))
            seconds = timer(calls[name])
            if turn >= 0:
                taken.append(seconds)
        if turn >= 2 and time.monotonic() > until:
            break
    return times


def of_torch(function: Callable[..., Any], tensors: list[Any]) -> Timer:
    def timer(calls: int) -> float:
        start = time.thread_time()
        for _ in range(calls):
            function(*tensors)
        return (time.thread_time() - start) / calls

    return timer


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 64, as oneDNN and torch allocate; numpy takes large pages for it."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def native(speed: Speed, function: Any, arrays: list[np.ndarray], out: np.ndarray) -> Timer:
    every = [*arrays, out]
    pointers = (ctypes.c_void_p * len(every))(*(a.ctypes.data for a in every))

    def timer(calls: int) -> float:
        assert len(every)  # they live as long as the timer
        return speed.time(function, pointers, calls)

    return timer


def check(name: str, made: np.ndarray, wanted: np.ndarray) -> None:
    error = np.abs(made.reshape(-1) - wanted.reshape(-1)).max() / np.abs(wanted).max()
    if not error < WRONG:
        raise RuntimeError(f"{name} is wrong by {error:.2g} of the largest value")


def ratio(times: dict[str, list[float]], name: str, rivals: list[str]) -> float | None:
    """How many times faster than the best of the rivals."""
    there = [rival for rival in rivals if rival in times]
    if name not in times or not there:
        return None
    best = min(there, key=lambda rival: statistics.median(times[rival]))
    return statistics.median(r / t for r, t in zip(times[best], times[name]))


# ---- oneDNN -------------------------------------------------------------------------------------


def sizes(*values: int) -> ctypes.Array[c_int64]:
    return (c_int64 * len(values))(*values)


def last_strides(shape: tuple[int, ...]) -> ctypes.Array[c_int64]:
    """Strides of n c h w with channels last."""
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
    """Primitives that run one after another. oneDNN chooses their layouts."""

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
