"""The made-up images: the same every time, called synthetic, and of no use to a single pixel."""

import numpy as np
import torch
from torch import nn

from canvas.data import SPLITS, load_data
from canvas.data.images_synthetic import CLASSES, _ranks
from canvas.training.train import train


def network(window):
    """One convolution, then the mean over all pixels; a window of 1 sees every pixel alone."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(3, 24, window, padding=window // 2),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.BatchNorm1d(24),
        nn.Linear(24, 10),
    )


def test_it_says_what_it_is():
    data = load_data("synthetic")
    assert data.synthetic and data.name == "synthetic" and "synthetic" in data.description
    assert data.shape == (3, 16, 16) and data.classes == CLASSES
    assert not load_data("digits").synthetic
    for part in SPLITS:
        counts = torch.bincount(getattr(data, part)[1])
        assert (counts == counts[0]).all()


def test_it_is_the_same_every_time():
    assert load_data("synthetic").checksum == load_data("synthetic").checksum
    assert load_data("synthetic", image_size=12).shape == (3, 12, 12)
    assert len(load_data("synthetic", images=500).train[1]) == 380  # its own validation: 120


def test_every_image_has_the_same_grey_values():
    for part in SPLITS:
        images = getattr(load_data("synthetic"), part)[0]
        assert (images == images[:, :1]).all()
        values = images[:, 0].flatten(1).sort(1).values
        assert torch.equal(values, (torch.arange(256) / 255).expand_as(values))


def test_a_network_without_neighbours_cannot_tell_any_image_from_another():
    images = load_data("synthetic").test[0]
    with torch.no_grad():
        answers = network(1).eval()(images)
    assert torch.allclose(answers, answers[:1].expand_as(answers), atol=1e-5)


def test_neighbours_are_what_is_learned_from():
    data = load_data("synthetic")
    blind, seeing = (train(network(window), data, 1, seed=1)[-1] for window in (1, 7))
    assert blind.accuracy < 0.15 and seeing.accuracy > 0.6


def test_ranks():
    rows = np.array([[0.5, -1.0, 7.0], [3.0, 2.0, 1.0]])
    assert _ranks(rows).tolist() == [[0.5, 0, 1], [1, 0.5, 0]]
