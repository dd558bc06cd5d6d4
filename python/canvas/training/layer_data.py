"""What the layers of a trained network see and make: the inputs and outputs to which operators are
fitted.

    record   one pass over calibration images -> inputs and outputs of every target
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import CanvasError
from ..inputs import Inputs, call

BATCH = 64
MEMORY = 1 << 30  # bytes of all recorded tensors
LEAST = 64  # images below which no operator can be fitted


@dataclass(frozen=True)
class LayerData:
    """Inputs [N, C_in, H, W] and outputs [N, C_out, H', W'] of one layer, float16 or float32."""

    inputs: Tensor
    outputs: Tensor

    def batch(self, at: Tensor | slice) -> tuple[Tensor, Tensor]:
        """Inputs and outputs of some images, float32."""
        return self.inputs[at].float(), self.outputs[at].float()

    def split(self, first: int) -> tuple[LayerData, LayerData]:
        """The first images, and the rest."""
        return (
            LayerData(self.inputs[:first], self.outputs[:first]),
            LayerData(self.inputs[first:], self.outputs[first:]),
        )


def images_within(
    network: nn.Module,
    layers: Mapping[str, nn.Module],
    image: Tensor | Inputs,
    memory: int = MEMORY,
) -> int:
    """How many examples like this one, [1, C, H, W] or whatever the network takes, can be recorded
    in `memory` bytes of float16.

    Raises CanvasError if they are too few to fit anything.
    """
    bytes_each = sum(
        2 * (data.inputs.numel() + data.outputs.numel())
        for data in record(network, layers, image, torch.float16).values()
    )
    count = memory // max(bytes_each, 1)
    if count < LEAST:
        raise CanvasError(
            f"the layers of one image take {bytes_each >> 20} MiB, so that {memory >> 20} MiB "
            f"hold {count} images and {LEAST} are needed: give more memory, or smaller images"
        )
    return count


def record(
    network: nn.Module,
    layers: Mapping[str, nn.Module],
    images: Tensor | Inputs,
    dtype: torch.dtype = torch.float32,
) -> dict[str, LayerData]:
    """Inputs and outputs of `layers` (name -> a module of `network`) on `images`, or whatever
    the network takes, in evaluation mode; of a placeholder, as images.  Of a layer that runs
    several times in a pass, those of the largest images.

    Raises CanvasError if a layer does not run, or a value is NaN or infinite.
    """
    inputs: dict[str, list[Tensor]] = {name: [] for name in layers}
    outputs: dict[str, list[Tensor]] = {name: [] for name in layers}

    def hook_of(name: str):  # type: ignore[no-untyped-def]
        def hook(_: nn.Module, args: Any, kwargs: Any, made: Tensor) -> None:
            x = (args[0] if args else kwargs["input"]).detach()
            y, view = made.detach(), getattr(layers[name], "view", None)
            if view is not None:  # of a placeholder
                x, y = view.images(x), view.arranged(y)
            inputs[name].append(x.to("cpu", dtype))
            outputs[name].append(y.to("cpu", dtype))

        return hook

    handles = [
        layer.register_forward_hook(hook_of(name), with_kwargs=True)
        for name, layer in layers.items()
    ]
    training = network.training
    batches = list(images.split(BATCH))
    try:
        network.eval()
        with torch.no_grad():
            for batch in batches:
                call(network, batch)
    finally:
        network.train(training)
        for handle in handles:
            handle.remove()
    found = {}
    for name in layers:
        if not inputs[name]:
            raise CanvasError(f"layer '{name}' does not run: fitted layers run in each pass")
        largest = max(tensor[0].numel() for tensor in inputs[name])
        at = [i for i, tensor in enumerate(inputs[name]) if tensor[0].numel() == largest]
        found[name] = LayerData(
            torch.cat([inputs[name][i] for i in at]), torch.cat([outputs[name][i] for i in at])
        )
        for what, values in (("input", found[name].inputs), ("output", found[name].outputs)):
            if not torch.isfinite(values).all():
                raise CanvasError(
                    f"the {what} of layer '{name}' holds NaN, infinite values or some "
                    "beyond 65504 (float16) on the calibration images: check the weights and the "
                    "normalisation of the images"
                )
    return found
