"""What a child does with a job: every failure that can still speak gets its kind."""

import io
import json

import numpy as np
import pytest
import torch

from canvas.data import Data
from canvas.data.stored import store
from canvas.workers import worker


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A job on tiny images; models come from a module in tmp_path."""
    torch.manual_seed(0)
    split = (torch.randn(8, 1, 4, 4), torch.arange(8) % 2)
    images = Data("tiny", split, split, split, 2, "")
    seal = store(images, tmp_path / "images")
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda *a, **k: None)
    (tmp_path / "worker_models.py").write_text(
        "import torch\n"
        "from torch import nn\n"
        "def good(): return nn.Sequential(nn.Flatten(), nn.Linear(16, 2))\n"
        "def dropout(): return nn.Sequential(convolutions(), nn.Dropout(), nn.Linear(2, 2))\n"
        "def convolutions():\n"
        "    layers = [nn.Conv2d(c, 4, 3, padding=1) for c in (1, 4, 4)]\n"
        "    return nn.Sequential(*layers, nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))\n"
        "def nan():\n"
        "    model = good()\n"
        "    nn.init.constant_(model[1].weight, float('nan'))\n"
        "    return model\n"
        "class Huge(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.w = nn.Parameter(torch.ones(2))\n"
        "    def forward(self, x):\n"
        "        if self.training:\n"
        "            torch.empty(1 << 60)\n"
        "        return x.flatten(1)[:, :2] * self.w\n"
        "class Fixed(Huge):\n"
        "    def forward(self, x):\n"
        "        return x.flatten(1)[:, :2] + 0 * self.w\n"
        "class Odd(Huge):\n"
        "    def forward(self, x):\n"
        "        if self.training:\n"
        "            raise ValueError('odd')\n"
        "        return x.flatten(1)[:, :2] * self.w\n"
        "class Late(nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.a = nn.Conv2d(1, 4, 3, padding=1)\n"
        "        self.b = nn.Conv2d(4, 4, 3, padding=1)\n"
        "        self.c = nn.Linear(4, 2)\n"
        "    def forward(self, x):\n"
        "        y = self.c(self.b(self.a(x)).mean((2, 3)))\n"
        "        return y if self.training or x.mean() < 5 else y * float('nan')\n"
        "def odd_behind(): return nn.Sequential(nn.Conv2d(1, 4, 3), nn.Conv2d(4, 4, 1), Odd())\n"
    )
    recipe = {
        "model": "worker_models:good",
        "width": None,
        "shape": [1, 4, 4],
        "classes": 2,
        "policy": "paper",
        "seed": 1,
    }
    return {
        "kind": "accuracy",
        "recipe": recipe,
        "pack": None,
        "check": False,
        "images": {"folder": str(tmp_path / "images"), "seal": seal},
        "epochs": 2,
        "batch_size": 4,
        "memory_format": "contiguous",
        "test": False,
        "score_last": False,
        "path": [str(tmp_path)],
    }


def run(job, *verdicts):
    told = []
    answers = io.StringIO("".join(json.dumps({"go": v}) + "\n" for v in verdicts))
    worker.serve(job, lambda event, **facts: told.append({"event": event, **facts}), answers)
    return told


def test_a_training_tells_its_size_its_epochs_and_its_end(job):
    told = run(job, True, True)
    assert [m["event"] for m in told] == ["built", "epoch", "epoch", "done"]
    assert told[0]["macs"] == 32 and told[0]["params"] == 34
    assert all(0 <= m["accuracy"] <= 1 for m in told[1:3])
    assert 0 < told[1]["processor"] < told[2]["processor"]


def test_the_memory_format_is_chosen_unless_it_is_given(job, monkeypatch):
    assert run(job)[0]["memory_format"] == "contiguous"
    job["memory_format"] = "channels_last"
    assert run(job)[0]["memory_format"] == "channels_last"
    job["memory_format"] = ""
    chosen = run(job, True, True)
    again = run({**job, "memory_format": chosen[0]["memory_format"]}, True, True)
    assert chosen[0] == again[0]  # and choosing takes no random numbers of the training's
    assert [m["loss"] for m in chosen[1:3]] == [m["loss"] for m in again[1:3]]


def test_fresh_memory_is_not_filled(job):
    """... and results follow from the job alone."""
    once, twice = run(job, True, True), run(job, True, True)
    assert not torch.utils.deterministic.fill_uninitialized_memory
    assert [m.get("loss") for m in once] == [m.get("loss") for m in twice]


def test_a_no_stops_it(job):
    assert [m["event"] for m in run(job, False)] == ["built", "epoch", "stopped"]


def test_a_driver_that_is_gone_stops_it(job):
    assert [m["event"] for m in run(job)] == ["built", "epoch", "stopped"]


def test_signals_are_told_and_judged_before_the_first_epoch(job):
    job["signals"] = True
    told = run(job, True, True, True)
    assert [m["event"] for m in told] == ["built", "signals", "epoch", "epoch", "done"]
    assert set(told[1]) >= {"error", "fingerprint", "broken", "missing", "seconds"}
    assert [m["event"] for m in run(job, False)] == ["built", "signals", "stopped"]
    assert [m["event"] for m in run(job)] == ["built", "signals", "stopped"]


def test_signals_do_not_move_the_training_that_follows(job):
    """Not even that of a network that draws random numbers."""
    job["recipe"]["model"] = "worker_models:dropout"
    curves = []
    for signals in (False, True):
        told = run({**job, "signals": signals}, True, True, True)
        assert not signals or told[1]["fingerprint"]
        curves.append([m["loss"] for m in told if m["event"] == "epoch"])
    assert curves[0] == curves[1] and len(curves[0]) == 2


def test_signals_of_the_unchanged_network_are_those_of_the_layers_that_kernels_replace(job):
    job["recipe"]["model"] = "worker_models:convolutions"
    signals = run({**job, "signals": True}, False)[1]
    assert signals["fingerprint"] and signals["broken"] == signals["missing"] == ""


def test_where_nothing_can_be_told_the_training_says_what_is_wrong(job):
    job["recipe"]["model"] = "worker_models:odd_behind"
    told = run({**job, "signals": True}, True)
    assert told[1]["missing"] == "odd" and told[1]["fingerprint"] is None
    assert told[2]["event"] == "failed" and "odd" in told[2]["reason"]


@pytest.mark.parametrize(
    ("model", "kind", "words"),
    [
        ("nan", "nan", "the loss is nan in epoch 1"),
        ("Huge", "out_of_memory", "memory"),
        ("Odd", "error", "odd"),
        ("missing", "error", "has no 'missing'"),
    ],
)
def test_a_failure_has_a_kind_a_message_and_a_log(job, model, kind, words):
    job["recipe"]["model"] = f"worker_models:{model}"
    last = run(job, True, True)[-1]
    assert (last["event"], last["kind"]) == ("failed", kind)
    assert words in last["reason"] and "\n" not in last["reason"]
    assert "Traceback" in last["log"]


def test_a_kernel_that_computes_something_else_is_a_wrong_result(job, monkeypatch):
    def check(pack):
        raise worker.WrongResult("element 3 is 1.0, the interpreter says 2.0")

    monkeypatch.setattr(worker, "check", check)
    last = run({**job, "pack": "any", "check": True})[-1]
    assert (last["event"], last["kind"]) == ("failed", "wrong_result")


def test_a_job_that_makes_no_sense_is_a_failure_too(job):
    assert run({"kind": "dance"})[-1]["event"] == "failed"
    assert run({})[-1]["event"] == "failed"


def test_a_final_tells_which_images_of_the_test_split_it_got_right(job, tmp_path):
    """A network that cannot learn, wrong on all of validation and on the third image of test."""
    images = torch.randn(10, 1, 4, 4)
    right = images.flatten(1)[:, :2].argmax(1)
    truth = torch.where(torch.arange(10) == 2, 1 - right, right)
    data = Data("tiny", (images, right), (images, 1 - right), (images, truth), 2, "")
    job["images"]["seal"] = store(data, tmp_path / "images")
    job["recipe"]["model"] = "worker_models:Fixed"
    told = run({**job, "test": True}, True, True)
    assert [m["accuracy"] for m in told[1:3]] == [0.0, 0.0]
    assert told[-1] == {"event": "done", "hits": "dfc0"}  # 1101 1111 11


def test_outputs_that_are_not_finite_fail_a_training_and_a_final(job, tmp_path):
    """Images that make the network's outputs NaN, in evaluation: of validation, of test."""
    images, labels = torch.randn(10, 1, 4, 4), torch.arange(10) % 2
    job["recipe"]["model"] = "worker_models:Late"
    for part in range(2):
        splits = [(images, labels), (images, labels)]
        splits[part] = (images + 100, labels)
        data = Data("tiny", (images, labels), *splits, 2, "")
        job["images"]["seal"] = store(data, tmp_path / "images")
        last = run({**job, "test": part == 1}, True, True)[-1]
        assert (last["event"], last["kind"]) == ("failed", "nan")
        assert last["reason"] == "outputs for 10 of 10 images are not finite"


def _other(path):
    labels = np.load(path)
    np.save(path, labels[::-1])


CHANGES = {  # what happens to an array: what is said
    "are others than the search began with: 'train_labels.npy' has changed": _other,
    "are damaged: ": lambda path: path.write_bytes(path.read_bytes()[:-10]),
    "cannot be read: No such file or directory": lambda path: path.unlink(),
}


@pytest.mark.parametrize("words", CHANGES)
def test_other_images_than_the_job_names_are_rejected(job, tmp_path, words):
    assert run(job, True, True)[-1]["event"] == "done"  # what was checked once is checked again
    CHANGES[words](tmp_path / "images/train_labels.npy")
    told = run(job, True, True)
    assert [(m["event"], m["kind"]) for m in told] == [("failed", "lost_data")]
    assert words in told[0]["reason"]


def test_images_with_another_seal_are_rejected(job):
    job["images"]["seal"] = "0" * 64
    told = run(job, True, True)
    assert told[0]["kind"] == "lost_data" and "'facts.json' has changed" in told[0]["reason"]


def test_a_search_without_finals_keeps_no_test_images(job, tmp_path):
    (tmp_path / "images/test_images.npy").unlink()
    assert run(job, True, True)[-1]["event"] == "done"
    told = run({**job, "test": True}, True, True)
    assert [(m["event"], m["kind"]) for m in told] == [("failed", "lost_data")]
