"""Configs: what a search found, as AutoScheduler's raw entities and as lines of a file.

A line is ``task.key + ":" + json.dumps(configs)``.  Of each operation it has lists of entities
under eight keys; `spatial` and `reduce` are the parts of the axes.  What our own search finds is a
program and a schedule: they stand in `special` of the first operation, which AutoScheduler's CPU
template does not look at.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..arguments import shown
from ..errors import CanvasError

KEYS = ("fuse", "spatial", "reduce", "reorder", "inline", "unroll", "merge", "special")


class Config(NamedTuple):
    """`op_config_lst`: a dict of lists for each operation; `graph_config`: one for the whole."""

    op_config_lst: list[dict[str, list[Any]]]
    graph_config: dict[str, list[Any]]


class Found(NamedTuple):
    """What a search of ours found, as texts: what was given, what edits made of it."""

    program: str
    edited: str
    schedule: str


def empty() -> dict[str, list[Any]]:
    return {key: [] for key in KEYS}


def config_of(found: Found, operations: int) -> Config:
    configs = [empty() for _ in range(operations)]
    configs[0]["special"] = [{"canvas": 1, **found._asdict()}]
    return Config(configs, empty())


def found_in(config: Config) -> Found | None:
    """The texts that a config of ours holds; None: it has entities."""
    for special in (entity for one in config.op_config_lst for entity in one.get("special", [])):
        if isinstance(special, dict) and special.get("canvas") == 1:
            texts = [special.get(name) for name in Found._fields]
            if not all(isinstance(text, str) for text in texts):
                raise CanvasError("a config of canvas has the texts program, edited and schedule")
            return Found(*(str(text) for text in texts))
    return None


def checked_config(given: Any) -> Config:
    """A Config, or what JSON makes of one."""
    pair = isinstance(given, (tuple, list)) and len(given) == 2
    if not pair or not isinstance(given[0], (list, tuple)) or not _is_entities(given[1] or {}):
        raise CanvasError(
            "configs are (a list with a dict for each operation, a dict for the graph), not "
            f"{shown(given)}"
        )
    for number, one in enumerate(given[0]):
        if not _is_entities(one):
            raise CanvasError(
                f"config {number} is a dict of lists under {', '.join(KEYS)}, not {shown(one)}"
            )
    return Config([dict(one) for one in given[0]], dict(given[1] or {}))


def _is_entities(given: Any) -> bool:
    return isinstance(given, dict) and all(
        key in KEYS and isinstance(value, (list, tuple)) for key, value in given.items()
    )


# ---- lines --------------------------------------------------------------------------------------


def config_line(key: str, configs: Any) -> str:
    """What is saved of a task."""
    return f"{key}:{json.dumps(checked_config(configs))}"


def config_from_line(line: str) -> tuple[str, Config]:
    """(key of the task, configs) of a line."""
    key, colon, text = line.strip().partition(":")
    try:
        if not colon:
            raise ValueError
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise CanvasError(
            f"expected 'KEY:JSON' as a line of configs, found {shown(line.strip())}"
        ) from None
    return key, checked_config(given)


def save_configs(path: str | os.PathLike[str], configs: Iterable[tuple[str, Any]]) -> None:
    """Adds a line for each (key, configs) to a file."""
    lines = "".join(config_line(key, config) + "\n" for key, config in configs)
    with open(path, "a", encoding="utf-8") as file:
        file.write(lines)


def load_configs(path: str | os.PathLike[str]) -> dict[str, Config]:
    """Configs by key; of several lines of a task the last one."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise CanvasError(f"cannot read configs from '{os.fspath(path)}': {error}") from None
    return dict(config_from_line(line) for line in lines if line.strip())
