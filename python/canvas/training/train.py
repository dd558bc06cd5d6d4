"""Training, an epoch at a time: the one recipe by which everything here is trained.

SGD with Nesterov momentum 0.9, weight decay 5e-4 and clipped gradients under a one-cycle rate that
peaks at 0.1, the same for every candidate and every control.  The validation split is scored after
each epoch, or after the last one alone.  `train` is the short training by which a search ranks
candidates: it asks its caller after each epoch whether to go on, so that pruning needs no code
here.  `Training` is what it is made of, for longer ones (trainer.py), which can be carried over a
restart.  With one thread and one seed the result is the same every time on one machine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ..data import Data, Mapped, augment
from .kept import Kept
from .train_options import PEAK_RATE

MOMENTUM = 0.9
WEIGHT_DECAY = 5e-4
CLIP = 2.0  # norm of the gradient: chains of fc without norms between them diverge otherwise
STATISTICS_BATCHES = 8  # batches from which BatchNorm statistics are taken before each evaluation
SCORE_BATCH = 256


class NotFinite(ArithmeticError):
    """A loss, an output, a weight or a statistic is NaN or infinite: there is no accuracy."""


# The loss of a batch from its images [N, C, H, W], outputs and labels.
Objective = Callable[[Tensor, Tensor, Tensor], Tensor]


def cross_entropy(_images: Tensor, outputs: Tensor, labels: Tensor) -> Tensor:
    """The usual loss of classification."""
    return F.cross_entropy(outputs, labels)


@dataclass(frozen=True)
class Epoch:
    """What one epoch gave: its number from 0, accuracy on validation in 0..1 (NaN where it was not
    scored), mean training loss, accuracy on the training batches as they came, the rate it began
    with.
    """

    number: int
    accuracy: float
    loss: float
    train_accuracy: float
    rate: float


def train(
    model: nn.Module,
    data: Data | Mapped,
    epochs: int,
    seed: int,
    batch_size: int = 64,
    go_on: Callable[[Epoch], bool] = lambda epoch: True,
    until: int | None = None,
    kept: Kept | None = None,
    score_last: bool = False,
) -> list[Epoch]:
    """Train `model` on data.train for at most `epochs` epochs, or the first `until` of them, and
    return the curve on data.validation.

    `go_on` is called after every epoch; False ends the training.  `kept` is where it goes on from
    if it was left off there (the curve then begins later), and where it leaves off.  With
    `score_last` only the last epoch is scored, which spares about a fifth of the time.  Raises
    NotFinite where a loss, a weight, a statistic of BatchNorm or an output is NaN or infinite.
    """
    training = Training(model, data, epochs, seed, batch_size)
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

    The images of a batch are augmented by `data.augmentation`; the statistics of BatchNorm and
    every score are taken from images as they are.  The order of the images and what is done to
    them are drawn on the CPU, the same on every device.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Data | Mapped,
        epochs: int,
        seed: int,
        batch_size: int = 64,
        peak_rate: float = PEAK_RATE,
        objective: Objective = cross_entropy,
    ) -> None:
        self.model = model
        self.objective = objective
        self.data = data
        self.batch_size = min(batch_size, len(data.train[1]))
        self.steps = len(_batches(torch.arange(len(data.train[1])), self.batch_size))  # an epoch
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
        """Train on every image once; then, if `scored`, recompute BatchNorm and score.  Raises
        NotFinite.
        """
        images, labels = self.data.train
        rate = self.schedule.get_last_lr()[0]
        self.model.train()
        order = torch.randperm(len(labels), generator=self.order)
        loss, right = 0.0, 0
        for batch in _batches(order, self.batch_size):
            value, hits = self._step(images[batch], labels[batch])
            loss += value * len(batch)
            right += hits
        accuracy = math.nan
        if scored:
            statistics = images[order[: STATISTICS_BATCHES * self.batch_size]]
            recompute_statistics(self.model, statistics, self.batch_size)
        check_finite(self.model, f"after epoch {self.done + 1}")
        if scored:
            accuracy = score(self.model, self.data.validation)
        self.done += 1
        return Epoch(self.done - 1, accuracy, loss / len(labels), right / len(labels), rate)

    def _step(self, images: Tensor, labels: Tensor) -> tuple[float, int]:
        """One step on a batch [N, C, H, W]: its mean loss and how many of it were right."""
        device = device_of(self.model)
        images = self.data.augmentation.apply(images, self.chance).to(device)
        labels = labels.to(device)
        self.optimizer.zero_grad(set_to_none=True)
        output = self.model(images)
        loss = self.objective(images, output, labels)
        value = loss.item()
        if not math.isfinite(value):
            raise NotFinite(f"the loss is {value} in epoch {self.done + 1}")
        right = _right(output, labels)
        if right is None:
            raise NotFinite(f"outputs are not finite in epoch {self.done + 1}")
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        self.optimizer.step()
        self.schedule.step()
        return value, int(right.sum())

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
        if device_of(self.model).type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state()
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
        if "random.cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random.cuda"])
        self.done = done


def first_batch(data: Data | Mapped, seed: int, size: int) -> tuple[Tensor, Tensor]:
    """The images, augmented, and labels with which a training from `seed` in batches of `size`
    begins.
    """
    images, labels = data.train
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    batch = _batches(order, min(size, len(labels)))[0]
    return data.augmentation.apply(images[batch], augment.generator(seed)), labels[batch]


def part(tensors: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors called `name`.REST, by REST."""
    return {
        key.removeprefix(name + "."): value
        for key, value in tensors.items()
        if key.startswith(name + ".")
    }


def device_of(model: nn.Module) -> torch.device:
    """Where the network's weights are; the CPU for a network without any."""
    return next((weight.device for weight in model.parameters()), torch.device("cpu"))


def recompute_statistics(model: nn.Module, images: Tensor, batch_size: int) -> None:
    """Take the running statistics of BatchNorm anew from `images` [N, C, H, W] with the weights as
    they are.

    In the middle of a one-cycle schedule the weights move faster than running averages follow,
    and an evaluation would measure that lag: one network in its third epoch scored 23 % with
    running averages and 81 % without.
    """
    layers = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    momenta = [layer.momentum for layer in layers]
    if not layers:
        return
    for layer in layers:
        layer.reset_running_stats()
        layer.momentum = None  # the plain mean over the batches
    model.train()
    device = device_of(model)
    with torch.no_grad():
        for batch in images.split(batch_size):
            if len(batch) > 1:
                model(batch.to(device))
    for layer, momentum in zip(layers, momenta, strict=True):
        layer.momentum = momentum


def _batches(order: Tensor, size: int) -> list[Tensor]:
    """Batches of `size`; a last batch of one image joins its neighbour, for BatchNorm cannot
    take one.
    """
    batches = list(order.split(size))
    if len(batches) > 1 and len(batches[-1]) == 1:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


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


def _right(output: Tensor, labels: Tensor) -> Tensor | None:
    """Which images are classified right: bool [N]; None where an output is NaN or infinite, as
    the largest of such outputs means nothing.
    """
    if not torch.isfinite(output).all():
        return None
    return output.argmax(1) == labels


def score(model: nn.Module, split: tuple[Tensor, Tensor]) -> float:
    """Share of the split's images that the network classifies right, in evaluation mode;
    0..1.  Raises NotFinite.
    """
    right = hits(model, split)
    return int(right.sum()) / len(right)


def hits(model: nn.Module, split: tuple[Tensor, Tensor]) -> Tensor:
    """Which of the split's images the network classifies right, in evaluation mode: bool [N].
    Raises NotFinite where an output for one of them is NaN or infinite.
    """
    images, labels = split
    model.eval()
    device = device_of(model)
    rights, failed = [], 0
    with torch.no_grad():
        for batch, wanted in zip(
            images.split(SCORE_BATCH), labels.split(SCORE_BATCH), strict=True
        ):
            output = model(batch.to(device)).cpu()
            right = _right(output, wanted)
            if right is None:
                failed += int((~torch.isfinite(output).flatten(1).all(1)).sum())
            else:
                rights.append(right)
    if failed:
        raise NotFinite(f"outputs for {failed} of {len(labels)} images are not finite")
    return torch.cat(rights)
