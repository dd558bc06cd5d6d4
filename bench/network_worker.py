"""One case of `./dev bench network` in a process of its own, and the engines that it compares.

    network_worker.py CASE THREADS FOLDER [--find FILE] [--log FILE] [--winograd] [--rounds N]

Every engine's result is compared with PyTorch's in double precision before it is timed. Engines
take turns: by the processor time of the process with one thread, by the wall clock with more. A
ratio is the median of the rounds' ratios. Engines that are not installed
(bench/requirements-network.txt) are skipped by name. Prints one object.
"""

from __future__ import annotations

import argparse
import copy
import importlib.metadata
import importlib.util
import json
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import contenders
import torch
from harness import spread
from network_cases import Case, cases
from torch import Tensor, nn

import canvas

Row = dict[str, Any]
Engine = Callable[[], Any]  # one forward of the images that it was made for
SLICE = 0.025  # seconds of the timed half of an engine's turn
ENOUGH = 20.0  # seconds of all turns after which three rounds are enough
UNCHANGED = "unchanged "  # before the name of an engine: the network without the kernel
BOUND = 2e-3  # largest difference from double precision, of the largest result
OURS = ("canvas", "canvas log", "canvas winograd")


# ---- engines ------------------------------------------------------------------------------------


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


def there(name: str) -> bool:
    return name in ("eager", "compile") or importlib.util.find_spec(name) is not None


# ---- turns --------------------------------------------------------------------------------------


def engines_of(log: str | None, winograd: bool, peers: dict[str, Any]) -> dict[str, Any]:
    ways = {"canvas": native(None), **peers}
    if log:
        ways["canvas log"] = native(log)
    if winograd:
        ways["canvas winograd"] = native(log, winograd=4)
    return {name: way for name, way in ways.items() if name in OURS or there(name)}


def prepared(model: nn.Module, images: Tensor, row: Row, options: argparse.Namespace,
             prefix: str = "", peers: dict[str, Any] = PEERS) -> dict[str, Engine]:  # fmt: skip
    exact = copy.deepcopy(model).double()(images.double())
    engines = {}
    for way_name, way in engines_of(options.log, options.winograd, peers).items():
        name = prefix + way_name
        try:
            with tempfile.TemporaryDirectory(dir=options.folder) as folder:
                engine = way(model, images, options.threads, Path(folder))
            error = float((engine().double() - exact).abs().max() / exact.abs().max())
        except Exception as failure:  # of its own: the others go on
            row["errors"][name] = f"{type(failure).__name__}: {failure}".splitlines()[0][:200]
            continue
        row["difference"][name] = error
        if error < BOUND:
            engines[name] = engine
        else:
            row["errors"][name] = f"wrong: differs by {error:.1e} of the largest result"
    return engines


def turns(engines: dict[str, Engine], clock: Callable[[], float],
          rounds: int) -> dict[str, list[float]]:  # fmt: skip
    """Seconds of one forward, by engine and round. The untimed half of a turn reloads weights into
    the caches. The first round does not count, since L3 keeps what was requested several times.
    """

    def timer(engine: Engine) -> contenders.Timer:
        def seconds(calls: int) -> float:
            start = clock()
            for _ in range(calls):
                engine()
            return (clock() - start) / calls

        return seconds

    timers = {name: timer(engine) for name, engine in engines.items()}
    return contenders.turns(timers, rounds, slice_s=SLICE, warm=1, least_warm=1, skip=1,
                        slow=math.inf, limit=ENOUGH)  # fmt: skip


def ratios(times: dict[str, list[float]], rivals: list[str], name: str) -> list[float]:
    """How many times faster than the best of the rivals, round by round."""
    best = min(rivals, key=lambda rival: statistics.median(times[rival]))
    return [theirs / ours for theirs, ours in zip(times[best], times[name])]


def rivals_of(name: str, every: list[str]) -> list[str]:
    """Engines with Winograd's rounding errors are rivals of each other only."""
    return [rival for rival in every if "winograd" in name or "winograd" not in rival]


def compile_seconds(model: nn.Module, images: Tensor) -> tuple[float, float]:
    """Of the network's text to native code: with an empty cache, and again."""
    from canvas import _core, aten

    with torch.no_grad():
        text = aten.import_graph(torch.export.export(model, (images,))).text
    before = os.environ.get("CANVAS_CACHE")
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["CANVAS_CACHE"] = folder
        try:
            for _ in range(2):
                start = time.perf_counter()
                _core.network_compile(text)
                taken.append(time.perf_counter() - start)
        finally:
            os.environ.pop("CANVAS_CACHE")
            if before is not None:
                os.environ["CANVAS_CACHE"] = before
    return taken[0], taken[1]


def measure(case: Case, options: argparse.Namespace) -> Row:
    row: Row = {"name": case.name, "network": case.network.name, "kernel": case.kernel,
                "batch": case.batch, "threads": options.threads, "errors": {},
                "difference": {}}  # fmt: skip
    model, images = case.model(options.find and options.find.read_text()), case.images()
    engines = prepared(model, images, row, options)
    if case.kernel != "unchanged":
        before = Case(case.network, "unchanged", case.batch)
        engines |= prepared(before.model(None), images, row, options, UNCHANGED)
    clock = time.process_time if options.threads == 1 else time.perf_counter
    times = turns(engines, clock, options.rounds)
    for name, seconds in times.items():
        row[f"{name} ms"] = statistics.median(seconds) * 1e3
        row[f"{name} spread"] = spread(seconds) * 1e3
    against = {
        "ratio": [name for name in PEERS if name in times],
        "over compile": [name for name in ["compile"] if name in times],
        "over unchanged": [name for name in times if name.startswith(UNCHANGED)],
    }
    for name in OURS:
        for kind, every in against.items():
            rivals = rivals_of(name, every)
            if name in times and rivals:
                values = ratios(times, rivals, name)
                row[f"{name} {kind}"] = statistics.median(values)
                row[f"{name} {kind} spread"] = spread(values)
    if options.threads == 1 and case.kernel == "unchanged" and case.batch == 1:
        row["cold_s"], row["cached_s"] = compile_seconds(model, images)
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("case")
    parser.add_argument("threads", type=int)
    parser.add_argument("folder")
    parser.add_argument("--find", type=Path)
    parser.add_argument("--log")
    parser.add_argument("--winograd", action="store_true")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    case = next(case for case in cases(find=True) if case.name == options.case)
    with torch.no_grad():
        row = measure(case, options)
    print(json.dumps(row))
    sys.stdout.flush()
    os._exit(0)  # engines with threads of their own have crashed at the end


if __name__ == "__main__":
    main()
