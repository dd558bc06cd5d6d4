"""From a find to a trained network: a long training that survives what happens to long jobs.

    DIR/checkpoint.safetensors  all that the next epoch depends on, and what came of the epochs
       |                        before; one file, renamed into place: the only truth
       +-> weights.safetensors  the network after the last epoch
       +-> best.safetensors     the network after its best epoch on validation
       +-> log.csv              a row per epoch, for a plot
    DIR/result.json             the one score on the test split, at the very end

What stands on the right of an arrow follows from the checkpoint and is made again from it, so a
kill between two files separates nothing.  With the same threads a training that was killed and
resumed ends with the weights of one that was not, bit for bit; only a network that draws from
Python's or numpy's own generators is beyond that.  The test split is scored once, with the
weights that are best on validation, and no choice follows from it.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..arguments import FUNCTION, PATH, SWITCH, TEXT, checked
from ..data import Data
from ..devices import Device, autocast, check_amp, device_error, resolve_one
from ..environment import versions
from ..errors import CanvasError, one_line
from ..files import open_lock, try_lock
from ..nn.load_model import check_model
from ..nn.network import Recipe, build_network
from ..nn.network import re_solve as solve_again
from ..nn.pack import KernelPack
from ..options import changed, read_device, read_option
from ..reporting.callbacks import CALLBACKS, Callbacks, EpochEvent
from ..reporting.epoch_log import open_log
from ..reporting.report import write_atomically
from ..tasks.classification import accuracy
from ..tasks.evaluate import NotFinite, device_of
from ..text import printable, printable_lines
from ..training import checkpoint
from ..training.train import Epoch, Training, part
from ..training.train_options import THREADS, TRAIN_OPTIONS
from .setting import (
    LOG_COLUMNS,
    NAMED,
    RESULT,
    STATE,
    Choice,
    about,
    prepare,
    recipe_of,
    training_facts,
    training_result,
)

WEIGHTS, BEST = "weights.safetensors", "best.safetensors"
LOG, LOCK = "log.csv", "train.lock"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Trained:
    """The end of a training: the network with its best weights, in evaluation mode on the CPU.

    `data` is the name of the images.  Accuracies are in 0..1; `epoch`, from 1, is the best one on
    validation; `standard_error` is that of `test_accuracy`, measured on `test_images` images.
    """

    folder: Path
    network: nn.Module
    data: str
    epoch: int
    val_accuracy: float
    test_accuracy: float
    standard_error: float
    test_images: int

    def __str__(self) -> str:
        return (
            f"Test on {self.data}: {100 * self.test_accuracy:.2f} % +- "
            f"{100 * self.standard_error:.2f} (standard error) of {self.test_images} images that "
            f"nothing was trained on or chosen by, with the weights of epoch {self.epoch}, the "
            f"best on validation ({100 * self.val_accuracy:.2f} %)"
        )


@checked(
    what=NAMED,
    out=PATH,
    resume=SWITCH,
    device=TEXT,
    say=FUNCTION,
    re_solve=SWITCH,
    callbacks=CALLBACKS,
    log_dir=PATH,
)
def train_network(
    what: str | os.PathLike[str] | KernelPack,
    *,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    device: str = "auto",
    threads: int | str | None = None,
    re_solve: bool = False,
    say: Say | None = None,
    callbacks: Sequence[Any] = (),
    log_dir: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Trained:
    """Train a network with the kernel that `what` names to the end.

    `what`: a candidate of a study (`runs/demo/17`), a pack or its file, or `baseline` for the
    unchanged network.  `options` are those of `canvas train --help`, with underscores; `data` may
    be a `canvas.data.Data`; missing ones are those of the study.  `out`: the folder of the
    training (default: train-NAME beside the study's finds, else in canvas-runs/).  `resume`
    continues after the last complete epoch; without it, a folder that holds a training is
    rejected. `device`: auto, cpu, cuda or cuda:N.  `re_solve` chooses the kernel's sizes anew for
    the images of this training and the same share of MACs; without it they are those of the pack,
    for images of any size where no weight spans the image.  `say` receives one line per epoch
    (default: standard error).  `callbacks` are objects with a method on_epoch(canvas.EpochEvent);
    `log_dir` is a folder for CSV and TensorBoard events (docs/logging.md).

    Raises CanvasError for bad input or a failed training, and KeyboardInterrupt on Ctrl-C;
    complete epochs are kept.
    """
    choice, values, images = prepare(what, options, TRAIN_OPTIONS, "canvas train")
    if re_solve:
        choice = _solved(choice, recipe_of(values, images.shape, images.classes))
    where = _device(device)
    check_amp(where, values["amp"])
    folder = Path(out) if out is not None else default_folder(choice)
    say = say or _say_to_stderr
    with (
        _reproducible(read_option(THREADS, threads), where.place),
        open_log(log_dir, False) as log,
        _locked(folder),
    ):
        network = _build(recipe_of(values, images.shape, images.classes), choice.pack)
        with where.alone(network, GO_ON):
            followers = Callbacks(callbacks, log)
            run = Run(folder, choice, values, images, network.to(where.place), say, followers)
            try:
                run.begin(resume)
                run.epochs()
                return run.finish()
            except KeyboardInterrupt:
                say(run.how_to_go_on())
                raise


def _solved(choice: Choice, recipe: Recipe) -> Choice:
    if choice.pack is None:
        raise CanvasError(f"'{choice.name}' has no kernel whose sizes could be chosen anew")
    return replace(choice, pack=solve_again(recipe, choice.pack))


GO_ON = (
    "what is done is kept, the same command with --resume goes on, also with another --device; a "
    "new training with a smaller --batch-size needs less"
)


def default_folder(choice: Choice) -> Path:
    return (choice.study or Path("canvas-runs")) / f"train-{choice.name}"


class Run:
    """One training in its folder; `history` has a row of LOG_COLUMNS per epoch."""

    def __init__(
        self,
        folder: Path,
        choice: Choice,
        options: Mapping[str, Any],
        images: Data,
        network: nn.Module,
        say: Say,
        callbacks: Callbacks,
    ) -> None:
        self.folder = folder
        self.callbacks = callbacks
        self.options = options
        self.images = images
        self.say = say
        self.recipe = recipe_of(options, images.shape, images.classes)
        self.training = Training(
            network,
            images,
            options["epochs"],
            options["seed"],
            options["batch_size"],
            options["rate"],
            amp=options["amp"],
        )
        self.history: list[dict[str, Any]] = []
        self.name = choice.name
        self.facts = {
            "name": choice.name,
            "pack": choice.pack,
            "options": dict(options),
            "figures": dict(choice.figures),
            "images": about(images),
            "versions": versions(),
        }

    # ---- the course ---------------------------------------------------------------------------

    def begin(self, resume: bool) -> None:
        """Start at the first epoch, or after the last one that is there; say what is trained."""
        there = (self.folder / STATE).exists()
        if there and not resume:
            raise CanvasError(
                f"'{self.folder}' holds a training already: --resume continues it, "
                "--out names another folder"
            )
        self.callbacks.claim_training(self.name, there)
        if there:
            self._restore()
            self.callbacks.log_again(map(self._event, self.history))
        else:
            (self.folder / RESULT).unlink(missing_ok=True)  # of a training that somebody removed
        if self.callbacks.note:
            self.say(self.callbacks.note)
        self._announce()
        if there:
            self.say(f"going on after epoch {self.training.done} of {self.options['epochs']}")
        elif resume:
            self.say("nothing is there to go on with: this is the beginning")

    def epochs(self) -> None:
        """Train what is missing; every whole epoch is kept before the next one begins."""
        while self.training.done < self.options["epochs"]:
            start = time.monotonic()
            epoch = self._epoch()
            self.history.append(_row(epoch, time.monotonic() - start))
            self.keep()
            self.say(self._line())
            self.callbacks.epochs(self._event(self.history[-1]))

    def _event(self, row: dict[str, Any]) -> EpochEvent:
        """An epoch that is kept, for the callbacks."""
        return EpochEvent(
            self.folder, "training", self.name, self.options["seed"], row["epoch"],
            self.options["epochs"], row["train_loss"], row["val_accuracy"], "accuracy",
            row["seconds"],
        )  # fmt: skip

    def finish(self) -> Trained:
        """Score the test split with the best weights; what was scored before is read again."""
        weights, facts = checkpoint.read(self.folder / BEST)
        network = self.training.model
        checkpoint.load_weights(network, weights, self.folder / BEST)
        path = self.folder / RESULT
        if not path.exists():
            share, count = self._score_test(), len(self.images.test[1])
            result = {
                "name": self.facts["name"],
                "epoch": facts["epoch"],
                "val_accuracy": facts["val_accuracy"],
                "test_accuracy": share,
                "standard_error": math.sqrt(share * (1 - share) / count),
                "test_images": count,
                "seconds": sum(row["seconds"] for row in self.history),
            }
            write_atomically(path, json.dumps(result, indent=1) + "\n")
        return Trained(
            self.folder, network.cpu().eval(), self.images.name, **training_result(path)
        )

    def how_to_go_on(self) -> str:
        """The message of an interrupted training; a checkpoint may be one epoch behind us."""
        path = self.folder / STATE
        if not path.exists():
            return "stopped before the first epoch was over: nothing is kept"
        done = len(training_facts(path)["history"])
        return (
            f"stopped after epoch {done} of {self.options['epochs']}: "
            "the same command with --resume continues"
        )

    # ---- what is kept -------------------------------------------------------------------------

    def keep(self) -> None:
        """Write the checkpoint, then everything that follows from it."""
        facts = {**self.facts, "history": self.history}
        checkpoint.write(self.folder / STATE, self.training.state(), facts)
        self._publish()

    def _publish(self) -> None:
        """The weights and the log as the checkpoint has them."""
        weights = checkpoint.weights_of(self.training.model)
        last, best = self.history[-1], self._best()
        facts = {
            "name": self.facts["name"],
            "epoch": last["epoch"],
            "epochs": self.options["epochs"],
            "val_accuracy": last["val_accuracy"],
            "versions": self.facts["versions"],
        }
        if best is last:
            checkpoint.write(self.folder / BEST, weights, facts)
        checkpoint.write(self.folder / WEIGHTS, weights, facts)
        write_atomically(self.folder / LOG, log_csv(self.history))

    def _restore(self) -> None:
        facts = training_facts(self.folder / STATE)
        difference = self._difference(facts)
        if difference:
            raise CanvasError(
                f"the training in '{self.folder}' is another one ({difference} now): "
                "give its options, or another --out"
            )
        tensors, _ = checkpoint.read(self.folder / STATE)
        self.history = facts["history"]
        network = self.training.model
        checkpoint.load_weights(network, part(tensors, "model"), self.folder / STATE)
        self.training.restore(tensors, len(self.history))
        self._publish()

    def _difference(self, facts: Mapping[str, Any]) -> str:
        """How the training in the checkpoint differs from this one, in words; "" for the same."""
        difference = changed(facts["options"], self.options, TRAIN_OPTIONS)
        if not difference and facts["pack"] != self.facts["pack"]:
            difference = f"{self.facts['name']} instead of {facts['name']}"
        if not difference and facts["images"] != self.facts["images"]:
            difference = "other images"
        return difference

    def _best(self) -> dict[str, Any]:
        """The first of the epochs that are best on validation."""
        return max(self.history, key=lambda row: row["val_accuracy"])

    # ---- small things -------------------------------------------------------------------------

    def _score_test(self) -> float:
        try:
            with autocast(self.training.place, self.options["amp"]):
                return accuracy(self.training.model, self.images.scoring("test"))
        except NotFinite as error:
            raise CanvasError(f"no test accuracy, as {error} in '{self.folder / BEST}'") from None

    def _announce(self) -> None:
        threads = torch.get_num_threads()
        self.say(
            f"{self.facts['name']} in {self.recipe.model} on {self.images.name}: "
            f"{self.images.description}"
        )
        self.say(
            f"{self.options['epochs']} epochs on {device_of(self.training.model).type}, "
            f"{threads} thread{'s' * (threads > 1)}, in '{self.folder}'"
        )

    def _epoch(self) -> Epoch:
        try:
            return self.training.epoch()
        except NotFinite as error:
            raise CanvasError(f"{error}: a smaller --rate may help") from None
        except RuntimeError as error:
            if device_error(error):
                raise
            raise CanvasError(f"the network cannot be trained: {one_line(error)}") from error

    def _line(self) -> str:
        row, count = self.history[-1], len(str(self.options["epochs"]))
        best = "  best" if row is self._best() else ""
        return (
            f"epoch {row['epoch']:{count}}/{self.options['epochs']}  {row['seconds']:.1f} s  "
            f"loss {row['train_loss']:.4f}  train {100 * row['train_accuracy']:.1f} %  "
            f"validation {100 * row['val_accuracy']:.1f} %  rate {row['rate']:.4f}{best}"
        )


def log_csv(history: list[dict[str, Any]]) -> str:
    """The rows of a training as CSV: epochs from 1, accuracies in 0..1."""
    text = io.StringIO()
    writer = csv.DictWriter(text, LOG_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in history:
        writer.writerow(
            {key: f"{row[key]:.6g}" if key != "epoch" else row[key] for key in LOG_COLUMNS}
        )
    return text.getvalue()


def _row(epoch: Epoch, seconds: float) -> dict[str, Any]:
    return {
        "epoch": epoch.number + 1,
        "train_loss": epoch.loss,
        "train_accuracy": epoch.train_accuracy,
        "val_accuracy": epoch.accuracy,
        "rate": epoch.rate,
        "seconds": seconds,
    }


def _build(recipe: Recipe, pack: str | None) -> nn.Module:
    network = build_network(recipe, pack)
    check_model(network, recipe.model, recipe.shape, recipe.classes)
    checkpoint.weights_of(network)
    return network


def _device(name: str) -> Device:
    try:
        text = read_device(name)
    except ValueError:
        raise CanvasError(
            f"--device takes auto, cpu or cuda, not '{printable(str(name))}'"
        ) from None
    return resolve_one(text, "a training")


def _say_to_stderr(line: str) -> None:
    print(printable_lines(line), file=sys.stderr, flush=True)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One training at a time in a folder, which is made if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open_lock(folder / LOCK)
    except OSError as error:
        raise CanvasError(f"'{folder}' cannot hold a training: {error.strerror}") from None
    with lock:
        try:
            free = try_lock(lock)
        except OSError as error:
            raise CanvasError(
                f"'{folder / LOCK}' cannot be locked ({error.strerror}): name an --out on a file "
                "system with locks"
            ) from error
        if not free:
            raise CanvasError(
                f"another training is running in '{folder}': wait for it or name another --out"
            )
        yield


@contextmanager
def _reproducible(threads: int | None, device: torch.device) -> Iterator[None]:
    """The same numbers every time, with `threads` threads; the process's ways come back after."""
    before = torch.get_num_threads()
    strict = torch.are_deterministic_algorithms_enabled()
    warning = torch.is_deterministic_algorithms_warn_only_enabled()
    filling = torch.utils.deterministic.fill_uninitialized_memory
    if device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.set_num_threads(threads or before)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # nothing reads it
    torch.set_flush_denormal(True)  # numbers below 1e-38 cost time and mean nothing here
    try:
        yield
    finally:
        torch.set_num_threads(before)
        torch.use_deterministic_algorithms(strict, warn_only=warning)
        torch.utils.deterministic.fill_uninitialized_memory = filling
        torch.set_flush_denormal(False)
