"""Tasks other than classification: fits of each from end to end, metrics and divergences, and what
a user's own task, loader or metric can do wrong.
"""

import json
import math
import multiprocessing
import os
import random
import re
import tempfile
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, Subset, TensorDataset  # noqa: E402

import canvas  # noqa: E402
from canvas.data import Data  # noqa: E402
from canvas.data.streamed import Streamed, seeded, streamed  # noqa: E402
from canvas.fitting import fit_jobs, fit_run, item_table, menu, screen  # noqa: E402
from canvas.fitting.divergence import imitation  # noqa: E402
from canvas.inputs import Inputs, join  # noqa: E402
from canvas.metric import Metric  # noqa: E402
from canvas.study import Study  # noqa: E402
from canvas.tasks import (  # noqa: E402  # noqa: E402
    BUILT_IN,
    Task,
    load_task,
    multi_label,
    regression,
    segmentation,
)
from canvas.tasks.evaluate import evaluate, loss_of  # noqa: E402
from canvas.training.train import recompute_statistics  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="module", autouse=True)
def short():
    """Fits of few steps: what they come to does not matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_table, "SHORT", 4)
        patch.setattr(item_table, "LONG", 8)
        patch.setattr(screen, "STEPS", 4)
        patch.setattr(fit_run, "REFIT", 12)
        patch.setattr(menu, "SHARES", (0.5,))
        known = [
            one for one in menu.CONTROLS if one.name not in ("grouped", "spatially-separable")
        ]
        patch.setattr(menu, "CONTROLS", known)
        patch.setattr(fit_run, "KNOWN", known)
        patch.setattr(screen, "GOOD", 1.0)
        yield


class Body(nn.Module):
    """Two convolutions that can be replaced, and a head."""

    def __init__(self, head, inputs=1):
        super().__init__()
        self.stem = nn.Conv2d(inputs, 8, 3, padding=1)
        self.one = nn.Conv2d(8, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.two = nn.Conv2d(8, 8, 3, padding=1)
        self.head = head

    def features(self, x):
        x = torch.relu(self.norm(self.one(torch.relu(self.stem(x)))))
        return torch.relu(self.two(x))

    def forward(self, x):
        return self.head(self.features(x))


def pooled(outputs):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, outputs))


class Masks(Body):
    """Answers with a dict, as torchvision's networks do."""

    def __init__(self):
        super().__init__(nn.Conv2d(8, 3, 1))

    def forward(self, x):
        return {"out": self.head(self.features(x)), "aux": x.mean()}


class TwoInputs(Body):
    """An image and a number, by name; answers with a tuple."""

    def __init__(self):
        super().__init__(nn.Linear(9, 1))

    def forward(self, image, number):
        features = self.features(image).mean(dim=(2, 3))
        return self.head(torch.cat([features, number[:, None]], 1))[:, 0], features


def images(count, seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, 1, 8, 8, generator=generator)


def targets_of(name, x):
    """What can be learned of images x."""
    if name == "segmentation":
        masks = (x[:, 0] > 0).long() + (x[:, 0] > 1).long()
        masks[:, 0, 0] = 255
        return masks
    level = x[:, 0].mean(dim=(1, 2))
    if name == "regression":
        return 30 * level
    return torch.stack([level > 0, x[:, 0, :4].mean(dim=(1, 2)) > 0], 1).long()


NETWORKS = {
    "segmentation": Masks,
    "regression": lambda: Body(pooled(1)),
    "multi-label": lambda: Body(pooled(2)),
}


def splits(name):
    found = []
    for seed, count in ((1, 192), (2, 96), (3, 96)):
        x = images(count, seed)
        found.append(TensorDataset(x, targets_of(name, x)))
    return tuple(found)


def trained(task, network, batches, steps=40):
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(steps):
        for batch in batches:
            optimizer.zero_grad()
            loss_of(task, network, batch)[0].backward()
            optimizer.step()
    return network.eval()


def whole(dataset):
    return [dataset[:]]


ASKED = {"budget": "macs=0.6x", "epochs": 1, "longer": 1, "draws": 2, "workers": 2}


@pytest.mark.parametrize(
    "name",
    [
        "segmentation",
        *(pytest.param(n, marks=pytest.mark.nightly) for n in NETWORKS if n != "segmentation"),
    ],
)
def test_a_fit_of_each_task(name, tmp_path):
    task, data = BUILT_IN[name], splits(name)
    torch.manual_seed(0)
    network = trained(task, NETWORKS[name](), whole(data[0]))
    told = []
    asked = {**ASKED, "latency": "native", "out": tmp_path, "say": told.append}
    result = canvas.fit(network, data, task=name, **asked)
    metric, teacher = task.judged_by, result.teacher
    test = evaluate(task, network, whole(data[2]))
    assert teacher.test == pytest.approx(test, rel=1e-5) and teacher.hits is None
    best = result.best()
    assert len(best.tests) == 3 and best.tests[0] == pytest.approx(
        evaluate(task, best.network, whole(data[2])), rel=1e-5
    )
    assert best.merit == max(c.merit for c in result.candidates if c.budget and c.epochs == 1)
    assert best.speedup is not None and best.macs < teacher.macs
    words = str(result)
    assert metric.name in words and "test examples" in words and "accuracy" not in words
    assert metric.text(best.test) in words
    report = result.report
    assert report.picked is not None
    with Study.read(tmp_path) as study:
        assert study.task() == name and study.metric == metric
        final = next(iter(study.finals().values()))[0]
        assert final.hits == b"" and final.test == pytest.approx(test, rel=1e-5)
    with pytest.raises(canvas.CanvasError, match=r"--task \S+ instead of"):
        other = "regression" if name != "regression" else "multi-label"
        canvas.fit(NETWORKS[other](), splits(other), task=other, **asked)
    again = canvas.fit(network, data, task=name, **asked)
    assert again.report.conclusion == report.conclusion


def test_the_better_direction_decides(tmp_path):
    """With RMSE, less is better in choices, conclusion, front and the picked row."""
    metric = REGRESSION_METRIC
    task, data = BUILT_IN["regression"], splits("regression")
    network = trained(task, Body(pooled(1)), whole(data[0]))
    result = canvas.fit(
        network, data, task="regression", **ASKED, latency="none", out=tmp_path, say=lambda _: None
    )
    tuned = [c for c in result.candidates if c.budget]
    longest = max(c.epochs for c in tuned)
    assert result.best().validation == min(c.validation for c in tuned if c.epochs == longest)
    gain = metric.gain(result.best().test, result.teacher.test)
    side = "better than" if gain > 0 else "worse than"
    assert f"{metric.difference(abs(gain))} {side} the teacher" in result.report.conclusion
    rows = [row for row in result.report.rows if row.tests]
    assert result.report.picked.test_mean == min(row.test_mean for row in rows)
    canvas.plot_pareto(tmp_path, tmp_path / "front.svg", x="macs")
    drawn = (tmp_path / "front.svg").read_text()
    assert "test RMSE" in drawn and "%" not in drawn.split("</style>")[-1].split("RMSE")[0][-40:]


REGRESSION_METRIC = BUILT_IN["regression"].judged_by


def test_a_fit_without_labels(tmp_path):
    network = trained(BUILT_IN["multi-label"], Body(pooled(2)), whole(splits("multi-label")[0]))
    unlabelled = ([images(64, n) for n in range(3)], [images(96, 9)])
    told = []
    result = canvas.fit(
        network, unlabelled, task="unlabelled", **ASKED, out=tmp_path, say=told.append
        , latency="none",
    )  # fmt: skip
    assert any("has no metric" in line for line in told)
    best = result.best()
    assert math.isnan(best.validation) and best.tests == () and best.tuned_divergence > 0
    done = [c for c in result.candidates if c.budget]
    assert best.tuned_divergence == min(c.tuned_divergence for c in done)
    words = str(result)
    assert "the task has no metric" in words and "%" not in words.split("speed-up of")[0]
    assert result.report.picked is None
    rows = json.loads(json.dumps(canvas_rows(result)))
    assert all(row["val_accuracy"] is None for row in rows)


def canvas_rows(result):
    from canvas.reporting.report import pareto_rows

    return pareto_rows(result.report)


def own_loss(model, batch):
    return F.l1_loss(model(batch["image"], number=batch["number"])[0], batch["wanted"])


def own_metric(model, batches):
    errors = [
        (model(b["image"], b["number"])[0] - b["wanted"]).abs() for b in batches
    ]  # fmt: skip
    return torch.cat(errors).mean()  # a tensor


def own_divergence(outputs, teacher):
    return F.mse_loss(outputs[0], teacher[0]) + 0.1 * F.mse_loss(outputs[1], teacher[1])


OWN = Task(
    own_loss, own_metric, own_divergence, higher_is_better=False, unit="K", name="heat",
    metric_name="error", inputs=lambda batch: {n: batch[n] for n in ("image", "number")},
)  # fmt: skip


def heat(count, seed, batches):
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(batches):
        image, number = torch.randn(count, 1, 8, 8, generator=generator), torch.rand(count)
        found.append(
            {"image": image, "number": number, "wanted": image.mean(dim=(1, 2, 3)) + number}
        )
    return found


def test_an_own_task_with_named_inputs_and_several_outputs(tmp_path):
    data = (heat(64, 1, 3), heat(48, 2, 2), heat(48, 3, 2))
    network = trained(OWN, TwoInputs(), data[0], 20)
    result = canvas.fit(
        network, data, task=OWN, **ASKED, latency="native", out=tmp_path, say=lambda _: None
    )
    assert re.search(
        r"error [0-9.]+ K on the test examples, [0-9.e-]+ K (better|worse) than", str(result)
    )
    best = result.best()
    batch = data[2][0]
    outputs = best.network(batch["image"], batch["number"])
    assert outputs[0].shape == (48,) and best.speedup is not None
    error = float(own_metric(best.network, data[2]).detach())
    assert best.tests[0] == pytest.approx(error, rel=1e-5)


# ---- metrics and divergences --------------------------------------------------------------------


class Fixed(nn.Module):
    """Answers what it is given."""

    def forward(self, x):
        return x


def test_mean_iou_is_that_of_its_definition():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(6, 4, 5, 5, generator=generator)
    masks = torch.randint(0, 4, (6, 5, 5), generator=generator)
    masks[0] = 255
    masks[1, 0] = -1
    found = segmentation.mean_iou(Fixed(), [(scores[:2], masks[:2]), (scores[2:], masks[2:])])
    counted = (masks >= 0) & (masks != 255)
    answers = scores.argmax(1)
    ious = []
    for one in range(4):
        ours, theirs = (answers == one) & counted, (masks == one) & counted
        ious.append(int((ours & theirs).sum()) / int((ours | theirs).sum()))
    assert found == pytest.approx(sum(ious) / 4)


def test_average_precision_is_that_of_its_definition():
    generator = torch.Generator().manual_seed(0)
    for ties in (False, True):
        scores = torch.randn(40, generator=generator)
        if ties:
            scores = scores.round()
        wanted = torch.rand(40, generator=generator) < 0.3
        precisions = []
        for at in range(40):
            if wanted[at]:
                above = scores >= scores[at]
                precisions.append(float((wanted & above).sum() / above.sum()))
        expected = sum(precisions) / len(precisions)
        assert multi_label.average_precision(scores, wanted) == pytest.approx(expected)
    labels = torch.tensor([[1, 0], [0, 0], [1, 0]])
    perfect = torch.tensor([[3.0, 0.0], [1.0, 5.0], [2.0, 1.0]])
    assert multi_label.mean_average_precision(Fixed(), [(perfect, labels)]) == 1


def test_rmse_and_divergences_of_equal_outputs():
    x = torch.randn(10, 3)
    assert regression.rmse(Fixed(), [(x[:4], x[:4] + 2), (x[4:], x[4:] + 2)]) == pytest.approx(2)
    assert regression.rmse(Fixed(), [(x[:, :1], x[:, 0])]) == 0
    for task, outputs in (
        ("regression", x),
        ("multi-label", x),
        ("classification", x),
        ("segmentation", torch.randn(2, 3, 4, 4)),
    ):
        for distance in (BUILT_IN[task].divergence, BUILT_IN[task].distillation):
            if distance is None:
                continue
            assert distance(outputs, outputs).item() == pytest.approx(0, abs=1e-6)
            assert distance(outputs + torch.randn_like(outputs), outputs).item() > 0.01
    # the error of predicting the mean of the teacher is 1
    assert regression.divergence(x.mean(0).expand(10, 3), x).item() == pytest.approx(1)
    p, q = torch.tensor([[0.3]]), torch.tensor([[0.6]])
    expected = 0.3 * math.log(0.3 / 0.6) + 0.7 * math.log(0.7 / 0.4)
    assert multi_label.divergence(q.logit(), p.logit()).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["classification", "regression", "unlabelled"])
def test_distillation_is_from_the_teacher(name):
    task = BUILT_IN[name]
    torch.manual_seed(1)
    student, teacher = (nn.Sequential(nn.Flatten(), nn.Linear(4, 2)) for _ in range(2))
    x = torch.randn(6, 1, 2, 2)
    y = torch.arange(6) % 2 if name == "classification" else torch.randn(6, 2)
    loss, outputs = imitation(task, teacher)(student, (x, y))
    soft = (task.distillation or task.divergence)(student(x), teacher(x))
    expected = soft if task.loss is None else 0.9 * soft + 0.1 * task.loss(student, (x, y))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5) and soft.item() > 0.01
    assert torch.equal(outputs, student(x)) and loss.requires_grad
    assert all(weight.grad is None for weight in teacher.parameters())


def test_a_metric_has_words_and_a_direction():
    share, error = Metric(), Metric("RMSE", "K", higher_is_better=False, per_example=False)
    assert (
        share.text(0.956, 0.003) == "95.6 % +- 0.3"
        and error.text(2.3106, 0.21) == "2.311 K +- 0.21"
    )
    assert share.gain(0.9, 0.8) == pytest.approx(10) and error.gain(2, 3) == 1
    assert (
        share.difference(-1.25, signed=True) == "-1.2 points"
        and error.difference(0.25) == "0.25 K"
    )
    assert error.merit(1) > error.merit(2) > error.merit(None) and share.text(None) == "-"
    assert Metric.from_json(error.to_json()) == error
    for words in ({"unit": 3}, {"name": "a\nb"}, {"higher_is_better": 1}, {"other": 1}):
        with pytest.raises(canvas.CanvasError):
            Metric.from_json(words)


# ---- loaders ------------------------------------------------------------------------------------


class Noisy(TensorDataset):
    """Noise anew in every pass, from three sources of chance."""

    def __getitem__(self, at):
        x, y = super().__getitem__(at)
        return x + torch.randn(()) + random.random() + np.random.rand(), y


def test_the_chance_of_a_loader_is_new_in_each_epoch_and_the_same_in_each_run():
    data = Noisy(torch.zeros(20, 1), torch.zeros(20))
    source = streamed((data, data, data))

    def epochs():
        order, chance = torch.Generator().manual_seed(5), torch.Generator()
        return [
            torch.cat([batch[0] for batch in source.epoch(64, order, chance)]) for _ in range(2)
        ]

    first, second = epochs(), epochs()
    assert torch.equal(first[0], second[0]) and torch.equal(first[1], second[1])
    assert not torch.equal(first[0], first[1])
    scored = [torch.cat([b[0] for b in source.scoring("validation")]) for _ in range(2)]
    assert torch.equal(*scored)
    before = torch.get_rng_state(), random.getstate()
    with seeded(3):
        torch.rand(2), random.random()
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()


def test_a_dataset_is_cut_and_loaders_are_taken_as_they_are():
    x = torch.arange(100.0)[:, None]
    source = streamed(TensorDataset(x, x))
    parts = [
        {float(v) for batch in source.scoring(split) for v in batch[0]}
        for split in ("train", "validation", "test")
    ]
    assert [len(part) for part in parts] == [72, 8, 20] and len(set().union(*parts)) == 100
    assert (source.count("validation"), source.count("test"), source.steps(64)) == (8, 20, 2)
    loader = DataLoader(TensorDataset(x, x), batch_size=7)
    assert Streamed(loader, loader, loader).steps(64) == 15
    assert len(Streamed(loader, loader, loader).first("train", 10)) == 2


class Slow:
    """A loader that takes longer than a step."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        for batch in self.batches:
            time.sleep(0.05)
            yield batch


def test_the_bottleneck_is_named_once():
    data = splits("regression")
    batches = [data[0][at : at + 64] for at in range(0, 192, 64)]
    network = trained(BUILT_IN["regression"], Body(pooled(1)), whole(data[0]), 20)
    asked = {**ASKED, "latency": "none", "draws": 0, "task": "regression", "final_seeds": 1}
    for train, said in ((Slow(batches), 1), (batches, 0)):
        lines = []
        canvas.fit(network, (train, whole(data[1]), whole(data[2])), **asked, say=lines.append)
        assert sum("of the time of a training is waiting for data" in x for x in lines) == said


class Endless(IterableDataset):
    def __iter__(self):
        return iter((torch.zeros(1, 8, 8), n % 2) for n in range(70))


def test_loaders_without_length_are_counted():
    source = Streamed(Endless(), Endless(), Endless())
    assert source.steps(64) == 2 and source.count("test") == 70


class Fading:
    """Ends earlier in every pass."""

    def __init__(self):
        self.left = 9

    def __iter__(self):
        self.left -= 1
        return iter([(torch.zeros(4, 1, 8, 8), torch.zeros(4))] * self.left)


def fails(data):
    def broken():
        yield data[0]
        raise OSError("no such file: 17.png")

    class Broken:
        def __iter__(self):
            return broken()

    return Broken()


GOOD = [(torch.zeros(4, 1, 8, 8), torch.zeros(4))]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((GOOD, GOOD, iter(GOOD)), "the test data can be gone through only once"),
        ((GOOD, GOOD, 3), "the test data are 3: give a torch Dataset"),
        ((GOOD, [], GOOD), "the validation loader gives no batch"),
        ((GOOD, fails(GOOD), GOOD), "batch 1 of the validation loader cannot be made: OSError"),
        ((GOOD, GOOD), r"are \(train, validation, test\)"),
        (GOOD, r"are \(train, validation, test\)"),
        (TensorDataset(torch.zeros(2, 1)), "too few to be cut"),
        ((TensorDataset(torch.zeros(0, 1)), GOOD, GOOD), "train data cannot be used|no batch"),
    ],
)
def test_what_is_no_data(data, words):
    with pytest.raises(canvas.CanvasError, match=words):
        canvas.fit(Body(pooled(1)), data, task="regression", **ASKED, latency="none")


def test_a_loader_that_ends_early():
    order, chance = torch.Generator().manual_seed(5), torch.Generator()
    source = Streamed(Fading(), GOOD, GOOD)
    with pytest.raises(canvas.CanvasError, match="the train loader ended after 7 of 8 batches"):
        list(source.epoch(64, order, chance))


# ---- tasks that are none ------------------------------------------------------------------------


def body_task(**words):
    task = BUILT_IN["regression"]
    return Task(
        **{"loss": task.loss, "metric": task.metric, "divergence": task.divergence,
           "higher_is_better": False, "unit": "", **words}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"metric": lambda m, b: math.nan}, "be a teacher: the metric of task 'own' is nan"),
        ({"metric": lambda m, b: "high"}, "returned 'high': it must return a number"),
        ({"metric": lambda m, b: torch.zeros(3)}, "it must return a number"),
        ({"metric": lambda m, b: 1 / 0}, "metric of task 'own' failed: ZeroDivisionError"),
        ({"metric": lambda m, b: 87.0, "unit": "points"}, "shares from 0 to 1"),
        ({"loss": lambda m, b: 1.0}, "the loss of task 'own' returned 1.0"),
        ({"loss": lambda m, b: torch.zeros(())}, "did not run the network"),
        ({"loss": lambda m, b: m(b[0]).detach().mean()}, "the loss .* has no gradient"),
        ({"loss": lambda m, b: m(b[0]).mean() * math.inf}, "the loss of task 'own' is"),
        ({"loss": lambda m, b: m(b[9])}, "the loss of task 'own' failed: IndexError"),
        ({"divergence": lambda a, b: a.mean()}, "for equal outputs, where it must be 0"),
        ({"divergence": lambda a, b: a - b}, "the divergence .* returned a Tensor|one number"),
        ({"divergence": None}, "has no divergence: canvas.fit needs one"),
        ({"inputs": lambda b: "x"}, "the inputs of a batch are a tensor"),
        ({"inputs": lambda b: (b[0], b[0][:1])}, "the same number of examples"),
        ({"inputs": lambda b: [b[0], 3]}, "hold 3, where only tensors can be"),
        ({"hits": lambda m, b: torch.zeros(3), "unit": "points", "metric": lambda m, b: 0.5},
         r"they must be a tensor \[96\]"),
    ],
)  # fmt: skip
def test_what_a_task_does_wrong_is_one_message_at_once(words, message):
    with pytest.raises(canvas.CanvasError, match=message):
        canvas.fit(
            Body(pooled(1)).eval(), splits("regression"), task=body_task(**words), **ASKED,
            latency="none", say=lambda _: None,
        )  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"loss": 3}, "loss of a task is a function or None, not 3"),
        ({"divergence": 3}, "divergence of a task is a function or None, not 3"),
        ({"inputs": None}, "inputs of a task is a function, not None"),
        ({"name": ""}, "the name of a task is a text"),
        ({"unit": "a\nb"}, "the unit of a metric is a text"),
        ({"higher_is_better": "no"}, "higher_is_better of a metric is True or False"),
    ],
)
def test_what_is_no_task(words, message):
    with pytest.raises(canvas.CanvasError, match=message):
        body_task(**words)


def test_tasks_by_name(tmp_path, monkeypatch):
    (tmp_path / "owntask.py").write_text("import test_tasks\nHEAT = test_tasks.OWN\nNONE = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert load_task("owntask:HEAT") is OWN or load_task("owntask:HEAT").name == "heat"
    for name, words in {
        "segmentations": "did you mean 'segmentation'",
        "owntask:NONE": "must be a canvas.Task",
        "owntask:MISSING": "has no 'MISSING'",
        "nothing_here:x": "there is no module",
    }.items():
        with pytest.raises(canvas.CanvasError, match=words):
            load_task(name)
    with pytest.raises(canvas.CanvasError, match=r"task is a canvas\.Task or a name, not 3"):
        load_task(3)


# ---- inputs -------------------------------------------------------------------------------------


def test_inputs_of_every_form():
    a, b = torch.arange(6.0), torch.arange(12.0).reshape(6, 2)
    for value in (a, (a, b), [a, b], {"x": a, "y": b}):
        inputs = Inputs.of(value)
        parts = list(inputs.split(4))
        assert [len(part) for part in parts] == [4, 2]
        whole = join(parts)
        assert all(torch.equal(x, y) for x, y in zip(whole.tensors, inputs.tensors))
    with pytest.raises(canvas.CanvasError, match="examples of one size"):
        join([Inputs.of(b), Inputs.of(b[:, :1])])


def test_kill_and_resume_of_a_streamed_fit(tmp_path):
    """A fit of loaders that is ended goes on to the same networks."""
    task, data = BUILT_IN["regression"], splits("regression")
    network = trained(task, Body(pooled(1)), whole(data[0]))
    asked = {**ASKED, "latency": "none", "say": lambda _: None, "task": "regression"}
    alone = canvas.fit(network, data, **asked)

    class Enough(BaseException):
        pass

    calls, stops = [], []

    def tell(line):
        calls.append(line)
        if "tuning" in line or len(calls) == stops[0]:
            raise Enough

    for stop in (3, 10**9):
        calls.clear()
        stops[:] = [stop]
        with pytest.raises(Enough):
            canvas.fit(network, data, **{**asked, "say": tell}, out=tmp_path)
    again = canvas.fit(network, data, **asked, out=tmp_path)
    x = data[2][:][0]
    assert torch.equal(alone.best().network(x), again.best().network(x))
    assert alone.report.conclusion == again.report.conclusion
    assert os.path.exists(tmp_path / "pareto.csv")


# ---- classifications that stream ----------------------------------------------------------------


def classes_of(count, seed):
    x = images(count, seed)
    return TensorDataset(x, (x.mean(dim=(1, 2, 3)) > 0).long())


def test_a_streamed_classification_is_fitted_as_one_in_memory(tmp_path):
    data = (classes_of(192, 1), classes_of(96, 2), classes_of(96, 3))
    network = trained(BUILT_IN["classification"], Body(pooled(2)), whole(data[0]), 60)
    asked = {**ASKED, "latency": "none", "say": lambda _: None, "draws": 0}
    streamed_ = canvas.fit(network, canvas.stream(*data), **asked, out=tmp_path)
    kept = canvas.fit(network, data, **asked)
    assert streamed_.teacher.validation == kept.teacher.validation
    assert torch.equal(streamed_.teacher.hits, kept.teacher.hits)
    assert "accuracy" in str(streamed_) and streamed_.best().hits.shape == (3, 96)
    with Study.read(tmp_path) as study:
        assert study.task() == "classification" and len(study.test_groups()) == 96


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        ((torch.zeros(4, 1, 8, 8), torch.tensor([0, 5, 1, 1])), "examples .* failed: IndexError"),
        ((torch.zeros(4, 1, 8, 8), torch.zeros(4, 2)), "failed: "),
        (torch.zeros(4, 1, 8, 8), "for this task"),
        ({"x": torch.zeros(4, 1, 8, 8)}, "for this task, not a dict"),
    ],
)
def test_a_streamed_classification_with_other_batches(batch, words):
    with pytest.raises(canvas.CanvasError, match=words):
        canvas.fit(
            Body(pooled(2)).eval(), canvas.stream([batch], [batch], [batch]), **ASKED,
            latency="none", say=lambda _: None,
        )  # fmt: skip


def test_a_search_of_a_streamed_classification_knows_its_classes(tmp_path):
    data = canvas.stream(classes_of(96, 1), classes_of(48, 2), classes_of(48, 3))
    report = canvas.search(
        "resnet8", data, width=4, budget="macs=0.5x", trials=1, epochs=1, finalists=0,
        compile="no", latency="torch", out=tmp_path, say=lambda _: None,
    )  # fmt: skip
    assert report.chosen and "accuracy" in str(report)
    for missing, given in (("validation", "test"), ("test", "validation")):
        with pytest.raises(canvas.CanvasError, match=f"give {missing}, too"):
            canvas.stream(classes_of(4, 1), **{given: classes_of(4, 1)})


# ---- what outsiders found -----------------------------------------------------------------------


def fitted(data, network=None, task="regression", **words):
    """A short fit; the network is trained if none is given."""
    if network is None:
        network = trained(BUILT_IN["regression"], Body(pooled(1)), whole(splits("regression")[0]))
    asked = {**ASKED, "latency": "none", "draws": 0, "final_seeds": 1, "say": lambda _: None}
    return canvas.fit(network, data, task=task, **{**asked, **words})


def test_batches_of_one_example_keep_the_statistics_of_batchnorm():
    norm = nn.BatchNorm2d(1)
    x = torch.randn(6, 1, 4, 4) * 3 + 5
    recompute_statistics(nn.Sequential(norm), x.split(1))
    assert norm.running_mean.item() == pytest.approx(x.mean().item(), rel=1e-5)
    flat = nn.BatchNorm1d(2)
    flat.running_mean += 7
    recompute_statistics(nn.Sequential(flat), torch.randn(3, 2).split(1))  # it takes none of them
    assert flat.running_mean.tolist() == [7, 7] and flat.momentum == 0.1
    data = [DataLoader(split, batch_size=1) for split in splits("regression")]
    best = fitted(data).best()
    means = [m.running_mean.abs().sum() for m in best.network.modules()
             if isinstance(m, nn.BatchNorm2d)]  # fmt: skip
    assert means and all(mean > 0 for mean in means)


@pytest.fixture
def short_names(monkeypatch):
    """Sockets of loaders' workers lie in temporary folders, and may have 107 characters."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="c-") as folder:
        monkeypatch.setattr(tempfile, "tempdir", folder)
        monkeypatch.delitem(multiprocessing.current_process()._config, "tempdir", raising=False)
        yield
        monkeypatch.delitem(multiprocessing.current_process()._config, "tempdir", raising=False)


def test_loaders_may_have_workers_of_their_own(short_names):
    data = splits("regression")
    network = trained(BUILT_IN["regression"], Body(pooled(1)), whole(data[0]))
    alone, helped = (
        fitted([DataLoader(split, batch_size=64, num_workers=n) for split in data], network)
        for n in (0, 1)
    )
    assert alone.best().tests == helped.best().tests
    assert alone.report.conclusion == helped.report.conclusion


class Dying(TensorDataset):
    """A worker that is killed after a few examples."""

    def __getitem__(self, i):
        if i > 5 and torch.utils.data.get_worker_info() is not None:
            os.kill(os.getpid(), 9)
        return super().__getitem__(i)


def test_a_worker_of_a_loader_that_dies_is_one_message(short_names):
    data = splits("regression")
    network = trained(BUILT_IN["regression"], Body(pooled(1)), whole(data[0]))
    dying = DataLoader(Dying(*data[0].tensors), batch_size=4, num_workers=1)
    with pytest.raises(
        canvas.CanvasError, match=r"batch \d+ of the train loader cannot be made: "
    ) as e:
        fitted([dying, *(DataLoader(split, batch_size=64) for split in data[1:])], network)
    assert "worker" in str(e.value) and "\n" not in str(e.value)


@pytest.mark.nightly
def test_one_operator_in_two_words_is_one_network():
    """With one layer and few draws, two mixes may have isomorphic packs."""
    body = Body(pooled(1))
    network = nn.Sequential(body.stem, nn.ReLU(), body.one, nn.ReLU(), pooled(1))
    network = trained(BUILT_IN["regression"], network, whole(splits("regression")[0]), 20)
    for draws in (7, 8):
        assert fitted(splits("regression"), network, draws=draws).report.conclusion


def test_a_metric_may_go_through_its_loader_twice():
    lengths = []

    def metric(model, loader):
        first = [len(batch[0]) for batch in loader]
        lengths.append((sum(first), sum(len(batch[0]) for batch in loader), len(loader)))
        return regression.rmse(model, loader)

    fitted(splits("regression"), task=body_task(metric=metric), epochs=0, longer=0)
    assert set(lengths) == {(96, 96, 2)}
    lengths.clear()
    few = images(8, 2), torch.arange(8) % 2
    classes = Data("c", few, few, few, 2, "few")
    assert len(classes.scoring("train")) == 1
    assert len(list(classes.scoring("train"))) == 1


class Unsteady:
    """A loader that does something else from its pass number `when` on."""

    def __init__(self, dataset, when, what):
        self.dataset, self.when, self.what, self.passes = dataset, when, what, 0

    def __iter__(self):
        self.passes += 1
        batches = list(DataLoader(self.dataset, batch_size=32))
        if self.passes >= self.when:
            batches = self.what(batches)
        return iter(batches)


def no_disk(batches):
    yield batches[0]
    raise OSError("the disk is away")


def test_a_loader_that_fails_ends_the_fit_and_nothing_is_lost(tmp_path):
    data = splits("regression")
    network = trained(BUILT_IN["regression"], Body(pooled(1)), whole(data[0]))
    train = Unsteady(data[0], 5, no_disk)
    with pytest.raises(canvas.CanvasError, match=r"batch 1 of the train loader .* disk is away"):
        fitted((train, data[1], data[2]), network, out=tmp_path, workers=1)
    with Study.read(tmp_path) as study:
        fits = len(study.fitted_items())
        assert fits and not study.select(status="failed")
    steady = fitted((Unsteady(data[0], 99, None), data[1], data[2]), network, workers=1)
    again = fitted(
        (Unsteady(data[0], 99, None), data[1], data[2]), network, out=tmp_path, workers=1
    )
    assert again.report.conclusion == steady.report.conclusion


def test_a_validation_loader_that_ends_early_is_noticed():
    data = splits("regression")
    fading = Unsteady(data[1], 4, lambda batches: batches[:1])
    with pytest.raises(canvas.CanvasError, match="gave 32 examples, 96 in its first pass"):
        fitted((data[0], fading, data[2]), workers=1)


def test_other_training_data_are_noticed(tmp_path):
    data = splits("regression")
    network = trained(BUILT_IN["regression"], Body(pooled(1)), whole(data[0]))
    fitted(data, network, out=tmp_path)
    with pytest.raises(canvas.CanvasError, match="other images"):
        fitted((Subset(data[0], range(100)), data[1], data[2]), network, out=tmp_path)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"metric": lambda m, b: 1e305}, "the metric of task 'own' is 1e"),
        ({"metric": lambda m, b: "0.5"}, "it must return a number"),
        ({"metric": lambda m, b: 10**400}, "it must return a number"),
        ({"metric": lambda m, b: torch.zeros((), device="meta")}, "it must return a number"),
        ({"metric": lambda m, b: exit(3)}, "metric of task 'own' failed: SystemExit"),
        ({"inputs": lambda b: b["image"]}, "inputs of task 'own' failed: TypeError"),
        ({"loss": lambda m, b: m(b[0]).mean() * 1j}, "must return a tensor of one number"),
        ({"divergence": lambda a, b: -((a - b) ** 2).mean()}, "it must be at least 0"),
    ],
)
def test_more_that_a_task_does_wrong(words, message):
    with pytest.raises(canvas.CanvasError, match=message):
        fitted(splits("regression"), task=body_task(**words))


def test_networks_on_other_devices_are_refused():
    network = Body(pooled(1))
    network.register_buffer("scale", torch.ones((), device="meta"))
    with pytest.raises(canvas.CanvasError, match="'scale' is on meta"):
        fitted(splits("regression"), network)


class Twice(nn.Module):
    def forward(self, x):
        return x, x


class Flat(Body):
    """Gives [N] instead of [N, 1]."""

    def forward(self, x):
        return super().forward(x)[:, 0]


def test_regressions_of_networks_that_give_one_number():
    task = BUILT_IN["regression"]
    network = trained(task, Flat(pooled(1)), whole(splits("regression")[0]), 10)
    assert fitted(splits("regression"), network).best().test > 0
    with pytest.raises(canvas.CanvasError, match="a target is NaN"):
        regression.rmse(Fixed(), [(torch.zeros(3), torch.full((3,), math.nan))])
    with pytest.raises(canvas.CanvasError, match="the network returns a tuple"):
        regression.rmse(Twice(), [(torch.zeros(3), torch.zeros(3))])


def test_tuning_that_makes_a_network_worse_is_not_kept(monkeypatch):
    """A step far too large: the fitted networks, and the teacher, stay as they were."""
    monkeypatch.setattr(fit_jobs, "RATE", 50.0)
    lines = []
    found = fitted(splits("regression"), say=lines.append)
    assert any("tuning made it worse on validation" in line for line in lines)
    tuned = next(c for c in found.candidates if c.kind == "teacher, tuned")
    assert tuned.validation == found.teacher.validation
    best = found.best()
    assert best.tuned_divergence == pytest.approx(best.divergence)
    assert len(repr(found)) < 3000
