"""Which networks are timed, in which engines, and what the study keeps of it."""

import time
from dataclasses import replace
from typing import ClassVar

import pytest

from canvas.nn.network import Plan, Recipe
from canvas.options import read_options
from canvas.reporting.progress import Display
from canvas.runner.search_run import Run
from canvas.runner.timing import time_networks
from canvas.study import Study, Timing
from canvas.study import records as study_module

FIGURES = {
    "ms": 2.0,
    "spread_ms": 0.1,
    "speedup": 1.5,
    "against": "compiled",
    "speedup_spread": 0.2,
    "seconds": 1.0,
    "processor": 2.0,
}


class TimingPool:
    """Answers every job at once: with figures, or with a failure."""

    size = 1
    compilers = property(lambda self: self.size)

    def __init__(self, missing="", failure=""):
        self.missing, self.failure = missing, failure
        self.asked = []
        self.said = []

    def start(self, job, words, limit, preferred=None):
        self.asked.append((job, words["engines"], words["unchanged"]))
        unchanged = words["unchanged"]
        against = FIGURES["against"] if FIGURES["against"] in unchanged else unchanged[0]
        timed = {engine: {**FIGURES, "against": against} for engine in words["engines"]}
        missing = {}
        if self.missing and "compiled" in timed:
            del timed["compiled"]
            missing["compiled"] = self.missing
        message = {"event": "done", "timed": timed, "missing": missing}
        if self.failure:
            message = {"event": "failed", "kind": "error", "reason": self.failure}
        self.said.append((job, message))

    def busy(self):
        return [job for job, _ in self.said]

    def wait(self, seconds):
        said, self.said = self.said, []
        return said


ROWS = {"baseline": "baseline", "1x1": "control", "0": "find", "1": "find"}
QUESTION = {"model": "m", "data": "d", "finalists": 1}


@pytest.fixture
def make(tmp_path):
    """A run on a study of baseline, one control and two finds, all trained."""
    opened = []

    def make(**change):
        while opened:
            opened.pop().close()
        study = Study.open(tmp_path)
        opened.append(study)
        options = read_options({**QUESTION, **change})
        if not study.begin(options, "images", "abc", (100, 50), "t"):
            for name, kind in ROWS.items():
                study.add(name, kind, "k", "p", f"h{name}", 1)
                id = study.candidates("name = ?", name)[0].id
                study.epoch(id, 0, 0.6 if name == "1" else 0.5, 1.0, 1.0)
                study.finished(id, "done")
        recipe = Recipe("m", None, (1, 8, 8), 10, "paper", 1)
        plan = Plan("t", "", macs=1000, params=10, seconds=0.001)
        return Run(study, options, recipe, plan, time.monotonic(), Display(lambda line: None))

    yield make
    for study in opened:
        study.close()


def asked(pool, run):
    names = {row.id: row.name for row in run.study.candidates()}
    return [(names[job], engines) for job, engines, _ in pool.asked]


def test_finalists_are_timed_compiled_too_and_only_once(make):
    run, pool = make(), TimingPool()
    time_networks(run, pool)
    every, two = ["eager", "native", "compiled"], ["eager", "native"]
    assert asked(pool, run) == [("baseline", every), ("1x1", every), ("1", every), ("0", two)]
    beside = [unchanged for _, _, unchanged in pool.asked]
    fastest = run.study.timings(run.study.select("baseline")[0].id)[0].against
    assert beside == [every, [fastest], [fastest], [fastest]]  # all others against one engine
    again = TimingPool()
    time_networks(run, again)
    assert again.asked == []
    run.options["finalists"] = 2  # one more finalist lacks an engine
    time_networks(run, again)
    assert asked(again, run) == [("0", every)]


@pytest.mark.parametrize(
    ("change", "engines"),
    [
        ({"compile": "no"}, ["eager", "native"]),
        ({"finalists": 0}, ["eager", "native"]),
        ({"finalists": 0, "latency": "torch"}, ["eager"]),
    ],
)
def test_what_is_no_finalist_is_not_timed_under_torch_compile(make, change, engines):
    run, pool = make(**change), TimingPool()
    time_networks(run, pool)
    asked_for = dict(asked(pool, run))
    assert asked_for["1"] == asked_for["1x1"] == engines
    assert asked_for["baseline"] == engines + ["compiled"] * ("compile" not in change)


def test_without_a_compiler_the_figures_are_the_eager_ones_and_the_reason_stays(make):
    run = make()
    time_networks(run, TimingPool(missing="torch.compile: no compiler"))
    id = run.study.candidates("name = 'baseline'")[0].id
    eager, compiled, native = run.study.timings(id)
    assert (eager.latency_ms, compiled.latency_ms, native.latency_ms) == (2.0, None, 2.0)
    assert compiled.reason == "torch.compile: no compiler"
    assert run.study.candidate(id).engine == "eager"


def test_a_network_that_cannot_be_timed_keeps_its_reason_and_is_not_tried_again(make):
    run = make()
    time_networks(run, TimingPool(failure="it fell over"))
    assert {t.reason for t in run.study.timings(1)} == {"error: it fell over"}
    assert run.study.candidate(1).latency_ms is None
    again = TimingPool()
    time_networks(run, again)
    assert again.asked == []


def test_what_failed_in_an_earlier_run_is_tried_again_and_said_so(make):
    time_networks(make(), TimingPool(missing="torch.compile: no compiler"))
    later, pool, said = make(), TimingPool(), []
    later.display = Display(said.append)
    time_networks(later, pool)
    every = ["eager", "native", "compiled"]
    assert asked(pool, later) == [("baseline", every), ("1x1", every), ("1", every)]
    assert said[0] == "trying again what could not be timed in an earlier run: 3 networks"
    assert all(t.latency_ms == 2.0 for t in later.study.timings(1))
    third = TimingPool()
    time_networks(make(), third)
    assert third.asked == []


@pytest.mark.parametrize(
    ("trouble", "what"),
    [
        ({"missing": "no compiler"}, "could not be timed under torch.compile: no compiler"),
        ({"failure": "no memory"}, "could not be timed: error: no memory"),
    ],
)
def test_a_reason_that_stops_all_networks_is_told_once_and_they_are_counted(make, trouble, what):
    run, said = make(finalists=2), []
    run.display = Display(said.append)
    time_networks(run, TimingPool(**trouble))
    told = [line for line in said if "could not" in line]
    assert told == [f"baseline {what}", f"in all 4 networks {what}"]


def test_another_machine_or_batch_size_takes_all_latencies_again(make, monkeypatch):
    time_networks(make(), TimingPool())
    for change in ({"latency_batch": 8}, {}):
        if not change:
            monkeypatch.setattr(study_module, "machine", lambda: {"processor": "another"})
        pool = TimingPool()
        time_networks(make(**change), pool)
        assert len(pool.asked) == 4


def test_timing_keeps_a_part_of_a_time_limit_at_most(make):
    run = make()
    run.options["time_limit"] = None
    small = run.timing_seconds()
    assert 15 < small < 100
    run.plan = replace(run.plan, table="a convolution\n" * 50)  # more native code to compile
    assert run.timing_seconds() - small == pytest.approx(5.5 * (1 + len(run.study.select())))
    run.options["time_limit"] = 20.0
    assert run.timing_seconds() == pytest.approx(6.0)


def test_torch_compile_that_takes_too_long_is_left_out_and_the_rest_is_timed(make):
    class SlowCompiler(TimingPool):
        def wait(self, seconds):
            if "compiled" in self.asked[-1][1]:
                time.sleep(0.3)
                return []
            return super().wait(seconds)

        def stop(self, job):
            self.said = []
            return 0.0

    run, pool = make(compile="unchanged"), SlowCompiler()
    run.deadline = time.monotonic() + 1 + 0.5
    time_networks(run, pool)
    two = ["eager", "native"]
    assert asked(pool, run)[:3] == [
        ("baseline", [*two, "compiled"]),
        ("baseline", two),
        ("1x1", two),
    ]
    assert all("compiled" not in unchanged for _, _, unchanged in pool.asked[1:])
    id = run.study.candidates("name = 'baseline'")[0].id
    eager, compiled, native = run.study.timings(id)
    assert (eager.latency_ms, compiled.latency_ms, native.latency_ms) == (2.0, None, 2.0)
    assert "longer than the time limit left" in compiled.reason


def test_a_time_limit_ends_the_timing_and_what_is_cut_off_is_taken_next_time(make):
    run, pool = make(), TimingPool()
    run.deadline = time.monotonic()
    time_networks(run, pool)
    assert pool.asked == [] and "before all networks were timed" in run.ended

    class Slow(TimingPool):
        stopped: ClassVar[list] = []

        def wait(self, seconds):
            run.deadline = time.monotonic()
            return []

        def stop(self, job):
            self.stopped.append(job)
            self.said = []

    run.deadline = time.monotonic() + 1000
    time_networks(run, Slow())
    assert Slow.stopped == [1] and run.study.timings(1) == []


class Changing(TimingPool):
    """The unchanged network's faster engine is `against`; others are compared with what the job
    names.
    """

    def __init__(self, against):
        super().__init__()
        self.against = against

    def start(self, job, words, limit, preferred=None):
        super().start(job, words, limit)
        against = words["against"] or self.against
        for engine, figures in self.said[-1][1]["timed"].items():
            figures.update(against=against, ms=1.0 if engine == against else 2.0)


def test_all_rows_are_compared_with_the_engine_that_the_baseline_quotes(make):
    """The baseline comes first, though a control is more accurate; where its faster engine changes
    later, the rows that were compared with the other one are timed again.
    """
    run = make(compile="no")
    run.study.database.execute("UPDATE network SET val_accuracy = 0.9 WHERE name = '1x1'")
    time_networks(run, Changing("eager"))
    run = make()
    pool = Changing("compiled")
    time_networks(run, pool)
    assert asked(pool, run)[0][0] == "baseline" and len(pool.asked) == 4
    rows = run.study.candidates()
    engines = {t.against for row in rows for t in run.study.timings(row.id)}
    assert engines == {"compiled"} == {row.engine for row in rows if row.kind == "baseline"}


def test_a_row_quotes_the_engine_of_the_least_latency_and_all_of_its_figures(make):
    run = make()
    id = run.study.candidates("name = '0'")[0].id
    slower = Timing("eager", 2.0, 0.1, 1.9, "compiled", 1, "", 0.4)  # the larger ratio, by noise
    faster = Timing("compiled", 1.9, 0.2, 1.8, "compiled", 1, "", 0.3)
    run.study.latency(id, [slower, faster])
    row = run.study.candidate(id)
    assert (row.engine, row.latency_ms, row.latency_spread_ms) == ("compiled", 1.9, 0.2)
    assert (row.speedup, row.speedup_spread) == (1.8, 0.3)
    run.study.latency(id, [slower, Timing("compiled", None, None, None, "", 1, "no compiler")])
    assert run.study.candidate(id).engine == "eager"


class TwoChildren(TimingPool):
    """Two children, which compile by turns: each network for two seconds by its own account."""

    size = 2

    def __init__(self):
        super().__init__()
        self.compiled, self.timed = {}, []

    def has_room(self):
        return len(self.said) < self.size

    def start(self, job, words, limit, preferred=None):
        if words["kind"] == "latency":
            assert not self.busy()  # nothing else runs while a network is timed
            self.timed.append((job, preferred))
            return super().start(job, words, limit)
        assert not self.timed and words["compilers"] >= 1
        cost = dict.fromkeys(words["engines"], 2.0)
        self.said.append((job, {"event": "done", "seconds": cost, "processor": cost}))
        self.compiled[job] = len(self.compiled) % self.size
        return self.compiled[job]


def test_networks_are_compiled_several_at_a_time_and_timed_alone_where_they_are(make):
    run, pool = make(compile="unchanged"), TwoChildren()
    began = time.monotonic()
    time_networks(run, pool)
    wall = time.monotonic() - began
    rows = {row.id: row for row in run.study.candidates()}
    assert rows[next(iter(pool.compiled))].kind == "baseline" and set(pool.compiled) == set(rows)
    # The unchanged network's fastest engine is torch.compile's, which the first child has.
    assert [child for _, child in pool.timed] == [0] * 4
    timings = [t for id in rows for t in run.study.timings(id)]
    assert sum(t.processor for t in timings) == 2 * 2.0 * len(timings)
    # By the clock all of the compiling is as long as it was, whatever each thinks.
    compiling = sum(t.seconds for t in timings) - FIGURES["seconds"] * len(timings)
    assert 0 <= compiling <= wall


def test_a_row_is_timed_by_the_child_that_compiled_it(make):
    run, pool = make(compile="no"), TwoChildren()
    time_networks(run, pool)
    assert dict(pool.timed) == pool.compiled and len(set(pool.compiled.values())) == 2


def test_what_takes_too_long_to_compile_ahead_is_stopped_and_torch_compile_left_out(make):
    class Stuck(TwoChildren):
        stopped: ClassVar[list] = []

        def wait(self, seconds):
            if not self.timed:
                time.sleep(0.05)
                return [self.said.pop()] if len(self.said) > 1 else []
            return super().wait(seconds)

        def stop(self, job):
            self.stopped.append(job)
            self.said = []
            return 7.0

    run, pool = make(compile="unchanged"), Stuck()
    run.rounds_seconds = lambda rows: 2.0
    run.deadline = time.monotonic() + 1 + 1.0
    time_networks(run, pool)
    id = run.study.select("baseline")[0].id
    assert pool.stopped == [id]
    eager, compiled, native = run.study.timings(id)
    assert (eager.latency_ms, compiled.latency_ms, native.latency_ms) == (2.0, None, 2.0)
    assert "longer than the time limit left" in compiled.reason
    assert compiled.processor == 7.0 and compiled.seconds > 0  # until it was stopped


@pytest.mark.parametrize(("rounds", "expected"), [(0.2, 2.0), (1.5, None)])
def test_compiling_ahead_leaves_what_timing_takes(make, rounds, expected):
    class Slow(TwoChildren):
        """torch.compile of the unchanged network takes three quarters of what is left."""

        def wait(self, seconds):
            if not self.timed and time.monotonic() < self.ready:
                time.sleep(0.05)
                return [self.said.pop()] if len(self.said) > 1 else []
            return super().wait(seconds)

        def stop(self, job):
            self.said = []
            return 0.0

    run, pool = make(compile="unchanged"), Slow()
    run.rounds_seconds = lambda rows: rounds
    pool.ready = time.monotonic() + 1.5
    run.deadline = time.monotonic() + 1 + 2.0
    time_networks(run, pool)
    id = run.study.select("baseline")[0].id
    latency = {t.engine: t.latency_ms for t in run.study.timings(id)}
    assert latency["compiled"] == expected


@pytest.mark.parametrize(("seconds", "stopped"), [(0.7, []), (9.0, [2])])
def test_native_code_under_way_when_compiling_has_no_more_time_is_awaited(make, seconds, stopped):
    class Late(TwoChildren):
        """The second network takes longer than the part of the time that compiling may take."""

        stopped: ClassVar[list] = []

        def wait(self, least):
            late = [(job, words) for job, words in self.said if job == 2]
            if self.timed or not late or time.monotonic() > self.ready:
                return super().wait(least)
            time.sleep(0.02)
            self.said, said = late, [pair for pair in self.said if pair[0] != 2]
            return said

        def stop(self, job):
            type(self).stopped.append(job)
            self.said = [pair for pair in self.said if pair[0] != job]
            return 0.0

    Late.stopped = []
    run, pool = make(compile="no"), Late()
    run.rounds_seconds = lambda rows: 1.0
    pool.ready = time.monotonic() + seconds
    run.deadline = time.monotonic() + 1 + 1.0  # compiling may take half of the second one
    time_networks(run, pool)
    assert Late.stopped == stopped
