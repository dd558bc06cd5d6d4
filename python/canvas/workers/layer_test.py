"""The pre-test of a kernel: a short fit to one layer of the unchanged network, trained before.

    record   the trained unchanged network -> inputs and outputs of one layer, in a file
    error    a kernel, that file -> STEPS steps at the layer -> the error that remains

A kernel that cannot imitate a layer of a trained network hardly ever trains well (docs/search.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..data import Source, augment
from ..errors import CanvasError
from ..nn.convert import convert_layers
from ..nn.layer_target import Target, screening_layer
from ..nn.pack import KernelPack
from ..nn.placeholder import get_placeholders
from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task
from ..training import checkpoint
from ..training.layer_data import BATCH, LEAST, LayerData, images_within, record
from ..training.layer_fit import fit_module

STEPS = 60
IMAGES = 1536  # recorded at most: 256 for the error, the others for STEPS batches
MEMORY = 64 << 20  # bytes of the recorded inputs and outputs


@dataclass(frozen=True)
class RecordedLayer:
    """The file of a layer's inputs and outputs (float16); `facts` are what they follow from, as
    JSON has it.
    """

    path: Path
    facts: Mapping[str, Any]

    def record(
        self, network: nn.Module, policy: str, data: Source, task: Task = CLASSIFICATION
    ) -> None:
        """Write what the layer of `screening_layer` sees and makes on training images.

        Raises CanvasError or OSError where there is nothing to record or to write to.
        """
        images = task.inputs_of(data.first("train", 1)[0])
        conversion = convert_layers(network, images[:1].example, policy)
        targets = map(Target.from_line, conversion.targets.splitlines())
        layer, model = screening_layer(list(targets)), conversion.model
        holders = get_placeholders(model).values()
        layers = {layer.name: next(h for h in holders if h.target == layer)}
        most = min(IMAGES, images_within(model, layers, images[:1], MEMORY))
        parts: list[LayerData] = []
        count = 0
        order = data.epoch(BATCH, torch.Generator().manual_seed(0), augment.generator(0))
        for batch in order.plain(-(-most // BATCH)):
            some = task.inputs_of(batch)[: most - count]
            parts.append(record(model, layers, some, torch.float16)[layer.name])
            count += len(some)
            if count >= most:
                break
        if count < LEAST:
            raise CanvasError(f"{count} training images are too few to fit a layer ({LEAST})")
        tensors = {
            "inputs": torch.cat([part.inputs for part in parts]),
            "outputs": torch.cat([part.outputs for part in parts]),
        }
        checkpoint.write(self.path, tensors, {**self.facts, "layer": layer.line()})

    def error(self, pack: str, seed: int) -> float | None:
        """1 - r^2 of the kernel's outputs and the layer's after STEPS steps, 0..1; None where
        nothing is recorded with these facts, or the pack does not replace the layer.
        """
        try:
            tensors, facts = checkpoint.read(self.path)
            layer = Target.from_line(facts.pop("layer"))
            data = LayerData(tensors["inputs"], tensors["outputs"])
        except (CanvasError, KeyError, TypeError, ValueError):
            return None
        kernel = KernelPack(pack)
        if facts != self.facts or layer.name not in kernel.targets:
            return None
        part = kernel.part(layer.name)
        assert part is not None
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            module = part.module(layer.cin, target=layer.name)
            return fit_module(module, data, STEPS, seed)[0]
