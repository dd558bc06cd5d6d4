"""How long the choice of a default schedule takes: from the text of a program to that of its
schedule, edits before it and all checks included, without C. Thread processor time, the median of
some calls, none of which remembers another's choices.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterable, Iterator
from typing import Any

import defaults_kinds
import defaults_sampled

from canvas import _core

CALLS = 9
GOAL = 1e-3  # seconds
Row = dict[str, Any]


def programs(only: str | None, sampled: int, words: list[str]) -> Iterator[tuple[str, str]]:
    """(name, text): the cases of `./dev bench defaults`, then kernels drawn for ResNet-18."""
    for name, program in defaults_kinds.programs(only):
        if not words or any(word in name for word in words):
            yield name, program
    yield from defaults_sampled.programs(sampled)


def machines(machine: str) -> list[str]:
    """As many as there are calls, each with a second cache that is 1 KiB larger: tiles that were
    chosen before are remembered by what they were chosen for.
    """
    size = re.search(r"^l2 (\d+) (KiB|MiB)$", machine, re.M)
    assert size
    kib = int(size[1]) * (1024 if size[2] == "MiB" else 1)
    return [machine.replace(size[0], f"l2 {kib + i} KiB") for i in range(CALLS)]


def seconds(program: str, known: list[str]) -> float:
    taken = []
    for machine in known:
        start = time.thread_time()
        _core.bind_schedule(program, None, machine)
        taken.append(time.thread_time() - start)
    return statistics.median(taken)


def run(programs: Iterable[tuple[str, str]], machine: str) -> Iterator[Row]:
    known = machines(machine)
    for name, program in programs:
        yield {"name": name, "choosing_us": 1e6 * seconds(program, known)}


def line(row: Row) -> str:
    return f"{row['name']:34} {row['choosing_us']:10.0f} us"


def summary(rows: list[Row]) -> str:
    times = sorted(row["choosing_us"] for row in rows)
    later = sum(us >= 1e6 * GOAL for us in times)
    nine = times[int(0.9 * (len(times) - 1))]
    return (
        f"{len(times)} default schedules: {statistics.median(times):.0f} us in the median, nine "
        f"of ten within {nine:.0f} us, the slowest {times[-1]:.0f} us; {later} take 1 ms or more"
    )
