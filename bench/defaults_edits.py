"""Hand schedules of bench/native and random edits of them, beside the default schedule.

An edit draws the block that weights are packed in, a number of the schedule, the order of two
loops around the tile, or a mark of a reduction. Edits that the core rejects do not count. All are
called once; one that takes longer than 1.3 times the best so far is not called again.
The default is of the same operator, its weights prepared beforehand as those of the hand schedule
are packed.
"""

from __future__ import annotations

import random
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import native_cases
import numpy as np
from defaults_code import ROOT, Arrays, Code, c_text, compiled, in_turns, machine_text, once, ratio
from native_cases import Case

from canvas import _core

BLOCKS = {"avx512": (16, 32, 48, 64), "avx2": (8, 16, 24, 32)}
NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 96, 128)
HOPELESS = 1.3
Row = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    block: int
    schedule: str  # its holes filled
    what: str


def filled(text: str, values: str) -> str:
    for value in filter(None, values.split(",")):
        name, number = value.split("=")
        text = re.sub(rf"\b{name}:\?", f"{name}:{number}", text)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("#"))


def hand(case: Case, isa: str) -> Trial:
    given = case.hands[isa]
    text = (ROOT / "bench" / "native" / f"{given.schedule}.schedule").read_text()
    return Trial(given.block, filled(text, given.values), "hand")


def edit_number(trial: Trial, rng: random.Random) -> Trial | None:
    names = sorted(set(re.findall(r"\b(\w+):\d+", trial.schedule)))
    if not names:
        return None
    name, number = rng.choice(names), rng.choice(NUMBERS)
    text = re.sub(rf"\b{name}:\d+", f"{name}:{number}", trial.schedule)
    return replace(trial, schedule=text, what=f"{trial.what}, {name}={number}")


def edit_order(trial: Trial, rng: random.Random) -> Trial | None:
    """Two neighbours of a line change places."""
    lines = trial.schedule.splitlines()
    rows = [i for i, line in enumerate(lines) if line.count(",") and line.rstrip().endswith("=>")]
    if not rows:
        return None
    row = rng.choice(rows)
    indent = re.match(r" *", lines[row])
    loops = [loop.strip() for loop in lines[row].replace("=>", "").split(",")]
    at = rng.randrange(len(loops) - 1)
    loops[at], loops[at + 1] = loops[at + 1], loops[at]
    lines[row] = f"{indent[0] if indent else ''}{', '.join(loops)} =>"
    what = f"{trial.what}, {loops[at].split(':')[0]} before {loops[at + 1].split(':')[0]}"
    return replace(trial, schedule="\n".join(lines) + "\n", what=what)


def edit_unroll(trial: Trial, rng: random.Random) -> Trial | None:
    reduced = re.findall(r"// *(.*)", trial.schedule)
    names = [name.strip() for part in reduced for name in part.split(",") if "/" not in name]
    if not names:
        return None
    name = rng.choice(names)
    marked = re.search(rf"\b{name}:unroll", trial.schedule)
    pattern, new = (rf"\b{name}:unroll", name) if marked else (rf"\b{name}\b(?=,| =>)", "")
    text = re.sub(pattern, new or f"{name}:unroll", trial.schedule, count=1)
    return replace(
        trial, schedule=text, what=f"{trial.what}, {name} {'not ' * bool(marked)}unrolled"
    )


def edit_block(trial: Trial, rng: random.Random, isa: str) -> Trial | None:
    if not trial.block:
        return None
    block = rng.choice(BLOCKS[isa])
    return replace(trial, block=block, what=f"{trial.what}, block {block}")


def edits(first: Trial, count: int, isa: str, seed: int) -> Iterator[Trial]:
    """One to three edits each, no two alike."""
    rng, seen = random.Random(seed), {(first.block, first.schedule)}
    for _ in range(20 * count):
        trial: Trial | None = first
        for _ in range(rng.choice((1, 1, 2, 2, 3))):
            kind = rng.randrange(5)
            if trial is None:
                break
            if kind < 2:
                trial = edit_number(trial, rng)
            elif kind == 2:
                trial = edit_order(trial, rng)
            elif kind == 3:
                trial = edit_unroll(trial, rng)
            else:
                trial = edit_block(trial, rng, isa)
        if trial and (trial.block, trial.schedule) not in seen:
            seen.add((trial.block, trial.schedule))
            yield trial


def constant(program: str, images: int) -> str:
    """All inputs but the first `images` are the same in many calls."""
    lines, seen = program.splitlines(), 0
    for number, line in enumerate(lines):
        if line.startswith("in "):
            seen += 1
            if seen > images and not line.endswith(" const"):
                lines[number] = line + " const"
    return "\n".join(lines) + "\n"


def right(code: Code, wanted: np.ndarray) -> bool:
    code.call()
    error = np.abs(code.outputs[0].reshape(-1) - wanted.reshape(-1)).max() / np.abs(wanted).max()
    return bool(error < 1e-4)


def wanted_of(case: Case, arrays: Arrays) -> np.ndarray:
    import torch

    tensors = [torch.from_numpy(a) for a in arrays]
    for image in case.images:
        tensors[image] = tensors[image].permute(0, 3, 1, 2)
    result = case.torch(*tensors)
    if case.images:
        result = result.permute(0, 2, 3, 1)
    return np.ascontiguousarray(result.numpy())


def default_of(case: Case, isa: str) -> tuple[str, Arrays]:
    """The operator as it stands, and its arrays."""
    block, arrays = case.hands[isa].block, case.arrays()
    images = max(1, len(arrays)) if case.goal == "torch" else 1
    if case.plain and case.plain_pack:
        name, *words = case.plain.split()
        program, given = _core.operator_program(name, " ".join(words)), case.plain_pack(arrays)
    else:
        program, given = case.program(block), case.pack(arrays, block)
    gemv = case.name.startswith("gemv")
    return (program if gemv else constant(program, images)), given


def tried(case: Case, isa: str, trial: Trial, machine: str | None) -> Code | None:
    try:
        program = case.program(trial.block)
        arrays = case.pack(case.arrays(), trial.block)
        return compiled(program, arrays, trial.schedule, machine)
    except (ValueError, ZeroDivisionError):
        return None


def measure(case: Case, isa: str, count: int, samples: int) -> Row:
    machine = machine_text(isa)
    wanted = wanted_of(case, case.arrays())
    program, arrays = default_of(case, isa)
    default = compiled(program, arrays, None, machine)
    row: Row = {"name": case.name, "batch": case.batch, "isa": isa, "edits": 0}
    row |= {"kb": len(c_text(program, machine)) / 1000, "compile_s": default.seconds}
    if not right(default, wanted):
        return row | {"error": "the default is wrong"}
    first = hand(case, isa)
    code = tried(case, isa, first, machine)
    if not code or not right(code, wanted):
        return row | {"error": "the hand schedule is wrong"}
    best, hand_code = (first, code), code
    best_time = min(once(code.call) for _ in range(3))
    for trial in edits(first, count, isa, seed=1):
        code = tried(case, isa, trial, machine)
        if not code:
            continue
        row["edits"] += 1
        if right(code, wanted) and once(code.call) < HOPELESS * best_time:
            theirs, ours = in_turns([best[1].call, code.call], 5, 1)
            if ratio(theirs, ours) > 1.02:
                best, best_time = (trial, code), min(statistics.median(ours), best_time)
        if row["edits"] == count:
            break
    times = in_turns([default.call, hand_code.call, best[1].call], samples, 4)
    row |= {
        f"{n}_us": 1e6 * statistics.median(t) for n, t in zip(("default", "hand", "best"), times)
    }
    row |= {"of_hand": ratio(times[1], times[0]), "of_best": ratio(times[2], times[0])}
    return row | {"best": best[0].what}


def run(words: list[str], isa: str, count: int, samples: int) -> Iterator[Row]:
    for case in native_cases.cases():
        text = f"{case.name} b{case.batch}"
        if case.batch == 1 and (not words or any(word in text for word in words)):
            yield measure(case, isa, count, samples)


def line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']:24} {row['error']}"
    return (
        f"{row['name']:24} default {row['default_us']:9.1f} us  hand {row['hand_us']:9.1f} us "
        f"{row['of_hand']:5.2f}  best of {row['edits']} edits {row['best_us']:9.1f} us "
        f"{row['of_best']:5.2f} {row['kb']:6.1f} kB {row['compile_s']:5.2f} s  {row['best']}"
    )
