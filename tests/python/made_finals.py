"""A search before its finals, and a pool that answers them by a script."""

import time
from contextlib import contextmanager

from made_study import bits

from canvas.nn.controls import grouped
from canvas.nn.network import Plan, Recipe
from canvas.options import read_options
from canvas.reporting.progress import Display
from canvas.runner.search_run import Run
from canvas.study import Study

TARGETS = "a 16 16 8 8 3 1 1\n"
MACS = 16 * 16 * 8 * 8 * 9  # of the layer
GROUPED = grouped(TARGETS, "macs=0.5x").pack


class ScriptedPool:
    """A child that answers every job at once with the messages of a script."""

    size = 1
    compilers = property(lambda self: self.size)

    def __init__(self, script):
        self.script = script
        self.jobs = {}
        self.told = []
        self.said = []

    def start(self, job, words, limit):
        self.jobs[job] = words
        self.said += [(job, message) for message in self.script(words)]

    def answer(self, job, go):
        self.told.append((job, go))

    def stop(self, job):
        self.told.append((job, "stop"))
        self.said = [(j, m) for j, m in self.said if j != job]

    def busy(self):
        return sorted({job for job, _ in self.said})

    def has_room(self):
        return not self.said

    def wait(self, seconds):
        said, self.said = self.said, []
        return said


def good(words):
    """A training whose accuracies follow from its seed."""
    seed = words["recipe"]["seed"]
    for number in range(words["epochs"]):
        scored = not words.get("score_last") or number == words["epochs"] - 1
        accuracy = 0.5 if scored else None
        yield {"event": "epoch", "number": number, "accuracy": accuracy, "loss": 1, "seconds": 2.0}
    yield {"event": "done", "hits": bits((seed - 1000) / 50, 50).hex()}


@contextmanager
def made_run(folder):
    """A search that has trained an unchanged network, two controls and five finds."""
    options = read_options(
        {"model": "m", "data": "d", "epochs": 2, "final_epochs": 3, "finalists": 2, "seed": 7}
    )
    with Study.open(folder) as study:
        study.begin(options, "images", "abc", (100, 50), TARGETS)
        study.add("baseline", "baseline")
        study.add("1x1", "control", "kernel", "pack", "hash 1x1", 10)
        # the grouped convolution of the finds' MACs is there already
        study.add("grouped", "control", "kernel", GROUPED, "hash grouped", MACS // 2)
        for name, accuracy, budget in (
            *(("0", 0.5, "half"), ("1", 0.7, "half"), ("2", 0.6, "half")),
            *(("3", 0.2, "fifth"), ("4", 0.9, "fifth")),
        ):
            study.add(name, "find", "kernel", "pack", f"hash {name}", MACS // 2, budget)
            finish(study, name, accuracy)
        finish(study, "baseline", 0.95)
        finish(study, "1x1", 0.3)
        finish(study, "grouped", 0.4)
        lines = []
        recipe = Recipe("m", None, (1, 8, 8), 10, "paper", 7)
        plan = Plan(TARGETS, "", macs=1000, params=10, seconds=0.001)
        yield Run(study, options, recipe, plan, time.monotonic(), Display(lines.append))


def finish(study, name, accuracy, status="done", macs=100):
    id = study.candidates("name = ?", name)[0].id
    study.started(id)
    study.built(id, macs, 10)
    study.epoch(id, 0, accuracy, 1.0, 0.1)
    study.finished(id, status)


def scores(run):
    return {row.name: row.tests for row in run.study.candidates()}
