"""A child process that trains or times candidates, one at a time, and tells the driver what
happens.

    driver                                     python -m canvas.workers.worker
      | {"kind": "accuracy", "pack": ...}  ->    |   JSON, one object per line
      |   <- {"event": "built", "macs": ...}     |
      |   <- {"event": "signals", ...}           |   where asked for; waits for the verdict
      | {"go": true}  ->                         |
      |   <- {"event": "epoch", "number": 0 ...} |   waits for the verdict
      | {"go": true}  ->                         |
      |   <- {"event": "done", ...}              |   or "stopped", or "failed" with its reason

Text comes in and numbers go out; no code, no pickle.  Whatever else writes to standard output
(a model of the user's, a library) is sent to standard error, of which the driver keeps the last
lines.  The child dies with its driver (PR_SET_PDEATHSIG), leaves no core file, cannot take more
memory than it was given and is what the system shall end first when all memory is gone.
"""

from __future__ import annotations

import ctypes
import faulthandler
import json
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import CanvasError, one_line
from .on_devices import FULL, GONE
from .pool import LOST_DATA
from .scratch import import_without_blanks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from ..data import Mapped, Source
    from ..devices import Device
    from ..nn.network import Recipe
    from ..tasks import Task
    from ..training.kept import Kept
    from ..training.train import Epoch
    from .layer_test import RecordedLayer

PR_SET_PDEATHSIG = 1
OUT_OF_MEMORY_SCORE = "500"  # between 0, as the driver, and 1000, before everything else
LOG_TAIL = 8192
CLASSIFICATION = "classification"
SIGNAL_IMAGES = 64  # on which a network is judged before it is trained

Job = dict[str, Any]
Tell = Callable[..., None]


class Answers(Protocol):
    """Where verdicts are read: a line of JSON at a time, "" where there are no more."""

    def readline(self) -> str: ...


def main() -> int:
    """Serve jobs from standard input until it ends; arguments: the driver's process id, bytes of
    memory (0: any).
    """
    driver, memory = int(sys.argv[1]), int(sys.argv[2])
    live_and_die_with(driver)
    limit_memory(memory)
    import_without_blanks(sys.path)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    faulthandler.enable()  # the log of a crash says where it was

    def tell(event: str, **facts: Any) -> None:
        answers.write(json.dumps({"event": event, **facts}) + "\n")
        answers.flush()

    for line in sys.stdin:
        serve(json.loads(line), tell, sys.stdin)
    return 0


def live_and_die_with(driver: int) -> None:
    """Ask the kernel to kill this process when its driver is gone (Linux; elsewhere the closed
    pipe ends it).
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != driver:
        os._exit(1)


def limit_memory(memory: int) -> None:
    """No more than `memory` bytes of data (0: any), and no core file."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    try:
        Path("/proc/self/oom_score_adj").write_text(OUT_OF_MEMORY_SCORE)
    except OSError:
        pass  # not Linux, or not allowed


def serve(job: Job, tell: Tell, answers: Answers) -> None:
    """Do one job; every failure that can still speak becomes a typed `failed`."""
    try:
        for folder in job.get("path", []):
            if folder not in sys.path:
                sys.path.append(folder)
        import torch

        torch.set_num_threads(1)
        torch.set_flush_denormal(True)  # numbers below 1e-38 cost time and mean nothing here
        torch.use_deterministic_algorithms(True, warn_only=not job.get("deterministic"))
        torch.utils.deterministic.fill_uninitialized_memory = False  # nothing reads it
        KINDS[job["kind"]](job, tell, answers)
    except Exception as error:
        log = traceback.format_exc()[-LOG_TAIL:]
        kind = failure_kind(error)
        own_words = kind in ("nan", "wrong_result", LOST_DATA, FULL, GONE)
        reason = str(error) if own_words else one_line(error)
        tell("failed", kind=kind, reason=reason, log=log)


def failure_kind(error: BaseException) -> str:
    """nan, wrong_result, lost_data, out_of_device_memory, device_lost, out_of_memory or error."""
    from ..data import DataFailed
    from ..devices import DeviceLost, OutOfDeviceMemory
    from ..tasks.evaluate import NotFinite

    if isinstance(error, NotFinite):
        return "nan"
    if isinstance(error, WrongResult):
        return "wrong_result"
    if isinstance(error, (LostData, DataFailed)):
        return LOST_DATA
    if isinstance(error, OutOfDeviceMemory):
        return FULL
    if isinstance(error, DeviceLost):
        return GONE
    text = str(error).lower()
    if isinstance(error, MemoryError) or ("alloc" in text and "memory" in text):
        return "out_of_memory"
    return "error"


class WrongResult(ArithmeticError):
    """The module and the interpreter of the core do not agree about a kernel."""


class LostData(OSError):
    """The images that the driver stored cannot be read any more, or are others."""


def accuracy(job: Job, tell: Tell, answers: Answers) -> None:
    """Check the kernel, train the network, tell every epoch and obey the verdict; a final tells
    at its end which images of the test split it got right.
    """
    if job.get("own"):
        own_loop(job, tell, answers)
        return
    import numpy as np

    from ..data import resident
    from ..devices import autocast
    from ..nn.memory_format import put_in
    from ..nn.network import Recipe, build_network, cost_on
    from ..tasks import load_task
    from ..tasks.evaluate import evaluate, hits_of
    from ..training.train import on_place, train

    recipe, task = Recipe.from_json(job["recipe"]), load_task(job.get("task", CLASSIFICATION))
    splits = ("train", "validation", "test") if job["test"] else ("train", "validation")
    data = source_of(job, splits)
    if job["pack"] is not None and job["check"]:
        check(job["pack"])
    device, amp = device_of_job(job)
    memory_format = job["memory_format"] or "contiguous"
    if not job["memory_format"] and not device.shared:
        memory_format = faster_format(recipe, job["pack"], data, task, job["batch_size"])
    network = put_in(build_network(recipe, job["pack"]), memory_format)
    macs, params = cost_on(network, recipe.example())
    tell("built", macs=macs, params=params, memory_format=memory_format)
    if job.get("layers"):
        tell("layers", **known_time_of_layers(job))
        if not verdict(answers):
            tell("stopped")
            return
    if job.get("signals"):
        tell("signals", **initial_signals(recipe, job["pack"], data, task, recorded_layer(job)))
        if not verdict(answers):
            tell("stopped")
            return
    ended_epoch = teller(tell, answers, device)

    def go_on(epoch: Epoch) -> bool:
        check_images(data)
        return ended_epoch(epoch)

    until, kept = job.get("until") or job["epochs"], kept_training(job)
    size = job["batch_size"]
    last = bool(job["score_last"])
    told: Job = {}
    with whole(data), device.training(network):
        network.to(device.place)
        near = resident(data, device.place, device.memory()[0], splits)
        curve = train(
            network, near, job["epochs"], recipe.seed, size, go_on, until, kept, last, task, amp
        )
        ended = curve[-1].number + 1 >= until
        if ended and job["test"]:
            scored = on_place(near.scoring("test"), device.place)
            with autocast(device.place, amp):
                right = hits_of(task, network, scored, data.count("test"))
                if right is None:
                    told["test"] = evaluate(task, network, scored)
            if right is not None:  # the first image in the highest bit
                told["hits"] = np.packbits(right.numpy()).tobytes().hex()
        elif ended and job["pack"] is None and (layer := recorded_layer(job)) is not None:
            told["unrecorded"] = record(layer, network.cpu(), recipe.policy, data, task)
    tell("done" if ended else "stopped", **told)


def device_of_job(job: Job) -> tuple[Device, str]:
    """The device on which a job trains, the CPU where it names none, and its 16 bits."""
    from ..devices import open_device

    return open_device(job.get("device", "cpu")), job.get("amp", "no")


def teller(tell: Tell, answers: Answers, device: Device | None = None) -> Callable[[Epoch], bool]:
    """A function that tells an epoch, with the time since now and the memory that its device had
    to give, and waits for the verdict.
    """
    start, used = time.monotonic(), time.process_time()

    def ended(epoch: Epoch) -> bool:
        tell(
            "epoch",
            number=epoch.number,
            accuracy=None if math.isnan(epoch.accuracy) else epoch.accuracy,
            loss=epoch.loss,
            waiting=epoch.waiting,
            memory=device.peak() if device is not None else 0,
            seconds=time.monotonic() - start,
            processor=time.process_time() - used,
        )
        return verdict(answers)

    return ended


def own_loop(job: Job, tell: Tell, answers: Answers) -> None:
    """The same by a loop of the user's (own_loop.py); it has no test split."""
    from ..nn.network import Recipe, build_network, cost_on
    from ..tasks import load_task
    from .own_loop import epochs_of

    recipe, task = Recipe.from_json(job["recipe"]), load_task(job["task"])
    if job["pack"] is not None and job["check"]:
        check(job["pack"])
    network = build_network(recipe, job["pack"])
    macs, params = cost_on(network, recipe.example())
    tell("built", macs=macs, params=params, memory_format="contiguous")
    if job.get("layers"):
        tell("layers", **known_time_of_layers(job))
        if not verdict(answers):
            tell("stopped")
            return
    device, _ = device_of_job(job)
    until, ended = job.get("until") or job["epochs"], teller(tell, answers, device)
    with device.training(network):
        network.to(device.place)
        words = (job["own"], recipe.seed, job["epochs"], device.place)
        for epoch in epochs_of(network, task, *words):
            if not ended(epoch):
                tell("stopped")
                return
            if epoch.number + 1 == until:
                break
    tell("done")


def recorded_layer(job: Job) -> RecordedLayer | None:
    """The layer of the trained unchanged network that kernels are fitted to, if the job names its
    file.
    """
    from .layer_test import RecordedLayer

    if not job.get("layer"):
        return None
    facts = {name: job[name] for name in ("recipe", "epochs", "batch_size")}
    return RecordedLayer(Path(job["layer"]), {**facts, "images": job["images"]["seal"]})


def record(layer: RecordedLayer, network: nn.Module, policy: str, data: Source, task: Task) -> str:
    """Record the layer of the unchanged network, or return why it cannot be."""
    try:
        layer.record(network, policy, data, task)
    except (CanvasError, OSError, RuntimeError) as error:
        return one_line(error)
    return ""


def kept_training(job: Job) -> Kept | None:
    """Where a training is left off and goes on, if the job names a file for it."""
    from ..training.kept import Kept

    if not job.get("kept"):
        return None
    words = ("recipe", "pack", "epochs", "batch_size")
    facts = {name: job[name] for name in words}
    if job.get("amp", "no") != "no":
        facts["amp"] = job["amp"]
    return Kept(Path(job["kept"]), {**facts, "images": job["images"]["seal"]})


def verdict(answers: Answers) -> bool:
    """Wait for the driver's word whether to go on; no where the driver is gone."""
    line = answers.readline()
    return bool(line) and bool(json.loads(line)["go"])


def faster_format(
    recipe: Recipe, pack: str | None, data: Source, task: Task, batch_size: int
) -> str:
    """The memory format in which networks of these words are trained faster; the one that will be
    trained, and the random numbers it takes, are not touched.
    """
    import torch

    from ..nn.memory_format import faster
    from ..nn.network import build_network
    from ..tasks.evaluate import loss_of
    from ..training.train import first_batch

    with torch.random.fork_rng(devices=[]):
        batch = first_batch(data, recipe.seed, batch_size)
        return faster(
            lambda: build_network(recipe, pack), lambda network: loss_of(task, network, batch)[0]
        )


def initial_signals(
    recipe: Recipe,
    pack: str | None,
    data: Source,
    task: Task,
    layer: RecordedLayer | None = None,
) -> Job:
    """What a second network of the same words tells before training, and the error of its kernel
    at `layer`; the one that is trained, and the random numbers it takes, are not touched.
    `missing` says why nothing can be told: what cannot be trained either fails when it is.
    """
    import torch

    from ..nn.convert import convert_layers
    from ..nn.initial_signals import Signals, measure
    from ..nn.network import build_network
    from ..nn.placeholder import Placeholder
    from ..training.train import first_batch

    with torch.random.fork_rng(devices=[]):
        try:
            network = build_network(recipe, pack)
            if pack is None:  # the layers that others replace
                example = recipe.example().example
                network = convert_layers(network, example, recipe.policy, inplace=True).model
            replaced = [child for child in network.modules() if isinstance(child, Placeholder)]
            batch = first_batch(data, recipe.seed, SIGNAL_IMAGES)
            signals = measure(network, batch, partial(first_loss, task), replaced)
            error = None
            if pack is not None and layer is not None and not signals.broken:
                error = layer.error(pack, recipe.seed)
            return {**signals.to_json(), "error": error, "missing": ""}
        except Exception as error:
            return {**Signals().to_json(), "error": None, "missing": one_line(error)}


def first_loss(task: Task, network: nn.Module, batch: Any) -> Tensor:
    from ..tasks.evaluate import loss_of

    return loss_of(task, network, batch)[0]


def source_of(job: Job, splits: Sequence[str]) -> Source:
    """What a job trains on: images that the driver stored, or loaders by name."""
    from ..data.streamed import streamed_by_name

    images = job["images"]
    if "name" in images:
        return streamed_by_name(images["name"])
    return map_images(**images, splits=splits)


def map_images(folder: str, seal: str, splits: Sequence[str]) -> Mapped:
    """The images with this seal in `folder`; raises LostData where these splits are not there,
    for without them no candidate can be judged.
    """
    from ..data import Mapped

    try:
        images = Mapped(Path(folder), seal)
        for part in splits:
            getattr(images, part)
        return images
    except CanvasError as error:
        raise LostData(str(error)) from error


@contextmanager
def whole(images: Source) -> Iterator[None]:
    """Around what reads images: whatever comes of images that were changed is no result, and no
    fault of the network.
    """
    try:
        yield
    except Exception:
        check_images(images)
        raise
    check_images(images)


def check_images(images: Source) -> None:
    """Raise LostData where stored images were changed while they were read."""
    try:
        if hasattr(images, "check_mapped"):
            images.check_mapped()
    except CanvasError as error:
        raise LostData(str(error)) from error


def check(pack: str) -> None:
    """Reject a kernel whose module does not compute what the interpreter says."""
    from ..nn.pack import KernelPack

    try:
        KernelPack(pack).check()
    except ArithmeticError as error:
        raise WrongResult(str(error)) from error


def time_of_layers(pack: str, targets: str, batch: int) -> Job:
    """What share of the time of the layers it replaces a pack takes, or why that is not known."""
    from ..nn.layer_time import share_of_time

    try:
        return {"share": share_of_time(pack, targets, batch), "missing": ""}
    except CanvasError as error:
        return {"share": None, "missing": one_line(error)}


def known_time_of_layers(job: Job) -> Job:
    """The same for a training; what another machine has timed for it is `timed_layers`."""
    known: Job = job.get("timed_layers") or time_of_layers(job["pack"], **job["layers"])
    return known


def layers(job: Job, tell: Tell, answers: Answers) -> None:
    """The same as a job of its own, on a machine that times."""
    tell("done", **time_of_layers(job["pack"], **job["layers"]))


def ready(job: Job, tell: Tell, answers: Answers) -> None:
    """See that trainings can run here: network and data are found, and so is the device."""
    from ..devices import check_amp
    from ..nn.network import Recipe, build_network
    from ..tasks import load_task

    device, amp = device_of_job(job)
    check_amp(device, amp)
    load_task(job["task"])
    if not job.get("own"):
        with whole(source_of(job, ("train", "validation"))):
            pass
    build_network(Recipe.from_json(job["recipe"]), None)
    tell("done")


def compile_engines(job: Job, tell: Tell, answers: Answers) -> None:
    """Make the engines in which a candidate will be timed, and keep them until it is."""
    engines, seconds, processor = make_engines(job, job["pack"], job["engines"])
    kept = sum(other.bytes() for key, other in _engines.items() if key != engines_key(job))
    if job["pack"] is not None and kept + engines.bytes() > KEPT:
        del _engines[engines_key(job)]
    tell("done", seconds=seconds, processor=processor)


def latency(job: Job, tell: Tell, answers: Answers) -> None:
    """Time the candidate with its norms folded, in each engine asked for, beside the unchanged
    network.
    """
    from ..nn.latency import measure
    from .engines import processor_seconds

    began, used = time.perf_counter(), processor_seconds()
    unchanged, seconds, processor = make_engines(job, None, job["unchanged"])
    ours = unchanged
    if job["pack"] is not None:
        wanted = [name for name in job["engines"] if name not in unchanged.missing]
        ours, seconds, processor = make_engines(job, job["pack"], wanted)
        del _engines[engines_key(job)]
    beside = {
        name: unchanged.networks[name] for name in job["unchanged"] if name in unchanged.networks
    }
    candidate = None
    if ours is not unchanged:
        candidate = {name: ours.networks[name] for name in wanted if name in ours.networks}
    device, _ = device_of_job(job)
    images = images_of(job)
    if device.shared:
        with device.training(next(iter(beside.values()))):
            timed = measure(
                beside, candidate, images.to(device.place), job.get("against", ""),
                timer=device.seconds,
            )  # fmt: skip
    else:
        timed = measure(beside, candidate, images, job.get("against", ""))
    # What no engine took alone is a part of each.
    each = (time.perf_counter() - began - sum(seconds.values())) / max(len(timed), 1)
    part = (processor_seconds() - used - sum(processor.values())) / max(len(timed), 1)
    missing = {**unchanged.missing, **ours.missing}
    tell(
        "done",
        timed={
            name: {
                **asdict(figures),
                "seconds": each + seconds.get(name, 0.0),
                "processor": part + processor.get(name, 0.0),
            }
            for name, figures in timed.items()
            if name in job["engines"]
        },
        missing={name: missing[name] for name in job["engines"] if name in missing},
    )


def images_of(job: Job) -> Any:
    """The inputs on which the networks of a job are timed."""
    import torch

    from ..nn.network import Recipe

    noise = torch.Generator().manual_seed(0)
    return Recipe.from_json(job["recipe"]).example(job["batch"], noise)


KEPT = 512 << 20  # bytes of parameters of candidates that wait to be timed

_engines: dict[str, Any] = {}  # Engines by network: those of the unchanged one stay


def forget_engines() -> None:
    """Of networks that may be others by now."""
    _engines.clear()


def engines_key(job: Job, **words: Any) -> str:
    job = {**job, **words}
    return json.dumps([job["recipe"], job["batch"], job["pack"]], sort_keys=True)


def make_engines(
    job: Job, pack: str | None, names: Sequence[str]
) -> tuple[Any, dict[str, float], dict[str, float]]:
    """The Engines of the unchanged network, or of a candidate; with the seconds, and those of
    processors, that each one took that was not there.
    """
    from ..nn.fold import fold
    from ..nn.network import Recipe, build_network
    from .engines import build_engines

    recipe, key = Recipe.from_json(job["recipe"]), engines_key(job, pack=pack)
    there = _engines.get(key)
    old = set(there.seconds) if there else set()

    def make() -> Any:
        network = build_network(recipe, pack)
        return network if pack is None else fold(network, inplace=True)

    device, amp = device_of_job(job)
    made = _engines[key] = build_engines(
        make, names, images_of(job), there, job.get("compilers", 0), device, amp
    )
    new = set(made.seconds) - old
    return (
        made,
        {name: made.seconds[name] for name in new},
        {name: made.processor[name] for name in new},
    )


KINDS: dict[str, Callable[[Job, Tell, Answers], None]] = {
    "accuracy": accuracy,
    "compile": compile_engines,
    "latency": latency,
    "layers": layers,
    "ready": ready,
}

if __name__ == "__main__":
    sys.exit(main())
