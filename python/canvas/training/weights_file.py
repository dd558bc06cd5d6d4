"""Load the weights of a trained network from anybody's file.

    .safetensors          tensors by name
    .pt, .pth, .bin, ...  what torch.save wrote, read with weights_only: no code of the file runs

A file of torch may hold the tensors directly or under one of KEYS, beside an optimizer and other
state.  Names may have the prefixes that wrappers of PyTorch add.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..arguments import PATH, checked, shown
from ..errors import CanvasError, one_line
from . import checkpoint

KEYS = ("state_dict", "model_state_dict", "model", "net", "network", "weights")
PREFIXES = ("module.", "_orig_mod.", "model.")  # DataParallel, torch.compile, Lightning


@checked(path=PATH)
def load_weights(network: nn.Module, path: str | os.PathLike[str]) -> nn.Module:
    """Give `network` the weights in a file, and return it.

    Every name and shape must fit.  Raises CanvasError with one message where the file cannot be
    read, holds no weights, or those of another network; the network is then unchanged.
    """
    if not isinstance(network, nn.Module):
        raise CanvasError(f"a torch.nn.Module is needed, not {shown(network)}")
    file = Path(path)
    tensors = _safetensors(file) if file.suffix == ".safetensors" else _torch_file(file)
    checkpoint.load_weights(network, _without_prefix(tensors, network), file)
    return network


def _safetensors(path: Path) -> Mapping[str, Tensor]:
    return checkpoint.read(path)[0]


def _torch_file(path: Path) -> Mapping[str, Tensor]:
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise CanvasError(f"cannot read '{path}': {error.strerror or one_line(error)}") from None
    except pickle.UnpicklingError:
        raise CanvasError(
            f"'{path}' holds more than weights, which could run code when it is read: save "
            "network.state_dict() instead"
        ) from None
    except Exception as error:  # a damaged archive has many ways to fail
        raise CanvasError(f"'{path}' is no file of weights: {one_line(error)}") from None
    for key in KEYS:
        if isinstance(found, Mapping) and isinstance(found.get(key), Mapping):
            found = found[key]
            break
    return _tensors(found, path)


def _tensors(found: Any, path: Path) -> Mapping[str, Tensor]:
    if isinstance(found, Mapping) and found:
        if all(isinstance(k, str) and isinstance(v, Tensor) for k, v in found.items()):
            return found
        keys = ", ".join(shown(key) for key in list(found)[:5])
        raise CanvasError(
            f"'{path}' has no weights by name: its keys are {keys}; a state_dict is needed, "
            f"directly or under {', '.join(KEYS)}"
        )
    raise CanvasError(f"'{path}' holds no weights: save network.state_dict()")


def _without_prefix(tensors: Mapping[str, Tensor], network: nn.Module) -> Mapping[str, Tensor]:
    """Without prefixes that all names have and the network's names have not."""
    own = network.state_dict().keys()
    names = list(tensors)
    changed = True
    while changed and not own & set(names):
        changed = False
        for prefix in PREFIXES:
            if all(name.startswith(prefix) for name in names):
                names = [name.removeprefix(prefix) for name in names]
                changed = True
    return dict(zip(names, tensors.values(), strict=True))
