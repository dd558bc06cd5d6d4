"""What a verb works on: a word such as `runs/demo/17` and flags become a pack, options, images.

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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import checkpoint
from .controls import BASELINE
from .data import Data, load_data
from .errors import CanvasError
from .network import Recipe
from .options import BY_NAME, Option, read_option
from .pack import KernelPack, load
from .study import FILE, Candidate, Study

STATE = "checkpoint.safetensors"  # in the folder of a training
IMAGES = ("data", "image_size", "images", "normalize", "flip", "crop")
NETWORK = ("model", *IMAGES, "width", "policy", "seed")
NETWORK_OPTIONS = tuple(BY_NAME[name] for name in NETWORK)
FIND = re.compile(r"find-([0-9]{1,18})")  # the folder of a find
SWITCH = {"yes": True, "no": False, None: None}


@dataclass(frozen=True)
class Choice:
    """What a word names: `pack` is None for the unchanged network; `row` and the stored `images`
    are those of a study, `options` those of the study or the training.
    """

    name: str
    pack: str | None
    options: Mapping[str, Any] = field(default_factory=dict)
    row: Candidate | None = None
    images: Path | None = None
    study: Path | None = None


def prepare(
    what: str | os.PathLike[str] | KernelPack,
    given: Mapping[str, Any],
    rows: Sequence[Option],
    verb: str,
) -> tuple[Choice, dict[str, Any], Data]:
    """What is named, the values of its options, its images; `data` may be given as a Data."""
    choice = choose(what)
    data = given.get("data")
    if isinstance(data, Data):
        return choice, settle(choice, {**given, "data": data.name}, rows, verb), data
    values = settle(choice, given, rows, verb)
    return choice, values, load_images(choice, values)


def choose(what: str | os.PathLike[str] | KernelPack) -> Choice:
    """What `what` names; raises CanvasError with one sentence where it names nothing."""
    if isinstance(what, KernelPack):
        return Choice(what.name, what.text)
    word = os.fspath(what)
    path = Path(word)
    if path.name == "pack.txt" and path.is_file():
        path = path.parent
    holds_pack = (path / "pack.txt").is_file()
    if (path / STATE).is_file():
        facts = checkpoint.read_facts(path / STATE)
        return Choice(facts["name"], facts["pack"], facts["options"])
    if path.is_file():
        return Choice(path.stem, load(path).text)
    if (path.parent / FILE).is_file() and (FIND.fullmatch(path.name) or not holds_pack):
        return _of_study(path.parent, path.name)
    if holds_pack:
        return Choice(path.resolve().name, load(path / "pack.txt").text)
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
        rows = study.candidates("name = ?", name)
        options = study.options()
    if not rows:
        raise CanvasError(
            f"the study in '{folder}' has no candidate '{word}'; canvas trials {folder} lists them"
        )
    row = rows[0]
    if not row.pack and row.kind != "baseline":
        raise CanvasError(f"{row.kind} '{row.name}' of '{folder}' has no sizes: {row.reason}")
    name = f"find-{int(row.name):04d}" if row.kind == "find" else row.name
    kept = {key: value for key, value in options.items() if key in (*NETWORK, "batch_size")}
    return Choice(name, row.pack or None, kept, row, folder / "data.npz", folder)


def settle(
    choice: Choice, given: Mapping[str, Any], rows: Sequence[Option], verb: str
) -> dict[str, Any]:
    """The values of the options in `rows`: as given, else the choice's own, else default."""
    known = {row.name for row in rows}
    for name in given:
        if name not in known:
            raise CanvasError(f"{verb} has no option '{name}'")
    values = {}
    for row in rows:
        value = given.get(row.name)
        values[row.name] = read_option(
            row, choice.options.get(row.name) if value is None else value
        )
    for name in ("model", "data"):
        if values[name] is None:
            raise CanvasError(
                f"{verb} needs {BY_NAME[name].flag}: '{choice.name}' comes from no study that "
                "would tell it"
            )
    return values


def load_images(choice: Choice, options: Mapping[str, Any]) -> Data:
    """The images that the options name; the study's own copy where nothing differs."""
    same = all(options[name] == choice.options.get(name) for name in IMAGES)
    if same and choice.images is not None and choice.images.is_file():
        return Data.read(choice.images)
    wishes = {name: options[name] for name in IMAGES[1:]}
    wishes["normalize"], wishes["flip"] = SWITCH[wishes["normalize"]], SWITCH[wishes["flip"]]
    return load_data(
        options["data"], **{name: wish for name, wish in wishes.items() if wish is not None}
    )


def recipe_of(options: Mapping[str, Any], images: Data) -> Recipe:
    """What the network is built from."""
    return Recipe(
        options["model"],
        options["width"],
        images.shape,
        images.classes,
        options["policy"],
        options["seed"],
    )
