"""Configs: what a search found, as AutoScheduler's raw entities and as lines of a file.

A line is ``task.key + ":" + json.dumps(configs)``.  Of each operation it has lists of entities
under eight keys; `spatial` and `reduce` are the parts of the axes.  What our own search finds is a
program and a schedule: they stand in `special` of the first operation, which AutoScheduler's CPU
template does not look at.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..arguments import shown
from ..errors import CanvasError
from ..files import add_lines
from ..te.place import mistake, unplaced

_FORMAT = 2  # of what a search of ours found

KEYS = ("fuse", "spatial", "reduce", "reorder", "inline", "unroll", "merge", "special")


class Config(NamedTuple):
    """`op_config_lst`: a dict of lists for each operation; `graph_config`: one for the whole."""

    op_config_lst: list[dict[str, list[Any]]]
    graph_config: dict[str, list[Any]]


class Found(NamedTuple):
    """What a search of ours found, as texts: what was given, and the edits of it."""

    program: str
    edits: str
    schedule: str


def empty() -> dict[str, list[Any]]:
    return {key: [] for key in KEYS}


def config_of(found: Found, operations: int) -> Config:
    configs = [empty() for _ in range(operations)]
    configs[0]["special"] = [{"canvas": _FORMAT, **found._asdict()}]
    return Config(configs, empty())


def found_in(config: Config) -> Found | None:
    """The texts that a config of ours holds; None: it has entities."""
    for special in (entity for one in config.op_config_lst for entity in one.get("special", [])):
        if isinstance(special, dict) and special.get("canvas") in (1, _FORMAT):
            texts = [
                _edits(special) if name == "edits" else special.get(name) for name in Found._fields
            ]
            if not all(isinstance(text, str) for text in texts):
                raise mistake("a config of canvas has the texts program, edits and schedule")
            return Found(*(str(text) for text in texts))
    return None


def _edits(special: dict[str, Any]) -> Any:
    """A config holds decisions: of format 1, which held what edits made, only one without any."""
    if special["canvas"] == _FORMAT:
        return special.get("edits")
    if special.get("edited") != special.get("program"):
        raise mistake(
            "the config is of an older version, which wrote what edits made and not which they "
            "are, search again"
        )
    return ""


def checked_config(given: Any) -> Config:
    """A Config, or what JSON makes of one."""
    pair = isinstance(given, (tuple, list)) and len(given) == 2
    if not pair or not isinstance(given[0], (list, tuple)):
        raise mistake(
            "configs are two: a list with a dict for each operation, and a dict for the graph, "
            f"not {shown(given)}"
        )
    for number, one in enumerate(given[0]):
        _check_entities(f"config {number}", one)
    _check_entities("the graph's config", given[1] or {})
    return Config([dict(one) for one in given[0]], dict(given[1] or {}))


def _check_entities(what: str, given: Any) -> None:
    if not isinstance(given, dict):
        raise mistake(f"{what} is a dict of lists, not {shown(given)}")
    for key, value in given.items():
        if key not in KEYS:
            raise mistake(f"{what} has no {shown(key)}: there are {', '.join(KEYS)}")
        if not isinstance(value, (list, tuple)):
            raise mistake(f"'{key}' of {what} is a list, not {shown(value)}")


# ---- lines --------------------------------------------------------------------------------------

# A key ends with the number of its device: a name may hold colons.
_LINE = re.compile(r"(.*?\(\d+\)):\s*([\[{n].*)", re.S)
_LINE_OF_OTHERS = re.compile(r"([^:]*):(.*)", re.S)


def config_line(key: str, configs: Any) -> str:
    """What is saved of a task."""
    if not isinstance(key, str) or not key or "\n" in key:
        raise mistake(f"configs are saved under the key of a task, not {shown(key)}")
    return f"{key}:{json.dumps(checked_config(configs))}"


def config_from_line(line: str) -> tuple[str, Config]:
    """(key of the task, configs) of a line."""
    if not isinstance(line, str):
        raise mistake(f"a line of configs is a text, not {shown(line)}")
    line = line.strip()
    parts = _LINE.match(line) or _LINE_OF_OTHERS.match(line)
    try:
        key, text = parts.groups() if parts else ("", "")
        given = json.loads(text)
    except (ValueError, RecursionError):
        cut = line if len(line) <= 40 else line[:40] + "..."
        raise mistake(f"expected 'KEY:JSON' as a line of configs, found {shown(cut)}") from None
    return key, checked_config(given)


def save_configs(path: str | os.PathLike[str], configs: Iterable[tuple[str, Any]]) -> None:
    """Adds a line for each (key, configs) to a file, all of them or none."""
    name = _path(path)
    lines = "".join(config_line(*pair) + "\n" for pair in _pairs(configs))
    try:
        add_lines(name, lines)
    except OSError as error:
        raise mistake(f"cannot write configs to '{name}': {error.strerror}") from None


def _path(path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise mistake(f"configs are in a file, named by a path, not {shown(path)}")
    return os.fsdecode(path)


def _pairs(configs: Any) -> Iterable[tuple[str, Any]]:
    pairs = configs.items() if isinstance(configs, dict) else configs
    try:
        return [(key, config) for key, config in pairs]
    except (TypeError, ValueError):
        raise mistake(
            f"configs to save are a list of pairs (key, configs), not {shown(configs)}"
        ) from None


def load_configs(path: str | os.PathLike[str]) -> dict[str, Config]:
    """Configs by key; of several lines of a task the last one.  Lines that are none are left out
    with a warning.  Raises CanvasError where no line is one.
    """
    name = _path(path)
    try:
        with open(name, "rb") as file:
            lines = file.read().split(b"\n")
    except OSError as error:
        raise mistake(f"cannot read configs from '{name}': {error.strerror}") from None
    found: dict[str, Config] = {}
    left = []
    for number, line in enumerate(lines, 1):
        try:
            if line.strip():
                found.update([config_from_line(line.decode())])
        except UnicodeDecodeError:
            left.append(f"line {number}: this is no text")
        except CanvasError as error:
            left.append(f"line {number}: {unplaced(error)}")
    if left and not found:
        raise mistake(f"'{name}' has no config, {left[0]}")
    if left:
        words = "line is" if len(left) == 1 else "lines are"
        warnings.warn(f"'{name}': {len(left)} {words} left out, {left[0]}", stacklevel=2)
    return found
