"""Hand schedules of bench/native and random edits of them, beside the default schedule.

An edit draws the block that weights are packed in, a number of the schedule, the order of two
loops around the tile, or a mark of a reduction. Edits that the core rejects do not count. Those
whose tile cannot win by the numbers of `canvas schedule explain` are not compiled (--every does):
fewer sums than a multiply-add takes cycles, or half more than there are registers. All others are
called once; one that takes longer than 1.3 times the best so far is not called again. The best of
them is timed by turns with the default and the hand schedule at the end, on the same arrays.
The default is of the same operator, its weights prepared beforehand as those of the hand schedule
are packed. Rows go to build/defaults/edits.jsonl as they come; --again takes the best from there
and times it beside the default of today.
"""

from __future__ import annotations

import json
import random
import re
import statistics
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import native_cases
import numpy as np
import torch
from defaults_code import (
    BUILD,
    ROOT,
    Arrays,
    Code,
    aligned,
    c_text,
    compiled,
    explained,
    in_turns,
    machine_text,
    once,
    ratio,
)
from native_cases import Case
from native_programs import constant, filled

from canvas import _core

BLOCKS = {"avx512": (16, 32, 48, 64), "avx2": (8, 16, 24, 32)}
NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 96, 128)
HOPELESS = 1.3
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}
COLUMNS = ("in code", "registers")
FEWEST, MOST = 5, 1.5  # registers of a tile that may win: the second of those that there are
Row = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    block: int
    schedule: str  # its holes filled
    what: str


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


def right(code: Code, wanted: np.ndarray) -> bool:
    code.call()
    error = np.abs(code.outputs[0].reshape(-1) - wanted.reshape(-1)).max() / np.abs(wanted).max()
    return bool(error < 1e-4)


def wanted_of(case: Case, arrays: Arrays) -> np.ndarray:
    tensors = [torch.from_numpy(array) for array in arrays]
    for image in case.images:
        tensors[image] = tensors[image].permute(0, 3, 1, 2)
    result = case.torch(*tensors)
    if case.images:
        result = result.permute(0, 2, 3, 1)
    return np.ascontiguousarray(result.numpy())


class Inputs:
    """The arrays of a case: the same ones for every contender that takes them."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.plain = aligned(case.arrays())
        self.wanted = wanted_of(case, self.plain)
        self.packs: dict[int, Arrays] = {}

    def packed(self, block: int) -> Arrays:
        if block not in self.packs:
            self.packs[block] = self.shared(self.case.pack(self.plain, block))
        return self.packs[block]

    def shared(self, arrays: Arrays) -> Arrays:
        """Those of `plain` where they are the same."""
        found = []
        for array in arrays:
            same = [x for x in self.plain if np.shares_memory(x, array) and x.shape == array.shape]
            found.append(same[0] if same else aligned([array])[0])
        return found


def default_of(inputs: Inputs, isa: str) -> tuple[str, Arrays]:
    """The operator as it stands, and its arrays."""
    case, block = inputs.case, inputs.case.hands[isa].block
    images = max(1, len(inputs.plain)) if case.goal == "torch" else 1
    if case.plain and case.plain_pack:
        name, *words = case.plain.split()
        program = _core.operator_program(name, " ".join(words))
        given = inputs.shared(case.plain_pack(inputs.plain))
    else:
        program, given = case.program(block), inputs.packed(block)
    gemv = case.name.startswith("gemv")
    return (program if gemv else constant(program, images)), given


def registers(text: str) -> int:
    """Of the stage with the most operations, as `canvas schedule explain` tells it; 0: unknown."""
    table = text.partition("\nstage ")[2].splitlines()
    if not table:
        return 0
    begin, end = (table[0].index(word) + len("stage ") + len(word) for word in COLUMNS)
    most, found = 0.0, 0
    for row in table[1:]:
        words = row.split()
        if not words or words[0] == "all":
            continue
        flops = float(words[1]) * UNITS.get(words[2], 1)
        if flops > most:
            most, found = flops, int(row[begin:end].strip() or 0)
    return found


def is_hopeless(case: Case, program: str, trial: Trial, machine: str) -> bool:
    """A sum that waits for itself, or whose tile does not fit into the registers by far."""
    if not case.fmas:
        return False
    used = registers(explained(program, trial.schedule, machine))
    held = int(re.findall(r"vector_registers (\d+)", machine)[0])
    return bool(used) and (used < FEWEST or used > MOST * held)


@dataclass
class Search:
    """The best of the edits so far."""

    inputs: Inputs
    machine: str
    best: tuple[Trial, Code]
    best_time: float
    tried: int = 0  # edits that the core takes
    hopeless: int = 0  # ... of which so many were not compiled

    def legal(self, trial: Trial, every: bool) -> Code | None:
        case = self.inputs.case
        try:
            program = case.program(trial.block)
            if not every and is_hopeless(case, program, trial, self.machine):
                self.hopeless += 1
                self.tried += 1
                return None
            code = compiled(program, self.inputs.packed(trial.block), trial.schedule, self.machine)
        except (ValueError, ZeroDivisionError):
            return None
        self.tried += 1
        return code

    def take(self, trial: Trial, every: bool) -> None:
        code = self.legal(trial, every)
        if not code or not right(code, self.inputs.wanted):
            return
        if once(code.call) > HOPELESS * self.best_time:
            return
        theirs, ours = in_turns([self.best[1].call, code.call], 7, 1)
        if ratio(theirs, ours) > 1.02:
            self.best = (trial, code)
            self.best_time = min(statistics.median(ours), self.best_time)


def timed(row: Row, default: Code, hand_code: Code, best: Code, samples: int) -> Row:
    calls = [default.call, hand_code.call] + ([best.call] if best is not hand_code else [])
    times = in_turns(calls, samples, 6)
    for name, taken in zip(("default", "hand", "best"), [*times, times[-1]]):
        row[f"{name}_us"] = 1e6 * statistics.median(taken)
    return row | {"of_hand": ratio(times[1], times[0]), "of_best": ratio(times[-1], times[0])}


def measure(case: Case, isa: str, count: int, samples: int, every: bool, known: Row | None) -> Row:
    """`known`: a row of before, of which only the best is timed again."""
    machine = machine_text(isa)
    assert machine is not None
    inputs = Inputs(case)
    program, arrays = default_of(inputs, isa)
    default = compiled(program, arrays, None, machine)
    row: Row = {"name": case.name, "batch": case.batch, "isa": isa}
    row |= {"kb": len(c_text(program, machine)) / 1000, "compile_s": default.seconds}
    if not right(default, inputs.wanted):
        return row | {"error": "the default is wrong"}
    first = hand(case, isa)
    code = compiled(case.program(first.block), inputs.packed(first.block), first.schedule, machine)
    if not right(code, inputs.wanted):
        return row | {"error": "the hand schedule is wrong"}
    search = Search(inputs, machine, (first, code), min(once(code.call) for _ in range(3)))
    if known:
        if known["best"] != "hand":
            search.take(Trial(known["block"], known["schedule"], known["best"]), True)
        search.tried, search.hopeless = known["edits"], known["hopeless"]
    for trial in [] if known else edits(first, count, isa, seed=1):
        search.take(trial, every)
        if search.tried >= count:
            break
    trial, best = search.best
    row |= {"edits": search.tried, "hopeless": search.hopeless, "best": trial.what}
    row |= {"block": trial.block, "schedule": trial.schedule}
    return timed(row, default, code, best, samples)


def stored(path: Path) -> dict[tuple[str, str], Row]:
    if not path.exists():
        return {}
    rows = [json.loads(text) for text in path.read_text().splitlines()]
    return {(row["name"], row["isa"]): row for row in rows if "of_best" in row}


def run(
    words: list[str], isa: str, count: int, samples: int, every: bool, again: bool
) -> Iterator[Row]:
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / "edits.jsonl"
    known = stored(path) if again else {}
    for case in native_cases.cases():
        text = f"{case.name} b{case.batch}"
        if case.batch == 1 and (not words or any(word in text for word in words)):
            row = measure(case, isa, count, samples, every, known.get((case.name, isa)))
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            yield row


def line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']:24} {row['error']}"
    return (
        f"{row['name']:24} default {row['default_us']:9.1f} us  hand {row['hand_us']:9.1f} us "
        f"{row['of_hand']:5.2f}  best of {row['edits']} edits "
        f"({row['hopeless']} not compiled) {row['best_us']:9.1f} us "
        f"{row['of_best']:5.2f} {row['kb']:6.1f} kB {row['compile_s']:5.2f} s  {row['best']}"
    )
