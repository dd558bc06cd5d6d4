"""A long training survives a kill between any two files, and rejects what it cannot be."""

import csv
import json
import os

import pytest
import torch

from canvas import _core
from canvas.data import Data
from canvas.data.augment import Augmentation
from canvas.deploy import trainer
from canvas.deploy.trainer import train_network
from canvas.errors import CanvasError
from canvas.nn.controls import DEPTHWISE_SEPARABLE
from canvas.nn.network import Recipe, plan_network
from canvas.nn.pack import KernelPack
from canvas.training import checkpoint


def images(count=33, test=0.0, offset=0.0):
    """Two classes that differ in brightness, a little."""
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 2
    pixels = torch.randn(count, 1, 6, 6, generator=random) + 0.6 * labels[:, None, None, None]
    split = (pixels + offset, labels)
    last = (pixels + test, labels)
    return Data("tiny", split, split, last, 2, "noise", augmentation=Augmentation(crop=1))


def pack():
    plan = plan_network(Recipe("resnet8", 2, (1, 6, 6), 2, "paper", 1))
    return KernelPack(_core.solve(DEPTHWISE_SEPARABLE, plan.targets, "macs=none,params=none", ""))


def train(out, what=None, **options):
    options = {"data": images(), "epochs": 3, "batch_size": 16, **options}
    return train_network(
        what or pack(), model="resnet8", width=2, out=out, threads=1, say=lambda line: None,
        **options
    )  # fmt: skip


def weights(folder):
    return {name: (folder / name).read_bytes() for name in (trainer.WEIGHTS, trainer.BEST)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "out"
    return train(folder)


class Killed(BaseException):
    """Nothing of ours runs after it."""


def test_every_file_is_there_and_says_the_same(whole):
    names = {trainer.STATE, trainer.WEIGHTS, trainer.BEST, trainer.LOG, trainer.RESULT}
    assert set(os.listdir(whole.folder)) == {*names, trainer.LOCK}
    rows = list(csv.DictReader((whole.folder / trainer.LOG).open()))
    assert list(rows[0]) == list(trainer.LOG_COLUMNS)
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    result = json.loads((whole.folder / trainer.RESULT).read_text())
    best = max(rows, key=lambda row: float(row["val_accuracy"]))
    assert (result["epoch"], whole.epoch) == (int(best["epoch"]), int(best["epoch"]))
    assert f"{result['val_accuracy']:.6g}" == best["val_accuracy"]
    share, count = result["test_accuracy"], 33
    assert result["standard_error"] == pytest.approx((share * (1 - share) / count) ** 0.5)
    tensors, facts = checkpoint.read(whole.folder / trainer.BEST)
    assert facts["epoch"] == whole.epoch
    state = whole.network.state_dict()
    assert state.keys() == tensors.keys()
    assert all(torch.equal(state[name], tensors[name]) for name in state)
    assert f"{100 * share:.2f} %" in str(whole) and "Test on tiny" in str(whole)


CORE = (0, 4, 5, 6, 7, 11)  # the first file, those of the second epoch, the last ones
MOMENTS = [
    moment if moment in CORE else pytest.param(moment, marks=pytest.mark.nightly)
    for moment in range(13)  # checkpoint, weights, log of three epochs, up to three best, result
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_kill_before_a_file_is_renamed_loses_nothing(whole, tmp_path, monkeypatch, moment):
    """Resumed after that moment, the weights are those of the undisturbed training."""
    rename, done = os.replace, []

    def replace(old, new):
        if len(done) == moment:
            raise Killed
        done.append(new)
        rename(old, new)

    monkeypatch.setattr(os, "replace", replace)
    try:
        train(tmp_path)
        assert moment >= 10  # the training renamed no more files than that
    except Killed:
        monkeypatch.undo()
        assert train(tmp_path, resume=True).test_accuracy == whole.test_accuracy
    assert weights(tmp_path) == weights(whole.folder)


def test_the_test_split_is_scored_once(whole, tmp_path, monkeypatch):
    scored = []

    def accuracy(network, batches):
        scored.append(next(iter(batches))[0].mean())
        return 0.5

    monkeypatch.setattr(trainer, "accuracy", accuracy)
    first = train(tmp_path / "a", data=images(test=9.0))
    again = train(tmp_path / "a", data=images(test=9.0), resume=True)
    assert len(scored) == 1 and scored[0] > 8
    assert (first.test_accuracy, again.test_accuracy) == (0.5, 0.5)
    assert weights(tmp_path / "a")[trainer.BEST] == weights(whole.folder)[trainer.BEST]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 4}, "--epochs 4 instead of 3 now"),
        ({"batch_size": 8}, "--batch-size 8 instead of 16 now"),
        ({"rate": "0.2"}, "--rate 0.2 instead of 0.1 now"),
        ({"seed": 2}, "--seed 2 instead of 1 now"),
        ({"amp": "bf16"}, "--amp bf16 instead of no now"),
        ({"policy": "all"}, "--policy all instead of paper now"),
        ({"data": images(offset=1.0)}, "other images now"),
        ({"what": "baseline"}, "baseline instead of Kernel_53fa05b27c95805b now"),
    ],
)
def test_another_training_is_not_resumed(whole, options, message):
    with pytest.raises(CanvasError, match=message):
        train(whole.folder, resume=True, **options)


def test_trainings_and_scores_in_16_bits(whole, tmp_path, monkeypatch):
    """Other weights than in float32, the same after a resume, scored in the same bits."""
    kinds = []

    def accuracy(network, batches):
        kinds.append(network(next(iter(batches))[0]).dtype)
        return 0.5

    monkeypatch.setattr(trainer, "accuracy", accuracy)
    train(tmp_path / "a", amp="bf16")
    train(tmp_path / "b", amp="bf16")
    assert weights(tmp_path / "a") == weights(tmp_path / "b") != weights(whole.folder)
    assert kinds == [torch.bfloat16] * 2
    with pytest.raises(CanvasError, match="cpu cannot train with --amp fp16: it takes"):
        train(tmp_path / "c", amp="fp16")


def test_a_training_is_not_overwritten(whole):
    before = weights(whole.folder)
    with pytest.raises(CanvasError, match="holds a training already: --resume continues it"):
        train(whole.folder)
    assert weights(whole.folder) == before


def test_two_trainings_do_not_share_a_folder(tmp_path):
    with (
        trainer._locked(tmp_path),
        pytest.raises(CanvasError, match="another training is running in"),
    ):
        train(tmp_path)


def test_resume_with_nothing_there_begins_and_says_so(whole, tmp_path):
    lines = []
    trained = train_network(
        pack(), model="resnet8", width=2, data=images(), epochs=3, batch_size=16, threads=1,
        out=tmp_path, resume=True, say=lines.append,
    )  # fmt: skip
    assert "nothing is there to go on with: this is the beginning" in lines
    assert weights(trained.folder) == weights(whole.folder)
    assert [line.split()[1] for line in lines if line.startswith("epoch")] == ["1/3", "2/3", "3/3"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"nonsense", "is no file of weights"), (None, "is not the checkpoint of a training")],
)
def test_a_foreign_checkpoint_is_rejected(tmp_path, content, message):
    path = tmp_path / trainer.STATE
    if content is None:
        checkpoint.write(path, {"a": torch.zeros(1)}, {"pack": None})
    else:
        path.write_bytes(content)
    with pytest.raises(CanvasError, match=message):
        train(tmp_path, resume=True)


def test_a_loss_that_is_no_number_is_a_message(tmp_path):
    with pytest.raises(CanvasError, match="the loss is nan in epoch 1: a smaller --rate may help"):
        train(tmp_path, data=images(offset=float("nan")))


def test_outputs_for_test_images_that_are_not_finite_have_no_accuracy(tmp_path):
    with pytest.raises(CanvasError, match=r"no test accuracy, as outputs for 33 of 33 images"):
        train(tmp_path, data=images(test=float("nan")), epochs=1)
    assert not (tmp_path / trainer.RESULT).exists()


def test_the_ways_of_the_process_come_back(whole, tmp_path):
    torch.set_num_threads(2)
    try:
        train(tmp_path, epochs=1)
        assert torch.get_num_threads() == 2
        assert not torch.are_deterministic_algorithms_enabled()
    finally:
        torch.set_num_threads(1)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no such device")
def test_a_training_on_cuda_goes_on_bit_for_bit(tmp_path, monkeypatch):
    a = train(tmp_path / "a", device="cuda")
    keep, count = trainer.Run.keep, [0]

    def killed(run):
        keep(run)
        count[0] += 1
        if count[0] == 2:
            raise Killed

    monkeypatch.setattr(trainer.Run, "keep", killed)
    with pytest.raises(Killed):
        train(tmp_path / "b", device="cuda")
    monkeypatch.undo()
    train(tmp_path / "b", device="cuda", resume=True)
    assert weights(tmp_path / "b") == weights(a.folder)
