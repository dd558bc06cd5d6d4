"""Start an operator from what its layer has learnt: weights by least squares on recorded images.

A weight in which the operator's output is affine, while all others stand, has a best value for the
recorded inputs and outputs: a linear least-squares problem.  Solving for one such weight after the
other is alternating least squares.  It finds sub-blocks and centre taps of the trained convolution
exactly, and low-rank factors as a singular value decomposition does, but in the metric of the
layer's own inputs.  Of an operator with activations, the weights behind the last one are solved;
those before it stay as they were drawn.

    linear_weights   which weights these are, by the facts of the kernel's primitives
    start_from       solves for them, and writes them into the module

Each problem is solved by conjugate gradients on the normal equations, products with the Jacobian
being a forward and a backward pass.  The preconditioner is the Kronecker product of two covariance
matrices, those of what the fully connected primitive reads and of the gradients of what it writes
(as in K-FAC, Martens and Grosse, 2015).  For a last weight that is the problem itself, so that one
or two iterations are enough; others take about five.

A BatchNorm behind such a weight keeps its present statistics as a fixed scale and shift during the
solution.  Afterwards its own scale and shift are set so that the module in training is the same
function of the sample.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode

from .. import _core
from ..nn.pack import load_class
from ..training.layer_data import LayerData
from ..training.layer_fit import TINY, nodes_of, standardised

POSITIONS = 4096  # output pixels of the sample: 8192 end 1 % lower for twice the time
IMAGES = (32, 256)  # of the sample: at least, at most
UNFOLDED = 8192  # output pixels for the covariances, which hold each pixel's window in memory
LEAST = 4  # images for them
SWEEPS = 2  # over all weights; the last weight is solved once more
ITERATIONS = 10  # of conjugate gradients for one weight, at most; GAIN ends most after 2 or 3
GAIN = 0.01  # least share of the squared error that an iteration must remove for another to follow
PROJECTION = -1  # the number of the weight that stands before all others
RIDGE = 1e-4  # of the mean variance, added to the covariances


def start_from(module: nn.Module, data: LayerData, seed: int, sweeps: int = SWEEPS) -> bool:
    """Solve for the weights of a kernel's module in which it is linear, so that it gives the
    standardised outputs of `data`; returns whether it came nearer to them.  If not, as with values
    that overflow, the module stays as it is.
    """
    linear = linear_weights(module)
    if not linear:
        return False
    chance = torch.Generator().manual_seed(seed)
    problem = _Problem(module, linear, *_sample(data, chance), chance)
    before = problem.error()
    backwards = linear[::-1]
    for index in backwards * sweeps + backwards[:1] if len(linear) > 1 else linear:
        problem.solve(index)
    if not problem.error() < before:
        return False
    problem.write_to(module)
    return True


def _sample(data: LayerData, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Some images' inputs and outputs."""
    least, most = IMAGES
    count = min(max(POSITIONS // data.outputs[0, 0].numel(), least), most)
    return data.batch(torch.randperm(len(data.inputs), generator=chance)[:count])


# -- which weights --


def linear_weights(module: nn.Module) -> list[int]:
    """The numbers of the weights in which a kernel's output is affine while all others stand: each
    primitive on the way is linear, and no product has the weight on both sides.  PROJECTION: that
    of a projected layer.
    """
    depends: dict[str, dict[int, bool]] = {}  # node -> the weights behind it: whether linearly
    projected = getattr(module, "projection", None) is not None
    count = 0
    for words in nodes_of(module):
        if words[0] == "out":
            return [i for i, affine in sorted(depends[words[1]].items()) if affine]
        name, _, primitive, *rest = words
        arity, facts = _primitive(primitive, rest)
        inputs = [depends[word] for word in rest[:arity]]
        behind: dict[int, bool] = {}
        for i in set().union(*inputs):
            sides = [weights[i] for weights in inputs if i in weights]
            product = primitive == "mul" and len(sides) > 1
            behind[i] = "linear" in facts and all(sides) and not product
        if "owns weights" in facts:
            behind[count] = True
            count += 1
        if primitive == "input" and projected:
            behind[PROJECTION] = True
        depends[name] = behind
    return []


def _primitive(name: str, rest: list[str]) -> tuple[int, list[str]]:
    """How many inputs a primitive has, and what is known of it; `rest` are the words behind it."""
    rows = [row for row in _primitives() if row["name"].split()[0] == name]
    arity = rows[0]["inputs"]
    flags = [word for word in rest[arity:] if "=" not in word]
    return arity, next(row["facts"] for row in rows if row["name"].split()[1:] == flags)


@cache
def _primitives() -> list[dict[str, Any]]:
    return list(json.loads(_core.primitives()))


# -- the problem --


class _Problem:
    """A copy of a module in which the norms behind the linear weights are fixed, and a sample."""

    def __init__(
        self,
        module: nn.Module,
        linear: list[int],
        inputs: Tensor,
        outputs: Tensor,
        chance: torch.Generator,
    ) -> None:
        self.model = copy.deepcopy(module).train().requires_grad_(False)
        self.inputs, self.wanted, self.chance = inputs, standardised(outputs), chance
        self.names = {i: "projection" if i == PROJECTION else f"w{i}" for i in linear}
        self.norms = [f"norm{i}" for i in linear if hasattr(module, f"norm{i}")]
        for norms, moments in self._moments():
            for at, (variance, mean) in enumerate(moments):
                norms[at] = _Fixed.of(norms[at], variance, mean)
        # The spelling without patterns has each fully connected primitive as one torch.matmul.
        spelled: Any = load_class(module.pack, patterns=False)
        self.plain = spelled.__new__(spelled)
        vars(self.plain).update(vars(self.model))

    def _moments(self) -> list[tuple[nn.ModuleList, list[tuple[Tensor, Tensor]]]]:
        """Variance and mean, per channel, of what the norms of the linear weights see."""
        seen: dict[nn.Module, tuple[Tensor, Tensor]] = {}

        def note(norm: nn.Module, given: tuple[Tensor, ...]) -> None:
            values = given[0].transpose(0, 1).flatten(1)
            seen[norm] = torch.var_mean(values, dim=1, correction=0)

        lists = [getattr(self.model, name) for name in self.norms]
        handles = [norm.register_forward_pre_hook(note) for norms in lists for norm in norms]
        with torch.no_grad():
            self.model(self.inputs)
        for handle in handles:
            handle.remove()
        return [(norms, [seen[norm] for norm in norms]) for norms in lists]

    def error(self) -> float:
        """Mean squared difference from the wanted outputs, the means of the channels aside."""
        return (_centred(self.model(self.inputs)) - self.wanted).square().mean().item()

    def solve(self, index: int) -> None:
        """Bring one weight nearer to its best value, the others as they stand."""
        name = self.names[index]
        weight = self.model.get_parameter(name).requires_grad_(True)
        precondition = self._preconditioner(weight)
        made = _centred(self.model(self.inputs))

        def forward(value: Tensor) -> Tensor:
            with torch.no_grad():
                return _centred(functional_call(self.model, {name: value}, (self.inputs,)))

        def backward(residual: Tensor) -> Tensor:
            return torch.autograd.grad(made, weight, residual, retain_graph=True)[0]

        zero = forward(torch.zeros_like(weight))
        value = _conjugate_gradients(
            weight.detach().clone(),
            self.wanted - made.detach(),
            lambda step: forward(step) - zero,
            backward,
            precondition,
        )
        weight.requires_grad_(False).copy_(value)

    def _preconditioner(self, weight: Tensor) -> Callable[[Tensor], Tensor]:
        """The inverse of about the normal equations' matrix, as a function of gradients."""
        some = max(UNFOLDED // self.wanted[0, 0].numel(), LEAST)
        with _Products(weight) as products:
            made = _centred(self.plain(self.inputs[:some]))
        noise = torch.randn(made.shape, generator=self.chance)
        written = [result for _, result in products.found]
        gradients = torch.autograd.grad(made, written, _centred(noise))
        inverses = [
            (_inverse_covariance(slope), _inverse_covariance(_about_means(read)))
            for (read, _), slope in zip(products.found, gradients, strict=True)
        ]

        def apply(gradient: Tensor) -> Tensor:
            parts = []
            for part, (left, right) in zip(gradient, inverses, strict=True):
                blocks = part.reshape(left.shape[0], left.shape[1], right.shape[1])
                parts.append((left @ blocks @ right).reshape(part.shape))
            return torch.stack(parts)

        return apply

    def write_to(self, module: nn.Module) -> None:
        """Give the module the weights found, and its norms the scales and shifts with which it is
        the same function.
        """
        with torch.no_grad():
            for name in self.names.values():
                module.get_parameter(name).copy_(self.model.get_parameter(name))
            for name, (fixed, moments) in zip(self.norms, self._moments(), strict=True):
                for norm, stands, (variance, mean) in zip(getattr(module, name), fixed, moments):
                    norm.weight.copy_(stands.scale * torch.sqrt(variance + norm.eps))
                    norm.bias.copy_(stands.shift + stands.scale * mean)


class _Fixed(nn.Module):
    """A norm with constant scale and shift, per channel."""

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.scale, self.shift = scale, shift

    @classmethod
    def of(cls, norm: nn.Module, variance: Tensor, mean: Tensor) -> _Fixed:
        """A BatchNorm in training, for inputs of this variance and mean."""
        scale = norm.weight * torch.rsqrt(variance + norm.eps)
        return cls(scale.detach(), (norm.bias - mean * scale).detach())

    def forward(self, x: Tensor) -> Tensor:
        shape = (-1, *[1] * (x.dim() - 2))
        return x * self.scale.reshape(shape) + self.shift.reshape(shape)


class _Products(TorchFunctionMode):
    """Notes the matrix products that a weight takes part in: what it is multiplied with, and the
    result, both [N, rows, pixels] or [N, groups, rows, pixels]; one for each copy of the kernel.
    """

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.storage = weight.untyped_storage().data_ptr()
        self.found: list[tuple[Tensor, Tensor]] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if func is torch.matmul and args[0].untyped_storage().data_ptr() == self.storage:
            self.found.append((args[1], result))
        return result


def _inverse_covariance(values: Tensor) -> Tensor:
    """[N, (groups,) rows, pixels] -> [groups, rows, rows], with a ridge."""
    grouped = values if values.dim() == 4 else values[:, None]
    rows = grouped.permute(1, 2, 0, 3).flatten(2)
    covariance = rows @ rows.transpose(1, 2) / rows.shape[2]
    variance = covariance.diagonal(dim1=1, dim2=2)
    variance += RIDGE * variance.mean(1, keepdim=True) + TINY
    return torch.linalg.inv_ex(covariance).inverse


def _about_means(values: Tensor) -> Tensor:
    """[N, ..., rows, pixels] with mean 0 in each row."""
    return values - values.mean(dim=(0, -1), keepdim=True)


def _centred(outputs: Tensor) -> Tensor:
    """[N, C, H, W] with mean 0 in each channel: a bias or a norm follows."""
    return outputs - outputs.mean(dim=(0, 2, 3), keepdim=True)


def _conjugate_gradients(
    value: Tensor,
    residual: Tensor,
    forward: Callable[[Tensor], Tensor],
    backward: Callable[[Tensor], Tensor],
    precondition: Callable[[Tensor], Tensor],
) -> Tensor:
    """`value` moved so that the squared sum of residual - forward(move) falls; at most ITERATIONS
    steps.  A step that is not finite is not made.
    """
    direction: Tensor | None = None
    before = 0.0
    for _ in range(ITERATIONS):
        gradient = backward(residual)
        scaled = precondition(gradient)
        size = float((gradient * scaled).sum())
        direction = scaled if direction is None else scaled + size / before * direction
        made = forward(direction)
        length = float(made.square().sum())
        error = float(residual.square().sum())
        step = size / length if length > 0 else 0.0
        gain = step * size  # what the step removes of the squared error
        if not 0 < gain <= error * (1 + GAIN):  # converged, or not finite
            break
        value = value + step * direction
        residual = residual - step * made
        before = size
        if gain < GAIN * error:
            break
    return value
