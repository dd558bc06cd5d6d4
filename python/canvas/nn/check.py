"""Compare the PyTorch module of a pack with the interpreter, which defines what a kernel means.

The kernel is lowered to a program, and the core's interpreter evaluates it in double precision.
The module, with and without patterns, must give the same output in float64 on seeded weights and a
seeded image:

    max |module - interpreter| <= 1e-9 * max(1, max |interpreter|)

If the pack has norms, their statistics, scales and shifts are seeded too.  The module is then
compared in evaluation mode, as it is and after `fold`; the interpreter runs on the folded weights.

`check` uses small bindings with the groups, windows, strides, dilations and copies of the pack,
the fewest legal channels and images of 5 x 6; a kernel that takes the stride itself has whole
multiples of it where another has one pixel less.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any, Protocol, TypeVar

import torch
from torch import Tensor, nn

from .. import _core
from ..errors import CanvasError, NoSolution

TOLERANCE = 1e-9
LIMIT = 1e100  # larger values are reported as an overflow
STEPS = 250_000  # of the interpreter for one binding; with more, elements are sampled
SPELLINGS = ("with patterns", "without patterns")
HEIGHT, WIDTH = 5, 6  # after the stride; unequal, so that swapped axes show
EVEN = 4, 8  # for kernels that pool their images


class Pack(Protocol):
    """The part of KernelPack (pack.py) that is checked: pack.py imports this file."""

    text: str

    def __init__(self, text: str) -> None: ...

    @property
    def kernel(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def norm(self) -> str: ...

    @property
    def parts(self) -> tuple[Pack, ...]: ...

    @property
    def params(self) -> int: ...

    @property
    def cost(self) -> dict[str, Any]: ...

    @property
    def module(self) -> type[Any]: ...


P = TypeVar("P", bound=Pack)


def check(pack: Pack, seed: int = 0) -> float:
    """Compare the modules of a pack's kernels with the interpreter on small bindings like its own;
    the largest error, relative to max(1, max |interpreter|).

    Raises ArithmeticError where they differ by more than 1e-9, CanvasError where no small binding
    is legal.
    """
    smalls = (small for part in pack.parts for small in small_packs(part))
    return max(compare(small, seed=seed) for small in smalls)


def small_packs(pack: P) -> list[P]:
    """The kernel of a pack of one at one small binding for every kind of binding that it has."""
    kinds: dict[tuple[int, ...], dict[str, int]] = {}
    for b in pack.module.BINDINGS:
        projected, common = b.get("projected", 0), math.gcd(b["cin"], b["cout"])
        several = projected or b["cin"] > common, projected or b["cout"] > common
        blocks = (2 if several[0] else 1, 2 + bool(several[0]) if several[1] else 1)
        sizes = (b["kh"], b["kw"], b["stride"], b.get("dilation", 1), projected)
        kinds.setdefault((b.get("g", 1), *sizes, *blocks), b)
    return [_small_pack(pack, kind, b) for kind, b in kinds.items()]


def _small_pack(pack: P, kind: tuple[int, ...], binding: dict[str, int]) -> P:
    groups, kh, kw, stride, dilation, projected, inputs, outputs = kind
    largest = binding["cout"] if projected else math.gcd(binding["cin"], binding["cout"])
    why = ""
    heights = sorted({HEIGHT * stride - (stride > 1), HEIGHT * stride})
    images = [(height, WIDTH * stride) for height in heights] + [
        (EVEN[0] * stride, EVEN[1] * stride)
    ]
    grains = [m for m in (2, 3, 4, 6, 8, 12, 16, 24, 32) if groups * m < largest]
    for channels in [*(groups * m for m in grains if groups * m >= 4), largest]:
        cin, cout = channels * inputs, channels * outputs
        for (height, width), budget in product(images, ("macs=1x", "macs=30x", "macs=none")):
            sizes = f"{height} {width} {kh}x{kw} {stride} 1 {dilation} {projected}"
            target = f"small {cin} {cout} {sizes}"
            try:
                options = f"G={groups} exempt=1 norm={pack.norm}"
                return type(pack)(
                    _core.solve(pack.kernel, target, f"{budget},params=none", options)
                )
            except NoSolution as error:
                why = str(error)
    raise CanvasError(f"no small sizes to check '{pack.name}' at: {why}")


def compare(pack: Pack, target: int = 0, seed: int = 0, elements: int | None = None) -> float:
    """Compare module and interpreter at one binding of a pack, with and without patterns, before
    and after folding its norms; the largest relative error.

    `elements`: how many outputs are compared, chosen by the seed, first and last among them (None:
    as many as the interpreter has time for).  Raises ArithmeticError where they differ.
    """
    generator = torch.Generator().manual_seed(seed)
    modules = [_module(pack, target, patterns) for patterns in (True, False)]
    if pack.params:
        modules[0].reset_parameters(generator)
    draw_norms(modules[0], generator)
    modules[1].load_state_dict(modules[0].state_dict())
    binding = modules[0].BINDINGS[target]
    x = torch.randn(
        1, binding["cin"], binding["h"], binding["w"], generator=generator, dtype=torch.float64
    )
    with torch.no_grad():
        results = [(module(x).flatten(), how) for module, how in zip(modules, SPELLINGS)]
        if hasattr(modules[0], "fold"):
            folded = [module.fold()(x).flatten() for module in modules]
            results += [(y, f"folded and {how}") for y, how in zip(folded, SPELLINGS)]
    places = _places(results[0][0].numel(), elements, pack.cost["targets"][target], generator)
    wanted = interpret(pack, target, x, modules[0], places)
    return max(_error(pack, y[places], wanted, places, how) for y, how in results)


def draw_norms(module: nn.Module, generator: torch.Generator) -> None:
    """Give every BatchNorm in `module` statistics, a scale and a shift as a training may."""
    with torch.no_grad():
        for norm in module.modules():
            if isinstance(norm, (nn.BatchNorm1d, nn.BatchNorm2d)):
                assert norm.running_mean is not None and norm.running_var is not None
                for drawn in (norm.running_mean, norm.weight, norm.bias):
                    drawn.normal_(generator=generator)
                norm.running_var.uniform_(0.25, 4, generator=generator)


def interpret(pack: Pack, target: int, x: Tensor, module: Any, places: Tensor) -> Tensor:
    """Elements of the interpreter's output for one image on the weights (and biases: a module with
    norms is folded) of `module`; float64, places int64.
    """
    program = _core.lower(pack.text, target)
    operands = [getattr(module, name) for name, *_ in _core.signature(program)[0][1:]]
    arrays = [x, *(array.squeeze(0) if array.shape[0] == 1 else array for array in operands)]
    inputs = [array.detach().contiguous().numpy().tobytes() for array in arrays]
    answer = _core.evaluate(program, inputs, places.numpy().tobytes())
    return torch.frombuffer(bytearray(answer), dtype=torch.float64)


def _module(pack: Pack, target: int, patterns: bool) -> Any:
    """An instance in float64; its class is forgotten afterwards."""
    names: dict[str, Any] = {"__name__": "canvas._checked"}
    exec(_core.torch_code(pack.text, patterns), names)
    cls = names[pack.name]
    binding = cls.BINDINGS[target]
    return cls(binding["cin"], target=binding["name"]).double().eval()


def _places(
    count: int, wanted: int | None, cost: dict[str, Any], generator: torch.Generator
) -> Tensor:
    if wanted is None:
        steps = cost["macs"] + cost["elementwise"] + cost["activations"]
        wanted = max(32, count * STEPS // max(steps, 1))
    if wanted >= count:
        return torch.arange(count)
    some = torch.randint(count, (wanted,), generator=generator)
    some[0], some[-1] = 0, count - 1
    return some


def _error(pack: Pack, result: Tensor, wanted: Tensor, places: Tensor, how: str) -> float:
    size = wanted.abs().max().item()
    if not size <= LIMIT:
        raise OverflowError(f"values of '{pack.name}' pass 1e100")
    errors = (result - wanted).abs()
    error = errors.max().item() / max(1.0, size)
    if error <= TOLERANCE:
        return error
    at = int(errors.nan_to_num(nan=torch.inf).argmax())
    raise ArithmeticError(
        f"element {int(places[at])} of '{pack.name}' {how} is {result[at].item():.12g}, "
        f"the interpreter says {wanted[at].item():.12g}"
    )
