"""The record of a network: the same for the same code, another for changed code, and the first
training step that it takes.
"""

import json
import random
import re

import pytest
import torch
from made_study import CONTROLS, make_study
from torch import nn

from canvas.errors import CanvasError
from canvas.nn.behaviour import record
from canvas.nn.load_model import check_model
from canvas.nn.network import Recipe, plan_network
from canvas.options import read_options
from canvas.runner.reach import check_budget
from canvas.runner.replay import replay
from canvas.study import Study, other_network

SHAPE, CLASSES = (1, 8, 8), 3


class Net(nn.Module):
    def __init__(self, width=4, slope=0.0, drop=0.5, name="head"):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(slope),
            nn.Dropout(drop),
        )
        self.add_module(name, nn.Linear(width, CLASSES))
        self.name = name

    def forward(self, x):
        return self.get_submodule(self.name)(self.body(x).mean((2, 3)))


class Aux(Net):
    def forward(self, x):
        answer = super().forward(x)
        return (answer, answer) if self.training else answer


class Wide(Net):
    def forward(self, x):
        answer = super().forward(x)
        return answer[:, :2] if self.training else answer


class Cut(Net):
    def forward(self, x):
        return super().forward(x).detach()


class Frozen(Net):
    def forward(self, x):
        raise_in_training = self.training
        if raise_in_training:
            raise KeyError("teacher")
        return super().forward(x)


class InPlace(Net):
    def forward(self, x):
        x = self.body(x)
        y = x.sigmoid()
        y += 1
        return self.head((y * x).mean((2, 3)) + y.mul_(2).mean((2, 3)))


class Restless(Net):
    def forward(self, x):
        return super().forward(x) * random.random()


def made(build):
    def fresh():
        torch.manual_seed(1)
        return build()

    return record(fresh, "net", SHAPE, CLASSES)


def test_the_same_code_has_the_same_record():
    assert made(Net) == made(Net)
    assert other_network(made(Net), made(Net)) == ""
    assert len(json.loads(made(Net))["answers"]) == 2 * 2 * CLASSES


@pytest.mark.parametrize(
    ("changed", "how"),
    [
        ({"slope": 0.1}, "its answers are others"),
        ({"drop": 0.4}, "its answers are others"),
        ({"width": 5}, "its layers are others"),
        ({"name": "tail"}, "its layers are others"),
    ],
)
def test_changed_code_is_noticed(changed, how):
    assert other_network(made(Net), made(lambda: Net(**changed))) == how


def test_other_rounding_is_the_same_network():
    old, new = json.loads(made(Net)), json.loads(made(Net))
    largest = max(map(abs, new["answers"]))
    new["answers"] = [value + 5e-4 * largest for value in new["answers"]]
    assert other_network(json.dumps(old), json.dumps(new)) == ""
    new["answers"][0] += 1e-3 * largest
    assert other_network(json.dumps(old), json.dumps(new)) == "its answers are others"


def test_a_network_that_is_never_the_same_is_known_by_its_layers():
    assert json.loads(made(Restless))["answers"] == []
    assert other_network(made(Restless), made(Restless)) == ""
    assert other_network(made(Restless), made(lambda: Restless(width=5))) != ""
    assert other_network("", made(Net)) == ""  # a study of an older canvas


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (Aux, "model 'net' must answer [N, 3] for N images of this data while it trains, not a "
              "tuple for 2"),
        (Wide, "while it trains, not [2, 2] for 2"),
        (Cut, "model 'net' cannot be trained: element 0 of tensors does not"),
        (Frozen, "model 'net' cannot be trained: KeyError: 'teacher'"),
        (InPlace, "model 'net' cannot be trained: one of the variables needed for"),
    ],
)  # fmt: skip
def test_what_cannot_be_trained_is_one_message(build, words):
    with pytest.raises(CanvasError, match=re.escape(words)) as caught:
        made(build)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("build", [Aux, Wide, Cut, Frozen, InPlace])
def test_a_finished_network_is_checked_as_one_that_is_built(build):
    with pytest.raises(CanvasError) as of_record:
        made(build)
    network = build().eval()
    with pytest.raises(CanvasError) as caught:
        check_model(network, "net", SHAPE, CLASSES)
    assert str(caught.value) == str(of_record.value) and not network.training


class Counting(Net):
    """Replaces a buffer in training, and changes others in place."""

    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.steps = self.steps + 1
        return super().forward(x)


def test_the_check_of_a_network_changes_nothing():
    network = Counting()
    network.body.eval()
    modes = [module.training for module in network.modules()]
    state = {name: value.clone() for name, value in network.state_dict().items()}
    buffers, chance = dict(network.named_buffers()), torch.get_rng_state()
    network.head.weight.grad = torch.ones_like(network.head.weight)
    check_model(network, "net", SHAPE, CLASSES)
    assert all(torch.equal(value, state[name]) for name, value in network.state_dict().items())
    assert all(buffers[name] is buffer for name, buffer in network.named_buffers())
    assert torch.equal(torch.get_rng_state(), chance)
    assert [module.training for module in network.modules()] == modes
    assert torch.equal(network.head.weight.grad, torch.ones_like(network.head.weight))
    assert network.head.bias.grad is None


def test_a_frozen_network_and_one_without_gradients_are_checked_forwards():
    with torch.no_grad():
        check_model(Net().requires_grad_(False), "net", SHAPE, CLASSES)
        check_model(Net(), "net", SHAPE, CLASSES)


def test_the_start_check_takes_a_training_step(tmp_path, monkeypatch):
    (tmp_path / "aux_model.py").write_text(
        "from canvas.models import resnet8\n"
        "def build(channels, classes):\n"
        "    model = resnet8(channels=channels, classes=classes, width=4)\n"
        "    model.register_forward_hook(lambda m, x, y: (y, y) if m.training else y)\n"
        "    return model\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    recipe = Recipe("aux_model:build", None, SHAPE, CLASSES, "paper", 1)
    with pytest.raises(CanvasError, match="while it trains, not a tuple for 2"):
        plan_network(recipe)


def test_a_search_goes_on_with_the_same_network_only(tmp_path):
    options = read_options({"model": "m", "data": "d"})
    question = (options, "images", "abc", (100, 50), "t", ())

    def begin(record):
        with Study.open(tmp_path) as study:
            return study.begin(*question, record), study.fact("model_record")

    assert begin("") == (False, "")  # as an older canvas leaves it
    assert begin(made(Net)) == (True, made(Net))
    assert begin(made(Net))[0]
    words = (
        r"\(now the code of the model has changed, its answers are others\): choose another folder"
    )
    with pytest.raises(CanvasError, match=words):
        begin(made(lambda: Net(slope=0.1)))
    assert begin(made(Net)) == (True, made(Net))


def test_a_replay_is_of_the_same_network_only(tmp_path):
    from canvas.data import load_data
    from canvas.data.stored import store

    data = load_data("digits", images=100)
    folder = make_study(tmp_path / "run", CONTROLS, width=2)
    store(data, folder / "images")
    with Study.open(folder) as study:
        study.database.execute(
            "UPDATE study SET data_checksum = ?, model_record = ?", (data.checksum, made(Net))
        )
    words = "the code of the model 'resnet8' has changed since the search in '.*', its layers are "
    with pytest.raises(CanvasError, match=words):
        replay(folder, "baseline", say=lambda line: None)


# ---- budgets that nothing fits ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("macs=0.0001x", r"; the smallest needs \d+ MACs \(0\.0\d+x\)"),
        ("macs=1..2", r"; the smallest needs \d+ MACs"),
        ("params=0.001x", r"; the smallest needs \d+ params \(0\.0\d+x\)"),
        ("macs=5x..6x", r"; the largest reaches \d+ MACs \([\d.]+x\)"),
        ("macs=0.5x", None),
    ],
)
def test_a_budget_that_nothing_fits_is_said_with_what_would_fit(budget, words):
    options = read_options({"model": "m", "data": "d"})
    targets = "t0 8 8 8 8 3 1 1\n"
    if words is None:
        check_budget(targets, budget, options, 200)
        return
    with pytest.raises(CanvasError) as caught:
        check_budget(targets, budget, options, 200)
    start = f"--budget '{budget}': none of 200 draws and no known kernel fits"
    assert re.fullmatch(re.escape(start) + words, str(caught.value)), caught.value
    if needed := re.search(r"needs .*\((.*x)\)", str(caught.value)):
        check_budget(targets, f"{budget.partition('=')[0]}={needed[1]}", options, 200)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_answers_that_are_no_numbers_are_not_recorded(value):
    def build():
        net = Net()
        nn.init.constant_(net.head.bias, value)
        return net

    assert json.loads(record(build, "nets:net", SHAPE, CLASSES))["answers"] == []
