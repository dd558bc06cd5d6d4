"""canvas.compile with a stand-in for the compiler (fake_native): what it takes and refuses."""

from __future__ import annotations

import copy
import gc
import logging
import pickle
import struct
import threading
import weakref

import fake_native
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.fx.experimental.proxy_tensor import make_fx

import canvas
from canvas.inference import (
    notices,
    specialization,
    tensor_access,
    verify_first_call,
    watched_weights,
)


@pytest.fixture(autouse=True)
def native(monkeypatch):
    fake_native.install(monkeypatch)
    monkeypatch.setattr(notices, "_shown", set())


class Net(nn.Module):
    """Convolution, norm, dropout, in-place operators, a module called twice, tied weights."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.norm = nn.BatchNorm2d(3)
        self.act = nn.ReLU(inplace=True)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(3, 3)
        self.tied = nn.Linear(3, 3)
        self.tied.weight = self.head.weight
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x):
        y = self.act(self.norm(self.conv(self.conv(x))))
        y += 1
        y = self.drop(y).mean((2, 3))
        return self.tied(self.head(y)) + self.shift


class Returns(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function
        self.layer = nn.Linear(4, 4)

    def forward(self, *given, **named):
        return self.function(self, *given, **named)


def net():
    return Net().eval()


def returns(function):
    return Returns(function).eval()


def image(n=2):
    return torch.randn(n, 3, 6, 6)


def same(got, wanted):
    """Equal up to rounding, in the same form, without gradients, in the same strides."""
    if isinstance(wanted, torch.Tensor):
        torch.testing.assert_close(got, wanted.detach())
        assert got.stride() == wanted.stride() and not got.requires_grad
    elif isinstance(wanted, dict):
        assert list(got) == list(wanted)
        for key in wanted:
            same(got[key], wanted[key])
    elif isinstance(wanted, (list, tuple)):
        assert type(got) is type(wanted) and len(got) == len(wanted)
        for a, b in zip(got, wanted):
            same(a, b)
    else:
        assert got == wanted


def test_a_network():
    model, x = net(), image()
    compiled = canvas.compile(model, x)
    for _ in range(2):
        same(compiled(x), model(x))
    with torch.no_grad():
        same(compiled(x), model(x))
    with torch.inference_mode():
        same(compiled(x), model(x))
    assert repr(compiled) == "CompiledNetwork(Net: x float32 [2, 3, 6, 6])"
    assert "network" in compiled.text


def _counted(self, x):
    x.mul_(2)
    return self.layer(x)


x4, w4 = torch.randn(2, 4), torch.randn(3, 4)
MODELS = [  # (model, arguments, named ones)
    (lambda self, x, y: self.layer(x) @ y.t(), (x4, w4), {}),
    (lambda self, x: (self.layer(x), x.sum(1)), (x4,), {}),
    (lambda self, x: {"b": self.layer(x), "a": [x, None, 3]}, (x4,), {}),
    (lambda self, x, k=1.0: self.layer(x) * k, (), {"x": x4, "k": 2.0}),
    (lambda self, x, k=1.0, mask=None: self.layer(x) + mask, (), {"mask": x4, "x": x4}),
    (lambda self, pair: pair["a"] + self.layer(pair["b"][0]), ({"a": x4, "b": (x4,)},), {}),
    (lambda self, x: x, (x4,), {}),
    (lambda self: self.layer.weight * 2, (), {}),
    (lambda self: self.layer.weight, (), {}),
    (lambda self, x: (self.layer(x),) * 2, (x4,), {}),
    (lambda self, x: self.layer(x).relu_().add_(1), (x4,), {}),
    (lambda self, x: self.layer(x).sin(), (x4,), {}),
    (lambda self, x: self.layer(self.layer(x).sin()), (x4,), {}),
    (lambda self, x: self.layer(torch.rand(2, 4) + x), (x4,), {}),
    (lambda self, x: x.sin(), (x4,), {}),
]


@pytest.mark.parametrize("row", range(len(MODELS)))
def test_forms_of_models(row):
    function, args, kwargs = MODELS[row]
    model = returns(function)
    compiled = canvas.compile(model, kwargs or args)
    for _ in range(2):
        torch.manual_seed(1)
        got = compiled(*args, **kwargs)
        torch.manual_seed(1)
        same(got, model(*args, **kwargs))


def test_inputs_by_name_or_place():
    model = returns(None)
    model.forward = lambda x, y, scale=1.0: model.layer(x) * scale + y
    by_name = canvas.compile(model, {"x": x4, "y": x4 + 1})
    by_place = canvas.compile(model, (x4, x4 + 1))
    wanted = model(x4, x4 + 1)
    for compiled in (by_name, by_place):
        same(compiled(x4, x4 + 1), wanted)
        same(compiled(x4, y=x4 + 1), wanted)
        same(compiled(y=x4 + 1, x=x4), wanted)


def test_what_is_changed_in_place():
    model = returns(_counted)
    compiled = canvas.compile(model, x4.clone())
    a, b = x4.clone(), x4.clone()
    for _ in range(2):
        same(compiled(a), model(b))
        same(a, b)
    model = returns(lambda self, x: self.layer(x) + self.count.add_(1))
    model.register_buffer("count", torch.zeros(()))
    other = copy.deepcopy(model)
    compiled = canvas.compile(model, x4)
    for _ in range(3):
        same(compiled(x4), other(x4))
    assert model.count == 3


class Counts(nn.Module):
    """Buffers that get other tensors, the first of which is None."""

    def __init__(self, function, persistent=True):
        super().__init__()
        self.register_buffer("none", None)
        self.register_buffer("n", torch.ones(()), persistent)
        self.register_buffer("last", torch.zeros(2, 4))
        self.layer = nn.Linear(4, 4)
        self.function = function

    def forward(self, x):
        return self.layer(self.function(self, x))


def _plus_one(self, x):
    self.n = self.n + 1
    return x * self.n


def _in_place_too(self, x):
    self.n.add_(1)
    self.n = self.n * 2
    self.n.sub_(1)
    return x + self.n


def _keeps(self, x):
    y = x + self.last
    self.last = x
    return y


def _swaps(self, x):
    self.n, self.last = self.last, self.n
    return x + self.n


def _grows(self, x):
    self.last = torch.cat([self.last, x])
    return x + self.last.sum()


REBOUND = [_plus_one, _in_place_too, _keeps, _swaps, _grows]


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("place", ["root", "within"])
@pytest.mark.parametrize("function", REBOUND)
def test_buffers_that_forward_rebinds(function, place, check, caplog):
    """Tensors that were a buffer before keep their values."""
    model = Counts(function, persistent=check).eval()
    model = nn.Sequential(nn.ReLU(), model).eval() if place == "within" else model
    other = copy.deepcopy(model)
    compiled = canvas.compile(model, x4, check=check)
    before = fake_native.FakeNetwork.made
    seen, wanted = [], []
    for turn in range(3):
        same(compiled(x4 + turn), other(x4 + turn))
        seen += model.buffers()
        wanted += other.buffers()
        for got, tensor in zip(seen, wanted):
            torch.testing.assert_close(got, tensor)
    assert compiled.report(2).rounds == 2
    for got, tensor in zip(model.buffers(), other.buffers()):
        torch.testing.assert_close(got, tensor)
    once = function not in (_swaps, _grows)
    assert (fake_native.FakeNetwork.made == before) == once == (not caplog.messages)


def test_buffers_that_are_tensors_at_times():
    words = "is a tensor only before a call of the model or only after it, which a graph cannot s"
    for function in (
        lambda self, x: (setattr(self, "n", None), x)[1],
        lambda self, x: (setattr(self, "none", x * 2), x)[1],
        lambda self, x: (self.register_buffer("other", x * 2), x)[1],
        lambda self, x: (delattr(self, "n"), x)[1],
    ):
        with pytest.raises(canvas.CanvasError, match=words):
            canvas.compile(Counts(function).eval(), x4)


@pytest.mark.parametrize("check", [True, False])
def test_weights_that_are_changed_in_place(check, tmp_path):
    """As embedding does with max_norm."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(9, 4, max_norm=0.5), nn.Linear(4, 4)).eval()
    other = copy.deepcopy(model)
    words = torch.tensor([[1, 2], [3, 4]])
    compiled = canvas.compile(model, words, check=check)
    for given in (words, words, words + 2, words + 4):
        same(compiled(given), other(given))
        same(model[0].weight.detach(), other[0].weight)
    assert model[0].weight.norm(dim=1).max() > 0.6  # of rows that nobody read
    with pytest.raises(canvas.CanvasError, match="the model changes '0\\.weight'"):
        compiled.save(tmp_path / "saved")
    model[1] = nn.Linear(4, 9)
    model[1].weight = model[0].weight
    with pytest.raises(canvas.CanvasError, match="shares memory with another one of the model, a"):
        canvas.compile(model.eval(), words)


def test_strides():
    model = returns(None)
    model.layer = nn.Conv2d(4, 4, 3).eval()
    model.forward = lambda x: model.layer(x)
    x = torch.randn(2, 4, 6, 6)
    wide = torch.randn(2, 6, 6, 8).permute(0, 3, 1, 2)[:, ::2]
    compiled = canvas.compile(model, x)
    for given in (x, x.to(memory_format=torch.channels_last), wide, x.transpose(2, 3)):
        for _ in range(2):
            same(compiled(given), model(given))
    assert len(compiled._sizes) == 3  # of the orders in which dense axes lie
    model.forward = lambda x: model.layer(x).sin()
    cut = canvas.compile(model, x)
    for given in (x, x.to(memory_format=torch.channels_last), wide):
        same(cut(given), model(given))


def test_batches_are_compiled_once_each(monkeypatch):
    from canvas.inference import compiled_network

    monkeypatch.setattr(compiled_network, "SIZES", 2)
    model = net()
    compiled = canvas.compile(model, image(1))
    before = fake_native.FakeNetwork.made
    for n in (2, 1, 2, 1, 2):
        same(compiled(x := image(n)), model(x))
    assert fake_native.FakeNetwork.made == before + 1
    compiled(image(1))
    compiled(image(3))  # in place of 2
    compiled(image(1))
    assert fake_native.FakeNetwork.made == before + 2
    compiled(image(2))
    assert fake_native.FakeNetwork.made == before + 3


# ---- weights that change ------------------------------------------------------------------------


def _load(model):
    model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()})


def _assign(model):
    state = {k: v.clone() + 1 for k, v in model.state_dict().items()}
    model.load_state_dict(state, assign=True)


def _swap(model):
    model.conv.weight.data = model.conv.weight.data * 2


def _through_data(model):
    model.conv.weight.data.mul_(2)


def _through_numpy(model):
    model.conv.weight.detach().numpy()[:] *= 2


def _in_place(model):
    with torch.no_grad():
        model.conv.weight[0, 0, 0, 0] += 1


def _parameter(model):
    model.conv.weight = nn.Parameter(model.conv.weight * 2)


def _module(model):
    model.conv = nn.Conv2d(3, 3, 1).eval()


def _buffer(model):
    model.shift = torch.zeros(3)


def _untied(model):
    model.tied.weight = nn.Parameter(model.tied.weight * 2)


def _step(model):
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    torch.optim.SGD(model.parameters(), 0.1).step()


def _format(model):
    model.to(memory_format=torch.channels_last)


@pytest.fixture(params=["directly", "by attributes"])
def asked(request, monkeypatch):
    """Both ways of asking PyTorch for the memory and the version of a tensor."""
    assert len(tensor_access.direct()) == tensor_access.SIZE
    if request.param == "by attributes":
        monkeypatch.setattr(tensor_access, "direct", lambda: b"")
    return request.param


def _swapped(model):
    """As torch.utils.swap_tensors, which refuses tensors that an export refers to."""
    other = nn.Parameter(model.conv.weight.detach() * 2)
    torch._C._swap_tensor_impl(model.conv.weight, other)


@pytest.mark.usefixtures("asked")
def test_weights_that_change_are_packed_again():
    model, x = net(), image()
    compiled = canvas.compile(model, x)
    before = fake_native.FakeNetwork.made
    changes = [_load, _swap, _swapped, _through_data, _through_numpy, _in_place, _step]
    for change in [*changes, _assign, _module, _parameter, _buffer, _untied, _format]:
        wanted = model(x)
        change(model)
        for _ in range(2):
            torch.testing.assert_close(compiled(x), model(x).detach())
        assert not torch.equal(model(x), wanted) or change is _format
        if change in changes:
            assert fake_native.FakeNetwork.made == before


def test_packing_happens_once(monkeypatch):
    model, x = net(), image()
    compiled = canvas.compile(model, x)
    compiled(x), compiled(x)
    network = compiled._example_size().parts[0].network
    assert network.packs == 1
    compiled.forget()
    compiled(x)
    assert network.packs == 2


# ---- changes that torch does not count ----------------------------------------------------------


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("size", [1, 3, 4095, 5000, 40000])
def test_one_element_of_a_tensor(size):
    """Through .data, wherever it is: at once, or when the window has come round."""
    tensors = [torch.randn(size), torch.randn(7, size), torch.ones(size, dtype=torch.int64)]
    for at, place in [
        (0, 0),
        (1, 7 * size // 2),
        (1, 7 * size - 1),
        (2, size - 1),
        (2, size // 3),
    ]:
        watched = watched_weights.WatchedWeights(tensors, "abc")
        assert watched.calls == max(1, -(-size * (4 + 28 + 8) // watched_weights.WINDOW))
        for _ in range(2 * watched.calls + 1):
            assert watched.same(tensors)
        tensors[at].view(-1).numpy()[place] += 1
        seen = [watched.same(tensors) for _ in range(watched.calls + 1)]
        assert not all(seen) and (watched.calls > 1 or not seen[0])


def test_the_window_grows_with_the_work():
    tensor = torch.randn(1 << 20)
    few, many = (watched_weights.WatchedWeights([tensor], "a", macs) for macs in (0, 1 << 30))
    assert few.calls == 64 and many.calls == 4


@pytest.mark.usefixtures("asked")
def test_elements_of_weights():
    model, x = net(), image()
    compiled = canvas.compile(model, x)
    compiled(x)
    changes = [
        lambda: model.conv.weight.data.view(-1)[31].add_(3),
        lambda: model.head.weight.data.clamp_(-0.1, 0.1),
        lambda: model.norm.running_mean.detach().numpy().__setitem__(1, 2.0),
        lambda: model.conv.weight.untyped_storage().copy_(torch.randn(81).untyped_storage()),
    ]
    for change in changes:
        change()
        torch.testing.assert_close(compiled(x), model(x).detach())


@pytest.mark.usefixtures("asked")
def test_weights_of_another_form():
    """Through .data, where no module and no parameter is another one."""
    model, x = returns(lambda self, x: self.layer(x)), x4
    compiled = canvas.compile(model, x)
    compiled(x)
    model.layer.weight.data, model.layer.bias.data = torch.randn(5, 4), torch.randn(5)
    same(compiled(x), model(x))
    model.double()
    with pytest.raises(RuntimeError, match="must have the same dtype"):  # PyTorch's own
        compiled(x)
    model.float()
    same(compiled(x), model(x))
    part = compiled._example_size().parts[0]
    model.double()
    words = (
        r"is of torch.float64 \[5, 4\] now, compiled for torch.float32 \[5, 4\]: compile the mod"
    )
    with pytest.raises(canvas.CanvasError, match=words):
        part.run([model.layer.weight, model.layer.bias], [x])
    model.float()
    model.layer.weight.untyped_storage().resize_(0)
    with pytest.raises(canvas.CanvasError, match="has no memory: its storage was resized"):
        compiled(x)


def _held(tensor):
    """What the tensor holds where it is asked directly, else 0."""
    return struct.unpack("5Q", canvas._core.watch_states([tensor], tensor_access.direct()))[1]


def test_plain_tensors_are_asked_directly():
    class Other(torch.Tensor):
        pass

    for tensor in [torch.ones(3), nn.Parameter(torch.ones(3)), torch.ones(4, 4)[1:, ::2]]:
        assert _held(tensor) == tensor._cdata
    assert not _held(torch.ones(3).as_subclass(Other))
    with torch.inference_mode():
        uncounted = torch.ones(3)
    with pytest.raises(RuntimeError, match="do not track version"):
        _held(uncounted)


TURNS = {
    "transposed": lambda data: data.t(),
    "gaps": lambda data: data.as_strided((5, 5), (2, 2)),
    "another type": lambda data: data.view(torch.int32).abs().float(),
}


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize("turn", TURNS)
def test_the_same_memory_of_a_weight_in_another_layout(turn):
    model, x = nn.Linear(5, 5).eval(), torch.randn(2, 5)
    compiled = canvas.compile(model, x)
    compiled(x)
    model.weight.data = TURNS[turn](model.weight.data)
    torch.testing.assert_close(compiled(x), model(x).detach())


@pytest.mark.usefixtures("asked")
def test_tensors_that_become_ones_of_inference_mode():
    """PyTorch's function for the version throws for those that count none."""
    with torch.inference_mode():
        uncounted = [torch.zeros(3), torch.ones(3)]
    tensors = [torch.randn(3), nn.Parameter(torch.randn(3))]
    watched = watched_weights.WatchedWeights(tensors, "ab")
    assert watched.same(tensors)
    tensors[1].data = uncounted[1]
    assert not watched.same(tensors)
    watched = watched_weights.WatchedWeights(tensors[:1], "a")
    torch.utils.swap_tensors(tensors[0], uncounted[0])
    try:
        assert not watched.same(tensors[:1])
    except RuntimeError as error:  # its attribute raises what the function throws
        assert "do not track version" in str(error)


@pytest.mark.parametrize(
    "name, other",
    [
        ("version", "no_such_function"),
        ("data_ptr", "no_such_function"),
        ("version", "_ZNK2at10TensorBase9output_nrEv"),  # 0, as the version before changes
        ("data_ptr", "aoti_torch_get_storage_offset"),
        ("strides", "aoti_torch_get_sizes"),
        ("sizes", "aoti_torch_get_strides"),
    ],
)
def test_another_pytorch_is_asked_by_attributes(monkeypatch, name, other):
    direct = tensor_access.direct.__wrapped__
    assert len(direct()) == tensor_access.SIZE
    monkeypatch.setitem(tensor_access.FUNCTIONS, name, other)
    assert direct() == b""


def test_pytorch_is_tried_on_plain_tensors():
    with torch.inference_mode(), torch.device("meta"):
        assert len(tensor_access.direct.__wrapped__()) == tensor_access.SIZE


def test_an_object_of_another_layout_is_asked_by_attributes(monkeypatch):
    def none(_):
        raise ValueError

    monkeypatch.setattr(tensor_access, "_place", none)
    assert tensor_access.direct.__wrapped__() == b""


@pytest.mark.usefixtures("asked")
def test_watching_keeps_the_implementation_of_no_tensor():
    """And PyTorch swaps only tensors whose implementation nobody else keeps."""
    tensors = [nn.Parameter(torch.ones(3)), torch.ones(4)]
    watched = watched_weights.WatchedWeights(tensors, "ab")
    assert watched.same(tensors) and [tensor._use_count() for tensor in tensors] == [1, 1]
    torch.utils.swap_tensors(tensors[0], nn.Parameter(torch.ones(3)))
    assert not watched.same(tensors)
    seen = [weakref.ref(tensor) for tensor in tensors]
    del tensors, watched
    gc.collect()
    assert [ref() for ref in seen] == [None, None]


def test_what_is_looked_at_is_of_the_right_kind():
    core = canvas._core
    table = {"a": x4, "b": None}
    assert core.watch_values([table, {}], [x4, None]) and core.watch_key([table], "b", None)
    for tables, values in [
        ([table], [x4]),
        ([table], [x4, None, 1]),
        ([], [1]),
        ([table], [1, 2]),
    ]:
        assert not core.watch_values(tables, values)
    assert not core.watch_key([table, {}], "b", None)
    assert len(core.watch_states([x4, w4], b"")) == 80
    for call in [
        lambda: core.watch_values([1], []),
        lambda: core.watch_values([table], ()),
        lambda: core.watch_key(table, "a", 1),
        lambda: core.watch_states((x4,), b""),
        lambda: core.watch_states((x4,), tensor_access.direct()),
        lambda: core.watch_same((x4,), b"", b"", b"", b"", 0, 0),
    ]:
        with pytest.raises(TypeError, match="expected a list"):
            call()
    for call in [
        lambda: core.watch_blocks([0, 8]),
        lambda: core.watch_same([x4], b"", 1, b"", b"", 0, 0),
        lambda: core.watch_same([x4], 1, b"", b"", b"", 0, 0),
        lambda: core.watch_states([x4], 1),
        lambda: core.watch_same([x4], b"", b"", b"", [], 0, 0),
    ]:
        with pytest.raises(TypeError, match="expected bytes"):
            call()
    with pytest.raises(AttributeError):
        core.watch_states([1], b"")


def test_a_plain_tensor_of_a_module():
    model = returns(lambda self, x: self.layer(x) * self.scale)
    model.scale = torch.tensor(2.0)
    compiled = canvas.compile(model, x4)
    same(compiled(x4), model(x4))
    model.scale = torch.tensor(3.0)
    same(compiled(x4), model(x4))
    model.scale.add_(1)
    same(compiled(x4), model(x4))


# ---- what is refused ----------------------------------------------------------------------------


def test_what_is_no_model(capfd):
    no_tensor = "example_input holds no tensor: pass what the model is called with"
    called = "the model cannot be called with "
    cases = [
        ((3, x4), {}, "model must be a torch.nn.Module, not 3"),
        ((net(), image()), {"threads": 0}, "threads is from 1 to 256, not 0"),
        ((net(), image()), {"check": 1}, "check is True or False, not 1"),
        ((torch.jit.script(net()), image()), {}, "model is a TorchScript module: give the"),
        ((Net(), image()), {}, "the model is in training mode, and what is compiled is for"),
        ((net().to("meta"), image()), {}, "'conv.weight' is on the device 'meta': compiled net"),
        ((net(), image().to("meta")), {}, "input 'x' is on the device 'meta': compiled networks"),
        ((net(), image(0)), {}, "input 'x' is empty, its sizes are [0, 3, 6, 6]"),
        ((net(), image().to_sparse()), {}, "input 'x' is sparse: give a dense tensor"),
        ((net(), object), {}, "not a tensor, number or text"),
        ((net(), image(1).expand(2**32, 3, 6, 6)), {}, "the inputs of the model take 1,728.0 GiB"),
        ((net(), (3, 6, 6)), {}, no_tensor + ", such as torch.randn(1, 3, 6, 6)"),
        ((net(), image().shape), {}, "such as torch.randn(2, 3, 6, 6)"),
        ((net(), [(2, 3, 6, 6)]), {}, "such as torch.randn(2, 3, 6, 6)"),
        ((net(), None), {}, no_tensor),
        ((net(), 3), {}, no_tensor),
        ((net(), "x"), {}, no_tensor),
        ((net(), image().numpy()), {}, ": torch.from_numpy makes a tensor of it"),
        ((net(), torch.randn(1, 5, 6, 6)), {}, called + "x float32 [1, 5, 6, 6]: "),
        ((nn.Linear(4, 4).eval(), torch.randn(2, 5)), {}, called + "input float32 [2, 5]: "),
        ((net(), image().to(torch.uint8)), {}, called + "x uint8 [2, 3, 6, 6]: "),
        ((net(), (image(), 1)), {}, called),
        ((net(), ()), {}, called),
        ((net().double(), image()), {}, called + "x float32 [2, 3, 6, 6]: "),
        ((returns(lambda s, x: x if x.sum() > 0 else -x), x4), {}, 'compile(model, backend="canv'),
    ]  # fmt: skip
    for given, named, words in cases:
        with pytest.raises(canvas.CanvasError) as raised:
            canvas.compile(*given, **named)
        assert words in str(raised.value) and "\n" not in str(raised.value)
    assert not capfd.readouterr().err


def _generator(self, x):
    return self.layer(x) + torch.rand(2, 4, generator=torch.Generator())


def _data(self, x):
    y = x * 1
    y.data = x * 2
    return self.layer(y)


def _data_of_weight(self, x):
    self.layer.weight.data = self.layer.weight.data * 2
    return self.layer(x)


def _view_of_data(self, x):
    y = x * 1
    y.data.add_(1)
    return self.layer(y)


def _after(name, *given):
    """A change in place of the input."""
    return lambda self, x: (getattr(x, name)(*given), self.layer(x.reshape(2, 4)))[1]


OF_SIZES = "its code calls '{}', which changes the sizes of a tensor in place: take a new tensor"
OF_DATA = "its code uses .data or .set_() of a tensor, which a graph does not hold: read .deta"
FORWARDS = [
    (_generator, "its code gives 'rand' a torch.Generator, which a graph does not hold: draw"),
    (_data, OF_DATA),
    (_data_of_weight, OF_DATA),
    (_view_of_data, OF_DATA),
    (_after("set_", torch.zeros(2, 4)), OF_DATA),
    (_after("t_"), OF_SIZES.format("t_")),
    (_after("resize_", 4, 2), OF_SIZES.format("resize_")),
    (_after("unsqueeze_", 0), OF_SIZES.format("unsqueeze_")),
]


@pytest.mark.parametrize("row", range(len(FORWARDS)))
def test_what_a_graph_does_not_hold(row):
    function, words = FORWARDS[row]
    with pytest.raises(canvas.CanvasError) as raised:
        canvas.compile(returns(function), x4.clone())
    assert str(raised.value).startswith("PyTorch cannot export the model: " + words)


def test_sizes_of_new_tensors_may_change_in_place():
    model = returns(lambda self, x: self.layer((x * 1).t_().t_()).unsqueeze_(0))
    same(canvas.compile(model, x4)(x4), model(x4))


def test_an_input_given_twice():
    model = returns(lambda self, a, b: self.layer(a.add_(b)))
    words = (
        r"'[\w.]+' and '[\w.]+' share memory, and the model changes one of them in place: give it"
    )
    both = torch.randn(2, 4)
    for given in [(both, both), (both, both[:]), (both[:], both)]:
        with pytest.raises(canvas.CanvasError, match=words):
            canvas.compile(model, given)
    with pytest.raises(canvas.CanvasError, match=words):
        canvas.compile(model, (both, both.clone()))(both, both)
    model = returns(lambda self, a, b: self.layer(a + b))
    same(canvas.compile(model, (both, both))(both, both), model(both, both))


def test_calls_that_do_not_fit():
    model, x = net(), image()
    compiled = canvas.compile(model, x)
    compiled(x)
    cases = [
        ((), {}, "arguments differ in number or form from the example's, x float32 [2, 3, 6, 6]"),
        ((x, x), {}, "arguments differ in number or form"),
        ((), {"y": x}, "arguments differ in number or form"),
        (([x],), {}, "input 'x' is a list, not a tensor, number or text"),
        ((3,), {}, "input 'x' is 3, compiled for a tensor, float32 [2, 3, 6, 6]"),
        ((x.double(),), {}, "input 'x' is of float64, compiled for float32 [2, 3, 6, 6]"),
        ((x[:, :2],), {}, "input 'x' has sizes [2, 2, 6, 6], compiled for float32 [2, 3, 6, 6]: "),
        ((x[0],), {}, "only the first, the batch, may differ"),
        ((x.to("meta"),), {}, "input 'x' is on the device 'meta': compiled networks run"),
        ((image().requires_grad_(),), {}, "input 'x' requires a gradient, which a compiled"),
    ]  # fmt: skip
    for args, kwargs, words in cases:
        with pytest.raises(canvas.CanvasError) as raised:
            compiled(*args, **kwargs)
        assert words in str(raised.value)
    with torch.no_grad():
        same(compiled(x.clone().requires_grad_()), model(x))
    with torch.autocast("cpu"), pytest.raises(canvas.CanvasError, match="autocast is on, but a"):
        compiled(x)
    model.norm.train()
    with pytest.raises(canvas.CanvasError, match="its module 'norm' is in training mode"):
        compiled(x)


def test_weights_without_meaning():
    model, x = net(), image()
    compiled = canvas.compile(model, x)
    compiled(x)
    with torch.no_grad():
        model.head.weight[0, 0] = torch.nan
    with pytest.raises(canvas.CanvasError, match=r"weight '(head|tied).weight' holds NaN"):
        compiled(x)
    model = returns(lambda self, x: self.layer(x) + torch.tensor([1, torch.nan, 1, 1]))
    words = (
        r"a constant of sizes \[4\] in the code of forward in the model itself \(Returns\) holds N"
    )
    with pytest.raises(canvas.CanvasError, match=words):
        canvas.compile(model, x4)(x4)
    with torch.inference_mode():
        model = net()
    with pytest.raises(canvas.CanvasError, match=r"was made under torch.inference_mode\(\)"):
        canvas.compile(model, x)(x)


def test_a_call_within_torch_compile():
    model, x = net(), image()
    compiled = canvas.compile(model, x)
    graphs = []
    function = torch.compile(
        lambda x: compiled(x * 2) + 1, backend=lambda graph, _: graphs.append(graph) or graph
    )
    for _ in range(2):
        torch.testing.assert_close(function(x), model(x * 2).detach() + 1)
    assert len(graphs) == 2


def _dual(call, x):
    with forward_ad.dual_level():
        return call(forward_ad.make_dual(x, x))


def _fake(call, x):
    with FakeTensorMode() as mode:
        return call(mode.from_tensor(x))


def _fake_outside(call, x):
    return call(FakeTensorMode().from_tensor(x))


OF_FUNC = "input 'input' is one of a transform of torch.func, as vmap and grad are, which cannot"
TRACED = "PyTorch is tracing, as torch.export and make_fx do, and cannot follow a compiled network"
TRANSFORMS = [
    (lambda call, x: torch.vmap(call)(x), OF_FUNC),
    (lambda call, x: torch.func.grad(lambda y: call(y).sum())(x), OF_FUNC),
    (lambda call, x: torch.func.jvp(call, (x,), (x,)), OF_FUNC),
    (lambda call, x: torch.func.vjp(call, x), OF_FUNC),
    (lambda call, x: torch.func.jacrev(call)(x), OF_FUNC),
    (lambda call, x: torch.func.functionalize(call)(x), OF_FUNC),
    (_dual, "input 'input' has a tangent of forward-mode differentiation, which a compiled netwo"),
    (_fake, TRACED),
    (lambda call, x: make_fx(call)(x), TRACED),
    (lambda call, x: torch.jit.trace(lambda y: call(y), x), TRACED),
    (lambda call, x: torch.export.export(returns(lambda self, y: call(y)), (x,)), TRACED),
    (_fake_outside, "input 'input' is of the class FakeTensor, whose operators are its own: give"),
]


@pytest.mark.parametrize("row", range(len(TRANSFORMS)))
@pytest.mark.parametrize("called", [False, True])
def test_transforms_of_pytorch_are_refused(row, called):
    transform, words = TRANSFORMS[row]
    model = nn.Linear(4, 4).eval()
    compiled = canvas.compile(model, x4)
    if called:
        compiled(x4)
    with pytest.raises(canvas.CanvasError) as raised:
        transform(compiled, x4)
    assert words in str(raised.value) and "\n" not in str(raised.value)
    same(compiled(x4), model(x4))


def test_a_tensor_beside_a_transform():
    model = nn.Linear(4, 4).eval()
    compiled = canvas.compile(model, x4)
    got = torch.vmap(lambda y: y + compiled(x4)[0])(x4)
    same(got, x4 + model(x4)[0].detach())


def test_copies_are_refused():
    compiled = canvas.compile(net(), image())
    for made in (copy.copy, copy.deepcopy):
        with pytest.raises(canvas.CanvasError, match="a compiled network is not copied"):
            made(compiled)
    with pytest.raises(canvas.CanvasError, match="a compiled network is not pickled"):
        pickle.dumps(compiled)


# ---- the first call beside PyTorch --------------------------------------------------------------


def wrong(compiled, factor):
    compiled._example_size().parts[0].network.factor = factor


def test_a_wrong_answer_is_an_error():
    compiled = canvas.compile(net(), image())
    wrong(compiled, 1.001)
    for _ in range(2):
        with pytest.raises(
            canvas.CanvasError, match=r"output '0' differs from PyTorch's by .*, m"
        ):
            compiled(image())
    wrong(compiled, torch.nan)
    with pytest.raises(canvas.CanvasError, match="differs from PyTorch's by inf"):
        compiled(image())
    wrong(compiled, 1 + 1e-7)
    compiled(image())
    unchecked = canvas.compile(net(), image(), check=False)
    wrong(unchecked, 1.001)
    unchecked(image())


def test_the_bound_follows_what_float32_is_off():
    def lost(self, x):
        return (self.layer(x) + 1e4) - 1e4

    model = returns(lost)
    compiled = canvas.compile(model, x4)
    wrong(compiled, 1 + 2e-4)
    compiled(x4)
    compiled = canvas.compile(model, x4)
    wrong(compiled, 1.1)
    with pytest.raises(canvas.CanvasError, match="more than the bound"):
        compiled(x4)


def test_numbers_that_are_none():
    compiled = canvas.compile(net(), image())
    x = image()
    x[0] = torch.nan
    assert compiled(x)[0].isnan().all() and compiled(x)[1].isfinite().all()


# ---- what stays in PyTorch ----------------------------------------------------------------------


def test_what_stays_in_pytorch_is_told_once(caplog):
    model = returns(lambda self, x: self.layer(self.layer(self.layer(x).sin()).sin()))
    with caplog.at_level(logging.WARNING, "canvas"):
        compiled = canvas.compile(model, x4)
        compiled(x4)
        compiled(torch.randn(5, 4))
        canvas.compile(model, x4)
    assert [record.getMessage() for record in caplog.records] == [
        "canvas: 2 of 5 operators stay in PyTorch: aten.sin.default: the operator is not known "
        "(2 times); 3 native parts, 4 tensors of 128 bytes between at each call"
    ]
    assert len(compiled._example_size().parts) == 3


def test_parts_that_gain_nothing_stay_in_pytorch(caplog):
    model = returns(lambda self, x: (x.sin() + 1).sin() * 2)
    with caplog.at_level(logging.WARNING, "canvas"):
        compiled = canvas.compile(model, x4)
    assert not compiled._example_size().parts
    assert caplog.messages == [
        "canvas: 4 of 4 operators stay in PyTorch: aten.sin.default: the operator is not known "
        "(2 times); parts too small to gain (2 times)"
    ]
    same(compiled(x4), model(x4))


def test_reports():
    compiled = canvas.compile(net(), image())
    report = compiled.report(3)
    for rounds in (0, -1):
        with pytest.raises(canvas.CanvasError, match=f"rounds is from 1 on, not {rounds}"):
            compiled.report(rounds)
    rows = report.to_json()["groups"]
    assert len(rows) == len(str(report).splitlines()) - 2
    assert abs(sum(row["share"] for row in rows) - 1) < 1e-6
    assert "GFLOP/s" in str(report) and rows[0]["gflops"] == pytest.approx(2.0)
    compiled = canvas.compile(returns(lambda self, x: self.layer(x).sin()), x4)
    lines = str(compiled.report(1)).splitlines()
    assert lines[-1] == "in PyTorch: aten.sin.default: the operator is not known (1)"
    assert "(PyTorch)" in lines[-3]


# ---- threads ------------------------------------------------------------------------------------


def test_calls_from_several_threads():
    model, images = net(), [image(n) for n in (1, 2, 3, 1, 2, 3)]
    compiled = canvas.compile(model, images[0])
    wanted = [model(x).detach() for x in images]
    failures = []

    def work(x, y):
        for _ in range(30):
            try:
                torch.testing.assert_close(compiled(x), y)
            except BaseException as error:
                failures.append(error)

    threads = [threading.Thread(target=work, args=pair) for pair in zip(images, wanted)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures


class Slots(nn.Module):
    __slots__ = ("factor",)

    def __init__(self, up):
        super().__init__()
        self.factor, self.layer, self.up = 2.0, nn.Linear(4, 4), [up]

    def forward(self, x):
        return self.layer(x) * self.factor + self.up[0].first(x)


class Knots(nn.Module):
    """Modules in lists, methods, a parent, tied weights, parametrizations, hooks."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.lists = {"all": [self.first, (self.second,)]}
        self.act = self._act
        self.below = Slots(self)
        self.unseen = [nn.Linear(4, 4)]
        self.norm = nn.utils.parametrizations.weight_norm(nn.Linear(4, 4))
        self.first.register_forward_hook(lambda module, given, result: result + module.bias)

    def _act(self, x):
        return self.second(x).relu()

    def forward(self, x):
        x = self.act(self.below(self.lists["all"][0](x))) + self.unseen[0](x)
        return self.norm(self.lists["all"][1][0](x))


def test_modules_that_lead_to_one_another():
    model = Knots().eval()
    compiled = canvas.compile(model, x4)
    weights = compiled._example_size().lifted.weights
    assert {"first.weight", "below.layer.bias", "norm.bias"} <= set(weights)
    same(compiled(x4), model(x4))
    with torch.no_grad():
        [p.add_(1) for p in (*model.parameters(), *model.unseen[0].parameters())]
    same(compiled(x4), model(x4))


def test_eager_calls_while_sizes_are_compiled():
    model = Knots().eval()
    wanted, failures, ended = model(x4).detach(), [], threading.Event()

    def work():
        while not ended.is_set():
            try:
                torch.testing.assert_close(model(x4).detach(), wanted)
            except BaseException as error:
                failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        compiled = canvas.compile(model, x4)
        for n in (1, 3):
            compiled(torch.randn(n, 4))
    finally:
        ended.set()
        thread.join()
    assert not failures


def test_forward_made_of_the_model_itself():
    """Code that a copy does not change: the model itself is exported."""
    model = nn.Module()
    model.layer = nn.Linear(4, 4)
    model.register_buffer("n", torch.ones(()))
    model.forward = lambda x: model.layer(x) * model.n
    compiled = canvas.compile(model.eval(), x4)
    assert "layer.weight" in compiled._example_size().lifted.weights
    with torch.no_grad():
        model.layer.weight.add_(1)
    same(compiled(x4), model(x4))

    def counts(x):
        model.n = model.n + 1
        return model.layer(x) * model.n

    model.forward = counts
    with pytest.raises(
        canvas.CanvasError, match="the buffer 'n' gets another tensor by a functio"
    ):
        canvas.compile(model, x4)
    assert type(model.n) is torch.Tensor


def test_tiles_of_four_may_be_further_off():
    """Seven times as far as the sums, which the first call must not take for a wrong answer."""
    exact = torch.linspace(-1, 1, 1000, dtype=torch.float64)
    theirs = (exact + 1e-6).float()  # what PyTorch is off by
    for off, permitted in ((12e-6, (1, 4)), (60e-6, (4,)), (200e-6, ())):
        got = (exact + off).float()
        for winograd, factor in (
            (1, verify_first_call.FACTOR),
            (4, verify_first_call.FACTOR_IN_TILES),
        ):
            try:
                verify_first_call.verify_outputs(["0"], [got], [theirs], lambda: [exact], factor)
                assert winograd in permitted
            except canvas.CanvasError as error:
                assert winograd not in permitted and "more than the bound" in str(error)


@pytest.mark.parametrize("winograd", [False, True, 2, 4])
def test_the_first_call_knows_the_tiles(monkeypatch, winograd):
    seen = []
    monkeypatch.setattr(specialization, "verify_outputs", lambda *given: seen.append(given[-1]))
    canvas.compile(nn.Linear(4, 4).eval(), torch.randn(2, 4), winograd=winograd)(torch.randn(2, 4))
    assert set(seen) == {
        verify_first_call.FACTOR_IN_TILES if winograd == 4 else verify_first_call.FACTOR
    }
