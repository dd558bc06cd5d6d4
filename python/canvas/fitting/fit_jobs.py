"""What one job of a fit does: fit an operator to a layer, compare or tune a network.

A result is a function of the teacher, the data and the words of the job, so that any process that
has these may do it: a child of the driver (job_runner.py), or a worker on another machine.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor, nn

from ..data import SPLITS, DataFailed, Source, resident
from ..devices import Device, DeviceFailed
from ..errors import CanvasError
from ..inputs import Inputs
from ..nn.fold import fold
from ..nn.latency import NATIVE, Latency, measure
from ..tasks.evaluate import NotFinite, evaluate, hits_of
from ..tasks.task import Task
from ..training.layer_data import LayerData
from ..training.train import Training
from . import weight_files
from .divergence import imitation
from .item_table import Outcome, Way, fit_operator, outcome_of
from .menu import Sized
from .screen import error_of
from .teacher import Fitted, Teacher

IMAGES = 3000  # recorded at most
VALIDATION = 1024  # examples on which divergences are taken, at most
RATE = 0.05  # peak of the tuning
FARTHEST = 1e9  # a divergence that a study keeps

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Chosen:
    """An operator of a network after so many steps of its fit from a seed."""

    sized: Sized
    steps: int
    seed: int


@dataclass(frozen=True)
class Tuning:
    """A network to tune: its operators, or the `teacher` itself."""

    chosen: Sequence[Chosen]
    teacher: bool
    seed: int
    epochs: int


@dataclass(frozen=True)
class Tuned:
    """A network that was tuned: the metric on validation and on the test split, divergences before
    and after; `why`: the reason for no result; `waiting`: the share of the time that it waited for
    data; `untuned`: tuning made it worse, so that it is as fitted; `curve`: loss, metric on
    validation (None if not taken) and seconds of each epoch.
    """

    score: float | None = None
    divergence: float = math.inf
    tuned_divergence: float = math.inf
    weights: bytes = b""
    test: float | None = None
    hits: bytes = b""
    used: float = 0.0
    why: str = ""
    waiting: float = 0.0
    untuned: bool = False
    curve: Sequence[Sequence[float | None]] = ()


@dataclass(frozen=True)
class Refitted:
    """An operator that was fitted: its weights as a file, its error at the layer, the processor
    seconds.
    """

    weights: bytes
    error: float
    used: float


@dataclass
class FitJobs:
    """`recorded`: what the layers see and make; `fetch`: the kept weights of an operator, None
    where there are none; networks are tuned on `device` in the 16 bits of `amp`.
    """

    teacher: Teacher
    source: Source
    recorded: Mapping[str, LayerData]
    device: Device
    amp: str
    fetch: Callable[[Chosen], Tensors | None]
    teacher_code: nn.Module | None = field(default=None, init=False, repr=False)

    @property
    def task(self) -> Task:
        return self.teacher.task

    # ---- operators ------------------------------------------------------------------------------

    def error(self, sized: Sized, seed: int) -> tuple[float, float]:
        """The error of a kernel that is screened, and the processor seconds."""
        return error_of(sized, self.recorded[sized.layer], seed)

    def item(self, sized: Sized, steps: int, seed: int, timed: bool) -> Outcome:
        """An item of the table."""
        way = Way(seed, timed)
        return outcome_of(self.teacher, self.recorded[sized.layer], sized, steps, way)

    def refit(self, one: Chosen) -> Refitted:
        """An operator fitted anew, with its weights."""
        begun = time.process_time()
        fitted, error = fit_operator(
            self.recorded[one.sized.layer], one.sized, one.steps, one.seed
        )
        return Refitted(weight_files.fitted_to_bytes(fitted), error, time.process_time() - begun)

    def fitted(self, one: Chosen) -> Fitted:
        """From its kept weights or, where these are gone, fitted again."""
        fitted = weight_files.fitted_from(self.fetch(one), one.sized)
        data = self.recorded[one.sized.layer]
        return fitted or fit_operator(data, one.sized, one.steps, one.seed)[0]

    # ---- networks -------------------------------------------------------------------------------

    def assembled(self, chosen: Sequence[Chosen]) -> nn.Module:
        """The teacher with these operators in their layers."""
        return self.teacher.assemble({one.sized.layer: self.fitted(one) for one in chosen})

    def divergence(self, chosen: Sequence[Chosen]) -> float:
        """Of a network from the teacher, before any tuning."""
        return self.teacher.divergence(self.assembled(chosen))

    def tuned(self, job: Tuning) -> Tuned:
        """Fitted operators, distillation, scores."""
        begun = time.process_time()
        if job.teacher:
            network = copy.deepcopy(self.teacher.network)
        else:
            network = self.assembled(job.chosen)
        try:
            divergence = self.teacher.divergence(network)
            before = self.score(network)
            fitted = copy.deepcopy(network)
            score, waiting, curve = self._distill(network, job.epochs, job.seed)
            after = min(self.teacher.divergence(network), FARTHEST)
            worse = self._is_worse((score, after), (before, divergence))
            if worse:  # too few steps, or too large ones for this network
                network, score, after = fitted, before, min(divergence, FARTHEST)
            test, right = self.test(network)
        except NotFinite as error:
            return Tuned(why=f"nan: {error}")
        except (DataFailed, DeviceFailed):
            raise  # no fault of this network: the fit ends, and the same call goes on
        except CanvasError as error:  # of the user's loss or metric
            return Tuned(why=f"error: {error}")
        for weight in network.parameters():
            weight.grad = None
        data = weight_files.to_bytes(network.state_dict())
        used = time.process_time() - begun
        return Tuned(
            score, divergence, after, data, test, right, used, waiting=waiting, untuned=worse,
            curve=curve,
        )  # fmt: skip

    def _is_worse(
        self, tuned: tuple[float | None, float], fitted: tuple[float | None, float]
    ) -> bool:
        """Whether tuning has made a network worse on validation: by its metric, or by the
        divergence from the teacher where there is none.
        """
        if tuned[0] is None or fitted[0] is None:
            return tuned[1] > fitted[1]
        merit = self.task.judged_by.merit
        return merit(tuned[0]) < merit(fitted[0])

    def _distill(
        self, network: nn.Module, epochs: int, seed: int
    ) -> tuple[float | None, float, list[tuple[float, float | None, float]]]:
        """The metric on validation after so many epochs, None for a task without one; the share
        of the time that was spent waiting for data; the curve.  Raises NotFinite.
        """
        curve: list[tuple[float, float | None, float]] = []
        if not epochs:
            return self.score(network), 0.0, curve
        place = self.device.place
        teacher = self.teacher.network
        try:
            with self.device.alone(network):
                if self.device.shared:
                    teacher = copy.deepcopy(teacher).to(place)
                network.to(place)
                near: Any = resident(self.source, place, self.device.memory()[0], SPLITS[:2])
                training = Training(
                    network, near, epochs, seed, peak_rate=RATE, task=self.task,
                    objective=imitation(self.task, teacher), amp=self.amp,
                )  # fmt: skip
                for epoch in range(epochs):
                    begun = time.monotonic()
                    last = training.epoch(scored=epoch == epochs - 1)
                    value = None if math.isnan(last.accuracy) else last.accuracy
                    curve.append((last.loss, value, time.monotonic() - begun))
        finally:
            with suppress(RuntimeError):  # the device may be gone
                network.cpu()
        return curve[-1][1], last.waiting, curve

    def time(self, network: nn.Module | None) -> Latency:
        """The native code of a network beside that of the teacher, or (None) of the teacher
        itself, for one example.  Raises CanvasError where there is none.
        """
        example = self.teacher.train[:1]
        if self.teacher_code is None:
            self.teacher_code = native_code(self.teacher.network, example)
        own = None if network is None else {NATIVE: native_code(network, example)}
        return measure({NATIVE: self.teacher_code}, own, example)[NATIVE]

    def score(self, network: nn.Module) -> float | None:
        """The metric on validation."""
        return evaluate(self.task, network, self.source.scoring("validation"))

    def test(self, network: nn.Module) -> tuple[float | None, bytes]:
        """The metric on the test split, and which examples are right, where that is the metric."""
        right = hits_of(self.task, network, self.source.scoring("test"), self.source.count("test"))
        if right is not None:
            return None, np.packbits(right.numpy()).tobytes()
        return evaluate(self.task, network, self.source.scoring("test")), b""


def native_code(network: nn.Module, example: Inputs) -> nn.Module:
    """Raises CanvasError with one line."""
    from ..workers.engines import native

    return native(fold(network), example.example)
