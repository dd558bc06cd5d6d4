"""A training is the same every time, tells every epoch, and fails with a type."""

import math
from dataclasses import replace

import pytest
import torch
from torch import nn

from canvas.data import Data
from canvas.data.augment import Augmentation
from canvas.data.batches import batches_of
from canvas.models import load_model
from canvas.tasks.classification import accuracy
from canvas.training.kept import Kept
from canvas.training.train import NotFinite, Training, first_batch, train


def tiny(test=0.0, count=65):
    random = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % 2
    images = torch.randn(count, 1, 6, 6, generator=random) + 2 * labels[:, None, None, None]
    split = (images, labels)
    return Data("tiny", split, split, (torch.full_like(images, test), labels), 2, "")


def network(seed=0):
    torch.manual_seed(seed)
    return load_model("resnet8", channels=1, classes=2, image_size=6, width=2)


def test_the_same_seed_gives_the_same_curve_and_weights():
    a, b = network(), network()
    curves = [train(model, tiny(), 3, seed=5, batch_size=16) for model in (a, b)]
    assert curves[0] == curves[1]
    assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values()))
    assert train(network(), tiny(), 3, seed=6, batch_size=16) != curves[0]


def test_something_is_learned():
    assert train(network(), tiny(), 6, seed=1, batch_size=16)[-1].accuracy > 0.9


def test_the_first_batch_is_that_with_which_a_training_begins():
    data = replace(tiny(), augmentation=Augmentation(flip=True, crop=1))
    seen = []
    model = network()
    model.register_forward_pre_hook(lambda model, inputs: seen.append(inputs[0]))
    train(model, data, 1, seed=3, batch_size=8)
    batch, labels = first_batch(data, 3, 8)
    assert torch.equal(batch, seen[0]) and len(labels) == 8


def test_the_test_split_is_not_looked_at():
    assert train(network(), tiny(test=float("nan")), 2, 1) == train(
        network(), tiny(test=0.0), 2, 1
    )


def test_validation_is_only_scored():
    """Weights and the statistics of BatchNorm follow from the training split alone."""
    images, labels = tiny().validation
    other = replace(tiny(), validation=(100 - 3 * images, labels))
    models = [network(), network()]
    for model, data in zip(models, (tiny(), other)):
        train(model, data, 2, seed=5, batch_size=16)
    one, two = (model.state_dict().values() for model in models)
    assert all(torch.equal(x, y) for x, y in zip(one, two))


def test_every_epoch_is_told_and_a_no_ends_the_training():
    told = []

    def go_on(epoch):
        told.append(epoch.number)
        return epoch.number < 1

    assert len(train(network(), tiny(), 5, 1, go_on=go_on)) == 2
    assert told == [0, 1]


class Explodes(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.weight * x.flatten(1).sum(1, keepdim=True) * float("inf")


def test_a_loss_that_is_no_number_is_typed():
    with pytest.raises(NotFinite, match="the loss is"):
        train(Explodes(), tiny(), 1, 1)


class Breaks(nn.Module):
    """A network of which `spoil(outputs, images)` makes something not finite, in evaluation, or
    in training where `training`.
    """

    def __init__(self, spoil, training=False):
        super().__init__()
        self.body, self.spoil, self.when = network(), spoil, training

    def forward(self, x):
        y = self.body(x)
        return self.spoil(y, x) if self.training == self.when else y


def one_image(value):
    """Outputs of the image whose first pixel is the largest of all validation images."""
    images = tiny().validation[0]
    largest = images[:, 0, 0, 0].max()
    return lambda y, x: torch.where(x[:, 0, :1, 0] == largest, value, y)


SPOILT = {
    "nan": lambda y, x: y * math.nan,
    "inf": lambda y, x: y + math.inf,
    "one class": lambda y, x: torch.stack([y[:, 0], y[:, 1] - math.inf], 1),
    "one image": one_image(math.nan),
    "one image, -inf": one_image(-math.inf),
    "the last batch": lambda y, x: y * (math.nan if len(x) == 1 else 1),
    "half precision": lambda y, x: (y.half() * 0 + 60000) * 2,
}


@pytest.mark.parametrize("spoil", SPOILT)
def test_outputs_that_are_not_finite_have_no_accuracy(spoil):
    """Of classes 0 and 1, the one that argmax makes of NaN is right for most images."""
    images, labels = tiny().validation if "image" in spoil else tiny(count=257).validation
    data = replace(tiny(), validation=(images, torch.zeros_like(labels)))
    model = Breaks(SPOILT[spoil])
    with pytest.raises(NotFinite, match=r"outputs for \d+ of \d+ images are not finite"):
        train(model, data, 2, 1, batch_size=16)
    with pytest.raises(NotFinite):
        accuracy(model, data.scoring("validation"))


def test_a_training_output_that_is_not_finite_fails_where_the_loss_is_finite():
    def spoil(y, x):
        return torch.stack([y[:, 0], torch.full_like(y[:, 1], -math.inf)], 1)

    images, labels = tiny().train
    data = replace(tiny(), train=(images, torch.zeros_like(labels)))
    with pytest.raises(NotFinite, match="outputs are not finite in epoch 1"):
        train(Breaks(spoil, training=True), data, 1, 1)


def ruin(model, name, value):
    """Put `value` into a tensor of the state after each forward pass."""
    tensors = dict(model.state_dict(keep_vars=True))

    def after(*_):
        tensors[name].data.flatten()[0] = value

    model.register_forward_hook(after)
    return model


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("scored_last", [False, True])
@pytest.mark.parametrize("of", ["weight", "running_mean", "running_var"])
def test_weights_and_statistics_that_are_not_finite_end_a_training(of, scored_last, value):
    model = network()
    name = [name for name in model.state_dict() if name.endswith(of)][-1]
    seen = []
    with pytest.raises(NotFinite, match=rf"'[a-z0-9.]*{of}' is not finite after epoch 1"):
        options = {"go_on": lambda epoch: seen.append(epoch) or True, "score_last": scored_last}
        train(ruin(model, name, value), tiny(), 3, 1, batch_size=65, **options)
    assert not seen  # no epoch is told


def test_a_mask_of_infinite_numbers_is_no_failure():
    model = network()
    model.register_buffer("mask", torch.full((2,), -math.inf))
    model.frozen = nn.Parameter(torch.full((2,), math.inf), requires_grad=False)
    assert 0 <= train(model, tiny(), 1, 1)[-1].accuracy <= 1


def test_scoring_changes_nothing():
    model = network()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    accuracy(model, tiny().scoring("validation"))
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [(64, 32, [32, 32]), (65, 32, [32, 33]), (66, 32, [32, 32, 2]), (1, 32, [1]), (3, 32, [3])],
)
def test_no_batch_of_one_beside_others(count, size, expected):
    assert [len(b) for b in batches_of(torch.arange(count), size)] == expected


class Drops(nn.Module):
    """Draws from torch's own generator."""

    def __init__(self):
        super().__init__()
        self.body = network()

    def forward(self, x):
        return self.body(nn.functional.dropout(x, 0.2, self.training))


def training(epochs=4):
    torch.manual_seed(0)
    data = replace(tiny(), augmentation=Augmentation(flip=True, crop=1))
    return Training(Drops(), data, epochs, seed=5, batch_size=16)


def test_a_score_takes_statistics_of_the_weights_as_they_are():
    run = Training(network(), tiny(count=64), 2, seed=5, batch_size=16)
    run.epoch()
    run.epoch()  # 8 steps, of which running averages would tell
    layers = [m for m in run.model.modules() if isinstance(m, nn.BatchNorm2d)]
    assert {int(layer.num_batches_tracked) for layer in layers} == {4}


def test_scoring_the_last_epoch_alone_changes_no_weight():
    def trained(**words):
        torch.manual_seed(0)
        model = network()
        return train(model, tiny(), 3, seed=5, batch_size=16, **words), model.state_dict()

    (whole, weights), (curve, same) = trained(), trained(score_last=True)
    assert [math.isnan(epoch.accuracy) for epoch in curve] == [True, True, False]
    assert curve[-1] == whole[-1]
    assert all(torch.equal(value, same[name]) for name, value in weights.items())


def test_a_training_goes_on_bit_for_bit_where_another_process_left_it():
    whole = training()
    curve = [whole.epoch() for _ in range(4)]
    first = training()
    assert [first.epoch(), first.epoch()] == curve[:2]
    state = {name: value.clone() for name, value in first.state().items()}
    torch.manual_seed(99)
    second = training()
    second.restore(state, 2)
    assert [second.epoch(), second.epoch()] == curve[2:]
    assert second.done == 4
    for name, value in whole.state().items():
        assert torch.equal(value, second.state()[name]), name


@pytest.mark.parametrize(
    "kind", ["model.", "momentum.", "random.order", "random.chance", "random.torch"]
)
def test_every_part_of_the_state_counts(kind):
    """Without it the next epoch is another one."""
    first = training()
    first.epoch()
    state = first.state()
    fresh = training().state()
    broken = {
        name: fresh.get(name, torch.zeros_like(value)) if name.startswith(kind) else value
        for name, value in state.items()
    }
    states = [{k: v.clone() for k, v in s.items()} for s in (state, broken)]
    epochs = []
    for each in states:
        again = training()
        again.restore(each, 1)
        epochs.append(again.epoch())
    assert epochs[0] != epochs[1]


def test_the_rate_goes_on_too():
    first = training()
    rates = [first.epoch().rate for _ in range(4)]
    again = training()
    again.restore(first.state(), 3)
    assert again.epoch().rate == rates[3]
    assert len(set(rates)) == 4


def left_off(path, damage=lambda path: None):
    """The end of a training that was left off after two of five epochs, and the curve it then
    had.
    """
    kept = Kept(path, {"pack": "k"})
    first = train(network(), tiny(), 5, 1, batch_size=16, until=2, kept=kept)
    damage(path)
    second = network()
    return second, first, train(second, tiny(), 5, 1, batch_size=16, kept=kept)


def cut(path):
    path.write_bytes(path.read_bytes()[:-10])


def flip(path):
    text = bytearray(path.read_bytes())
    text[-5] ^= 1
    path.write_bytes(text)


@pytest.mark.parametrize("damage", [None, cut, flip, lambda path: path.unlink()])
def test_a_training_that_goes_on_ends_as_if_it_had_not_stopped(tmp_path, damage):
    whole = network()
    curve = train(whole, tiny(), 5, 1, batch_size=16)
    model, first, second = left_off(tmp_path / "k.safetensors", damage or (lambda path: None))
    assert first == curve[:2] and second == (curve if damage else curve[2:])
    states = [m.state_dict() for m in (whole, model)]
    assert all(torch.equal(a, b) for a, b in zip(*(s.values() for s in states)))


def test_another_training_does_not_go_on_from_there(tmp_path):
    path = tmp_path / "k.safetensors"
    left_off(path)
    train(network(), tiny(), 5, 1, batch_size=16, until=2, kept=Kept(path, {"pack": "k"}))
    other = Kept(path, {"pack": "other"})
    assert len(train(network(), tiny(), 5, 1, batch_size=16, kept=other)) == 5
