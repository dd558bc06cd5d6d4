"""What a search tries next: tables of items, and whole searches with a pool that answers in any
order.
"""

import random
import time

import pytest

from canvas import _core
from canvas.nn.network import Plan, Recipe
from canvas.options import read_options
from canvas.reporting.progress import Display
from canvas.runner import next_item
from canvas.runner.evolve import Evolve, draws_before, population
from canvas.runner.search_run import Run
from canvas.runner.strategy import (
    New,
    Promote,
    Random,
    StrategyOptions,
    first_epochs,
    leaders,
    rungs_of,
    seen,
)
from canvas.runner.trials import Trials
from canvas.study import Item, Study
from canvas.study.gain import best_gain, gain, gain_line

RUNGS = StrategyOptions(seed=1, trials=9, budgets=["half"], rungs=[1, 2, 3])


def items(*rows):
    """(candidate, rung, accuracy or None for one that failed, "open" or "rejected")."""
    made = []
    for number, (candidate, rung, result) in enumerate(rows):
        state = result if isinstance(result, str) else "failed" if result is None else "done"
        accuracy = result if state == "done" else None
        name = str(candidate)
        made.append(Item(number, candidate, name, rung, "half", "draw", "k", state, accuracy))
    return made


THREE = [(1, 1, 0.5), (2, 1, 0.7), (3, 1, 0.6)]
SIX = [*THREE, (4, 1, 0.65), (5, 1, 0.1), (6, 1, None)]
LATE = [*THREE, (2, 2, 0.9), *[(n, 1, 0.1) for n in range(4, 10)], (3, 2, 0.8), (1, 2, 0.7)]


@pytest.mark.parametrize(
    ("rows", "new", "expected"),
    [
        ([], True, New("half")),
        (THREE[:2], True, New("half")),  # a third of two is none
        (THREE, True, Promote(2, 2)),
        ([*THREE, (2, 2, "open")], True, New("half")),  # asked already
        (SIX, True, Promote(2, 2)),  # best first
        ([*SIX, (2, 2, 0.9)], True, Promote(4, 2)),  # what failed counts among six
        ([(1, 1, None), (2, 1, None), (3, 1, None)], True, New("half")),  # but is not promoted
        (THREE[:2], False, Promote(2, 2)),  # rounded up when no new ones come
        ([(1, 1, 0.5)], False, Promote(1, 2)),
        ([(1, 1, 0.5), (1, 2, 0.8)], False, Promote(1, 3)),
        ([(1, 1, "open")], False, None),
        (LATE, True, Promote(2, 3)),  # high rungs first
        ([*LATE, (2, 3, 0.88)], True, None),
        # One seed of 3 is above the mean of 2: it is verified, too.
        ([*LATE, (2, 3, 0.60)], True, Promote(3, 3)),
        ([*LATE, (2, 3, "open")], True, None),
        ([*LATE, (2, 3, 0.60), (3, 3, 0.7)], True, None),
    ],
)
def test_what_is_asked_next(rows, new, expected):
    assert Random(RUNGS).ask(0, items(*rows), new) == expected


def test_what_was_rejected_makes_room_for_another():
    rows = [(n, 1, 0.5) for n in range(1, 9)]
    full = items(*rows, (2, 2, 0.5), (1, 2, 0.5), (9, 1, "rejected"))
    assert Random(RUNGS).ask(0, full) == New("half")
    full = items(*rows, (2, 2, 0.5), (1, 2, 0.5), (9, 1, "open"))
    assert Random(RUNGS).next_budget(full) is None


def test_budgets_take_turns_and_are_compared_within_themselves():
    question = StrategyOptions(1, 9, ["half", "fifth"], [1, 2, 3])
    rows = items(*THREE)
    assert Random(question).next_budget(rows) == "fifth"
    assert leaders(rows, "fifth", 1) == [] and leaders(rows, "half", 1)[0].candidate == 2


def test_what_came_of_late_items_is_not_seen():
    rows = seen(items(*THREE), 1)
    assert [(item.state, item.accuracy) for item in rows] == [
        ("done", 0.5), ("done", 0.7), ("open", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("epochs", "grace", "first", "rungs"),
    [(6, 2, 2, [1, 2, 3]), (7, 2, 3, [1, 2, 3]), (3, 2, 2, [1, 2, 3]), (2, 2, 2, [2, 3]),
     (1, 2, 1, [2, 3]), (3, 0, 1, [1, 2, 3]), (30, 2, 10, [1, 2, 3])],
)  # fmt: skip
def test_the_first_rung_is_a_third_of_the_epochs(epochs, grace, first, rungs):
    assert first_epochs(epochs, grace) == first
    assert rungs_of("rungs", epochs, grace) == rungs
    assert rungs_of("macs", epochs, grace) == []


# ---- whole searches -----------------------------------------------------------------------------

TARGETS = "t0 8 8 8 8 3 1 1\n"


def quality(pack):
    """What a kernel is worth, 0..1: a function of its text."""
    return random.Random(pack).random() * 0.9


class Pool:
    """Trainings that take random times; `size` at a time, ended by `stop_after` jobs."""

    def __init__(self, size, seed, worth=quality, stop_after=10**9):
        self.size, self.worth, self.left = size, worth, stop_after
        self.random = random.Random(seed)
        self.jobs, self.started, self.told = {}, [], []

    def has_room(self):
        return len(self.jobs) < self.size

    def busy(self):
        return list(self.jobs)

    def start(self, job, words, limit):
        assert job not in self.jobs
        self.jobs[job] = self._messages(words)
        self.started.append((job, words["recipe"]["seed"], words["until"]))

    def _messages(self, words):
        yield {"event": "built", "macs": 100, "params": 10}
        if words.get("layers"):
            share = self.worth(words["pack"])
            known = share < 0.8  # else there is no code for a layer
            yield {"event": "layers", "share": share if known else None, "missing": "no code"}
        if words.get("signals"):
            assert ("layer" in words) == (words["pack"] != "control's pack")
            error = None if words["pack"] is None else 1 - self.worth(words["pack"])
            print_ = str(self.worth(words["pack"] or ""))[:4]
            yield {"event": "signals", "error": error, "fingerprint": print_, "broken": ""}
        for number in range(words["until"]):
            top = self.worth(words["pack"] or "") + words["recipe"]["seed"] / 10**5
            accuracy = top * (number + 1) / words["epochs"]
            yield {"event": "epoch", "number": number, "accuracy": accuracy, "loss": 1.0,
                   "seconds": number + 1.0}  # fmt: skip
        yield {"event": "done"}

    def answer(self, job, go):
        if not go:
            self.jobs.pop(job)

    def stop(self, job):
        self.jobs.pop(job, None)

    def wait(self, seconds):
        if self.left <= 0:
            raise Killed
        job = self.random.choice(list(self.jobs))
        message = next(self.jobs[job])
        if message["event"] == "done":
            del self.jobs[job]
            self.left -= 1
        return [(job, message)]


class Killed(Exception):
    """kill -9: nothing is put back before the next one opens the study."""


def run_search(folder, pool, **asked):
    """The trials of a search as far as they come; its items and what came of them."""
    options = {"model": "m", "data": "d", "trials": 12, "epochs": 6, "primitives": "2..4", **asked}
    options = read_options({"strategy": "random", "finalists": 0, "compile": "no", **options})
    with Study.open(folder) as study:
        study.database.execute("PRAGMA synchronous = OFF")
        study.begin(options, "images", "abc", (100, 100), TARGETS)
        if not study.candidates():
            study.add("baseline", "baseline")
            study.add("1x1", "control", "kernel", "control's pack", "hash", 10)
        recipe = Recipe("m", None, (1, 8, 8), 10, "paper", options["seed"])
        plan = Plan(TARGETS, "", macs=1000, params=10, seconds=0.001)
        run = Run(study, options, recipe, plan, time.monotonic(), Display(lambda line: None))
        trials = Trials(run)
        try:
            trials.train(pool)
        except Killed:
            return None
        assert trials.items.exhausted and not (folder / "rungs").exists()
        return study.items(), [(r.name, r.status, r.reason, r.val_accuracy, r.rung, r.origin,
                                r.parents) for r in study.candidates()]  # fmt: skip


ASKED = {"pretests": "no", "budget_sweep": "0.8x,0.5x"}


def test_any_number_of_workers_and_any_kill_give_the_same_search(tmp_path):
    expected = run_search(tmp_path / "one", Pool(1, 0), **ASKED)
    ended = [row for row in expected[1] if row[1] != "pruned"]
    assert {row[4] for row in expected[1]} == {1, 2, 3} and len(ended) > 6
    assert all(row[4] == 3 for row in expected[1] if not row[0].isdigit())
    for workers in (2, 4):
        assert run_search(tmp_path / str(workers), Pool(workers, 7), **ASKED) == expected
    folder, result, kills = tmp_path / "killed", None, 0
    while result is None:
        result = run_search(folder, Pool(1 + kills % 3, kills, stop_after=5), **ASKED)
        kills += 1
    assert result == expected and kills > 5


def test_pretests_reject_the_same_whatever_the_workers(tmp_path):
    expected = run_search(tmp_path / "one", Pool(1, 0), trials=20)
    rejected = [row for row in expected[1] if row[1] == "rejected"]
    reasons = {row[2].split()[0] for row in rejected}
    assert reasons == {"error", "the"}  # the same function as another
    tried = [row for row in expected[1] if row[0].isdigit() and row[1] != "rejected"]
    assert len(tried) == 20
    assert run_search(tmp_path / "four", Pool(4, 3), trials=20) == expected


def test_pretests_reject_the_same_whatever_the_kills(tmp_path):
    asked = {"trials": 10, "budget_sweep": "0.8x,0.5x"}
    expected = run_search(tmp_path / "one", Pool(2, 0), **asked)
    assert sum(row[1] == "rejected" for row in expected[1]) > 5
    folder, result, kills = tmp_path / "killed", None, 0
    while result is None:
        result = run_search(folder, Pool(1 + kills % 3, kills, stop_after=5), **asked)
        kills += 1
    assert result == expected and kills > 5


def test_a_latency_budget_rejects_what_takes_longer(tmp_path):
    asked = {"pretests": "no", "budget": "macs=0.5x,latency=0.5x"}
    _, rows = run_search(tmp_path, Pool(1, 0), **asked)
    finds = [row for row in rows if row[0].isdigit()]
    for _, status, reason, *_ in finds:
        if status == "rejected":
            share = float(reason.split()[1].rstrip("x"))
            assert 0.5 < share < 0.8 and reason.endswith("of the layers replaced, over 0.5x")
    assert {status for _, status, *_ in finds} >= {"rejected", "failed"}
    assert {reason for _, status, reason, *_ in finds if status == "failed"} == {"error: no code"}
    assert sum(status not in ("rejected", "failed") for _, status, *_ in finds) > 5
    assert {row[1] for row in rows if not row[0].isdigit()} == {"done"}


def test_a_search_whose_kernels_are_all_rejected_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(next_item, "REJECTED", 5)
    pool = Pool(1, 0, worth=lambda pack: 0.5)
    with pytest.raises(AssertionError):  # it does not come to its end
        run_search(tmp_path, pool)
    with Study.read(tmp_path) as study:
        assert {row.status for row in study.select("find")} == {"rejected"}
        assert 5 <= len(study.select("find")) < 12


def test_more_trials_go_on_with_what_was_pruned(tmp_path):
    first = run_search(tmp_path / "s", Pool(1, 0), **{**ASKED, "trials": 4})
    assert [row[1] for row in first[1]].count("pruned") > 2
    more = run_search(tmp_path / "s", Pool(2, 0), **{**ASKED, "trials": 12})
    assert [item.name for item in more[0]][: len(first[0])] == [item.name for item in first[0]]
    assert len({item.candidate for item in more[0]}) == 24


def test_a_find_that_waits_keeps_its_training_in_a_file_and_a_promoted_one_loses_it(tmp_path):
    pool = Pool(1, 0, stop_after=12)
    assert run_search(tmp_path / "s", pool, **ASKED) is None
    assert [until for _, _, until in pool.started].count(2) > 4
    assert {seed for _, seed, until in pool.started if until == 6} >= {1}
    with Study.open(tmp_path / "s") as study:
        waiting = study.select("find", "waiting")
        assert waiting and all(study.rungs(row.id).keys() == {1} for row in waiting)


# ---- evolution ----------------------------------------------------------------------------------


def test_parents_are_the_best_of_their_budget_that_are_young_or_verified():
    rows = items((1, 1, 0.9), (2, 1, 0.3), (3, 1, None), (2, 2, 0.5), (4, 1, 0.8), (4, 2, 0.6),
                 (4, 3, 0.2), (5, 1, "open"), (6, 1, 0.95), (6, 2, None))  # fmt: skip
    names = [item.name for item in population(rows, "half", 100)]
    assert names == ["2", "4", "1"]  # 4 has a mean of 0.4; all epochs stand before a part of them
    assert [item.name for item in population(rows, "half", 6)] == ["4"]
    assert population(rows, "fifth", 100) == []


def test_the_first_are_drawn_and_a_share_always_is():
    strategy = Evolve(StrategyOptions(1, 100, ["half"], share=0.2), draws=8)
    rows = items(*[(n, 2, 0.5) for n in range(8)])
    assert all(strategy.new(n, rows[:n], "half").origin == "draw" for n in range(8))
    made = []
    for n in range(8, 108):
        made.append(strategy.new(n, rows, "half"))
        rows += [Item(n, n, str(n), 2, "half", made[-1].origin, "k", "done", 0.5)]
    origins = [proposal.origin for proposal in made]
    assert origins.count("draw") == 20 and 5 < origins.count("crossover") < 30
    parents = {"draw": 0, "mutation": 1, "crossover": 2}
    assert all(len(set(p.parents)) == parents[p.origin] for p in made)


def test_known_kernels_are_the_first_parents():
    known = Item(-1, 2, "grouped", 2, "", "", "k", "done", 0.5)
    strategy = Evolve(
        StrategyOptions(1, 9, ["half"], share=0.0), [known], draws_before("known", 9)
    )
    assert strategy.new(0, [], "half") == New("half", "mutation", (known,))
    assert [draws_before("random", n) for n in (9, 100)] == [8, 25]
    assert [draws_before("random", 9, budgets) for budgets in (2, 4)] == [6, 5]


def test_what_is_good_under_one_budget_is_tried_under_the_others():
    def item(number, budget, kernel, accuracy, origin="draw"):
        return Item(number, number, str(number), 2, budget, origin, kernel, "done", accuracy)

    strategy = Evolve(StrategyOptions(1, 100, ["half", "third"], share=0.0), draws=1)
    rows = [item(0, "half", "a", 0.9), item(1, "third", "b", 0.5), item(2, "half", "c", 0.8)]
    assert [offer.kernel for offer in strategy.offers(rows, "third")] == ["a"]  # the best of two
    assert [offer.kernel for offer in strategy.offers(rows, "half")] == ["b"]
    assert strategy.offers([*rows, item(3, "third", "a", 0.1, "transfer")], "third") == []
    asked = [strategy.new(index, rows, "third") for index in range(100)]
    transfers = [proposal for proposal in asked if proposal.origin == "transfer"]
    assert 20 < len(transfers) < 60 and {p.parents for p in transfers} == {(rows[0],)}
    alone = Evolve(StrategyOptions(1, 100, ["half"], share=0.0), draws=1)
    assert all(alone.new(index, rows, "half").origin != "transfer" for index in range(100))


def test_a_transfer_is_the_kernel_as_it_is_with_sizes_of_its_budget(tmp_path):
    asked = {"pretests": "no", "budget_sweep": "0.8x,0.5x", "trials": 20, "strategy": "evolve"}
    rows = run_search(tmp_path, Pool(1, 0, landscape), **asked)[0]
    by_name = {item.name: item for item in rows}
    with Study.read(tmp_path) as study:
        packs = {row.name: (row.pack, row.parents) for row in study.candidates()}
    moved = {item.name for item in rows if item.origin == "transfer"}
    assert moved
    for name in moved:
        pack, parent = packs[name]
        assert by_name[name].kernel == by_name[parent].kernel
        assert by_name[name].budget != by_name[parent].budget and pack != packs[parent][0]


def test_the_gain_of_evolution_has_an_error_and_counts_budgets_apart():
    def item(number, budget, origin, accuracy):
        return Item(number, number, str(number), 1, budget, origin, "k", "done", accuracy)

    rows = [item(n, "half", "draw", 0.5 + 0.01 * (n % 2)) for n in range(10)]
    rows += [item(n, "half", "mutation", 0.6 + 0.01 * (n % 2)) for n in range(10, 20)]
    rows += [item(n, "fifth", "draw", 0.1) for n in range(20, 30)]  # no children to compare with
    rows += [item(n, "half", "transfer", 0.9) for n in range(30, 40)]  # neither child nor draw
    points, error, bred, drawn = gain(rows)
    assert (round(points, 6), bred, drawn) == (0.1, 10, 10) and 0.001 < error < 0.004
    assert gain_line(rows).startswith("Evolution: the 10 children reach +10.0 points")
    assert gain(rows[:10]) is None and gain_line([]) == ""


def test_the_best_verified_child_is_compared_with_the_best_verified_draw():
    """Both by the mean of their two seeds; a find with one seed does not count."""
    rows = []
    for name, origin, first, second in [
        (1, "draw", 0.50, 0.54),
        (2, "draw", 0.50, 0.50),
        (3, "mutation", 0.60, 0.64),
        (4, "crossover", 0.90, None),
    ]:
        for rung, accuracy in ((1, 0.1 * name), (2, first), (3, second)):
            if accuracy is not None:
                words = (name, str(name), rung, "half", origin, "k", "done", accuracy)
                rows.append(Item(len(rows), *words))
    points, error = best_gain(rows)
    assert points == pytest.approx(0.10)
    assert error == pytest.approx((0.5 * (0.04**2 + 0.04**2) / 3) ** 0.5)
    assert gain_line(rows).endswith(
        "; the best child with two seeds reaches +10.0 points against the best such draw "
        "(standard error of their seeds 2.3)."
    )
    assert best_gain([row for row in rows if row.origin != "draw"]) is None


def landscape(pack):
    """Worth more with each tanh and each fc, up to four: rare among draws."""
    kernel = pack.partition("bind ")[0]
    return 0.1 + 0.1 * min(kernel.count("= tanh"), 4) + 0.08 * min(kernel.count("= fc"), 4)


def test_evolution_climbs_where_draws_do_not_and_is_the_same_with_any_workers(tmp_path):
    asked = {"pretests": "no", "trials": 48, "primitives": "3..9", "require": "none"}
    best = {}
    for strategy in ("random", "evolve"):
        pool = Pool(1, 0, landscape)
        rows = run_search(tmp_path / strategy, pool, strategy=strategy, **asked)[0]
        best[strategy] = sorted(item.accuracy for item in rows if item.rung == 1)[-10:]
    assert sum(best["evolve"]) > 1.1 * sum(best["random"])
    assert {item.origin for item in rows} == {"draw", "mutation", "crossover"}
    again = run_search(tmp_path / "four", Pool(4, 5, landscape), strategy="evolve", **asked)
    assert again[0] == rows
    assert all(row[6] for row in again[1] if row[5] in ("mutation", "crossover"))


def test_a_search_without_new_kernels_ends_with_a_count(tmp_path, monkeypatch):
    monkeypatch.setattr(next_item, "DRY", 3)
    monkeypatch.setattr(_core, "draw", lambda *words: None)
    options = read_options({"model": "m", "data": "d"})
    with Study.open(tmp_path) as study:
        study.database.execute("PRAGMA synchronous = OFF")
        study.begin(options, "images", "abc", (100, 100), TARGETS)
        plan = Plan(TARGETS, "", macs=1000, params=10, seconds=0.001)
        run = Run(study, options, None, plan, time.monotonic(), Display(lambda line: None))
        assert next_item.NextItem(run).next(True, lambda: False) is None
        assert run.ended == "3 draws in a row gave no new kernel within the budget (3 skipped)"
