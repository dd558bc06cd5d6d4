"""Outputs that are written around the caches, `@Y:stream`: the same numbers wherever the output
begins, and where the schedule may not ask for it."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from canvas import _core

SCALED = """canvas 1
program scaled
in X {type} [i:64, j:64]
Y {type} [i:64, j:64] = X[i, j] * 2 + 1
out Y
"""
SUMMED = """canvas 1
program summed
in X f32 [i:64, j:64]
in W f32 [j:64, k:64]
Y[i:64, k:64] = X[i, j] * W[j, k] // sum j:64
out Y
"""
READ = SCALED.format(type="f32").replace("out Y", "Z[i:64, j:64] = Y[i, j] + 1\nout Y, Z")
SCHEDULE = "canvas 1\ni{mark} =>\n    jo, ji:{lanes}:vec =>\n        @Y:stream = i, {{jo, ji}}/j\n"


def machine(vector_bytes: int) -> str:
    return (
        f"canvas 1\nmachine m\nvector_bytes {vector_bytes}\nvector_registers 16\nl1 32 KiB\n"
        "l2 1 MiB\nmemory 1 GiB\ntarget native\n"
    )


def filled(path: str, image: np.ndarray, offset: int) -> np.ndarray:
    """The output, so many bytes behind a multiple of 64."""
    room: np.ndarray = np.full(image.nbytes + 256, 7, np.uint8)
    start = -room.ctypes.data % 64 + offset
    out = room[start : start + image.nbytes]
    pointers = (ctypes.c_void_p * 2)(image.ctypes.data, out.ctypes.data)
    assert ctypes.CDLL(path).canvas_call_scaled(pointers) == 0
    assert (room[:start] == 7).all() and (room[start + image.nbytes :] == 7).all()
    return out


@pytest.mark.parametrize("mark", ["", ":para"])
@pytest.mark.parametrize(("name", "dtype"), [("f32", "f4"), ("f64", "f8")])
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_the_output_may_begin_anywhere(
    vector_bytes: int, name: str, dtype: str, mark: str
) -> None:
    image = np.random.default_rng(0).standard_normal((64, 64)).astype(dtype)
    text = SCHEDULE.format(mark=mark, lanes=vector_bytes // image.itemsize)
    path = _core.compile(SCALED.format(type=name), text, machine(vector_bytes))[0]
    for offset in (0, image.itemsize, 16, 32, 48):
        out = filled(path, image, offset)
        assert out.tobytes() == (image * 2 + 1).tobytes()


@pytest.mark.parametrize(
    ("program", "schedule", "message"),
    [
        (SCALED, "i, j => @Y:stream = i, j", "':stream' output 'Y' is in no vec loop"),
        (SUMMED, "i, j, k:vec => @Y:stream = i, k // j", ""),
        (
            SUMMED,
            "j, i, k:vec => @Y:stream = i, k // j",
            "':stream' output 'Y' accumulates in memory",
        ),
        (
            READ,
            "i, j:vec => @Y:stream = i, j\ni, j:vec => @Z = i, j",
            "':stream' output 'Y' is read by 'Z'",
        ),
    ],
)
def test_where_it_is_refused(program: str, schedule: str, message: str) -> None:
    program = program.format(type="f32") if "{" in program else program
    if not message:
        assert _core.compile(program, schedule + "\n", machine(32))
        return
    with pytest.raises(ValueError, match=message):
        _core.compile(program, schedule + "\n", machine(32))
