"""The programs that the benchmarks of native code, schedules and tuning time are programs."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from canvas import _core

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import cost_cases  # noqa: E402
import native_cases  # noqa: E402
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
