"""The search: draw, solve, train, prune, finals, time, report.

    trials --> finals on the test split --> latency --> more finals --> table
 several at a time                       one at a time  in what time is left

`search` is the table of contents.  The driver owns the study file and decides; children train and
answer.  Ctrl-C and kill -9 cost at most the running trainings: the same call continues.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from .. import _core
from ..arguments import FUNCTION, PATH, SWITCH, TEXT, checked
from ..cluster.cluster import Cluster
from ..cluster.cluster_pool import ClusterPool
from ..cluster.connect import SHARING, cluster_of, device_of_cluster, workers_of_cluster
from ..data import SPLITS, Data, keep_beside, stored
from ..devices import Device, check_amp, resolve, text_of
from ..errors import CanvasError, NoSolution
from ..imports import stored_name
from ..nn.controls import IDENTITY
from ..nn.network import plan_network
from ..options import BY_NAME, LOCAL, budgets, latency_limit, read_option, read_options
from ..reporting.callbacks import CALLBACKS, Callbacks
from ..reporting.displays import make_display
from ..reporting.epoch_log import open_log
from ..reporting.progress import Say, say_to_stderr
from ..reporting.report import Report, write_report
from ..study import CLASSIFICATION, TRIED, Study, writing
from ..study.learn import kernels_of
from ..tasks import Task
from ..workers.in_process import InProcess
from ..workers.on_devices import OnDevices
from ..workers.pool import Executor, Pool
from .finals import train_finals
from .next_item import check_sampler, draw_options
from .reach import check_budget
from .search_run import Run
from .subject import Subject
from .timing import time_networks
from .trials import Trials, add_controls


@checked(
    out=PATH,
    fresh=SWITCH,
    say=FUNCTION,
    progress=TEXT,
    callbacks=CALLBACKS,
    log_dir=PATH,
    storage=PATH,
    load_if_exists=SWITCH,
)
def search(
    model: str | nn.Module | Callable[..., nn.Module],
    data: Any = None,
    *,
    train: str | Callable[..., Any] | None = None,
    score: str | Callable[..., Any] | None = None,
    example_input: Any = None,
    task: Task | str | None = "classification",
    budget: str | None = None,
    trials: int = 40,
    epochs: int = 6,
    time_limit: float | str | None = None,
    seed: int = 1,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    say: Say | None = None,
    progress: str = "lines",
    callbacks: Sequence[Any] = (),
    log_dir: str | os.PathLike[str] | None = None,
    storage: str | os.PathLike[str] | None = None,
    load_if_exists: bool = True,
    timeout: float | str | None = None,
    n_trials: int | None = None,
    **others: Any,
) -> Report:
    """Search for kernels that replace the convolutions of `model` within `budget`, and return the
    table of results.

    `model` is `resnet8`, `resnet18` or `package.module:callable`, a callable, or a module, from
    whose weights every candidate starts.  `data` is a name such as `digits-scattered` or
    `folder:PATH`, a torch Dataset or DataLoader, a tuple (train, test) or (train, validation,
    test) of them, or a `canvas.data.Data`; for a `task` other than classification also iterables
    of batches, or `package.module:callable` that returns them.  `task` is a `canvas.Task`, or its
    name as in canvas.fit.

    A loop of your own: `train(model, context)` is a generator that yields after each epoch
    (`context` has device, seed, epochs, folder, and `report(value)`), `score(model)` returns the
    metric, whose unit and direction are those of `task`; `example_input` is a tensor [N, C, H, W].

    What cannot be imported by name runs in this process, one candidate at
    a time.  `budget` limits the replaced
    layers (default `macs=0.5x`).  `time_limit` is in seconds, or a text such as "10m", for the
    whole search.  `out` is the folder of the study (default canvas-runs/MODEL-DATA); the same call
    continues an interrupted search, `fresh` starts over.  `say` receives one line of progress at a
    time (default: standard error); `progress` is "lines", "off", or "live" for a table on a
    terminal. `callbacks` are functions callback(study, candidate), called after every candidate,
    or objects with methods on_candidate(study, candidate) and on_epoch(canvas.EpochEvent);
    `study.stop()` ends the search.  `log_dir` is a folder for CSV and TensorBoard events
    (docs/logging.md).  `others` are the remaining options of `canvas search --help`, with
    underscores.

    For users of Optuna: `storage` is `out` (a folder, or sqlite:///FOLDER/study.db), `timeout` is
    `time_limit`, `n_trials` is `trials`; load_if_exists=False rejects a study that is there.

    Raises CanvasError with one message on bad input, and KeyboardInterrupt on Ctrl-C after the
    children are gone.
    """
    begun = time.monotonic()
    subject = Subject.of(
        model,
        data,
        CLASSIFICATION if task is None else task,
        {"train": train, "score": score},
        example_input,
    )
    if subject.loop:  # nothing here has a batch on which networks could be tested before
        others = {"pretests": "no", "finalists": 0, **others}
    given = {
        "model": stored_name(subject.model),
        "data": data if isinstance(data, str) else type(data).__name__,
        "task": stored_name(subject.task_name),
        "budget": budget,
        "trials": trials if n_trials is None else n_trials,
        "epochs": epochs,
        "time_limit": time_limit if timeout is None else timeout,
        "seed": seed,
        **others,
        "learn": kernels_of(others.get("learn")),
    }
    options = read_options(given)
    with cluster_of(options) as cluster, open_log(log_dir, fresh) as log:
        followers = Callbacks(callbacks, log)
        devices = devices_of(options, subject, cluster)
        if given.get("workers") is None:
            options["workers"] = default_workers(devices, cluster)
        if given.get("lag") is None:  # or some workers would have nothing to do
            options["lag"] = max(options["lag"], options["workers"])
        try:
            subject.read(
                options, None if fresh else study_folder(out, storage, options) / stored.FOLDER
            )
            options["data"] = read_option(BY_NAME["data"], subject.source.name)
            recipe = subject.recipe(options)
            plan = plan_network(recipe, options["latency_batch"])
            subject.check(recipe)
            check_question(plan.targets, options)
            folder = study_folder(out, storage, options)
            if not load_if_exists and not fresh and (folder / "study.db").exists():
                raise CanvasError(
                    f"there is a study in '{folder}': load_if_exists=True continues it"
                )
            title = f"{options['model']} on {subject.source.name}"
            display = make_display(progress, say, title, options["time_limit"], begun)
            with writing(folder):
                study = Study.open(folder, fresh)
                study.adopt(options, given)
        except KeyboardInterrupt:
            (say or say_to_stderr)("stopped before the search began: the same command starts it")
            raise
        with study:
            followers.claim(study)
            run = Run(
                study, options, recipe, plan, begun, display, followers, source=subject.source
            )  # fmt: skip
            run.task, run.loop = subject.task_name, subject.loop
            return run_search(run, subject, devices, cluster)


def devices_of(
    options: Mapping[str, Any], subject: Subject, cluster: Cluster | None = None
) -> list[Device]:
    """Where a search trains; raises CanvasError for what is not there, or cannot do what is asked
    of it.
    """
    if cluster is not None:
        return [device_of_cluster(cluster, options["device"])]
    devices = resolve(options["device"])
    for device in devices:
        check_amp(device, options["amp"])
    if options["latency"] == "cuda" and not devices[0].shared:
        raise CanvasError(
            f"--latency cuda times on a GPU, not on {devices[0]}: give --device cuda"
        )
    if subject.loop and options["amp"] != "no":
        raise CanvasError(
            "a loop of yours decides itself what is computed in 16 bits: leave amp out"
        )
    return devices


def default_workers(devices: Sequence[Device], cluster: Cluster | None) -> int:
    """Trainings at a time where the user names no number."""
    if cluster is not None:
        return workers_of_cluster(cluster, devices[0])
    if devices[0].shared:
        return min(SHARING * len(devices), os.cpu_count() or 1)
    return int(BY_NAME["workers"].default)


def run_search(
    run: Run, subject: Subject, devices: Sequence[Device], cluster: Cluster | None = None
) -> Report:
    """All stages on an open study; Ctrl-C leaves it ready to go on."""
    folder = run.study.folder
    try:
        begin(run, subject, devices)
        with executor(run, subject, devices, cluster) as pool:
            Trials(run).train(pool)
            train_finals(run, pool)
            if run.options["latency"] != "none":
                time_networks(run, pool)
                train_finals(run, pool)
        run.display.close()
        if why := run.callbacks.summary(run.study):
            run.display.line(why)
        with writing(folder):
            run.study.session_ended(time.monotonic() - run.begun)
            return write_report(run.study, run.ended)
    except KeyboardInterrupt:
        interrupted(run)
        raise
    except sqlite3.Error as error:
        raise CanvasError(f"the study in '{folder}' cannot be written: {error}") from error
    finally:
        run.display.close()


def executor(
    run: Run, subject: Subject, devices: Sequence[Device], cluster: Cluster | None = None
) -> Executor:
    """What runs the trainings: children, or this process for what no child can import; on devices
    where they are more than this CPU as it is, or on the nodes of a cluster.
    """
    if cluster is not None:
        if subject.given:
            raise CanvasError(
                f"{subject.given} cannot be imported by name, as the nodes of a cluster must: "
                "leave --executor out, or give package.module:name"
            )
        return ClusterPool(
            cluster,
            run.data,
            run.training(run.study.select("baseline")[0], run.options["epochs"]),
            run.display.line,
            size=run.options["workers"],
            device=devices[0].name,
            amp=run.options["amp"],
            label=run.options["timing_on"] or "",
            per_gpu=SHARING,
            deadline=run.deadline,
        )
    pool = _pool(run, subject, devices)
    if not devices[0].shared and run.options["amp"] == "no":
        return pool
    return OnDevices(pool, devices, run.options["amp"], run.display.line)


def _pool(run: Run, subject: Subject, devices: Sequence[Device]) -> Pool | InProcess:
    if not subject.given:
        workers = run.options["workers"]
        limited = devices[0].kind != "cuda"  # whose driver reserves more than it takes
        return Pool(workers, memory_per_child(workers) if limited else 0)
    run.display.line(
        f"{subject.given} cannot be imported by name: one candidate at a time is trained in this "
        "process, where a crash ends the search, and limits of time and memory do not hold"
    )
    return InProcess()


def begin(run: Run, subject: Subject, devices: Sequence[Device]) -> None:
    """Record the question, store the images for the children, queue the baseline and the
    controls.
    """
    study, options, source = run.study, run.options, subject.source
    options["device"] = text_of(devices)
    before = study.options().get("device", "cpu") if study.options() else ""
    what = source.description if not subject.loop else "a training loop of the user's"
    if getattr(source, "synthetic", False) and not what.startswith("synthetic"):
        what = f"synthetic images: {what}"
    known = study.begin(
        options,
        what,
        source.checksum,
        (0, 0) if subject.loop else (source.count("validation"), source.count("test")),
        run.plan.targets,
        getattr(source, "test_groups", ()),
        run.plan.record,
        subject.recorded_task(),
    )
    check_sampler(run)
    run.callbacks.claim(study)
    run.display.judged_by(study.metric)
    if isinstance(source, Data):
        folder = study.folder.resolve() / stored.FOLDER
        splits = SPLITS if options["finalists"] else SPLITS[:2]
        with writing(study.folder):
            run.data = {"folder": str(folder), "seal": stored.store(source, folder, splits)}
            keep_beside(source, folder)
    else:
        run.data = {"name": subject.data_name, "seal": source.checksum}
    for note in run.callbacks.notes(bool(known)):
        run.display.line(note)
    run.display.line(f"{options['model']} on {source.name}: {what}")
    if devices[0].shared or options["executor"] != LOCAL:
        where = "" if options["executor"] == LOCAL else " of the nodes of a cluster"
        run.display.line(f"networks are trained on {options['device']}{where}")
    if known and before != options["device"]:
        run.display.line(
            f"earlier networks were trained on {before}: the same training need not give the same "
            f"accuracy on {options['device']}"
        )
    run.display.line(run.plan.table.rstrip())
    add_controls(run)
    run.display.begin(study.candidates(), run.plan.macs)
    if known:
        run.display.line(f"going on with '{study.folder}': {trials_kept(run)} are there")


def trials_kept(run: Run) -> str:
    """`7 of 24 trials`: what has ended."""
    done = run.study.select("find", TRIED)
    return f"{len(done)} of {run.options['trials'] * len(budgets(run.options))} trials"


def interrupted(run: Run) -> None:
    """After Ctrl-C: children are gone by now; say what is kept and how to go on."""
    run.study.recover()
    run.display.farewell(
        f"stopped: {trials_kept(run)} are kept in '{run.study.folder}', the same command continues"
    )


def study_folder(
    out: str | os.PathLike[str] | None,
    storage: str | os.PathLike[str] | None,
    options: dict[str, Any],
) -> Path:
    """Where the study lives: `out`, or `storage` as users of Optuna write it, or the default
    canvas-runs/MODEL-DATA in the current folder.
    """
    if storage is not None:
        if out is not None:
            raise CanvasError("'out' and 'storage' both name the study: leave one of them out")
        place = os.fspath(storage)
        if "://" in place:
            scheme, _, rest = place.partition(":///")
            if scheme != "sqlite" or not rest:
                raise CanvasError(
                    f"storage '{place}' is not of the form sqlite:///FOLDER/study.db"
                )
            place = rest
        path = Path(place)
        return path.parent if path.name == "study.db" else path
    if out is not None:
        return Path(out)
    words = f"{options['model']}-{options['data']}"
    return Path("canvas-runs") / "".join(c if c.isalnum() or c in "-_." else "-" for c in words)


TINY = "canvas 1\nprogram tiny\nin X f32 [n:16]\nY[n:16] = X[n]\nout Y\n"


def check_question(targets: str, options: dict[str, Any]) -> None:
    """Let the core judge budgets and draw options before anything is trained."""
    for budget in budgets(options):
        try:
            _core.solve(IDENTITY, targets, budget, "exempt=1")
        except NoSolution:
            pass  # the identity may well miss a minimum; the budget itself was understood
        except CanvasError as error:
            raise CanvasError(f"--budget '{budget}' cannot be: {error}") from None
    try:
        _core.draw(targets, options["seed"], 0, draw_options(options))
    except CanvasError as error:
        words = draw_options(options).partition("\n")[0]
        raise CanvasError(f"no kernel can be '{words}': {error}") from None
    for budget in budgets(options):
        check_budget(targets, budget, options)
    if latency_limit(options) is not None:
        try:
            _core.measurer(TINY)
        except CanvasError as error:
            raise CanvasError(f"--budget latency=...: layers cannot be timed: {error}") from None


def memory_per_child(workers: int) -> int:
    """Bytes of data that one child may take: its share of four fifths of the machine, at least 2
    GiB.
    """
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(2 << 30, total * 4 // 5 // workers)
