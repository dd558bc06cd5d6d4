"""Tensors and facts in one safetensors file: no pickle, written at once or not at all.

    write   tensors by name and JSON facts -> a new file beside it -> renamed over the old one
    read    the same back; anybody's safetensors file, without facts of ours, is read, too

What belongs together is written as one file, so that a kill between two files cannot separate it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..errors import CanvasError, one_line
from ..files import at_once, open_file

FACTS = "canvas"  # the key of our facts in a file's metadata


def write(
    path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, Any], through_link: bool = True
) -> None:
    """Write `tensors` and `facts` (as JSON) to `path`, whose folder may be a link with
    `through_link`.

    Raises OSError where the file cannot be written; what was there is there still.
    """
    save = _safetensors().save
    own = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    data = save(own, {FACTS: json.dumps(facts)})
    with at_once(path, through_link) as file:
        file.write(data)


def read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """(tensors, facts) of a file, on the CPU; facts are {} where they are not ours.

    Raises CanvasError with one message where the file cannot be read or is no such file.
    """
    with _opened(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}, _facts(file)  # noqa: SIM118


def read_facts(path: Path) -> dict[str, Any]:
    """The facts of a file alone; raises as `read` does."""
    with _opened(path) as file:
        return _facts(file)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    _safetensors()
    from safetensors import safe_open

    try:
        with open_file(path):  # for the system's own word on what is wrong
            pass
        with safe_open(path, framework="pt") as file:
            yield file
    except OSError as error:
        raise CanvasError(f"cannot read '{path}': {error.strerror or one_line(error)}") from None
    except Exception as error:  # the library's own kinds, and JSON that is none
        raise CanvasError(
            f"'{path}' is no file of weights (safetensors): {one_line(error)}"
        ) from None


def _facts(file: Any) -> dict[str, Any]:
    facts = json.loads((file.metadata() or {}).get(FACTS, "{}"))
    if not isinstance(facts, dict):
        raise ValueError(f"its {FACTS} facts are no object")
    return facts


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """The state_dict of a network; raises CanvasError where it holds what is no tensor."""
    weights: dict[str, Tensor] = {}
    for name, value in model.state_dict().items():
        if not isinstance(value, torch.Tensor):
            raise CanvasError(
                f"the network's state holds '{name}', which is no tensor: it cannot be saved"
            )
        weights[name] = value
    return weights


def load_weights(model: nn.Module, weights: Mapping[str, Tensor], where: Path) -> None:
    """Give `model` the weights read from the file `where`; every name and shape must fit."""
    expected = weights_of(model)
    problems = [f"'{name}' is missing" for name in expected if name not in weights]
    problems += [f"'{name}' is unknown" for name in weights if name not in expected]
    problems += [
        f"'{name}' is {list(weights[name].shape)}, not {list(value.shape)}"
        for name, value in expected.items()
        if name in weights and weights[name].shape != value.shape
    ]
    if problems:
        more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
        raise CanvasError(f"the weights in '{where}' are of another network: {problems[0]}{more}")
    model.load_state_dict(weights)


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ModuleNotFoundError as error:
        raise CanvasError(
            "weights are kept as safetensors, not installed here: pip install safetensors"
        ) from error
    return safetensors.torch
