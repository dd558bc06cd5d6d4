"""`./dev bench defaults --nests`: where the time of a default schedule goes."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import compiled_program as code

from canvas import _core

PADDED = "conv2d_nhwc", "height=8 width=8 in_channels=32 out_channels=32 kernel=3 padding=1"
PLAIN = "gemm", "m=16 n=64 k=8"


@pytest.mark.parametrize(
    ("operator", "body", "wanted"),
    [
        (PADDED, True, {"pad": "moves", "Y": "multiply-adds"}),
        (PLAIN, False, {"Y": "multiply-adds"}),
    ],
)
def test_nests(operator: tuple[str, str], body: bool, wanted: dict[str, str]) -> None:
    """Those of a program with a workspace stand in a function of their own."""
    machine = code.machine_text("sse")
    program = _core.operator_program(*operator)
    assert ("_body(" in code.c_text(program, machine)) == body
    nests = code.nests(program, code.random_inputs(program), machine, calls=2)
    found = {name: code.kind_of(nest) for nest in nests for name in nest.stores}
    for name, kind in wanted.items():
        assert kind in found[name], found
    assert all(nest.seconds > 0 for nest in nests)
