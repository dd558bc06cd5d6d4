"""A row of a study once more: trained and timed again, recorded and new figures side by side.

The study holds all that a training follows from: options, seed, images (by their checksum), the
pack.  On the machine and with the versions that made the row the curve must come out equal to the
last digit; where they differ, the difference is named beside the figures.  Nothing is written to
the study.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arguments import FUNCTION, PATH, TEXT, checked
from ..data import SPLITS, load_images, stored
from ..environment import machine, versions
from ..errors import CanvasError
from ..layer_choice import LayerChoice
from ..nn.latency import EAGER
from ..nn.load_model import confirm_model
from ..nn.network import Recipe, record_of
from ..reporting.progress import say_to_stderr
from ..reporting.table import align
from ..stored_options import FIT, command_of
from ..study import CLASSIFICATION, Candidate, Study, Timing, other_network
from ..text import printable, several
from ..workers.pool import Pool
from .child_import import check_child_import
from .compiled_engines import LATENCY_LIMIT
from .driver import memory_per_child
from .search_run import new_format

YEAR = 366 * 24 * 3600.0  # a replay has no limit but Ctrl-C


@dataclass(frozen=True)
class Replay:
    """What was recorded and what came now: curves are accuracies on validation by epoch, 0..1;
    `others` names versions and machine that are not those of the row.
    """

    candidate: Candidate
    recorded: list[float]
    curve: list[float]
    failure: str
    timings: list[tuple[Timing, dict[str, Any]]]  # recorded, and ms, spread_ms, speedup now
    others: list[str]

    @property
    def same(self) -> bool:
        """Whether the training went exactly as recorded (a failure: failed again)."""
        failed = self.candidate.status == "failed"
        return self.curve == self.recorded and bool(self.failure) == failed

    def __str__(self) -> str:
        lines = [["", "recorded", "again"]]
        for number in range(max(len(self.recorded), len(self.curve))):
            lines.append([f"accuracy, epoch {number + 1}", *self._accuracies(number)])
        if self.failure or self.candidate.status == "failed":
            lines.append(["failure", self.candidate.reason or "-", self.failure or "-"])
        for was, now in self.timings:
            lines.append(
                [
                    f"latency, {was.engine}",
                    _milliseconds(was.latency_ms, was.spread_ms),
                    _milliseconds(now.get("ms"), now.get("spread_ms")),
                ]
            )
            lines.append(
                [f"speed-up, {was.engine}", _times(was.speedup), _times(now.get("speedup"))]
            )
        verdict = "the same training" if self.same else "another training than recorded"
        because = f" ({'; '.join(self.others)})" if self.others else ""
        return "\n".join([align(lines, right={1, 2}), printable(f"{verdict}{because}")])

    def _accuracies(self, number: int) -> list[str]:
        return [
            f"{100 * curve[number]:.4f} %" if number < len(curve) else "-"
            for curve in (self.recorded, self.curve)
        ]


def _milliseconds(ms: float | None, spread: float | None) -> str:
    return "-" if ms is None else f"{ms:.2f} ms +- {spread or 0:.2f}"


def _times(speedup: float | None) -> str:
    return "-" if speedup is None else f"{speedup:.2f}x"


@checked(folder=PATH, name=TEXT, say=FUNCTION, model=TEXT)
def replay(
    folder: str | os.PathLike[str],
    name: str,
    say: Callable[[str], None] = say_to_stderr,
    *,
    model: str | None = None,
) -> Replay:
    """Repeat the training and timing of candidate `name` (baseline, a control, the index of a
    draw) of the study in `folder`.  `model`: that of the study, required if it is the user's code.
    Raises CanvasError if there is nothing to repeat.
    """
    folder = Path(folder)
    with ExitStack() as stack:
        study = stack.enter_context(Study.read(folder))
        row = _find(study, name)
        options = confirmed_options(study, model)
        images = images_of(study, options, stack)
        check_code(study, options, images)
        words = training_job(study, options, images, row)
        recorded = study.curve(row.id)
        pool = stack.enter_context(Pool(1, memory_per_child(1)))
        say(f"training {name} again: {several(len(recorded) or options['epochs'], 'epoch')}")
        curve, failure = _train(pool, words, len(recorded), row.status == "pruned", say)
        timings = study.timings(row.id)
        if timings and not failure:
            say(f"timing {name} again")
        again = {} if failure or not timings else _time(pool, words, timings)
        return Replay(
            row,
            recorded,
            curve,
            failure,
            [(timing, again.get(timing.engine, {})) for timing in timings],
            _differences(study, row),
        )


def confirmed_options(study: Study, model: str | None) -> dict[str, Any]:
    """The options of a study whose trainings are repeated; `model` as `replay` takes it."""
    options = study.options()
    if command_of(options) == FIT:
        raise CanvasError(
            f"the study in '{study.folder}' is of a fit: only trainings of a search are repeated"
        )
    if options["task"] != CLASSIFICATION:
        raise CanvasError(
            f"the study in '{study.folder}' is of the task '{options['task']}': only trainings of "
            "classifications are repeated"
        )
    confirm_model(options["model"], model, f"the study in '{study.folder}'")
    if model not in (None, options["model"]):
        raise CanvasError(
            f"the study in '{study.folder}' is of the model '{options['model']}', not '{model}': "
            "what was recorded is repeated"
        )
    check_child_import(options["model"])
    return options


def recipe_of(options: dict[str, Any], images: Path) -> Recipe:
    """What the study's network is built from; `images` is the folder of the images."""
    facts = stored.describe(images)
    return Recipe(
        options["model"],
        options["width"],
        facts["shape"],
        facts["classes"],
        str(LayerChoice.of(options)),
        options["seed"],
    )


def check_code(study: Study, options: dict[str, Any], images: Path) -> None:
    """Raise CanvasError where the unchanged network is another than when the search began."""
    if how := other_network(study.fact("model_record"), record_of(recipe_of(options, images))):
        raise CanvasError(
            f"the code of the model '{options['model']}' has changed since the search in "
            f"'{study.folder}', {how}: put it back, a replay is of the same network"
        )


def training_job(
    study: Study, options: dict[str, Any], images: Path, row: Candidate
) -> dict[str, Any]:
    """The job of training a candidate as the search does; `images` is the folder of the images."""
    recipe = recipe_of(options, images)
    return {
        "kind": "accuracy",
        "recipe": recipe.to_json(),
        "pack": row.pack or None,
        "task": options["task"],
        "deterministic": options.get("deterministic", False),
        "path": sys.path,
        "check": row.kind != "baseline",
        "images": {"folder": str(images), "seal": stored.seal_of(images)},
        "epochs": options["epochs"],
        "batch_size": options["batch_size"],
        "memory_format": row.memory_format or new_format(options),
        "test": False,
        "score_last": False,
    }


def _find(study: Study, name: str) -> Candidate:
    rows = study.select(name=name)
    if not rows:
        raise CanvasError(
            f"the study in '{study.folder}' has no candidate '{name}'; "
            f"canvas trials {study.folder} lists them"
        )
    row = rows[0]
    if row.status in ("new", "running"):
        raise CanvasError(f"candidate '{name}' of '{study.folder}' was not trained yet")
    if not row.pack and row.kind != "baseline":
        raise CanvasError(f"candidate '{name}' of '{study.folder}' never had sizes: {row.reason}")
    return row


def images_of(study: Study, options: dict[str, Any], stack: ExitStack) -> Path:
    """The folder of the images: the study's own copy, or read again if it is gone."""
    folder = (study.folder / stored.FOLDER).resolve()
    kept = stored.has(folder, SPLITS[:2])
    images = None if kept else load_images(options)
    checksum = images.checksum if images else stored.describe(folder)["checksum"]
    if checksum != study.fact("data_checksum"):
        raise CanvasError(
            f"the images of '{options['data']}' are not those of the study in '{study.folder}'"
        )
    if images:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / stored.FOLDER
        stored.store(images, folder)
    return folder


def _train(
    pool: Pool, words: dict[str, Any], epochs: int, pruned: bool, say: Callable[[str], None]
) -> tuple[list[float], str]:
    """The curve, cut where the recorded one was pruned, and why it failed."""
    curve: list[float] = []
    pool.start(0, words, YEAR)
    while pool.busy():
        for _, message in pool.wait(1.0):
            if message["event"] == "epoch":
                curve.append(float(message["accuracy"]))
                say(f"epoch {len(curve)}: {100 * curve[-1]:.1f} %")
                pool.answer(0, not (pruned and len(curve) == epochs))
            elif message["event"] == "failed":
                return curve, f"{message['kind']}: {message['reason']}"
    return curve, ""


def _time(pool: Pool, job: dict[str, Any], timings: list[Timing]) -> dict[str, Any]:
    """Figures by engine, of the engines that were timed."""
    engines = [timing.engine for timing in timings]
    words = {
        **{name: job[name] for name in ("recipe", "pack", "deterministic", "path")},
        "kind": "latency",
        "batch": timings[0].batch,
        "against": timings[0].against,
        "unchanged": list(
            dict.fromkeys([EAGER, *engines, *(t.against for t in timings if t.against)])
        ),
        "engines": engines,
    }
    pool.start(0, words, LATENCY_LIMIT)
    while pool.busy():
        for _, message in pool.wait(1.0):
            if message["event"] == "done":
                return dict(message["timed"])
    return {}


def _differences(study: Study, row: Candidate) -> list[str]:
    """Versions and machine that are not those of the session that trained the row."""
    session = next((s for s in study.sessions() if s["id"] == row.session), None)
    if session is None:
        return []
    different = [
        f"{name} {value} instead of {session['versions'].get(name)}"
        for name, value in versions().items()
        if session["versions"].get(name) != value
    ]
    here = machine()
    different += [
        f"{name} {here[name]} instead of {session['machine'].get(name)}"
        for name in ("processor", "cores", "system")
        if session["machine"].get(name) != here[name]
    ]
    return different
