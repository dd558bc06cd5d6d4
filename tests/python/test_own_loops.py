"""Loops of the user's in a search, and searches by ask and tell."""

import math
import sqlite3

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import canvas  # noqa: E402
from canvas import _core  # noqa: E402
from canvas.study import Study  # noqa: E402


def build():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 1),
    )  # fmt: skip


def batches(seed, count=2):
    generator = torch.Generator().manual_seed(seed)
    images = [torch.randn(16, 1, 6, 6, generator=generator) for _ in range(count)]
    return [(x, 10 * x.mean(dim=(1, 2, 3))) for x in images]


def train(model, context):
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for epoch in range(context.epochs):
        for x, y in batches(context.seed % 1000 + epoch):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x)[:, 0], y)
            loss.backward()
            optimizer.step()
        (context.folder / "epoch").write_text(str(epoch))
        yield loss.item()


def score(model):
    with torch.no_grad():
        return math.sqrt(sum(nn.functional.mse_loss(model(x)[:, 0], y) for x, y in batches(99)))


EXAMPLE = torch.zeros(1, 1, 6, 6)
TASK = canvas.Task(None, None, None, higher_is_better=False, unit="m", name="depth")
ASKED = {
    "example_input": EXAMPLE, "budget": "macs=0.6x", "trials": 3, "epochs": 2, "grace": 1,
    "compile": "no", "latency": "torch", "say": lambda line: None,
}  # fmt: skip


def told(folder):
    with Study.read(folder) as study:
        return [(r.name, r.status, r.val_accuracy) for r in study.candidates()]


def test_a_search_with_a_loop_of_ones_own(tmp_path):
    report = canvas.search(
        build(), train=train, score=score, task=TASK, out=tmp_path / "a", **ASKED
    )
    assert " m" in str(report) and "No claim, no finals" in report.conclusion
    assert "%" not in str(report).split("Compiling")[0].split("interquartile")[0]
    done = [row for row in report.rows if row.status == "done"]
    assert min(row.val_accuracy for row in done if row.kind == "find") == (
        report.chosen[0].val_accuracy
    )
    again = canvas.search(
        build, train=train, score=score, task=TASK, out=tmp_path / "b", **{**ASKED, "workers": 2}
    )  # functions with names: in children
    assert again.chosen
    folders = list((tmp_path / "a" / "loops").iterdir())
    assert len(folders) >= len(done) and all((f / "epoch").exists() for f in folders)


def reports(model, context):
    for _ in range(context.epochs):
        context.report(0.75)
        yield


def short(model, context):
    yield 1.0


def endless(model, context):
    while True:
        yield 1.0


def broken(model, context):
    yield 1.0
    raise OSError("the data are gone")


@pytest.mark.parametrize(
    ("train", "score", "words"),
    [
        (short, score, "the loop of train ended after 1 of 2 epochs"),
        (broken, score, "the loop of train failed: OSError: the data are gone"),
        (lambda model, context: 3, score, "train returned 3: it must be a generator"),
        (endless, lambda model: math.nan, "the metric of task 'depth' is nan"),
        (endless, lambda model: "good", "returned 'good': it must return a number"),
        (endless, lambda model: 1 / 0, "failed: ZeroDivisionError"),
    ],
)
def test_what_a_loop_does_wrong(tmp_path, train, score, words):
    with pytest.raises(canvas.CanvasError, match=f"unchanged network cannot be trained.*{words}"):
        canvas.search(build(), train=train, score=score, task=TASK, out=tmp_path, **ASKED)


def test_an_endless_loop_that_reports_ends_with_its_epochs(tmp_path):
    shares = canvas.Task(None, None, name="asked")
    report = canvas.search(
        build(), train=reports, score=lambda model: 1 / 0, task=shares, out=tmp_path, **ASKED
    )
    assert "75.0 %" in str(report)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"score": None}, "a loop of yours needs train and score: score is missing"),
        ({"train": 3}, "train is a function, not 3"),
        ({"train": "nowhere_at_all:f"}, "there is no module"),
        ({"example_input": None}, "needs example_input=, what the network takes"),
        ({"example_input": [1]}, "example_input is what the network takes: a tensor"),
        ({"data": "digits"}, "leave data out"),
        ({"finalists": 1}, "give finalists=0"),
        ({"train": None, "score": None}, "a search needs data, or train and score"),
    ],
)
def test_bad_input_is_one_message(tmp_path, words, message):
    asked = {"model": build(), "train": train, "score": score, "task": TASK, **ASKED, **words}
    with pytest.raises(canvas.CanvasError, match=message):
        canvas.search(out=tmp_path / "s", **asked)
    assert not (tmp_path / "s").exists()


# ---- ask and tell -------------------------------------------------------------------------------


def value_of(study, network):
    """A score that follows from the name alone."""
    return 1 + hash_of(study.name(network)) % 100 / 10


def hash_of(name):
    return sum(ord(c) * (i + 7) for i, c in enumerate(name))


def asked_study(folder, trials=6, **words):
    torch.manual_seed(0)
    return canvas.create_study(
        build(), EXAMPLE, budget="macs=0.6x", trials=trials, direction="minimize", unit="m",
        metric="depth error", out=folder, say=lambda line: None, **words,
    )  # fmt: skip


def run(study, most=10**9):
    names = []
    while len(names) < most and (network := study.ask()) is not None:
        names.append(study.name(network))
        study.tell(network, value_of(study, network))
    return names


def test_ask_and_tell(tmp_path):
    with asked_study(tmp_path / "whole") as study:
        names = run(study)
        report = study.report()
    assert names[0] == "baseline" and "1x1" in names
    finds = [name for name in names if name.isdigit()]
    assert len(finds) == 6
    words = str(report)
    assert "depth error" in words and " m" in words and "x +- " in words
    values = {name: 1 + hash_of(name) % 100 / 10 for name in finds}
    assert report.chosen[0].name == min(values, key=lambda name: values[name])
    # In pieces, and with what was asked and not told: the same.
    for most in (1, 4, 3):
        with asked_study(tmp_path / "pieces") as study:
            run(study, most)
            study.ask()
    with asked_study(tmp_path / "pieces") as study:
        run(study)
        assert study.ask() is None
        assert study.report(timed=False).conclusion == report.conclusion
    assert told(tmp_path / "whole") == told(tmp_path / "pieces")


def begun_before_versions(folder):
    """The study as a canvas wrote it whose sampler had no version."""
    with sqlite3.connect(folder / "study.db") as database:
        database.execute("UPDATE session SET versions = json_remove(versions, '$.sampler')")
    database.close()


def test_a_study_of_another_sampler_draws_no_more(tmp_path):
    with asked_study(tmp_path) as study:
        names = run(study)
        assert study._study.sampler() == _core.SAMPLER_VERSION
    begun_before_versions(tmp_path)
    with asked_study(tmp_path) as study:  # it needs no more
        assert study._study.sampler() == 1 and run(study) == []
        assert study.report(timed=False).chosen
    lines = ["version 1 of the sampler", "draws other kernels: give --trials 6 to go on"]
    for line in lines:
        with pytest.raises(canvas.CanvasError, match=line):
            asked_study(tmp_path, trials=7)
    with asked_study(tmp_path) as study:
        assert {row.name for row in study._study.candidates()} == set(names)
        # where a rejected find makes room for another
        assert study._items._ends([]) and "no more are drawn" in study._run.ended


def test_a_study_of_another_sampler_without_finds_starts_over(tmp_path):
    with asked_study(tmp_path) as study:
        run(study, 2)
    begun_before_versions(tmp_path)
    with pytest.raises(canvas.CanvasError, match=r"draws other kernels: start over \(fresh\)"):
        asked_study(tmp_path)


class Mixed(nn.Module):
    """An image and the number of its kind, by name."""

    def __init__(self):
        super().__init__()
        self.kinds, self.body = nn.Embedding(3, 8), build()

    def forward(self, image, kind):
        return {"depth": self.body(image)[:, 0] + self.kinds(kind).sum(1)}


INPUTS = {"kind": torch.tensor([2]), "image": EXAMPLE}


def test_networks_of_several_inputs(tmp_path):
    words = {"budget": "macs=0.6x", "trials": 2, "say": lambda line: None}
    with canvas.create_study(Mixed(), INPUTS, out=tmp_path / "asked", **words) as study:
        while (network := study.ask()) is not None:
            study.tell(network, float(network(**INPUTS)["depth"].mean()))
        assert "x +- " in str(study.report())

    def epochs(model, context):
        yield float(model(**INPUTS)["depth"].mean())

    report = canvas.search(
        Mixed(), train=epochs, score=lambda model: 1.0, task=TASK, out=tmp_path / "loop",
        finalists=0, **{**ASKED, "example_input": INPUTS, "epochs": 1},
    )  # fmt: skip
    assert [row for row in told(tmp_path / "loop") if row[1] == "done"] and "x +- " in str(report)


def test_several_networks_may_be_asked_before_any_is_told(tmp_path):
    with asked_study(tmp_path) as study:
        asked = []
        with pytest.raises(canvas.CanvasError, match="tell those of baseline"):
            while True:
                asked.append(study.ask())
        for network in reversed(asked):
            study.tell(network, value_of(study, network))
        first, second = study.ask(), study.ask()
        assert study.name(first) != study.name(second)
        study.tell(second, None, failed="it diverged")
        study.tell(first, torch.tensor(2.5))
        with pytest.raises(canvas.CanvasError, match="waits for its score"):
            study.tell(first, 1.0)
    assert ("failed" in {row[1] for row in told(tmp_path)}) and 2.5 in {
        row[2] for row in told(tmp_path)
    }


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (math.nan, "a score is a finite number, not nan"),
        ("high", "a score is a number, not 'high'"),
        (torch.zeros(3), "a score is a number"),
    ],
)
def test_scores_that_are_none(tmp_path, score, message):
    with asked_study(tmp_path) as study:
        network = study.ask()
        with pytest.raises(canvas.CanvasError, match=message):
            study.tell(network, score)
        with pytest.raises(canvas.CanvasError, match="is no network of this study"):
            study.tell(nn.Identity(), 1.0)
        study.tell(network, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"direction": "up"}, "direction is maximize or minimize, not 'up'"),
        ({"unit": "a\nb"}, "the unit of a metric"),
        ({"example_input": 3}, "example_input is what the network takes: a tensor"),
        ({"example_input": torch.zeros(0, 1, 6, 6)}, "example_input is what the network takes"),
        ({"epochs": 3}, "a study that you ask has no epochs"),
        ({"budget": "macs=0.000001x"}, "none of .* fits"),
        ({"colour": 3}, "no option 'colour'"),
        ({"model": "resnet9"}, "no model is called"),
        ({"model": 3}, "model is a name, a torch.nn.Module or a callable"),
    ],
)
def test_studies_that_cannot_be(tmp_path, words, message):
    asked = {"model": build(), "example_input": EXAMPLE, "out": tmp_path / "s", **words}
    with pytest.raises(canvas.CanvasError, match=message):
        canvas.create_study(**asked)
    assert not (tmp_path / "s").exists()


def test_a_study_is_open_once_and_goes_on_with_its_own_question(tmp_path):
    busy = pytest.raises(canvas.CanvasError, match="another search is running")
    with asked_study(tmp_path), busy:
        asked_study(tmp_path)
    with pytest.raises(canvas.CanvasError, match="another task or metric"):
        canvas.create_study(build(), EXAMPLE, budget="macs=0.6x", trials=6, out=tmp_path)


# ---- what outsiders found -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, BaseException])
@pytest.mark.parametrize("where", ["train", "score"])
def test_whatever_a_loop_raises_ends_its_training_alone(tmp_path, kind, where):
    def bad_train(model, context):
        yield 1.0
        raise kind

    def bad_score(model):
        raise kind

    functions = {"train": endless, "score": score, where: bad_train}
    if where == "score":
        functions["score"] = bad_score
    with pytest.raises(canvas.CanvasError, match=f"cannot be trained.*{kind.__name__}"):
        canvas.search(build(), **functions, task=TASK, out=tmp_path, **ASKED)


def test_objects_with_one_label_are_two(tmp_path):
    wide = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), *list(build())[2:])
    wide[2] = nn.Conv2d(16, 16, 3, padding=1)
    wide[-1] = nn.Linear(16, 1)
    with asked_study(tmp_path / "a") as a:
        b = canvas.create_study(
            wide, torch.zeros(1, 3, 6, 6), out=tmp_path / "b", say=lambda line: None
        )
        with b:
            assert a.ask()[0].in_channels == 1 and b.ask()[0].in_channels == 3
            assert a.ask()[0].in_channels == 1
    for name in ("train", "score", "Sequential", "data"):
        task = canvas.Task(None, None, higher_is_better=False, unit="m", name=name)
        report = canvas.search(
            build(), train=lambda m, c: train(m, c), score=lambda m: score(m), task=task,
            out=tmp_path / name, **{**ASKED, "trials": 1, "epochs": 1},
        )  # fmt: skip
        assert report.rows[0].status == "done" and "by your own code" in str(report)


def test_a_closed_study_is_closed(tmp_path):
    study = asked_study(tmp_path)
    network = study.ask()
    with pytest.raises(canvas.CanvasError, match="a score is a number"):
        study.tell(network, 10**400)
    with pytest.raises(canvas.CanvasError, match="a score is a finite number"):
        study.tell(network, 1e308)
    study.close()
    study.close()
    for call in (study.ask, study.report, lambda: study.tell(network, 1.0)):
        with pytest.raises(canvas.CanvasError, match="the study is closed"):
            call()
