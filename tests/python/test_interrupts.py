"""Ctrl-C in a search from Python: it ends at once, and what was found until then is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import canvas
from canvas import autotvm, te
from canvas.autoscheduler.scheduler import schedule, schedule_with_config
from canvas.autoscheduler.task import TASK_TABLE, Task, register_task

N = 192


def gemm(N: int) -> Any:
    A, B = te.placeholder((N, N), name="A"), te.placeholder((N, N), name="B")
    k = te.reduce_axis((0, N), name="k")
    C = te.compute((N, N), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return [C.op], [A, B, C]


@autotvm.template("test_interrupts.gemm")
def split_gemm(N: int) -> Any:
    ops, bufs = gemm(N)
    s, (C,), cfg = te.create_schedule(ops), bufs[2:], autotvm.get_config()
    i, j = s[C].op.axis
    cfg.define_split("tile_i", i, num_outputs=2)
    cfg.define_split("tile_j", j, num_outputs=2)
    io, ii = cfg["tile_i"].apply(s, C, i)
    jo, ji = cfg["tile_j"].apply(s, C, j)
    s[C].reorder(io, jo, *s[C].op.reduce_axis, ii, ji)
    return s, bufs


@pytest.fixture
def interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., KeyboardInterrupt]]:
    """Runs a search that writes `log.jsonl`, with SIGINT `after` seconds from its first line on:
    by default the next batch is on its way then.
    """
    monkeypatch.setenv("CANVAS_CACHE", str(tmp_path / "cache"))
    log, sent = tmp_path / "log.jsonl", [0.0]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def send(after: float) -> None:
        until = time.time() + 120
        while time.time() < until and not (log.exists() and log.stat().st_size):
            time.sleep(0.01)
        time.sleep(after)
        sent[0] = time.time()
        os.kill(os.getpid(), signal.SIGINT)

    def run(search: Callable[[], Any], after: float = 0.3) -> KeyboardInterrupt:
        sender = threading.Thread(target=send, args=(after,))
        sender.start()
        with pytest.raises(KeyboardInterrupt) as told:
            search()
            sender.join()  # a search that was over before: no other test shall have the signal
        took = time.time() - sent[0]
        sender.join()
        assert took < 2
        return told.value

    yield run
    signal.signal(signal.SIGINT, before)


def check(function: Any) -> None:
    a, b = (np.random.default_rng(s).standard_normal((N, N)).astype("f4") for s in (1, 2))
    np.testing.assert_allclose(function(a, b), a @ b, rtol=1e-3, atol=1e-3)


def test_tune(interrupted: Any, tmp_path: Path) -> None:
    program = te.program(gemm(N)[0], name="gemm")
    log = tmp_path / "log.jsonl"
    stop = interrupted(lambda: canvas.tune(program, method="random", trials=10**6, log=log))
    found = stop.found
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert found.trials == len(records) and all(r["screened"] for r in records)
    assert "timeout" not in {r["failure"] for r in records}  # what was cut is no trial
    assert found.median == min(r["median"] for r in records if r["failure"] == "ok")
    assert (found.before, found.after) == (0, 0)
    check(found.compile())


NIGHTLY = [pytest.param(form, marks=pytest.mark.nightly) for form in ("text", "json", "together")]


@pytest.mark.parametrize("form", ["python", *NIGHTLY])
def test_tune_in_its_finals(interrupted: Any, tmp_path: Path, form: str) -> None:
    """What was not measured to the end is not told."""
    program, log = te.program(gemm(N)[0], name="gemm"), tmp_path / "log.jsonl"
    (tmp_path / "p").write_text(program)
    if form == "python":
        tune = lambda: canvas.tune(program, method="random", trials=1, log=log)  # noqa: E731
        stop = interrupted(tune, after=0.02)  # the finals take a few tenths of a second
        found = stop.found
        assert (found.before, found.after, found.first) == (0, 0, 0) and found.median > 0
        return
    words = ["tune", str(tmp_path / "p"), "--method", "random", "--trials", "1", "--log", str(log)]
    words += {"text": [], "json": ["--json"], "together": ["--together", "--json"]}[form]
    done = interrupted_command(words, log)
    assert done.returncode == 130
    if form == "text":
        assert "not compared with the default" in done.stdout
        assert "times as fast" not in done.stdout
        return
    (line,) = done.stdout.splitlines()
    told = json.loads(line, parse_constant=lambda name: pytest.fail(name))
    assert told["median"] > 0 and not {"before", "after"} & told.keys()


def interrupted_command(words: list[str], log: Path) -> subprocess.CompletedProcess[str]:
    """`canvas` with SIGINT soon after the log has its first line."""
    process = subprocess.Popen(
        [sys.executable, "-m", "canvas", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.time() + 120
    while time.time() < until and not (log.exists() and log.stat().st_size):
        time.sleep(0.01)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def test_schedule(interrupted: Any, tmp_path: Path) -> None:
    task = Task("gemm", "interrupted", gemm, (N,), "llvm")
    register_task(task)
    log = tmp_path / "log.jsonl"
    stop = interrupted(lambda: schedule(task.key, op_trial=10**5, op_stop=10**5, log=log))
    s, bufs, configs = stop.found
    check(te.build(s, bufs))
    assert schedule_with_config(task.key, configs)[0].schedule == s.schedule
    del TASK_TABLE[task.key]


def test_a_tuner_of_autotvm(interrupted: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    task = autotvm.task.create("test_interrupts.gemm", (N,), "llvm")
    tuner = autotvm.tuner.RandomTuner(task)
    measure_option = autotvm.measure_option(autotvm.LocalBuilder(n_parallel=4), "local")
    callbacks = [autotvm.callback.log_to_file(log)]
    interrupted(lambda: tuner.tune(1000, measure_option, callbacks=callbacks))
    records = list(autotvm.record.load_from_file(log))
    assert 4 <= len(records) < 1000
    assert tuner.best_config is not None
    assert str(tuner.best_config) in {str(inp.config) for inp, _ in records}
