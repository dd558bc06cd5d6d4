"""Operators in place, as relu_, without PyTorch's decompositions where that is safe."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from network_interpreter import differences
from torch import Tensor, nn
from torch.export import ExportedProgram

from canvas import aten

BOUND = 2e-5


class Small(nn.Module):
    """A convolution, and what the case does with its result."""

    def __init__(self, rest: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.conv, self.norm, self.rest = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), rest

    def forward(self, x: Tensor) -> Tensor:
        return self.rest(self.norm(self.conv(x)))


def shared(x: Tensor) -> Tensor:
    y = torch.add(x, 1)
    y.relu_()
    return x + y


def read_before(x: Tensor) -> Tensor:
    before = torch.mul(x, 2)
    return before + F.relu(x, inplace=True)


def read_after(x: Tensor) -> Tensor:
    changed = x.relu_()
    return x * changed + x


def two_times(x: Tensor) -> Tensor:
    x.add_(1)
    x.mul_(x.sigmoid())
    return x - 0.5


def view_before(x: Tensor) -> Tensor:
    seen = x.flatten(1)
    x.relu_()
    return seen - 0.25


def view_of_it(x: Tensor) -> Tensor:
    x.transpose(2, 3).relu_()
    return x - 0.25


def row_read_before(x: Tensor) -> Tensor:
    row = x[:, 0]
    x.add_(2)
    return row * 2


def wider(x: Tensor) -> Tensor:
    return x.mul_(torch.full((4, 1, 1), 0.7, dtype=torch.float64)).exp() / 3


def answered(x: Tensor) -> Tensor:
    x.relu_()
    return x


def given(x: Tensor) -> Tensor:
    return F.hardtanh(x, -0.5, 0.5, inplace=True).clamp_(-0.25, 0.25)


CASES = {  # how often PyTorch has to decompose; None: whether it does is not said
    shared: 0, read_before: 0, read_after: 0, two_times: 0, given: None, answered: None,
    view_before: 1, view_of_it: 1, wider: 1, row_read_before: 1,
}  # fmt: skip


@pytest.mark.parametrize("rest", CASES, ids=lambda rest: rest.__name__)
def test_values(rest: Callable[[Tensor], Tensor], monkeypatch: pytest.MonkeyPatch) -> None:
    decomposed = []
    real = ExportedProgram.run_decompositions

    def counted(self: ExportedProgram, *args: object) -> ExportedProgram:
        decomposed.append(self)
        return real(self, *args)

    torch.manual_seed(3)
    model, x = Small(rest).eval(), torch.randn(2, 3, 6, 7)
    monkeypatch.setattr(ExportedProgram, "run_decompositions", counted)
    exported = aten.export(model, (x,))
    with torch.no_grad():
        wanted = model(x)
        assert torch.allclose(exported.module()(x), wanted, atol=1e-6)
    if rest is not wider:  # doubles are no network of ours
        assert max(differences(aten.import_graph(exported), [x], [wanted])) < BOUND
    if CASES[rest] is not None:
        assert len(decomposed) == CASES[rest]
