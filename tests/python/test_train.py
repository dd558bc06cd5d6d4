"""A training is the same every time, tells every epoch, and fails with a type."""

import pytest
import torch
from torch import nn

from canvas.data import Data
from canvas.models import load_model
from canvas.train import NotFinite, _batches, score, train


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


def test_the_test_split_is_not_looked_at():
    assert train(network(), tiny(test=float("nan")), 2, 1) == train(
        network(), tiny(test=0.0), 2, 1
    )


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


def test_scoring_changes_nothing():
    model = network()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    score(model, tiny().validation)
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [(64, 32, [32, 32]), (65, 32, [32, 33]), (66, 32, [32, 32, 2]), (1, 32, [1]), (3, 32, [3])],
)
def test_no_batch_of_one_beside_others(count, size, expected):
    assert [len(b) for b in _batches(torch.arange(count), size)] == expected
