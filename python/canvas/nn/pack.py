"""Kernels with their sizes: text, cost, and the PyTorch modules made of them.

A pack is its text.  Code is made anew from text that the core has parsed and checked; code that
was stored somewhere is never executed.  The module's class lives in a real (generated) Python
module with its source in linecache, so that tracebacks and ``inspect.getsource`` show it; its
instances pickle as the text of the pack and their weights, so that ``copy.deepcopy``,
``torch.save(model)`` and child processes work without any file.
"""

from __future__ import annotations

import hashlib
import json
import linecache
import math
import os
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _core
from ..arguments import PATH, checked, shown
from ..errors import CanvasError
from .layer_target import RARE, Target

if TYPE_CHECKING:
    from .compiled import Compiled

TEXT_LIMIT = 16 << 20  # bytes, as in the core
HEAD = "canvas 1\n"  # the first line of a pack's text
# A line of a layer; a node may be called `bind` or `keep`, too.
LAYER = {word: re.compile(rf"^{word} \S+ Cin=.*\n", re.M) for word in ("bind", "keep")}
LAYER_KEYS = ("Cin", "Cout", "KH", "KW", "stride", *RARE)
LAYER_SIZES = re.compile(
    r"^(?P<word>bind|keep) (?P<name>\S+) Cin=(?P<Cin>\d+) Cout=(?P<Cout>\d+) KH=(?P<KH>\d+) "
    r"KW=(?P<KW>\d+) H=(?P<H>\d+) W=(?P<W>\d+) stride=(?P<stride>\d+)"
    + "".join(rf"(?: {key}=(?P<{key}>\d+))?" for key in RARE)
    + r"(?P<rest>[^#\n]*).*$",
    re.M,
)
GROUPS = re.compile(r" G=(\d+)")


class KernelPack:
    """A kernel and one binding per target, from their text; or several kernels, each with targets
    of its own, and targets that keep their convolution.

    Raises CanvasError where the text is no pack.  Two packs of the same canonical text are equal.
    """

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise CanvasError(f"text is the text of a pack, not {shown(text)}")
        self.text = _core.print_pack(text)

    @classmethod
    def join(cls, packs: Iterable[KernelPack], keep: Iterable[Target] = ()) -> KernelPack:
        """The pack of all kernels of `packs` and their targets; those of `keep` keep their
        convolution.  Parts that differ only in their targets become one.

        Raises CanvasError where a target is named twice, or none has a kernel.
        """
        if isinstance(packs, (str, KernelPack)) or not isinstance(packs, Iterable):
            raise CanvasError(f"join takes several KernelPacks, not {shown(packs)}")
        blocks: dict[str, list[str]] = {}
        kept: list[str] = []
        for pack in packs:
            if not isinstance(pack, KernelPack):
                raise CanvasError(f"join takes several KernelPacks, not {shown(pack)} among them")
            kept += LAYER["keep"].findall(pack.text)
            for part in pack.parts:
                first = LAYER["bind"].search(part.text)
                if first is None:
                    raise CanvasError(f"'{part.name}' has no bind lines: give it sizes first")
                head = part.text[len(HEAD) : first.start()]
                blocks.setdefault(head, []).append(part.text[first.start() :])
        if not blocks:
            raise CanvasError("join takes at least one KernelPack")
        kept += [f"keep {target.as_kept().sizes_text()}\n" for target in keep]
        lines = [head + "".join(binds) for head, binds in blocks.items()]
        return cls("".join([HEAD, *lines, *kept]))

    @property
    def kernel(self) -> str:
        """The kernel's text, without sizes; of several kernels, a blank line between two."""
        return _core.print_kernels(self.text)

    @cached_property
    def hash(self) -> str:
        """32 hex digits, equal for isomorphic kernels; the sizes do not count.  Of several kernels
        or kept targets, one of what each target has.
        """
        return _core.hash(self.text)

    @property
    def norm(self) -> str:
        """``batch`` where weights inside a kernel are trained with a BatchNorm behind them, else
        ``none``.
        """
        return "batch" if "\nnorm batch\n" in self.text else "none"

    @property
    def name(self) -> str:
        """The name of the class: ``Kernel_`` and 16 digits of the hash."""
        return f"Kernel_{self.hash[:16]}"

    @cached_property
    def parts(self) -> tuple[KernelPack, ...]:
        """The pack of each kernel with its targets: this pack itself if it has one kernel for all
        targets.
        """
        texts = _core.parts(self.text)
        return (self,) if texts == [self.text] else tuple(map(KernelPack, texts))

    def part(self, target: str) -> KernelPack | None:
        """The pack of the kernel that a target has; None if the target is kept.

        Raises CanvasError for a target that the pack does not name.
        """
        if target in self.kept:
            return None
        for part in self.parts:
            if target in part.targets:
                return part
        raise CanvasError(f"'{self.name}' names no target '{target}'")

    def resized(self, targets: Iterable[Target]) -> KernelPack:
        """The same kernels and sizes for images of other sizes.

        A layer of the pack gets height and width of the target with its name, channels, window and
        stride; layers without such a target stay as they are.  Raises CanvasError where a weight
        spans the image, so that it does not fit another one.
        """
        by_name = {target.name: target for target in targets}

        def line(found: re.Match[str]) -> str:
            target = by_name.get(found["name"])
            if target is None:
                return found[0]
            target = target.as_kept() if found["word"] == "keep" else target
            new = f"{found['word']} {target.sizes_text()}"
            same = all(_size(found, key) == getattr(target, key.lower()) for key in LAYER_KEYS)
            if not same or f"{found[0]} ".startswith(f"{new} "):
                return found[0]
            return f"{new}{found['rest']}"

        text = LAYER_SIZES.sub(line, self.text)
        if text == self.text:
            return self
        try:
            resized = KernelPack(text)
        except CanvasError as error:
            raise CanvasError(f"{self.name} does not fit images of this size: {error}") from None
        for before, after in zip(_weight_shapes(self.text), _weight_shapes(resized.text)):
            if before != after:
                raise CanvasError(
                    f"{self.name} has weights as large as the image: {after} instead of {before}; "
                    "choose its sizes anew (re_solve)"
                )
        return resized

    def re_solved(self, targets: Iterable[Target], budget: str | None = None) -> KernelPack:
        """The same kernels with sizes chosen anew for targets with the names of the pack's own.

        `budget`: as in canvas.sample; None: for each kernel the share of the convolutions' MACs
        that it has now.  Kept layers are kept.  Raises CanvasError where a target is missing, and
        NoSolution where no sizes fit.
        """
        by_name = {target.name: target for target in targets}
        missing = [name for name in (*self.targets, *self.kept) if name not in by_name]
        if missing:
            raise CanvasError(f"{self.name} has a layer '{missing[0]}', the network has none")
        solved = [
            KernelPack(_core.solve(kernel, targets_text, limits, options))
            for part in self.parts
            for kernel, targets_text, limits, options in part._questions(by_name, budget)
        ]
        return KernelPack.join(solved, [by_name[name] for name in self.kept])

    def _questions(
        self, targets: Mapping[str, Target], budget: str | None
    ) -> Iterator[tuple[str, str, str, str]]:
        """The arguments of _core.solve for one kernel's layers, those of one G at a time: kernel,
        layers, budget, options.
        """
        macs = {row["name"]: int(row["macs"]) for row in self.cost["targets"]}
        alike: dict[str, list[re.Match[str]]] = {}
        for line in LAYER_SIZES.finditer(self.text):
            groups = GROUPS.search(line["rest"])
            alike.setdefault(groups[0] if groups else "", []).append(line)
        for groups_text, lines in alike.items():
            free = any(re.search(r" x\d+=", line["rest"]) for line in lines)
            share = sum(macs[line["name"]] for line in lines) / sum(map(_dense_macs, lines))
            own = f"macs={math.ceil(1e6 * share) / 1e6:.6f}x" if free else "macs=none"
            layers = "".join(targets[line["name"]].line() + "\n" for line in lines)
            options = f"exempt=1 norm={self.norm}{groups_text}"
            yield self.kernel, layers, budget or f"{own},params=none", options

    @cached_property
    def torch_code(self) -> str:
        """The module's source: it imports torch alone and may be pasted anywhere."""
        return _core.torch_code(self.text, True)

    @property
    def tvm_code(self) -> str:
        """Python that defines the kernel in TVM's tensor expressions: a function for each target,
        which returns inputs and outputs for one image.  It imports TVM alone.
        """
        functions = []
        for part in self.parts:
            _, _, _, name, *_ = part.kernel.split()  # canvas 1, kernel NAME
            for at, target in enumerate(part.targets):
                functions.append(_core.tvm_code(_core.lower(part.text, at), f"{name} {target}"))
        return "\n".join(functions)

    @property
    def formula(self) -> str:
        """The kernel as sums over indices, as in a paper, with symbols for its sizes; below, what
        its layers do around it.
        """
        return _core.formula(self.text)

    @property
    def latex(self) -> str:
        """The same in LaTeX: an align* environment for each kernel."""
        return _core.formula(self.text, latex=True)

    @property
    def graphviz(self) -> str:
        """A picture of the kernel in Graphviz's language."""
        return _core.dot(self.text)

    @property
    def svg(self) -> str:
        """A picture of the kernel as SVG; its <desc> holds the kernel's text.  Of several kernels
        or kept targets, each kernel with its targets, one below the other, and the pack's text.
        """
        return _core.svg(self.text)

    @cached_property
    def cost(self) -> dict[str, Any]:
        """What one sample costs over all targets: macs, flops (2*macs), params, activations,
        elementwise, bytes (float32), and the same per target in the list ``targets`` and, of the
        convolutions that stay, in ``kept``.
        """
        return dict(json.loads(_core.cost(self.text)))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of one sample, summed over the targets."""
        return int(self.cost["macs"])

    @property
    def params(self) -> int:
        """Weights, and scales and shifts of norms, summed over the targets."""
        return int(self.cost["params"])

    @cached_property
    def targets(self) -> list[str]:
        """The names of the layers that have a kernel."""
        return [target["name"] for target in self.cost["targets"]]

    @property
    def layers(self) -> list[Target]:
        """The layers of the bind lines, with their sizes."""
        found = (line for line in LAYER_SIZES.finditer(self.text) if line["word"] == "bind")
        keys = ("Cin", "Cout", "H", "W", "KH", "KW", "stride", *RARE)
        return [Target(line["name"], *(_size(line, key) for key in keys)) for line in found]

    @cached_property
    def kept(self) -> list[str]:
        """The names of the layers that keep their convolution."""
        return [target["name"] for target in self.cost["kept"]]

    @cached_property
    def module(self) -> type[Any]:
        """The torch.nn.Module class.  ``module(c, h, w)`` wants sizes that fit one target,
        ``module(c, target=name)`` names it; ``module.pack`` is this pack.

        Raises CanvasError if the pack has several kernels: each of its `parts` has a module.
        """
        self._need_one_kernel()
        return load_class(self, patterns=True)

    def _need_one_kernel(self) -> None:
        if self.parts != (self,):
            count = len(self.parts)
            raise CanvasError(
                f"'{self.name}' has {count} kernel{'s' * (count > 1)} and {len(self.kept)} kept "
                "targets: use one of its parts, pack.part(target)"
            )

    def compile(
        self,
        at: str | None = None,
        *,
        target: str | None = None,
        batch: int = 1,
        schedule: str | None = None,
        machine: str = "here",
        tune: str | None = None,
        seconds: float | None = None,
        log: str | os.PathLike[str] | None = None,
    ) -> Compiled:
        """The kernel at one target as machine code: a callable on NumPy arrays or torch CPU
        tensors, the image ``[batch, C_in, H, W]`` and the weights in the order and layout that
        ``canvas lower`` shows; where the pack has norms, the folded weights with their biases.

        `at`: sizes ("C=64,H=56,W=56,G=4,x0=64") for a kernel without bind lines; `target`: which
        of several; `schedule`: the text of one (None: the default one); `machine`: the text of
        the one it is bound for ("here": this one); `tune`: a search method ("quick") that looks
        for a fast schedule first, within `seconds` (None: no limit), with the trials kept in
        `log` (``canvas.tune`` takes more); `log` alone: the best schedule that this file has,
        the default where it has none.  Raises CanvasError in one message where sizes,
        schedule or machine do not fit, or no C compiler works.
        """
        from .compiled import Compiled
        from .tuned import tune as search

        if log is not None and not PATH.holds(log):
            raise CanvasError(f"log is {PATH.words}, not {shown(log)}")
        if tune is None and seconds is not None:
            raise CanvasError("'seconds' is for tuning, give tune=\"quick\", too")
        if (tune is not None or log is not None) and schedule is not None:
            raise CanvasError("'tune' and 'log' have a schedule, leave 'schedule' away")

        bound = LAYER["bind"].search(self.text) is not None
        if bound == (at is not None):
            has = "bind lines, leave 'at' away" if bound else "no bind lines, give sizes in 'at'"
            raise CanvasError(f"'{self.name}' has {has}")
        sized = self if at is None else KernelPack(_core.bind(self.text, at))
        names = sized.targets
        if target in sized.kept:
            raise CanvasError(f"target '{target}' of '{self.name}' is kept, it has no kernel")
        if target is None and len(names) > 1:
            raise CanvasError(f"'{self.name}' has {len(names)} targets, name one of them")
        if target is not None and target not in names:
            raise CanvasError(f"'{self.name}' is bound to no target '{target}'")
        index = 0 if target is None else names.index(target)
        program = _core.lower(sized.text, index, batch)
        if tune is None:
            found = None if log is None else _core.logged(program, log)
            return Compiled(*(found or (program, schedule)), machine)
        return search(program, method=tune, seconds=seconds, log=log, machine=machine).compile()

    def check(self) -> None:
        """Compare the module with the interpreter (canvas.check.check); raises ArithmeticError."""
        from .check import check

        check(self)

    def __repr__(self) -> str:
        kernels = "" if len(self.parts) == 1 else f"{len(self.parts)} kernels, "
        kept = f", {len(self.kept)} kept" if self.kept else ""
        return f"KernelPack({self.name}, {kernels}{len(self.targets)} targets{kept})"

    def __str__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KernelPack) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __reduce__(self) -> tuple[Any, ...]:
        return KernelPack, (self.text,)


def _size(line: re.Match[str], key: str) -> int:
    """One of the sizes of a layer's line."""
    return int(line[key] or RARE[key])


def _dense_macs(line: re.Match[str]) -> int:
    """Of the convolution of a layer's line."""
    cin, cout, kh, kw, h, w, stride, groups = (
        _size(line, key) for key in ("Cin", "Cout", "KH", "KW", "H", "W", "stride", "groups")
    )
    return cin // groups * cout * kh * kw * -(-h // stride) * -(-w // stride)


def _weight_shapes(text: str) -> list[str]:
    """Of each bind line of a pack's text."""
    binds = [line for line in text.splitlines() if line.startswith("bind ")]
    return [line.partition("#")[2].strip() for line in binds]


@checked(path=PATH)
def save(pack: KernelPack, path: str | os.PathLike[str]) -> None:
    """Write the text of a pack."""
    if not isinstance(pack, KernelPack):
        raise CanvasError(f"save takes a KernelPack, not {type(pack).__name__}")
    try:
        Path(path).write_text(pack.text, encoding="utf-8")
    except OSError as error:
        raise CanvasError(f"cannot write '{path}': {error.strerror}") from None


@checked(path=PATH)
def load(path: str | os.PathLike[str]) -> KernelPack:
    """Read the text of a pack; nothing in the file is executed.  Raises CanvasError if it is no
    pack.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(TEXT_LIMIT + 1)
    except OSError as error:
        raise CanvasError(f"cannot read '{path}': {error.strerror}") from None
    try:
        return KernelPack(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise CanvasError(f"'{path}' is not text; canvas.save writes packs as text") from None
    except CanvasError as error:
        raise CanvasError(f"'{path}': {error}") from None


def load_class(pack: KernelPack, patterns: bool) -> type[Any]:
    """The class of a pack's code, the same object for the same code.

    The code is the core's own answer to the pack's text.
    """
    code = pack.torch_code if patterns else _core.torch_code(pack.text, False)
    digest = hashlib.sha256((pack.text + code).encode()).hexdigest()[:16]
    module_name = f"canvas._kernels.{pack.name}_{digest}"
    if module_name not in sys.modules:
        sys.modules[module_name] = _execute(code, module_name, pack, patterns)
    return vars(sys.modules[module_name])[pack.name]


def _execute(code: str, module_name: str, pack: KernelPack, patterns: bool) -> types.ModuleType:
    filename = f"<{module_name}>"
    linecache.cache[filename] = (len(code), None, code.splitlines(True), filename)
    module = types.ModuleType(module_name)
    module.__file__ = filename
    exec(compile(code, filename, "exec"), vars(module))
    cls = vars(module)[pack.name]
    cls.pack = pack
    cls.patterns = patterns
    cls.__reduce__ = _reduce
    return module


def _reduce(kernel: Any) -> tuple[Any, ...]:
    return _rebuild, (type(kernel).pack.text, type(kernel).patterns), dict(vars(kernel))


def _rebuild(text: str, patterns: bool) -> Any:
    cls: Any = load_class(KernelPack(text), patterns)
    return cls.__new__(cls)
