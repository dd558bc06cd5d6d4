"""The engines of `./dev bench network`: each is a way to run a network on its images; what is not
installed (bench/requirements-network.txt) is skipped by name.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import canvas

Engine = Callable[[], Any]  # one forward of the images that it was made for


def eager(model: nn.Module, images: Tensor, threads: int, folder: Path) -> Engine:
    model = model.to(memory_format=torch.channels_last)
    images = images.to(memory_format=torch.channels_last)
    return lambda: model(images)


def compiled(model: nn.Module, images: Tensor, threads: int, folder: Path) -> Engine:
    """Frozen weights: the fastest form of torch.compile for inference."""
    torch._dynamo.reset()
    function = torch.compile(model, dynamic=False, options={"freezing": True})
    return lambda: function(images)


def onnxruntime(model: nn.Module, images: Tensor, threads: int, folder: Path) -> Engine:
    import onnxruntime

    path = folder / "network.onnx"
    torch.onnx.export(model, (images,), path, dynamo=True, verbose=False, external_data=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: images.numpy()}
    return lambda: torch.from_numpy(session.run(None, feed)[0])


def openvino(model: nn.Module, images: Tensor, threads: int, folder: Path) -> Engine:
    import openvino

    network = openvino.compile_model(
        openvino.convert_model(model, example_input=images, input=[tuple(images.shape)]),
        "CPU",
        {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        },
    )
    request = network.create_infer_request()
    array = images.numpy()

    def run() -> Tensor:
        request.infer([array], share_inputs=True, share_outputs=True)
        return torch.from_numpy(request.get_output_tensor(0).data)

    return run


Way = Callable[[nn.Module, Tensor, int, Path], Engine]


def native(log: str | None, winograd: int = 0) -> Way:
    def make(model: nn.Module, images: Tensor, threads: int, folder: Path) -> Engine:
        options = {"threads": threads, "log": log, "winograd": winograd or False}
        network = canvas.compile(model, images, **options)
        return lambda: network(images)

    return make


PEERS = {"eager": eager, "compile": compiled, "onnxruntime": onnxruntime, "openvino": openvino}


def versions() -> str:
    import importlib.metadata

    names = [name for name in ("onnxruntime", "openvino") if importlib.util.find_spec(name)]
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ["torch", *names])


def there(name: str) -> bool:
    return name in ("eager", "compile") or importlib.util.find_spec(name) is not None
