"""The pre-test at a layer of the trained unchanged network: recording it, errors of kernels."""

import io
import json

import pytest
import torch

from canvas import _core
from canvas.data import Data
from canvas.data.stored import store
from canvas.errors import CanvasError
from canvas.nn.network import Recipe, build_network, plan_network
from canvas.runner.pretests import LIMIT, judge
from canvas.training.train import train
from canvas.workers import layer_test, worker
from canvas.workers.layer_test import RecordedLayer

RECIPE = Recipe("layer_test_models:build", None, (3, 8, 8), 4, "paper", 1)
FACTS = {"seal": "abc"}
EPOCHS = 3
MODEL = """
from torch import nn

def build(in_channels, num_classes):
    return nn.Sequential(
        nn.Conv2d(in_channels, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, num_classes))
"""


def kernel(*nodes):
    return "\n".join(["canvas 1", "kernel k", "a = input", *nodes, ""])


SEPARABLE = kernel("b = unfold a over=H k=K", "c = fc b to=x0", "d = unfold c over=W k=K",
                   "e = fc d to=C", "out e")  # fmt: skip
SHIFTED = kernel("b = shift a over=H,W by=4", "c = fc b to=C", "out c")


@pytest.fixture(scope="module")
def data():
    """Images whose class is where their edge is."""
    random = torch.Generator().manual_seed(1)
    labels = torch.arange(320) % 4
    images = 0.3 * torch.randn(320, 3, 8, 8, generator=random)
    for image, label in zip(images, labels):
        place = int(torch.randint(1, 6, (), generator=random))
        line = image[:, place] if label % 2 else image[:, :, place]
        line += 1.5 if label < 2 else -1.5
    return Data("edges", *3 * [(images, labels)], 4, "")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    (folder / "layer_test_models.py").write_text(MODEL)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield folder


@pytest.fixture(scope="module")
def recorded(home, data):
    """The layer of a network that was trained for a while."""
    network = build_network(RECIPE)
    train(network, data, EPOCHS, 1)
    layer = RecordedLayer(home / "layer.safetensors", FACTS)
    layer.record(network, RECIPE.policy, data)
    return layer


@pytest.fixture(scope="module")
def packs(home):
    targets = plan_network(RECIPE).targets
    return {
        text: _core.solve(text, targets, "macs=1x,params=none", "norm=batch")
        for text in (SEPARABLE, SHIFTED)
    }


def test_a_kernel_that_cannot_imitate_the_layer_is_rejected_a_good_one_passes(recorded, packs):
    good, poor = (recorded.error(packs[text], 1) for text in (SEPARABLE, SHIFTED))
    assert 0 <= good < LIMIT < poor <= 1
    assert judge(good, None, "", LIMIT, {})[0] and not judge(poor, None, "", LIMIT, {})[0]


def test_an_error_follows_from_file_kernel_and_seed(recorded, packs):
    """... and takes no random numbers of the training that follows."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    errors = [recorded.error(packs[SEPARABLE], seed) for seed in (1, 1, 2)]
    assert errors[0] == errors[1] != errors[2]
    assert torch.equal(before, torch.get_rng_state())


def test_what_is_recorded_is_small(recorded, data, home, monkeypatch):
    network = build_network(RECIPE)
    numbers = 2 * 8 * 8 * 8 * len(data.train[1])  # of inputs and outputs
    assert 2 * numbers < recorded.path.stat().st_size < 2 * numbers + 2000
    monkeypatch.setattr(layer_test, "MEMORY", numbers // 2)
    small = RecordedLayer(home / "small.safetensors", FACTS)
    small.record(network, RECIPE.policy, data)
    assert small.path.stat().st_size < numbers // 2 + 2000
    monkeypatch.setattr(layer_test, "MEMORY", 1000)
    with pytest.raises(CanvasError, match="64 are needed"):
        small.record(network, RECIPE.policy, data)


def test_too_few_images_are_not_recorded(home, data):
    few = Data("few", *3 * [tuple(part[:63] for part in data.train)], 4, "")
    layer = RecordedLayer(home / "few.safetensors", FACTS)
    with pytest.raises(CanvasError, match="63 training images are too few"):
        layer.record(build_network(RECIPE), RECIPE.policy, few)
    assert not layer.path.exists()


def test_a_file_that_is_missing_damaged_or_of_another_search_gives_no_error(
    recorded, packs, tmp_path
):
    pack, copy = packs[SEPARABLE], RecordedLayer(tmp_path / "layer.safetensors", FACTS)
    assert copy.error(pack, 1) is None
    copy.path.write_bytes(recorded.path.read_bytes())
    assert copy.error(pack, 1) == recorded.error(pack, 1)
    assert RecordedLayer(copy.path, {"seal": "abd"}).error(pack, 1) is None
    for damage in (b"", copy.path.read_bytes()[:-1], bytes(1000)):
        copy.path.write_bytes(damage)
        assert copy.error(pack, 1) is None


def test_a_pack_that_does_not_replace_the_layer_has_no_error(recorded, packs):
    targets = plan_network(RECIPE).targets.replace("6", "other").splitlines()
    other = _core.solve(SEPARABLE, targets[-1] + "\n", "macs=1x,params=none", "")
    assert recorded.error(other, 1) is None


# ---- in a child ---------------------------------------------------------------------------------


@pytest.fixture
def job(home, data, tmp_path, monkeypatch):
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda *a, **k: None)
    return {
        "kind": "accuracy", "recipe": json.loads(json.dumps(RECIPE.to_json())), "pack": None,
        "check": False,
        "images": {"folder": str(tmp_path / "images"), "seal": store(data, tmp_path / "images")},
        "epochs": EPOCHS, "batch_size": 64, "memory_format": "contiguous", "test": False,
        "score_last": False, "path": [str(home)], "signals": True,
        "layer": str(tmp_path / "layer.safetensors"),
    }  # fmt: skip


def run(job, count):
    told = []
    answers = io.StringIO(count * (json.dumps({"go": True}) + "\n"))
    worker.serve(job, lambda event, **facts: told.append({"event": event, **facts}), answers)
    return told


def test_the_unchanged_networks_training_records_what_finds_are_fitted_to(job, packs, tmp_path):
    find = {**job, "pack": packs[SEPARABLE]}
    assert run(find, 0)[1]["error"] is None  # nothing is there yet
    told = run(job, 1 + EPOCHS)
    assert told[1]["error"] is None and told[-1] == {"event": "done", "unrecorded": ""}
    file = tmp_path / "layer.safetensors"
    first = file.read_bytes()
    assert run(find, 0)[1]["error"] < LIMIT
    file.unlink()
    run(job, 1 + EPOCHS)  # as after a kill
    assert file.read_bytes() == first
    assert run({**find, "epochs": EPOCHS + 1}, 0)[1]["error"] is None
    assert run({**find, "pack": packs[SHIFTED]}, 0)[1]["error"] > LIMIT


def test_a_training_that_is_cut_short_records_nothing(job, tmp_path):
    assert run(job, EPOCHS - 1)[-1] == {"event": "stopped"}
    assert not (tmp_path / "layer.safetensors").exists()


def test_a_layer_that_cannot_be_written_fails_no_training(job, tmp_path):
    (tmp_path / "layer.safetensors").mkdir()
    told = run(job, 1 + EPOCHS)[-1]
    assert told["event"] == "done" and "layer.safetensors" in told["unrecorded"]
