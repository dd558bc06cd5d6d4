"""`schedule`, which searches, and `schedule_with_config`, which builds what a search found."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from .. import _core
from ..arguments import PATH, did_you_mean, shown
from ..errors import CanvasError
from ..te.place import mistake
from ..te.schedule import Schedule
from ..te.tensor import Tensor
from ..te.write_program import write
from . import template
from .configs import (
    Config,
    Found,
    checked_config,
    config_from_line,
    config_line,
    config_of,
    empty,
    found_in,
    load_configs,
    save_configs,
)
from .task import Task, task_of

__all__ = [
    "METHODS",
    "Config",
    "config_from_line",
    "config_line",
    "load_configs",
    "save_configs",
    "schedule",
    "schedule_with_config",
]

METHODS = ("searching", "q", "random", "quick", "ga", "droplet", "evolution", "exhaustive")
SPACES = ("canvas", "template")

# What AutoScheduler takes by keyword and has no meaning here, and why.
_REFUSED = {
    "rewrite": "the search chooses layouts by itself",
    "use_model": "the cost model of canvas is a closed form and needs no training",
    "op_perf_model_path": "the cost model of canvas is a closed form and needs no training",
    "graph_perf_model_path": "the cost model of canvas is a closed form and needs no training",
    "rpc_info": "trials run on this machine",
}


# What it takes with its default alone: (the default, why).
_FIXED = {
    "graph_trial": (10, "operations and graph are searched together, in op_trial trials"),
    "graph_stop": (5, "operations and graph are searched together, op_stop ends that"),
    "number": (10, "a trial's samples are repeated until they agree"),
}


def schedule(
    task_key: str,
    slevel: int = 4,
    rlevel: int = 3,
    op_trial: int = 50,
    graph_trial: int = 10,
    op_stop: int = 15,
    graph_stop: int = 5,
    number: int = 10,
    timeout: float = 5.0,
    parallel: int = 8,
    method: str = "searching",
    *,
    trials: Sequence[int] | None = None,
    force_inline: bool = False,
    seed: int = 1,
    threads: int = 1,
    seconds: float | None = None,
    log: str | os.PathLike[str] | None = None,
    space: str = "canvas",
    **others: Any,
) -> tuple[Schedule, list[Tensor], Config]:
    """(schedule, tensors, configs): the fastest schedule found of a registered task.

    `op_trial`: schedules that are compiled, checked and timed (`trials`: the same as a list, by
    operation, of which the sum counts); `op_stop`: so many of them in a row that were not better
    end the search; `timeout`: seconds that each may run; `parallel`: so many are compiled at
    once; `method`: one of METHODS; `space`: "canvas", all that the tuner knows, or "template",
    AutoScheduler's own for CPUs with `slevel` and `rlevel` parts of each axis.  `force_inline`:
    stages that do not reduce go into what reads them.  `graph_trial`, `graph_stop` and `number`
    have no meaning here: other values than the defaults are refused.

    Ctrl-C ends it at once.  The KeyboardInterrupt has the same three of the best trial until then
    as its attribute `found`, unless there was none; with `log` the same call continues from there.
    """
    _check_others(others)
    task = task_of(task_key)
    for name, value in (
        ("slevel", slevel), ("rlevel", rlevel), ("op_trial", op_trial), ("op_stop", op_stop),
        ("graph_trial", graph_trial), ("graph_stop", graph_stop), ("number", number),
        ("parallel", parallel), ("threads", threads), ("seed", seed),
    ):  # fmt: skip
        _check_whole(name, value)
        if value != _FIXED.get(name, (value, ""))[0]:
            raise mistake(f"{name}={value} is not taken: {_FIXED[name][1]}")
    _check_log(log)
    if method not in METHODS:
        near = did_you_mean(str(method), METHODS)
        raise mistake(f"there is no method {shown(method)}: {', '.join(METHODS)}{near}")
    if space not in SPACES:
        raise mistake(f"there is no space {shown(space)}: {' and '.join(SPACES)}")
    s, bufs = _schedule_of(task)
    edits = ""
    if force_inline:
        s.program, edits = _inlined(s.program)
    options: dict[str, Any] = {
        "method": method,
        "trials": _trials(trials, op_trial),
        "seconds": _seconds("seconds", seconds) if seconds is not None else 0.0,
        "seed": seed,
        "threads": threads,
        "log": log,
        "patience": op_stop,
        "timeout": _seconds("timeout", timeout),
        "together": parallel,
        "sketch": _sketch(s.program, max(slevel, rlevel)) if space == "template" else None,
    }
    levels = max(slevel, rlevel) if space == "template" else 0
    try:
        found = _search(s.program, **options)
    except BaseException as interrupt:
        best = getattr(interrupt, "found", None)
        if best is not None:
            best = (s, bufs, _take(s, best, levels, edits))
            interrupt.found = best  # type: ignore[attr-defined]
        raise
    return s, bufs, _take(s, found, levels, edits)


def schedule_with_config(
    task_key: str, configs: Any, op_pos: int | None = None, rewrite: bool = False
) -> tuple[Schedule, list[Tensor]]:
    """(schedule, tensors) of a config, byte for byte the code that its search found.

    A config of AutoScheduler for CPUs becomes its template's schedule; with `op_pos` that of one
    operation alone, the others stay plain loops.
    """
    _check_others({"rewrite": rewrite})
    task = task_of(task_key)
    config = checked_config(configs)
    s, bufs = _schedule_of(task)
    found = found_in(config)
    if found is not None:
        if found.program != s.program:
            name = found.program.partition("program ")[2].partition("\n")[0]
            raise mistake(
                f"the config is of another task: of a program '{name}' that is not what "
                f"'{task.key}' computes"
            )
        s.program, s.schedule = _core.replay_edits(found.program, found.edits), found.schedule
        s.bound()
        return s, bufs
    s.program = _inlined_as(s.program, config)
    s.program, s.schedule = template.bound(s.program, _tiles(s.program, config, op_pos))
    return s, bufs


def _take(s: Schedule, found: dict[str, Any], levels: int, edits: str) -> Config:
    """What was found, into the schedule; `levels`: of the template's entities, 0 for none;
    `edits`: before the search's own.
    """
    given = s.written.text
    s.program, s.schedule = found["program"], found["schedule"]
    texts = Found(given, edits + found["edits"], s.schedule)
    config = config_of(texts, max(1, len(template.stage_names(given))))
    if levels and template.is_template(s.schedule, given):
        _add_entities(config, given, s.schedule, levels)
    return config


# ---- the program --------------------------------------------------------------------------------


def _schedule_of(task: Task) -> tuple[Schedule, list[Tensor]]:
    outputs, bufs = task.tensors()
    inputs = [tensor for tensor in bufs if not tensor.op.input_tensors]
    written = write(outputs, name=f"{task.category}_{task.name}")
    used = [tensor for tensor in inputs if any(tensor is one for one in written.inputs)]
    if len(used) > 1:
        written = write(outputs, name=f"{task.category}_{task.name}", inputs=used)
    return Schedule(written), bufs


def _inlined(program: str) -> tuple[str, str]:
    """Every stage that can go into its readers has; and the edits."""
    edits = ""
    for name in template.stage_names(program):
        try:
            program = _core.edit_program(program, f"inline {name}")
        except CanvasError:
            continue  # it reduces, or is an output
        edits += f"inline {name}\n"
    return program, edits


def _inlined_as(program: str, config: Config) -> str:
    """The graph's config: a 1 for each stage that is inlined into its consumers."""
    flags: Sequence[Any] = config.graph_config.get("inline") or []
    flags = flags[0] if flags and isinstance(flags[0], (list, tuple)) else flags
    names = [name for name in template.stage_names(program) if _can_inline(program, name)]
    if flags and len(flags) != len(names):
        raise mistake(
            f"the config is of another task: it says of {len(flags)} stages whether they are "
            f"inlined, and {len(names)} can be"
        )
    for name, flag in zip(names, flags):
        if flag:
            program = _core.edit_program(program, f"inline {name}")
    return program


def _can_inline(program: str, name: str) -> bool:
    try:
        _core.edit_program(program, f"inline {name}")
    except CanvasError:
        return False
    return True


# ---- the template's entities --------------------------------------------------------------------


def _tiles(program: str, config: Config, op_pos: int | None) -> list[template.Tiles]:
    """The parts of each stage: the configs are of the stages in their order."""
    stages = template.stages_of(program)
    configs = [one for one in config.op_config_lst if any(one.values())]
    if op_pos is not None:
        whole = isinstance(op_pos, int) and not isinstance(op_pos, bool)
        if not whole or not 0 <= op_pos < len(stages) or not configs:
            raise mistake(f"op_pos is from 0 to {len(stages) - 1}, not {shown(op_pos)}")
        all_given = len(config.op_config_lst) == len(stages)
        chosen = config.op_config_lst[op_pos if all_given else 0]
        configs = [chosen if place == op_pos else empty() for place in range(len(stages))]
    if len(configs) > len(stages):
        raise mistake(
            f"the config is of another task: it has {len(configs)} operations, and the program "
            f"has {len(stages)} stages"
        )
    configs = [empty()] * (len(stages) - len(configs)) + configs
    return [
        template.checked_parts(stage, one.get("spatial", []), one.get("reduce", []))
        for stage, one in zip(stages, configs)
    ]


def _sketch(program: str, levels: int) -> str:
    """The template with holes, and the edits that come before it, for the tuner."""
    tiles = [
        template.Tiles(
            stage,
            [_open(size, levels) for _, size in stage.axes],
            [_open(size, levels) for _, size in stage.over],
        )
        for stage in template.stages_of(program)
    ]
    _, caches = template.cached(program, tiles)
    edits = "".join(f"edit cache {name} as {cache}\n" for name, cache in caches.items())
    return edits + template.schedule_text(tiles, caches, 2)


def _open(size: int, levels: int) -> list[int]:
    """Holes, where there is something to choose."""
    return [0] * levels if size > 1 else [size] + [1] * (levels - 1)


def _add_entities(config: Config, program: str, text: str, levels: int) -> None:
    for one, stage in zip(config.op_config_lst, template.stages_of(program)):
        one["spatial"] = [template.parts_in(text, stage, *axis, levels) for axis in stage.axes]
        one["reduce"] = [template.parts_in(text, stage, *axis, levels) for axis in stage.over]


# ---- the search and its arguments ---------------------------------------------------------------


def _search(program: str, **options: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = _core.tune(program, **options)
    except CanvasError as error:
        raise type(error)(f"{error}") from None
    if found["failure"] != "ok":
        raise CanvasError(f"the winner is wrong: {found['failure']}: {found['message']}")
    return found


def _check_others(others: dict[str, Any]) -> None:
    for name, value in others.items():
        if name not in _REFUSED:
            raise mistake(f"schedule takes no '{name}'{did_you_mean(name, _REFUSED)}")
        if value:
            raise mistake(f"'{name}' is not taken: {_REFUSED[name]}")


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 10**7:
        raise mistake(f"{name} is a whole number from 1 up, not {shown(value)}")


def _check_log(log: Any) -> None:
    if log is not None and not PATH.holds(log):
        raise mistake(f"log is a path, not {shown(log)}")


def _trials(trials: Any, op_trial: int) -> int:
    if trials is None:
        return op_trial
    if not isinstance(trials, (list, tuple)) or not trials:
        raise mistake(f"trials is a list of a number for each operation, not {shown(trials)}")
    for one in trials:
        _check_whole("a number of trials", one)
    return sum(trials)


def _seconds(name: str, value: Any) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or value <= 0:
        raise mistake(f"{name} is a number of seconds above 0, not {shown(value)}")
    return float(value)
