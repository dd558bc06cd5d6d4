"""Random edits of default schedules: operators that nobody wrote a schedule for, and the kernels
of examples/kernels at layers of ResNet-18.

The edits (numbers, orders, unrolling: defaults_edits.py) are of the default itself, as it stands
above the C code, of what is left of the program once its weights are prepared. The best of them
are timed by turns with the default at the end.
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator

import machines
import numpy as np
from defaults_cases import Case
from defaults_code import (
    BUILD,
    Arrays,
    Code,
    c_text,
    compiled,
    in_turns,
    random_inputs,
    ratio,
)
from defaults_edits import FINALISTS, Row, edits, fastest
from defaults_many import Candidate, Tries
from native_programs import constant

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


def weights_constant(case: Case) -> str:
    """Of operators with weights all inputs but the first are the same in many calls."""
    return constant(case.program, 1) if case.name.startswith(WEIGHTED) else case.program


def compiled_alone(found: list[Candidate], program: str, arrays: Arrays, machine: str,
                   wanted: Arrays, places: Arrays) -> list[tuple[Candidate, Code]]:  # fmt: skip
    made = [(one, compiled(program, arrays, one.schedule, machine, places)) for one in found]
    return [(one, code) for one, code in made if same(code, wanted)]


def measure(case: Case, isa: str, count: int, samples: int) -> Row:
    machine = machines.narrowed(isa, machines.this())
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


def run(cases: list[Case], words: list[str], isa: str, count: int, samples: int) -> Iterator[Row]:
    BUILD.mkdir(parents=True, exist_ok=True)
    for case in cases:
        if not words or any(word in case.name for word in words):
            row = measure(case, isa, count, samples)
            with (BUILD / "edits-of-defaults.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            yield row


def line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']:34} {row['error']}"
    return (
        f"{row['name']:34} default {row['default_us']:9.1f} us  best of {row['edits']} edits "
        f"{row['best_us']:9.1f} us {row['of_best']:5.2f}  {row['best']}"
    )
