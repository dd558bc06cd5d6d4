"""The schedules of examples/schedules print canonically, are legal and compute what they should.

A comment of each names its program, another the numbers that fill its holes.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CANVAS = Path(sys.executable).parent / "canvas"
SCHEDULES = sorted((ROOT / "examples/schedules").glob("*.schedule"))
PROGRAMS = sorted((ROOT / "examples/programs").glob("*.program"))
MACHINES = sorted((ROOT / "examples/machines").glob("*.txt"))
EVERY = pytest.mark.parametrize("path", SCHEDULES, ids=lambda path: path.stem)

ALL = os.environ.get("CANVAS_TEST_ALL") == "1"
ON_EACH = pytest.mark.parametrize("machine", MACHINES, ids=lambda path: path.stem)
# test_emit.c compares the defaults for vectors of every width.
ON_ONE = pytest.mark.parametrize(
    "machine", MACHINES if ALL else MACHINES[:1], ids=lambda path: path.stem
)
WIDE = ["--machine", str(ROOT / "examples/machines/avx512.txt")]


def canvas(*words: str | Path, given: str = "") -> str:
    done = subprocess.run(
        [CANVAS, *words], input=given, capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(path: Path, word: str) -> str:
    """What the comment `# WORD: ...` says; "" without one."""
    found = re.search(rf"^# {word}: (.+)$", path.read_text(), re.M)
    return found[1] if found else ""


def numbers(path: Path) -> list[str]:
    return ["--set", said(path, "Values")] if said(path, "Values") else []


def without_head(text: str) -> str:
    return re.sub(r"^(#|canvas 1|schedule ).*\n", "", text, flags=re.M)


@EVERY
def test_print_is_stable(path: Path) -> None:
    program = said(path, "Program")
    once = canvas("schedule", "print", program, path)
    assert canvas("schedule", "print", program, "-", given=once) == once


@EVERY
def test_is_legal(path: Path) -> None:
    program = said(path, "Program")
    as_it_stands = canvas("schedule", "check", program, path, *WIDE)
    assert ("holes" in as_it_stands) == bool(numbers(path))
    assert "holes" not in canvas("schedule", "check", program, path, *numbers(path), *WIDE)


@pytest.mark.parametrize(
    "path", [path for path in SCHEDULES if numbers(path)], ids=lambda path: path.stem
)
def test_values_stand_beside_it(path: Path) -> None:
    """The second file is what --set makes of the first."""
    beside = path.with_name(f"{path.stem}_values.schedule")
    made = canvas("schedule", "print", said(path, "Program"), path, *numbers(path))
    assert without_head(beside.read_text()) == without_head(made)


def is_correct(program: str | Path, schedule: str | Path, machine: Path, *words: str) -> None:
    """Compiled, and compared with the interpreter; vectors may be wider than this machine's.
    Only a ':reg' buffer that a machine has too few registers for may be rejected.
    """
    command = [CANVAS, "run", program, "--schedule", schedule, "--machine", machine, *words]
    done = subprocess.run(
        [*command, "--repeats", "1"], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    few = "':reg' buffer" in done.stderr and "the machine has 16" in done.stderr
    assert few or ": correct (" in done.stdout, done.stdout + done.stderr


@ON_EACH
@pytest.mark.parametrize(
    "path",
    # What --set makes of another is that: test_values_stand_beside_it.
    [path for path in SCHEDULES if ALL or not path.stem.endswith("_values")],
    ids=lambda path: path.stem,
)
def test_computes_what_the_program_says(path: Path, machine: Path) -> None:
    is_correct(said(path, "Program"), path, machine, *numbers(path))


@ON_ONE
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_the_default_computes_what_the_program_says(path: Path, machine: Path) -> None:
    is_correct(path, "default", machine)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_has_a_default(path: Path) -> None:
    text = canvas("schedule", "print", path, "default")
    assert canvas("schedule", "print", path, "-", given=text) == text
    assert canvas("schedule", "check", path, "default").startswith("ok")
