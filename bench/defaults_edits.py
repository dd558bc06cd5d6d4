"""`./dev bench defaults --edits N`: random edits of a schedule beside the default schedule.

Edits (edit_trials.py) are of the hand schedules of bench/native, or, with --only, of the default
schedule itself: of operators without a hand schedule and of the kernels of examples/kernels.
Edits that the core rejects or that give the same code do not count. Those whose tile cannot win
are not compiled: fewer sums than a multiply-add takes cycles, half more than there are
registers, or code three times as long. The best three are compiled alone and timed in turns with
the default on the same arrays; weights are packed beforehand. Rows go to build/defaults; --again
times the stored best.
"""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import native_cases
import numpy as np
import torch
from cases import Case as Operator
from compiled_program import (
    BUILD,
    ROOT,
    Arrays,
    Code,
    aligned,
    c_text,
    compiled,
    explained,
    in_turns,
    narrowed,
    random_inputs,
    ratio,
    this_machine,
)
from edit_trials import Candidate, Tries, edits
from native_cases import Case
from native_programs import constant, filled

from canvas import _core

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
    """The plain operator and its arrays."""
    case, block = inputs.case, inputs.case.hands[isa].block
    images = max(1, len(inputs.plain)) if case.goal == "torch" else 1
    if case.plain:
        name, *words = case.plain.split()
        program = _core.operator_program(name, " ".join(words))
        given = inputs.shared(case.plain_pack(inputs.plain))
    else:
        program, given = case.program(block), inputs.packed(block)
    gemv = case.name.startswith("gemv")
    return (program if gemv else constant(program, images)), given


def registers(text: str) -> int:
    """Registers of the largest stage, as `canvas schedule explain` counts them; 0: unknown."""
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
    """Of them and the first, timed in turns; 2 % are not a difference."""
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
    machine = narrowed(isa, this_machine())
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


# ---- edits of the default itself ----------------------------------------------------------------

WEIGHTED = ("3x3", "1x1", "7x7", "grouped", "dilated", "depth-wise", "transposed", "linear")


def scheduled(text: str) -> tuple[str, str]:
    """Program and schedule above the last function of the C text."""
    comment = re.findall(r"^/\* \w+, written by canvas .*?\*/", text, re.M | re.S)[-1]
    lines = [line.removeprefix(" *").removeprefix(" ") for line in comment.splitlines()[1:-1]]
    _, program, schedule = re.split(r"^canvas 1\n", "\n".join(lines) + "\n", flags=re.M)
    return f"canvas 1\n{program.rstrip()}\n", f"canvas 1\n{schedule}"


def same(code: Code, wanted: Arrays) -> bool:
    code.call()
    return all(np.abs(a - b).max() <= 1e-4 * np.abs(b).max() for a, b in zip(code.outputs, wanted))


def weights_constant(case: Operator) -> str:
    """Of operators with weights all inputs but the first are the same in many calls."""
    return constant(case.program, 1) if case.name.startswith(WEIGHTED) else case.program


def compiled_alone(found: list[Candidate], program: str, arrays: Arrays, machine: str,
                   wanted: Arrays, places: Arrays) -> list[tuple[Candidate, Code]]:  # fmt: skip
    made = [(one, compiled(program, arrays, one.schedule, machine, places)) for one in found]
    return [(one, code) for one, code in made if same(code, wanted)]


def measure_default(case: Operator, isa: str, count: int, samples: int) -> Row:
    machine = narrowed(isa, this_machine())
    program, schedule = scheduled(c_text(weights_constant(case), machine))
    arrays = random_inputs(program)
    default = compiled(program, arrays, schedule, machine)
    default.call()
    wanted = [output.copy() for output in default.outputs]
    first = Candidate(0, schedule, "default")
    tries = Tries(lambda block: program, machine, lambda program, schedule: False, first)
    tries.run(edits(first, count, isa, seed=1), count)
    found = compiled_alone(
        tries.best(FINALISTS), program, arrays, machine, wanted, default.outputs
    )
    one, best = fastest(default, found, first)
    times = in_turns([default.call] + ([best.call] if best is not default else []), samples, 6)
    return {
        "name": case.name,
        "isa": isa,
        "edits": tries.legal,
        "hopeless": tries.left_out,
        "wrong": tries.wrong,
        "best": one.what,
        "schedule": one.schedule,
        "default_us": 1e6 * statistics.median(times[0]),
        "best_us": 1e6 * statistics.median(times[-1]),
        "of_best": ratio(times[-1], times[0]),
    }


def run_defaults(
    cases: list[Operator], words: list[str], isa: str, count: int, samples: int
) -> Iterator[Row]:
    BUILD.mkdir(parents=True, exist_ok=True)
    for case in cases:
        if not words or any(word in case.name for word in words):
            row = measure_default(case, isa, count, samples)
            with (BUILD / "edits-of-defaults.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            yield row


# ---- what is printed ----------------------------------------------------------------------------


def line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']:34} {row['error']}"
    if "hand_us" not in row:
        return (
            f"{row['name']:34} default {row['default_us']:9.1f} us  best of {row['edits']} edits "
            f"{row['best_us']:9.1f} us {row['of_best']:5.2f}  {row['best']}"
        )
    return (
        f"{row['name']:24} default {row['default_us']:9.1f} us  hand {row['hand_us']:9.1f} us "
        f"{row['of_hand']:5.2f}  best of {row['edits']} edits "
        f"({row['hopeless']} not compiled) {row['best_us']:9.1f} us "
        f"{row['of_best']:5.2f} {row['kb']:6.1f} kB {row['compile_s']:5.2f} s  {row['best']}"
    )
