"""A network by its names: model, images, policy and, for a candidate, the text of a pack.

The driver and its children build the same network from the same few words (a `Recipe`), so that
nothing but text travels between them.  The model is built afresh every time with the seed's
weights; converting and replacing then change only the layers that a kernel replaces.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from ..errors import CanvasError
from ..inputs import Inputs
from .behaviour import record, record_answers
from .convert import convert_layers, replace, restore_kept
from .layer_target import plain_name
from .load_model import check_model, load_model
from .pack import KernelPack
from .placeholder import get_placeholders, known_targets


@dataclass(frozen=True)
class Recipe:
    """What a network is built from; images are [channels, height, width].  `policy`: the text of
    a layer_choice.LayerChoice.  `classes` is 0 where
    its outputs are no scores of classes.  `inputs`: the form of what it takes (Inputs.form), empty
    for one image; `shape` is then that of the first image among it, zeros without any.
    """

    model: str
    width: int | None
    shape: tuple[int, int, int]
    classes: int
    policy: str
    seed: int
    inputs: Sequence[Any] = ()

    def example(self, count: int = 1, noise: torch.Generator | None = None) -> Inputs:
        """What the network takes for so many examples: zeros, or random numbers."""
        return Inputs.of_form(self.inputs or [["", self.shape, "float32"]], count, noise)

    def to_json(self) -> dict[str, Any]:
        words = asdict(self)
        if not self.inputs:  # as trainings that are left off have it
            del words["inputs"]
        return words

    @classmethod
    def from_json(cls, words: Mapping[str, Any]) -> Recipe:
        return cls(**{**words, "shape": tuple(words["shape"])})


def form_of(inputs: Inputs) -> tuple[tuple[int, int, int], Sequence[Any]]:
    """`shape` and `inputs` of the recipe of a network that takes these."""
    image = next((tensor for tensor in inputs.tensors if tensor.ndim == 4), None)
    channels, height, width = (0, 0, 0) if image is None else image.shape[1:]
    single = len(inputs.tensors) == 1 and not inputs.named and image is not None
    floats = all(tensor.dtype == torch.float32 for tensor in inputs.tensors)
    return (channels, height, width), () if single and floats else inputs.form


@dataclass(frozen=True)
class Plan:
    """The unchanged network as a search sees it: its targets, its whole cost for one image, one
    forward's seconds, and the record of what it does.
    """

    targets: str
    table: str
    macs: int
    params: int
    seconds: float
    record: str = ""


def plan_network(recipe: Recipe, batch: int = 1) -> Plan:
    """Convert the unchanged network once; raises CanvasError where nothing can be replaced, it
    does not fit the data or it cannot be trained.
    """
    model = build_network(recipe)
    if recipe.classes and not recipe.inputs:
        check_model(model, recipe.model, recipe.shape, recipe.classes)
    done = record_of(recipe)
    macs, params = cost_on(model, recipe.example())
    seconds = forward_seconds(model, recipe.example(batch))
    conversion = convert_layers(model, recipe.example().example, recipe.policy)
    return Plan(conversion.targets, str(conversion), macs, params, seconds, done)


def record_of(recipe: Recipe) -> str:
    """What the unchanged network does at its first step; raises CanvasError where it cannot be
    trained.  Of one that gives no scores of classes, its outputs.
    """
    if recipe.inputs:
        noise = recipe.example(2, torch.Generator().manual_seed(0))
        return record_answers(build_network(recipe), noise, recipe.model)
    if not recipe.classes:
        noise = torch.randn(2, *recipe.shape, generator=torch.Generator().manual_seed(0))
        return record_answers(build_network(recipe), Inputs.of(noise), recipe.model)
    return record(lambda: build_network(recipe), recipe.model, recipe.shape, recipe.classes)


def forward_seconds(model: nn.Module, examples: Inputs) -> float:
    """Seconds of one forward on one thread, roughly: the least of five, of processor time, which
    other work on the machine moves little (threads that wait for each other would count); of two
    where one takes long.
    """
    model.eval()
    taken: list[float] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            while len(taken) < 2 or (len(taken) < 6 and taken[-1] < 0.5):
                start = time.process_time()
                examples.call(model)
                taken.append(time.process_time() - start)
    finally:
        torch.set_num_threads(threads)
    return min(taken[1:])


def build_network(recipe: Recipe, pack: str | None = None) -> nn.Module:
    """The network with fresh weights; with the text of a pack, its targets are replaced by the
    kernel.
    """
    channels, height, _ = recipe.shape
    torch.manual_seed(recipe.seed)
    model = load_model(
        recipe.model,
        channels=channels,
        classes=recipe.classes,
        image_size=height,
        width=recipe.width,
    )
    if pack is None:
        return model
    kernel = KernelPack(pack)
    model = _converted(model, recipe, kernel)
    torch.manual_seed(recipe.seed + 1)
    return restore_kept(replace(model, kernel))


def re_solve(recipe: Recipe, pack: str) -> str:
    """The text of a pack with sizes chosen anew for the network's own image size."""
    kernel = KernelPack(pack)
    model = _converted(build_network(recipe), recipe, kernel)
    return kernel.re_solved(known_targets(get_placeholders(model))).text


def _converted(model: nn.Module, recipe: Recipe, kernel: KernelPack) -> nn.Module:
    """With placeholders in the layers that a pack names.

    Raises CanvasError if the choice of layers keeps some of those that it has kernels for.
    """
    example, named = recipe.example().example, [*kernel.targets, *kernel.kept]
    conversion = convert_layers(model, example, recipe.policy, inplace=True, named=named)
    names = {row.name: plain_name(row.name, set()) for row in conversion.table}
    own = [row for row in conversion.table if names[row.name] in kernel.targets]
    if any(row.status == "replaced" for row in own):  # else it goes by sizes
        for row in own:
            if row.status != "replaced":
                raise CanvasError(
                    f"the pack has a kernel for '{row.name}', which stays: {row.reason}"
                )
    return conversion.model


def cost(model: nn.Module, shape: tuple[int, int, int]) -> tuple[int, int]:
    """(MACs of one image, parameters) of the whole network."""
    return cost_on(model, Inputs.of(torch.zeros(1, *shape)))


def cost_on(model: nn.Module, example: Inputs) -> tuple[int, int]:
    """(MACs of one example, parameters) of the whole network: half of what torch's FlopCounterMode
    counts.
    """
    training = model.training
    model.eval()
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        example.call(model)
    model.train(training)
    return counter.get_total_flops() // 2, sum(p.numel() for p in model.parameters())
