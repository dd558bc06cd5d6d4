"""Hand schedules of bench/native and random edits of them, beside the default schedule.

An edit draws the block that weights are packed in, a number of the schedule, the order of two
loops around the tile, or a mark of a reduction. Edits that the core rejects do not count, nor do
those that give the same code. Those whose tile cannot win by the numbers of `canvas schedule
explain` (fewer sums than a multiply-add takes cycles, or half more than there are registers) or
whose code is three times as long are not compiled; all others are, many at once
(defaults_many.py), and the best three are compiled alone and timed by turns with the default and
the hand schedule, on the same arrays. The default is of the same operator, its weights prepared
beforehand as those of the hand schedule are packed. Rows go to build/defaults/edits.jsonl as they
come; --again times the best from there beside the default of today.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import machines
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
    ratio,
)
from defaults_many import Candidate, Tries
from native_cases import Case
from native_programs import constant, filled

from canvas import _core

BLOCKS = {"avx512": (16, 32, 48, 64), "avx2": (8, 16, 24, 32)}
NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 48, 64, 96, 128)
FINALISTS = 3
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9}
COLUMNS = ("in code", "registers")
ROWS = ("softmax", "layer norm", "gelu", "gemv", "attention")  # lanes divide them
FEWEST, MOST = 5, 1.5  # registers of a tile that may win: the second of those that there are
Row = dict[str, Any]


def hand(case: Case, isa: str) -> Candidate:
    given = case.hands[isa]
    text = (ROOT / "bench" / "native" / f"{given.schedule}.schedule").read_text()
    return Candidate(given.block, filled(text, given.values), "hand")


def edit_number(trial: Candidate, rng: random.Random) -> Candidate | None:
    names = sorted(set(re.findall(r"\b(\w+):\d+", trial.schedule)))
    if not names:
        return None
    name, number = rng.choice(names), rng.choice(NUMBERS)
    text = re.sub(rf"\b{name}:\d+", f"{name}:{number}", trial.schedule)
    return replace(trial, schedule=text, what=f"{trial.what}, {name}={number}")


def edit_order(trial: Candidate, rng: random.Random) -> Candidate | None:
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


def edit_unroll(trial: Candidate, rng: random.Random) -> Candidate | None:
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


def edit_block(trial: Candidate, rng: random.Random, isa: str) -> Candidate | None:
    if not trial.block:
        return None
    block = rng.choice(BLOCKS[isa])
    return replace(trial, block=block, what=f"{trial.what}, block {block}")


def edits(first: Candidate, count: int, isa: str, seed: int) -> Iterator[Candidate]:
    """One to three edits each, no two alike."""
    rng, seen = random.Random(seed), {(first.block, first.schedule)}
    for _ in range(20 * count):
        trial: Candidate | None = first
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
    table = text.partition("\nstage ")[2].partition("\n\n")[0].splitlines()
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


def is_hopeless(program: str, schedule: str, machine: str) -> bool:
    """A sum that waits for itself, or whose tile does not fit into the registers by far."""
    used = registers(explained(program, schedule, machine))
    held = int(re.findall(r"vector_registers (\d+)", machine)[0])
    return bool(used) and (used < FEWEST or used > MOST * held)


def finalists(
    inputs: Inputs, found: list[Candidate], machine: str, places: Arrays
) -> list[tuple[Candidate, Code]]:
    """Those that are right, compiled as they are in the end."""
    made = []
    for one in found:
        try:
            program, arrays = inputs.case.program(one.block), inputs.packed(one.block)
            code = compiled(program, arrays, one.schedule, machine, places)
        except ValueError:
            continue  # weights do not come in such blocks
        if right(code, inputs.wanted):
            made.append((one, code))
    return made


def fastest(first: Code, found: list[tuple[Candidate, Code]], hand: Candidate
            ) -> tuple[Candidate, Code]:  # fmt: skip
    """Of them and the first, by turns; 2 % are not a difference."""
    times = in_turns([first.call, *(code.call for _, code in found)], 9, 3)
    gains = [ratio(times[0], taken) for taken in times[1:]]
    if not gains or max(gains) <= 1.02:
        return hand, first
    return found[gains.index(max(gains))]


def timed(row: Row, default: Code, hand_code: Code, best: Code, samples: int) -> Row:
    calls = [default.call, hand_code.call] + ([best.call] if best is not hand_code else [])
    times = in_turns(calls, samples, 6)
    for name, taken in zip(("default", "hand", "best"), [*times, times[-1]]):
        row[f"{name}_us"] = 1e6 * statistics.median(taken)
    return row | {"of_hand": ratio(times[1], times[0]), "of_best": ratio(times[-1], times[0])}


def blocks(case: Case, isa: str) -> Callable[[Candidate], bool]:
    """Whether a candidate's block divides what it is a block of."""
    known: dict[int, bool] = {}
    points = _core.signature(case.program(case.hands[isa].block))[1][0][2]

    def fits(one: Candidate) -> bool:
        if one.block not in known:
            shape = _core.signature(case.program(one.block))[1][0][2]
            even = not case.name.startswith(ROWS) or one.block & (one.block - 1) == 0
            known[one.block] = even and math.prod(shape) == math.prod(points)
        return known[one.block]

    return fits


def search(case: Case, first: Candidate, isa: str, machine: str, count: int) -> Tries:
    def hopeless(program: str, schedule: str) -> bool:
        return bool(case.fmas) and is_hopeless(program, schedule, machine)

    tries = Tries(case.program, machine, hopeless, first)
    tries.run(filter(blocks(case, isa), edits(first, count, isa, seed=1)), count)
    return tries


def measure(case: Case, isa: str, count: int, samples: int, known: Row | None) -> Row:
    """`known`: a row of before, of which only the best is timed again."""
    machine = machines.narrowed(isa, machines.this())
    inputs = Inputs(case)
    program, arrays = default_of(inputs, isa)
    default = compiled(program, arrays, None, machine)
    row: Row = {"name": case.name, "batch": case.batch, "isa": isa}
    row |= {"kb": len(c_text(program, machine)) / 1000, "compile_s": default.seconds}
    if not right(default, inputs.wanted):
        return row | {"error": "the default is wrong"}
    first = hand(case, isa)
    hand_program, hand_arrays = case.program(first.block), inputs.packed(first.block)
    code = compiled(hand_program, hand_arrays, first.schedule, machine, default.outputs)
    if not right(code, inputs.wanted):
        return row | {"error": "the hand schedule is wrong"}
    if known:
        found = [Candidate(known["block"], known["schedule"], known["best"])]
        row |= {key: known[key] for key in ("edits", "hopeless", "wrong")}
    else:
        tries = search(case, first, isa, machine, count)
        found = tries.best(FINALISTS)
        row |= {"edits": tries.legal, "hopeless": tries.left_out, "wrong": tries.wrong}
    one, best = fastest(code, finalists(inputs, found, machine, default.outputs), first)
    row |= {"best": one.what, "block": one.block, "schedule": one.schedule}
    return timed(row, default, code, best, samples)


def stored(path: Path) -> dict[tuple[str, str], Row]:
    if not path.exists():
        return {}
    rows = [json.loads(text) for text in path.read_text().splitlines()]
    return {(row["name"], row["isa"]): row for row in rows if "of_best" in row}


def run(words: list[str], isa: str, count: int, samples: int, again: bool) -> Iterator[Row]:
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / "edits.jsonl"
    known = stored(path) if again else {}
    for case in native_cases.cases():
        text = f"{case.name} b{case.batch}"
        if case.batch == 1 and (not words or any(word in text for word in words)):
            row = measure(case, isa, count, samples, known.get((case.name, isa)))
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
