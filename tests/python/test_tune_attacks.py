"""Attacks on the tuner from outside: killed and resumed, two on one log, a full disk, and every
record of a log replayed.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CANVAS = Path(sys.executable).parent / "canvas"
GEMM = """canvas 1
program gemm
in A f32 [m:24, k:20]
in B f32 [k:20, n:64]
Y[m:24, n:64] = A[m, k] * B[k, n] // sum k:20
out Y
"""
ROWS = """canvas 1
program rows
in X f32 [h:24, w:40]
Y[h:24] = X[h, w] // sum w:40
out Y
"""


def canvas(*words, **more):
    words = [str(CANVAS), *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, **more)


def records(log):
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two programs, and a log of both."""
    folder = tmp_path_factory.mktemp("attacks")
    (folder / "gemm.program").write_text(GEMM)
    (folder / "rows.program").write_text(ROWS)
    for name in ("gemm", "rows"):
        words = ("--method", "random", "--trials", 6, "--log", folder / "both.log")
        assert canvas("tune", folder / f"{name}.program", *words).returncode == 0
    return folder


def test_every_record_replays_to_the_code_of_its_texts(folder):
    made = records(folder / "both.log")
    assert {record["program"] for record in made} == {GEMM, ROWS}
    for record in made:
        assert record["failure"] == "ok", record["message"]
        one = folder / "one.log"
        one.write_text(json.dumps({**record, "screened": False}) + "\n")
        (folder / "its.program").write_text(record["edited"] or record["program"])
        (folder / "its.schedule").write_text(record["schedule"])
        replayed = canvas("log", "replay", one, "--any")
        words = ("--schedule", folder / "its.schedule", "--emit", "c", "-o", "-")
        assert replayed.stdout and replayed.stdout == canvas("log", "replay", one, "--any").stdout
        assert replayed.stdout == canvas("compile", folder / "its.program", *words).stdout
    best = [canvas("log", "replay", folder / "both.log", "--task", r["task"]) for r in made]
    assert len({done.stdout for done in best}) == 2 and all(not done.returncode for done in best)


def test_two_tuners_on_one_log(folder):
    """Of one program and of two: nothing is damaged, lost or mixed up."""
    log = folder / "shared.log"
    tuners = []
    for name, seed in (("gemm", 1), ("gemm", 2), ("rows", 1)):
        words = ["--method", "random", "--trials", "6", "--seed", str(seed), "--log", str(log)]
        words = [str(CANVAS), "tune", str(folder / f"{name}.program"), *words]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        tuners.append(subprocess.Popen(words, **quiet))
    assert [tuner.wait(timeout=120) for tuner in tuners] == [0, 0, 0]
    for program, seed in ((GEMM, 1), (GEMM, 2), (ROWS, 1)):
        own = [r for r in records(log) if r["program"] == program and r["seed"] == seed]
        trials = [r["trial"] for r in own if r["screened"]]
        assert trials == list(range(len(trials))) and 4 <= len(trials) <= 6
        assert sum(not r["screened"] for r in own) == 1


def test_killed_and_resumed_is_the_same_search(folder):
    program, log, whole = folder / "gemm.program", folder / "killed.log", folder / "whole.log"
    words = ("tune", program, "--method", "random", "--trials", 24, "--seed", 5)
    killed = subprocess.Popen(
        [str(CANVAS), *map(str, words), "--log", str(log)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 60
    while not (log.exists() and log.read_text().count("\n") >= 3):
        assert time.monotonic() < deadline and killed.poll() is None
        time.sleep(0.002)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    before = log.read_text().rpartition("\n")[0].count("\n") + 1
    assert 3 <= before <= 24
    assert canvas(*words, "--log", log).returncode == 0
    assert canvas(*words, "--log", whole).returncode == 0
    resumed, all_at_once = (
        [(r["trial"], r["edited"], r["schedule"]) for r in records(path) if r["screened"]]
        for path in (log, whole)
    )
    assert resumed == all_at_once


def test_a_full_disk_is_one_message(folder):
    """And the log before it stays as it was: whole lines, to go on from."""
    log, program = folder / "full.log", folder / "gemm.program"
    words = ("tune", program, "--method", "random", "--trials", 4, "--log", log)
    size = 4 << 20
    first = (folder / "both.log").read_text().splitlines()[0] + "\n"
    given = first + "\n" * (size - len(first) - 2000)  # blank lines are fine
    log.write_text(given)

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    full = canvas(*words, preexec_fn=limit)
    assert full.returncode == 2 and full.stdout == ""
    said = full.stderr.splitlines()[-1]
    assert said == f"canvas: gemm: cannot write to the log '{log}': File too large"
    after = log.read_text()
    assert after.startswith(given) and after.endswith("\n")
    assert all(json.loads(line)["canvas_log"] for line in after.splitlines() if line)
