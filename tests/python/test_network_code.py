"""Networks as machine code by way of `canvas._core`: what it tells is enough to call them."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from canvas import _core, _testing

ROOT = Path(__file__).resolve().parents[2]
BLOCK = (ROOT / "examples/networks/block.net").read_text()


def pointers(arrays):
    return (ctypes.c_void_p * (len(arrays) + 1))(*[a.ctypes.data for a in arrays])


def aligned(size):
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]


def run(code, weights, inputs):
    library = ctypes.CDLL(code["path"])
    load = getattr(library, code["function"] + "_load")
    call = getattr(library, code["function"] + "_run")
    packed, arena = aligned(code["packed"]), aligned(code["arena"])
    outputs = [np.full(shape, np.nan, "f4") for _, _, shape in code["outputs"]]
    kept = ctypes.c_void_p(packed.ctypes.data)
    assert load(pointers(weights), kept) == 0
    room = ctypes.c_void_p(arena.ctypes.data)
    assert call(pointers(weights), kept, pointers(inputs), pointers(outputs), room) == 0
    return outputs


@pytest.mark.parametrize("optimize", [False, True])
def test_a_network_is_called(optimize):
    code = _core.network_compile(BLOCK, optimize=optimize)
    assert [row[:3] for row in code["weights"]] == [
        ("w1", "layer1.0.conv1.weight", "f32"),
        ("w2", "layer1.0.conv2.weight", "f32"),
    ]
    assert code["inputs"] == [("image", "f32", (1, 4, 6, 6))]
    assert all(macs > 0 and size > 0 and program for program, _, macs, size in code["calls"])
    draw = np.random.default_rng(1)
    weights = [draw.standard_normal(shape).astype("f4") for _, _, _, shape in code["weights"]]
    image = draw.standard_normal((1, 4, 6, 6)).astype("f4")
    given = [image, *weights]
    (wanted,) = _testing.network_evaluate(BLOCK, [a.astype("f8").tobytes() for a in given])
    (got,) = run(code, weights, [image])
    expected = np.frombuffer(wanted, "f8").reshape(got.shape)
    assert np.allclose(got, expected, rtol=1e-4, atol=1e-4)
    again = _core.network_compile(BLOCK, optimize=optimize)
    assert (again["made"], again["path"]) == (0, code["path"])


def test_files_to_keep():
    files = _core.network_source(BLOCK, name="mine", optimize=False)
    assert sorted(files) == ["main.c", "mine.c", "mine.h"]
    assert "int mine_run(" in files["mine.h"]


def test_what_is_rejected():
    with pytest.raises(_core.Error, match="threads is a whole number from 1 to 1024"):
        _core.network_compile(BLOCK, threads=0)
    with pytest.raises(_core.Error, match="expected 'network'"):
        _core.network_compile("canvas 1\n")
    with pytest.raises(_core.Error, match=r"No such file"):
        _core.network_compile(BLOCK, log="/nowhere/log")


COMPILE = """
import sys
from canvas import _core
print(_core.network_compile(sys.stdin.read(), optimize=False)["path"])
"""


def test_two_processes_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("CANVAS_CACHE", str(tmp_path))
    words = [sys.executable, "-c", COMPILE]
    both = [
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    paths = [process.communicate(BLOCK, timeout=120)[0].strip() for process in both]
    assert paths[0] == paths[1] and Path(paths[0]).stat().st_size > 0
    assert not any((tmp_path / "work").iterdir())
