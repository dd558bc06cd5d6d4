"""Training, an epoch at a time: the one recipe by which everything here is trained.

SGD with Nesterov momentum 0.9, weight decay 5e-4 and clipped gradients under a one-cycle rate that
peaks at 0.1, the same for every candidate and every control; loss and metric are a task's
(canvas/tasks).  The validation split is scored after each epoch, or after the last one alone.
`train` is the short training by which a search ranks candidates: it asks its caller after each
epoch whether to go on, so that pruning needs no code here.  `Training` is what it is made of, for
longer ones (trainer.py), which can be carried over a restart.  With one thread and one seed the
result is the same every time on one machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from ..data import Source, augment
from ..data.batches import Watched
from ..devices import autocast, scaler_of
from ..inputs import Inputs, call, map_tensors
from ..tasks.classification import CLASSIFICATION, hits_in
from ..tasks.evaluate import NotFinite, device_of, evaluate, finite, loss_of
from ..tasks.task import Task
from .kept import Kept
from .train_options import PEAK_RATE

MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
CLIP = 2.0  # norm of the gradient: chains of fc without norms between them diverge otherwise
STATISTICS_BATCHES = 8  # batches from which BatchNorm statistics are taken before each evaluation

# The loss of a batch, and what the network gave for it.
Objective = Callable[[nn.Module, Any], tuple[Tensor, Any]]


@dataclass(frozen=True)
class Epoch:
    """What one epoch gave: its number from 0, the task's metric on validation (NaN where it was
    not scored, or there is none), mean training loss, the rate it began with; of a classification
    the accuracy on the training batches as they came, else NaN; `waiting`: the share of the time
    between steps that passed until the next batch was there.
    """

    number: int
    accuracy: float
    loss: float
    train_accuracy: float
    rate: float
    waiting: float = field(default=0.0, compare=False)


def train(
    model: nn.Module,
    data: Source,
    epochs: int,
    seed: int,
    batch_size: int = 64,
    go_on: Callable[[Epoch], bool] = lambda epoch: True,
    until: int | None = None,
    kept: Kept | None = None,
    score_last: bool = False,
    task: Task = CLASSIFICATION,
    amp: str = "no",
) -> list[Epoch]:
    """Train `model` on data.train for at most `epochs` epochs, or the first `until` of them, and
    return the curve on data.validation.

    `go_on` is called after every epoch; False ends the training.  `kept` is where it goes on from
    if it was left off there (the curve then begins later), and where it leaves off.  With
    `score_last` only the last epoch is scored, which spares about a fifth of the time.  Raises
    NotFinite where a loss, a weight, a statistic of BatchNorm or an output is NaN or infinite.
    """
    training = Training(model, data, epochs, seed, batch_size, task=task, amp=amp)
    until = epochs if until is None else until
    curve: list[Epoch] = []
    if kept is not None:
        kept.restore(training, until)
    while training.done < until:
        curve.append(training.epoch(scored=not score_last or training.done == until - 1))
        if not go_on(curve[-1]):
            return curve
    if kept is not None and until < epochs:
        kept.store(training)
    return curve


class Training:
    """A network under training: `epoch` trains one more, `done` counts them.

    Batches and their order are the source's, drawn on the CPU, the same on every device; the
    statistics of BatchNorm and every score are taken from examples without augmentation.
    `objective` replaces the loss of the task.  The network is trained where its weights are, in
    the 16 bits of `amp`, if any; it is scored in the same.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Source,
        epochs: int,
        seed: int,
        batch_size: int = 64,
        peak_rate: float = PEAK_RATE,
        task: Task = CLASSIFICATION,
        objective: Objective | None = None,
        amp: str = "no",
    ) -> None:
        self.model = model
        self.amp = amp
        self.place = device_of(model)
        self.scaler = scaler_of(self.place, amp)
        self.task = task
        self.objective = objective or partial(_task_loss, task)
        self.data = data
        self.batch_size = batch_size
        self.steps = data.steps(batch_size)  # an epoch
        self.done = 0
        self.order = torch.Generator().manual_seed(seed)
        self.chance = augment.generator(seed)
        self.optimizer = torch.optim.SGD(
            model.parameters(),
            lr=peak_rate,
            momentum=MOMENTUM,
            weight_decay=WEIGHT_DECAY,
            nesterov=True,
        )
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            max_lr=peak_rate,
            total_steps=epochs * self.steps,
            cycle_momentum=False,
        )

    def epoch(self, scored: bool = True) -> Epoch:
        """Train on every batch once; then, if `scored`, recompute BatchNorm and score.  Raises
        NotFinite, and CanvasError for what a loader or a function of the task does wrong.
        """
        rate = self.schedule.get_last_lr()[0]
        self.model.train()
        batches = self.data.epoch(self.batch_size, self.order, self.chance)
        loss, hits, count = 0.0, 0, 0
        watched = Watched(batches)
        for batch in watched:
            value, right = self._step(batch)
            examples = len(self.task.inputs_of(batch))
            loss += value * examples
            hits += right
            count += examples
        if scored:
            plain = [self.task.inputs_of(batch) for batch in batches.plain(STATISTICS_BATCHES)]
            with autocast(self.place, self.amp):
                recompute_statistics(self.model, plain)
        check_finite(self.model, f"after epoch {self.done + 1}")
        score = None
        if scored:
            scored_on = on_place(self.data.scoring("validation"), self.place)
            with autocast(self.place, self.amp):
                score = evaluate(self.task, self.model, scored_on)
        self.done += 1
        return Epoch(
            self.done - 1,
            math.nan if score is None else score,
            loss / count,
            hits / count if self.task is CLASSIFICATION else math.nan,
            rate,
            watched.share,
        )

    def _step(self, batch: Any) -> tuple[float, int]:
        """One step on a batch: its mean loss and, of a classification, how many were right."""
        self.optimizer.zero_grad(set_to_none=True)
        batch = moved(batch, self.place)
        with autocast(self.place, self.amp):
            loss, outputs = self.objective(self.model, batch)
        value = loss.item()
        if not math.isfinite(value):
            raise NotFinite(f"the loss is {value} in epoch {self.done + 1}")
        if not finite(outputs):
            raise NotFinite(f"outputs are not finite in epoch {self.done + 1}")
        hits = 0
        if self.task is CLASSIFICATION:
            hits = hits_in(outputs, batch)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()
        return value, hits

    # ---- over a restart -----------------------------------------------------------------------

    def state(self) -> dict[str, Tensor]:
        """All that the next epoch depends on: model.NAME, momentum.NAME, random.NAME."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            momentum = self.optimizer.state.get(parameter, {}).get("momentum_buffer")
            if momentum is not None:
                tensors[f"momentum.{name}"] = momentum
        tensors["random.order"] = self.order.get_state()
        tensors["random.chance"] = self.chance.get_state()
        tensors["random.torch"] = torch.get_rng_state()
        if self.place.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state()
        if self.scaler.is_enabled():
            kept = self.scaler.state_dict()
            tensors["scaler.scale"] = torch.tensor(kept["scale"], dtype=torch.float64)
            tensors["scaler.steps"] = torch.tensor(kept["_growth_tracker"])
        return tensors

    def restore(self, tensors: Mapping[str, Tensor], done: int) -> None:
        """Be where a training of the same arguments was after `done` > 0 epochs, when `state` gave
        `tensors`.
        """
        self.model.load_state_dict(part(tensors, "model"))
        for name, momentum in part(tensors, "momentum").items():
            parameter = self.model.get_parameter(name)
            self.optimizer.state[parameter]["momentum_buffer"] = momentum.to(parameter.device)
        steps = done * self.steps
        self.schedule.load_state_dict({"last_epoch": steps - 1, "_step_count": steps})
        self.schedule.step()  # to the rate of step `steps`
        self.order.set_state(tensors["random.order"])
        self.chance.set_state(tensors["random.chance"])
        torch.set_rng_state(tensors["random.torch"])
        if "random.cuda" in tensors and self.place.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"])
        if self.scaler.is_enabled() and "scaler.scale" in tensors:
            kept = self.scaler.state_dict()
            kept["scale"] = tensors["scaler.scale"].item()
            kept["_growth_tracker"] = int(tensors["scaler.steps"])
            self.scaler.load_state_dict(kept)
        self.done = done


def moved(batch: Any, place: torch.device) -> Any:
    """A batch with its tensors on a device."""
    if place.type == "cpu":
        return batch
    return map_tensors(lambda tensor: tensor.to(place, non_blocking=True), batch)


class _OnPlace:
    """Batches with their tensors on a device; what else they have, such as `dataset`, is there."""

    def __init__(self, batches: Any, place: torch.device) -> None:
        self._batches, self._place = batches, place

    def __iter__(self) -> Iterator[Any]:
        return (moved(batch, self._place) for batch in self._batches)

    def __len__(self) -> int:
        return len(self._batches)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batches, name)


def on_place(batches: Any, place: torch.device) -> Any:
    """Batches to score a network on, where it is."""
    return batches if place.type == "cpu" else _OnPlace(batches, place)


def first_batch(data: Source, seed: int, size: int) -> Any:
    """The batch, augmented, with which a training from `seed` in batches of `size` begins."""
    order = torch.Generator().manual_seed(seed)
    return next(iter(data.epoch(size, order, augment.generator(seed))))


def part(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors called `name`.REST, by REST."""
    return {
        key.removeprefix(name + "."): value
        for key, value in tensors.items()
        if key.startswith(name + ".")
    }


def recompute_statistics(model: nn.Module, batches: Iterable[Tensor | Inputs]) -> None:
    """Take the running statistics of BatchNorm anew from `batches` with the weights as they are.

    In the middle of a one-cycle schedule the weights move faster than running averages follow,
    and an evaluation would measure that lag: one network in its third epoch scored 23 % with
    running averages and 81 % without.  Batches of one example are used where there are no others;
    where no batch can be, the statistics stay.
    """
    layers = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    if not layers:
        return
    kept = [{name: value.clone() for name, value in layer.named_buffers()} for layer in layers]
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean over the batches
    model.train()
    given, device = list(batches), device_of(model)
    several = [batch for batch in given if len(batch) > 1]
    passed = 0
    with torch.no_grad():
        for batch in several or given:
            with suppress(*[ValueError] * (not several)):  # one value for each channel
                call(model, batch.to(device))
                passed += 1
        for layer, momentum, buffers in zip(layers, momenta, kept, strict=True):
            layer.momentum = momentum
            for name, value in buffers.items() if not passed else ():
                layer.get_buffer(name).copy_(value)


def check_finite(model: nn.Module, when: str) -> None:
    """Raise NotFinite where a trained weight or a running mean or variance is NaN or infinite.
    Other buffers may be so on purpose, as masks of attention.
    """
    tensors = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    for path, module in model.named_modules():
        for name in ("running_mean", "running_var"):
            value = getattr(module, name, None)
            if isinstance(value, Tensor):
                tensors.append((f"{path}.{name}".lstrip("."), value))
    for name, value in tensors:
        if not torch.isfinite(value.detach()).all():
            raise NotFinite(f"'{name}' is not finite {when}")


def _task_loss(task: Task, model: nn.Module, batch: Any) -> tuple[Tensor, Any]:
    loss, call = loss_of(task, model, batch)
    return loss, call.outputs
