"""`canvas fit`: the data and the network by name, its weights from a file or trained here."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..cluster.cluster import Cluster
from ..cluster.cluster_pool import ClusterPool
from ..cluster.connect import SHARING, cluster_of, device_of_cluster, workers_of_cluster
from ..data import READERS, Data, NamedSource, Streamed, as_data, stored
from ..data.readers import image_options
from ..data.streamed import made_by_name
from ..errors import CanvasError, NoSolution
from ..layer_choice import LayerChoice
from ..nn.load_model import load_for
from ..nn.network import Recipe, build_network
from ..reporting.callbacks import Callbacks, EpochEvent
from ..reporting.displays import make_display
from ..reporting.epoch_log import open_log
from ..reporting.progress import Display
from ..reporting.report import Report
from ..study import TEACHER, weights_file
from ..tasks import Task, load_task
from ..tasks.classification import CLASSIFICATION
from ..tasks.evaluate import NotFinite
from ..text import several
from ..training.kept import Kept
from ..training.train import Epoch, Training
from ..training.weights_file import load_weights
from . import weight_files
from .cluster_runner import PROGRAM, OnCluster, base_words
from .fit import fit_into, source_of, study_of
from .fit_jobs import Chosen
from .fit_run import FitRun, the_device
from .job_runner import JobRunner


def fit_model(
    options: dict[str, Any],
    folder: Path,
    fresh: bool,
    progress: str,
    log_dir: str | None = None,
) -> Report:
    """A fit in `folder` with the options of `canvas fit`; `progress` is a way of displays.py."""
    with cluster_of(options) as cluster, open_log(log_dir, fresh) as log:
        if cluster is not None:
            device = device_of_cluster(cluster, options["device"])
            options["device"] = device.name
            options["workers"] = options["workers"] or workers_of_cluster(cluster, device)
        return _fit_model(options, folder, fresh, progress, cluster, Callbacks(log=log))


def _fit_model(
    options: dict[str, Any],
    folder: Path,
    fresh: bool,
    progress: str,
    cluster: Cluster | None,
    callbacks: Callbacks,
) -> Report:
    begun = time.monotonic()
    task = load_task(options["task"])
    source = source_named(options, task, None if fresh else folder / stored.FOLDER)
    title = f"{options['model']} on {source.name}"
    display = make_display(progress, None, title, options["time_limit"], begun)
    with study_of(folder, fresh) as study:
        callbacks.claim(study, goes_on=(study.folder / TEACHER).exists())
        try:
            network = teacher_of(options, source, task, study.folder, display, callbacks, begun)
        except KeyboardInterrupt:
            display.close()
            display.farewell("stopped while the teacher was trained: the same command goes on")
            raise
        finally:
            display.close()
        display = make_display(progress, None, title, options["time_limit"], begun)
        elsewhere = None if cluster is None else partial(on_cluster, cluster)
        words = (options, display, begun, callbacks, elsewhere)
        return fit_into(study, network, source, task, *words).report


@contextmanager
def on_cluster(cluster: Cluster, run: FitRun) -> Iterator[JobRunner]:
    """What does the jobs of a fit on the nodes of a cluster."""
    source, options, folder = run.source, run.options, run.study.folder.resolve()
    images = {"name": options["data"], "seal": source.checksum}
    if isinstance(source, Data):
        place = folder / stored.FOLDER
        images = {"folder": str(place), "seal": stored.store(source, place)}
    digest = weight_files.store(folder, weight_files.to_bytes(run.teacher.network.state_dict()))
    network = network_of(options, source, run.task)[1]
    teacher = weights_file(folder, digest)
    base = base_words(network, options, options["task"], images, teacher)

    def file_of(one: Chosen) -> str:
        key = (one.sized.layer, one.sized.name, one.steps, one.seed)
        digest = run.fits.get(key, "")
        return str(weights_file(folder, digest)) if digest else ""

    with ClusterPool(
        cluster,
        images,
        {**base, "deterministic": False},
        run.display.line,
        size=options["workers"],
        device=options["device"],
        amp=options["amp"],
        label=options["timing_on"] or "",
        per_gpu=SHARING,
        program=PROGRAM,
        deadline=run.until(1.0),
    ) as pool:
        yield OnCluster(pool, base, run.fit_jobs, file_of)


def network_for(words: dict[str, Any], source: Any, task: Task) -> nn.Module:
    """The network that `network_of` gave these words for."""
    if "classes" in words:
        return build_network(Recipe.from_json(words))
    return network_of(words, source, task)[0]


def source_named(options: dict[str, Any], task: Task, beside: Path | None = None) -> NamedSource:
    """The data by its name: a reader's, or package.module:callable, which returns what canvas.fit
    takes; the folder `beside` may have an index of it.
    """
    name = options["data"]
    if ":" not in name or name.partition(":")[0] in READERS:
        return as_data(name, beside=beside, **image_options(options))
    made = made_by_name(name)
    asked = {word: value for word, value in image_options(options).items() if value is not None}
    if task is CLASSIFICATION and not isinstance(made, Streamed):
        return replace(as_data(made, **asked), name=name)
    if asked:
        raise CanvasError(f"loaders give their examples complete: leave {min(asked)} out")
    return source_of(made, task, name)


def network_of(
    options: Mapping[str, Any], source: NamedSource, task: Task
) -> tuple[nn.Module, Any]:
    """The network for these data, and what it is built from, as JSON has it."""
    if isinstance(source, Data):
        recipe = Recipe(
            options["model"], options["width"], source.shape, source.classes,
            str(LayerChoice.of(options)), options["seed"],
        )  # fmt: skip
        return build_network(recipe), {**recipe.to_json(), "shape": list(recipe.shape)}
    example = task.inputs_of(source.first("train", 1)[0])
    shape = next((list(t.shape[1:]) for t in example.tensors if t.ndim == 4), None)
    torch.manual_seed(options["seed"])
    network = load_for(options["model"], shape, options["width"])
    return network, {name: options[name] for name in ("model", "width", "seed")}


def teacher_of(
    options: dict[str, Any],
    source: NamedSource,
    task: Task,
    folder: Path,
    display: Display,
    callbacks: Callbacks,
    begun: float,
) -> nn.Module:
    """The network with the weights of the user's file, or trained here, an epoch at a time so
    that a kill costs no more than one, and a time limit ends it after one.
    """
    network, words = network_of(options, source, task)
    if options["weights"] is not None:
        return load_weights(network, options["weights"])
    epochs = options["teacher_epochs"]
    if task.loss is None:
        raise CanvasError(f"task '{task.name}' trains no teacher: give its --weights")
    facts = {"recipe": words, "epochs": epochs, "images": source.checksum}
    if task is not CLASSIFICATION:
        facts["task"] = task.name
    if options["amp"] != "no":
        facts["amp"] = options["amp"]
    kept = Kept(folder / TEACHER, facts)
    device = the_device(options)

    def record(epoch: Epoch, seconds: float) -> None:
        """Report an epoch that is kept."""
        name = f"teacher, epoch {epoch.number + 1}"
        display.started(name, 1)
        display.ended(name)
        shown = task.judged_by.text(epoch.accuracy)
        display.line(f"{name} of {epochs}: {shown} on validation")
        value = None if math.isnan(epoch.accuracy) else epoch.accuracy
        callbacks.epochs(
            EpochEvent(
                folder, "teacher", "teacher", options["seed"], epoch.number + 1, epochs,
                epoch.loss, value, task.judged_by.name, seconds,
            )
        )  # fmt: skip

    with device.alone(network):
        network.to(device.place)
        limit = options["time_limit"]
        until = None if limit is None else begun + float(limit)
        return _train_teacher(options, network, source, task, kept, display, record, until).cpu()


def _train_teacher(
    options: dict[str, Any],
    network: nn.Module,
    source: NamedSource,
    task: Task,
    kept: Kept,
    display: Display,
    record: Callable[[Epoch, float], None],
    until: float | None,
) -> nn.Module:
    epochs = options["teacher_epochs"]
    training = Training(
        network, source, epochs, options["seed"], task=task, amp=options["amp"]
    )  # fmt: skip
    kept.restore(training, epochs + 1)
    if training.done < epochs:
        display.phase(f"teacher: {several(epochs, 'epoch')}, as no --weights are given", epochs)
    try:
        while training.done < epochs:
            begun = time.monotonic()
            epoch = training.epoch()
            kept.store(training)
            record(epoch, time.monotonic() - begun)
            if until is not None and training.done < epochs and time.monotonic() > until:
                raise NoSolution(
                    f"the time limit ended the training of the teacher after {training.done} of "
                    f"{several(epochs, 'epoch')}; the same command goes on with it"
                )
    except NotFinite as error:
        raise CanvasError(f"the network cannot be trained: {error}") from None
    return network
