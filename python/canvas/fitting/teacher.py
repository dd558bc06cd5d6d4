"""The trained network that operators are fitted to, with places where they can stand in.

Teacher.of(network, ...)   a copy whose convolutions are placeholders that still hold them
swapped(...)               with one operator in the place of a layer, for the time being
assemble(...)              a new network with fitted operators in several layers
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..inputs import Inputs
from ..nn.convert import convert_layers, copied, restore_kept
from ..nn.layer_target import Target
from ..nn.placeholder import Placeholder, get_placeholders
from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task
from ..training.layer_data import LayerData, images_within, record
from ..training.train import recompute_statistics
from .divergence import batch_of, bytes_of, divergence, outputs_of

STATISTICS = 512  # examples from which BatchNorm is computed anew
BATCH = 64
OUTPUT_BYTES = 256 << 20  # of the teacher's outputs on examples for scores


@dataclass(frozen=True)
class Fitted:
    """An operator that was fitted to a layer: its module, and the bias [C_out] that goes with it,
    used where the layer has one.
    """

    module: nn.Module
    bias: Tensor


class Teacher:
    """The trained network, the examples it is imitated on, and what it gives for them.

    `train`: inputs for fits and statistics; `validation`: inputs for scores, fewer where their
    outputs would take more than OUTPUT_BYTES.
    """

    def __init__(
        self,
        network: nn.Module,
        policy: str,
        train: Tensor | Inputs,
        validation: Tensor | Inputs,
        task: Task = CLASSIFICATION,
    ) -> None:
        self.network = copied(network).eval().requires_grad_(True)
        self.task = task
        self.train = Inputs.of(train)
        conversion = convert_layers(self.network, self.train[:1].example, policy)
        self.converted = conversion.model.eval()
        self.table = str(conversion)
        self.holders: dict[str, Placeholder] = {
            holder.target.name: holder
            for holder in get_placeholders(self.converted).values()
            if holder.target is not None
        }
        each = max(1, bytes_of(outputs_of(self.network, self.train[:1])))
        self.validation = Inputs.of(validation)[: max(1, OUTPUT_BYTES // each)]
        self.outputs = outputs_of(self.network, self.validation)
        self.counts = [len(batch) for batch in self.validation.split(batch_of(self.validation))]
        # What BatchNorm's new statistics cost alone: every item has it, so kept layers have it.
        self.floor = self.divergence(self.assemble({}))

    @property
    def targets(self) -> list[Target]:
        return [holder.target for holder in self.holders.values() if holder.target is not None]

    def layer_data(self, memory: int, most: int) -> tuple[dict[str, LayerData], int]:
        """What each layer sees and makes on the first training examples, and how many these are:
        as many as `memory` bytes hold, at most `most`.
        """
        count = min(most, len(self.train))
        count = min(count, images_within(self.converted, self.holders, self.train[:1], memory))
        return record(self.converted, self.holders, self.train[:count], torch.float16), count

    @contextmanager
    def swapped(self, layer: str, fitted: Fitted) -> Iterator[nn.Module]:
        """The converted network with an operator in one layer, statistics of BatchNorm anew."""
        holder = self.holders[layer]
        kept = {name: value.clone() for name, value in self.converted.named_buffers()}
        holder.kernel = fitted.module
        if getattr(holder.original, "bias", None) is not None:
            holder.bias = nn.Parameter(fitted.bias, requires_grad=False)
        try:
            recompute_statistics(self.converted, self.train[:STATISTICS].split(BATCH))
            yield self.converted.eval()
        finally:
            holder.kernel = None
            holder.register_parameter("bias", None)
            with torch.no_grad():
                for name, value in self.converted.named_buffers():
                    value.copy_(kept[name])
            self.converted.eval()

    def loss_of(self, layer: str, fitted: Fitted) -> float:
        """Divergence from the teacher with this operator alone."""
        with self.swapped(layer, fitted) as network:
            return self.divergence(network)

    def divergence(self, network: nn.Module) -> float:
        outputs = outputs_of(network, self.validation)
        return divergence(self.task, outputs, self.outputs, self.counts)

    def assemble(self, chosen: Mapping[str, Fitted]) -> nn.Module:
        """A new network with fitted operators in the layers that `chosen` names, in placeholders,
        statistics of BatchNorm anew; the other layers are the teacher's.
        """
        network = copy.deepcopy(self.converted)
        for holder in get_placeholders(network).values():
            fitted = None if holder.target is None else chosen.get(holder.target.name)
            if fitted is not None:
                had_bias = getattr(holder.original, "bias", None) is not None
                holder.put(copy.deepcopy(fitted.module))
                holder.bias = nn.Parameter(fitted.bias.clone()) if had_bias else None
        network = restore_kept(network)
        recompute_statistics(network, self.train[:STATISTICS].split(BATCH))
        return network.eval()
