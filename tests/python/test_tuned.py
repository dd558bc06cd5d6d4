"""canvas.tune and KernelPack.compile(tune=...): what is found computes the same, and what is wrong
is one message.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import canvas

GEMM = """canvas 1
program gemm
in A f32 [m:24, k:20]
in B f32 [k:20, n:64] const
C[m:24, n:64] = A[m, k] * B[k, n] // sum k:20
out C
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANVAS_CACHE", str(tmp_path / "cache"))


def check_gemm(code: canvas.Compiled) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((24, 20), (20, 64)))
    np.testing.assert_allclose(code(a, b), a @ b, rtol=1e-4, atol=1e-5)


def test_tune_answers_what_computes_the_same(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    tuned = canvas.tune(GEMM, trials=4, log=log)
    assert tuned.trials == 4 and sum(tuned.failures.values()) == 4
    assert tuned.median > 0 and tuned.before > 0 and tuned.after > 0 and tuned.points > 4
    check_gemm(tuned.compile())
    before = log.read_text().count("\n")
    again = canvas.tune(GEMM, trials=4, log=log)
    assert log.read_text().count("\n") == before + 1  # the winner alone is measured again
    assert again.trials == 4


def test_oneshot_measures_nothing() -> None:
    tuned = canvas.tune(GEMM, method="oneshot")
    assert tuned.trials == 0 and tuned.median == 0 and tuned.predicted > 0
    check_gemm(tuned.compile())


def test_a_pack_is_tuned_where_it_is_compiled(tmp_path: Path) -> None:
    pack = canvas.load(Path(__file__).parents[2] / "examples/kernels/depthwise_separable.kernel")
    at = "C=8,H=6,W=6"
    plain, tuned = pack.compile(at=at), pack.compile(at=at, tune="oneshot")
    log = tmp_path / "log.jsonl"
    pack.compile(at=at, tune="random", seconds=4.0, log=log)
    kept = pack.compile(at=at, log=log)
    assert kept.schedule is not None
    assert pack.compile(at="C=16,H=6,W=6", log=log).schedule is None
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal(t.shape).astype(np.float32) for t in plain.inputs]
    for code in (tuned, kept):
        np.testing.assert_allclose(code(*arrays), plain(*arrays), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "best"}, "there is no search method 'best', give one of quick, oneshot,"),
        ({"trials": 0}, "trials is from 1 to 10000000, not 0"),
        ({"threads": -1}, "threads is from 1 to 10000000, not -1"),
        ({"seed": -1}, "seed is from 0 to 2^63-1, not -1"),
        ({"seconds": 0}, "seconds is a number above 0, not 0"),
        ({"sketch": "m => @C = m"}, "line 1, column 6"),
        ({"machine": "canvas 1\nmachine m\n"}, "vector_bytes"),
        ({"log": "/no/such/folder/log"}, "/no/such/folder/log"),
    ],
)
def test_what_is_wrong_is_one_message(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(canvas.CanvasError) as caught:
        canvas.tune(GEMM, **arguments)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_compile_takes_a_search_or_a_schedule() -> None:
    with pytest.raises(canvas.CanvasError, match="log is a path, not 5"):
        canvas.load(
            Path(__file__).parents[2] / "examples/kernels/depthwise_separable.kernel"
        ).compile(at="C=8,H=6,W=6", log=5)  # type: ignore[arg-type]
    pack = canvas.load(Path(__file__).parents[2] / "examples/kernels/depthwise_separable.kernel")
    with pytest.raises(canvas.CanvasError, match="leave 'schedule' away"):
        pack.compile(tune="quick", schedule="x")
    with pytest.raises(canvas.CanvasError, match="is for tuning"):
        pack.compile(seconds=1.0)


def tuner(log: Path, trials: int, seed: int = 1) -> subprocess.Popen[str]:
    code = (
        f"import canvas; canvas.tune({GEMM!r}, method='random', trials={trials}, seed={seed}, "
        f"log={str(log)!r})"
    )
    return subprocess.Popen([sys.executable, "-c", code], text=True, env=os.environ)


def trials_of(log: Path, seed: int = 1) -> list[str]:
    records = [json.loads(line) for line in log.read_text().splitlines()]
    return [r["schedule"] for r in records if r["screened"] and r["seed"] == seed]


def test_what_was_killed_goes_on_in_the_same_order(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert tuner(whole, 30).wait(timeout=120) == 0
    child = tuner(killed, 30)
    while not (killed.exists() and killed.stat().st_size):
        assert child.poll() is None
    child.kill()
    child.wait(timeout=60)
    assert tuner(killed, 30).wait(timeout=120) == 0
    assert trials_of(killed) == trials_of(whole)


def test_two_searches_share_a_log(tmp_path: Path) -> None:
    log, alone = tmp_path / "log.jsonl", tmp_path / "alone.jsonl"
    both = [tuner(log, 20, seed) for seed in (1, 2)]
    assert [child.wait(timeout=120) for child in both] == [0, 0]
    assert tuner(alone, 20, 2).wait(timeout=120) == 0
    assert len(trials_of(log)) == len(trials_of(log, 2)) == 20
    assert trials_of(log, 2) == trials_of(alone, 2)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_keeps_the_best_so_far(tmp_path: Path, number: signal.Signals) -> None:
    log, program = tmp_path / "log.jsonl", tmp_path / "gemm.program"
    program.write_text(GEMM.replace("24", "96").replace("20", "48"))
    words = [sys.executable, "-m", "canvas", "tune", str(program), "--log", str(log)]
    child = subprocess.Popen(
        [*words, "--method", "random", "--trials", "1000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    while not (log.exists() and log.stat().st_size):
        assert child.poll() is None
    child.send_signal(number)
    output, _ = child.communicate(timeout=120)
    assert child.returncode == 130
    assert output.startswith("gemm: ") and "schedules measured" in output
    kept = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(kept) < 1000 and all(r["screened"] and r["failure"] == "ok" for r in kept)


def test_no_time_for_trials_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that takes a minute for trials, which stand several to a file."""
    compiler = tmp_path / "slow-cc"
    compiler.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec gcc --version\n'
        "[ \"$(grep -c '^int candidate_[0-9]*(' unit.c)\" -gt 1 ] && sleep 60\n"
        'exec gcc "$@"\n'
    )
    compiler.chmod(0o700)
    monkeypatch.setenv("CANVAS_CC", str(compiler))
    with pytest.warns(UserWarning, match="no trial finished in time, the default schedule"):
        tuned = canvas.tune(GEMM, seconds=0.1)
    assert tuned.trials == 0 and tuned.rule == "default" and tuned.median > 0
    check_gemm(tuned.compile())
    words = ["tune", str(tmp_path / "gemm.program"), "--time", "100ms"]
    (tmp_path / "gemm.program").write_text(GEMM)
    done = subprocess.run(
        [sys.executable, "-m", "canvas", *words], capture_output=True, text=True, timeout=120
    )
    told = "note: gemm: no trial finished in time, the default schedule is used"
    assert done.returncode == 0 and told in done.stderr and "default; 0 of " in done.stdout


def test_a_sketch_without_a_legal_point_is_told() -> None:
    sketch = "mo, no, k, mi:{20,24}:unroll, ni:{64}:vec => @C = {mo, mi}/m, {no, ni}/n // k"
    with pytest.raises(canvas.CanvasError, match="none of 2 points is legal, mi=20,ni=64: line 1"):
        canvas.tune(GEMM, trials=2, sketch=sketch)


def test_ctrl_c_ends_a_search(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    code = f"import canvas; canvas.tune({GEMM!r}, method='random', trials=10**6, log={str(log)!r})"
    child = subprocess.Popen(
        [sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=os.environ
    )
    while not (log.exists() and log.stat().st_size):
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    _, error = child.communicate(timeout=60)
    assert "KeyboardInterrupt" in error
    assert log.read_text().endswith("\n")
