"""Callbacks: which events they get of searches, fits and trainings, and what an exception does."""

# ruff: noqa: F811 - fixtures have the names of what they give

import csv
import os
import re
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

from small_trained import data, network  # noqa: E402, F401

import canvas  # noqa: E402
from canvas.errors import CanvasError  # noqa: E402
from canvas.fitting import fit_run, item_table, menu, screen  # noqa: E402
from canvas.models import resnet8  # noqa: E402
from canvas.reporting.callbacks import Callbacks, EpochEvent, folder_name  # noqa: E402
from canvas.study import Study  # noqa: E402

torch.set_num_threads(1)
PAGE = Path(__file__).resolve().parents[2] / "docs" / "logging.md"
SEARCH = {
    "width": 2, "images": 200, "trials": 2, "epochs": 3, "grace": 1, "pretests": "no", "seed": 5,
    "final_epochs": 2, "final_seeds": 1, "latency": "none", "workers": 2, "progress": "off",
    "memory_format": "contiguous",
}  # fmt: skip
FIT = {"budget": "macs=0.4x", "epochs": 1, "longer": 2, "latency": "none", "draws": 0,
       "final_seeds": 2, "progress": "off"}  # fmt: skip


class Recorder:
    """Keeps what it is called with; `at` names an epoch (run, number) at which it raises."""

    def __init__(self, at=None, error=None):
        self.events, self.candidates, self.at, self.error = [], [], at, error

    def on_epoch(self, event):
        self.events.append(event)
        assert os.getpid() == PROCESS
        if (event.run, event.epoch) == self.at:
            raise self.error

    def on_candidate(self, study, candidate):
        self.candidates.append((candidate.name, candidate.status))

    def values(self, **wanted):
        return [
            event.value
            for event in self.events
            if all(getattr(event, name) == value for name, value in wanted.items())
        ]


PROCESS = os.getpid()


def found(folder):
    """What the trainings of a study gave."""
    with Study.read(folder) as study:
        return {
            row.name: (row.status, study.curve(row.id), row.tests) for row in study.candidates()
        }


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A search with a callback: (its folder, the callback)."""
    folder, recorder = tmp_path_factory.mktemp("searched") / "out", Recorder()
    canvas.search("resnet8", "digits", out=folder, callbacks=[recorder], **SEARCH)
    return folder, recorder


def test_a_search_reports_each_epoch_that_it_records(searched):
    folder, recorder = searched
    with Study.read(folder) as study:
        for row in study.candidates():
            kinds = {"name": row.name, "kind": "trial"}
            assert recorder.values(**kinds, seed=5) == study.curve(row.id)
            second = recorder.values(**kinds, seed=505)
            if second:
                mean = (study.curve(row.id)[-1] + second[-1]) / 2
                assert row.val_accuracy == pytest.approx(mean)
            finals = recorder.values(name=row.name, kind="final", seed=1005)
            assert len(finals) == (2 if row.tests else 0) and None not in finals[1:]
            assert finals[:1] in ([], [None])  # a final scores its last epoch alone
    keys = [(event.run, event.epoch) for event in recorder.events]
    assert len(set(keys)) == len(keys) and len(keys) > 20
    for event in recorder.events:
        assert event.folder == folder and event.metric == "accuracy" and event.loss > 0
        assert event.epochs == (2 if event.kind == "final" else 3) and event.seconds > 0
    first = recorder.events[0]
    assert first.epoch == 1 and set(first.metrics) == {"train_loss", "val_accuracy"}
    ended = dict(recorder.candidates)
    assert ended.keys() == found(folder).keys() and set(ended.values()) <= {"done", "waiting"}


def test_a_search_that_is_done_reports_nothing_again(searched):
    recorder = Recorder()
    canvas.search("resnet8", "digits", out=searched[0], callbacks=[recorder], **SEARCH)
    assert not recorder.events and not recorder.candidates


@pytest.mark.nightly
def test_an_exception_ends_a_search_which_continues(searched, tmp_path):
    """Where a callback fails, no network has: also a ValueError blames no child."""
    folder, whole = searched
    words = {**SEARCH, "out": tmp_path / "out", "log_dir": tmp_path / "log", "workers": 1}
    broken = Recorder(("identity/trial-3-epochs-seed-5", 2), ValueError("no\nservice"))
    with pytest.raises(CanvasError) as caught:
        canvas.search("resnet8", "digits", callbacks=[broken], **words)
    assert str(caught.value) == (
        "callback Recorder failed in on_epoch: no; what is recorded is kept, the same command "
        "continues"
    )
    assert isinstance(caught.value.__cause__, ValueError)
    assert broken.events[-1].run == "identity/trial-3-epochs-seed-5"

    def stop(study, candidate):
        raise KeyError(candidate.name)

    with pytest.raises(CanvasError, match=r"stop failed in on_candidate: KeyError: 'identity'"):
        canvas.search("resnet8", "digits", callbacks=[stop], **words)
    with pytest.raises(KeyboardInterrupt):
        canvas.search(
            "resnet8", "digits", **words,
            callbacks=[Recorder(("grouped/trial-3-epochs-seed-5", 1), KeyboardInterrupt())],
        )  # fmt: skip
    last = Recorder()
    canvas.search("resnet8", "digits", callbacks=[last], **words)
    assert found(tmp_path / "out") == found(folder)
    # What was behind the last rung is not repeated, what was not comes again.
    assert not last.values(name="baseline", kind="trial", seed=5)
    assert last.values(name="grouped", kind="trial", seed=5) == whole.values(
        name="grouped", kind="trial", seed=5
    )
    # The log has each epoch once.
    with open(tmp_path / "log" / "epochs.csv", newline="") as file:
        logged = [(row["run"], int(row["epoch"])) for row in csv.DictReader(file)]
    assert sorted(logged) == sorted((event.run, event.epoch) for event in whole.events)


def test_a_loop_of_the_user_reports_what_it_yields(tmp_path):
    def loop(model, context):
        for number in range(context.epochs):
            context.report(0.1 * (number + 1))
            yield 10.0 - number

    recorder = Recorder()
    canvas.search(
        resnet8(channels=1, classes=10, width=2), train=loop, score=lambda model: 0.0,
        example_input=torch.zeros(1, 1, 8, 8), out=tmp_path, callbacks=[recorder], epochs=2,
        trials=1, latency="none", progress="off", prune="none",
    )  # fmt: skip
    assert recorder.values(name="baseline") == [0.1, 0.2]
    assert [event.loss for event in recorder.events if event.name == "baseline"] == [10.0, 9.0]


# ---- fits ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def short():
    """Fits of few steps: what they come to does not matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_table, "SHORT", 4)
        patch.setattr(item_table, "LONG", 8)
        patch.setattr(screen, "STEPS", 4)
        patch.setattr(fit_run, "REFIT", 12)
        patch.setattr(menu, "SHARES", (0.5, 0.3))
        patch.setattr(menu, "CONTROLS", menu.CONTROLS[:3])
        patch.setattr(fit_run, "KNOWN", menu.CONTROLS)
        yield


def test_a_fit_reports_the_epochs_of_its_tunings(network, data, tmp_path):
    recorder = Recorder()
    words = {**FIT, "workers": 2}
    result = canvas.fit(network, data, out=tmp_path, callbacks=[recorder], **words)
    best = result.best()
    assert recorder.values(name=best.name, kind="tuning", epochs=1)[-1] is not None
    longer = recorder.values(name=best.name, kind="tuning", epochs=2)
    assert len(longer) == 2 and longer[0] is None  # tunings score their last epoch alone
    with Study.read(tmp_path) as study:
        row = study.select(name=best.name)[0]
        (_, second) = sorted(study.final_seeds(row.id, 2))
        assert len(recorder.values(name=best.name, kind="final", seed=second)) == 2
    ended = [name for name, status in recorder.candidates if status == "done"]
    assert {row.name for row in result.candidates} == set(ended)
    assert ended[0] == "teacher" and all(event.seconds > 0 for event in recorder.events)

    # A callback that raises: what was tuned before is kept.
    half = recorder.events[len(recorder.events) // 2]
    broken = Recorder((half.run, half.epoch), OSError("gone"))
    alone = tmp_path / "alone"
    with pytest.raises(CanvasError, match="Recorder failed in on_epoch: OSError: gone; what is"):
        canvas.fit(network, data, out=alone, callbacks=[broken], **{**words, "workers": 1})
    again = Recorder()
    other = canvas.fit(network, data, out=alone, callbacks=[again], **words)
    assert other.report.conclusion == result.report.conclusion
    both = [(e.run, e.epoch, e.value) for e in broken.events + again.events]
    assert len(set(both)) == len(both)
    assert set(both) <= {(e.run, e.epoch, e.value) for e in recorder.events}


# ---- long trainings -----------------------------------------------------------------------------


def test_a_training_reports_its_epochs_and_continues(tmp_path):
    words = {"model": "resnet8", "data": "synthetic", "images": 100, "width": 2, "epochs": 3,
             "threads": 1, "say": lambda line: None, "out": tmp_path / "out"}  # fmt: skip
    first = Recorder(("baseline/training-3-epochs-seed-1", 2), RuntimeError("full"))
    with pytest.raises(CanvasError, match="callback Recorder failed in on_epoch: full; what is"):
        canvas.train_network("baseline", callbacks=[first], **words)
    rest = Recorder()
    canvas.train_network("baseline", callbacks=[rest], resume=True, **words)
    events = first.events + rest.events
    assert [event.epoch for event in events] == [1, 2, 3]
    log = (tmp_path / "out" / "log.csv").read_text().splitlines()[1:]
    assert [float(line.split(",")[3]) for line in log] == pytest.approx(
        [event.value for event in events], rel=1e-5
    )
    assert {event.folder for event in events} == {tmp_path / "out"}


# ---- the convention -----------------------------------------------------------------------------

EVENT = EpochEvent(Path("runs"), "trial", "17", 1, 2, 6, 0.5, None, "accuracy", 1.5)


def test_who_is_called():
    calls = []

    class Epochs:
        def on_epoch(self, event):
            calls.append(("epochs", event))

        def __call__(self, study, candidate):
            raise AssertionError("an object with on_epoch has on_candidate, or no interest")

    class Candidates:
        def on_candidate(self, study, candidate):
            calls.append(("candidates", candidate))

    given = [Epochs(), lambda study, candidate: calls.append(("function", candidate)),
             Candidates(), Epochs()]  # fmt: skip
    callbacks = Callbacks(given)
    callbacks.epochs(EVENT)
    callbacks.candidate(None, "c")
    assert calls == 2 * [("epochs", EVENT)] + [("function", "c"), ("candidates", "c")]


def test_names_and_figures_of_an_event():
    assert EVENT.run == "17/trial-6-epochs-seed-1" and EVENT.metrics == {"train_loss": 0.5}
    scored = replace(EVENT, value=0.25, metric="IoU", name="known 1 at macs=0.5x")
    assert scored.metrics == {"train_loss": 0.5, "val_IoU": 0.25}
    assert scored.run.startswith("known-1-at-macs=0.5x/")
    names = ("../a", "=1+1", "teacher, tuned", "..", "a/b\0")
    assert [folder_name(name) for name in names] == [
        "a", "1+1", "teacher-tuned", "network", "a-b",
    ]  # fmt: skip


# ---- docs/logging.md ----------------------------------------------------------------------------


class Trackers:
    """Stand-ins of mlflow and wandb: each checks its arguments and keeps what it is given."""

    def __init__(self):
        self.runs = {}  # name -> points (metrics, step)
        self.finished = []

    def modules(self):
        mlflow, wandb = types.ModuleType("mlflow"), types.ModuleType("wandb")
        mlflow.start_run, mlflow.log_metrics = self.start_run, self.log_metrics
        wandb.init = self.init
        return {"mlflow": mlflow, "wandb": wandb}

    def start_run(self, *, run_id=None, run_name=None):
        tracker, self.active = self, run_id or f"id of {run_name}"
        assert self.active == f"id of {run_name}"
        assert run_id is None or run_name in self.runs, "no such run"

        class Run:
            info = types.SimpleNamespace(run_id=self.active)

            def __enter__(self):
                return self

            def __exit__(self, *_):
                tracker.active = None

        return Run()

    def log_metrics(self, metrics, *, step):
        assert self.active, "no active run"
        self.runs.setdefault(self.active.removeprefix("id of "), []).append((metrics, step))

    def init(self, *, project, name, group, reinit):
        assert project == "canvas" and name.startswith(f"{group}/") and reinit == "create_new"
        assert name not in self.runs, "one run per training"
        points = self.runs.setdefault(name, [])
        return types.SimpleNamespace(
            log=lambda metrics, *, step: points.append((metrics, step)),
            finish=lambda: self.finished.append(name),
        )


def examples():
    return re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)


@pytest.mark.parametrize("number", range(len(examples())))
def test_the_examples_of_the_page(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trackers = Trackers()
    for name, module in trackers.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    code = examples()[number]
    exec(compile(code, f"logging.md-{number}", "exec"), {"__name__": "example"})
    if number == 0:
        printed = capsys.readouterr().out
        assert "baseline/trial-2-epochs-seed-1: epoch 2 of 2, loss " in printed
        assert re.search(r"^identity done 0\.\d", printed, re.M)
        return
    (points,) = trackers.runs.values()
    assert [step for _, step in points] == [1, 2]
    assert all(set(metrics) == {"train_loss", "val_accuracy"} for metrics, _ in points)
    assert list(trackers.runs) == ["baseline/training-2-epochs-seed-1"]
    assert trackers.finished == (list(trackers.runs) if "wandb" in code else [])


def test_the_page_has_every_field_of_an_event():
    rows = "\n".join(re.findall(r"^\| `.*$", PAGE.read_text(), re.M))
    fields = [*EpochEvent.__dataclass_fields__, "run", "metrics"]
    assert [name for name in fields if f"`{name}`" not in rows] == []
