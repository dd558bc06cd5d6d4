"""Programs in TVM's tensor expressions: what their Python defines is the same program.

canvas.te has TVM's interface, so the Python runs here without TVM. With apache-tvm installed it is
also compiled by TVM and run (nightly).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from test_operators import LINES, split

import canvas
from canvas import _core, te

ROOT = Path(__file__).resolve().parents[2]
IMPORT = "from tvm import te\n"
TARGETS = "a 16 16 8 8 3 1 1\nb 16 32 9 7 3 2 1\nc 12 8 5 6 3 1 1 1 1\n"
REDUCERS = {"largest": te.max, "smallest": te.min, "prod": te.prod}


def drawn(count: int) -> list[str]:
    """Programs of drawn kernels, at targets that are plain, strided with copies, and projected."""
    programs: list[str] = []
    for index in range(10 * count):
        kernel, groups = _core.draw(TARGETS, 11, index, "primitives=3..9") or ("", 0)
        try:
            pack = _core.solve(kernel, TARGETS, "macs=2x,params=none", f"G={groups}")
        except canvas.CanvasError:
            continue
        programs.append(_core.lower(pack, len(programs) % 3))
        if len(programs) == count:
            break
    return programs


def examples() -> list[str]:
    """Programs of all example kernels."""
    packs = []
    for path in sorted((ROOT / "examples/kernels").glob("*.kernel")):
        text = path.read_text()
        kernel = text[text.index("canvas 1") :]
        target, budget = "a 16 16 8 8 3 1 1\n", "macs=8x,params=none"
        packs.append(_core.solve(kernel, target, budget, "G=4 exempt=1"))
    return [_core.lower(pack, 0) for pack in packs]


def inputs_of(program: str) -> list[np.ndarray]:
    """Random inputs in float64 that every type holds exactly; indices within their range."""
    random = np.random.default_rng(0)
    data = []
    for _, dtype, shape, low, high, _ in _core.signature(program)[0]:
        if dtype == "i32":
            data.append(random.integers(low, high + 1, size=shape).astype(np.float64))
        else:
            data.append(np.round(random.standard_normal(shape) * 64) / 64)
    return data


def evaluate(program: str, inputs: list[np.ndarray], output: int = 0) -> np.ndarray:
    stages, *outputs = program.rstrip("\n").split("\nout ")
    one = f"{stages}\nout {outputs[output]}\n"
    answer = _core.evaluate(one, [np.ascontiguousarray(x).tobytes() for x in inputs])
    return np.frombuffer(answer)


def read_back(program: str) -> str:
    """The program that the Python makes in canvas.te."""
    ranges = {name: (low, high + 1) for name, _, _, low, high, _ in _core.signature(program)[0]}

    def placeholder(shape: Any, dtype: str, name: str) -> Any:
        """With the range of indices, which TVM does not know."""
        bounds = {"bounds": ranges[name]} if dtype == "int32" else {}
        return te.placeholder(shape, dtype, name=name, **bounds)

    def const(value: float, dtype: str) -> Any:
        return value if dtype == "bool" else te.const(value, dtype)

    def if_then_else(condition: Any, one: Any, other: Any) -> Any:
        """Of constant conditions: what is not `condition`, as canvas.te has no such constants."""
        negated = isinstance(one, int) and isinstance(other, int) and (one, other) == (0, 1)
        return ~condition if negated else te.if_then_else(condition, one, other)

    own = {"placeholder": placeholder, "const": const, "if_then_else": if_then_else}
    interface = SimpleNamespace(
        **{name: getattr(te, name) for name in te.__all__} | own,
        comm_reducer=lambda function, start, name: REDUCERS[name],
    )
    space: dict[str, Any] = {"te": interface}
    code = _core.tvm_code(program, "made")
    assert IMPORT in code
    exec(code.replace(IMPORT, ""), space)
    inputs, outputs = space["made"]()
    return te.program(outputs, inputs=inputs)


def check(program: str) -> None:
    again, inputs = read_back(program), inputs_of(program)
    before, after = _core.signature(program), _core.signature(again)
    assert [row[1:3] for row in before[0]] == [row[1:3] for row in after[0]]
    assert [row[1:3] for row in before[1]] == [row[1:3] for row in after[1]]
    for output in range(len(before[1])):
        wanted = evaluate(program, inputs, output)
        np.testing.assert_allclose(evaluate(again, inputs, output), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("program", [*examples(), *drawn(60)])
def test_kernels(program: str) -> None:
    check(program)


@pytest.mark.parametrize("line", LINES)
def test_operators(line: str) -> None:
    name, values = split(line)
    program = canvas.operator_program(name, **values)
    if ".." in program.partition("//")[2] and "bsr" in name:
        with pytest.raises(
            canvas.CanvasError, match="bounds that depend on other axes or on data"
        ):
            _core.tvm_code(program)
    elif unused(program):
        pytest.skip("canvas.te takes an input that nothing loads for none")
    else:
        check(program)


def unused(program: str) -> bool:
    """Whether an input is not loaded."""
    return any(f"{row[0]}[" not in program for row in _core.signature(program)[0])


PROGRAMS = {
    "types": "in A f32 [i:3]\nin B bf16 [i:3]\nin C f64 [i:3]\nP bf16 [i:3] = A[i] * B[i]\n"
    "Q[i:3] = P[i] + C[i]\nY f64 [i:3] = Q[i] * 2\n",
    "reductions in other types": "in A f32 [i:3, k:5]\nP bf16 [i:3] = A[i, k] // sum k:5\n"
    "Y f64 [i:3] = A[i, k] * P[i] // mean k:5\n",
    "functions": "in A f32 [i:4]\nP[i:4] = exp(A[i]) + log(abs(A[i]) + 1) + expm1(A[i]) * "
    "log1p(abs(A[i]))\nQ[i:4] = sin(A[i]) + cos(A[i]) + tanh(A[i]) + erf(A[i])\n"
    "Y[i:4] = sqrt(abs(P[i])) + floor(Q[i]) + pow(abs(A[i]), 2.5) - -A[i]\n",
    "near zero": "in A f32 [i:4]\nY[i:4] = expm1(A[i] * 1e-9) + log1p(A[i] * 1e-9)\n",
    "conditions": "in A f32 [i:9]\nY[i:9] = if !(i < 2 || i == 5) && A[i] > 0 then A[i] "
    "else if i != 7 then -1 else real(i*2) - real(3)\n",
    "indices": "in A f32 [i:4, j:3]\n"
    "Y[i:12] = A[i/3%4, min(i%3, 1-k)] * real(-(i-5)/2) // sum k:2\n",
    "a scalar": "in A f32 []\nS[] = A[] * 3\nY[i:2] = S[] + real(i)\n",
    "extremes": "in A f32 [i:3, k:4]\n"
    "P[i:3] = if A[i, k] > 0.5 then A[i, k] else -inf // max k:4\n"
    "Q[i:3] = if A[i, k] > 0.5 then A[i, k] else inf // min k:4\nR[i:3] = A[i, k] // prod k:4\n"
    "Y[i:3] = (if P[i] > -inf then P[i] else 0) + (if Q[i] < inf then Q[i] else 1) * R[i]\n",
    "words of Python": "in lambda f32 [def:3, te:2]\nclass[te:2] = lambda[def, te] // sum def:3\n"
    "Y[float:2] = class[float]\n",
    "names that come to the same": "in class f32 [i:3]\nin class_ f32 [i_axis:3]\n"
    "P_sums[i:3] = class_[i]\nP[i:3] = class[i] * real(class) // mean class:2\n"
    "i[P:3, P_axis:2] = P_sums[P] * real(P_axis)\n"
    "Y[i:3, i_axis:2] = i[i, i_axis] + P[i] * class_[i]\n",
    "axes named as tensors": "in A f32 [A:3]\nB[A:3] = A[A] * 2\nY[B:3] = B[B]\n",
    "numbers": "Y[i:3] = if i < 1 then 0.1 else if i < 2 then 3 else 1e-30 + 2 * (1 - 0.5)\n",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    body = PROGRAMS[name]
    try:
        check(f"canvas 1\nprogram p\n{body}out Y\n")
    except canvas.CanvasError as error:  # what the language does not have is no test
        raise AssertionError(str(error)) from error


def test_the_text_of_a_pack_has_a_function_for_each_target() -> None:
    pack = canvas.KernelPack(
        _core.solve(
            "canvas 1\nkernel k\na = input\nb = fc a to=C\nout b\n", TARGETS, "macs=2x", ""
        )
    )
    space: dict[str, Any] = {}
    exec(pack.tvm_code.replace(IMPORT, "from canvas import te\n"), space)
    for target, channels in (("a", 16), ("b", 16), ("c", 12)):
        inputs, outputs = space[f"k_{target}"]()
        assert inputs[0].shape[1] == channels and len(outputs) == 1
    assert [x.name for x in space["k_c"]()[0]] == ["X", "projection", "w0"]


# ---- TVM itself ---------------------------------------------------------------------------------


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_tvm_compiles_them() -> None:
    """apache-tvm compiles and runs what it is given; float32 beside the interpreter."""
    tvm, floats = pytest.importorskip("tvm"), pytest.importorskip("ml_dtypes")
    types = {"f32": np.float32, "f64": np.float64, "bf16": floats.bfloat16, "i32": np.int32}
    programs = examples() + drawn(60)
    programs += [f"canvas 1\nprogram p\n{body}out Y\n" for body in PROGRAMS.values()]
    programs.append("program p\nin A f32 [i:3]\nY[i:3] = A[min(i, k)] // sum k:2\nout Y\n")
    for line in LINES:
        name, values = split(line)
        program = canvas.operator_program(name, **values)
        if "bsr" not in name:
            programs.append(program)
    for program in programs:
        space: dict[str, Any] = {}
        exec(_core.tvm_code(program, "made"), space)
        inputs, outputs = space["made"]()
        made = tvm.compile(tvm.te.create_prim_func([*inputs, *outputs]), target={"kind": "llvm"})
        given, close = inputs_of(program), 1e-2 if "bf16" in program else 2e-4
        before = _core.signature(program)
        arrays = [
            tvm.runtime.tensor(x.astype(types[row[1]]))
            for x, row in zip(given, before[0], strict=True)
        ]
        results = [tvm.runtime.tensor(np.zeros(row[2], types[row[1]])) for row in before[1]]
        made(*arrays, *results)
        for output, result in enumerate(results):
            wanted = evaluate(program, given, output)
            largest = max(1.0, float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)))
            np.testing.assert_allclose(
                result.numpy().astype(np.float64).reshape(-1), wanted, rtol=0, atol=close * largest
            )
