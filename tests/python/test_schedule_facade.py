"""TVM's calls on a schedule: the text that each comes to, what it computes beside NumPy, and what
is refused.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from canvas import CanvasError, _core, te
from canvas.te import tir

M, K, N = 24, 20, 32


def product() -> tuple[Any, ...]:
    """A schedule of Y = max(A B, 0), P = A B, and the tensors."""
    A, B = te.placeholder((M, K), name="A"), te.placeholder((K, N), name="B")
    k = te.reduce_axis((0, K), name="k")
    P = te.compute((M, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="P")
    Y = te.compute((M, N), lambda i, j: te.max(P[i, j], 0.0), name="Y")
    return te.create_schedule(Y.op), A, B, P, Y, k


def same_as_numpy(s: Any, A: Any, B: Any, Y: Any) -> None:
    a, b = (np.random.default_rng(1).normal(size=t.shape).astype("float32") for t in (A, B))
    y = te.build(s, [A, B, Y])(a, b)
    np.testing.assert_allclose(y, np.maximum(a @ b, 0), rtol=1e-4, atol=1e-4)


def split(s: Any, P: Any, Y: Any, k: Any) -> None:
    i, _ = s[P].op.axis
    s[P].split(i, factor=4)
    s[P].split(k, nparts=5)


def split_with_remainder(s: Any, P: Any, Y: Any, k: Any) -> None:
    i, j = s[Y].op.axis
    _io, ii = s[Y].split(i, factor=7)
    s[Y].split(ii, factor=3)
    _jo, ji = s[Y].split(j, factor=12)
    s[Y].vectorize(ji)


def tile_of_registers(s: Any, P: Any, Y: Any, k: Any) -> None:
    i, j = s[Y].op.axis
    _io, jo, ii, ji = s[Y].tile(i, j, 4, 16)
    s[P].compute_at(s[Y], jo)
    pi, pj = s[P].op.axis
    (pk,) = s[P].op.reduce_axis
    s[P].reorder(pk, pi, pj)
    for stage, rows, lanes in ((s[P], pi, pj), (s[Y], ii, ji)):
        stage.unroll(rows)
        stage.vectorize(lanes)


def fused_and_parallel(s: Any, P: Any, Y: Any, k: Any) -> None:
    i, j = s[Y].op.axis
    io, _ii = s[Y].split(i, factor=8)
    jo, _ji = s[Y].split(j, factor=16)
    s[Y].reorder(io, jo, _ii, _ji)
    both = s[Y].fuse(io, jo)
    s[Y].parallel(both)
    s[P].compute_at(s[Y], both)


def fused_lanes(s: Any, P: Any, Y: Any, k: Any) -> None:
    i, j = s[Y].op.axis
    _jo, ji = s[Y].split(j, factor=8)
    s[Y].reorder(_jo, i, ji)
    io, ii = s[Y].split(i, factor=2)
    s[Y].vectorize(s[Y].fuse(ii, ji))
    s[Y].unroll(io)


def cached(s: Any, P: Any, Y: Any, k: Any) -> None:
    C = s.cache_write(P, "local")
    i, j = s[P].op.axis
    _io, ii = s[P].split(i, factor=6)
    s[P].reorder(_io, j, ii)
    s[C].compute_at(s[P], j)
    (ck,) = s[C].op.reduce_axis
    _ko, ki = s[C].split(ck, factor=5)
    s[C].unroll(ki)


def copies_of_an_input(s: Any, P: Any, Y: Any, k: Any) -> None:
    B = P.op.input_tensors[1]
    copy = s.cache_read(B, "global", [P])
    _, j = s[P].op.axis
    jo, _ = s[P].split(j, factor=8)
    s[P].reorder(jo, s[P].op.axis[0], s[P].op.reduce_axis[0])
    s[copy].compute_at(s[P], jo)
    s[copy].vectorize(s[copy].op.axis[1])


def partial_sums(s: Any, P: Any, Y: Any, k: Any) -> None:
    _ko, ki = s[P].split(k, factor=4)
    rf = s.rfactor(P, ki)
    assert [axis.name for axis in s[rf].op.axis] == ["k_i", "i", "j"]
    s[rf].compute_at(s[P], s[P].op.axis[1])
    s[rf].vectorize(s[rf].op.axis[0])


def ahead_and_unrolled_by_size(s: Any, P: Any, Y: Any, k: Any) -> None:
    i, j = s[P].op.axis
    s[P].reorder(i, k, j)
    s[P].prefetch(P.op.input_tensors[1], k, 2)
    _jo, _ji = s[P].split(j, factor=4)
    s[P].pragma(i, "auto_unroll_max_step", 16)
    s[P].pragma(i, "unroll_explicit", True)


CALLS: list[tuple[Callable[..., None], str]] = [
    (split, """io:6, ii:4, j:32, ko:5, ki:4 =>
    @P = {io, ii}/i, j // {ko, ki}/k
i:24, j:32 =>
    @Y = i, j
"""),
    (split_with_remainder, """i:24, j:32, k:20 =>
    @P = i, j // k
io:3, iio:3, iii:3:mask, jo:3, ji:12:mask:vec =>
    @Y = {io, iio, iii}/i, {jo, ji}/j
"""),
    (tile_of_registers, """io:6, jo:2 =>
    k:20, ii:4:unroll, ji:16:vec =>
        @P = {io, ii}/i, {jo, ji}/j // k
    ii:4:unroll, ji:16:vec =>
        @Y = {io, ii}/i, {jo, ji}/j
"""),
    (fused_and_parallel, """{io:3, jo:2}:para =>
    ii:8, ji:16, k:20 =>
        @P = {io, ii}/i, {jo, ji}/j // k
    ii:8, ji:16 =>
        @Y = {io, ii}/i, {jo, ji}/j
"""),
    (fused_lanes, """i:24, j:32, k:20 =>
    @P = i, j // k
jo:4, io:12:unroll, {ii:2, ji:8}:fold:vec =>
    @Y = {io, ii}/i, {jo, ji}/j
"""),
    (cached, """io:4, j:32 =>
    ii:6, ko:4, ki:5:unroll =>
        @P_local = {io, ii}/i, j // {ko, ki}/k
    ii:6 =>
        @P = {io, ii}/i, j
i:24, j:32 =>
    @Y = i, j
"""),
    (copies_of_an_input, """jo:4 =>
    k:20, ji:8:vec =>
        @B_global = k, {jo, ji}/j
    i:24, ji:8, k:20 =>
        @P = i, {jo, ji}/j // k
i:24, j:32 =>
    @Y = i, j
"""),
    (partial_sums, """i:24, j:32 =>
    k_i:4:vec, k_o:5 =>
        @P_rf = i, j, k_i // k_o
    k_i:4 =>
        @P = i, j // k_i
i:24, j:32 =>
    @Y = i, j
"""),
    (ahead_and_unrolled_by_size, """i:24, k:20:pf(2), jo:8, ji:4:unroll =>
    @P = i, {jo, ji}/j // k
i:24, j:32 =>
    @Y = i, j
"""),
]  # fmt: skip


@pytest.mark.parametrize("calls, text", CALLS, ids=[row[0].__name__ for row in CALLS])
def test_calls_come_to_this_text_and_compute_the_same(
    calls: Callable[..., None], text: str
) -> None:
    s, A, B, P, Y, k = product()
    assert s.schedule == ""
    calls(s, P, Y, k)
    assert s.schedule == text
    same_as_numpy(s, A, B, Y)


def random_calls(s: Any, draw: random.Random) -> None:
    """Some splits, an order, marks and a place for each stage of a schedule."""
    readers: list[Any] = []
    for stage in reversed(s.stages):
        for axis in [*stage.op.axis, *stage.op.reduce_axis]:
            if draw.random() < 0.5:
                _, inner = stage.split(axis, factor=draw.choice([2, 3, 4, 8]))
                if draw.random() < 0.2:
                    stage.split(inner, nparts=2)
        order = stage.leaf_iter_vars
        draw.shuffle(order)
        stage.reorder(*order)
        if draw.random() < 0.3:
            stage.unroll(order[-1])
        elif not order[-1].reduces and draw.random() < 0.5:
            stage.vectorize(order[-1])
        if readers and draw.random() < 0.6:
            reader = draw.choice(readers)
            stage.compute_at(reader, draw.choice(reader.leaf_iter_vars))
        readers.append(stage)


def test_whatever_is_called_the_result_is_the_same_or_a_sentence() -> None:
    draw, candidates, refused = random.Random(7), [], 0
    first = product()[0].program
    for _ in range(80):
        s, _A, _B, P, Y, _k = product()
        for tensor in (P, Y):
            if draw.random() < 0.3:
                s.cache_write(tensor, "local")
        try:
            random_calls(s, draw)
            candidates.append(_core.bind_schedule(s.program, s.schedule))
        except CanvasError as error:
            assert "\n" not in str(error)
            refused += 1
    verdicts = _core.measure(_core.measurer(first, 1, screen=True), candidates[:16])
    assert {one["failure"] for one in verdicts} == {"ok"}, [v["message"] for v in verdicts]
    assert len(candidates) >= 30 <= refused * 3, refused


# ---- which line is to blame ---------------------------------------------------------------------


def reduces_in_parallel(s: Any, P: Any, Y: Any, k: Any) -> None:
    s[P].unroll(s[P].op.axis[0])
    s[P].parallel(k)  # this
    s[Y].parallel(s[Y].op.axis[0])


def parallel_in_parallel(s: Any, P: Any, Y: Any, k: Any) -> None:
    i, j = s[Y].op.axis
    s[P].parallel(s[P].op.axis[1])
    s[Y].parallel(i)
    s[Y].parallel(j)  # this


def a_group_in_parallel(s: Any, P: Any, Y: Any, k: Any) -> None:
    ko, ki = s[P].split(k, factor=5)
    s[P].reorder(ko, ki, *s[P].op.axis)
    both = s[P].fuse(ko, ki)
    s[P].parallel(both)  # this


def read_before_it_is_complete(s: Any, P: Any, Y: Any, k: Any) -> None:
    s[Y].unroll(s[Y].op.axis[1])
    s[Y].compute_at(s[P], k)  # this


def parts_of_a_tile(s: Any, P: Any, Y: Any, k: Any) -> None:
    io, _ = s[Y].split(s[Y].op.axis[0], factor=8)
    s[P].compute_at(s[Y], io)
    s[P].split(s[P].op.axis[0], factor=3)  # this
    s[P].split(s[P].op.axis[1], factor=4)


def unrolled_too_often(s: Any, P: Any, Y: Any, k: Any) -> None:
    for loop in s[P].leaf_iter_vars:
        s[P].unroll(loop)  # this


BLAMED = [
    (reduces_in_parallel, "parallel: parallel loop 'k' reduces 'P'; the schedule says 'i:24:unr"),
    (parallel_in_parallel, "parallel: parallel loop 'j' stands inside parallel loop 'i'; the sch"),
    (
        a_group_in_parallel,
        "parallel: parallel loop 'ko' reduces 'P'; the schedule says '{ko:4, ki",
    ),
    (read_before_it_is_complete, "compute_at: 'P' is computed before 'Y', which therefore cannot"),
    (parts_of_a_tile, "split: 'P' computes 8 places at a time there, and 3 by 3 is another numbe"),
    (unrolled_too_often, "unroll: loop 'i' unrolls into 15360 statements, at most 1024; split it"),
]


@pytest.mark.parametrize("calls, message", BLAMED, ids=[row[0].__name__ for row in BLAMED])
def test_the_line_is_that_of_the_call(calls: Callable[..., None], message: str) -> None:
    lines, first = inspect.getsourcelines(calls)
    line = first + next(number for number, text in enumerate(lines) if text.endswith("# this\n"))
    for use in (te.lower, te.build, lambda s: s.bound(), lambda s: s.code()):
        s, _A, _B, P, Y, k = product()
        calls(s, P, Y, k)
        with pytest.raises(CanvasError) as raised:
            use(s)
        assert re.match(rf"\S*test_schedule_facade\.py:{line}: ", str(raised.value))
        assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_text_that_was_given_has_no_call() -> None:
    s, _A, _B, P, _Y, k = product()
    s[P].parallel(k)
    s.schedule = "i, j, k:para =>\n    @P = i, j // k\ni, j =>\n    @Y = i, j\n"
    with pytest.raises(CanvasError, match=r"py:\d+: line 1, column 7: parallel loop 'k' reduces"):
        te.lower(s)


# ---- what is refused ----------------------------------------------------------------------------

REFUSED: list[tuple[Callable[..., Any], str]] = [
    (lambda s, P, Y, k: s[P].split(k), "split takes either factor or nparts"),
    (lambda s, P, Y, k: s[P].split(k, 2, 2), "split takes either factor or nparts"),
    (lambda s, P, Y, k: s[P].split(k, 0), "split: factor is a whole number from 1, not 0"),
    (lambda s, P, Y, k: s[Y].split(k, 2), "split: 'k' is no loop of stage 'Y', take one of"),
    (
        lambda s, P, Y, k: (s[P].split(k, 2), s[P].unroll(k)),
        "unroll: stage 'P' has no loop 'k' now, its loops are i, j, ko, ki",
    ),
    (
        lambda s, P, Y, k: s[P].split(s[Y].op.axis[0], 2),
        "split: that 'i' is of another stage, not the 'i' of 'P'",
    ),
    (lambda s, P, Y, k: s[P].split(s[P].fuse(*s[P].op.axis), 2), "split: 'i_j' is fused"),
    (lambda s, P, Y, k: s[P].fuse(s[P].op.axis[0], k), "fuse: i, k do not stand next to each"),
    (lambda s, P, Y, k: s[P].fuse(s[P].op.axis[1], k), "a loop over an axis and one that reduces"),
    (lambda s, P, Y, k: s[P].fuse(), "fuse takes one loop or more"),
    (lambda s, P, Y, k: s[P].reorder(k, k), "reorder: a loop is named twice"),
    (lambda s, P, Y, k: s[P].bind(k, None), "bind: there are no threads to bind a loop to"),
    (lambda s, P, Y, k: s[P].tensorize(k, None), "tensorize: there are no calls of hardware"),
    (lambda s, P, Y, k: s[P].storage_align(k, 1, 0), "storage_align: a buffer has no gaps"),
    (lambda s, P, Y, k: s[P].pragma(k, "parallel"), "pragma: there is no 'parallel' here"),
    (
        lambda s, P, Y, k: s[P].pragma(k, "auto_unroll_max_step", -1),
        "pragma: 'auto_unroll_max_step' is a whole number from 0, not -1",
    ),
    (lambda s, P, Y, k: s[P].prefetch(P, k, 0), "prefetch: the offset is a whole number from 1"),
    (lambda s, P, Y, k: s[P].compute_at(s[P], k), "'P' cannot be computed inside of itself"),
    (lambda s, P, Y, k: s[P].compute_inline(), "compute_inline: 'P' reduces: it can only"),
    (lambda s, P, Y, k: s.cache_write(P, "shared"), "cache_write: there is no scope 'shared'"),
    (lambda s, P, Y, k: s.cache_write([P, Y], "local"), "cache_write takes one tensor here"),
    (
        lambda s, P, Y, k: (s[P].unroll(k), s.cache_write(P, "local")),
        "cache_write: say it before other calls on 'P'",
    ),
    (lambda s, P, Y, k: s.cache_read(P, "local", [P, Y]), "cache_read is for one reader here"),
    (lambda s, P, Y, k: s.rfactor(P, k), "rfactor: 'k' is no inner part of a reduction of 'P'"),
    (
        lambda s, P, Y, k: s.rfactor(P, s[P].split(k, 4)[0]),
        "rfactor: partial sums run along the inner part of 'k'",
    ),
    (
        lambda s, P, Y, k: (s[P].unroll(s[P].op.axis[0]), s.rfactor(P, s[P].split(k, 4)[1])),
        "rfactor: say it before other calls on 'P'",
    ),
    (lambda s, P, Y, k: s.create_group([P], [Y]), "create_group: say compute_at of each stage"),
    (lambda s, P, Y, k: s[P.op.input_tensors[0]], "s[...]: 'A' is an input, no stage with loops"),
    (lambda s, P, Y, k: s[3], "s[...]: 3 is no tensor of this schedule"),
    (
        lambda s, P, Y, k: s[product()[0].cache_write(product()[3], "local")],
        "cache_write: 'P' is no tensor of this schedule",
    ),
    (lambda s, P, Y, k: s[P].set_scope("warp"), "set_scope: there is no scope 'warp'"),
]


@pytest.mark.parametrize("call, message", REFUSED, ids=range(len(REFUSED)))
def test_a_call_is_refused(call: Callable[..., Any], message: str) -> None:
    s, _A, _B, P, Y, k = product()
    with pytest.raises(CanvasError) as raised:
        call(s, P, Y, k)
    assert message in str(raised.value)
    assert str(raised.value).startswith(("tests/", "test_")) and "\n" not in str(raised.value)


def windows() -> tuple[Any, Any, Any]:
    """A window that reads rows of a stage that overlap."""
    X = te.placeholder((16, 8), name="X")
    k = te.reduce_axis((0, 3), name="k")
    P = te.compute((16, 8), lambda h, w: X[h, w] * 2.0, name="P")
    Y = te.compute((14, 8), lambda h, w: te.sum(P[h + k, w], axis=k), name="Y")
    return te.create_schedule(Y.op), P, Y


def test_what_a_place_cannot_be_is_told_when_the_text_is_written() -> None:
    s, P, Y = windows()
    ho, _ = s[Y].split(s[Y].op.axis[0], factor=7)
    s[P].compute_at(s[Y], ho)
    with pytest.raises(CanvasError, match=r"what is read of 'P' along 'h' inside of loop 'ho'"):
        _ = s.schedule
    s[P].compute_root()
    assert "{ho, hi}/h" in s.schedule
    s, _A, _B, P, Y, k = product()
    s[Y].compute_at(s[P], k)
    with pytest.raises(CanvasError, match="'P' is computed before 'Y', which therefore"):
        _ = s.schedule
    s, _A, _B, P, Y, k = product()
    _i, j = s[Y].op.axis
    s[P].compute_at(s[Y], j)
    s[Y].split(j, factor=4)
    with pytest.raises(CanvasError, match=r"say s\[P\].compute_at after its loops are split"):
        _ = s.schedule
    s, _A, _B, P, Y, k = product()
    io, _ = s[Y].split(s[Y].op.axis[0], factor=8)
    s[P].compute_at(s[Y], io)
    s[P].split(s[P].op.axis[0], factor=3)
    with pytest.raises(CanvasError, match="'P' computes 8 places at a time there, and 3 by 3 is"):
        _ = s.schedule


def test_an_inlined_stage_is_gone() -> None:
    X = te.placeholder((8,), name="X")
    P = te.compute((8,), lambda i: X[i] + 1.0, name="P")
    Y = te.compute((8,), lambda i: P[i] * P[i], name="Y")
    s = te.create_schedule(Y)
    s[P].compute_inline()
    s[Y].vectorize(s[Y].op.axis[0])
    assert s.schedule == "i:8:vec =>\n    @Y = i\n" and "P[" not in s.program
    with pytest.raises(CanvasError, match="'P' is inlined, no stage with loops"):
        _ = s[P]
    x: Any = np.arange(8, dtype="float32")
    np.testing.assert_array_equal(te.build(s, [X, Y])(x), (x + 1) ** 2)


# ---- the rest of TVM's words --------------------------------------------------------------------


def test_arrays_devices_and_times() -> None:
    s, A, B, _P, Y, _k = product()
    dev = te.device("llvm -mcpu=cascadelake", 0)
    args = [te.nd.array(np.ones(tensor.shape, "float32"), dev) for tensor in (A, B, Y)]
    with te.target.Target("llvm"):
        assert str(te.target.Target.current()) == "llvm"
        function = te.build(s, [A, B, Y], target="llvm -mcpu=cascadelake", name="f")
    assert te.target.Target.current() is None
    function(*args)
    assert (args[2].asnumpy() == K).all() and (args[2].numpy() == K).all()
    times = function.time_evaluator(function.entry_name, te.cpu(), number=2, repeat=3)(*args)
    assert 0 < times.min <= times.median <= times.max and times.mean > 0 and times.std >= 0
    assert te.nd.empty((2, 3)).copyfrom(np.ones((2, 3))).sum() == 6
    assert args[2].copyto(te.nd.empty((M, N))).shape == (M, N)
    with pytest.raises(CanvasError, match="number is a whole number from 1, not 0"):
        function.time_evaluator("f", number=0)
    for wrong in ("x", -1, float("inf"), None):
        with pytest.raises(CanvasError, match="min_repeat_ms is from 0 to 1000000, not"):
            function.time_evaluator("f", min_repeat_ms=wrong)
    with pytest.raises(CanvasError, match="there is no current target"):
        te.target.Target.current(allow_none=False)
    with pytest.raises(CanvasError, match="target 'cuda' comes later"):
        te.target.Target("cuda")
    with pytest.raises(CanvasError, match="a device is a whole number, not 'x'"):
        te.cpu("x")  # type: ignore[arg-type]
    assert str(te.context("cpu")) == "cpu(0)" and tir.all is te.all
