"""The unchanged network is compiled beside the finals, in the place of a training."""

import time
from pathlib import Path

import pytest
from made_finals import ScriptedPool, good, made_run, scores

from canvas.errors import CanvasError
from canvas.runner.compiled_engines import UNCHANGED
from canvas.runner.finals import train_finals
from canvas.runner.precompile import precompile
from canvas.runner.timing_plan import requested_engines
from canvas.workers.scratch import environment_of

FINALISTS = 7
EVERY = ["eager", "native", "compiled"]


@pytest.fixture
def run(tmp_path):
    with made_run(tmp_path) as run:
        yield run


class Beside(ScriptedPool):
    """Two children.  A job that compiles is under way until so many trainings have ended, and
    tells 4 seconds of each engine; None: until nothing else is.
    """

    size = 2

    def __init__(self, trainings=3, message=None):
        super().__init__(good)
        self.trainings = trainings
        self.compiling = {}
        self.asked = []
        self.ended = 0
        cost = dict.fromkeys(EVERY, 4.0)
        self.message = message or {"event": "done", "seconds": cost, "processor": cost}

    def start(self, job, words, limit, preferred=None):
        if words["kind"] == "accuracy":
            super().start(job, words, limit)
        else:
            self.compiling[job] = words
            self.asked.append(job)
        return f"child of {job}"

    def busy(self):
        return [*super().busy(), *self.compiling]

    def has_room(self):
        return len(self.busy()) < self.size

    def wait(self, seconds):
        said = super().wait(seconds)
        self.ended += sum(message["event"] == "done" for _, message in said)
        if not said or (self.trainings is not None and self.ended >= self.trainings):
            said += [(job, self.message) for job in self.compiling]
            self.compiling = {}
        return said

    def stop(self, job):
        if job in self.compiling:
            del self.compiling[job]
            return 7.0
        return super().stop(job)


def unchanged(run):
    return run.study.select("baseline")[0].id


def precompile_all(run, pool):
    rows = run.study.select(status="done")
    precompile(run, pool, rows, requested_engines(run))


def test_the_unchanged_network_is_compiled_in_the_place_of_a_training(run):
    pool, before = Beside(), run.timing_seconds()
    train_finals(run, pool)
    assert [len(tests) for tests in scores(run).values()].count(3) == FINALISTS
    assert UNCHANGED not in pool.jobs and not pool.compiling
    assert before - run.timing_seconds() == pytest.approx(25.0)  # kept for torch.compile no more
    id = unchanged(run)
    assert run.compiled.child[id] == f"child of {UNCHANGED}"
    assert run.compiled.processor[id] == dict.fromkeys(EVERY, 4.0)
    precompile_all(run, pool)
    compiled = len(run.study.select(status="done"))
    assert set(run.compiled.seconds) == {row.id for row in run.study.select(status="done")}
    # Half of the 12 seconds beside trainings went by for it, of those after them what passed.
    by_the_clock = sum(run.compiled.cost(i, e)[0] for i in run.compiled.seconds for e in EVERY)
    assert by_the_clock == pytest.approx(12 / 2, abs=0.5) and compiled > 1


@pytest.mark.parametrize(
    ("cache", "kept"),
    [("/tmp/torchinductor_root", False), ("mine/of torch", True), (None, False)],
)
def test_children_share_no_cache_but_one_that_the_user_chose(monkeypatch, tmp_path, cache, kept):
    """Where torch has looked for its cache, its default stands in the environment."""
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/tmp")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    if cache:
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / cache))
    given = environment_of(tmp_path)["TORCHINDUCTOR_CACHE_DIR"]
    assert given == str(tmp_path / (cache if kept else "inductor")) and Path(given).is_dir()


def test_a_cache_that_no_file_can_be_kept_in_is_named(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "file/cache"))
    with pytest.raises(
        CanvasError, match=r"in '.*/file/cache', TORCHINDUCTOR_.*: Not a directory;"
    ):
        environment_of(tmp_path)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    with pytest.raises(
        CanvasError, match="TORCHINDUCTOR_CACHE_DIR: Permission denied; name another"
    ):
        environment_of(tmp_path)


def test_what_is_not_compiled_when_the_finals_end_is_awaited(run):
    pool = Beside(trainings=None)
    pool.wait, wait = (lambda seconds: ScriptedPool.wait(pool, seconds)), pool.wait
    train_finals(run, pool)
    assert list(pool.compiling) == [UNCHANGED] and run.timing_seconds() > 25
    pool.wait = wait
    precompile_all(run, pool)
    assert not pool.compiling and unchanged(run) in run.compiled.seconds
    assert pool.asked[0] == UNCHANGED and unchanged(run) not in pool.asked  # not a second time


def test_it_is_stopped_where_it_takes_too_long(run):
    pool = Beside(trainings=None)
    pool.wait = lambda seconds: ScriptedPool.wait(pool, seconds)
    train_finals(run, pool)
    run.deadline = time.monotonic()
    precompile_all(run, pool)
    assert run.compiled.stopped == {unchanged(run)} and not pool.compiling
    assert run.compiled.cost(unchanged(run), "compiled")[1] == 7.0


def test_a_child_that_dies_of_it_costs_no_final(run):
    pool = Beside(message={"event": "failed", "kind": "crashed", "reason": "it fell over"})
    train_finals(run, pool)
    assert [len(tests) for tests in scores(run).values()].count(3) == FINALISTS
    assert run.compiled.cost(unchanged(run), "compiled") == (0.0, 0.0)


@pytest.mark.parametrize("change", [{"compile": "no"}, {"workers": 1}, {"timed": True}])
def test_it_is_not_compiled_beside_where_it_need_not_be(run, change):
    pool = Beside()
    pool.size = change.get("workers", 2)
    run.options["compile"] = change.get("compile", "yes")
    run.timed = change.get("timed", False)
    train_finals(run, pool)
    assert run.compiled.unchanged is None and not pool.compiling
