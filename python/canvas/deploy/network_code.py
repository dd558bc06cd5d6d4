"""network.py of an export: the source of a whole network, put together from source.

    kernel     the PyTorch code that the core writes for the pack
    network    a built-in one: its definitions, cut out of built_in.py; your own: an import
    the rest   the templates below

Text in, text out: nothing is executed here.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn

from .. import _core
from ..nn import built_in, layer_view
from ..nn.load_model import model_call
from ..nn.network import Recipe
from ..nn.pack import KernelPack
from ..nn.placeholder import Placeholder

PLACE = '''class Place(nn.Module):
    """A kernel where a convolution was, whose bias stays."""

    def __init__(self, kernel, bias):
        super().__init__()
        self.kernel = kernel
        self.register_parameter("bias", bias)

    def forward(self, x):
        y = self.kernel(x)
        return y if self.bias is None else y + self.bias[:, None, None]
'''

# Where the tensors of some layers are no images.
VIEWED = '''class Place(nn.Module):
    """A kernel where a layer was, whose bias stays, between what makes images of the layer's
    tensors and back.
    """

    def __init__(self, kernel, bias, view):
        super().__init__()
        self.kernel, self.view = kernel, view
        self.register_parameter("bias", bias)

    def forward(self, x):
        y = self.kernel(self.view.images(x))
        return self.view.restored(y if self.bias is None else y + self.bias[:, None, None])
'''

REPLACE = '''def replace(network):
    """Put a kernel with fresh weights into the place of every layer of LAYERS."""
    paths = list(network.named_modules(remove_duplicate=False))
    for path, target in LAYERS.items():
        layer = network.get_submodule(path)
        kernel = {kernel}({channels}, target=target).to(layer.weight)
        place = Place(kernel, layer.bias{view})
        for parent, _, name in (p.rpartition(".") for p, module in paths if module is layer):
            setattr(network.get_submodule(parent), name, place)
    return network
'''

LOAD = '''def load(path):
    """The network with the weights of a safetensors file, in evaluation mode."""
    try:
        from safetensors.torch import load_file
    except ModuleNotFoundError:
        raise ImportError("weights are read by safetensors: pip install safetensors") from None
    network = build()
    network.load_state_dict(load_file(path))
    return network.eval()
'''

FOLDED = '''def load(path, fold=True):
    """The network with the weights of a safetensors file, in evaluation mode.  The norms inside
    its kernels are folded into weights and biases, which answers the same; `fold=False` keeps
    them, for training on.
    """
    try:
        from safetensors.torch import load_file
    except ModuleNotFoundError:
        raise ImportError("weights are read by safetensors: pip install safetensors") from None
    network = build()
    network.load_state_dict(load_file(path))
    network.eval()
    for layer in LAYERS if fold else ():
        kernel = network.get_submodule(layer).kernel
        if hasattr(kernel, "fold"):
            kernel.fold()
    return network
'''


def network_code(
    title: str, recipe: Recipe, pack: str | None, network: nn.Module, images: Mapping[str, Any]
) -> str:
    """The source of `network`, which `recipe` and `pack` built; `title` names it, `images`
    (setting.about) describe its input.
    """
    kernel = "" if pack is None else _core.torch_code(pack)
    known = recipe.model in built_in.BUILT_IN
    source = inspect.getsource(built_in) if known else ""
    parts = [_facts(images)]
    views = _views(network)
    viewed = inspect.getsource(layer_view) if views else ""
    if pack is not None:
        parts += [_without_imports(kernel), *definitions(viewed, "View")]
        parts += [VIEWED if views else PLACE]
    if known:
        parts += definitions(source, built_in.BUILT_IN[recipe.model].__name__)
    if pack is not None:
        one = KernelPack(pack).parts == (KernelPack(pack),)
        made = KernelPack(pack).name if one else "KERNELS[target]"
        parts += [_layers(network), *views, _replace(made, bool(views))]
    normed = pack is not None and KernelPack(pack).norm != "none"
    parts += [_build(recipe, known, replaced=pack is not None), FOLDED if normed else LOAD]
    body = "\n\n".join(part.strip("\n") + "\n" for part in parts)
    head = imports([source, viewed, kernel], body)
    return f"{_docstring(title, images)}\n{head}\n{body}"


def definitions(source: str, name: str) -> list[str]:
    """The statements of a module that `name` is made of, as they are written, in their order."""
    statements = {
        bound: statement for statement in ast.parse(source).body for bound in _bound(statement)
    }
    wanted: dict[int, ast.stmt] = {}
    names = [name]
    while names:
        statement = statements.get(names.pop())
        if statement is not None and statement.lineno not in wanted:
            wanted[statement.lineno] = statement
            names += _used(statement)
    lines = source.splitlines()
    return ["\n".join(lines[_first(wanted[at]) : wanted[at].end_lineno]) for at in sorted(wanted)]


def imports(sources: Iterable[str], body: str) -> str:
    """The import statements of `sources`, as far as `body` uses what they bind."""
    used = set(_used(ast.parse(body)))
    plain: set[str] = set()
    groups: dict[str, set[str]] = {}
    for statement in (line for source in sources for line in ast.parse(source).body):
        if isinstance(statement, ast.Import):
            plain |= {f"import {ast.unparse(a)}" for a in statement.names if _name(a) in used}
        elif isinstance(statement, ast.ImportFrom) and not statement.level:
            future = statement.module == "__future__"
            taken = {ast.unparse(a) for a in statement.names if future or _name(a) in used}
            groups.setdefault(statement.module or "", set()).update(taken)
    froms = {
        f"from {name} import {', '.join(sorted(taken))}" for name, taken in groups.items() if taken
    }
    blocks: list[list[str]] = [[], [], []]  # __future__, Python's own, others
    for line in [*sorted(plain), *sorted(froms)]:
        package = line.split()[1].partition(".")[0]
        own = package in sys.stdlib_module_names
        blocks[0 if package == "__future__" else 1 if own else 2].append(line)
    return "\n".join("".join(f"{line}\n" for line in block) for block in blocks if block)


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement of a module defines, imports apart."""
    if isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AnnAssign):
        targets = [statement.target]
    return [target.id for target in targets if isinstance(target, ast.Name)]


def _used(tree: ast.AST) -> list[str]:
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def _first(statement: ast.stmt) -> int:
    """Index of the line on which a statement begins, its decorators included."""
    decorators = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(each.lineno for each in decorators)]) - 1


def _name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _without_imports(source: str) -> str:
    """A module's source from its first definition on."""
    first = next(s for s in ast.parse(source).body if _bound(s))
    return "\n".join(source.splitlines()[_first(first) :])


def _docstring(title: str, images: Mapping[str, Any]) -> str:
    shape = ", ".join(map(str, images["shape"]))
    values = "values as MEAN and DEVIATION say" if images["mean"] else "not normalised"
    return f'''"""{title}

    network = load("weights.safetensors")
    answers = network(images)  # [N, {shape}] -> [N, {images["classes"]}]

Images are float32, {values}.  PyTorch is needed, and safetensors to
read weights.  Written by canvas {_core.version()}.
"""
'''


def _facts(images: Mapping[str, Any]) -> str:
    lines = [f"SHAPE = {tuple(images['shape'])}  # of one image: channels, height, width"]
    lines.append(f"CLASSES = {images['classes']}")
    if images["mean"]:
        lines.append(f"MEAN = {tuple(images['mean'])}  # taken off each channel ...")
        lines.append(f"DEVIATION = {tuple(images['deviation'])}  # ... which is then divided by")
    return "\n".join(lines)


def _layers(network: nn.Module) -> str:
    lines = [
        f'    "{path}": "{child.kernel.target}",'
        for path, child in network.named_modules()
        if isinstance(child, Placeholder) and child.kernel is not None
    ]
    comment = "# a layer's path: the binding of its kernel"
    return "\n".join([f"LAYERS = {{  {comment}", *lines, "}"])


def _views(network: nn.Module) -> list[str]:
    """The table of views of layers whose tensors are no images; nothing without any."""
    lines = [
        f'    "{path}": {child.view},'
        for path, child in network.named_modules()
        if isinstance(child, Placeholder) and child.kernel is not None and not child.view.is_plain
    ]
    return ["\n".join(["VIEWS = {  # how their tensors become images", *lines, "}"])] * bool(lines)


def _replace(kernel: str, viewed: bool) -> str:
    plain = {"kernel": kernel, "channels": "layer.in_channels", "view": ""}
    if not viewed:
        return REPLACE.format(**plain)
    channels = 'getattr(layer, "in_channels", None) or layer.in_features'
    return REPLACE.format(kernel=kernel, channels=channels, view=", VIEWS.get(path, View())")


def _build(recipe: Recipe, known: bool, replaced: bool) -> str:
    """`build`, which calls the network's builder as a search does."""
    channels, height, _ = recipe.shape
    _, arguments = model_call(
        recipe.model,
        channels=channels,
        classes=recipe.classes,
        image_size=height,
        width=recipe.width,
    )
    words = ", ".join(f"{name}={value}" for name, value in arguments.items())
    lines = ["def build():", '    """The network with fresh weights."""']
    if known:
        call = f"{built_in.BUILT_IN[recipe.model].__name__}({words})"
    else:
        module, _, attribute = recipe.model.partition(":")
        first, dot, rest = attribute.partition(".")
        lines.append(f"    from {module} import {first} as make\n")
        call = f"make{dot}{rest}({words})"
    lines.append(f"    return {f'replace({call})' if replaced else call}")
    return "\n".join(lines)
