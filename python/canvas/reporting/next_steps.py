"""The two lines at the end of a search or a fit: what to do next, as commands with real paths."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..study import CLASSIFICATION, WEIGHTS_NAME, Candidate
from .front import title


def search_steps(
    folder: Path, options: Mapping[str, Any], picked: Candidate | None, chosen: Sequence[Candidate]
) -> tuple[str, str]:
    """Train the picked find, or else the first chosen one, and look at the whole result."""
    row = picked if picked is not None and picked.kind == "find" else next(iter(chosen), None)
    if row is None:
        return "To search on, repeat the command with more --trials.", look(folder)
    if options.get("task", CLASSIFICATION) != CLASSIFICATION:
        where = quoted(folder / find_folder(row))
        return f"The operator of {title(row)} is in {where}.", look(folder)
    trained = folder / f"train-{find_folder(row)}"
    words = ["canvas", "train", str(folder / find_folder(row)), *own_model(options)]
    words += ["--out", str(trained)]
    return f"To train {title(row)} to the end: {shlex.join(words)}", look(folder)


def fit_steps(
    folder: Path, options: Mapping[str, Any], picked: Candidate | None, chosen: Sequence[Candidate]
) -> tuple[str, str]:
    """Export the picked network, or else that of the first budget, and look at the result."""
    row = picked if picked in chosen else next(iter(chosen), None)
    if row is None:
        return "To fit on, repeat the command with more time.", look(folder)
    result = folder / result_folder(options["budget"].index(row.budget))
    if options["task"] != CLASSIFICATION:
        return f"The network of {row.budget} is in {quoted(result)}.", look(folder)
    words = ["canvas", "export", str(result), "--weights", str(result / WEIGHTS_NAME)]
    names = ("model", "data", "image_size", "images", "normalize", "width", "policy")
    wanted = {name: options[name] for name in names if options.get(name) is not None}
    for name, usual in (("linear", "no"), ("depthwise", "no"), ("unequal", "gcd")):
        if options.get(name, usual) != usual:
            wanted[name] = options[name]
    for name, value in wanted.items():
        words += ["--" + name.replace("_", "-"), str(value)]
    words += ["--out", str(result / "exported")]
    return f"To export the network of {row.budget}: {shlex.join(words)}", look(folder)


def look(folder: Path) -> str:
    """How to see all of a study."""
    return f"To see everything as a page: {shlex.join(['canvas', 'report', str(folder)])}"


def quoted(path: Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))


def own_model(options: Mapping[str, Any]) -> list[str]:
    """The flag that names code of the user's own, which no command imports unnamed."""
    model = str(options["model"])
    return ["--model", model] if ":" in model else []


def find_folder(row: Candidate) -> str:
    """The folder of a find, in that of its study."""
    return f"find-{int(row.name):04d}"


def result_folder(at: int) -> str:
    """The folder of a fit's budget number `at`, from 0."""
    return f"budget-{at + 1}"
