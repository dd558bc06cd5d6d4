"""canvas tune of a network: what won its trials is timed in the network, and the log keeps what is
faster there.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from canvas import _core

CANVAS = Path(__file__).parents[2] / "build" / "canvas"
SIZE = 192
NETWORK = f"""canvas 1
network two
program gemm
in A f32 [m:{SIZE}, k:{SIZE}]
in B f32 [k:{SIZE}, n:{SIZE}] const
C[m:{SIZE}, n:{SIZE}] = A[m, k] * B[k, n] // sum k:{SIZE}
out C
end
program relu
in X f32 [m:{SIZE}, n:{SIZE}]
Y[m:{SIZE}, n:{SIZE}] = max(X[m, n], 0)
out Y
end
in x f32 [{SIZE}, {SIZE}]
weight w f32 [{SIZE}, {SIZE}] from w
a f32 [{SIZE}, {SIZE}] = gemm(x, w)
b f32 [{SIZE}, {SIZE}] = relu(a)
c f32 [{SIZE}, {SIZE}] = gemm(b, w)
out c
"""
SLOW = "canvas 1\nschedule s\nn, m, k =>\n    @C = m, n // k\n"  # down the columns of B


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CANVAS_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.net").write_text(NETWORK)
    return tmp_path


def canvas(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(CANVAS), *words], capture_output=True, text=True, timeout=300)


def tune(*words: str) -> list[dict[str, Any]]:
    trials = ("--together", "--trials", "2", "--log", "log.jsonl", "--json")
    told = canvas("tune", "two.net", *trials, *words)
    assert told.returncode == 0, told.stderr
    return [json.loads(line) for line in told.stdout.splitlines()]


def records() -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()]


def task_of(program: str) -> str:
    """The hash by which a log names a program (src/tune/record.c)."""
    hashed = 0xCBF29CE484222325
    for byte in program.encode():
        hashed = (hashed ^ byte) * 0x100000001B3 % 2**64
        hashed ^= hashed >> 29
    return f"{hashed:016x}"


def plant(name: str = "gemm", ahead: int = 0) -> None:
    """As if it had won the trials of gemm, by far, and nothing had been timed in the network yet;
    `ahead` are seconds of a clock that is fast.
    """
    trials = [r for r in records() if not r["network"]]
    won = dict(next(r for r in trials if not r["screened"] and "program gemm\n" in r["program"]))
    won |= {"edits": None, "schedule": SLOW, "rule": "slow", "trial": 99, "median": 1e-9}
    won["program"] = won["program"].replace("program gemm\n", f"program {name}\n")
    won |= {"time": won["time"] + ahead, "task": task_of(won["program"])}
    Path("log.jsonl").write_text("".join(json.dumps(r) + "\n" for r in [*trials, won]))


def best(name: str) -> dict[str, Any]:
    told = canvas("log", "best", "log.jsonl", "--json")
    assert told.returncode == 0, told.stderr
    return next(r for r in map(json.loads, told.stdout.splitlines()) if name in r["program"])


def test_what_is_slower_in_the_network_is_not_taken() -> None:
    tune()
    plant()
    assert best("program gemm\n")["rule"] == "slow"
    slow = canvas("network", "two.net", "--time", "--json", "--log", "log.jsonl")
    *programs, network = tune()
    assert [program["name"] for program in programs] == ["gemm", "relu"]
    assert network["network"] == "two" and network["rounds"] >= 5
    gemm = next(p for p in network["programs"] if p["name"] == "gemm")
    assert (gemm["kept"], gemm["calls"]) == ("default", 2)
    assert gemm["default"] * 2 < gemm["tuned"]
    assert network["kept"] < network["tuned"] and network["default"] < network["tuned"]
    of_network = best("program gemm\n")
    assert (of_network["rule"], of_network["method"]) == ("default", "network")
    # Of one call, where the line of the network is of both.
    assert of_network["network"] == of_network["median"]
    assert of_network["median"] == pytest.approx(gemm["default"] / 2, rel=1e-4)
    assert of_network["lower"] <= of_network["median"] <= of_network["upper"]
    assert "as a call of a network" in canvas("log", "best", "log.jsonl").stdout
    edited = _core.replay_edits(of_network["program"], of_network["edits"] or "")
    Path("edited.program").write_text(edited)
    default = canvas("schedule", "print", "edited.program", "default").stdout
    assert of_network["schedule"] == default
    fast = canvas("network", "two.net", "--time", "--json", "--log", "log.jsonl")
    seconds = [json.loads(told.stdout)["seconds"] for told in (slow, fast)]
    assert seconds[1] * 2 < seconds[0]
    # What is tuned later counts again.
    (later,) = [r for r in records() if r["rule"] == "slow"]
    later |= {"time": best("program gemm\n")["time"] + 1}
    with Path("log.jsonl").open("a") as log:
        log.write(json.dumps(later) + "\n")
    assert best("program gemm\n")["rule"] == "slow"


@pytest.mark.parametrize(("name", "ahead"), [("other", 0), ("gemm", 100000)])
def test_records_of_other_names_and_of_fast_clocks_are_compared_too(name: str, ahead: int) -> None:
    tune()
    plant(name, ahead)
    *_, network = tune()
    first = network["programs"][0]
    assert (first["name"], first["kept"]) == ("gemm", "default")
    assert network["kept"] * 2 < network["tuned"]
    # What was kept is the default schedule, which is compared where a new trial is faster only.
    kept = next(
        r for r in reversed(records()) if r["network"] and "program gemm\n" in r["program"]
    )
    before = len(records())
    last = tune()[-1]
    new = [r for r in records()[before:] if "program gemm\n" in r["program"] and not r["network"]]
    timed = [r for r in new if r["median"] and not r["screened"] and r["time"] > kept["time"]]
    won = min([kept, *timed], key=lambda r: r["median"])
    is_default = [won[part] == kept[part] for part in ("schedule", "edits")] == [True, True]
    compared = "gemm" in [program["name"] for program in last.get("programs", [])]
    assert compared != is_default


def test_ctrl_c_in_the_network_is_told_by_the_exit_code() -> None:
    """While it is compiled or runs; nothing is logged of what was not timed to the end."""
    tune()
    plant()
    words = ("--together", "--trials", "2", "--log", "log.jsonl", "--json")
    tuner = subprocess.Popen(
        [str(CANVAS), "tune", "two.net", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert tuner.stdout
    programs = [json.loads(tuner.stdout.readline()) for _ in range(2)]
    tuner.send_signal(signal.SIGINT)
    said, errors = tuner.communicate(timeout=60)
    assert [program["name"] for program in programs] == ["gemm", "relu"]
    assert tuner.returncode == 130 and "stopped before the timing of the network" in errors
    assert not said and not [r for r in records() if r["network"]]


def test_ctrl_c_while_programs_are_tuned_says_that_the_network_was_not_timed() -> None:
    words = ("--together", "--trials", "100000", "--log", "log.jsonl", "--json")
    tuner = subprocess.Popen(
        [str(CANVAS), "tune", "two.net", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not Path("log.jsonl").exists() and time.monotonic() < end:
        time.sleep(0.05)
    tuner.send_signal(signal.SIGINT)
    said, errors = tuner.communicate(timeout=60)
    assert (
        tuner.returncode == 130 and errors.count("stopped before the timing of the network") == 1
    )
    assert '"network"' not in said and not [r for r in records() if r["network"]]


def test_where_the_default_schedules_have_won_nothing_is_timed_again() -> None:
    tune("--method", "oneshot")
    assert not Path("log.jsonl").exists() or not records()
    told = tune("--method", "oneshot")
    assert [t["name"] for t in told] == ["gemm", "relu"]


@pytest.mark.parametrize("words", [("--space", "1"), ()])
def test_without_a_log_there_is_no_line_of_the_network(words: tuple[str, ...]) -> None:
    told = canvas("tune", "two.net", "--together", "--trials", "2", *words)
    assert told.returncode == 0 and "network" not in told.stdout


def test_a_network_of_standard_input_is_tuned_without_it() -> None:
    words = ("tune", "-", "--together", "--trials", "2", "--log", "log.jsonl")
    told = subprocess.run(
        [str(CANVAS), *words], input=NETWORK, capture_output=True, text=True, timeout=300
    )
    assert told.returncode == 0, told.stderr
    assert "gemm: " in told.stdout and "as a network" not in told.stdout
