"""The weights that a fit keeps beside its study: DIR/weights/SHA256.safetensors.

A file is named by what it holds.  One that is missing or was changed is no error: what it held is
a function of the study's rows and is computed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from ..errors import CanvasError
from ..files import at_once
from ..study import weights_file
from ..training.checkpoint import weights_of
from .menu import Sized
from .teacher import Fitted

BIAS = "canvas.bias"  # of a fitted operator; no module has a weight of this name


def to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """The tensors as a safetensors file."""
    from safetensors.torch import save

    return bytes(save({name: value.detach().contiguous() for name, value in tensors.items()}))


def from_bytes(data: bytes) -> dict[str, Tensor]:
    from safetensors.torch import load

    return dict(load(data))


def store(folder: Path, data: bytes) -> str:
    """Keep a file; its sha256.  Raises OSError where it cannot be written."""
    digest = hashlib.sha256(data).hexdigest()
    path = weights_file(folder, digest)
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        with at_once(path, through_link=False) as file:
            file.write(data)
    return digest


def fetch(folder: Path, digest: str) -> dict[str, Tensor] | None:
    """The tensors of a file; None where it is missing or does not fit its name."""
    if not digest:
        return None
    try:
        data = weights_file(folder, digest).read_bytes()
    except OSError:
        return None
    return from_bytes(data) if hashlib.sha256(data).hexdigest() == digest else None


def fitted_to_bytes(fitted: Fitted) -> bytes:
    return to_bytes({**weights_of(fitted.module), BIAS: fitted.bias})


def fitted_from(tensors: Mapping[str, Tensor] | None, sized: Sized) -> Fitted | None:
    """The operator with these weights; None without any, or where they are of another."""
    if tensors is None or BIAS not in tensors:
        return None
    module = fresh_module(sized)
    weights = {name: value for name, value in tensors.items() if name != BIAS}
    try:
        module.load_state_dict(weights)
    except RuntimeError:
        return None
    return Fitted(module.eval(), tensors[BIAS])


def fresh_module(sized: Sized) -> nn.Module:
    """The operator at its layer with random weights."""
    module: nn.Module = sized.pack.module(sized.pack.module.BINDINGS[0]["cin"], target=sized.layer)
    return module


def load_into(network: nn.Module, tensors: Mapping[str, Tensor]) -> nn.Module:
    """Raises CanvasError where the weights are of another network."""
    try:
        network.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise CanvasError(f"the kept weights are of another network: {error}") from None
    return network
