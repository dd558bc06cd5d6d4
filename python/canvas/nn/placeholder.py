"""Places in a network where a kernel goes: find, learn their shapes, draw a kernel, put it in.

    draw:     targets of all placeholders -> kernel and its sizes -> KernelPack
    replace:  KernelPack -> one module per placeholder, bound by the target's name

A placeholder stays where it is and holds the kernel, so that a network can be given another kernel
later: the weights are ``<path>.kernel.w0`` in its state_dict.

The process seed: `sample` without a seed takes the next draw of the stream that belongs to it, 0
when the process starts (so that a script prints the same kernel twice), set by `seed`.
"""

from __future__ import annotations

import inspect
import math
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace as replaced
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .. import _core
from ..arguments import SWITCH, TEXT, WHOLE, checked, did_you_mean, shown
from ..errors import CanvasError, NoSolution, one_line
from ..options import latency_limit, without_latency
from ..study.learn import Learn, kernels_of
from .layer_target import Target, plain_name, targets_text
from .layer_time import share_of_time
from .layer_view import View
from .pack import KernelPack
from .published_options import PUBLISHED, by_argument, check_running, published_options

DRAWS = 1000  # indices that one call of `sample` tries
NORMS = ("batch", "none")


class Placeholder(nn.Module):
    """Where a kernel goes; until then the identity, or the layer that `canvas.convert` found here.

    Put in by hand it accepts [N, C, H, W], [N, C, W] and [N, C].  For budgets it then counts as a
    dense convolution C -> C with a window of 3 along each axis.  A bias of the layer stays and is
    added after the kernel.
    """

    kernel: nn.Module | None
    original: nn.Module | None
    bias: Tensor | None

    def __init__(self) -> None:
        super().__init__()
        self.kernel = None
        self.original = None
        self.register_parameter("bias", None)
        self.target: Target | None = None
        self.view = View()
        self.by_hand = True

    @classmethod
    def instead_of(cls, layer: nn.Module, target: Target, view: View) -> Placeholder:
        """A placeholder that computes `layer`, seen by `view`, until it is replaced."""
        placeholder = cls()
        placeholder.original = layer
        placeholder.target = target
        placeholder.view = view
        placeholder.by_hand = False
        return placeholder

    def forward(self, input: Tensor) -> Tensor:
        if self.kernel is not None:
            if self.view.is_plain:
                y = self.kernel(input)
                return y if self.bias is None else y + self.bias[:, None, None]
            if input.dim() != self.view.rank:
                raise CanvasError(
                    f"a kernel for inputs of {self.view.rank} axes, as in the example, does not "
                    f"take {list(input.shape)}"
                )
            y = self.kernel(self.view.images(input))
            return self.view.restored(y if self.bias is None else y + self.bias[:, None, None])
        if self.original is not None:
            return self.original(input)
        if self.by_hand and not 2 <= input.dim() <= 4:
            raise CanvasError(
                f"a placeholder takes tensors of 2 to 4 axes, not {list(input.shape)}"
            )
        return input

    def put(self, kernel: nn.Module) -> None:
        """Hold `kernel`; the layer is dropped but for its bias."""
        if self.original is not None:
            self.bias = self.original.bias
            del self.original
            self.original = None
        self.kernel = kernel

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        """A checkpoint of the network before `canvas.convert` has the convolution's weights where
        the placeholder is.
        """
        for name in [] if self.original is None else self.original.state_dict():
            if prefix + name in state_dict:
                state_dict[f"{prefix}original.{name}"] = state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, *others)

    def extra_repr(self) -> str:
        if self.target is None:
            return ""
        return self.target.line() + (" (counts as dense 3x3)" if self.by_hand else "")


# -- finding and learning --


def get_placeholders(module: nn.Module, example_input: Any = None) -> dict[str, Placeholder]:
    """The placeholders of a network by their paths, in the order of its modules.

    With `example_input` (a tensor, or a tuple or dict of arguments) one forward pass records the
    input shapes.  It leaves the network unchanged: no gradients, no update of BatchNorm, modes
    restored.  Raises CanvasError if `module` is not a network, has no placeholder or does not run,
    or if a shape fits no kernel.
    """
    if not isinstance(module, nn.Module):
        raise CanvasError(f"a torch.nn.Module is needed, not {type(module).__name__}")
    found = {
        path: child for path, child in module.named_modules() if isinstance(child, Placeholder)
    }
    if not found:
        raise CanvasError(
            "the network has no placeholder; put canvas.Placeholder() into it or canvas.convert it"
        )
    if example_input is not None:
        _learn(module, found, example_input)
    return found


def _learn(module: nn.Module, found: Mapping[str, Placeholder], example_input: Any) -> None:
    shapes: dict[nn.Module, list[tuple[int, ...]]] = {}

    def note(layer: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        value = args[0] if args else kwargs["input"]
        shapes.setdefault(layer, []).append(tuple(value.shape))

    with _without_kernels(child for child in found.values() if child.by_hand):
        run_quietly(module, example_input, dict.fromkeys(found.values(), note))
    for path, child in found.items():
        shape = _largest(path or "placeholder", shapes.get(child, []))
        if child.by_hand or not child.target:
            child.view = View(len(shape))
        elif len(shape) != child.view.rank:
            raise CanvasError(
                f"placeholder '{path}' sees {list(shape)}; it was converted for inputs of "
                f"{child.view.rank} axes"
            )
        elif child.view.last:
            pieces = max(1, shape[0] // examples_of(example_input))
            child.view = child.view._replace(pieces=pieces)
        h, w = child.view.images(torch.empty(shape, device="meta")).shape[2:]
        if child.by_hand or not child.target:
            kh, kw = (3 if len(shape) > axes else 1 for axes in (3, 2))
            child.target = Target(path or "placeholder", shape[1], shape[1], h, w, kh, kw)
        else:
            child.target = replaced(child.target, h=h, w=w)


@contextmanager
def _without_kernels(placeholders: Any) -> Iterator[None]:
    """Identities meanwhile: a kernel whose weights fix H and W would reject another example."""
    kept = [(child, child.kernel) for child in placeholders]
    for child, _ in kept:
        child.kernel = None
    try:
        yield
    finally:
        for child, kernel in kept:
            child.kernel = kernel


def _largest(path: str, shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of the largest input that a placeholder saw."""
    if not shapes:
        raise CanvasError(f"placeholder '{path}' is not reached by the example input")
    if len({len(shape) for shape in shapes}) > 1:
        seen = " and ".join(str(list(shape)) for shape in dict.fromkeys(shapes))
        raise CanvasError(f"placeholder '{path}' sees inputs of different shapes: {seen}")
    shape = max(shapes, key=math.prod)
    if not 2 <= len(shape) <= 4:
        raise CanvasError(f"placeholder '{path}' sees {list(shape)}; a kernel needs [N, C, H, W]")
    return shape


def run_quietly(module: nn.Module, example_input: Any, pre_hooks: Mapping[nn.Module, Any]) -> None:
    """One forward pass that leaves no trace: evaluation mode, no gradient, hooks removed, modes
    restored.

    Raises CanvasError if the network does not run on the example.
    """
    args, kwargs = _arguments(module, example_input)
    modes = [(child, child.training) for child in module.modules()]
    handles = [
        layer.register_forward_pre_hook(hook, with_kwargs=True)
        for layer, hook in pre_hooks.items()
    ]
    try:
        module.eval()
        with torch.no_grad():
            module(*args, **kwargs)
    except CanvasError:
        raise
    except Exception as error:
        raise CanvasError(
            f"the network does not run on the example input: {one_line(error)}"
        ) from error
    finally:
        for handle in handles:
            handle.remove()
        for child, training in modes:
            child.training = training


def examples_of(example_input: Any) -> int:
    """How many examples there are in an example input: the first axis of its first tensor.

    Raises CanvasError where there is none.
    """
    values = example_input.values() if isinstance(example_input, Mapping) else example_input
    if not isinstance(example_input, (Mapping, tuple, list)):
        values = [example_input]
    tensors = (value for value in values if isinstance(value, Tensor) and value.dim())
    count = next((len(tensor) for tensor in tensors), 1)
    if not count:
        raise CanvasError("the example input is empty: give at least one example")
    return count


def _arguments(module: nn.Module, example_input: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Tensors of the example are taken to where the network is."""
    device = _home(module)[0]

    def move(value: Any) -> Any:
        return value.to(device) if isinstance(value, Tensor) and device is not None else value

    if isinstance(example_input, Mapping):
        return (), {name: move(value) for name, value in example_input.items()}
    if isinstance(example_input, (tuple, list)):
        return tuple(move(value) for value in example_input), {}
    if isinstance(example_input, Tensor):
        return (move(example_input),), {}
    raise CanvasError(
        "the example input is a tensor, or a tuple or dict of arguments, "
        f"not {type(example_input).__name__}"
    )


def _home(module: nn.Module) -> tuple[torch.device | None, torch.dtype | None]:
    """Device and dtype of a network: of its first parameter or buffer of floating point."""
    for tensor in [*module.parameters(), *module.buffers()]:
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return None, None


def known_targets(placeholders: Mapping[str, Placeholder]) -> list[Target]:
    """The targets of placeholders, renamed where a targets text cannot hold the name."""
    targets: list[Target] = []
    names: set[str] = set()
    for path, child in placeholders.items():
        if child.target is None:
            raise CanvasError(
                f"the shape of placeholder '{path}' is not known yet; give an example_input"
            )
        name = plain_name(child.target.name, names)
        child.target = replaced(child.target, name=name)
        targets.append(child.target)
    return targets


# -- drawing --


class _Process:
    """The process seed and the next draw of its stream."""

    seed = 0
    index = 0


def seed(number: int) -> None:
    """Set the process seed of canvas.sample (0 <= number < 2**63) and restart its draws at 0."""
    _check_whole("seed", number)
    _Process.seed, _Process.index = number, 0


@checked(budget=TEXT, groups=WHOLE, require=TEXT, draws=TEXT, norm=TEXT, space=TEXT)
def sample(
    module: nn.Module,
    example_input: Any = None,
    budget: str | None = None,
    seed: int | None = None,
    index: int | None = None,
    primitives: str | tuple[int, int] | None = None,
    groups: int | None = None,
    require: str | None = None,
    draws: str | None = None,
    norm: str = "none",
    space: str | None = None,
    *,
    allowed_filter: str | Sequence[str] | None = None,
    forbidden_filter: str | Sequence[str] | None = None,
    necessary_filter: str | Sequence[str] | None = None,
    kernel_sizes: Sequence[int] | None = None,
    dilated_sizes: Sequence[int] | None = None,
    shift_sizes: Sequence[int] | None = None,
    num_primitive_range: tuple[int, int] | None = None,
    num_max_width_range: tuple[int, int] | None = None,
    num_weighted_range: tuple[int, int] | None = None,
    max_weighted_ratio: float | None = None,
    force_bmm_possibility: float | None = None,
    min_receptive_size: int | None = None,
    ensure_spatial_invariance: bool | None = None,
    workers: int = 1,
    timeout: float = 0,
    learn: Learn | Sequence[Learn] | None = None,
) -> KernelPack:
    """Draw a kernel for all placeholders of a network, with sizes that fill the budget.

    `budget`: such as "macs=0.5x,params=0.5x", relative to the replaced layers; a quantity that is
    not named is limited to 1.0x.  With "latency=0.6x" in it the layers' native code is timed, and
    kernels that are slower are passed over.  A placeholder put in by hand counts as a dense 3x3
    convolution C -> C.  `seed` and `index`: draw number `index` of `seed`, the same on every
    machine.  Without `index` it is the first draw that fits; without `seed` the next one of the
    process seed (canvas.seed).  `primitives`: number of primitives, "5..12" or (5, 12).
    `groups`: the value of G.  `require`: "reach" (see several pixels along H and W, mix all
    channels; the default) or "none".  `norm`: "batch" adds a BatchNorm after every weight inside
    the kernel, as a search does.  `draws`: "rules" (the default), "learned" or "paper", with
    changes such as "rules,free=0.2".  `space`: the primitives that are drawn, "paper" (the
    default), "published" or "wide".

    `learn`: what draws="learned" learns from, beside the known kernels: the path of a file of
    kernels or of a pack, the folder of a study (the best quarter of its kernels, at most 64), a
    pack, a text of kernels, or several of these.

    The others are the options of the published release, by its names; docs/kernel.md has their
    table.  Given ones hold in every draw.  `workers` changes nothing; `timeout`: seconds after
    which no further draw is tried, 0 for none.

    Raises CanvasError for bad input and NoSolution if no kernel fits.
    """
    given = {name: value for name, value in locals().items() if name in PUBLISHED}
    _check_norm(norm)
    targets = targets_text(known_targets(get_placeholders(module, example_input)))
    return draw_pack(
        targets,
        budget=budget,
        seed=seed,
        index=index,
        primitives=primitives,
        groups=groups,
        require=require,
        draws=draws,
        norm=norm,
        space=space,
        workers=workers,
        timeout=timeout,
        learn=learn,
        **given,
    )


@checked(budget=TEXT, groups=WHOLE, require=TEXT, draws=TEXT, norm=TEXT, space=TEXT)
def draw_pack(
    targets: str,
    *,
    budget: str | None = None,
    seed: int | None = None,
    index: int | None = None,
    primitives: str | tuple[int, int] | None = None,
    groups: int | None = None,
    require: str | None = None,
    draws: str | None = None,
    norm: str = "none",
    space: str | None = None,
    workers: int = 1,
    timeout: float = 0,
    learn: Learn | Sequence[Learn] | None = None,
    **published: Any,
) -> KernelPack:
    """`sample` for a text of targets."""
    _check_norm(norm)
    for name in published:
        if name not in PUBLISHED:
            known = (*inspect.signature(sample).parameters,)[2:]
            raise TypeError(f"there is no option '{name}'" + did_you_mean(name, known))
    check_running(workers, timeout)
    if primitives is not None and published.get("num_primitive_range") is not None:
        raise CanvasError("primitives and num_primitive_range are the same: give one of them")
    options = _draw_options(primitives, groups, require, draws, space)
    options = f"{options} {published_options(published)}".strip()
    options = "\n".join([options, *(f"learn=\n{text}" for text in kernels_of(learn))]).lstrip()
    wanted = _Wanted(targets, options, *_budget_of(budget), norm, timeout, published)
    if seed is not None:
        _check_whole("seed", seed)
    if index is not None:
        _check_whole("index", index)
        return wanted.draw(_Process.seed if seed is None else seed, index)
    return wanted.first(seed)


def _check_norm(norm: str) -> None:
    if norm not in NORMS:
        raise CanvasError(f"norm is one of: {', '.join(NORMS)}, not {norm!r}")


def _budget_of(budget: str | None) -> tuple[str, float | None]:
    """The budget without its latency, and the limit of that."""
    try:
        limit = latency_limit({"budget": budget})
    except CanvasError as error:
        raise CanvasError(str(error).removeprefix("--")) from None
    if limit is not None:
        budget = without_latency(budget) or None
    return "macs=1x" if budget is None else budget, limit


class _Wanted(NamedTuple):
    """What a draw must be."""

    targets: str
    options: str
    budget: str
    latency: float | None
    norm: str
    timeout: float
    published: Mapping[str, Any]

    def first(self, seed: int | None) -> KernelPack:
        """The first draw that fits."""
        why, begun = "", time.monotonic()
        for turn in range(DRAWS):
            if turn and self.timeout and time.monotonic() - begun > self.timeout:
                raise NoSolution(
                    f"none of {turn} draws fits within the timeout of {self.timeout:g} s; the "
                    f"last one: {why}"
                )
            at = (seed, turn) if seed is not None else (_Process.seed, _Process.index)
            if seed is None:
                _Process.index += 1
            try:
                return self.draw(*at)
            except NoSolution as error:
                why = str(error)
        raise NoSolution(
            f"none of {DRAWS} draws fits the budget '{self.budget}'; the last one: {why}"
        )

    def draw(self, seed: int, index: int) -> KernelPack:
        try:
            drawn = _core.draw(self.targets, seed, index, self.options)
        except NoSolution:
            raise
        except CanvasError as error:
            raise by_argument(error, self.options, self.published) from None
        if drawn is None:
            raise NoSolution(
                f"draw {index} of seed {seed} is skipped: none of its tries was legal"
            )
        kernel, groups = drawn
        text = _core.solve(kernel, self.targets, self.budget, f"G={groups} norm={self.norm}")
        if self.latency is not None:
            share = share_of_time(text, self.targets)
            if share > self.latency:
                raise NoSolution(f"its layers take {share:.2f}x the time of the convolutions")
        return KernelPack(text)


def _draw_options(
    primitives: str | tuple[int, int] | None,
    groups: int | None,
    require: str | None,
    draws: str | None,
    space: str | None,
) -> str:
    words = []
    if not isinstance(primitives, (str, tuple, type(None))):
        raise CanvasError(
            f'primitives is a text such as "5..12" or a pair of numbers, not {shown(primitives)}'
        )
    if isinstance(primitives, tuple):
        primitives = "..".join(str(number) for number in primitives)
    for name, value in (
        ("primitives", primitives),
        ("groups", groups),
        ("require", require),
        ("space", space),
        ("draws", draws),
    ):
        if value is not None:
            words.append(f"{name}={value}")
    return " ".join(words)


def _check_whole(name: str, number: Any) -> None:
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 2**63:
        raise CanvasError(f"{name} is a whole number from 0 to 2^63 - 1, not {shown(number)}")


# -- replacing --


@checked(re_solve=SWITCH)
def replace(
    module: nn.Module, kernel: KernelPack | type[nn.Module], *, re_solve: bool = False
) -> nn.Module:
    """Put a kernel into all placeholders of a network and return the network.

    `kernel`: a pack or its `module`; each placeholder gets the binding with its target's name, or
    else one with its sizes; a target that the pack keeps stays as it is.  Images may have another
    size than the pack's where no weight spans the image; `re_solve` chooses the sizes of the pack
    anew for them, with the same share of MACs.  Any other class is
    called as ``kernel(c, h, w)``, for placeholders put in by hand.  New weights are drawn from
    torch's generator, on the device and in the dtype of the network.  Warns if a weight cannot
    affect the output because the image of its layer is small. Raises CanvasError for bad input;
    then nothing is replaced.
    """
    placeholders = get_placeholders(module)
    targets = known_targets(placeholders)
    pack = getattr(kernel, "pack", kernel)
    if isinstance(pack, KernelPack):
        kernel = pack.re_solved(targets) if re_solve else pack.resized(targets)
        _warn_of_idle(kernel)
    elif re_solve:
        raise CanvasError(f"re_solve is for a KernelPack, not {shown(kernel)}")
    made = [_make(child, kernel) for child in placeholders.values()]
    homes = [_home_of(child, module) for child in placeholders.values()]
    for child, new, (device, dtype) in zip(placeholders.values(), made, homes):
        if new is not None:
            child.put(new.to(device=device, dtype=dtype).train(child.training))
    return module


def _warn_of_idle(pack: KernelPack) -> None:
    for line in _core.idle_weights(pack.text).splitlines():
        warnings.warn(f"{line}; it gets no gradient there", stacklevel=4)


def _make(placeholder: Placeholder, kernel: Any) -> nn.Module | None:
    """The module for a placeholder; None where the pack keeps its target."""
    target = placeholder.target
    assert target is not None
    if isinstance(kernel, KernelPack) and target.name in kernel.kept:
        _check_kept(placeholder, kernel)
        return None
    if isinstance(kernel, KernelPack):
        return _make_part(kernel, target)
    if not (isinstance(kernel, type) and issubclass(kernel, nn.Module)):
        raise CanvasError(f"replace takes a KernelPack or a module's class, not {shown(kernel)}")
    if target.cin != target.cout or target.stride != 1:
        raise CanvasError(f"'{kernel.__name__}' has no pack, it cannot replace '{target.line()}'")
    return kernel(target.cin, target.h, target.w)


def _check_kept(placeholder: Placeholder, pack: KernelPack) -> None:
    """A kept target still has its convolution, of the sizes that the pack states."""
    target = placeholder.target
    assert target is not None
    if placeholder.original is None:
        raise CanvasError(
            f"{pack.name} keeps '{target.name}', whose convolution is not there: replace it in a "
            "network that was just converted"
        )
    if f"\nkeep {target.as_kept().sizes_text()}" not in pack.text:
        raise CanvasError(f"{pack.name} keeps another layer than '{target.line()}'")


def _make_part(pack: KernelPack, target: Target) -> nn.Module:
    fits = {
        layer.name: part
        for part in pack.parts
        for layer in part.layers
        if layer.sizes() == target.sizes()
    }
    name = target.name if target.name in fits else next(iter(fits), "")
    if target.name in fits or len(fits) == 1:
        made: nn.Module = fits[name].module(target.cin, target=name)
        return made
    many = "several bindings of these sizes" if fits else "no binding"
    raise CanvasError(f"{pack.name} has {many} for '{target.line()}'; sample for this network")


def _home_of(child: Placeholder, module: nn.Module) -> tuple[Any, Any]:
    """Where the kernel goes: where the layer before it was, else where the network is."""
    device, dtype = _home(child)
    return (device, dtype) if device is not None else _home(module)
