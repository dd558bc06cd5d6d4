"""Finals: who is trained again, from which seeds, and what becomes of what a child says."""

import time

import pytest
from made_study import bits

from canvas.nn.network import Plan, Recipe
from canvas.options import read_options
from canvas.reporting.progress import Display
from canvas.runner.finals import Finals, final_seeds, finalists, train_finals
from canvas.runner.search_run import Run
from canvas.study import Study


class ScriptedPool:
    """A child that answers every job at once with the messages of a script."""

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
        yield {"event": "epoch", "number": number, "accuracy": 0.5, "loss": 1, "seconds": 2.0}
    yield {"event": "done", "hits": bits((seed - 1000) / 50, 50).hex()}


@pytest.fixture
def run(tmp_path):
    options = read_options(
        {"model": "m", "data": "d", "epochs": 2, "final_epochs": 3, "finalists": 2, "seed": 7}
    )
    with Study.open(tmp_path) as study:
        study.begin(options, "images", "abc", (100, 50), "t")
        study.add("baseline", "baseline")
        study.add("1x1", "control", "kernel", "pack", "hash 1x1", 10)
        for name, accuracy, budget in (
            *(("0", 0.5, "half"), ("1", 0.7, "half"), ("2", 0.6, "half")),
            *(("3", 0.2, "fifth"), ("4", 0.9, "fifth")),
        ):
            study.add(name, "find", "kernel", "pack", f"hash {name}", 10, budget)
            finish(study, name, accuracy)
        finish(study, "baseline", 0.95)
        finish(study, "1x1", 0.3)
        lines = []
        recipe = Recipe("m", None, (1, 8, 8), 10, "paper", 7)
        plan = Plan("t", "", macs=1000, params=10, seconds=0.001)
        yield Run(study, options, recipe, plan, time.monotonic(), Display(lines.append))


def finish(study, name, accuracy, status="done"):
    id = study.candidates("name = ?", name)[0].id
    study.started(id)
    study.built(id, 100, 10)
    study.epoch(id, 0, accuracy, 1.0, 0.1)
    study.finished(id, status)


def scores(run):
    return {row.name: row.tests for row in run.study.candidates()}


def test_finalists_are_the_most_accurate_of_each_budget_and_all_controls(run):
    def names(count):
        return [row.name for row in finalists(run.study.candidates(), count)]

    assert names(2) == ["baseline", "1x1", "4", "1", "2", "3"]
    assert names(1) == ["baseline", "1x1", "4", "1"]
    finish(run.study, "4", 0.9, status="pruned")
    assert names(1) == ["baseline", "1x1", "1", "3"]


def test_the_seeds_are_not_the_search_s_own(run):
    assert final_seeds(run.options) == [1007, 1008, 1009]
    assert final_seeds({"seed": 2**63 - 1, "final_seeds": 1}) == [999]


def test_every_finalist_is_trained_from_every_seed_once(run):
    pool = ScriptedPool(good)
    train_finals(run, pool)
    assert len(pool.jobs) == 6 * 3
    assert all(words["test"] and words["epochs"] == 3 for words in pool.jobs.values())
    assert scores(run)["4"] == pytest.approx((7 / 50, 8 / 50, 9 / 50))
    assert scores(run)["0"] == () and not run.ended
    again = ScriptedPool(good)
    train_finals(run, again)
    assert not again.jobs


def test_more_epochs_are_other_finals(run):
    train_finals(run, ScriptedPool(good))
    run.options["final_epochs"] = 4
    run.study.begin(run.options, "images", "abc", (100, 50), "t")
    assert set(scores(run).values()) == {()}
    train_finals(run, ScriptedPool(good))
    assert len(scores(run)["1"]) == 3


def failed(words):
    yield {"event": "failed", "kind": "nan", "reason": "the loss is nan"}


def lies(words):
    yield {"event": "epoch", "number": 0, "accuracy": 0.5, "loss": 1, "seconds": 2.0}
    yield {"event": "done", "hits": "ff"}


def forgets(words):
    yield {"event": "done", "hits": bits(0.5, 50).hex()}


@pytest.mark.parametrize(
    ("script", "words"),
    [(failed, "nan: the loss is nan"), (lies, "cannot be"), (forgets, "cannot be")],
)
def test_a_final_that_fails_is_a_row_with_its_reason_and_not_tried_again(run, script, words):
    train_finals(run, ScriptedPool(script))
    rows = run.study.database.execute(
        "SELECT state, reason, attempt FROM task WHERE kind = 'final'"
    ).fetchall()
    assert len(rows) == 18 and all((row["state"], row["attempt"]) == ("failed", 1) for row in rows)
    assert all(words in row["reason"] for row in rows)
    assert not run.study.database.execute("SELECT * FROM final").fetchall()
    assert set(scores(run).values()) == {()}
    again = ScriptedPool(good)
    train_finals(run, again)
    assert not again.jobs


def test_a_time_limit_ends_the_finals_and_keeps_what_is_there(run):
    run.deadline = time.monotonic()
    pool = ScriptedPool(good)
    train_finals(run, pool)
    assert not pool.jobs and "before all finals were trained" in run.ended


def test_without_finds_there_are_no_finals(run):
    with run.study._transaction():
        run.study.database.execute(
            "UPDATE task SET state = 'failed' WHERE candidate IN "
            "(SELECT id FROM network WHERE kind = 'find')"
        )
    pool = ScriptedPool(good)
    train_finals(run, pool)
    assert not pool.jobs


def test_what_is_under_way_when_the_time_is_up_is_stopped_and_not_recorded(run):
    pool = ScriptedPool(lambda words: iter([{"event": "built", "macs": 1, "params": 1}]))
    rows = finalists(run.study.candidates(), 1)
    finals = Finals(run, pool, 3, [(rows[0], 8)])
    finals._start(0)
    run.deadline = time.monotonic()
    pool.wait = lambda seconds: []
    finals.train()
    assert (0, "stop") in pool.told and scores(run)["baseline"] == ()
