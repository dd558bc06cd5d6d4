"""Random edits of default schedules: the kernels of examples/kernels at layers of ResNet-18.

Nobody wrote a schedule for them, so that the edits (numbers, orders, unrolling: defaults_edits.py)
are of the default itself, as it stands above the C code, of what is left of the program once its
weights are prepared. The best of them is timed by turns with the default at the end.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator

import numpy as np
from defaults_cases import Case, example_kernels
from defaults_code import (
    Arrays,
    Code,
    c_text,
    compiled,
    in_turns,
    machine_text,
    once,
    random_inputs,
    ratio,
)
from defaults_edits import HOPELESS, Row, Trial, edits


def scheduled(text: str) -> tuple[str, str]:
    """Program and schedule above the last function of the C text."""
    comment = re.findall(r"^/\* \w+, written by canvas .*?\*/", text, re.M | re.S)[-1]
    lines = [line.removeprefix(" *").removeprefix(" ") for line in comment.splitlines()[1:-1]]
    _, program, schedule = re.split(r"^canvas 1\n", "\n".join(lines) + "\n", flags=re.M)
    return f"canvas 1\n{program.rstrip()}\n", f"canvas 1\n{schedule}"


def same(code: Code, wanted: Arrays) -> bool:
    code.call()
    return all(np.abs(a - b).max() <= 1e-4 * np.abs(b).max() for a, b in zip(code.outputs, wanted))


def measure(case: Case, isa: str, count: int, samples: int) -> Row:
    machine = machine_text(isa)
    program, schedule = scheduled(c_text(case.program, machine))
    arrays = random_inputs(program)
    default = compiled(program, arrays, schedule, machine)
    default.call()
    wanted = [output.copy() for output in default.outputs]
    best, what, tried = default, "default", 0
    least = min(once(default.call) for _ in range(3))
    for trial in edits(Trial(0, schedule, "default"), count, isa, seed=1):
        if tried >= count:
            break
        try:
            code = compiled(program, arrays, trial.schedule, machine)
        except ValueError:
            continue
        tried += 1
        if not same(code, wanted):
            return {"name": case.name, "error": f"wrong after {trial.what}"}
        if min(once(code.call), once(code.call)) > HOPELESS * least:
            continue
        theirs, ours = in_turns([best.call, code.call], 7, 1)
        if ratio(theirs, ours) > 1.02:
            best, what, least = code, trial.what, min(least, statistics.median(ours))
    times = in_turns([default.call] + ([best.call] if best is not default else []), samples, 6)
    return {
        "name": case.name,
        "isa": isa,
        "edits": tried,
        "best": what,
        "default_us": 1e6 * statistics.median(times[0]),
        "best_us": 1e6 * statistics.median(times[-1]),
        "of_best": ratio(times[-1], times[0]),
    }


def run(words: list[str], isa: str, count: int, samples: int) -> Iterator[Row]:
    for case in example_kernels():
        if not words or any(word in case.name for word in words):
            yield measure(case, isa, count, samples)


def line(row: Row) -> str:
    if "error" in row:
        return f"{row['name']:34} {row['error']}"
    return (
        f"{row['name']:34} default {row['default_us']:9.1f} us  best of {row['edits']} edits "
        f"{row['best_us']:9.1f} us {row['of_best']:5.2f}  {row['best']}"
    )
