"""The time of layers as a budget: layers are timed before a find is trained."""

import pytest

from canvas import CanvasError, _core
from canvas.nn import layer_time
from canvas.nn.layer_time import convolution, share_of_time
from canvas.options import budgets, latency_limit, read_options

TARGETS = "a 8 16 8 8 3x3 2 1\nb 16 16 8 8 1 1 1\n"
POINTWISE = "canvas 1\nkernel pointwise\na = input\nb = fc a to=C\nout b\n"


@pytest.mark.parametrize(
    ("given", "core", "limit"),
    [
        ({}, ["macs=0.5x"], None),
        ({"budget": "macs=0.4x, latency = 0.5x"}, ["macs=0.4x"], 0.5),
        ({"budget": "latency=2x"}, ["macs=1.0x"], 2.0),
        ({"budget": "latency=0.7x,params=1x", "budget_sweep": "0.5x,0.3x"},
         ["macs=0.5x,params=1x", "macs=0.3x,params=1x"], 0.7),
    ],
)  # fmt: skip
def test_the_core_never_sees_the_latency(given, core, limit):
    options = read_options({"model": "resnet8", "data": "digits", **given})
    assert budgets(options) == core and latency_limit(options) == limit


def test_the_convolution_of_a_target_is_padded_and_packed_once():
    inputs, outputs = _core.signature(convolution(TARGETS.split()[1:8], 2))
    assert [tuple(row[2]) for row in inputs] == [(2, 8, 8, 8), (16, 8, 3, 3)]
    assert tuple(outputs[0][2]) == (2, 16, 4, 4)
    assert "in W f32 [oc:16, ic:8, kh:3, kw:3] const" in convolution(TARGETS.split()[1:8], 2)


def test_seconds_of_layers_add_up_and_equal_programs_are_timed_once(monkeypatch):
    asked = []

    def measure(measurer, candidates):
        asked.append(candidates[0][0])
        seconds = 3.0 if "conv2d" in candidates[0][0] else 1.0
        return [{"failure": "ok", "message": "", "median": seconds}]

    monkeypatch.setattr(layer_time, "_seconds", {})
    monkeypatch.setattr(_core, "measurer", lambda program, **how: program)
    monkeypatch.setattr(_core, "measure", measure)
    pack = _core.solve(POINTWISE, TARGETS + "c 16 16 8 8 1 1 1\n", "macs=none,params=none", "")
    assert share_of_time(pack, TARGETS + "c 16 16 8 8 1 1 1\n") == pytest.approx(1 / 3)
    assert len(asked) == len(set(asked)) == 4
    monkeypatch.setattr(layer_time, "_seconds", {})
    wrong = [{"failure": "wrong", "message": "not the interpreter's", "median": 0.0}]
    monkeypatch.setattr(_core, "measure", lambda measurer, candidates: wrong)
    with pytest.raises(CanvasError, match="a layer cannot be timed: not the interpreter's"):
        share_of_time(pack, TARGETS)


def test_layers_are_timed_for_real(monkeypatch):
    monkeypatch.setattr(layer_time, "_seconds", {})
    line = "a 32 32 16 16 3x3 1 1\n"
    pack = _core.solve(POINTWISE, line, "macs=none,params=none", "")
    assert 0 < share_of_time(pack, line) < 1
