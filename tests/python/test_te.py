"""Tensor expressions: their text, what it computes beside NumPy, and what is refused."""

from __future__ import annotations

import random
import re
from functools import partial, reduce
from math import erf
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import canvas
from canvas import CanvasError, _core, te

GEMM = """canvas 1
program gemm
in A f32 [i:6, k:5]
in B f32 [k:5, j:4]
C[i:6, j:4] = A[i, k] * B[k, j] // sum k:5
out C
"""


def gemm(name: str = "C") -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    A, B = te.placeholder((6, 5), name="A"), te.placeholder((5, 4), name="B")
    k = te.reduce_axis((0, 5), name="k")
    return A, B, te.compute((6, 4), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name=name)


def stage(body: Any, shape: Any = (4,), **more: Any) -> str:
    """The line of a stage Y over X [4] and Z f64 [4]."""
    X, Z = te.placeholder((4,), name="X"), te.placeholder((4,), "float64", name="Z")
    Y = te.compute(shape, partial(body, X, Z), name="Y", **more)
    return next(line for line in te.program(Y).splitlines() if line.startswith("Y"))


def evaluated(text: str, *inputs: Any) -> Any:
    (shape,) = (row[2] for row in _core.signature(text)[1][:1])
    found = _core.evaluate(text, [np.asarray(one, "f8").tobytes() for one in inputs])
    return np.frombuffer(found).reshape(shape)


# ---- the text -----------------------------------------------------------------------------------


def test_a_product_is_this_text() -> None:
    assert te.program(gemm()[2], name="gemm") == GEMM
    assert te.program([gemm()[2].op], name="gemm") == GEMM


@pytest.mark.parametrize(
    "body, expected",
    [
        (lambda X, Z, i: X[i] + 1, "Y[i:4] = X[i] + 1"),
        (lambda X, Z, i: 1 - X[i] * 2.5, "Y[i:4] = 1 - X[i] * 2.5"),
        (lambda X, Z, i: (X[i] - 1) - (X[i] - 2), "Y[i:4] = X[i] - 1 - (X[i] - 2)"),
        (lambda X, Z, i: X[i] / (X[i] * 3), "Y[i:4] = X[i] / (X[i] * 3)"),
        (lambda X, Z, i: -(X[i] + 1), "Y[i:4] = -(X[i] + 1)"),
        (lambda X, Z, i: X[i] * -2, "Y[i:4] = X[i] * -2"),
        (lambda X, Z, i: X[i] * i, "Y[i:4] = X[i] * real(i)"),
        (lambda X, Z, i: te.real(i % 3 - i // 2), "Y[i:4] = real(i%3-i/2)"),
        (lambda X, Z, i: X[i] // 2, "Y[i:4] = floor(X[i] / 2)"),
        (lambda X, Z, i: X[3 - i], "Y[i:4] = X[3-i]"),
        (lambda X, Z, i: X[te.max(i - 1, 0)], "Y[i:4] = X[max(i-1, 0)]"),
        (lambda X, Z, i: te.max(X[i], 0), "Y[i:4] = max(X[i], 0)"),
        (lambda X, Z, i: X[i] ** 2, "Y[i:4] = pow(X[i], 2)"),
        (lambda X, Z, i: 0, "Y[i:4] = 0"),
        (lambda X, Z, i: te.infinity(), "Y[i:4] = inf"),
        (lambda X, Z, i: X[i] + Z[i], "Y f64 [i:4] = X[i] + Z[i]"),
        (lambda X, Z, i: Z[i].astype("float32"), "Y[i:4] = Z[i]"),
        (lambda X, Z, i: X[i].astype("bfloat16"), "Y bf16 [i:4] = X[i]"),
        (lambda X, Z, i: X[i].astype("float64") + 1, "Y f64 [i:4] = X[i] + 1"),
        (lambda X, Z, i: te.const(2, "float64") * X[i], "Y f64 [i:4] = 2 * X[i]"),
        (lambda X, Z, i: te.const(2) * X[i], "Y[i:4] = real(2) * X[i]"),
        (
            lambda X, Z, i: te.if_then_else(te.all(i > 0, i < 3, X[i] > 0.5), X[i - 1], 0),
            "Y[i:4] = if i > 0 && i < 3 && X[i] > 0.5 then X[i-1] else 0",
        ),
        (
            lambda X, Z, i: 1 + te.select(te.any(i == 0, ~(i < 2)), 1.5, X[i]),
            "Y[i:4] = 1 + (if i == 0 || !(i < 2) then 1.5 else X[i])",
        ),
        (
            lambda X, Z, i: te.if_then_else((i < 1) | (i > 2) & True, 1.0, 2),
            "Y[i:4] = if i < 1 || i > 2 && true then 1 else 2",
        ),
        (lambda X, Z, *i: X[i], "Y[i0:4] = X[i0]"),
        (lambda X, Z, out: X(out), "Y[out_:4] = X[out_]"),
    ],
)
def test_what_becomes_of_an_expression(body: Any, expected: str) -> None:
    assert stage(body) == expected


@pytest.mark.parametrize(
    "body, expected",
    [
        (lambda X, k, j: te.sum(X[k], axis=k), "Y[i:2] = X[k] // sum k:4"),
        (lambda X, k, j: te.max(X[k], axis=[k]), "Y[i:2] = X[k] // max k:4"),
        (
            lambda X, k, j: te.min(X[k] * X[j], axis=[k, j]),
            "Y[i:2] = X[k] * X[j+1] // min k:4, j:3",
        ),
        (lambda X, k, j: te.prod(X[j], axis=j), "Y[i:2] = X[j+1] // prod j:3"),
        (lambda X, k, j: te.mean(X[j], axis=j), "Y[i:2] = X[j+1] // mean j:3"),
        (
            lambda X, k, j: te.max(X[k], axis=k, where=k != 1),
            "Y[i:2] = if k != 1 then X[k] else -inf // max k:4",
        ),
    ],
)
def test_reductions(body: Any, expected: str) -> None:
    X = te.placeholder((4,), name="X")
    k, j = te.reduce_axis((0, 4), name="k"), te.reduce_axis((1, 4), name="j")
    Y = te.compute((2,), lambda i: body(X, k, j), name="Y")
    assert te.program(Y).splitlines()[-2] == expected
    assert Y.op.reduce_axis[0].reduces
    half = te.compute((2,), lambda i: te.sum(X[k], axis=k), name="Y", dtype="bfloat16")
    assert "Y bf16 [i:2] = X[k] // sum k:4" in te.program(half)


def test_several_outputs_and_inputs_in_an_order() -> None:
    A, B, C = gemm()
    D = te.compute(C.shape, lambda i, j: C[i, j] + 1, name="D")
    text = te.program([C, D], name="two", inputs=[B, A])
    assert text.splitlines()[2].startswith("in B") and text.splitlines()[-1] == "out D"
    pair = te.compute((6,), lambda i: (A[i, 0], A[i, 1] * 2), name="pair")
    assert te.program(pair).splitlines()[-1] == "out pair_v1"


def test_names_are_legal_and_each_there_once() -> None:
    A = te.placeholder((3,), name="T.relu")
    B = te.placeholder((3,), name="T.relu")
    C = te.compute((3,), lambda i: A[i] + B[i], name="1st")
    k = te.reduce_axis((0, 3), name="i")
    D = te.compute((3,), lambda i: te.sum(C[i] * A[k], axis=k), name="in")
    assert te.program(D) == (
        "canvas 1\nprogram in_\nin T_relu f32 [i:3]\nin T_relu_1 f32 [i:3]\n"
        "_1st[i:3] = T_relu[i] + T_relu_1[i]\nin_[i:3] = _1st[i] * T_relu[i_1] // sum i_1:3\n"
        "out in_\n"
    )


def test_tensors_tell_what_they_are() -> None:
    A, _, C = gemm()
    assert C.shape == (6, 4) and C.shape[0].value == 6 and C.dtype == "float32" and C.ndim == 2
    assert C.op.output(0) is C and C.op.name == "C" == C.name
    assert [axis.name for axis in C.op.axis] == ["i", "j"]
    assert C.op.reduce_axis[0].dom.extent == 5 and C.op.axis[0].var in C.op.axis
    assert C.op.input_tensors[0] is A and not A.op.input_tensors


# ---- indices that are data ----------------------------------------------------------------------


def test_sparse_rows_by_bounds_that_are_data() -> None:
    val, X = te.placeholder((9,), name="val"), te.placeholder((7,), name="X")
    ind = te.placeholder((9,), "int32", name="ind", bounds=(0, 7))
    ptr = te.placeholder((6,), "int32", name="ptr", bounds=(0, 10), rising=True)

    def rows(r: Any) -> Any:
        k = te.reduce_axis((ptr[r], ptr[r + 1]), name="k")
        return te.sum(val[k] * X[ind[k]], axis=k)

    text = te.program(te.compute((5,), rows, name="Y"), name="sparse_rows")
    assert "in ind i32 [k:9] 0..7\n" in text and "in ptr i32 [r:6] 0..10 rising\n" in text
    assert "Y[r:5] = val[k] * X[ind[k]] // sum k:ptr[r]..ptr[r+1]" in text


def test_ranges_follow_from_what_is_indexed() -> None:
    """As the notebook writes it: an axis counts from 0, and the inputs say no bounds."""
    X = te.placeholder((3, 8), name="X")
    val = te.placeholder((5, 4, 2), name="val")
    ind = te.placeholder((5,), dtype="int", name="ind")
    ptr = te.placeholder((3,), dtype="int", name="ptr")

    def blocks(m: Any, row: Any, r: Any, c: Any) -> Any:
        begin, end = ptr[row], ptr[row + 1]
        step = te.reduce_axis((0, end - begin), name="e")
        e = begin + step
        return te.sum(X[m, ind[e] * 2 + c] * val[e, r, c], axis=step)

    CC = te.compute((3, 2, 4, 2), blocks, name="CC")
    text = te.program(CC)
    assert re.search(r"in ind i32 \[\w+:5\] 0\.\.4\n", text), text
    assert re.search(r"in ptr i32 \[\w+:3\] 0\.\.6 rising\n", text), text
    assert "CC[m:3, row:2, r:4, c:2] = X[m, ind[e]*2+c] * val[e, r, c] // sum e:ptr[row]" in text


# ---- what it computes ---------------------------------------------------------------------------

UNARY = {
    "exp": np.exp, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "floor": np.floor, "abs": np.abs,
    "ceil": np.ceil, "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": np.vectorize(erf),
}  # fmt: skip
POSITIVE = {
    "sqrt": np.sqrt, "log": np.log, "rsqrt": lambda x: 1 / np.sqrt(x),
    "power": lambda x: x**1.5,
}  # fmt: skip
SHAPE = (3, 4)


class Maker:
    """A random expression of axes i, j and tensors A, B [3, 4], and what NumPy makes of it."""

    def __init__(self, seed: int, tensors: dict[str, Any], arrays: dict[str, Any]) -> None:
        self.random, self.tensors, self.arrays = random.Random(seed), tensors, arrays
        self.grid = np.indices(SHAPE)

    def index(self, axes: Any, size: int, which: int, depth: int) -> tuple[Any, Any]:
        """An index of an axis of this size."""
        i, at = axes[which], self.grid[which]
        add, step = self.random.randrange(5), self.random.randrange(1, 4)
        other, there = axes[1 - which], self.grid[1 - which]
        return self.random.choice(
            [
                lambda: (i, at),
                lambda: (size - 1 - i, size - 1 - at),
                lambda: ((i * step + add) % size, (at * step + add) % size),
                lambda: ((i + other) // 2 % size, (at + there) // 2 % size),
                lambda: (
                    te.max(te.min(i + add - 2, size - 1), 0),
                    np.clip(at + add - 2, 0, size - 1),
                ),
                lambda: (add % size, np.full(SHAPE, add % size)),
            ]
        )()

    def condition(self, axes: Any, depth: int) -> tuple[Any, Any]:
        pick = self.random.randrange(5)
        if pick == 0:
            limit = self.random.randrange(4)
            return axes[0] + axes[1] <= limit, self.grid.sum(0) <= limit
        if pick == 1:
            (a, x), (b, y) = self.value(axes, depth - 1), self.value(axes, depth - 1)
            return a < b, x < y
        if pick == 2 or depth <= 0:
            return axes[0] != axes[1], self.grid[0] != self.grid[1]
        (a, x), (b, y) = self.condition(axes, depth - 1), self.condition(axes, depth - 1)
        return (te.all(a, b), x & y) if pick == 3 else (te.any(a, ~b), x | ~y)

    def value(self, axes: Any, depth: int) -> tuple[Any, Any]:
        pick = self.random.randrange(10) if depth > 0 else self.random.randrange(3)
        if pick == 0:
            number = self.random.choice([0, 1, -2, 0.5, 3, -1.25])
            return number + te.real(axes[0]), number + self.grid[0]
        if pick <= 2:
            name = self.random.choice(sorted(self.tensors))
            found = [self.index(axes, SHAPE[which], which, depth) for which in (0, 1)]
            return (
                self.tensors[name][found[0][0], found[1][0]],
                self.arrays[name][found[0][1], found[1][1]],
            )
        a, x = self.value(axes, depth - 1)
        if pick == 3:
            name = self.random.choice(sorted(UNARY))
            a, x = te.min(te.max(a, -3), 3), np.clip(x, -3, 3)
            return getattr(te, name)(a), UNARY[name](x)
        if pick == 4:
            name = self.random.choice(sorted(POSITIVE))
            a, x = te.abs(a) + 0.5, np.abs(x) + 0.5
            return (te.power(a, 1.5) if name == "power" else getattr(te, name)(a)), POSITIVE[name](
                x
            )
        b, y = self.value(axes, depth - 1)
        if pick == 5:
            c, z = self.condition(axes, depth - 1)
            return te.if_then_else(c, a, b), np.where(z, x, y)
        return self.random.choice(
            [
                lambda: (a + b, x + y),
                lambda: (a - b, x - y),
                lambda: (a * b, x * y),
                lambda: (a / (te.abs(b) + 1), x / (np.abs(y) + 1)),
                lambda: (te.max(a, b), np.maximum(x, y)),
                lambda: (te.min(a, b), np.minimum(x, y)),
                lambda: (-a, -x),
                lambda: (a * axes[1], x * self.grid[1]),
                lambda: (2 - a, 2 - x),
            ]
        )()


def made(seed: int, dtype: str) -> tuple[te.Tensor, list[te.Tensor], list[Any], Any]:
    """A stage of a random expression, its inputs, their values, and what it comes to."""
    numbers = np.random.default_rng(seed)
    arrays = {name: numbers.standard_normal(SHAPE) for name in "AB"}
    tensors = {name: te.placeholder(SHAPE, dtype, name=name) for name in "AB"}
    maker = Maker(seed, tensors, arrays)
    truth: list[Any] = []

    def body(i: Any, j: Any) -> Any:
        expr, value = maker.value((i, j), 4)
        truth.append(np.broadcast_to(value, SHAPE))
        return expr

    Y = te.compute(SHAPE, body, name="Y", dtype=dtype)
    used = [tensors[name] for name in "AB" if tensors[name] in Y.op.input_tensors]
    return Y, used, [arrays[tensor.name] for tensor in used], truth[0]


@given(st.integers(0, 10**9))
def test_random_expressions_are_what_numpy_says(seed: int) -> None:
    Y, inputs, arrays, truth = made(seed, "float64")
    text = te.program(Y, inputs=inputs)
    assert text == _core.print_program(text)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(evaluated(text, *arrays), truth, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_built(seed: int) -> None:
    Y, inputs, arrays, truth = made(seed, "float64")
    found = te.build(te.create_schedule(Y), [*inputs, Y])(*arrays)
    np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-9)


# ---- built --------------------------------------------------------------------------------------


def test_a_function_writes_its_last_arguments_or_answers() -> None:
    A, B, C = gemm()
    function = te.build(te.create_schedule(C.op), [A, B, C], "llvm")
    a, b = (np.random.default_rng(1).standard_normal(s).astype("f4") for s in ((6, 5), (5, 4)))
    c = np.zeros((6, 4), "f4")
    assert function(a, b, c) is None
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    np.testing.assert_array_equal(function(a, b), c)
    out = torch.zeros(6, 4)
    function(torch.from_numpy(a), torch.from_numpy(b), out)
    np.testing.assert_array_equal(out.numpy(), c)
    assert "int C(" in function.get_source() and function.entry_name == "default_function"


def test_arguments_stand_where_they_were_said_to() -> None:
    A, B, C = gemm()
    D = te.compute((6, 4), lambda i, j: C[i, j] * 2, name="D")
    unused = te.placeholder((2,), name="unused")
    function = te.build(te.create_schedule([C.op, D.op]), [D, B, unused, A, C])
    a, b = np.ones((6, 5), "f4"), np.ones((5, 4), "f4")
    c, d = np.empty((6, 4), "f4"), np.empty((6, 4), "f4")
    function(d, b, np.zeros(2, "f4"), a, c)
    assert (c == 5).all() and (d == 10).all()
    first, second = function(b, np.zeros(2, "f4"), a)
    assert (first == 5).all() and (second == 10).all()


def test_the_schedule_is_text() -> None:
    A, B, C = gemm()
    s = te.create_schedule(C.op)
    assert s.program == te.program(C) and s.schedule == "" and str(s) == s.program
    s.schedule = "i, k, j:vec => @C = i, j // k\n"
    assert te.lower(s, [A, B, C], simple_mode=True).startswith("canvas 1\ni, k, j:vec =>")
    assert "for (long i = 0; i < 6; i++)" in te.lower(s, [A, B, C])
    assert (s.name(C), s.axis(C, C.op.axis[1]), s.inputs, s.outputs) == ("C", "j", [A, B], [C])
    ones = te.build(s, [A, B, C])(np.ones((6, 5), "f4"), np.ones((5, 4), "f4"))
    assert (ones == 5).all()


def test_a_program_of_text_is_built() -> None:
    text = canvas.operator_program("softmax", shape=(3, 4))
    (Y,), (X,) = te.from_program(text)
    assert X.shape == (3, 4) and te.program(Y) == text
    assert te.program([Y.op], name="other").startswith("canvas 1\nprogram other\n")
    found = te.build(te.create_schedule(Y), [X, Y])(torch.ones(3, 4))
    torch.testing.assert_close(found, torch.full((3, 4), 0.25))
    further = te.compute((3, 4), lambda i, j: Y[i, j] + 1)
    for wrong in (further, [Y, te.from_program(text)[0][0]]):
        with pytest.raises(canvas.CanvasError, match="is a whole: nothing is computed of it"):
            te.program(wrong)
    (C, D), _ = te.from_program(te.program([gemm()[2], te.compute((2,), lambda i: 1, name="D")]))
    with pytest.raises(canvas.CanvasError, match="the outputs of the program are C, D"):
        te.program([D, C])


# ---- what is refused ----------------------------------------------------------------------------

X = te.placeholder((4,), name="X")
K = te.reduce_axis((0, 4), name="k")
I32 = te.placeholder((4,), "int32", name="I")


def chain(count: int) -> Any:
    whole = X[0] * 1
    for _ in range(count):
        whole = whole + 1 if count < 10**4 else whole * whole
    return whole


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: X[1, 2], "'X' has 1 axis, and 2 indices are given"),
        (lambda: X[4], "index 4 is out of range: axis 0 of 'X' has size 4"),
        (lambda: X[0.5], "an index of 'X' is made of axes, whole numbers and int32 tensors"),
        (lambda: X[X[0]], "an index of 'X' is made of axes, whole numbers and int32 tensors"),
        (lambda: X + 1, ""),
        (lambda: K * X, "an operand is an expression or a number, not Tensor(X"),
        (lambda: K + "1", "an operand is an expression or a number, not '1'"),
        (lambda: K / 2, "'/' of two indices: write '//'"),
        (lambda: K // K, "'//' of indices is by a whole number above 0"),
        (lambda: K % 0, "'%' of indices is by a whole number above 0"),
        (lambda: X[0] % 2, "'%' is of indices: programs have no remainder of values"),
        (lambda: 1 if X[0] > 0 else 2, "neither true nor false while the program is written"),
        (lambda: 0 < K < 3, "neither true nor false while the program is written"),
        (lambda: list(X), "'X' is symbolic: load its elements by indices"),
        (lambda: list(X[0]), "an expression is one number, there is nothing to go through"),
        (lambda: te.all(), "te.all takes at least one condition"),
        (lambda: te.all(K), "a condition is a comparison, or te.all and te.any of some"),
        (lambda: te.exp(K < 1), "a condition is no value: use te.if_then_else"),
        (lambda: te.real(K < 1), "a condition is no value: use te.if_then_else"),
        (lambda: te.const("1"), "a constant is a number, not '1'"),
        (lambda: te.const(0.5, "int32"), "a constant of int32 is a whole number, not 0.5"),
        (lambda: X[0] + float("nan"), "nan is no number of programs"),
        (lambda: X[0] * 10**400, "a whole number of more than 308 digits is no number of"),
        (lambda: te.compute((4,), lambda i: 10**400), "of more than 308 digits is no number"),
        (lambda: K + 2**63, "is out of the range of indices"),
        (lambda: X[0].astype("int32"), "a value becomes no index: programs have no cast to int32"),
        (lambda: X[0].astype("bfloat16") + 1, "a value is rounded where a stage stores it"),
        (lambda: X[0].astype("int8"), "a cast has dtype 'int8': there are bfloat16, float32"),
        (lambda: chain(300), "the expression nests deeper than 180 levels"),
        (lambda: chain(10**4), "or has more than 262144 operations"),
        (lambda: te.sum(X[K], axis=K) + 1, "a reduction is all that a compute says"),
        (lambda: te.mean(X[K], axis=K, where=K < 2), "'mean' takes no 'where'"),
        (lambda: te.sum(X[0], axis=0), "'sum' runs over axes that te.reduce_axis made, not 0"),
        (lambda: te.max(X[K], axis=[K, K]), "'max' runs over at least one axis, each once"),
        (lambda: te.sum(X[K], axis=[]), "'sum' runs over at least one axis, each once"),
        (lambda: te.sum(X[K], axis=K, init=1), "'sum' starts from nothing"),
        (lambda: te.placeholder((0,)), "placeholder 'placeholder' has shape [0]: sizes are from"),
        (lambda: te.placeholder("4"), "a size of placeholder 'placeholder' is a whole number"),
        (lambda: te.placeholder((4,), "int8"), "placeholder 'placeholder' has dtype 'int8'"),
        (lambda: te.placeholder((4,), name=3), "a name is a text, not 3"),
        (lambda: te.placeholder((4,), bounds=(0, 4)), "bounds of 'placeholder' are two whole"),
        (lambda: te.reduce_axis(4), "an axis runs over (begin, end), not 4"),
        (lambda: te.reduce_axis((3, 3), name="k"), "axis 'k' has no points from 3 to 3"),
        (lambda: te.reduce_axis((0, 3), thread_tag="x"), "there are no thread tags"),
        (lambda: te.reduce_axis((0, 0.5)), "a bound of an axis is a whole number, not 0.5"),
        (lambda: te.compute((4,), 5), "compute 'compute' takes a function of its axes, not 5"),
        (lambda: te.compute((4,), lambda i, j: 0), "has 1 axis, and its function takes 2"),
        (lambda: te.compute((4, 4), lambda i: 0), "has 2 axes, and its function takes 1"),
        (lambda: te.compute((4,), lambda *i: 0, varargs_names="ab"), "has 1 axes, not 2 names"),
        (lambda: te.compute((4,), lambda i: None), "compute 'compute' makes None, not an expr"),
        (lambda: te.compute((4,), lambda i: ()), "compute 'compute' says nothing"),
        (lambda: te.compute((4,), lambda i: i), "compute 'compute' makes an index: te.real of"),
        (lambda: te.compute((4,), lambda i: i < 2), "a condition is no value: use te.if_then"),
        (lambda: te.compute((4,), lambda i: 1.0, dtype="int32"), "is of int32: stages hold"),
        (lambda: te.compute((4,), lambda i: X[K]), "axis 'k' stands in 'compute' and is not"),
        (lambda: te.compute((4,), lambda i: 1 / 0), "the function of compute 'compute' raised Z"),
        (lambda: te.program(X), "'X' is an input: an output is what a compute makes"),
        (lambda: te.program([]), "expected an output, a tensor of te, and there is none"),
        (lambda: te.program(gemm()[2], name=3), "the name of a program is a text, not 3"),
        (lambda: te.from_program(3), "a program is a text, not 3"),
        (lambda: te.program("X"), "an output is a tensor of te, not 'X'"),
        (lambda: te.program(gemm()[2], inputs=[X]), "'X' is no input of the program"),
        (lambda: te.program(te.compute((5,), lambda i: X[i])), "stage 'compute' loads 'X' out"),
        (
            lambda: te.program(te.compute((4,), lambda i: I32[i] * X[i])),
            "the range of 'I' is not to be seen from what it indexes: say bounds=(low, high)",
        ),
        (lambda: te.compute((4,), lambda i: 0).op.output(1), "'compute' has one output, number 0"),
    ],
)  # fmt: skip
def test_what_is_refused_tells_the_line(wrong: Any, message: str) -> None:
    with pytest.raises((canvas.CanvasError, TypeError)) as told:
        wrong()
    if message:
        assert re.match(r".*test_te\.py:\d+: ", str(told.value)), told.value
        assert message in str(told.value) and "\n" not in str(told.value)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda A, B, C: te.build("s", [A, B, C]), "expected a schedule, as te.create_schedule"),
        (lambda A, B, C: te.build(C, [A, C]), "'B' is an input of the program and no argument"),
        (lambda A, B, C: te.build(C, [A, B]), "'C' is an output of the program and no argument"),
        (lambda A, B, C: te.build(C, [A, B, C, A]), "'A' is an argument twice"),
        (lambda A, B, C: te.build(C, [A, B, C, gemm("D")[2]]), "'D' is an argument, and neither"),
        (lambda A, B, C: te.build(C, [A, B, C], "cuda"), "target 'cuda' comes later: code is for"),
        (lambda A, B, C: te.build(C, [A, B, C], "rocm"), "there is no target 'rocm'"),
        (lambda A, B, C: te.build(C, [A, B, C], 5), "there is no target 5"),
        (lambda A, B, C: te.build(C, [A, B, C], name=5), "the name of a function is a text"),
    ],
)
def test_what_is_not_built(wrong: Any, message: str) -> None:
    with pytest.raises(canvas.CanvasError) as told:
        wrong(*gemm())
    assert message in str(told.value) and "test_te.py:" in str(told.value)


def test_a_wrong_schedule_is_told() -> None:
    s = te.create_schedule(gemm()[2])
    s.schedule = "i, j => @C = i, j\n"
    for use in (te.lower, te.build):
        with pytest.raises(canvas.CanvasError, match="axis 'k' of 'C' is covered by no loop"):
            use(s)


def test_a_place_is_told_once() -> None:
    X = te.placeholder((4,), name="X")
    Y = te.compute((4,), lambda i: X[i] + 1, name="Y")
    Z = te.compute((4,), lambda i: Y[i] + 1, name="Z")
    s = te.create_schedule(Z)
    s[Z].compute_at(s[Y], s[Y].op.axis[0])
    for use in (te.lower, te.build):
        with pytest.raises(canvas.CanvasError, match="compute_at: 'Y' is computed before") as told:
            use(s)
        assert str(told.value).count("test_te.py:") == 1


def test_wrong_arrays_are_told() -> None:
    A, B, C = gemm()
    function = te.build(te.create_schedule(C), [A, B, C])
    a, b, c = np.ones((6, 5), "f4"), np.ones((5, 4), "f4"), np.ones((6, 4), "f4")
    fixed = c.copy()
    fixed.flags.writeable = False
    for arrays, message in [
        ((a,), "expected 3 arguments (A, B, C), or 2 without the outputs, not 1"),
        ((a, b.T, c), "input 'B' has shape [4, 5], not [5, 4]"),
        ((a, b, c[:5]), "output 'C' has shape [5, 4], not [6, 4]"),
        ((a, b, c.astype("f8")), "output 'C' is of float64, not float32"),
        ((a, b, np.ones((4, 6), "f4").T), "output 'C' is not contiguous in C order"),
        ((a, b, fixed), "output 'C' is read-only"),
        ((a, b, [1]), "output 'C' is a list, not a NumPy array or torch tensor"),
        ((a, a.reshape(-1)[:20].reshape(5, 4), a.reshape(-1)[6:].reshape(6, 4)), "shares memory"),
    ]:
        with pytest.raises(canvas.CanvasError) as told:
            function(*arrays)
        assert message in str(told.value)


def test_what_tvm_has_and_programs_do_not() -> None:
    with pytest.raises(AttributeError, match="sizes are numbers: a program has no variables"):
        te.var("n")
    with pytest.raises(AttributeError, match=r"canvas\.te has no 'nothing'$"):
        te.nothing  # noqa: B018


def test_a_convolution_by_im2col_as_the_notebook_writes_it() -> None:
    N, H, W, CI, CO = 1, 4, 4, 3, 4
    data = te.placeholder((N, H, W, CI))
    weight = te.placeholder((CO, 9 * CI))
    split = lambda x, y: reduce(lambda a, b: [*a[:-1], a[-1] % b, a[-1] // b], y, [x])  # noqa: E731

    @partial(te.compute, (N * H * W, 9 * CI), name="im2col")
    def im2col(row: Any, col: Any) -> Any:
        jw, jh, jn = split(row, [W, H])
        jc, kw, kh = split(col, [CI, 3])
        ih, iw = jh + kh - 1, jw + kw - 1
        inside = te.all(ih >= 0, ih < H, iw >= 0, iw < W)
        return te.if_then_else(inside, data[jn, ih, iw, jc], 0)

    k = te.reduce_axis((0, 9 * CI), name="k")
    out = te.compute(
        (N * H * W, CO), lambda y, x: te.sum(im2col[y, k] * weight[x, k], axis=k), name="conv"
    )
    x, w = torch.randn(N, H, W, CI), torch.randn(CO, 9 * CI)
    found = te.build(te.create_schedule(out), [data, weight, out])(x, w)
    kernel = w.view(CO, 3, 3, CI).permute(0, 3, 1, 2)
    truth = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), kernel, padding=1)
    torch.testing.assert_close(found, truth.permute(0, 2, 3, 1).reshape(-1, CO))


def test_texts_of_a_schedule_and_masked_arrays_are_checked() -> None:
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: a[i] + 1, name="b")
    s = te.create_schedule(b)
    masked = np.ma.array(np.ones(4, np.float32), mask=[0, 1, 0, 0])
    with pytest.raises(CanvasError, match=r"input 'a' is masked, .* through \.filled\(\)"):
        te.build(s, [a, b])(masked)
    with pytest.raises(CanvasError, match=r"elements that do not count, .* \.filled\(\)"):
        te.nd.array(masked)
    s.program = None  # type: ignore[assignment]
    for made in (s.bound, s.code):
        with pytest.raises(CanvasError, match="a schedule's program is a text, not None"):
            made()
