"""Compiled models whose inputs and outputs lie in memory in every way."""

from __future__ import annotations

import random
import subprocess

import numpy as np
import pytest
import torch
from torch import nn

import canvas
from canvas.inference import input_views, overlap
from canvas.inference.lifted_graph import lift_graph


def same(got, wanted):
    assert type(got) is type(wanted)
    for key in wanted if isinstance(wanted, dict) else [...]:
        torch.testing.assert_close(got[key], wanted[key].detach(), rtol=1e-4, atol=1e-5)
        assert got[key].stride() == wanted[key].stride()


class Branches(nn.Module):
    """Several inputs and outputs, some of which lie otherwise in memory than their axes stand."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(6, 5, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)

    def forward(self, x, y):
        z = self.conv(x)
        twice = self.norm(x) + y
        return {"conv": z, "mean": x.mean((2, 3)), "turned": y.transpose(2, 3) + 1,
                "sum": twice, "one": z[:, :1] * 2}  # fmt: skip


LAYOUTS = {
    "rows": lambda x: x,
    "channels last": lambda x: x.to(memory_format=torch.channels_last),
    "columns": lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    "images last": lambda x: x.permute(1, 2, 3, 0).contiguous().permute(3, 0, 1, 2),
    "every second": lambda x: x.repeat_interleave(2, 3)[..., ::2],
    "one image": lambda x: x[:1].expand(3, -1, -1, -1),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_in_every_layout(layout):
    torch.manual_seed(1)
    model, x, y = Branches().eval(), torch.randn(3, 6, 7, 9), torch.randn(3, 6, 7, 9)
    put = LAYOUTS[layout]
    for example in ((x, y), (put(x), y), (put(x), put(y))):
        compiled = canvas.compile(model, example)
        for given in ((put(x), y), (x, put(y)), (put(x), put(y)), (x, y)):
            for _ in range(2):
                same(compiled(*given), model(*given))


def test_channels_last_is_not_copied(monkeypatch):
    from canvas.inference import native_part

    model = nn.Sequential(nn.Conv2d(6, 5, 1), nn.ReLU()).eval()
    x = torch.randn(2, 6, 7, 7).to(memory_format=torch.channels_last)
    compiled = canvas.compile(model, x)
    wanted = compiled(x)
    assert "input_1 f32 [2, 7, 7, 6]" in compiled.text and "out " in compiled.text
    seen = []
    monkeypatch.setattr(
        native_part.NativeNetwork, "run",
        lambda self, packed, inputs, run=native_part.NativeNetwork.run:
            seen.extend(inputs) or run(self, packed, inputs),
    )  # fmt: skip
    monkeypatch.setattr(torch.Tensor, "contiguous", lambda *_: pytest.fail("a copy"))
    assert torch.equal(compiled(x), wanted)
    assert [given.data_ptr() for given in seen] == [x.data_ptr()]


def test_what_is_saved_of_channels_last(tmp_path):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Conv2d(3, 5, 3), nn.ReLU()).eval()
    x = torch.randn(1, 3, 8, 8).to(memory_format=torch.channels_last)
    canvas.compile(model, x).save(tmp_path / "home")
    example = (tmp_path / "home/example.bin").read_bytes()
    assert example[: 4 * x.numel()] == x.permute(0, 2, 3, 1).numpy().tobytes()
    for line in (tmp_path / "home/README.md").read_text().splitlines():
        if line.startswith("    "):
            subprocess.run(line.split(), cwd=tmp_path / "home", check=True, capture_output=True)


class ChangesInputs(nn.Module):
    """Answers what it changed, and a part of what it did not."""

    def forward(self, x, z):
        x.add_(1)
        part = x[:, 1:]
        part.mul_(z)
        return {"x": x, "turned": x.transpose(2, 3), "part": part, "sum": part + z, "z": z[:, ::2]}


GAPS = {
    **LAYOUTS,
    "a part": lambda x: torch.cat([x, x], 3)[..., 3 : 3 + x.shape[3]],
    "images apart": lambda x: torch.stack([x, x], 1)[:, 1],
}
del GAPS["one image"]  # elements that share memory are not changed


@pytest.mark.parametrize("backend", [False, True])
@pytest.mark.parametrize("layout", GAPS)
def test_inputs_with_gaps_are_changed_and_answered(layout, backend):
    torch.compiler.reset()
    torch.manual_seed(1)
    put, model = GAPS[layout], ChangesInputs().eval()
    x, z = torch.randn(3, 6, 7, 9), torch.randn(3, 1, 1, 1)
    compiled = (
        torch.compile(model, backend="canvas")
        if backend
        else canvas.compile(model, (put(x), z.expand(3, 5, 7, 9)))
    )
    for _ in range(2):
        ours, theirs, given = put(x.clone()), put(x.clone()), z.expand(3, 5, 7, 9)
        same(compiled(ours, given), model(theirs, given))
        torch.testing.assert_close(ours, theirs)


class Picked(nn.Module):
    def forward(self, x, row):
        return x[row], x[:, row], x.as_strided((2,), (1,), 3), torch.relu(x @ x.t())


@pytest.mark.parametrize("backend", [False, True])
def test_where_a_view_begins_is_asked_in_each_call(backend):
    """By the data, or by the storage."""
    torch.compiler.reset()
    model, x = Picked().eval(), torch.randn(4, 4)
    apart = torch.randn(25)[5:21].view(4, 4)
    made = (
        torch.compile(model, backend="canvas")
        if backend
        else canvas.compile(model, (x, torch.tensor(0)))
    )
    for given in (x, apart):
        for row in (0, 2, 1):
            at = torch.tensor(row)
            for got, wanted in zip(made(given, at), model(given, at)):
                torch.testing.assert_close(got, wanted)


def test_arrays_that_overlap_are_inputs_that_share_memory():
    z = np.arange(10, dtype="f4")
    a, b, apart = (torch.from_numpy(part) for part in (z[:5], z[3:8], z[5:]))
    compiled = canvas.compile(AddsAndDoubles().eval(), (a.clone(), b.clone()))
    with pytest.raises(canvas.CanvasError, match=r"'[ab]' and '[ab]' share memory"):
        compiled(a, b)
    doubled = 2 * apart
    assert torch.equal(compiled(a, apart)[1], doubled)


SLICES = {
    "columns": (lambda x: (x[:, :3], x[:, 3:]), False),
    "every other": (lambda x: (x[:, ::2], x[:, 1::2]), False),
    "rows": (lambda x: (x[:2], x[2:]), False),
    "blocks": (lambda x: (x[:2, :3], x[2:, 3:]), False),
    "one column in both": (lambda x: (x[:, :4], x[:, 3:]), True),
    "crossed": (lambda x: (x[::2], x[:, ::2].t()[:2, :3].t()[:2]), True),
}


@pytest.mark.parametrize("name", SLICES)
def test_slices_of_one_tensor(name):
    """Those that lie between each other are inputs as others, one of which may be changed."""
    cut, shares = SLICES[name]
    whole = torch.arange(24.0).view(4, 6)
    compiled = canvas.compile(AddsAndDoubles().eval(), tuple(x.clone() for x in cut(whole)))
    ours, theirs = whole.clone(), whole.clone()
    if shares:
        with pytest.raises(canvas.CanvasError, match=r"'[ab]' and '[ab]' share memory"):
            compiled(*cut(ours))
        assert torch.equal(ours, whole)
        return
    for _ in range(2):
        for got, wanted in zip(compiled(*cut(ours)), AddsAndDoubles()(*cut(theirs))):
            assert torch.equal(got, wanted)
        assert torch.equal(ours, theirs)


def test_which_tensors_overlap():
    """Random views of one memory, beside the sets of their places."""
    draw, memory = random.Random(1), torch.arange(48.0)
    for _ in range(300):
        shapes = [[draw.randint(1, 3) for _ in range(draw.randint(0, 3))] for _ in range(2)]
        views = [
            memory.as_strided(shape, [draw.randint(0, 6) for _ in shape], draw.randint(0, 9))
            for shape in shapes
        ]
        places = [{int(at) for at in view.flatten()} for view in views]
        assert overlap.overlap(*views) == bool(places[0] & places[1])
        assert overlap.overlaps_itself(views[0]) == (len(places[0]) < views[0].numel())
    other = torch.from_numpy(np.frombuffer(memory.numpy().data, dtype="i2"))
    assert overlap.overlap(memory[3:4], other[7:]) and not overlap.overlap(memory[3:4], other[8:])


class AddsAndDoubles(nn.Module):
    def forward(self, a, b):
        return a.add_(1), b * 2


def test_conjugates_are_compared():
    c = torch.complex(torch.randn(3), torch.randn(3))
    for model, given in ((Conjugate(), c), (Conjugate(), c.conj())):
        assert torch.equal(canvas.compile(model.eval(), (given,))(given), model(given))


class Conjugate(nn.Module):
    def forward(self, a):
        return a[1:].conj()


VIEWS = {
    "turned": lambda s, x, i: x.t(),
    "a part": lambda s, x, i: x[:, 1:],
    "one row": lambda s, x, i: x[1],
    "every second, turned": lambda s, x, i: x[:, ::2].t(),
    "flat": lambda s, x, i: x.view(-1),
    "in other words": lambda s, x, i: x.view(torch.int32),
    "of reshape": lambda s, x, i: x.reshape(2, -1),
    "several": lambda s, x, i: x.split(2, 1),
    "expanded": lambda s, x, i: x[None].expand(3, -1, -1),
    "diagonal": lambda s, x, i: x.diagonal(),
    "by strides": lambda s, x, i: x.as_strided((2, 2), (1, 2), 1),
    "twice": lambda s, x, i: (x.t(), x.t()),
    "of two": lambda s, x, i: (x.t(), i.t(), x, i[:, 0]),
    "also read": lambda s, x, i: (x.t(), x.t() @ s.weight),
}
COPIES = {
    "a row by an index": lambda s, x, i: x[i[0, 0]],
    "rows by indices": lambda s, x, i: x[i[0]],
    "of a weight": lambda s, x, i: s.weight[1:],
    "of a result": lambda s, x, i: (x * 2)[:, 1:],
    "of reshape that copies": lambda s, x, i: x.t().reshape(-1),
    "of a clone": lambda s, x, i: x.t().clone(),
}


class Answers(nn.Module):
    def __init__(self, function, works):
        super().__init__()
        self.function, self.works = function, works
        self.weight = nn.Parameter(torch.randn(4, 6))

    def forward(self, x, i):
        y = self.function(self, x, i)
        y = y if isinstance(y, tuple) else (y,)
        return (*y, nn.functional.linear(x, self.weight)) if self.works else y


def memory(value, *given):
    """The inputs whose memory it has."""
    return [i for i, one in enumerate(given) if one.untyped_storage().data_ptr() ==
            value.untyped_storage().data_ptr()]  # fmt: skip


@pytest.mark.parametrize("works", [True, False], ids=["beside work", "alone"])
@pytest.mark.parametrize("name", [*VIEWS, *COPIES])
@pytest.mark.parametrize("backend", [True, False], ids=["backend", "compile"])
def test_views_of_inputs_are_views(backend, name, works):
    """Inputs that begin elsewhere, and indices of other values, have other views."""
    torch.compiler.reset()
    torch.manual_seed(1)
    model = Answers({**VIEWS, **COPIES}[name], works).eval()
    x, i = torch.randn(9, 6), torch.tensor([[0, 1], [2, 3], [1, 1]])
    with torch.no_grad():
        example = (x[:4], i)
        made = (
            torch.compile(model, backend="canvas") if backend else canvas.compile(model, example)
        )
        for given in (example, (x[3:7], i + 0), (x[5:], (i + 1) % 4)):
            for _ in range(2):
                got, wanted = made(*given), model(*given)
                assert len(got) == len(wanted)
                for ours, theirs in zip(got, wanted):
                    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
                    assert ours.stride() == theirs.stride()
                    if name in VIEWS:
                        assert memory(ours, *given) == memory(theirs, *given)
                        shared = memory(ours, *given)
                        assert not shared or ours.storage_offset() == theirs.storage_offset()


def test_views_of_inputs_that_lie_otherwise():
    model, x = Answers(VIEWS["of reshape"], True).eval(), torch.randn(4, 6)
    compiled, i = canvas.compile(model, (x, x)), torch.randn(4, 6)
    for given in (x, x.t().contiguous().t(), torch.cat([x, x], 1)[:, :6], x):
        got, wanted = compiled(given, i), model(given, i)
        for ours, theirs in zip(got, wanted):
            torch.testing.assert_close(ours, theirs.detach())
            assert ours.stride() == theirs.stride()
        assert memory(got[0], given) == memory(wanted[0], given)


def test_views_of_inputs_that_share_memory():
    model, x, z = Answers(VIEWS["of two"], True).eval(), torch.randn(4, 6), torch.randn(4, 6)
    for example in ((x, x), (x, z)):
        compiled = canvas.compile(model, example)
        for given in ((x, x), (x, z), (z, x)):
            for ours, theirs in zip(compiled(*given), model(*given)):
                assert memory(ours, *given) == memory(theirs, *given)
                torch.testing.assert_close(ours, theirs.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name, apart", [("of reshape", True), ("of reshape that copies", False)])
def test_what_copies_stays_native(name, apart):
    model = Answers({**VIEWS, **COPIES}[name], True).eval()
    lifted = lift_graph(model, (torch.randn(4, 6), torch.tensor([[0, 1]])), {}, "the model")
    assert bool(input_views.views_apart(lifted)) == apart


def test_what_begins_where_data_says_is_no_view():
    graph = torch.fx.Graph()
    x, i = graph.placeholder("x"), graph.placeholder("i")
    select = torch.ops.aten.select.int
    assert input_views._is_view(graph.call_function(select, (x, 0, 1)))
    assert not input_views._is_view(graph.call_function(select, (x, 0, i)))


class Keeps(nn.Module):
    """A buffer that is given a view of an input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("last", torch.zeros(6, 4))

    def forward(self, x):
        y = x + self.last.t()
        self.last = x.t()
        return y, x[1:]


def test_buffers_have_memory_of_their_own():
    model, x = Keeps().eval(), torch.randn(4, 6)
    compiled = canvas.compile(model, x)
    for _ in range(2):
        before = model.last.clone()
        y, part = compiled(x)
        torch.testing.assert_close(y, x + before.t())
        assert torch.equal(model.last, x.t()) and not memory(model.last, x)
        assert memory(part, x) == [0]


def test_views_are_no_operators_that_stay_in_pytorch(caplog, monkeypatch):
    from canvas.inference import notices

    monkeypatch.setattr(notices, "_shown", set())
    compiled = canvas.compile(Answers(VIEWS["a part"], True).eval(), (torch.ones(4, 6),) * 2)
    assert not caplog.messages and compiled._example_size().direct is not None


def test_what_is_saved_has_no_views(tmp_path):
    torch.manual_seed(1)
    model, x = Answers(VIEWS["also read"], False).eval(), torch.randn(4, 6)
    model.weight = nn.Parameter(torch.randn(4, 3))
    canvas.compile(model, (x, x)).save(tmp_path / "home")
    for line in (tmp_path / "home/README.md").read_text().splitlines():
        if line.startswith("    "):
            subprocess.run(line.split(), cwd=tmp_path / "home", check=True, capture_output=True)
