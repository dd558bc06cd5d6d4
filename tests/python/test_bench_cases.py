"""The benchmarks: the programs that they time are programs, and what they say of networks."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from canvas import _core

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import bench_network  # noqa: E402
import cost_cases  # noqa: E402
import native_cases  # noqa: E402
import network_worker  # noqa: E402
import tune_cases  # noqa: E402


def programs() -> Iterator[tuple[str, str]]:
    for name, case in {**cost_cases.CASES, **cost_cases.HELD_OUT}.items():
        yield f"cost: {name}", case.program()
    for group, cases in tune_cases.GROUPS.items():
        for tuned in cases():
            yield f"tune: {group}, {tuned.name}", tuned.program()
    for timed in native_cases.cases():
        for hand in timed.hands.values():
            yield f"native: {timed.name}, block {hand.block}", timed.program(hand.block)


def test_the_cases_are_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names = []
    for name, text in programs():
        inputs, outputs = _core.signature(text)[:2]
        assert inputs and outputs, name
        names.append(name)
    assert len(names) > 150


def test_hand_schedules_are_there() -> None:
    for case in native_cases.cases():
        for hand in case.hands.values():
            assert (ROOT / "bench" / "native" / f"{hand.schedule}.schedule").exists(), case.name


def test_what_rounds_more_is_compared_with_what_rounds_more() -> None:
    every = ["unchanged canvas", "unchanged canvas winograd", "unchanged compile"]
    assert network_worker.rivals_of("canvas", every) == [every[0], every[2]]
    assert network_worker.rivals_of("canvas winograd", every) == every


def test_a_goal_that_winograd_alone_meets_is_missed() -> None:
    row = {"network": "ResNet-18@32", "kernel": "unchanged", "batch": 1, "threads": 1}
    row |= {"canvas over compile": 1.8, "canvas winograd over compile": 2.06}
    told = bench_network.verdict(row)
    assert told == "missed (over compile 2, met with winograd: 2.06)"
    assert bench_network.verdict(row | {"canvas over compile": 1.97}) == "met (over compile 2)"
    row |= {"canvas winograd over compile": 1.9}
    assert bench_network.verdict(row) == "missed (over compile 2)"
