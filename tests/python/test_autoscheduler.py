"""AutoScheduler's interface: its README's program, tasks, methods, configs out and in."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import canvas
from canvas import _core, te
from canvas.autoscheduler import __main__ as command
from canvas.autoscheduler import scheduler, template
from canvas.autoscheduler.scheduler import schedule, schedule_with_config
from canvas.autoscheduler.task import TASK_TABLE, Task, register, register_task

N = 32


def gemm(N: int, K: int, M: int) -> Any:
    A, B = te.placeholder((N, K), name="A"), te.placeholder((K, M), name="B")
    k = te.reduce_axis((0, K), name="k")
    C = te.compute((N, M), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [C.op], [A, B, C]


def padded(N: int) -> Any:
    """Two stages before the one that reduces."""
    X, W = te.placeholder((N,), name="X"), te.placeholder((3,), name="W")
    inside = lambda i: te.all(i >= 1, i < N + 1)  # noqa: E731
    P = te.compute((N + 2,), lambda i: te.if_then_else(inside(i), X[i - 1], 0), name="P")
    Q = te.compute((N + 2,), lambda i: P[i] * 2, name="Q")
    k = te.reduce_axis((0, 3), name="k")
    Y = te.compute((N,), lambda i: te.sum(Q[i + k] * W[k], axis=k), name="Y")
    return [Y.op], [X, W, Y]


@pytest.fixture(scope="module")
def task() -> Any:
    made = Task("gemm", "small", gemm, (N, N, N), "llvm", 0)
    register_task(made, override=True)
    yield made
    del TASK_TABLE[made.key]


@pytest.fixture(scope="module")
def pads() -> Any:
    made = Task("conv", "pads", padded, (16,), "llvm")
    register_task(made, override=True)
    yield made
    del TASK_TABLE[made.key]


def plain(program: str) -> str:
    """Each stage in loops of its own."""
    lines = []
    for stage in template.stages_of(program):
        own = [f"{{{stage.name}_{axis}}}/{axis}" for axis, _ in stage.axes]
        over = [f"{{{stage.name}_{axis}}}/{axis}" for axis, _ in stage.over]
        loops = ", ".join(f"{stage.name}_{axis}" for axis, _ in [*stage.axes, *stage.over])
        summed = f" // {', '.join(over)}" if over else ""
        lines.append(f"{loops} =>\n    @{stage.name} = {', '.join(own)}{summed}\n")
    return "".join(lines)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the tuner is asked, which answers with a plain schedule."""
    seen: dict[str, Any] = {}

    def tune(program: str, **options: Any) -> dict[str, Any]:
        seen.update(options, program=program)
        same, text = _core.bind_schedule(program, plain(program))
        found = {"program": same, "edits": "", "schedule": text}
        return {"failure": "ok", "message": "", **found}

    monkeypatch.setattr(scheduler._core, "tune", tune)
    return seen


# ---- the README ---------------------------------------------------------------------------------

README = """
import canvas.te as tvm

def gemm(A, B):
    k = tvm.reduce_axis((0, B.shape[0]))
    return tvm.compute((A.shape[0], B.shape[1]), lambda i, j: tvm.sum(A[i, k] * B[k, j], axis=k))

def wrap_gemm(N, K, M):
    A = tvm.placeholder((N, K))
    B = tvm.placeholder((K, M))
    Output = gemm(A, B)
    return [Output.op], [A, B, Output]

from canvas.autoscheduler.task import register_task, Task

task = Task(
    "gemm", 
    "gemm", 
    wrap_gemm, 
    (1024, 1024, 1024), 
    "llvm", 
    0)
# register the task
register_task(task)

from canvas.autoscheduler.scheduler import schedule

s, bufs, configs = schedule(
            task.key, # give the key of target task
            slevel=4,
            rlevel=3,
            op_trial=100, 
            timeout=10, 
            op_stop=30, 
            method="searching", 
            parallel=8,
            )

func = tvm.build(s, bufs, task.target)
task_key = task.key
from canvas.autoscheduler.scheduler import schedule_with_config

s, bufs = schedule_with_config(task_key, configs)
func = tvm.build(s, bufs, task.target)
"""  # noqa: W291


def run_readme(size: int, trials: int) -> None:
    text = README.replace("1024, 1024, 1024", f"{size}, {size}, {size}")
    names: dict[str, Any] = {}
    exec(text.replace("op_trial=100", f"op_trial={trials}"), names)
    del TASK_TABLE[names["task_key"]]
    a, b, c = (np.random.default_rng(1).random((size, size), "f4") for _ in range(3))
    names["func"](a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-3)


def test_the_readme_runs_with_other_imports() -> None:
    run_readme(32, 3)


@pytest.mark.nightly
@pytest.mark.timeout(1200)
def test_the_readme_runs_as_it_stands() -> None:
    run_readme(1024, 100)


# ---- tasks --------------------------------------------------------------------------------------


def test_a_key_says_all_of_a_task() -> None:
    made = Task("conv2d", "yolo1", gemm, (1, 64, 112), "llvm")
    assert made.key == "conv2d_yolo1_(1, 64, 112)_llvm(0)"
    assert Task("a", "b", gemm, [5], "cuda", 3).key == "a_b_(5,)_cuda(3)"
    assert made.category == "conv2d" and made.args == (1, 64, 112) and made.dev_id == 0
    assert Task("a", "b", gemm, (np.int64(5), [np.int32(3)]), "llvm").key == "a_b_(5, [3])_llvm(0)"


def test_a_key_is_registered_once() -> None:
    made = Task("gemm", "once", gemm, (4, 4, 4), "llvm")
    register_task(made)
    with pytest.raises(canvas.CanvasError, match=r"is registered already, override=True replaces"):
        register(gemm, "gemm", "once", (4, 4, 4), "llvm")
    register_task(made, override=True)
    assert TASK_TABLE[made.key] is made and made.key in TASK_TABLE and len(TASK_TABLE) >= 1
    del TASK_TABLE[made.key]
    assert made.key not in list(TASK_TABLE)


def test_the_table_has_autoschedulers_tasks() -> None:
    for key in (
        "conv2d_yolo0_(1, 3, 448, 448, 64, 7, 2, 3, 1, 1)_llvm(0)",
        "conv_transpose2d_res6_(64, 128, 28, 28, 256, 1, 2, 0, 1, 1)_cuda(3)",
        "gemm_gemm_(1024, 1024, 1024)_llvm(0)",
        "mttkrp_mttkrp_(128, 256, 512, 64)_llvm(2)",
        "pixelcnn_pixelcnn_(1, 256, 256, 3, 32, 7, 7, 'A', None, 1, 1, 0)_llvm(0)",
    ):
        assert key in TASK_TABLE
    programs = 0
    for key, made in TASK_TABLE.items():
        if key.endswith("_llvm(0)") and made.category != "gemm":
            outputs, bufs = made.tensors()
            assert te.program(outputs, name="p").startswith("canvas 1\nprogram p\n")
            assert bufs[-1] is outputs[-1] and not bufs[0].op.input_tensors
            programs += 1
    assert programs == 502


def test_a_task_of_the_table_is_scheduled(asked: dict[str, Any]) -> None:
    key = "maxunpooling1d_maxunpooling1d_(1, 512, 14, 2, 2, 0)_llvm(0)"
    s, bufs, configs = schedule(key, op_trial=1)
    assert s.program.startswith("canvas 1\nprogram maxunpooling1d_maxunpooling1d\n")
    again, tensors = schedule_with_config(key, configs)
    assert te.lower(again, tensors) == te.lower(s, bufs)
    with pytest.raises(canvas.CanvasError, match="target 'cuda' comes later"):
        schedule(key.replace("llvm", "cuda"))


def test_defaults_are_autoschedulers() -> None:
    given = inspect.signature(schedule).parameters
    defaults = {
        "slevel": 4, "rlevel": 3, "op_trial": 50, "graph_trial": 10, "op_stop": 15,
        "graph_stop": 5, "number": 10, "timeout": 5.0, "parallel": 8, "method": "searching",
    }  # fmt: skip
    assert list(given)[1:11] == list(defaults)
    assert {name: given[name].default for name in defaults} == defaults
    assert list(inspect.signature(Task.__init__).parameters)[1:] == [
        "category", "name", "func", "args", "target", "dev_id",
    ]  # fmt: skip
    assert list(inspect.signature(schedule_with_config).parameters) == [
        "task_key", "configs", "op_pos", "rewrite",
    ]  # fmt: skip


# ---- what a search is asked ---------------------------------------------------------------------


def test_words_mean_what_the_tuner_is_asked(task: Task, asked: dict[str, Any]) -> None:
    schedule(task.key, op_trial=7, op_stop=3, timeout=2, parallel=4, method="q", threads=2)
    told = {
        k: asked[k] for k in ("trials", "patience", "timeout", "together", "method", "threads")
    }
    assert told == {
        "trials": 7, "patience": 3, "timeout": 2.0, "together": 4, "method": "q", "threads": 2,
    }  # fmt: skip
    assert asked["sketch"] is None
    schedule(task.key, trials=[5, 6], seconds=9)
    assert asked["trials"] == 11 and asked["seconds"] == 9 and asked["method"] == "searching"


def test_stages_are_inlined_where_that_is_asked(pads: Task, asked: dict[str, Any]) -> None:
    schedule(pads.key)
    assert "\nP[" in asked["program"] and "\nQ[" in asked["program"]
    schedule(pads.key, force_inline=True)
    assert "\nP[" not in asked["program"] and "\nQ[" not in asked["program"]


def test_the_template_is_a_space(task: Task, asked: dict[str, Any]) -> None:
    schedule(task.key, space="template", slevel=3, rlevel=2)
    assert asked["sketch"] == (
        "edit cache C as C_local\n"
        "{C_i_0, C_j_0}:para, C_i_1:? =>\n"
        "    C_k_0, C_j_1:?:unroll, C_k_1:?, C_k_2:?, C_i_2:?:unroll, C_j_2:?:vec =>\n"
        "        @C_local = {C_i_0, C_i_1, C_i_2}/i, {C_j_0, C_j_1, C_j_2}/j // "
        "{C_k_0, C_k_1, C_k_2}/k\n"
        "    C_j_1:unroll, C_i_2:unroll, C_j_2:vec =>\n"
        "        @C = {C_i_0, C_i_1, C_i_2}/i, {C_j_0, C_j_1, C_j_2}/j\n"
    )


@pytest.mark.parametrize("method", ["random", "q"])
def test_other_methods_search(task: Task, method: str) -> None:
    s, bufs, _ = schedule(task.key, op_trial=2, method=method, space="template")
    a, b = (np.random.default_rng(1).random((N, N), "f4") for _ in range(2))
    np.testing.assert_allclose(te.build(s, bufs)(a, b), a @ b, rtol=1e-4)


# ---- configs ------------------------------------------------------------------------------------


def same_code(task: Task, config: Any, s: Any, bufs: Any) -> None:
    again, tensors = schedule_with_config(task.key, config)
    assert te.lower(again, tensors) == te.lower(s, bufs)
    assert (again.program, again.schedule) == (s.program, s.schedule)


def test_a_config_gives_the_same_code(task: Task, asked: dict[str, Any], tmp_path: Path) -> None:
    s, bufs, configs = schedule(task.key)
    same_code(task, configs, s, bufs)
    same_code(task, json.loads(json.dumps(configs)), s, bufs)
    line = f"{task.key}:{json.dumps(configs)}"
    assert line == scheduler.config_line(task.key, configs)
    key, config = scheduler.config_from_line(line + "\n")
    assert key == task.key and config == configs
    scheduler.save_configs(tmp_path / "configs.txt", [("other", configs)])
    scheduler.save_configs(tmp_path / "configs.txt", [(task.key, configs)])
    loaded = scheduler.load_configs(tmp_path / "configs.txt")
    assert list(loaded) == ["other", task.key]
    same_code(task, loaded[task.key], s, bufs)


def entities(**given: Any) -> dict[str, Any]:
    names = ("fuse", "spatial", "reduce", "reorder", "inline", "unroll", "merge", "special")
    return {name: given.get(name, []) for name in names}


SPLIT = entities(spatial=[[2, 4, 1, 4], [1, 1, 2, 16]], reduce=[[4, 2, 2, 2]], unroll=[[512, 1]])
TEMPLATE = """canvas 1
{C_i_0, C_j_0}:para, C_i_1:4 =>
    C_k_0, C_j_1:1, C_k_1:2, C_i_2:1, C_j_2:2:unroll, C_k_2:2, C_k_3:2, C_i_3:4:unroll, C_j_3:16:vec =>
        @C_local = {C_i_0, C_i_1, C_i_2, C_i_3}/i, {C_j_0, C_j_1, C_j_2, C_j_3}/j // {C_k_0, C_k_1, C_k_2, C_k_3}/k
    C_j_1, C_i_2, C_j_2:unroll, C_i_3:unroll, C_j_3:vec =>
        @C = {C_i_0, C_i_1, C_i_2, C_i_3}/i, {C_j_0, C_j_1, C_j_2, C_j_3}/j
"""  # noqa: E501


def test_a_config_of_autoscheduler_becomes_its_template(task: Task) -> None:
    line = f"{task.key}:{json.dumps([[SPLIT], entities(inline=[[]])])}"
    key, config = scheduler.config_from_line(line)
    s, bufs = schedule_with_config(key, config)
    assert s.schedule == TEMPLATE
    a, b, c = (np.random.default_rng(2).random((N, N), "f4") for _ in range(3))
    te.build(s, bufs)(a, b, c)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4)


@pytest.mark.parametrize(
    "spatial, reduce",
    [
        ([[32], [32]], [[32]]),
        ([[1, 32], [4, 8]], [[32, 1]]),
        ([[32, 1, 1, 1], [1, 1, 1, 32]], [[1, 1, 1, 32]]),
        ([[1, 1, 32, 1], [32, 1, 1, 1]], [[1, 32, 1, 1]]),
        ([[2, 2, 2, 4], [8, 2, 2, 1]], [[2, 4, 4]]),
    ],
)
def test_any_parts_compute_the_same(task: Task, spatial: Any, reduce: Any) -> None:
    config = [[entities(spatial=spatial, reduce=reduce)], {}]
    s, bufs = schedule_with_config(task.key, config)
    a, b = (np.random.default_rng(3).random((N, N), "f4") for _ in range(2))
    np.testing.assert_allclose(te.build(s, bufs)(a, b), a @ b, rtol=1e-4)


def test_configs_are_of_the_stages_in_order(pads: Task) -> None:
    ones = [entities(spatial=[[18]]), entities(spatial=[[3, 6]])]
    last = entities(spatial=[[4, 4]], reduce=[[3, 1]])
    x, w = np.arange(16, dtype="f4"), np.array([1, 2, 3], "f4")
    truth = np.convolve(np.pad(x, 1) * 2, w[::-1], "valid")
    for config, op_pos, stages in [
        ([[*ones, last], {}], None, 3),
        ([[last], {}], None, 3),
        ([[last], {"inline": [[1, 1]]}], None, 1),
        ([[ones[1], last], {"inline": [[1, 0]]}], None, 2),
        ([[*ones, last], {}], 2, 3),
    ]:
        s, bufs = schedule_with_config(pads.key, config, op_pos=op_pos)
        assert s.program.count(" = ") == stages + 1  # and the cache
        np.testing.assert_allclose(te.build(s, bufs)(x, w), truth, rtol=1e-5)


def test_entities_of_what_the_template_finds(task: Task, monkeypatch: pytest.MonkeyPatch) -> None:
    def tune(program: str, **options: Any) -> dict[str, Any]:
        tiles = scheduler._tiles(program, given, None)
        edited, text = template.bound(program, tiles)
        _, caches = template.cached(program, tiles)
        edits = "".join(f"cache {name} as {cache}\n" for name, cache in caches.items())
        return {
            "failure": "ok", "message": "", "program": edited, "edits": edits, "schedule": text
        }  # fmt: skip

    given = scheduler.checked_config([[SPLIT], {}])
    monkeypatch.setattr(scheduler._core, "tune", tune)
    s, bufs, configs = schedule(task.key, space="template")
    assert configs.op_config_lst[0]["spatial"] == SPLIT["spatial"]
    assert configs.op_config_lst[0]["reduce"] == SPLIT["reduce"]
    same_code(task, configs, s, bufs)
    same_code(task, [[entities(**{**configs.op_config_lst[0], "special": []})], {}], s, bufs)


# ---- the command --------------------------------------------------------------------------------


def test_the_command_searches_and_tests(
    asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "configs.txt"
    words = ["gemm", "--shapes", "gemm", "--from_", "0", "--to", "2"]
    given = [
        "--trials",
        "7",
        "--timeout",
        "3",
        "--parallel",
        "2",
        "--method",
        "random",
        "--slevel",
        "2",
    ]
    assert command.main([*words, *given, "--log", str(log)]) == 0
    assert (asked["trials"], asked["timeout"], asked["together"]) == (7, 3.0, 2)
    keys = ["gemm_gemm_(32, 32, 32)_llvm(0)", "gemm_gemm_(32, 32, 64)_llvm(0)"]
    assert list(scheduler.load_configs(log)) == keys
    assert command.main(["gemm", "--to", "3", "--test", str(log)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(": ")[0] for line in lines[:4]] == keys * 2
    assert all(line.endswith(" ms") for line in lines[:4]) and "no config in" in lines[4]


@pytest.mark.parametrize(
    "words, message",
    [
        (["gemmm"], "there is no task of category 'gemmm' for llvm(0); did you mean 'gemm'?"),
        (["gemm", "--from_", "5", "--to", "2"], "of these tasks, and none from 5 to 2"),
        (["gemm", "--from_", "-1"], "--from_ is a number from 0 up, not -1"),
        (["gemm", "--to", "1", "--log", "/"], "cannot write configs to '/': Is a directory"),
        (["conv2d", "--shapes", "y"], "there is no task of category 'conv2d' with shapes 'y'"),
        (["gemm", "--to", "1", "--method", "best"], "there is no method 'best'"),
        (["gemm", "--to", "1", "--target", "cuda"], "target 'cuda' comes later"),
        (["gemm", "--host", "0.0.0.0"], "'--host' is not taken: trials run on this machine"),
        (["gemm", "--use_model"], "'--use_model' is not taken: the cost model of canvas is"),
        (["gemm", "--to", "1", "--log", ""], "--log is a path, not ''"),
        (["gemm", "--to", "1", "--test", ""], "--test is a path, not ''"),
        (["gemm", "--test", "/nothing"], "cannot read configs from '/nothing'"),
    ],
)
def test_wrong_words_of_the_command(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(words) == 2
    told = capsys.readouterr().err
    assert message in told and told.count("\n") == 1


def test_the_command_is_no_line_of_the_users() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "canvas.autoscheduler", "gemm", "--to", "1", "--trials", "0"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "canvas.autoscheduler: op_trial is a whole number from 1 up, not 0\n"


# ---- what is refused ----------------------------------------------------------------------------


def other_gemm() -> Any:
    """A config of another size."""
    text = _core.print_program(te.program(gemm(8, 8, 8)[0], name="gemm_small"))
    return [
        [entities(special=[{"canvas": 2, "program": text, "edits": "", "schedule": ""}])],
        {},
    ]


def found_gemm(edits: str, **more: Any) -> Any:
    """A config of what a search found, and what its edits are."""
    text = _core.print_program(te.program(gemm(N, N, N)[0], name="gemm_small"))
    found = {"canvas": 2, "program": text, "edits": edits, "schedule": "", **more}
    return [[entities(special=[found])], {}]


def old_gemm() -> Any:
    """Of an older version: what edits made stands there, and not the edits."""
    text = found_gemm("")[0][0]["special"][0]["program"]
    return found_gemm("", canvas=1, edited=text.replace("\nC[", "\nD[i:1] = 1\nC["))


@pytest.mark.parametrize(
    "more, message",
    [
        ({"method": "annealing"}, "there is no method 'annealing': searching, q, random"),
        ({"method": 3}, "there is no method 3"),
        ({"op_trial": 0}, "op_trial is a whole number from 1 up, not 0"),
        ({"op_stop": 2.5}, "op_stop is a whole number from 1 up, not 2.5"),
        ({"parallel": "8"}, "parallel is a whole number from 1 up, not '8'"),
        ({"timeout": -1}, "timeout is a number of seconds above 0, not -1"),
        ({"timeout": "5"}, "timeout is a number of seconds above 0, not '5'"),
        ({"graph_trial": 100}, "graph_trial=100 is not taken: operations and graph are searched"),
        ({"graph_stop": 6}, "graph_stop=6 is not taken: operations and graph are searched"),
        ({"number": 4}, "number=4 is not taken: a trial's samples are repeated until they agree"),
        ({"log": 3}, "log is a path, not 3"),
        ({"log": ""}, "log is a path, not ''"),
        ({"trials": 5}, "trials is a list of a number for each operation, not 5"),
        ({"trials": [0]}, "a number of trials is a whole number from 1 up, not 0"),
        ({"space": "all"}, "there is no space 'all': canvas and template"),
        ({"rewrite": True}, "'rewrite' is not taken: the search chooses layouts by itself"),
        ({"rpc_info": "host"}, "'rpc_info' is not taken: trials run on this machine"),
        ({"op_perf_model_path": [(0, "x")]}, "'op_perf_model_path' is not taken: the cost model"),
        ({"op_tries": 3}, "schedule takes no 'op_tries'"),
    ],
)
def test_wrong_words_of_schedule(task: Task, more: Any, message: str) -> None:
    with pytest.raises(canvas.CanvasError) as told:
        schedule(task.key, **more)
    assert message in str(told.value) and "test_autoscheduler.py:" in str(told.value)


def failing(*args: Any) -> Any:
    raise KeyError("no size")


@pytest.mark.parametrize(
    "func, target, message",
    [
        (failing, "llvm", "raised KeyError: 'no size'"),
        (lambda n: n, "llvm", "answers 5, not ([operations], [tensors])"),
        (lambda n: ([n], [n]), "llvm", "answers 5 among its tensors"),
        (lambda n: ([], []), "llvm", "expected an output, a tensor of te, and there is none"),
        (lambda n: te.placeholder((0,)), "llvm", "has shape [0]: sizes are from 1 up"),
        (lambda n: gemm(n, n, n), "cuda", "target 'cuda' comes later: code is for CPUs"),
        (lambda n: gemm(n, n, n), "fpga", "there is no target 'fpga': code is for CPUs"),
    ],
)
def test_wrong_tasks(func: Any, target: str, message: str) -> None:
    made = Task("wrong", "task", func, (5,), target)
    register_task(made, override=True)
    with pytest.raises(canvas.CanvasError) as told:
        schedule(made.key, op_trial=1)
    assert message in str(told.value) and "\n" not in str(told.value)
    del TASK_TABLE[made.key]


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: Task(3, "b", gemm, (), "llvm"), "category of a task is a word or more on"),
        (lambda: Task("a", "", gemm, (), "llvm"), "more on one line, not ''"),
        (lambda: Task("a", "b", "gemm", (), "llvm"), "func of a task is a function of its args"),
        (lambda: Task("a", "b", gemm, 5, "llvm"), "args of a task is a tuple of its sizes, not 5"),
        (lambda: Task("a", "b", gemm, (), "llvm", -1), "dev_id of a task is a whole number"),
        (
            lambda: Task("a", "b", gemm, (), "llvm").set_specific_space("k", "enum", [1, 2]),
            "knob 'k' is not taken: no search here looks at knobs of one's own",
        ),
        (lambda: TASK_TABLE.update({"k": 3}), "TASK_TABLE has tasks by their keys, not 3"),
        (
            lambda: TASK_TABLE.update({"k": Task("a", "b", gemm, (), "llvm")}),
            "TASK_TABLE has tasks by their keys, not Task(a_b_()_llvm(0))",
        ),
        (lambda: register_task("task"), "expected a Task, not 'task'"),
        (lambda: schedule("gemm_smal"), "there is no task 'gemm_smal', register it first"),
        (lambda: schedule(5), "a task is given by its key, a text, not 5"),
    ],
)
def test_wrong_arguments_of_tasks(wrong: Any, message: str) -> None:
    with pytest.raises(canvas.CanvasError) as told:
        wrong()
    assert message in str(told.value)


@pytest.mark.parametrize(
    "config, message",
    [
        ("text", "configs are two: a list with a dict for each operation, and a dict for the"),
        ([[5], {}], "config 0 is a dict of lists, not 5"),
        ([[{"tiles": []}], {}], "config 0 has no 'tiles': there are fuse, spatial, reduce"),
        ([[{"spatial": "x"}], {}], "'spatial' of config 0 is a list, not 'x'"),
        ([[], {"inline": 1}], "'inline' of the graph's config is a list, not 1"),
        ([[entities(special=[{"canvas": 2}])], {}], "has the texts program, edits and schedule"),
        (old_gemm(), "the config is of an older version, which wrote what edits made"),
        (found_gemm("type A bf16\n"), "edit 1: 'type A bf16' changes a data type"),
        (found_gemm("cache Q as R\n"), "edit 1: line 1, column 7: the program has no tensor 'Q'"),
        (other_gemm(), "the config is of another task: of a program 'gemm_small' that is not"),
        ([[entities(spatial=[[32]])], {}], "another task: 'spatial' has parts of 1 axes, and 'C'"),
        (
            [[entities(spatial=[[4, 4], [32]])], {}],
            "do not multiply up to 32, the size of axis 'i' of 'C'",
        ),
        ([[entities(spatial=[[32], "32"])], {}], "do not multiply up to 32, the size of axis 'j'"),
        ([[SPLIT, SPLIT], {}], "it has 2 operations, and the program has 1 stages"),
        ([[SPLIT], {"inline": [[1]]}], "says of 1 stages whether they are inlined, and 0 can be"),
    ],
)
def test_wrong_configs(task: Task, config: Any, message: str) -> None:
    with pytest.raises(canvas.CanvasError) as told:
        schedule_with_config(task.key, config)
    assert message in str(told.value) and "\n" not in str(told.value)


def test_wrong_uses_of_a_config(task: Task, tmp_path: Path) -> None:
    for more, message in [
        ({"op_pos": 3}, "op_pos is from 0 to 0, not 3"),
        ({"op_pos": "0"}, "op_pos is from 0 to 0, not '0'"),
        ({"rewrite": True}, "'rewrite' is not taken"),
    ]:
        with pytest.raises(canvas.CanvasError, match=message):
            schedule_with_config(task.key, [[SPLIT], {}], **more)
    for line in ("no colon", "key:{", "key:" + "[" * 10**5):
        with pytest.raises(canvas.CanvasError, match="expected 'KEY:JSON' as a line of configs"):
            scheduler.config_from_line(line)
    with pytest.raises(canvas.CanvasError, match="cannot read configs from"):
        scheduler.load_configs(tmp_path / "nothing.txt")
    with pytest.raises(canvas.CanvasError):
        schedule_with_config(
            task.key,
            [[entities(special=[{
                "canvas": 2, "program": te.program(gemm(N, N, N)[0], name="gemm_small"),
                "edits": "", "schedule": "i =>\n    @D = i\n",
            }])], {}],
        )  # fmt: skip


def test_a_name_with_a_colon_comes_back(tmp_path: Path) -> None:
    key = Task("ge:mm", "of: (1):", gemm, (4, 4, 4), "llvm", 12).key
    assert scheduler.config_from_line(scheduler.config_line(key, [[SPLIT], {}]))[0] == key
    assert scheduler.config_from_line('key:[[{"fuse": []}], {}]')[0] == "key"


def test_files_of_configs_that_are_not(task: Task, tmp_path: Path) -> None:
    path = tmp_path / "configs.txt"
    good = (task.key, [[SPLIT], {}])
    scheduler.save_configs(path, [good])
    whole = path.read_text()
    path.write_text(whole[:50])  # torn
    with pytest.raises(
        canvas.CanvasError,
        match=r"configs.txt' has no config, line 1: expected 'KEY:JSON'.*\.\.\.",
    ):
        scheduler.load_configs(path)
    for damaged in (whole[:50].encode(), b"\xff", b"null", b"[" * 10**4):
        path.write_bytes(whole.encode() + damaged)
        with pytest.warns(UserWarning, match=r"configs.txt': 1 line is left out, line 2: "):
            assert list(scheduler.load_configs(path)) == [task.key]
    path.write_text(whole + whole[:50])
    scheduler.save_configs(path, {task.key: [[SPLIT], {}]})
    assert path.read_text() == whole + whole[:50] + "\n" + whole
    path.write_bytes(b"\xff\xfe")
    for wrong, message in [
        (lambda: scheduler.load_configs(path), "configs.txt' has no config, line 1: this is"),
        (lambda: scheduler.load_configs(3), "named by a path, not 3"),
        (lambda: scheduler.save_configs(3, [good]), "named by a path, not 3"),
        (lambda: scheduler.save_configs(tmp_path, [good]), "': Is a directory"),
        (lambda: scheduler.save_configs(path, 3), "a list of pairs (key, configs), not 3"),
        (lambda: scheduler.save_configs(path, [(3,)]), "(key, configs), not [(3,)]"),
        (lambda: scheduler.save_configs(path, [(3, good[1])]), "under the key of a task, not 3"),
        (lambda: scheduler.config_from_line(None), "a line of configs is a text, not None"),
    ]:  # fmt: skip
        with pytest.raises(canvas.CanvasError) as told:
            wrong()
        assert message in str(told.value) and "\n" not in str(told.value)
