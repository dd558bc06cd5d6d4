"""The driver's decisions, with a pool that only writes down what it is told."""

import time

import pytest

from canvas.errors import CanvasError
from canvas.nn.network import Plan
from canvas.options import read_options
from canvas.reporting.progress import Display
from canvas.runner.finals import expected_seconds
from canvas.runner.search_run import Run
from canvas.runner.trials import Trials
from canvas.study import Study

EPOCHS = 4


class FakePool:
    """Answers and stops are written down; nobody works."""

    def __init__(self):
        self.told = []
        self.under_way = []

    def answer(self, id, go):
        self.told.append((id, go))

    def stop(self, id):
        self.told.append((id, "stop"))

    def busy(self):
        return list(self.under_way)


@pytest.fixture
def driver(tmp_path):
    asked = {"epochs": EPOCHS, "grace": 1, "workers": 1, "lag": 4, "prune": "macs"}
    options = read_options({"model": "m", "data": "d", **asked})
    with Study.open(tmp_path) as study:
        study.begin(options, "images", "abc", (100, 100), "t")
        study.add("baseline", "baseline")
        plan = Plan("t", "", macs=1000, params=10, seconds=0.001)
        quiet = Display(lambda line: None)
        driver = Trials(Run(study, options, None, plan, time.monotonic(), quiet))
        driver.pool = FakePool()
        yield driver


def add(driver, name, kind="find", macs=100):
    """A candidate whose training has begun."""
    if kind != "baseline":
        driver.study.add(name, kind, "kernel", "pack", f"hash {name}", macs)
    id = driver.study.candidates("name = ?", name)[0].id
    driver._begin(driver.study.candidate(id))
    hear(driver, id, event="built", macs=macs, params=1)
    return id


def hear(driver, id, **message):
    driver._hear(driver.pool, id, message)


def epoch(driver, id, number, accuracy):
    hear(driver, id, event="epoch", number=number, accuracy=accuracy, loss=1.0, seconds=1.0)
    driver._judge(driver.pool)


def train(driver, id, *curve):
    for number, accuracy in enumerate(curve):
        epoch(driver, id, number, accuracy)
    hear(driver, id, event="done")


def status(driver, id):
    return driver.study.candidate(id).status


def test_a_find_is_judged_by_the_finds_and_not_by_baseline_or_controls(driver):
    train(driver, add(driver, "baseline", "baseline", 50), 0.9, 0.9, 0.9, 0.9)
    train(driver, add(driver, "1x1", "control", 50), 0.9, 0.9, 0.9, 0.9)
    for index in range(4):
        train(driver, add(driver, str(index)), 0.1, 0.2, 0.3, 0.4)
    late = add(driver, "9")
    epoch(driver, late, 0, 0.0)  # grace
    epoch(driver, late, 1, 0.13)  # 0.625 * 0.2 = 0.125
    assert driver.pool.told[-1] == (late, True)
    epoch(driver, late, 2, 0.22)  # 0.75 * 0.3 = 0.225
    assert driver.pool.told[-1] == (late, False)
    row = driver.study.candidate(late)
    assert row.status == "pruned" and "22.0 % after epoch 3, 22.5 % wanted" in row.reason


def test_a_dearer_find_does_not_judge_a_cheaper_one(driver):
    for index in range(4):
        train(driver, add(driver, str(index), macs=101), 0.9, 0.9, 0.9, 0.9)
    cheap, same = add(driver, "4", macs=100), add(driver, "5", macs=101)
    for id in (cheap, same):
        epoch(driver, id, 0, 0.1)
        epoch(driver, id, 1, 0.1)
    assert (status(driver, cheap), status(driver, same)) == ("running", "pruned")


def test_a_verdict_waits_for_those_that_count_for_it(driver):
    slow = add(driver, "0")
    others = [add(driver, str(index)) for index in (1, 2, 3)]
    late = add(driver, "4")
    epoch(driver, late, 0, 0.1)
    assert driver.pool.told[-1] == (late, True)  # grace needs no curve
    epoch(driver, late, 1, 0.1)
    assert (late, True) not in driver.pool.told[1:] and late in driver.waiting
    train(driver, slow, 0.9, 0.9, 0.9, 0.9)
    driver._judge(driver.pool)
    assert driver.pool.told[-1] == (late, False) and status(driver, late) == "pruned"
    assert all(status(driver, id) == "running" for id in others)  # they do not count yet


def test_a_pruned_training_has_nothing_more_to_say(driver):
    for index in range(4):
        train(driver, add(driver, str(index)), 0.9, 0.9, 0.9, 0.9)
    late = add(driver, "4")
    epoch(driver, late, 0, 0.1)
    epoch(driver, late, 1, 0.1)
    hear(driver, late, event="failed", kind="crashed(SIGKILL)", reason="it died on the way out")
    driver.pool.under_way = [late]
    driver.run.deadline = time.monotonic()
    driver._stop_late(driver.pool)
    assert status(driver, late) == "pruned"


@pytest.mark.parametrize(
    "message",
    [
        {"event": "epoch", "number": 0, "accuracy": 1.5, "loss": 1, "seconds": 1},
        {"event": "epoch", "number": 1, "accuracy": 0.5, "loss": 1, "seconds": 1},
        {"event": "epoch", "number": 0, "accuracy": float("nan"), "loss": 1, "seconds": 1},
        {"event": "epoch", "number": 0},
        {"event": "built", "macs": "many", "params": 1},
        {"event": "built", "macs": 1, "params": 1, "memory_format": "none"},
        {"event": "done"},
        {"event": "dance"},
        {"event": ["epoch"]},
    ],
)
def test_a_child_that_lies_fails_its_own_candidate(driver, message):
    id = add(driver, "0")
    hear(driver, id, **message)
    row = driver.study.candidate(id)
    assert row.status == "failed" and row.reason.startswith("error: ") and row.val_accuracy is None
    assert driver.pool.told == [(id, "stop")]


def test_a_baseline_that_fails_ends_the_search_with_its_reason_and_is_tried_again(driver):
    id = add(driver, "baseline", "baseline")
    with pytest.raises(CanvasError, match="cannot be trained: nan: the loss is nan"):
        hear(driver, id, event="failed", kind="nan", reason="the loss is nan", log="")
    driver.study.put_back(id)
    assert status(driver, id) == "new"


def test_when_the_time_is_up_what_is_under_way_is_new_again(driver):
    id = add(driver, "0")
    epoch(driver, id, 0, 0.5)
    driver.pool.under_way = [id]
    driver._stop_late(driver.pool)
    assert status(driver, id) == "running"  # without a limit
    driver.run.deadline = time.monotonic()
    driver._stop_late(driver.pool)
    row = driver.study.candidate(id)
    assert (row.status, row.val_accuracy, driver.study.curve(id)) == ("new", None, [])
    driver._settle()
    assert "time limit" in driver.run.ended


def test_the_first_find_of_a_budget_may_take_the_time_that_is_kept_for_finals(driver):
    """On a slow machine that is all that is left: without a find there are no finals."""
    train(driver, add(driver, "baseline", "baseline"), 0.9, 0.9, 0.9, 0.9)
    train(driver, add(driver, "1x1", "control"), 0.9, 0.9, 0.9, 0.9)
    first, second, control = add(driver, "0"), add(driver, "1"), add(driver, "fc", "control")
    driver.pool.under_way = [first, second, control]

    def finals_are_due():
        kept = driver.run.timing_seconds() + expected_seconds(driver.run)
        driver.run.deadline = time.monotonic() + kept - 0.1

    finals_are_due()
    assert not driver.clock.time_for_new()
    driver._stop_late(driver.pool)
    assert [status(driver, id) for id in (first, second, control)] == ["running", "running", "new"]
    finals_are_due()
    assert driver._in_time([control, first]) == [first]
    train(driver, first, 0.5, 0.5, 0.5, 0.5)
    driver.pool.under_way = [second]
    finals_are_due()
    driver._stop_late(driver.pool)
    assert (status(driver, first), status(driver, second)) == ("done", "new")
    finals_are_due()
    assert driver._in_time([second]) == [] and driver.closing


def test_a_training_may_take_six_times_what_the_unchanged_network_took(driver):
    assert driver._train_limit() > 3600
    train(driver, add(driver, "baseline", "baseline"), 0.9, 0.9, 0.9, 0.9)
    assert driver._train_limit() == 30
    with driver.study._transaction():
        driver.study.database.execute("UPDATE epoch SET seconds = 90, processor = 20")
    assert driver._train_limit() == 120
    with driver.study._transaction():
        driver.study.database.execute("UPDATE epoch SET seconds = 10, processor = NULL")
    assert driver._train_limit() == 60  # of a study that did not take it
