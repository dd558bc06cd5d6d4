"""Searches of other tasks than classification, with loaders, modules and functions as they are: in
children where all has a name, else in this process.
"""

import json
import math
import sys

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import canvas  # noqa: E402
from canvas.imports import find_by_name, give, is_given, name_of, stored_name  # noqa: E402
from canvas.nn.latency import COMPILED, EAGER, NATIVE  # noqa: E402
from canvas.study import Study  # noqa: E402
from canvas.tasks import BUILT_IN  # noqa: E402
from canvas.workers.in_process import InProcess  # noqa: E402

OWN = """
import torch
from torch import nn
import canvas

def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1))

def batches(seed, count):
    generator = torch.Generator().manual_seed(seed)
    images = [torch.randn(32, 1, 8, 8, generator=generator) for _ in range(count)]
    return [(x, 30 * x.mean(dim=(1, 2, 3))) for x in images]

def data():
    return batches(1, 6), batches(2, 3), batches(3, 3)

def loss(model, batch):
    return nn.functional.l1_loss(model(batch[0])[:, 0], batch[1])

def error(model, loader):
    pairs = [(model(x)[:, 0], y) for x, y in loader]
    return torch.cat([(a - b).abs() for a, b in pairs]).mean()

def distance(outputs, teacher):
    return nn.functional.mse_loss(outputs, teacher)

class Both(nn.Module):
    def __init__(self):
        super().__init__()
        self.kinds = nn.Embedding(3, 8)
        self.first, self.second = (nn.Conv2d(i, 8, 3, padding=1) for i in (1, 8))
        self.third, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 1)

    def forward(self, image, kind):
        x = torch.relu(self.first(image)) + self.kinds(kind)[:, :, None, None]
        x = torch.relu(self.third(torch.relu(self.second(x))))
        return {"heat": self.head(x.mean(dim=(2, 3)))[:, 0], "features": x}

class Lines(nn.Module):
    # Series [N, 1, 64] that the network folds into images itself.
    def __init__(self):
        super().__init__()
        self.both = Both()

    def forward(self, series):
        return self.both(series.reshape(-1, 1, 8, 8), (series[:, 0, 0] > 0).long())

def both():
    return Both()

def one_dimensional():
    return Lines()

def several(made):
    return tuple([(made(x), y) for x, y in part] for part in data())

def pairs():
    return several(lambda x: (x, (x[:, 0, 0, 0] > 0).long()))

def pairs_named():
    return several(lambda x: {"kind": (x[:, 0, 0, 0] > 0).long(), "image": x})

def series():
    return several(lambda x: x.reshape(-1, 1, 64))

def ahead(model, batch):
    if isinstance(batch[0], dict):
        return model(**batch[0])["heat"]
    return model(*batch[0])["heat"] if isinstance(batch[0], tuple) else model(batch[0])["heat"]

TWO = canvas.Task(
    lambda model, batch: nn.functional.l1_loss(ahead(model, batch), batch[1]),
    lambda model, loader: torch.cat([(ahead(model, b) - b[1]).abs() for b in loader]).mean(),
    distance, False, "K", "two", metric_name="error")
HEAT = canvas.Task(loss, error, distance, False, "K", "heat", metric_name="error")
"""

ASKED = {
    "budget": "macs=0.5x",
    "trials": 3,
    "epochs": 2,
    "grace": 1,
    "seed": 1,
    "final_epochs": 1,
    "final_seeds": 3,
    "finalists": 1,
    "compile": "no",
    "memory_format": "contiguous",
    "latency": "torch",
    "pretests": "no",
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The module of a user, importable by name here and in children."""
    (tmp_path / "owncode.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "owncode", raising=False)
    import owncode

    yield owncode
    sys.modules.pop("owncode", None)


def told(folder):
    """What came of the candidates, without times."""
    with Study.read(folder) as study:
        rows = study.candidates()
        return [(r.name, r.status, r.val_accuracy, r.tests, study.curve(r.id)) for r in rows]


def test_objects_in_this_process_come_to_what_children_come_to(own, tmp_path):
    lines, asked = [], {**ASKED, "pretests": "yes"}
    by_name = canvas.search(
        "owncode:build", "owncode:data", task="owncode:HEAT", **asked, workers=2,
        out=tmp_path / "named", say=lines.append,
    )  # fmt: skip
    assert not any("in this process" in line for line in lines)
    here = canvas.search(
        lambda: own.build(), own.data(), task=own.HEAT, **asked, out=tmp_path / "here",
        say=lines.append,
    )  # fmt: skip
    assert any("the model and the task and the data cannot be imported" in line for line in lines)
    assert told(tmp_path / "named") == told(tmp_path / "here")
    assert by_name.conclusion == here.conclusion
    words = str(here)
    assert "error" in words and " K" in words and "%" not in here.conclusion.split("95 %")[0]
    # less is better
    finds = [row for row in here.rows if row.kind == "find" and row.status == "done"]
    chosen = here.chosen[0]
    most = max(row.val_seeds for row in finds)
    best = min(row.val_accuracy for row in finds if row.val_seeds == most)
    assert chosen.val_accuracy == best
    with Study.read(tmp_path / "here") as study:
        assert study.task() == "heat" and study.metric.unit == "K"
        assert study.options()["model"].startswith("@") and study.options()["task"] == "@heat"
    csv = (tmp_path / "here" / "pareto.csv").read_text()
    assert str(chosen.val_accuracy)[:6] in csv


def test_a_module_starts_from_its_weights_and_a_search_goes_on_with_the_same_module(own, tmp_path):
    torch.manual_seed(5)
    network, data = own.build(), own.data()
    before = [weight.clone() for weight in network.parameters()]
    asked = {**ASKED, "finalists": 0, "out": tmp_path, "say": lambda _: None, "task": own.HEAT}
    stops = []

    def stop(study, candidate):
        stops.append(candidate.name)
        if len(stops) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        canvas.search(network, data, **asked, callbacks=[stop])
    first = told(tmp_path)
    report = canvas.search(network, data, **asked)
    assert all(torch.equal(a, b) for a, b in zip(before, network.parameters()))
    curves = {row[0]: row[4] for row in told(tmp_path)}
    assert all(curves[row[0]] == row[4] for row in first if row[1] == "done") and report.chosen
    with pytest.raises(canvas.CanvasError, match="the code of the model has changed"):
        canvas.search(own.build(), data, **asked)
    other = canvas.Task(own.loss, own.error, own.distance, False, "m", "heat")
    with pytest.raises(canvas.CanvasError, match="another task or metric"):
        canvas.search(network, data, **{**asked, "task": other})
    with pytest.raises(canvas.CanvasError, match="other images"):
        canvas.search(network, own.batches(8, 3) and (data[0], data[2], data[1]), **asked)


def test_torch_is_as_it_was_after_a_search_in_this_process(own, tmp_path):
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    asked = {**ASKED, "trials": 1, "epochs": 1, "finalists": 0, "say": lambda _: None}
    canvas.search(own.build(), own.data(), task=own.HEAT, out=tmp_path, **asked)
    assert torch.get_num_threads() == threads
    assert not torch.are_deterministic_algorithms_enabled()
    assert len(state) == len(torch.get_rng_state())


@pytest.mark.nightly
def test_images_in_memory_serve_other_tasks_of_children(own, tmp_path):
    """An own metric of a classification, on data by name."""
    (tmp_path / "topfive.py").write_text(
        "import canvas, torch\n"
        "from canvas.tasks.classification import CLASSIFICATION as C\n"
        "def top(model, batches):\n"
        "    right = [(model(x).topk(5)[1] == y[:, None]).any(1) for x, y in batches]\n"
        "    return torch.cat(right).float().mean()\n"
        "TOP = canvas.Task(C.loss, top, C.divergence, name='top five')\n"
    )
    report = canvas.search(
        "resnet8", "digits", task="topfive:TOP", images=200, width=4, **{**ASKED, "trials": 1},
        out=tmp_path / "s", say=lambda _: None,
    )  # fmt: skip
    assert report.chosen and "top five" in str(report) and "%" in str(report)
    rows = told(tmp_path / "s")
    assert all(0 <= row[2] <= 1 for row in rows if row[1] == "done")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"task": "unlabelled"}, "has no loss or no metric"),
        ({"task": 3}, "task is a canvas.Task or a name"),
        ({"model": 3}, "model is a name, a torch.nn.Module or a callable"),
        ({"model": lambda: 3}, "returned an object of type int"),
        ({"model": lambda: 1 / 0}, "cannot be built: ZeroDivisionError"),
        ({"data": "owncode:nothing"}, "has no 'nothing'"),
        ({"data": "owncode:loss"}, "data 'owncode:loss' cannot be made"),
        ({"crop": 1}, "loaders give their examples complete: leave crop out"),
        ({"width": 4}, "takes no width"),
    ],
)
def test_bad_input_is_one_message(own, tmp_path, words, message):
    asked = {"model": own.build, "data": own.data(), "task": own.HEAT, **ASKED, **words}
    with pytest.raises(canvas.CanvasError, match=message):
        canvas.search(**asked, out=tmp_path / "s", say=lambda _: None)
    assert not (tmp_path / "s").exists()


def test_a_fit_takes_its_data_by_name(own, tmp_path, monkeypatch):
    """As the command does: loaders of another task, and a classification that streams."""
    from canvas.fit_options import read_fit_options
    from canvas.fitting.fit_model import source_named

    (tmp_path / "streams.py").write_text(
        "import canvas, owncode\n"
        "def pairs(seed):\n"
        "    return [(x, (y > 0).long()) for x, y in owncode.batches(seed, 3)]\n"
        "def stream():\n"
        "    return canvas.stream(pairs(1), pairs(2), pairs(3))\n"
        "def broken():\n"
        "    return 1 / 0\n"
    )
    for name, task in (("owncode:data", own.HEAT), ("streams:stream", BUILT_IN["classification"])):
        options = read_fit_options({"model": "owncode:build", "data": name, "latency": "none",
                                    "budget": "macs=0.5x"})  # fmt: skip
        source = source_named(options, task)
        assert source.steps(64) in (3, 6) and source.count("test") == 96
        with pytest.raises(canvas.CanvasError, match="leave crop out"):
            source_named({**options, "crop": 1}, task)
    with pytest.raises(canvas.CanvasError, match="cannot be made: ZeroDivisionError"):
        source_named({**options, "data": "streams:broken"}, task)


@pytest.mark.parametrize(
    "form",
    [
        *(pytest.param(form, marks=pytest.mark.nightly) for form in ("named", "by place")),
        "no image",
    ],
)
def test_networks_of_several_inputs(own, tmp_path, form):
    """Two inputs of other types, trained and timed in children, in every engine."""
    words = {"named": ("pairs_named", "both"), "by place": ("pairs", "both"),
             "no image": ("series", "one_dimensional")}  # fmt: skip
    data, network = words[form]
    report = canvas.search(
        f"owncode:{network}", f"owncode:{data}", task="owncode:TWO", out=tmp_path,
        **{**ASKED, "latency": "native", "compile": "unchanged", "policy": "spatial"},
    )  # fmt: skip
    with Study.read(tmp_path) as study:
        rows = study.candidates()
        timed = {t.engine: t.latency_ms for t in study.timings(rows[0].id)}
    done = [row for row in rows if row.status == "done"]
    assert report.picked is not None and any(row.kind == "find" for row in done)
    assert all(timed[engine] for engine in (NATIVE, EAGER, COMPILED)), timed
    assert not [row.reason for row in rows if row.status == "failed"]


def test_a_metric_that_fails_later_fails_its_candidate_alone(own, tmp_path):
    calls = []

    def error(model, loader):
        calls.append(1)
        names = {type(module).__name__ for module in model.modules()}
        if "Placeholder" in names and len(calls) > 9:
            return math.nan
        return own.error(model, loader)

    task = canvas.Task(own.loss, error, own.distance, False, "K", "heat")
    canvas.search(
        own.build(), own.data(), task=task, out=tmp_path, say=lambda _: None,
        **{**ASKED, "finalists": 0},
    )  # fmt: skip
    with Study.read(tmp_path) as study:
        failed = study.select(status="failed")
        assert failed and all("the metric of task 'heat' is nan" in row.reason for row in failed)


def test_studies_of_other_tasks_are_not_replayed(own, tmp_path):
    asked = {**ASKED, "trials": 1, "finalists": 0, "say": lambda _: None}
    canvas.search("owncode:build", "owncode:data", task="owncode:HEAT", out=tmp_path, **asked)
    with pytest.raises(canvas.CanvasError, match="only trainings of classifications"):
        canvas.replay(tmp_path, "baseline", model="owncode:build")


# ---- names --------------------------------------------------------------------------------------


def test_names_of_objects(own):
    assert name_of(own.build) == "owncode:build" and name_of(lambda: 1) is None
    assert name_of(nn.ReLU) == "torch.nn.modules.activation:ReLU" and name_of(nn.ReLU()) is None
    name, other = give(3, "a b\n" * 40), give(4, "a b\n" * 40)
    assert find_by_name(other, "model") == 4 and stored_name(name) == stored_name(other)
    assert (
        is_given(name)
        and name.isprintable()
        and len(name) < 50
        and find_by_name(name, "model") == 3
    )
    with pytest.raises(canvas.CanvasError, match="was an object that a caller gave"):
        find_by_name("@nothing", "model")


# ---- the executor of this process ---------------------------------------------------------------


def job_that(monkeypatch, work):
    from canvas.workers import worker

    monkeypatch.setitem(worker.KINDS, "own", work)
    return {"kind": "own"}


def test_a_job_in_this_process_is_answered_stopped_and_fails_alone(monkeypatch):
    def asks(job, tell, answers):
        tell("epoch", number=0)
        tell("done", go=json.loads(answers.readline())["go"])

    def endless(job, tell, answers):
        tell("epoch", number=0)
        while True:
            sum(range(1000))

    def broken(job, tell, answers):
        raise ValueError("odd")

    pool = InProcess()
    for go in (True, False):
        pool.start(1, job_that(monkeypatch, asks), 0)
        assert pool.busy() == [1] and not pool.has_room()
        assert pool.wait(5) == [(1, {"event": "epoch", "number": 0})]
        pool.answer(1, go)
        assert pool.wait(5) == [(1, {"event": "done", "go": go})] and pool.has_room()
    pool.start(2, job_that(monkeypatch, endless), 0)
    assert pool.wait(5)[0][0] == 2
    thread = pool.thread
    pool.stop(2)
    assert not thread.is_alive() and pool.has_room() and pool.wait(0.01) == []
    pool.start(3, job_that(monkeypatch, broken), 0)
    ((job, message),) = pool.wait(5)
    assert (job, message["event"], message["reason"]) == (3, "failed", "odd")
    with pool:
        pool.start(4, job_that(monkeypatch, endless), 0)
    assert pool.has_room()


def test_built_in_tasks_have_names():
    assert {task.name for task in BUILT_IN.values()} == set(BUILT_IN)
