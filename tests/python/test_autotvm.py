"""AutoTVM's spaces, configs, records and tuners: the same points at the same indices, the same
JSON.
"""

from __future__ import annotations

import inspect
import io
import json
import logging
import math
import operator
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from canvas import CanvasError, _core, autotvm, te
from canvas.autotvm.measure import mean_cost
from canvas.autotvm.task.entities import AnnotateEntity, SplitEntity
from canvas.autotvm.task.space import FallbackConfigEntity

# The config that the notebook imports, and how its logs write the best that it found.
NOTEBOOK = {
    "index": 77156,
    "code_hash": None,
    "entity": [
        ["tile_y", "sp", [-1, 320, 128]],
        ["tile_x", "sp", [-1, 8, 2]],
        ["tile_k", "sp", [-1, 1]],
    ],
}
# As AutoTVM writes it.
RECORD = (
    '{"input": ["llvm -mcpu=cascadelake", "conv2d_3x3_gemm", [10, 256, 256, 64, 64, "float32"], '
    '{}], "config": {"index": 100143, "code_hash": null, '
    '"entity": [["tile_y", "sp", [-1, 64, 5]], '
    '["tile_x", "sp", [-1, 1, 64]], ["tile_k", "sp", [-1, 9]]]}, "result": [[0.2398], 0, 5.1, '
    '1619000000.5], "version": 0.2, "tvm_version": "0.8.dev0"}'
)

LOCAL = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=1, repeat=2))


def dense_space(Y: int, X: int, K: int) -> autotvm.ConfigSpace:
    cfg = autotvm.ConfigSpace()
    cfg.define_split("tile_y", Y, num_outputs=3)
    cfg.define_split("tile_x", X, num_outputs=3)
    cfg.define_split("tile_k", K, num_outputs=2)
    return cfg


@autotvm.template("test_autotvm.product")
def product(n: int, wrong: bool = False) -> Any:
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    cfg = autotvm.get_config()
    i, j = s[C].op.axis
    cfg.define_split("tile_i", i, num_outputs=2)
    cfg.define_split("tile_j", cfg.axis(n), num_outputs=2)
    cfg.define_knob("unroll", [False, True])
    io, ii = cfg["tile_i"].apply(s, C, i)
    jo, ji = cfg["tile_j"].apply(s, C, j)
    s[C].reorder(io, jo, k, ii, ji)
    if cfg["unroll"].val:
        s[C].unroll(ii)
    if cfg.is_fallback:
        s[C].vectorize(ji)
    if wrong:
        cfg.raise_error("it is never right")
    return s, [A, B, C]


def product_task(n: int = 8, *more: Any) -> autotvm.task.Task:
    return autotvm.task.create("test_autotvm.product", args=(n, *more), target="llvm")


# ---- spaces -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sizes, length",
    [
        # 10 images of 512*32/C squared, C channels: the sizes that the notebook's logs print
        ((655360, 64, 576), 301644),
        ((163840, 128, 1152), 352512),
        ((40960, 256, 2304), 382725),
        ((10240, 512, 4608), 386100),
    ],
)
def test_spaces_have_the_sizes_of_the_logs(sizes: tuple[int, int, int], length: int) -> None:
    cfg = dense_space(*sizes)
    assert len(cfg) == length
    for index in (0, 1, length // 3, length - 1):
        assert cfg.get(index).index == index


def test_an_index_is_the_point_of_the_notebooks_log() -> None:
    found = dense_space(655360, 64, 576).get(100143)
    sizes = [found[name].size for name in ("tile_y", "tile_x", "tile_k")]
    assert sizes == [[-1, 64, 5], [-1, 1, 64], [-1, 9]]


@pytest.mark.parametrize(
    "length, more, expected",
    [
        (12, {"num_outputs": 2}, [[-1, n] for n in (1, 2, 3, 4, 6, 12)]),
        (12, {"num_outputs": 2, "policy": "power2"}, [[-1, n] for n in (1, 2, 4, 8)]),
        (6, {"num_outputs": 2, "policy": "verbose"}, [[-1, n] for n in (1, 2, 3, 4, 6)]),
        (
            6, {"num_outputs": 2, "policy": "verbose", "no_tail": True},
            [[-1, n] for n in (1, 2, 3, 6)],
        ),
        (
            4, {"num_outputs": 3},
            [[-1, 1, 1], [-1, 2, 1], [-1, 4, 1], [-1, 1, 2], [-1, 2, 2], [-1, 1, 4]],
        ),
        (12, {"num_outputs": 2, "max_factor": 3}, [[-1, 1], [-1, 2], [-1, 3]]),
        (12, {"num_outputs": 2, "filter": lambda one: one.size[-1] > 4}, [[-1, 6], [-1, 12]]),
        (
            12, {"num_outputs": 2, "policy": "candidate", "candidate": [[3, 4], [-1, 5]]},
            [[3, 4], [-1, 5]],
        ),
    ],
)  # fmt: skip
def test_splits(length: int, more: dict[str, Any], expected: list[list[int]]) -> None:
    cfg = autotvm.ConfigSpace()
    axes = cfg.define_split("tile", cfg.axis(length), **more)
    assert [one.size for one in cfg.space_map["tile"].entities] == expected
    assert len(axes) == more["num_outputs"]


def test_orders_and_marks() -> None:
    cfg = autotvm.ConfigSpace()
    a, b, c = (cfg.axis(4) for _ in "abc")

    def orders(policy: str, **more: Any) -> list[list[int]]:
        cfg.define_reorder("order", [a, b, c], policy, **more)
        return [one.perm for one in cfg.space_map["order"].entities]

    assert orders("identity") == [[0, 1, 2]]
    assert len(orders("all")) == 6
    assert orders("interval_all", interval=(1, 3)) == [[0, 1, 2], [0, 2, 1]]
    assert orders("candidate", candidate=[[c, a, b]]) == [[2, 0, 1]]
    assert orders("interleave", spatial=[[a, b]], reduce=[[c]]) == [[0, 1, 2]]
    cfg.define_annotate("marks", [a, b], "try_unroll_vec")
    marks = [one.anns for one in cfg.space_map["marks"].entities]
    assert len(marks) == 8 and ["vec", "vec"] not in marks and marks[0] == ["none", "none"]
    cfg.define_annotate("at", [a, b, c], "locate_cache", num_anchor=2)
    assert [one.anns for one in cfg.space_map["at"].entities] == [[0, 1], [0, 2], [1, 2]]


def test_entities_are_applied() -> None:
    A = te.placeholder((8, 32), name="A")
    P = te.compute((8, 32), lambda i, j: A[i, j] + 1.0, name="P")
    Y = te.compute((8, 32), lambda i, j: P[i, j] * 2.0, name="Y")
    cfg = autotvm.ConfigSpace()
    s = te.create_schedule(Y.op)
    i, j = s[Y].op.axis
    axes = cfg.define_split("t", i, num_outputs=2)
    cfg.define_reorder("o", [*axes, axes[0]], "candidate", candidate=[[axes[1], axes[0]]])
    cfg.define_annotate("m", [i, j], "unroll_vec")
    cfg.define_annotate("at", [i, j], "locate_cache", num_anchor=1)
    loops = cfg.get(1)["o"].apply(s, Y, [i, j])
    assert loops == [j, i]
    cfg["m"].apply(s, Y, [i], axis_lens=[8], max_unroll=4, cfg=cfg)
    AnnotateEntity(["none", "vec"]).apply(s, Y, [i, j], axis_lens=[8, 32], vec_size=[8], cfg=cfg)
    cfg["at"].apply(s, Y, loops, source=[[P]])
    assert not cfg.valid()
    assert cfg.errors == [
        "Too large factor for unrolling",
        "Wrong size of lanes in vectorization",
    ]
    assert s.schedule == (
        "j:32:vec =>\n    i:8 =>\n        @P = i, j\n    i:8:unroll =>\n        @Y = i, j\n"
    )


# ---- configs ------------------------------------------------------------------------------------


def test_the_notebooks_config_comes_back_as_it_went() -> None:
    found = autotvm.task.ConfigEntity.from_json_dict(NOTEBOOK)
    assert json.dumps(found.to_json_dict()) == json.dumps(NOTEBOOK)
    assert found["tile_y"].size == [-1, 320, 128] and found.index == 77156 and len(found) == 1
    assert list(found) == ["tile_y", "tile_x", "tile_k"] and "tile_y" in found


def test_every_kind_of_entity_comes_back() -> None:
    rows = [["a", "re", [1, 0]], ["b", "an", ["vec", "none"]], ["c", "ot", True]]
    given = {"index": 3, "code_hash": "x", "entity": rows}
    found = autotvm.ConfigEntity.from_json_dict(given)
    assert found.to_json_dict() == given and found.get_other_option() == {"c": True}


def test_the_fallback_chooses_divisors() -> None:
    cfg = FallbackConfigEntity()
    cfg.define_split("a", 128, num_outputs=3)
    cfg.define_split("b", 49, num_outputs=3)
    for name, sizes in (("a", [4, 8, 4]), ("b", [7, 7, 1])):
        cfg.fallback_split(name, [-1, 8, 4])
        assert cfg[name].size == sizes
    cfg["a"] = SplitEntity([-1, 2, 2])
    assert cfg["a"].size == [-1, 2, 2] and cfg.is_fallback


# ---- templates and contexts ---------------------------------------------------------------------


def test_a_template_gets_the_config_of_the_block_around_it() -> None:
    config = product_task().config_space.get(5)
    with autotvm.ApplyConfig(config), te.target.Target("llvm"):
        s, _ = product(8)
    sizes = config["tile_i"].size[-1], config["tile_j"].size[-1]
    assert sizes == (2, 2) and "ii:2" in s.schedule
    s, args = product(8)  # outside of any block: the fallback
    assert "io:8, jo:8" in s.schedule  # the first entity of each knob
    a = np.random.default_rng(0).normal(size=(8, 8)).astype("float32")
    np.testing.assert_allclose(te.build(s, args)(a, a), a @ a, rtol=1e-4, atol=1e-5)


def test_a_task_knows_its_space_and_its_flops() -> None:
    task = product_task(8)
    assert len(task.config_space) == 4 * 4 * 2 and task.flop == 2 * 8**3
    assert task.workload == ("test_autotvm.product", 8)
    assert "tile_i: Split(policy=factors, product=8, num_outputs=2) len=4" in str(
        task.config_space
    )
    A = te.placeholder((4, 4), name="A")
    assert autotvm.task.serialize_args([A, (1, [2]), None]) == (
        ("TENSOR", (4, 4), "float32"),
        (1, (2,)),
        None,
    )
    again = autotvm.task.deserialize_args([("TENSOR", (4, 4), "float32"), 1])
    assert again[0].shape == (4, 4) and again[1] == 1


def test_blocks_of_channels_are_convolved() -> None:
    """By the fallback and by two configs, with a stride, beside NumPy."""
    A, B = te.placeholder((1, 2, 7, 9, 4), name="A"), te.placeholder((2, 2, 3, 3, 4, 8), name="B")
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=t.shape).astype("float32") for t in (A, B))
    padded = np.pad(a, ((0, 0), (0, 0), (1, 1), (1, 1), (0, 0)))
    wanted = sum(
        np.einsum("nchwb,ocbd->nohwd", padded[:, :, i : i + 7 : 2, j : j + 9 : 2], b[:, :, i, j])
        for i in range(3)
        for j in range(3)
    )
    args = (A, B, 2, 1, 1, "NCHWc", "NCHWc", "float32")
    task = autotvm.task.create("conv2d_NCHWc.x86", args, "llvm")
    made = [autotvm.topi.conv2d_nchwc_x86(*args)]
    made += [task.instantiate(task.config_space.get(at)) for at in (0, len(task.config_space) - 1)]
    for s, (data, kernel, conv) in made:
        found = te.build(s, [data, kernel, conv])(a, b)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


# ---- tuners -------------------------------------------------------------------------------------


def visited(tuner: Any, most: int) -> list[int]:
    """The indices that a tuner asks for where nothing is measured: what it says is fast grows."""
    found: list[int] = []
    while tuner.has_next() and len(found) < most:
        configs = tuner.next_batch(4)
        inputs = [autotvm.MeasureInput(None, tuner.task, one) for one in configs]  # type: ignore[arg-type]
        results = [autotvm.MeasureResult((1 / (1 + one.index),), 0, 0, 0) for one in configs]
        tuner.update(inputs, results)
        found += [one.index for one in configs]
    return found


def test_tuners_look_at_every_point_once() -> None:
    task = product_task(8)
    assert visited(autotvm.tuner.GridSearchTuner(task), 99) == list(range(32))
    drawn = visited(autotvm.tuner.RandomTuner(task), 99)
    assert sorted(drawn) == list(range(32)) != drawn
    assert drawn == visited(autotvm.tuner.RandomTuner(task), 99)
    assert drawn != visited(autotvm.tuner.RandomTuner(task, seed=2), 99)
    genes = visited(autotvm.tuner.GATuner(task, pop_size=8), 99)
    assert sorted(genes) == list(range(32))


def test_genes_become_better() -> None:
    task = autotvm.task.create("test_autotvm.product", args=(240,), target="llvm")
    found = visited(autotvm.tuner.GATuner(task, pop_size=20, elite_num=3), 200)
    assert len(set(found)) == 200
    assert sum(found[-60:]) / 60 > 1.15 * sum(found[:20]) / 20


def test_tuning_writes_a_log_that_is_applied(tmp_path: Path, caplog: Any, capsys: Any) -> None:
    log, best = tmp_path / "all.log", tmp_path / "best.log"
    task = product_task(16)
    tuner = autotvm.tuner.GATuner(task, pop_size=8)
    callbacks = [autotvm.callback.log_to_file(str(log)), autotvm.callback.progress_bar(12)]
    with caplog.at_level(logging.DEBUG, "autotvm"):
        tuner.tune(n_trial=12, measure_option=LOCAL, callbacks=callbacks)
    assert "Progress: (12/12)" in capsys.readouterr().err and "No: 12\t" in caplog.text
    records = list(autotvm.record.load_from_file(log))
    assert len(records) == 12 and len(log.read_text().splitlines()) == 12
    row = json.loads(log.read_text().splitlines()[0])
    assert row["input"] == ["llvm", "test_autotvm.product", [16], {}] and row["version"] == 0.2
    assert list(row) == ["input", "config", "result", "version", "tvm_version"]
    autotvm.record.pick_best(log, best)
    autotvm.record.pick_best(log, best)  # what is there counts, too
    ((inp, result),) = autotvm.record.load_from_file(best)
    assert tuner.best_config is not None and inp.config.to_json_dict() == (  # type: ignore[attr-defined]
        tuner.best_config.to_json_dict()
    )
    assert sum(result.costs) / 3 == pytest.approx(task.flop / tuner.best_flops)
    with autotvm.apply_history_best(str(best)), te.target.Target("llvm"):
        s, _ = product(16)
    assert s.schedule == task.instantiate(tuner.best_config)[0].schedule
    stream = io.StringIO()
    autotvm.record.pick_best(log, stream)
    assert stream.getvalue() == best.read_text()


def test_a_record_of_autotvm_is_read() -> None:
    inp, result = autotvm.record.decode(RECORD)
    assert inp.task.workload == ("conv2d_3x3_gemm", 10, 256, 256, 64, 64, "float32")
    assert result.costs == (0.2398,) and str(inp.target) == "llvm -mcpu=cascadelake"
    again = json.loads(autotvm.record.encode(inp, result))
    assert {**again, "tvm_version": "0.8.dev0"} == json.loads(RECORD)
    failed = autotvm.MeasureResult(("why",), 4, 1.0, 2.0)
    assert json.loads(autotvm.record.encode(inp, failed))["result"] == [[1e9], 4, 1.0, 2.0]


def test_a_candidate_that_is_wrong_or_illegal_costs_itself() -> None:
    program = product_task(8).instantiate(product_task(8).config_space.get(0))[0].program
    other = program.replace("A[i, k] * B[k, j]", "A[i, k] + B[k, j]")
    measurer = _core.measurer(program, 2, screen=True)
    given = [(other, None), (program, "nonsense"), (program, None), ("program", None)]
    verdicts = _core.measure(measurer, given)
    assert [one["failure"] for one in verdicts] == ["wrong", "check", "ok", "check"]
    assert verdicts[2]["median"] > 0 and verdicts[1]["message"].startswith("line 1")
    with pytest.raises(CanvasError):
        _core.measurer("program")
    for wrong in ([(1, 2)], ["x"], 3):
        with pytest.raises((TypeError, CanvasError)):
            _core.measure(measurer, wrong)  # type: ignore[arg-type]
    with pytest.raises((TypeError, ValueError)):
        _core.measure("x", [])


SLOW = """canvas 1
program slow
in A f32 [i:320, k:320]
in B f32 [k:320, j:320]
C[i:320, j:320] = A[i, k] * B[k, j] // sum k:320
out C
"""
BADLY = "canvas 1\nj:320, i:320, k:320 =>\n    @C = i, j // k\n"


def test_a_slow_candidate_is_judged_by_the_samples_that_there_was_time_for() -> None:
    """It would need nine runs, and gets seven; the machine may be busy with others."""
    array = np.ones((320, 320), "f4")
    outputs, inputs = te.from_program(SLOW)
    s = te.create_schedule(outputs)
    s.schedule = BADLY
    function = te.build(s, [*inputs, *outputs])
    start = time.perf_counter()
    function(array, array)
    run = time.perf_counter() - start
    for _ in range(8):
        found = _core.measure(_core.measurer(SLOW, seconds=7 * run), [(SLOW, BADLY)])[0]
        if found["failure"] == "ok" and found["repeats"] < 5:
            return
        run = found["median"] if found["failure"] == "ok" else 2 * run
    raise AssertionError(found)


def test_a_config_that_computes_something_else_never_wins() -> None:
    @autotvm.template("test_autotvm.unequal")
    def unequal(n: int) -> Any:
        cfg = autotvm.get_config()
        cfg.define_knob("factor", [1.0, 2.0])
        A = te.placeholder((n,), name="A")
        C = te.compute((n,), lambda i: A[i] * cfg["factor"].val, name="C")
        return te.create_schedule(C.op), [A, C]

    task = autotvm.task.create("test_autotvm.unequal", (64,), "llvm")
    found: list[Any] = []
    tuner = autotvm.tuner.GridSearchTuner(task)
    tuner.tune(2, LOCAL, callbacks=[lambda _t, _i, results: found.extend(results)])
    assert [one.error_no for one in found] == [0, autotvm.MeasureErrorNo.WRONG_ANSWER]
    assert tuner.best_config is not None and tuner.best_config.index == 0
    assert found[1].costs[0].startswith("wrong: ")


def test_a_search_that_finds_nothing_says_why(tmp_path: Path) -> None:
    with pytest.raises(CanvasError, match=r"none of 4 candidates worked, the last: .*never right"):
        autotvm.tuner.GridSearchTuner(product_task(8, True)).tune(4, LOCAL)


def test_a_search_ends_early() -> None:
    tuner = autotvm.tuner.GridSearchTuner(product_task(8))
    option = autotvm.measure_option(autotvm.LocalBuilder(n_parallel=2), LOCAL["runner"])
    seen: list[int] = []
    tuner.tune(32, option, early_stopping=2, callbacks=[lambda t, i, r: seen.append(len(i))])
    assert 2 <= sum(seen) < 32


# ---- what is refused ----------------------------------------------------------------------------


def space(call: Callable[[autotvm.ConfigSpace], Any]) -> Callable[[], Any]:
    return lambda: call(autotvm.ConfigSpace())


def config(rows: Any) -> Callable[[], Any]:
    return lambda: autotvm.ConfigEntity.from_json_dict(
        {"index": 0, "code_hash": None, "entity": rows}
    )


def blocked(data: Any, kernel: Any, padding: Any = 1, layout: str = "NCHWc") -> Any:
    """The task of a convolution in blocks of channels."""
    A, B = te.placeholder(data, name="A"), te.placeholder(kernel, name="B")
    args = (A, B, 1, padding, 1, layout, "NCHWc", "float32")
    return autotvm.task.create("conv2d_NCHWc.x86", args, "llvm")


def applied(name: str, letters: str, value: Any) -> None:
    """The template with a config of another one."""
    entity = [["tile_i", "sp", [-1, 2]], ["tile_j", "sp", [-1, 2]], ["unroll", "ot", False]]
    rows = [[name, letters, value] if row[0] == name else row for row in entity]
    with autotvm.ApplyConfig(config(rows)()):
        product(8)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        space(lambda c: c.define_split("t", 0, num_outputs=2)),
        "an axis of a space is a length from 1",
    ),
    (
        space(lambda c: c.define_split("t", 8)),
        "define_split: num_outputs is a whole number from 1",
    ),
    (
        space(lambda c: c.define_split("t", 8, "pow", num_outputs=2)),
        "there is no policy 'pow', there",
    ),
    (space(lambda c: c.define_split("t", 8, num_outputs=2, x=1)), "knob 't': got an unexpected"),
    (
        space(lambda c: c.define_split("t", 8, num_outputs=2, filter=lambda one: False)),
        "knob 't' has nothing to choose from",
    ),
    (
        space(lambda c: c.define_split("t", 8, "candidate", num_outputs=2, candidate=[[8]])),
        "each candidate has 2 sizes",
    ),
    (space(lambda c: c.define_reorder("r", [4, 4], "some")), "define_reorder: there is no policy"),
    (space(lambda c: c.define_annotate("r", [4], "gpu")), "define_annotate: there is no policy"),
    (
        space(lambda c: c.define_reorder("r", [4], "candidate", candidate=[[c.axis(4)]])),
        "is none of the axes",
    ),
    (
        space(lambda c: c.define_split("t", 1 << 20, num_outputs=9)),
        "define_split: there are more than 200000 ways",
    ),
    (
        space(lambda c: c.define_split("t", 8, num_outputs=2, filter=lambda one: 1 // 0)),
        "define_split: filter raised ZeroDivisionError",
    ),
    (
        space(lambda c: c.define_split("t", 8, num_outputs=2, filter=3)),
        "define_split: filter is a function, not 3",
    ),
    (
        space(lambda c: c.define_split("t", 8, "candidate", num_outputs=2, candidate=[3])),
        "define_split: candidate is a list of lists of sizes, not [3]",
    ),
    (space(lambda c: c.define_split(3, 8, num_outputs=2)), "a knob has a name, a text, not 3"),
    (
        space(lambda c: c.define_reorder("r", [4], "interval_all")),
        "knob 'r': policy 'interval_all' takes 'interval'",
    ),
    (space(lambda c: c.define_knob("k", "abc")), "define_knob: candidate is a list of values"),
    (space(lambda c: c.add_flop(None)), "add_flop takes a number, not None"),
    (space(lambda c: c.add_flop(-1)), "add_flop takes a number of operations, not -1"),
    (space(lambda c: c["tile"]), "a config has no knob 'tile', it has none at all"),
    (space(lambda c: c.get(1)), "an index of this space is from 0 to 0, not 1"),
    (lambda: FallbackConfigEntity().fallback_split("t", [1]), "'t' is no split into 1 parts"),
    (
        lambda: autotvm.ConfigEntity.from_json_dict({"index": 1}),
        "a config has 'index', 'code_hash'",
    ),
    (config([["a", "xx", 1]]), "knob 'a' is of a kind 'xx', there are sp, re, an, ot"),
    (config([["a", "sp", "1"]]), "knob 'a' is whole numbers, not '1'"),
    (config([["a", "sp", [-1, 0]]]), "knob 'a': sizes are from 1, the first may be -1"),
    (config({}), "rows [knob, sp|re|an|ot, value] as its 'entity'"),
    (config([[3, "sp", [1]]]), "a knob has a name, a text, not 3"),
    (config([["a", "an", "vec"]]), "knob 'a' is a list of marks, not 'vec'"),
    (config([["a", "re", [0, 0]]]), "knob 'a' is an order of axes from 0, not [0, 0]"),
    (config([["a", "ot", 1], ["a", "ot", 2]]), "a config has a knob twice"),
    (
        lambda: autotvm.ConfigEntity.from_json_dict({**NOTEBOOK, "index": "7"}),
        "the index of a config is a whole number from 0, not '7'",
    ),
    (
        lambda: autotvm.ApplyConfig(NOTEBOOK),  # type: ignore[arg-type]
        "ApplyConfig takes a config, as ConfigSpace.get and ConfigEntity.from_json_dict make",
    ),
    (lambda: applied("tile_i", "ot", 3), "another template: knob 'tile_i' is 3, no SplitEntity"),
    (lambda: applied("tile_i", "sp", [-1, 2, 2]), "knob 'tile_i' has 3 parts, not 2"),
    (lambda: autotvm.template("test_autotvm.x", 3), "'test_autotvm.x' is a function, not 3"),
    (lambda: autotvm.template(product), "a template has a name: @autotvm.template('name')"),
    (
        lambda: autotvm.template("test_autotvm.product", lambda: None),
        "template 'test_autotvm.product' is registered already",
    ),
    (lambda: product(n=8), "template 'test_autotvm.product' takes its arguments without names"),
    (lambda: autotvm.task.create("none", (1,), "llvm"), "there is no template 'none'"),
    (
        lambda: autotvm.task.create(product, (1,), "llvm"),
        "task.create takes a template's name and",
    ),
    (lambda: autotvm.task.create("test_autotvm.product", ("x",), "llvm"), "a size of placeholder"),
    (
        lambda: autotvm.task.create("test_autotvm.product", (8,), "cuda"),
        "target 'cuda' comes later",
    ),
    (lambda: blocked((1, 2, 8, 8, 16), (2, 2, 3, 3, 8, 16)), "conv2d_NCHWc: data is [n, ic/b,"),
    (
        lambda: blocked((1, 1, 8, 8, 8), (1, 1, 3, 3, 8, 8), padding=(1, 2, 3)),
        "conv2d_NCHWc: padding is one number or two, not (1, 2, 3)",
    ),
    (
        lambda: blocked((1, 1, 8, 8, 8), (1, 1, 3, 3, 8, 8), layout="NHWC"),
        "conv2d_NCHWc: layouts are NCHWc, not NHWC and NCHWc",
    ),
    (lambda: autotvm.task.serialize_args([object()]), "an argument of a task is a number, a text"),
    (
        lambda: autotvm.tuner.GATuner(3),  # type: ignore[arg-type]
        "a tuner takes what task.create answers, not 3",
    ),
    (
        lambda: autotvm.tuner.GATuner(product_task(), 2, 3),
        "elite_num is from 1 to pop_size, not 3 of 2",
    ),
    (
        lambda: autotvm.tuner.GATuner(product_task(), pop_size="x"),  # type: ignore[arg-type]
        "GATuner: pop_size is a whole number from 1, not 'x'",
    ),
    (
        lambda: autotvm.tuner.GATuner(product_task(), mutation_prob=2),
        "GATuner: mutation_prob is a number from 0 to 1, not 2",
    ),
    (
        lambda: autotvm.tuner.RandomTuner(product_task(), seed=None),  # type: ignore[arg-type]
        "a seed is a whole number, not None",
    ),
    (
        lambda: autotvm.tuner.RandomTuner(product_task()).tune(1, LOCAL, callbacks=[3]),
        "callbacks is a list of functions, not [3]",
    ),
    (lambda: autotvm.callback.progress_bar("x"), "progress_bar: total is a whole number"),
    (lambda: autotvm.callback.log_to_file(3), "log_to_file takes a path or an open file, not 3"),
    (lambda: autotvm.LocalBuilder(n_parallel=-1), "n_parallel is a whole number from 1, not -1"),
    (lambda: autotvm.tuner.XGBTuner(product_task()), "XGBTuner: there is no learned model here"),
    (
        lambda: autotvm.tuner.RandomTuner(product_task()).tune(0, LOCAL),
        "n_trial is a whole number",
    ),
    (
        lambda: autotvm.tuner.RandomTuner(product_task()).tune(1, 3),
        "measure_option is what autotvm",
    ),
    (
        lambda: autotvm.tuner.RandomTuner(product_task()).tune(1, LOCAL, si_prefix="x"),
        "an SI prefix is one of K M G T P E, not 'x'",
    ),
    (lambda: autotvm.measure_option("remote", "local"), "a builder is 'local' or a LocalBuilder"),
    (lambda: autotvm.measure_option("local", "rpc"), "a runner is 'local' or a LocalRunner"),
    (lambda: autotvm.LocalRunner(number=0), "LocalRunner: number is a whole number from 1, not 0"),
    (lambda: autotvm.LocalRunner(timeout=0), "LocalRunner: timeout is seconds above 0, not 0"),
    (lambda: autotvm.LocalBuilder(build_func="ndk"), "LocalBuilder: build_func is 'default'"),
    (lambda: autotvm.record.decode("{}"), "this is no record of AutoTVM's: '{}'"),
    (lambda: autotvm.record.decode(None), "a record is a line of text, not None"),
    (lambda: autotvm.record.decode(RECORD.replace("[0.2398]", "[]")), "this is no record of"),
    (lambda: autotvm.record.decode("[" * 10**5), "this is no record of AutoTVM's: '[[[["),
    (lambda: autotvm.apply_history_best(3), "records are files, or pairs (MeasureInput, Measure"),
    (lambda: list(autotvm.record.load_from_file(3)), "named by a path, not 3"),
    (lambda: list(autotvm.record.load_from_file("")), "named by a path, not ''"),
    (lambda: autotvm.callback.log_to_file(""), "log_to_file takes a path or an open file, not ''"),
    (lambda: autotvm.record.pick_best(Path(__file__), ""), "out_file is a path or an open file"),
    (lambda: autotvm.record.pick_best(Path(__file__), 3), "out_file is a path or an open file"),
    (lambda: autotvm.record.decode("x", protocol="pickle"), "records are of protocol 'json'"),
    (
        lambda: list(autotvm.record.load_from_file("no/such")),
        "cannot read records from 'no/such': No such file or directory",
    ),
]  # fmt: skip


@pytest.mark.parametrize("call, message", REFUSED, ids=range(len(REFUSED)))
def test_it_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(CanvasError) as raised:
        call()
    assert message in str(raised.value) and "\n" not in str(raised.value)


def test_a_template_that_fails_is_one_sentence(tmp_path: Path) -> None:
    @autotvm.template("test_autotvm.raises")
    def raises(_n: int) -> Any:
        raise KeyError("x")

    @autotvm.template("test_autotvm.nothing")
    def nothing(_n: int) -> Any:
        return 3

    @autotvm.template("test_autotvm.no_knob")
    def no_knob(n: int) -> Any:
        A = te.placeholder((n,), name="A")
        return te.create_schedule(te.compute((n,), lambda i: A[i] + 1.0)), [A]

    for name, message in (
        ("raises", "template 'test_autotvm.raises' raised KeyError: 'x'"),
        ("nothing", "answers a schedule and its arguments, not 3"),
        ("no_knob", "defines no knob, there is nothing to tune"),
    ):
        with pytest.raises(CanvasError, match=message):
            autotvm.task.create(f"test_autotvm.{name}", (4,), "llvm")
    autotvm.template("test_autotvm.pair", lambda _n: (None, None))
    with pytest.raises(CanvasError, match=r"schedule and its arguments, not \(None, None\)"):
        autotvm.task.create("test_autotvm.pair", (4,), "llvm")
    bad = tmp_path / "bad.log"
    bad.write_bytes(b"\xff")
    with pytest.raises(CanvasError, match=r"bad.log' has no record, line 1: this is no text"):
        autotvm.record.pick_best(bad, tmp_path / "best.log")
    bad.write_text("# a comment\n\nnonsense\n")
    with pytest.raises(CanvasError, match=r"bad.log' has no record, line 3: this is no record"):
        list(autotvm.record.load_from_file(bad))
    with pytest.raises(CanvasError, match="Is a directory"):
        autotvm.callback.log_to_file(str(tmp_path))(None, [], [])


# ---- the page -----------------------------------------------------------------------------------

PAGE = (Path(__file__).resolve().parents[2] / "docs/notebook.md").read_text()


def test_names_and_defaults_are_as_the_page_lists_them() -> None:
    rows = re.findall(r"^\| `autotvm\.([\w.]+)` \| (?:`(.*)`)? ?\|$", PAGE, re.M)
    assert len(rows) > 20
    for name, told in rows:
        known = inspect.signature(operator.attrgetter(name)(autotvm)).parameters.values()
        shown = [str(one).split(":")[0] + default_of(one) for one in known if one.name != "self"]
        assert shown[: len(told.split(", "))] == [one for one in told.split(", ") if one], name


def default_of(one: inspect.Parameter) -> str:
    return "" if one.default is one.empty else f"={one.default!r}"


@pytest.mark.nightly
@pytest.mark.timeout(3000)
def test_the_notebook_at_its_own_size(tmp_path: Path) -> None:
    """Its files on the first shape, with few trials, and more time for each: the machine may be
    busy with others.
    """
    for path, body in re.findall(r"^```python (\S+)\n(.*?)^```$", PAGE, re.S | re.M):
        (tmp_path / path).write_text(body.replace("timeout=20", "timeout=60"))
    shape = "convshape = [(10, 64, 256, 256)]\nsparsities = [0.6]\ntrials = 8\n"
    (tmp_path / "convshape.py").write_text(shape)
    for script in ("tune_nchwc", "tune_dense", "tune_sparse", "check"):
        done = subprocess.run(
            [sys.executable, f"{script}.py"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("dense True\nsparse True\n")


# ---- which line is to blame ---------------------------------------------------------------------


@autotvm.template("test_autotvm.never")
def never(n: int) -> Any:
    s, bufs = product(n)
    C = bufs[2]
    s[C].parallel(s[C].op.reduce_axis[0])  # this
    return s, bufs


def test_what_no_candidate_can_be_is_told_with_the_line_of_the_template() -> None:
    lines, first = inspect.getsourcelines(never)
    line = first + next(number for number, text in enumerate(lines) if text.endswith("# this\n"))
    tuner = autotvm.tuner.RandomTuner(autotvm.task.create("test_autotvm.never", (8,), "llvm"))
    why = rf"none of 2 candidates worked, the last: \S*test_autotvm.py:{line}: parallel: parallel"
    with pytest.raises(CanvasError, match=why):
        tuner.tune(2, LOCAL)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: autotvm.task.create("nobody", (), "llvm"),
        lambda: autotvm.template("test_autotvm.product")(lambda n: None),
        lambda: autotvm.measure_option("remote", "local"),
        lambda: autotvm.tuner.GATuner("task"),  # type: ignore[arg-type]
        lambda: autotvm.ConfigEntity.from_json_dict({"entity": [["x", "so", 3]]}),
        lambda: autotvm.record.decode("{}"),
        lambda: list(autotvm.record.load_from_file("/nowhere/log")),
        lambda: autotvm.callback.progress_bar(0),
    ],
)
def test_a_mistake_tells_the_line_once(wrong: Callable[[], Any]) -> None:
    with pytest.raises(CanvasError) as told:
        wrong()
    assert re.match(r"\S*test_autotvm\.py:\d+: ", str(told.value))
    assert str(told.value).count("test_autotvm.py") == 1 and "\n" not in str(told.value)


def test_a_record_that_is_none_is_told_with_its_line_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("\nnonsense\n")
    why = r"test_autotvm\.py:\d+: '.*log' has no record, line 2: this is no record of AutoTVM's: "
    with pytest.raises(CanvasError, match=why + "'nonsense'"):
        autotvm.record.pick_best(tmp_path / "log", tmp_path / "best")


# Of a record whose time is 0.2398: what it holds instead, and whether it is a record then.
UNTRUE = [
    ("[0.2398], 0", "[NaN], 0", True),
    ("[0.2398], 0", "[0.0], 0", True),
    ("[0.2398], 0", "[-0.0], 0", True),
    ("[0.2398], 0", "[-1.5], 0", True),
    ("[0.2398], 0", "[Infinity], 0", True),
    ("[0.2398], 0", "[-Infinity], 0", True),
    ("[0.2398], 0", "[1e-9, NaN], 0", True),
    ("[0.2398], 0", "[1e-9, -1e-8], 0", True),
    ("[0.2398], 0", "[1e308, 1e308], 0", True),
    ("[0.2398], 0", "[1e-9], 4", True),
    ("[0.2398], 0", "[1e-9], -1", True),
    ("[0.2398], 0", '["RuntimeError"], 4', True),
    ("[0.2398], 0", '["1e-9"], 0', False),
    ("[0.2398], 0", "[true], 0", False),
    ("[0.2398], 0", "[null], 0", False),
    ("[0.2398], 0", "[[1e-9]], 0", False),
    ("[0.2398], 0", "[], 0", False),
    ("[0.2398], 0", "1e-9, 0", False),
    ("[0.2398], 0", '[1e-9], "0"', False),
    ("[0.2398], 0", "[1e-9], 0.5", False),
    ("[0.2398], 0", "[1e-9], null", False),
    ("[0.2398], 0, 5.1,", "[1e-9], 0,", False),
    ('"result": [[0.2398]', '"results": [[1e-9]', False),
    ('"float32"], {}', '{"a": 1}], {}', False),
    ('"sp", [-1, 64, 5]', '"sp", 3', False),
    ('["tile_k"', '[["tile_k"]', False),
]


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(("old", "new", "record"), UNTRUE)
def test_a_time_that_is_none_is_never_the_best(
    tmp_path: Path, old: str, new: str, record: bool, order: int
) -> None:
    assert old in RECORD
    log, best = tmp_path / "log", tmp_path / "best"
    log.write_text("\n".join([RECORD, RECORD.replace(old, new)][::order]))
    pairs = list(autotvm.record.load_from_file(log))
    assert len(pairs) == 1 + record
    autotvm.record.pick_best(log, best)
    assert json.loads(best.read_text())["result"] == json.loads(RECORD)["result"]
    for records in (log, pairs):
        known = autotvm.apply_history_best(records).best_by_targetkey
        assert [result.costs for _, result in known.values()] == [(0.2398,)]


DAMAGED = [
    b"nonsense",
    RECORD[:90].encode(),
    b"\xff\xfe\x00",
    b"[" * 10**4,
    b"null",
    b"{}",
    b"\x00",
]
CUDA = RECORD.replace("llvm -mcpu=cascadelake", "cuda -model=v100")


@pytest.mark.parametrize("line", [*DAMAGED, CUDA.encode()], ids=range(8))
def test_a_line_that_is_left_out_leaves_the_log_readable(
    tmp_path: Path, line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    log, best = tmp_path / "log", tmp_path / "best"
    log.write_bytes(line + b"\n" + RECORD.encode() + b"\n" + line + b"\n")
    words = r"log': 2 of 3 lines left out, line 1: "
    ((_, result),) = autotvm.record.load_from_file(log)
    assert result.costs == (0.2398,) and re.search(words, caplog.messages[-1])
    with autotvm.apply_history_best(str(log)):
        assert re.search(words, caplog.messages[-1])
    best.write_bytes(log.read_bytes())
    caplog.clear()
    autotvm.record.pick_best(log, best)
    assert re.search(words, "\n".join(caplog.messages))
    first, *others = best.read_bytes().split(b"\n")
    assert json.loads(first)["result"] == json.loads(RECORD)["result"]
    assert others == [line, line, b""]  # nothing is lost


def test_a_log_for_another_target_alone_has_no_best(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "log").write_text(CUDA)
    assert not list(autotvm.record.load_from_file(tmp_path / "log"))
    assert "1 of 1 lines left out, line 1: " in caplog.text


def test_a_search_takes_no_time_that_is_none() -> None:
    for costs in ((math.nan,), (0.0,), (-1.0,), (math.inf,), ("why",), (), None):
        assert mean_cost(autotvm.MeasureResult(costs, 0, 1.0, 2.0)) == math.inf
    assert mean_cost(autotvm.MeasureResult((1.0, 3.0), 0, 1.0, 2.0)) == 2
    assert mean_cost(autotvm.MeasureResult((1.0,), 4, 1.0, 2.0)) == math.inf
