"""A process that does the jobs of a fit (fit_jobs.py) for a driver that may be another machine.

It speaks as workers/worker.py does: a job is text and names its files.  Every job has what the
teacher is made from, so that any process can begin with any job; the teacher, and what its layers
see and make, are kept from job to job.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CanvasError, one_line
from ..workers import worker
from ..workers.worker import Answers, Job, Tell

if TYPE_CHECKING:
    from .fit_jobs import Chosen, FitJobs

_kept: dict[str, Any] = {}  # the last FitJobs, by what they are made from


def fit_jobs_of(job: Job) -> FitJobs:
    """What does a job, made at the first one."""
    key = json.dumps([job["fit"], job["teacher"]], sort_keys=True)
    if key not in _kept:
        _kept.clear()
        _kept[key] = _made(job)
    fit_jobs: FitJobs = _kept[key]
    kept = job.get("weights") or {}
    fit_jobs.fetch = lambda one: _tensors(kept.get(one.sized.layer, ""))
    return fit_jobs


def _made(job: Job) -> FitJobs:
    from ..data import SPLITS
    from ..tasks import load_task
    from ..tasks.check_task import some_inputs
    from . import weight_files
    from .fit_jobs import IMAGES, VALIDATION, FitJobs
    from .fit_model import network_for
    from .teacher import Teacher

    facts = job["fit"]
    task, source = load_task(job["task"]), worker.source_of(job, SPLITS)
    network = network_for(facts["network"], source, task)
    tensors = weight_files.from_bytes(Path(job["teacher"]).read_bytes())
    weight_files.load_into(network, tensors)
    memory = facts["memory"]
    train = some_inputs(source, task, "train", IMAGES, memory)
    validation = some_inputs(source, task, "validation", VALIDATION, memory)
    teacher = Teacher(network, facts["policy"], train, validation, task)
    recorded = teacher.layer_data(memory, IMAGES)[0]
    device, amp = worker.device_of_job(job)
    return FitJobs(teacher, source, recorded, device, amp, lambda one: None)


def _tensors(path: str) -> Any:
    from . import weight_files

    try:
        return weight_files.from_bytes(Path(path).read_bytes())
    except OSError:
        return None


def chosen_of(words: list[Any]) -> Chosen:
    """An operator of a network from its words (cluster_runner.py)."""
    from .fit_jobs import Chosen
    from .menu import sized_from

    layer, name, pack, steps, seed = words
    return Chosen(sized_from(layer, name, pack), steps, seed)


def ready(job: Job, tell: Tell, answers: Answers) -> None:
    from ..devices import check_amp

    check_amp(*worker.device_of_job(job))
    fit_jobs_of(job)
    tell("done")


def error(job: Job, tell: Tell, answers: Answers) -> None:
    one = chosen_of(job["chosen"])
    found, used = fit_jobs_of(job).error(one.sized, one.seed)
    tell("done", error=found, used=used)


def item(job: Job, tell: Tell, answers: Answers) -> None:
    one = chosen_of(job["chosen"])
    made = fit_jobs_of(job).item(one.sized, one.steps, one.seed, False)
    Path(job["result"]).write_bytes(made.weights)
    tell("done", error=made.error, loss=made.loss, why=made.why, used=made.used)


def seconds(job: Job, tell: Tell, answers: Answers) -> None:
    """The native seconds of a pack, or of a program, on a machine that times."""
    from .. import _core
    from ..nn.layer_time import seconds_of

    try:
        program = job.get("program") or _core.lower(job["pack"], 0, 1)
        tell("done", seconds=seconds_of(program), why="")
    except (CanvasError, RuntimeError) as error:
        tell("done", seconds=math.inf, why=one_line(error))


def refit(job: Job, tell: Tell, answers: Answers) -> None:
    made = fit_jobs_of(job).refit(chosen_of(job["chosen"]))
    Path(job["result"]).write_bytes(made.weights)
    tell("done", error=made.error, used=made.used)


def divergence(job: Job, tell: Tell, answers: Answers) -> None:
    fit_jobs = fit_jobs_of(job)
    tell("done", divergence=fit_jobs.divergence([chosen_of(words) for words in job["network"]]))


def tune(job: Job, tell: Tell, answers: Answers) -> None:
    from .fit_jobs import Tuning

    chosen = [chosen_of(words) for words in job["network"]]
    made = fit_jobs_of(job).tuned(Tuning(chosen, job["unchanged"], job["seed"], job["epochs"]))
    Path(job["result"]).write_bytes(made.weights)
    facts = {name: value for name, value in vars(made).items() if name not in ("weights", "hits")}
    tell("done", **facts, hits=base64.b64encode(made.hits).decode())


def network_time(job: Job, tell: Tell, answers: Answers) -> None:
    """The native code of a network beside that of the teacher, on a machine that times."""
    import torch

    from .teacher import Fitted
    from .weight_files import fresh_module

    fit_jobs = fit_jobs_of(job)
    outputs = {target.name: target.cout for target in fit_jobs.teacher.targets}
    sized = [chosen_of(words).sized for words in job["network"]]
    network = None
    if not job["unchanged"]:
        network = fit_jobs.teacher.assemble(
            {
                one.layer: Fitted(fresh_module(one), torch.zeros(outputs[one.layer]))
                for one in sized
            }
        )
    tell("done", **vars(fit_jobs.time(network)))


KINDS: dict[str, Callable[[Job, Tell, Answers], None]] = {
    "ready": ready,
    "error": error,
    "item": item,
    "seconds": seconds,
    "refit": refit,
    "divergence": divergence,
    "tune": tune,
    "network_time": network_time,
}

if __name__ == "__main__":
    worker.KINDS = KINDS
    sys.exit(worker.main())
