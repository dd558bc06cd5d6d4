"""A small trained network and its images, as fixtures."""

import pytest
import torch

from canvas.data import Data


def images(count, seed, classes=3, size=8):
    """Images of noise around a pattern for each class, and their labels."""
    generator = torch.Generator().manual_seed(seed)
    patterns = torch.randn(classes, 1, size, size, generator=torch.Generator().manual_seed(7))
    labels = torch.randint(classes, (count,), generator=generator)
    return patterns[labels] + torch.randn(count, 1, size, size, generator=generator), labels


@pytest.fixture(scope="module")
def data():
    return Data("patterns", images(320, 1), images(160, 2), images(160, 3), 3, "noisy patterns")


class Small(torch.nn.Module):
    """Three convolutions: with a BatchNorm behind, strided, with a bias and nothing behind."""

    def __init__(self, width=8):
        super().__init__()
        self.stem = torch.nn.Conv2d(1, width, 3, padding=1)
        self.one = torch.nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(width)
        self.two = torch.nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.three = torch.nn.Conv2d(2 * width, 2 * width, 3, padding=1)
        self.head = torch.nn.Linear(2 * width, 3)

    def forward(self, x):
        x = torch.relu(self.norm(self.one(torch.relu(self.stem(x)))))
        x = torch.relu(self.three(torch.relu(self.two(x))))
        return self.head(x.mean(dim=(2, 3)))


@pytest.fixture(scope="module")
def network(data):
    torch.manual_seed(0)
    network = Small()
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(data.train[0]), data.train[1]).backward()
        optimizer.step()
    return network.eval()
