"""Models of PyTorch compiled to machine code by all that Canvas has, beside PyTorch."""

from __future__ import annotations

import logging
import subprocess

import pytest
import torch
from torch import nn
from torch.nn import functional

import canvas


class Images(nn.Module):
    """Branches, a residual, a concatenation, a layer that is called twice."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(True))
        self.twice = nn.Conv2d(8, 8, 3, padding=1, groups=2, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16, 5)
        for norm in (self.stem[1], self.norm):
            nn.init.normal_(norm.running_mean)
            nn.init.uniform_(norm.running_var, 0.5, 2)

    def forward(self, x):
        y = self.stem(x)
        y = functional.relu(self.norm(self.twice(y)) + y)
        y += self.twice(y)
        low = self.pool(y)
        up = functional.interpolate(low, scale_factor=2.0)
        both = torch.cat([y, up], 1)
        return {"classes": self.head(both.mean((2, 3))), "map": both.sigmoid()}


class Words(nn.Module):
    """Attention over an embedding; the head is tied to it."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.key, self.query = nn.Linear(8, 8), nn.Linear(8, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.table.weight
        self.register_buffer("mask", torch.full((6, 6), -torch.inf).triu(1))

    def forward(self, words, scale=1.0):
        x = self.norm(self.table(words))
        scores = self.query(x) @ self.key(x).transpose(1, 2) * scale + self.mask
        return self.head(functional.gelu(scores.softmax(-1) @ x))


def same(got, wanted):
    assert type(got) is type(wanted)
    for key in wanted if isinstance(wanted, dict) else [...]:
        torch.testing.assert_close(got[key], wanted[key].detach(), rtol=1e-4, atol=1e-5)
        assert got[key].stride() == wanted[key].stride()


def test_images(tmp_path):
    torch.manual_seed(1)
    model, x = Images().eval(), torch.randn(2, 3, 8, 8)
    compiled = canvas.compile(model, x)
    for given in (x, x.to(memory_format=torch.channels_last), torch.randn(1, 3, 8, 8)):
        for _ in range(2):
            same(compiled(given), model(given))
    with torch.no_grad():
        model.norm.running_var.mul_(2)
        model.twice.weight.mul_(1.5)
    same(compiled(x), model(x))
    shared = canvas.compile(model, x, threads=2)
    assert torch.equal(shared(x)["map"], compiled(x)["map"])
    report = compiled.report(3)
    assert len(report.groups) >= 4 and sum(group.flops for group in report.groups) > 1e5
    compiled.save(tmp_path / "home")
    readme = (tmp_path / "home/README.md").read_text().splitlines()
    commands = [line.split() for line in readme if line.startswith("    ")]
    for command in commands:
        done = subprocess.run(command, cwd=tmp_path / "home", check=True, capture_output=True)
    for line in done.stdout.decode().splitlines():
        words = line.split()
        assert float(words[6]) <= 1e-4 * float(words[8]) > 0


def test_words():
    torch.manual_seed(1)
    model, words = Words().eval(), torch.randint(11, (2, 6))
    compiled = canvas.compile(model, {"words": words, "scale": 0.5})
    for _ in range(2):
        same(compiled(words=words, scale=0.5), model(words, 0.5))
    with pytest.raises(canvas.CanvasError, match="holds indices from 0 to 11, outside of 0 to 10"):
        compiled(words=words.clone().fill_(11) * (words > 5), scale=0.5)
    fast = torch.compile(model, backend="canvas")
    for _ in range(2):
        same(fast(words), model(words))
    _load_twice(model)
    same(fast(words), model(words))
    same(compiled(words=words, scale=0.5), model(words, 0.5))


def _load_twice(model):
    model.load_state_dict({key: value * 2 for key, value in model.state_dict().items()})


def test_a_cut_around_what_is_not_known(caplog):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), Sorted(), nn.Conv2d(4, 4, 3)).eval()
    x = torch.randn(1, 3, 8, 8)
    with caplog.at_level(logging.WARNING, "canvas"):
        compiled = canvas.compile(model, x)
    assert len(caplog.messages) == 1 and "aten.sort" in caplog.messages[0]
    for given in (x, x.to(memory_format=torch.channels_last)):
        for _ in range(2):
            same(compiled(given), model(given))
    with pytest.raises(canvas.CanvasError, match="only what is native code as a whole can be sav"):
        compiled.save("nowhere")


class Sorted(nn.Module):
    def forward(self, x):
        return x.sort(1)[0]


def test_a_found_kernel():
    torch.manual_seed(1)
    x = torch.randn(1, 8, 6, 6)
    layers = (nn.Conv2d(8, 8, 1), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
    model = canvas.convert(nn.Sequential(*layers), x).model
    model = canvas.replace(model, canvas.sample(model, x, budget="macs=0.5x", seed=1)).eval()
    compiled = canvas.compile(model, x)
    same(compiled(x), model(x))
    assert "kernel" in compiled.text and not compiled.report(1).left
