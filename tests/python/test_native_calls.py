"""Calls of a compiled network one after another, whose inputs lie in memory in other ways: what
was known of the last call may not be taken for granted.
"""

from __future__ import annotations

import ctypes
import itertools
import random
import struct

import pytest
import torch
from torch import nn

import canvas
from canvas import _core
from canvas.inference import compiled_network, new_tensors, tensor_access
from canvas.inference.native_network import DTYPES

DIRECT = tensor_access.direct()
SIZES = (2, 3, 4, 5)


class Two(nn.Module):
    """Two inputs, two outputs, one of which lies as its input does."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(3, 1, 1) + 1)

    def forward(self, x, y):
        return x * self.scale + y, (x - 2 * y).mean((2, 3))


def negative(x):
    """The same values, whose signs PyTorch keeps apart."""
    made = torch.complex(torch.zeros_like(x), -x).conj().imag
    return made.as_strided(x.shape, made.stride())


def gaps(x):
    return torch.repeat_interleave(x, 2, -1)[..., ::2]


LAYOUTS = {
    "row-major": lambda x: x.contiguous(),
    "channels last": lambda x: x.contiguous(memory_format=torch.channels_last),
    "gaps": gaps,
    "signs apart": negative,
    "a parameter": lambda x: nn.Parameter(x.contiguous(), requires_grad=False),
    "in the midst": lambda x: torch.cat([x, x])[2:],
    "zeros": lambda x: torch._efficientzerotensor(SIZES),
    "one for all": lambda x: x[:1, :1, :1, :1].expand(SIZES),
    "larger batch": lambda x: torch.cat([x, x]),
}


@pytest.fixture(scope="module")
def two():
    model = Two().eval()
    return model, canvas.compile(model, (torch.randn(SIZES), torch.randn(SIZES)))


def check(model, compiled, x, y):
    with torch.no_grad():
        for got, wanted in zip(compiled(x, y), model(x, y)):
            torch.testing.assert_close(got, wanted)
            if not x._is_zerotensor() and not y._is_zerotensor():  # eager's lie as the other input
                assert got.stride() == wanted.stride()


@pytest.mark.parametrize("asked", ["directly", "by attributes"])
def test_layouts_in_any_order(two, monkeypatch, asked):
    model, compiled = two
    if asked == "by attributes":
        monkeypatch.setattr(tensor_access, "direct", lambda: b"")
    drawn = random.Random(7)
    names = [name for name in LAYOUTS if name != "larger batch"]
    pairs = list(itertools.product(names, names))
    drawn.shuffle(pairs)
    for first, second in pairs[:40]:
        for turn in range(2):
            x, y = LAYOUTS[first](torch.randn(SIZES)), LAYOUTS[second](torch.randn(SIZES))
            check(model, compiled, x, y)
            if turn:
                both = LAYOUTS["larger batch"]
                check(model, compiled, both(torch.randn(SIZES)), both(torch.randn(SIZES)))
    check(model, compiled, *torch.randn(2, *SIZES))


def test_the_same_layout_is_known(two, monkeypatch):
    """Without a look at attributes; and what is no longer so is looked up."""
    _, compiled = two
    x, y = torch.randn(2, *SIZES)
    compiled(x, y)
    assert compiled._last.layout.in_form and compiled._last.fits((y, x))
    for name, lie in LAYOUTS.items():
        if name not in ("row-major", "in the midst"):
            assert not compiled._last.fits((x, lie(y))), name
    assert not compiled._last.fits((x,)) and not compiled._last.fits((x, y, y))
    with torch.no_grad():
        assert not compiled._last.fits((x, y))
    compiled(gaps(x), y)
    assert compiled._last.fits((gaps(y), x)) and not compiled._last.layout.in_form


def test_layouts_under_torch_compile():
    """Of its graphs, which are compiled for other layouts anew."""
    model = Two().eval()
    compiled = torch.compile(model, backend="canvas")
    for name in ("row-major", "gaps", "signs apart", "row-major"):
        for _ in range(3):
            x, y = (LAYOUTS[name](torch.randn(SIZES)) for _ in range(2))
            with torch.no_grad():
                for got, wanted in zip(compiled(x, y), model(x, y)):
                    torch.testing.assert_close(got, wanted)
    torch._dynamo.reset()


def test_gradients_are_looked_for_in_every_call(two):
    _, compiled = two
    x, y = torch.randn(2, *SIZES)
    compiled(x, y)
    y.requires_grad_()
    with pytest.raises(canvas.CanvasError, match="input 'y' requires a gradient"):
        compiled(x, y)
    with torch.no_grad():
        compiled(x, y)
    assert not compiled(x, y.detach())[0].requires_grad


@pytest.mark.parametrize(
    "wrong, words",
    [
        (torch.zeros(SIZES, device="meta"), "is on the device 'meta'"),
        (torch.zeros(SIZES).to_sparse(), "is sparse"),
        (torch.zeros(SIZES).double(), "is of float64"),
        (torch.zeros(2, 3, 4, 6), r"has sizes \[2, 3, 4, 6\]"),
        (torch.zeros(2, 3, 4, 5, 1), r"has sizes \[2, 3, 4, 5, 1\]"),
        (1.5, "is 1.5, compiled for a tensor"),
        (None, "is None, compiled for a tensor"),
    ],
)
def test_what_does_not_fit_after_what_did(two, wrong, words):
    _, compiled = two
    x, y = torch.randn(2, *SIZES)
    compiled(x, y)
    with pytest.raises(canvas.CanvasError, match=f"input 'y' {words}"):
        compiled(x, wrong)
    with pytest.raises(canvas.CanvasError):
        compiled(wrong, y)
    compiled(x, y)


def test_nested_tensors(two, capfd):
    """Dense as PyTorch says, and without sizes."""
    _, compiled = two
    x, y = torch.randn(2, *SIZES)
    compiled(x, y)
    nested = torch.nested.nested_tensor([torch.randn(3, 4, 5), torch.randn(3, 4, 6)])
    with pytest.raises((canvas.CanvasError, RuntimeError)):
        compiled(x, nested)
    assert capfd.readouterr().err == ""


def test_outputs_belong_to_the_mode_of_the_call(two):
    _, compiled = two
    x, y = torch.randn(2, *SIZES)
    with torch.inference_mode():
        assert compiled(x, y)[0].is_inference()
    assert not compiled(x, y)[0].is_inference()
    with torch.device("meta"):
        assert compiled(x, y)[0].device.type == "cpu"
    first = compiled(x, y)[0]
    kept = first.clone()
    compiled(y, x)
    assert torch.equal(first, kept)


# ---- models that change between calls -----------------------------------------------------------


class Returns(nn.Module):
    def __init__(self, function, **held):
        super().__init__()
        self.function = function
        for name, value in held.items():
            setattr(self, name, value)

    def forward(self, *given):
        return self.function(self, *given)


def returns(function, **held):
    return Returns(function, **held).eval()


def test_what_a_slow_thread_knew_of_the_model_is_not_taken():
    """It may write down what served its call after another one has seen that the model changed."""
    model, x = nn.Linear(4, 3).eval(), torch.randn(2, 4)
    compiled = canvas.compile(model, x)
    compiled(x)
    before = compiled._last
    model.weight = nn.Parameter(torch.randn(3, 4))
    torch.testing.assert_close(compiled(x), model(x).detach())
    compiled._last = before
    for _ in range(2):
        torch.testing.assert_close(compiled(x), model(x).detach())
    assert compiled._last.state is compiled._state


def test_elements_that_change_places_change_sums():
    """At any distance: no two places of a block are treated alike."""
    drawn = random.Random(3)
    block = torch.randn(1024)
    for distance in range(1, 1024):
        for _ in range(400 if distance < 64 else 4):
            at = drawn.randrange(1024 - distance)
            blocks = _core.watch_blocks(struct.pack("2Q", block.data_ptr(), 4096))
            values = block[at].item(), block[at + distance].item()
            block[at + distance], block[at] = values
            assert _core.watch_blocks(struct.pack("2Q", block.data_ptr(), 4096)) != blocks


def test_rows_of_weights_that_change_places():
    for columns, at in [(24, 14), (48, 5), (72, 70)]:
        model, x = nn.Linear(columns, 8, bias=False).eval(), torch.randn(4, columns)
        compiled = canvas.compile(model, x)
        for row in range(7):
            compiled(x)
            column = model.weight.data[:, at]
            column[row : row + 2] = column[row : row + 2].flip(0).clone()
            torch.testing.assert_close(compiled(x), model(x).detach())


def test_modules_that_were_empty():
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Sequential()).eval(), torch.randn(3, 4)
    compiled = canvas.compile(model, x)
    compiled(x)
    model[1].append(nn.Linear(4, 2))
    model.eval()
    torch.testing.assert_close(compiled(x), model(x).detach())
    bare = returns(lambda self, x: x * 2 if self.w is None else x * self.w)
    bare.register_parameter("w", None)
    compiled = canvas.compile(bare, x)
    compiled(x)
    bare.w = nn.Parameter(torch.randn(4))
    torch.testing.assert_close(compiled(x), bare(x).detach())


@pytest.mark.parametrize("asked", ["directly", "by attributes"])
def test_signs_of_a_weight(monkeypatch, asked):
    if asked == "by attributes":
        monkeypatch.setattr(tensor_access, "direct", lambda: b"")
    numbers = torch.randn(4, dtype=torch.complex64)
    model, x = returns(lambda self, x: x * self.w, w=nn.Parameter(torch.zeros(4))), torch.randn(4)
    model.w.data = numbers.imag
    compiled = canvas.compile(model, x)
    compiled(x)
    model.w.data = numbers.conj().imag
    torch.testing.assert_close(compiled(x), (x * -numbers.imag))


def test_outputs_follow_weights_that_lie_otherwise():
    model, x = nn.Conv2d(3, 8, 3, padding=1).eval(), torch.randn(SIZES)
    compiled = canvas.compile(model, x)
    compiled(x), compiled(x)
    for form in (torch.channels_last, torch.contiguous_format):
        model.to(memory_format=form)
        for _ in range(2):
            check_one(compiled(x), model(x).detach())


def check_one(got, wanted):
    torch.testing.assert_close(got, wanted)
    assert got.stride() == wanted.stride()


def test_a_buffer_under_inference_mode_is_one_outside():
    def counts(self, x):
        self.n = self.n + 1
        return x * self.n

    model = returns(counts)
    model.register_buffer("n", torch.zeros(4))
    x = torch.ones(4)
    compiled = canvas.compile(model, x)
    for call in range(1, 5):
        with torch.inference_mode(call < 4):
            assert compiled(x).tolist() == [call] * 4


def test_a_parameter_that_is_returned_is_itself():
    model = returns(lambda self, x, y: (x, y + 1))
    x, y = nn.Parameter(torch.ones(3)), torch.ones(3)
    compiled = canvas.compile(model, (x.detach(), y))
    with torch.no_grad():
        for _ in range(2):
            assert compiled(x, y)[0] is x


def test_zeros_without_memory_beside_a_buffer_that_changes():
    def adds(self, x):
        self.n.add_(1)
        return x + self.n

    model = returns(adds)
    model.register_buffer("n", torch.zeros(3))
    compiled = canvas.compile(model, torch.ones(3))
    for call in range(1, 3):
        assert compiled(torch._efficientzerotensor((3,))).tolist() == [call] * 3


def test_layouts_that_are_known_are_not_too_many(monkeypatch):
    monkeypatch.setattr(compiled_network, "LAYOUTS", 4)
    model = nn.ReLU().eval()
    x = torch.randn(2, 3)
    compiled = canvas.compile(model, x)
    for step in range(3, 20):
        lies = torch.randn(60).as_strided((2, 3), (step, 1))
        torch.testing.assert_close(compiled(lies), model(lies))
    assert len(compiled._ready) == 4


# ---- new tensors --------------------------------------------------------------------------------


def test_new_tensors_are_those_of_torch():
    assert new_tensors.empty is not new_tensors.by_torch
    for dtype, sizes in itertools.product(DTYPES.values(), [(), (3,), (2, 3, 1, 4, 2, 2, 2)]):
        strides = torch.empty(sizes).stride()
        made = new_tensors.empty(sizes, strides, dtype)
        with torch.device("meta"):
            wanted = new_tensors.by_torch(sizes, strides, dtype)
        assert made.device.type == wanted.device.type == "cpu"
        assert (made.shape, made.stride(), made.dtype) == (sizes, strides, dtype)
        assert (wanted.shape, wanted.stride(), wanted.dtype) == (sizes, strides, dtype)
        assert made.data_ptr() % 64 == 0 or made.numel() * made.itemsize < 64


@pytest.mark.parametrize("other", [None, lambda *_: torch.zeros(2, 3), lambda: None])
def test_another_pytorch_makes_them_by_its_own_function(monkeypatch, other):
    monkeypatch.setattr(torch._C._dynamo.guards, "_empty_strided_cpu", other)
    assert new_tensors._empty() is new_tensors.by_torch
    monkeypatch.delattr(torch._C._dynamo.guards, "_empty_strided_cpu")
    assert new_tensors._empty() is new_tensors.by_torch


# ---- the extension ------------------------------------------------------------------------------

RUN = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 5)


@pytest.mark.parametrize("direct", [DIRECT, b""], ids=["directly", "by attributes"])
@pytest.mark.parametrize("count", [1, 16, 40])
def test_code_gets_the_addresses_of_tensors(direct, count):
    given = [torch.ones(3) for _ in range(count)]
    made = tuple(torch.ones(2) for _ in range(count))
    seen = []

    def run(weights, packed, inputs, outputs, arena):
        seen.extend([weights, packed, arena])
        for pointers in (inputs, outputs):
            seen.extend((ctypes.c_void_p * count).from_address(pointers))
        return 7

    called = RUN(run)
    at = ctypes.cast(called, ctypes.c_void_p).value
    assert _core.call_run(at, 16, 32, 48, given, made, direct) == 7
    assert seen == [16, 32, 48, *(tensor.data_ptr() for tensor in (*given, *made))]


def test_layouts_of_tensors():
    x, y = torch.zeros(2, 3), torch.zeros(4)
    held = _core.call_layouts([x, y], DIRECT)
    assert _core.call_same_layouts((torch.ones(2, 3), torch.ones(4)), DIRECT, held)
    others = [[x], [y, x], [x, y, y], [], [x, 1], [x, torch.zeros(4, 1)], [x, torch.zeros(5)]]
    for other in [*others, [x.t().contiguous().t(), y], [x.int(), y], [nn.Parameter(x), y]]:
        assert not _core.call_same_layouts(other, DIRECT, held)
    assert not _core.call_same_layouts([x, y], b"", held)
    assert not _core.call_same_layouts([x, y], DIRECT, held[:-8])
    assert not _core.call_same_layouts([], DIRECT, b"")
    for other in [[1], [x, None], [torch.zeros(2, device="meta")]]:
        assert _core.call_layouts(other, DIRECT) == b""
    assert _core.call_layouts([x], b"") == _core.call_layouts([], DIRECT) == b""


def test_what_is_called_is_of_the_right_kind():
    x = torch.zeros(2)
    for call in [
        lambda: _core.call_layouts([x]),
        lambda: _core.call_layouts(x, DIRECT),
        lambda: _core.call_layouts([x], 1),
        lambda: _core.call_same_layouts([x], DIRECT, 1),
        lambda: _core.call_same_layouts(1, DIRECT, b""),
        lambda: _core.call_run(1, 2, 3, 4, [x], [x]),
        lambda: _core.call_run(None, 2, 3, 4, [x], [x], b""),
        lambda: _core.call_run(1, 2, 3, 4, x, [x], b""),
        lambda: _core.call_run(1, 2, 3, 4, [x], x, b""),
        lambda: _core.call_run(1, 2, 3, 4, [x], [x], 1),
    ]:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(AttributeError):
        _core.call_run(1, 2, 3, 4, [1], [x], DIRECT)
    gone = torch.zeros(3)
    gone.untyped_storage().resize_(0)
    with pytest.raises(ValueError, match="a tensor has no memory"):
        _core.call_run(1, 2, 3, 4, [gone], [x], DIRECT)
