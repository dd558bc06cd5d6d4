"""Finals: who is trained again, from which seeds, and what becomes of what a child says."""

import time

import pytest
from made_finals import MACS, TARGETS, ScriptedPool, finish, good, made_run, scores
from made_study import bits

from canvas.runner.finals import (
    Finals,
    final_seeds,
    order_of_finals,
    train_finals,
)
from canvas.runner.timing_plan import finalists
from canvas.study import Timing


@pytest.fixture
def run(tmp_path):
    with made_run(tmp_path) as run:
        yield run


def test_finalists_are_the_most_accurate_of_each_budget_and_all_controls(run):
    def names(count):
        return [row.name for row in finalists(run.study.candidates(), count)]

    assert names(2) == ["baseline", "1x1", "grouped", "4", "1", "2", "3"]
    assert names(1) == ["baseline", "1x1", "grouped", "4", "1"]
    finish(run.study, "4", 0.9, status="pruned")
    assert names(1) == ["baseline", "1x1", "grouped", "1", "3"]


def test_the_smallest_budget_has_its_claim_first(run):
    study = run.study
    study.add("more", "control", "kernel", "pack", "hash more", 900)
    study.add("11", "find", "kernel", "pack", "hash 11", 10, "tenth")
    study.add("12", "find", "kernel", "pack", "hash 12", 1000, "whole")
    for name, macs in (("more", 990), ("11", 100), ("12", 1090)):
        finish(study, name, 0.8, macs=macs)
    names = ("baseline", "1x1", "more", "11", "12")
    rows = [row for row in study.candidates() if row.name in names]
    small, large = ["baseline", "11", "1x1"], ["12", "more"]
    order = order_of_finals(rows, [1, 2, 3, 4])
    assert [row.name for row, _ in order] == 3 * small + 3 * large + small + large
    seeds = [1] * 3 + [2] * 3 + [3] * 3 + [1, 1, 2, 2, 3, 3] + [4] * 5
    assert [seed for _, seed in order] == seeds


def test_the_seeds_are_not_the_search_s_own(run):
    assert final_seeds(run.options) == [1007, 1008, 1009]
    assert final_seeds({"seed": 2**63 - 1, "final_seeds": 1}) == [999]


def test_every_finalist_is_trained_from_every_seed_once(run):
    pool = ScriptedPool(good)
    train_finals(run, pool)
    assert len(pool.jobs) == 7 * 3
    assert all(words["test"] and words["epochs"] == 3 for words in pool.jobs.values())
    assert scores(run)["4"] == pytest.approx((7 / 50, 8 / 50, 9 / 50))
    assert scores(run)["0"] == () and not run.ended
    again = ScriptedPool(good)
    train_finals(run, again)
    assert not again.jobs


def test_more_epochs_are_other_finals(run):
    train_finals(run, ScriptedPool(good))
    run.options["final_epochs"] = 4
    run.study.begin(run.options, "images", "abc", (100, 50), TARGETS)
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
    assert len(rows) == 21 and all((row["state"], row["attempt"]) == ("failed", 1) for row in rows)
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
    assert not pool.jobs and not run.ended  # they may go on after the timing
    run.timed = True
    give_latency(run)
    train_finals(run, pool)
    assert not pool.jobs and "before all finals were trained" in run.ended


def give_latency(run):
    """To all but the unchanged network."""
    for row in run.study.candidates("kind != 'baseline'"):
        run.study.timing_started(row.id)
        run.study.latency(row.id, [Timing("eager", 1.0, 0.1, 2.0, "eager", 1, "")])


def test_finals_go_on_after_the_timing_in_what_was_kept_for_it(run):
    run.options["time_limit"] = 60.0
    run.deadline = time.monotonic() + 10  # less than is kept for compiling and timing
    pool = ScriptedPool(good)
    train_finals(run, pool)
    assert not pool.jobs
    run.timed = True
    give_latency(run)
    train_finals(run, pool)
    assert {len(tests) for tests in scores(run).values()} == {0, 3}
    assert scores(run)["baseline"] == ()  # without a latency it is in no claim
    assert "before all finals were trained" in run.ended


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


def without_grouped(run, layer_macs):
    with run.study._transaction():
        run.study.database.execute("DELETE FROM epoch WHERE candidate = 3")
        run.study.database.execute("DELETE FROM rung WHERE candidate = 3")
        run.study.database.execute("DELETE FROM task WHERE candidate = 3")
        run.study.database.execute("DELETE FROM network WHERE name = 'grouped'")
        run.study.database.execute("UPDATE network SET layer_macs = ?", (layer_macs,))


@pytest.mark.parametrize(
    ("share", "groups"), [(0.5, 2), (0.477, 2), (0.476, 4), (0.25, 4), (0.99, 2), (0.06, 16)]
)
def test_a_grouped_convolution_of_the_find_s_macs_is_added(run, share, groups):
    """With the most MACs within 1.05x of what the find has; trained from the search's own seed,
    as the other controls were, then from those of the finals.
    """
    without_grouped(run, int(MACS * share))
    pool = ScriptedPool(good)
    train_finals(run, pool)
    row = run.study.select("control", name=f"grouped-by-{groups}")[0]
    assert (row.status, row.val_accuracy, row.budget) == (
        "done", 0.5, f"macs={int(1.05 * int(MACS * share))}",
    )  # fmt: skip
    own = [w for w in pool.jobs.values() if w["recipe"]["seed"] == 7]
    assert [(w["pack"], w["epochs"], w["test"]) for w in own] == [(row.pack, 2, False)]
    assert len(row.tests) == 3 and len(pool.jobs) == 1 + 7 * 3
    again = ScriptedPool(good)
    train_finals(run, again)
    assert not again.jobs


def test_where_no_grouped_convolution_has_so_few_macs_that_is_said(run):
    said = []
    run.display.say = said.append
    without_grouped(run, MACS // 50)
    train_finals(run, ScriptedPool(good))
    assert not [row for row in run.study.select("control") if "grouped" in row.name]
    assert any("no grouped convolution has at most" in line for line in said)


def test_a_control_added_late_that_fails_or_is_cut_off_says_so(run):
    without_grouped(run, MACS // 2)
    train_finals(run, ScriptedPool(failed))
    row = run.study.select("control", name="grouped-by-2")[0]
    assert (row.status, row.reason) == ("failed", "nan: the loss is nan")


def test_finals_and_search_train_by_one_recipe(run):
    """What a job says of a final is what it says of the search's training, but for the seed, the
    epochs, the check that was made then, and what is scored at the end.
    """
    pool = ScriptedPool(good)
    train_finals(run, pool)
    ids = {row.pack: row for row in run.study.candidates()}
    for words in pool.jobs.values():
        row = ids[words["pack"] or ""]
        recipe = {**words["recipe"], "seed": run.options["seed"]}
        changed = {"recipe": recipe, "epochs": 2, "check": row.kind != "baseline", "test": False}
        changed["score_last"] = False
        assert {**words, **changed} == run.training(row, 2)


def test_all_kinds_of_candidates_are_trained_with_the_same_words(run):
    words = {row.kind: run.training(row, 2) for row in run.study.candidates()}
    same = [{**w, "pack": None, "check": None} for w in words.values()]
    assert len(words) == 3 and all(w == same[0] for w in same)


def test_the_seeds_of_finals_are_new_to_the_study(run):
    """Every seed that a training of the search has used, weights included (the network's own and
    the next one for the kernel's), is another.
    """
    used = {run.options["seed"] + i for i in range(100)}
    for seed in final_seeds(run.options):
        assert not {seed, seed + 1} & used
