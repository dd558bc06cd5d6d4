"""`canvas.fit` as a whole, on a study: killed, continued, with files that are gone."""

# ruff: noqa: F811 - fixtures have the names of what they give

import json
import math
import os
import re
import signal
import sqlite3
import time

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

from small_trained import Small, data, network  # noqa: E402, F401

import canvas  # noqa: E402
from canvas import _core  # noqa: E402
from canvas.cli import main  # noqa: E402
from canvas.fitting import (  # noqa: E402
    fit,
    fit_jobs,
    fit_run,
    item_table,
    job_runner,
    menu,
    screen,
)
from canvas.fitting.forks import run_forked  # noqa: E402
from canvas.fitting.teacher import Teacher  # noqa: E402
from canvas.nn.latency import Latency  # noqa: E402
from canvas.nn.network import cost  # noqa: E402
from canvas.study import Study  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="module", autouse=True)
def short():
    """Fits of few steps: what they come to does not matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_table, "SHORT", 4)
        patch.setattr(item_table, "LONG", 8)
        patch.setattr(screen, "STEPS", 4)
        patch.setattr(fit_run, "REFIT", 12)
        patch.setattr(menu, "SHARES", (0.5, 0.3))
        patch.setattr(screen, "GOOD", 1.0)
        yield


@pytest.fixture
def few(monkeypatch):
    """Fits of three known operators."""
    monkeypatch.setattr(menu, "CONTROLS", menu.CONTROLS[:3])
    monkeypatch.setattr(fit_run, "KNOWN", menu.CONTROLS[:3])


def test_fit(network, data, tmp_path, few):
    before = {name: value.clone() for name, value in network.state_dict().items()}
    asked = {"budget": "macs=0.4x", "epochs": 1, "longer": 2, "latency": "none", "draws": 4}
    result = canvas.fit(network, data, say=print, workers=2, out=tmp_path, **asked)
    assert all(torch.equal(before[n], v) for n, v in network.state_dict().items())
    assert [c.kind for c in result.candidates[:2]] == ["teacher", "teacher, tuned"]
    assert {c.budget for c in result.candidates[2:]} == {"macs=0.4x"}
    best, targets = result.best(), Teacher(network, "all", *[data.train[0]] * 2).targets
    assert best.pack.macs <= 0.4 * sum(target.macs for target in targets)
    assert best.macs < result.teacher.macs and best.speedup is None
    assert best.validation > result.teacher.validation - 0.1
    assert {*best.choice} == {*best.pack.targets, *best.pack.kept}
    assert len(best.tests) == 3 and best.epochs == 2 and len(set(result.teacher.tests)) == 1
    right = best.network(data.test[0]).argmax(1) == data.test[1]
    assert torch.equal(right, best.hits[0]) and best.tests[0] == right.float().mean()
    assert "macs=0.4x" in str(result) and "a choice per layer" in result.report.conclusion
    with pytest.raises(canvas.CanvasError, match="the fit had no budget"):
        result.best("macs=0.9x")
    # One worker, in one go: the same.  A study that is done: nothing is done again.
    alone = canvas.fit(network, data, say=print, workers=1, **asked)
    lines = []
    again = canvas.fit(network, data, say=lines.append, workers=2, out=tmp_path, **asked)
    for other in (alone, again):
        assert torch.equal(*(r.best().network(data.test[0][:5]) for r in (result, other)))
        assert other.report.conclusion == result.report.conclusion
    assert not [line for line in lines if "fitting" in line or "tuning" in line or "final" in line]
    with pytest.raises(canvas.CanvasError, match="--epochs 2 instead of 1"):
        canvas.fit(network, data, say=print, out=tmp_path, **{**asked, "epochs": 2})
    with torch.no_grad():
        copy = Small()
        copy.load_state_dict(network.state_dict())
        copy.head.weight.mul_(1.5)
    with pytest.raises(canvas.CanvasError, match="the code of the model has changed"):
        canvas.fit(copy, data, say=print, out=tmp_path, **asked)


class Killed(BaseException):
    pass


def killed_at(network, data, folder, asked, stage, count):
    """A fit that ends like a killed one when a stage has recorded so many rows."""
    original, left = getattr(Study, stage), [count]

    def record(self, *words, **more):
        value = original(self, *words, **more)
        left[0] -= 1
        if not left[0]:
            raise Killed
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Study, stage, record)
        with pytest.raises(Killed):
            canvas.fit(network, data, say=print, out=folder, **asked)


# The stage at which a fit is killed, and how many rows of it are there; one fit in each stage.
STAGES = [("record_screened", 2), ("record_fitted", 5), ("add_networks", 1), ("tuned", 1),
          ("final", 4)]  # fmt: skip
ALONE = [*STAGES, ("record_fitted", 60), ("add_networks", 2), ("tuned", 3)]
KILLED = [
    pytest.param(STAGES, id="every stage"),
    *(pytest.param([one], id=f"{one[0]}-{one[1]}", marks=pytest.mark.nightly) for one in ALONE),
]


@pytest.fixture(scope="module")
def whole(network, data, short):
    asked = {
        "budget": "macs=0.4x", "epochs": 1, "longer": 1, "latency": "none", "draws": 3,
        "final_seeds": 2, "workers": 2, "policy": "spatial",
    }  # fmt: skip
    return asked, canvas.fit(network, data, say=print, **asked)


@pytest.mark.parametrize("stages", KILLED)
def test_a_killed_fit_goes_on_with_every_row(network, data, tmp_path, whole, stages):
    asked, expected = whole
    for stage, count in stages:
        killed_at(network, data, tmp_path, asked, stage, count)
    with Study.read(tmp_path) as study:
        before = [
            study.screened(),
            study.fitted_items(),
            [r for r in study.candidates() if r.weights],
        ]
    found = canvas.fit(network, data, say=print, out=tmp_path, **asked)
    assert found.report.conclusion == expected.report.conclusion
    images = data.test[0][:9]
    for one, other in zip(found.candidates, expected.candidates, strict=True):
        assert (one.name, one.choice, one.tests) == (other.name, other.choice, other.tests)
        assert torch.equal(one.network(images), other.network(images))
    with Study.read(tmp_path) as study:
        items = study.fitted_items()
        assert all(row in study.screened() for row in before[0])
        assert all(row in items for row in before[1])
        assert len({(i.layer, i.operator, i.steps, i.seed) for i in items}) == len(items)
        after = {row.id: row.weights for row in study.candidates()}
        assert stage != "final" or all(after[row.id] == row.weights for row in before[2])


@pytest.mark.nightly
def test_a_fit_of_another_sampler_draws_no_more(network, data, tmp_path, whole):
    """With all kernels screened it goes on to the same end; else it says that it cannot."""
    asked, expected = whole
    for stage, count in (("record_fitted", 5), ("record_screened", 2)):
        folder = tmp_path / stage
        killed_at(network, data, folder, asked, stage, count)
        with sqlite3.connect(folder / "study.db") as database:
            database.execute("UPDATE session SET versions = json_remove(versions, '$.sampler')")
        database.close()
    found = canvas.fit(network, data, say=print, out=tmp_path / "record_fitted", **asked)
    assert found.report.conclusion == expected.report.conclusion
    with pytest.raises(canvas.CanvasError, match=r"version 1 of the sampler.* of 3 kernels are"):
        canvas.fit(network, data, say=print, out=folder, **asked)


def test_weights_that_are_gone_or_changed_are_computed_again(network, data, tmp_path, whole):
    asked, expected = whole
    canvas.fit(network, data, say=print, out=tmp_path, **{**asked, "final_seeds": 1})
    kept = sorted((tmp_path / "weights").iterdir())
    for at, path in enumerate(kept):
        if at % 3 == 0:
            path.unlink()
        elif at % 3 == 1:
            path.write_bytes(path.read_bytes()[:-1] + b"x")
    found = canvas.fit(network, data, say=print, out=tmp_path, **asked)
    tests = {one.name: one.tests for one in found.candidates}
    for one in expected.candidates:
        assert tests.get(one.name, one.tests) == one.tests


def test_a_child_that_is_killed_costs_its_job_alone():
    def job(number):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number

    found = dict(run_forked(job, range(6), 2, lost=lambda why: why))
    assert "SIGKILL (out of memory?)" in found.pop(2)
    assert found == {0: 0, 1: 1, 3: 9, 4: 16, 5: 25}
    assert dict(run_forked(job, [0, 1], 2, until=time.monotonic() - 1)) == {}

    def refused(number):
        raise canvas.CanvasError(f"no {number}")

    with pytest.raises(canvas.CanvasError, match="no 7"):
        list(run_forked(refused, [7], 1))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(run_forked(lambda n: 1 // n, [0], 1))


@pytest.mark.parametrize("overhead", [pytest.param(0.0, marks=pytest.mark.nightly), 0.5])
def test_whole_networks_keep_to_a_budget_of_latency(network, data, short, monkeypatch, overhead):
    """Time is MACs here; a replaced network takes `overhead` of the teacher's time more than the
    sum of its layers, so that the layers must get less.
    """
    whole = cost(network, data.shape)[0]

    def seconds_of(program):
        return json.loads(_core.count_program(program))["flops"] / 2e9

    def measured(unchanged, own, image):
        if own is None:
            return {"native": Latency(whole / 1e6, 0.0, 1.0, "native", 0.0)}
        share = cost(next(iter(own.values())), data.shape)[0] / whole
        return {"native": Latency(1.0, 0.0, 1 / (share + overhead), "native", 0.0)}

    monkeypatch.setattr(item_table, "seconds_of", seconds_of)
    monkeypatch.setattr(job_runner, "seconds_of", seconds_of)
    monkeypatch.setattr(fit_jobs, "measure", measured)
    monkeypatch.setattr(fit_jobs, "native_code", lambda network, example: network)
    said = []
    found = canvas.fit(
        network, data, budget="latency=0.7x", draws=0, epochs=1, longer=1, final_seeds=1,
        latency="native", policy="spatial", workers=1, say=said.append,
    )  # fmt: skip
    chosen = [one for one in found.candidates if one.budget and one.kind != fit.SINGLE]
    shares = [one.macs / whole + overhead for one in chosen]
    assert chosen and min(shares) <= 0.72 and all(share <= 0.76 for share in shares)
    assert any("layers get less" in line for line in said) == bool(overhead)


def test_the_modes_of_the_network_stay(network, data, few):
    copy = Small()
    copy.load_state_dict(network.state_dict())
    copy.train()
    copy.norm.eval()
    copy.requires_grad_(False)
    canvas.fit(
        copy, data, budget="macs=0.5x", draws=0, epochs=1, longer=1, latency="none",
        policy="spatial", final_seeds=1,
        say=print,
    )  # fmt: skip
    assert copy.training and not copy.norm.training
    assert not any(p.requires_grad for p in copy.parameters())


@pytest.mark.parametrize(("took", "ends"), [(0, 40), (10, 40), (40, 60), (70, 80)])
def test_a_slow_teacher_leaves_each_stage_its_share_of_the_rest(took, ends):
    """Of 100 seconds, in a run that began at 1000: a stage may begin work for a third of what a
    teacher leaves after its 10 %.
    """
    run = object.__new__(fit_run.FitRun)
    run.options, run.begun, run.teacher_took = {"time_limit": 100}, 1000.0, float(took)
    share = fit_run.TEACHER_ENDS + (1 - fit_run.TEACHER_ENDS) / 3
    assert run.until(share) == pytest.approx(1000 + ends)
    assert run.until(1.0) == pytest.approx(1100)
    run.options = {"time_limit": None}
    assert run.until(share) == math.inf


def test_a_time_limit_ends_the_training_of_a_teacher(tmp_path, capsys):
    """After an epoch, with one message; the same command goes on with the epochs that are kept."""
    words = ["fit", "--model", "resnet8", "--width", "2", "--data", "digits", "--images", "200",
             "--budget", "macs=0.5x", "--draws", "0", "--latency", "none", "--workers", "1",
             "--teacher-epochs", "400", "--progress", "lines", "--out", str(tmp_path)]  # fmt: skip
    ended = []
    for _ in range(2):
        assert main([*words, "--time-limit", "1s"]) == 1
        told = capsys.readouterr().err
        found = re.search(r"training of the teacher after (\d+) of 400 epochs; the same", told)
        assert found, told
        ended.append(int(found[1]))
    assert 0 < ended[0] < ended[1] < 400


def test_too_little_time_is_one_message(network, data):
    with pytest.raises(canvas.NoSolution, match="give the same command more time"):
        canvas.fit(network, data, budget="macs=0.1x", latency="none", time_limit=0.001, say=print)
