"""What a subcommand works on: a word such as `runs/demo/17` and flags become a pack, options and
images.

    runs/demo/17, runs/demo/grouped, runs/demo/find-0017    a candidate of a study
    kernel.pack, folder with a pack.txt                      a pack
    trained                                                  the folder of a training
    baseline                                                 the unchanged network

Options that a flag does not name come from the study or the training, else they are default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..arguments import PATH, Kind
from ..data import Data, stored
from ..data import load_images as read_images
from ..errors import CanvasError
from ..layer_choice import LayerChoice
from ..nn.controls import BASELINE
from ..nn.layer_target import plain_name
from ..nn.load_model import confirm_model
from ..nn.network import Recipe
from ..nn.pack import KernelPack, load
from ..options import BY_NAME, Option, json_object, read_option
from ..reporting.next_steps import find_folder
from ..stored_options import FIT, command_of
from ..study import FILE, Candidate, Study
from ..training import checkpoint
from ..training.train_options import IMAGES, NETWORK

NAMED = Kind(
    "a path or a KernelPack",
    lambda value: isinstance(value, KernelPack) or PATH.holds(value),
)
STATE = "checkpoint.safetensors"  # in the folder of a training
RESULT = "result.json"  # there, too: its end on the test split
LOG_COLUMNS = ("epoch", "train_loss", "train_accuracy", "val_accuracy", "rate", "seconds")
RESULTS = ("epoch", "val_accuracy", "test_accuracy", "standard_error", "test_images")
FIND = re.compile(r"find-([0-9]{1,18})")  # the folder of a find


@dataclass(frozen=True)
class Choice:
    """What a word names: `pack` is None for the unchanged network; `options` and `figures` are
    those of the study or the training, the stored `images` those of a study.
    """

    name: str
    pack: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    images: Path | None = None
    study: Path | None = None


def prepare(
    what: str | os.PathLike[str] | KernelPack,
    given: Mapping[str, Any],
    rows: Sequence[Option],
    subcommand: str,
) -> tuple[Choice, dict[str, Any], Data]:
    """What is named, the values of its options, its images."""
    choice = choose(what)
    values = resolve(choice, given, rows, subcommand)
    return choice, values, load_images(choice, values, given)


def choose(what: str | os.PathLike[str] | KernelPack) -> Choice:
    """What `what` names; raises CanvasError with one message where it names nothing."""
    if isinstance(what, KernelPack):
        return Choice(what.name, what.text)
    word = os.fspath(what)
    path = Path(word)
    if path.name == "pack.txt" and path.is_file():
        path = path.parent
    holds_pack = (path / "pack.txt").is_file()
    if (path / STATE).is_file():
        facts = training_facts(path / STATE)
        return Choice(facts["name"], facts["pack"], facts["options"], facts["figures"])
    if path.is_file():
        return Choice(_plain(path.stem), load(path).text)
    if (path.parent / FILE).is_file() and (FIND.fullmatch(path.name) or not holds_pack):
        return _of_study(path.parent, path.name)
    if holds_pack:
        return Choice(_plain(path.resolve().name), load(path / "pack.txt").text)
    if word == BASELINE:
        return Choice(BASELINE, None)
    if (path / FILE).is_file():
        raise CanvasError(
            f"'{word}' is a whole study: name a candidate of it, such as "
            f"'{path / BASELINE}'; canvas trials {word} lists them"
        )
    raise CanvasError(
        f"'{word}' is neither a pack file nor a candidate of a study nor '{BASELINE}'"
    )


def _of_study(folder: Path, word: str) -> Choice:
    """A candidate by its name, or a find by its folder."""
    find = FIND.fullmatch(word)
    name = str(int(find[1])) if find else word
    with Study.read(folder) as study:
        rows = study.select(name=name)
        options = study.options()
    if command_of(options) == FIT:
        raise CanvasError(
            f"the study in '{folder}' is of a fit: name the folder of a budget, such as "
            f"'{folder / 'budget-1'}', and its weights with --weights"
        )
    if not rows:
        raise CanvasError(
            f"the study in '{folder}' has no candidate '{word}'; canvas trials {folder} lists them"
        )
    row = rows[0]
    if not row.pack and row.kind != "baseline":
        raise CanvasError(f"{row.kind} '{row.name}' of '{folder}' has no sizes: {row.reason}")
    name = find_folder(row) if row.kind == "find" else _plain(row.name)
    kept = {key: value for key, value in options.items() if key in (*NETWORK, "batch_size")}
    images = folder / stored.FOLDER
    return Choice(name, row.pack or None, kept, _figures(row, options), images, folder)


def _figures(row: Candidate, options: Mapping[str, Any]) -> dict[str, float]:
    """What the study measured of a candidate, by name; what it did not measure is missing."""
    figures = {
        "epochs": options["epochs"],
        "val_accuracy": row.val_accuracy,
        "latency_ms": row.latency_ms,
        "latency_batch": options["latency_batch"],
        "speedup": row.speedup,
        "test_accuracy": row.test_mean,
        "test_seeds": len(row.tests),
    }
    return {name: value for name, value in figures.items() if value is not None}


def training_facts(path: Path) -> dict[str, Any]:
    """The checked facts in the checkpoint of a training: name, pack, options, figures of the
    study, images, history, versions.
    """
    facts = checkpoint.read_facts(path)
    try:
        facts["history"][-1]
        images = facts["images"]
        return {
            "name": _plain(str(facts["name"])),
            "pack": None if facts["pack"] is None else KernelPack(facts["pack"]).text,
            "options": dict(facts["options"]),
            "figures": {str(name): float(value) for name, value in facts["figures"].items()},
            "images": {
                "name": str(images["name"]),
                "checksum": str(images["checksum"]),
                "augmentation": dict(images["augmentation"]),
                "shape": [int(size) for size in images["shape"]],
                "classes": int(images["classes"]),
                "mean": [float(value) for value in images["mean"]],
                "deviation": [float(value) for value in images["deviation"]],
                "synthetic": bool(images["synthetic"]),
            },
            "history": [
                {name: (int if name == "epoch" else float)(row[name]) for name in LOG_COLUMNS}
                for row in facts["history"]
            ],
            "versions": dict(facts["versions"]),
        }
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError):
        raise CanvasError(f"'{path}' is not the checkpoint of a training of canvas") from None


def training_result(path: Path) -> dict[str, Any]:
    """The RESULTS in the file `path` of a training, checked."""
    try:
        facts = json_object(path.read_text(encoding="utf-8"))
        return {
            name: (int if name in ("epoch", "test_images") else float)(facts[name])
            for name in RESULTS
        }
    except (KeyError, TypeError, ValueError, OverflowError):
        raise CanvasError(f"'{path}' is not the result of a training of canvas") from None


def about(images: Data) -> dict[str, Any]:
    """What a network must know of the images it was trained on, without the images."""
    return {
        "name": images.name,
        "checksum": images.checksum,
        "augmentation": asdict(images.augmentation),
        "shape": list(images.shape),
        "classes": images.classes,
        "mean": list(images.mean),
        "deviation": list(images.deviation),
        "synthetic": images.synthetic,
    }


def _plain(name: str) -> str:
    """A name that may stand in a path, a comment, a title."""
    return plain_name(name, set()).replace("/", "-")


def resolve(
    choice: Choice, given: Mapping[str, Any], rows: Sequence[Option], subcommand: str
) -> dict[str, Any]:
    """The values of the options in `rows`: as given, else the choice's own, else default; of a
    Data its name.
    """
    if isinstance(given.get("data"), Data):
        given = {**given, "data": given["data"].name}
    known = {row.name for row in rows}
    for name in given:
        if name not in known:
            raise CanvasError(f"{subcommand} has no option '{name}'")
    values = {}
    for row in rows:
        value = given.get(row.name)
        values[row.name] = read_option(
            row, choice.options.get(row.name) if value is None else value
        )
    for name in ("model", "data"):
        if values[name] is None:
            raise CanvasError(
                f"{subcommand} needs {BY_NAME[name].flag}: '{choice.name}' comes from no study "
                "that would tell it"
            )
    confirm_model(values["model"], given.get("model"), f"'{choice.name}'")
    return values


def load_images(choice: Choice, options: Mapping[str, Any], given: Mapping[str, Any]) -> Data:
    """The images themselves where they were given, else those that the options name; the study's
    own copy where nothing differs.
    """
    if isinstance(given.get("data"), Data):
        return given["data"]
    same = all(options[name] == choice.options.get(name) for name in IMAGES)
    if same and choice.images is not None and stored.has(choice.images):
        return stored.read(choice.images)
    return read_images(options)


def recipe_of(options: Mapping[str, Any], shape: Sequence[int], classes: int) -> Recipe:
    """What the network is built from; `shape` of one image is (channels, height, width)."""
    channels, height, width = shape
    return Recipe(
        options["model"],
        options["width"],
        (channels, height, width),
        classes,
        str(LayerChoice.of(options)),
        options["seed"],
    )
