"""The commands that repeat a study and use what it found, from its recorded options."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..options import Option
from ..stored_options import FIT, ROWS, command_of
from ..study import Study
from .next_steps import find_folder, result_folder
from .report import Report

# Networks, data and tasks that the command line knows by name; others are package.module:name.
NAMED = {
    "model": ("resnet8", "resnet18"),
    "data": ("digits", "digits-scattered", "synthetic"),
    "task": ("classification", "segmentation", "regression", "multi-label", "unlabelled"),
}

ASKED = "asked"  # the data of a study of canvas.create_study, which sets these options
SET_BY_ASKED = (
    "data", "task", "epochs", "prune", "pretests", "finalists", "compile", "workers",
)  # fmt: skip


def commands(study: Study, report: Report) -> list[tuple[str, str]]:
    """What each command is for, and the command."""
    options, folder = study.options(), study.folder
    if options.get("data") == ASKED:
        found = [("repeat it in Python, and score again", asked_text(study, folder))]
    elif objects(options):
        found = [("repeat it in Python, with your own objects", call_text(options, folder))]
    else:
        found = [("repeat it", command_text(options, folder))]
    found.append(("print the table", words_text(["canvas", "pareto", str(folder)])))
    found.append(("list all candidates", words_text(["canvas", "trials", str(folder)])))
    is_fit = command_of(options) == FIT
    for row in report.chosen[:1]:
        place = result_folder(options["budget"].index(row.budget)) if is_fit else find_folder(row)
        if not is_fit:
            words = ["canvas", "replay", str(folder), row.name, *_own_model(options)]
            found.append(("repeat a training, and compare", words_text(words)))
        words = ["canvas", "show", str(folder / place / "pack.txt"), "--svg"]
        found.append(("draw an operator", words_text(words) + " >operator.svg"))
    return found


def objects(options: Mapping[str, Any]) -> list[str]:
    """The options that were Python objects, of which a study has but the name of the class."""
    return [
        name
        for name, known in NAMED.items()
        if (value := options.get(name)) and value not in known and ":" not in str(value)
    ]


def changed_options(options: Mapping[str, Any], folder: Path) -> list[tuple[Option, Any]]:
    """The options that differ from their default; a file of the study's folder stands for its
    text.
    """
    rows = ROWS[command_of(options)]
    values = [(row, options.get(row.name)) for row in rows]
    changed = [(row, value) for row, value in values if value not in (None, row.default)]
    return [(row, str(folder / row.file) if row.file else value) for row, value in changed]


def command_text(options: Mapping[str, Any], folder: Path) -> str:
    """The command line of a search or a fit."""
    words = ["canvas", command_of(options)]
    for row, value in changed_options(options, folder):
        if not row.metavar:
            words += [row.flag]
            continue
        for one in value if row.repeated and isinstance(value, list) else [value]:
            words += [row.flag, _text(one)]
    return words_text([*words, "--out", str(folder)])


def call_text(options: Mapping[str, Any], folder: Path) -> str:
    """The call of canvas.search or canvas.fit; an object stands as its name in small letters."""
    own = objects(options)
    given = [
        f"{row.name}={value!r}"
        for row, value in changed_options(options, folder)
        if row.name not in (*own, "model", "data")
    ]
    first = [name if name in own else repr(options.get(name)) for name in ("model", "data")]
    more = ["task=task"] if "task" in own else []
    words = ", ".join([*first, *given, *more, f"out={str(folder)!r}"])
    return f"canvas.{command_of(options)}({words})"


def asked_text(study: Study, folder: Path) -> str:
    """The call of canvas.create_study, whose networks were scored by the user's code."""
    metric, options = study.metric, study.options()
    given = [f"metric={metric.name!r}"]
    given += [f"unit={metric.unit!r}"] if metric.unit else []
    given += [] if metric.higher_is_better else ["direction='minimize'"]
    given += [
        f"{row.name}={value!r}"
        for row, value in changed_options(options, folder)
        if row.name not in ("model", *SET_BY_ASKED)
    ]
    model = "model" if "model" in objects(options) else repr(options.get("model"))
    words = ", ".join([model, "example_input", *given, f"out={str(folder)!r}"])
    return f"canvas.create_study({words})"


def words_text(words: Sequence[str]) -> str:
    return " ".join(map(shlex.quote, words))


def _own_model(options: Mapping[str, Any]) -> list[str]:
    model = str(options.get("model"))
    return ["--model", model] if ":" in model else []


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
