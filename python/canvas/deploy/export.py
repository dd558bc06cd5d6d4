"""Take a network with a kernel home: a folder of plain files that need PyTorch and not Canvas.

    kernel.txt, pack.txt    the kernel, and with the sizes of every layer: canvas reads them again
    kernel.py               the kernel as a module of PyTorch
    network.py              the whole network: build(), load(path), replace(network)
    weights.safetensors     if it was trained
    picture.svg             the kernel as a picture; picture-1.svg, ... of several kernels
    README.md               what it is, its figures, how to use it

network.py is assembled from source that is there to be read: the kernel's module, the classes of
a built-in network cut out of models.py, or an import of the user's own callable.  The names in its
state_dict are those of the network that was trained.  Before anything is written the file is run
and compared with that network on the same weights; the folder appears whole or not at all.
"""

from __future__ import annotations

import os
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from .. import _core
from ..arguments import PATH, checked
from ..errors import CanvasError, one_line
from ..files import folder_at_once
from ..nn.network import Recipe, build_network, cost
from ..nn.pack import KernelPack
from ..reporting.table import short
from ..training import checkpoint
from ..training.train_options import NETWORK_OPTIONS
from .network_code import network_code
from .setting import (
    NAMED,
    RESULT,
    STATE,
    about,
    choose,
    load_images,
    recipe_of,
    resolve,
    training_facts,
    training_result,
)
from .trainer import BEST

WEIGHTS = "weights.safetensors"


@dataclass(frozen=True)
class Product:
    """What is exported: the network, on trained (`facts`: how) or fresh weights."""

    name: str
    pack: str | None
    recipe: Recipe
    images: Mapping[str, Any]  # setting.about
    network: nn.Module
    weights: Path | None  # where they are from; None: they are fresh
    facts: Mapping[str, Any]  # of their training; {} if it is not known
    result: Mapping[str, Any]  # its end on the test split; {} without one
    figures: Mapping[str, float]  # of the study (setting._figures); {} without one


@checked(what=NAMED, out=PATH, weights=PATH)
def export(
    what: str | os.PathLike[str] | KernelPack,
    out: str | os.PathLike[str],
    *,
    weights: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Path:
    """Write the network that `what` names into the new folder `out` and return the folder.

    `what`: the folder of a training (its best weights are used), a candidate of a study, a pack
    or its file, or `baseline`.  `weights`: a safetensors file of that network.  `options` are
    those of `canvas export --help`, with underscores.

    Raises CanvasError for bad input, and if the exported file does not compute what the network
    does; then nothing is written.
    """
    folder = Path(out)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CanvasError(f"'{folder}' is there already: name another --out")
    product = _product(what, weights, options)
    files = texts(product)
    tensors = checkpoint.weights_of(product.network)
    _compare(files["network.py"], product)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with folder_at_once(folder) as new:
            for name, text in files.items():
                (new / name).write_text(text, encoding="utf-8")
            if product.weights is not None:
                checkpoint.write(new / WEIGHTS, tensors, product.facts)
    except OSError as error:
        raise CanvasError(f"cannot write '{folder}': {error.strerror}") from None
    return folder


def texts(product: Product) -> dict[str, str]:
    """The text files of an export by name."""
    code = network_code(
        title(product), product.recipe, product.pack, product.network, product.images
    )
    files = {"network.py": code, "README.md": readme(product)}
    if product.pack is not None:
        files["kernel.txt"] = _core.print_kernels(product.pack)
        files["pack.txt"] = product.pack
        files["kernel.py"] = _core.torch_code(product.pack)
        files |= _pictures(KernelPack(product.pack))
    return files


def _pictures(pack: KernelPack) -> dict[str, str]:
    if len(pack.parts) == 1:
        return {"picture.svg": pack.parts[0].svg}
    return {f"picture-{at}.svg": part.svg for at, part in enumerate(pack.parts, 1)}


# ---- what is exported -------------------------------------------------------------------------


def _product(
    what: str | os.PathLike[str] | KernelPack,
    weights: str | os.PathLike[str] | None,
    options: Mapping[str, Any],
) -> Product:
    choice = choose(what)
    values = resolve(choice, options, NETWORK_OPTIONS, "canvas export")
    training = None if isinstance(what, KernelPack) else Path(what)
    path, result = None if weights is None else Path(weights), {}
    if training is not None and (training / STATE).is_file():
        images = training_facts(training / STATE)["images"]
        if path is None:
            path, result = training / BEST, _result(training)
    else:
        images = about(load_images(choice, values, options))
    recipe = recipe_of(values, images["shape"], images["classes"])
    network = build_network(recipe, choice.pack)
    tensors, facts = ({}, {}) if path is None else checkpoint.read(path)
    if path is not None:
        checkpoint.load_weights(network, tensors, path)
    network.eval()
    return Product(
        choice.name, choice.pack, recipe, images, network, path, facts, result, choice.figures
    )


def _result(folder: Path) -> dict[str, Any]:
    """How the training in `folder` ended; {} if it has not."""
    path = folder / RESULT
    return training_result(path) if path.exists() else {}


def _compare(code: str, product: Product) -> None:
    """Run the exported source and compare it with the network, on the same weights and noise."""
    module = types.ModuleType("exported")
    noise = torch.randn(2, *product.recipe.shape, generator=torch.Generator().manual_seed(0))
    try:
        exec(compile(code, "network.py", "exec"), vars(module))
        twin = module.build().eval()
        twin.load_state_dict(product.network.state_dict())
        outputs = []
        for network in (product.network, twin):
            torch.manual_seed(0)
            with torch.no_grad():
                outputs.append(network(noise))
    except Exception as error:
        raise CanvasError(f"the exported network does not run: {one_line(error)}") from error
    if not torch.allclose(*outputs, rtol=1e-5, atol=1e-6, equal_nan=True):
        off = (outputs[0] - outputs[1]).abs().max().item()
        raise CanvasError(f"the exported network computes something else, by {off:.2g}")


# ---- in words ---------------------------------------------------------------------------------


def title(product: Product) -> str:
    """One line: which network with which kernel."""
    if product.pack is None:
        return f"The network {product.recipe.model}, unchanged."
    pack = KernelPack(product.pack)
    known = "" if product.name == pack.name else f" ({pack.name})"
    several = len(pack.parts) > 1
    what = f"{len(pack.parts)} kernels of" if several else "kernel"
    kept = f", {len(pack.kept)} kept" if pack.kept else ""
    return (
        f"The network {product.recipe.model} with the {what} {product.name}{known} in "
        f"{len(pack.targets)} layers{kept}."
    )


def readme(product: Product) -> str:
    """README.md: what it is, figures, use."""
    shape = list(product.images["shape"])
    synthetic = ", which are synthetic" if product.images["synthetic"] else ""
    module, own, _ = product.recipe.model.partition(":")
    return f"""# {product.name} in {product.recipe.model}

{title(product)}
Images {shape}, {product.images["classes"]} classes: {product.images["name"]}{synthetic}.

{_figures(product)}
```python
from network import {"load" if product.weights else "build"}

network = {'load("weights.safetensors")' if product.weights else "build()"}
answers = network(images)  # images: float32 [N, {str(shape)[1:]}
```

`network.py` needs PyTorch{f", your module `{module}`" if own else ""} and not Canvas; `load` needs
safetensors.{"" if product.pack is None else _kernel_files(KernelPack(product.pack))}
"""


def _kernel_files(pack: KernelPack) -> str:
    shown = "`picture.svg` shows it" if len(pack.parts) == 1 else "`picture-1.svg`, ... show them"
    alone = "the kernel alone" if len(pack.parts) == 1 else "the kernels alone"
    return f""" `kernel.py` is {alone}, {shown}, and `pack.txt` is what
Canvas reads: `canvas train pack.txt --model NAME --data NAME`."""


def _figures(product: Product) -> str:
    """A line of a list for every figure that is known."""
    macs, params = cost(product.network, product.recipe.shape)
    whole = cost(build_network(product.recipe), product.recipe.shape)
    lines = [
        f"MACs of an image: {short(macs)}, {macs / whole[0]:.2f}x of the unchanged network's",
        f"parameters: {short(params)}, {params / whole[1]:.2f}x",
    ]
    facts, result = product.facts, product.result
    lines += _of_search(product.figures)
    epoch, epochs, accuracy = (facts.get(name) for name in ("epoch", "epochs", "val_accuracy"))
    if isinstance(epoch, int) and isinstance(epochs, int) and isinstance(accuracy, float):
        lines.append(
            f"validation accuracy after epoch {epoch} of {epochs}: {100 * accuracy:.1f} %"
        )
    if result:
        lines.append(
            f"test accuracy: {100 * result['test_accuracy']:.2f} % +- "
            f"{100 * result['standard_error']:.2f} ({result['test_images']} images)"
        )
    return "".join(f"- {line}\n" for line in lines)


def _of_search(figures: Mapping[str, float]) -> list[str]:
    lines = []
    if {"val_accuracy", "epochs"} <= figures.keys():
        lines.append(
            f"in the search, after {figures['epochs']:.0f} epochs: validation accuracy "
            f"{100 * figures['val_accuracy']:.1f} %"
        )
    if {"test_accuracy", "test_seeds"} <= figures.keys():
        lines.append(
            f"in its finals: test accuracy {100 * figures['test_accuracy']:.1f} %, mean of "
            f"{figures['test_seeds']:.0f} seeds"
        )
    if {"latency_ms", "speedup", "latency_batch"} <= figures.keys():
        lines.append(
            f"there, at batch {figures['latency_batch']:.0f}: latency "
            f"{figures['latency_ms']:.2f} ms, speed-up {figures['speedup']:.2f}x"
        )
    return lines
