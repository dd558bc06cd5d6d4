"""Networks as users may write them, for test_faults.py: a small one, and one whose candidates
misbehave by turns.
"""

import os

import faults_misdeeds
import torch
from torch import nn

from canvas.workers.orphans import MARK

CONTROLS = 7  # the unchanged network is one of them; one worker trains them first
IN_CHILD = MARK in os.environ  # the driver's own check of the network is none of the trainings


class Mean(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


def build(in_channels, num_classes):
    """Small enough to be trained in a second."""
    return nn.Sequential(
        nn.Conv2d(in_channels, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 16, 3, 2, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Mean(), nn.Linear(16, num_classes),
    )  # fmt: skip


class Unruly(nn.Module):
    """A network whose trainings misbehave by turns, see faults_misdeeds.py."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.asked = False

    def forward(self, x):
        x = self.inner(x)
        if self.training and torch.is_grad_enabled() and IN_CHILD and not self.asked:
            self.asked = True
            misdeed = faults_misdeeds.next_one(good=CONTROLS)
            if misdeed in ("nan", "memory"):
                print("about to", misdeed)
            if misdeed == "nan":
                return x * float("nan")
            if misdeed == "memory":
                hoard(torch.empty)
            elif misdeed:
                faults_misdeeds.do(misdeed)
        return x


def unruly(in_channels, num_classes):
    return Unruly(build(in_channels, num_classes))


def hoard(make):
    """Memory without end, a GiB at a time; not touched, so that the machine keeps its own."""
    kept = []
    while True:
        kept.append(make(1 << 28))
