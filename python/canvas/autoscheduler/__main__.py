"""`python -m canvas.autoscheduler`: what the optimize_*.py of AutoScheduler do, for any category.

python -m canvas.autoscheduler conv2d --shapes yolo --from_ 0 --to 3 --trials 50 --log out.txt
python -m canvas.autoscheduler conv2d --shapes yolo --to 3 --test out.txt
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from ..arguments import did_you_mean
from ..errors import CanvasError
from ..te.function import build
from .scheduler import METHODS, load_configs, save_configs, schedule, schedule_with_config
from .task import TASK_TABLE, Task

# What AutoScheduler's scripts take besides, and why it has no meaning here.
UNUSED = {
    "--use_model": "the cost model of canvas is a closed form and needs no training",
    "--host": "trials run on this machine",
    "--port": "trials run on this machine",
    "--target_host": "trials run on this machine",
}


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m canvas.autoscheduler",
        description="Schedule the tasks of a category, or time what was found before.",
        allow_abbrev=False,
    )
    add = made.add_argument
    add("category", help="conv2d, gemm, conv3d, ...: the first word of the tasks' keys")
    add("--shapes", default="", help="the set of shapes: a name without its number, as yolo")
    add("--from_", type=int, default=0, metavar="N", help="the first of them (default: 0)")
    add("--to", type=int, default=-1, metavar="N", help="the one behind the last (default: all)")
    add("--log", metavar="FILE", help="add the configs there, a line for each task")
    add("--test", metavar="FILE", help="take the configs from there, and time them")
    add("--trials", type=int, default=50, metavar="N", help="schedules to measure (default: 50)")
    add("--target", default="llvm", help="llvm (default)")
    add("--device", type=int, default=0, metavar="N", help="dev_id of the tasks (default: 0)")
    add("--timeout", type=float, default=4.0, metavar="S", help="of each trial (default: 4)")
    add("--parallel", type=int, default=1, metavar="N", help="compiled at once (default: 1)")
    add("--method", default="searching", help=f"{', '.join(METHODS)} (default: searching)")
    add("--slevel", type=int, default=4, metavar="N", help="as of schedule (default: 4)")
    add("--rlevel", type=int, default=3, metavar="N", help="as of schedule (default: 3)")
    add("--force_inline", action="store_true", help="stages that do not reduce are inlined")
    add("--seed", type=int, default=1, metavar="N", help="of the search (default: 1)")
    for flag in UNUSED:
        add(flag, nargs="?", const="", help=argparse.SUPPRESS)
    return made


def main(words: Sequence[str] | None = None) -> int:
    given = parser().parse_args(words)
    try:
        for flag in UNUSED:
            if getattr(given, flag[2:]) is not None:
                raise CanvasError(f"'{flag}' is not taken: {UNUSED[flag]}")
        for flag, path in (("--log", given.log), ("--test", given.test)):
            if path == "":
                raise CanvasError(f"{flag} is a path, not ''")
        if given.from_ < 0:
            raise CanvasError(f"--from_ is a number from 0 up, not {given.from_}")
        if given.log and not given.test:
            save_configs(given.log, [])  # fails before the search if it cannot be written
        configs = load_configs(given.test) if given.test else {}
        for task in chosen(given):
            print(told(task, given, configs), flush=True)
    except CanvasError as error:
        print(f"canvas.autoscheduler: {error}", file=sys.stderr)
        return 2
    return 0


def chosen(given: Any) -> list[Task]:
    """The tasks of the category, the set and the range, in the order of the table."""
    found = [
        task
        for task in TASK_TABLE.values()
        if (task.category, task.target, task.dev_id)
        == (given.category, given.target, given.device)
        and re.fullmatch(re.escape(given.shapes) + r"\d*" if given.shapes else ".*", task.name)
    ]
    if not found:
        shapes = f" with shapes '{given.shapes}'" if given.shapes else ""
        categories = sorted({task.category for task in TASK_TABLE.values()})
        raise CanvasError(
            f"there is no task of category '{given.category}'{shapes} for "
            f"{given.target}({given.device}){did_you_mean(given.category, categories)}"
        )
    some = found[given.from_ : given.to if given.to >= 0 else None]
    if not some:
        raise CanvasError(
            f"there are {len(found)} of these tasks, and none from {given.from_} to {given.to}"
        )
    return some


def told(task: Task, given: Any, configs: dict[str, Any]) -> str:
    """A line about a task: searched, or built of its config, and timed."""
    if not given.test:
        s, bufs, config = schedule(
            task.key,
            slevel=given.slevel,
            rlevel=given.rlevel,
            op_trial=given.trials,
            op_stop=given.trials,
            timeout=given.timeout,
            parallel=given.parallel,
            method=given.method,
            force_inline=given.force_inline,
            seed=given.seed,
        )
        if given.log:
            save_configs(given.log, [(task.key, config)])
    elif task.key in configs:
        s, bufs = schedule_with_config(task.key, configs[task.key])
    else:
        return f"{task.key}: no config in '{given.test}'"
    return f"{task.key}: {timed(build(s, bufs, task.target)) * 1e3:.4g} ms"


def timed(function: Any) -> float:
    """Seconds of a call, of this thread's processor time: the least of some."""
    import numpy

    random: Any = numpy.random.default_rng(1)
    arrays = [random.standard_normal(t.shape).astype("float32") for t in function.args]
    for place, tensor in enumerate(function.args):
        if tensor.dtype != "float32":
            bounds = getattr(tensor.op, "bounds", None) or (0, 1)
            arrays[place] = random.integers(*bounds, size=tensor.shape, dtype="int32")
    least, began = float("inf"), time.monotonic()
    function(*arrays)
    while time.monotonic() - began < 0.5 or least == float("inf"):
        start = time.thread_time()
        function(*arrays)
        least = min(least, time.thread_time() - start)
    return least


if __name__ == "__main__":
    sys.exit(main())
