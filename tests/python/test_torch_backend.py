"""torch.compile(model, backend="canvas") with a stand-in for the compiler (fake_native)."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time

import fake_native
import pytest
import torch
import torch.fx.traceback as fx_traceback
from torch import nn
from torch.autograd import forward_ad

import canvas
from canvas import aten
from canvas.inference import locks, notices, torch_backend


@pytest.fixture(autouse=True)
def native(monkeypatch):
    fake_native.install(monkeypatch)
    monkeypatch.setattr(notices, "_shown", set())
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.drop = nn.Dropout(0.5)
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, scale=1.0):
        y = self.drop(self.second(self.first(x))) + self.shift
        y += 1
        return {"y": y * scale, "x": x, "sum": (y.sum(1), 3)}


def same(got, wanted):
    torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5)


def plain(value):
    return {k: v if k != "sum" else v[0] for k, v in value.items()}


def run(model, *args, **named):
    with torch.no_grad():
        return plain(model(*args, **named))


x4 = torch.randn(2, 4)


def test_a_network():
    model = Net().eval()
    compiled = torch.compile(model, backend="canvas")
    before = fake_native.FakeNetwork.made
    for given, named in [((x4,), {}), ((x4,), {}), ((), {"x": x4, "scale": 2.0})]:
        same(plain(compiled(*given, **named)), run(model, *given, **named))
    assert compiled(x4)["x"] is x4 and compiled(x4)["sum"][1] == 3
    assert not compiled(x4)["y"].requires_grad
    assert fake_native.FakeNetwork.made == before + 2


class Own(nn.Module):
    """A module with a __getattr__ of its own: Dynamo reads its tables."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.scale = nn.Parameter(torch.full((4,), 2.0))
        self.register_buffer("shift", torch.ones(4))

    def __getattr__(self, name):
        return super().__getattr__(name)

    def forward(self, x):
        return {"y": self.inner(x) * self.scale + self.shift, "x": x, "sum": (x.sum(1), 3)}


def test_modules_with_a_way_of_their_own_to_attributes():
    model = nn.Sequential(nn.Linear(4, 4), Own()).eval()
    compiled = torch.compile(model, backend="canvas")
    same(run(compiled, x4), run(model, x4))
    with torch.no_grad():
        model[1].scale.mul_(3)
    same(run(compiled, x4), run(model, x4))


def test_weights_that_change():
    model = Net().eval()
    compiled = torch.compile(model, backend="canvas")
    compiled(x4)
    changes = [
        lambda: model.first.weight.data.mul_(2),
        lambda: setattr(model, "shift", torch.zeros(4)),
        lambda: setattr(model.first, "bias", nn.Parameter(torch.zeros(4))),
        lambda: model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()}),
    ]
    for change in changes:
        change()
        for _ in range(2):
            same(plain(compiled(x4)), run(model, x4))


def test_one_graph_for_several_modules():
    layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3)).eval()
    for layer in layers:
        layer.compile(backend="canvas")
    x = x4
    with torch.no_grad():
        for _ in range(3):
            for layer in layers:
                same(layer(x), nn.functional.linear(x, layer.weight, layer.bias))


def test_graph_breaks(caplog):
    model = Net().eval()

    @torch.compile(backend="canvas")
    def function(x):
        y = model.first(x)
        torch._dynamo.graph_break()
        return model.second(y.sin()) + y.sum()

    with caplog.at_level(logging.WARNING, "canvas"):
        for _ in range(2):
            y = model.first(x4)
            same(function(x4), (model.second(y.sin()) + y.sum()).detach())
    assert caplog.messages == [
        "canvas: 1 of 4 operators stay in PyTorch: aten.sin.default: the operator is not known; "
        "1 native part, 1 tensor of 32 bytes between at each call"
    ]


def test_what_cannot_be_exported_stays_in_pytorch(caplog, monkeypatch):
    from canvas.inference import specialization

    def fail(*_):
        raise CannotExport("PyTorch cannot export it: because")

    from canvas.inference.lifted_graph import CannotExport

    monkeypatch.setattr(specialization, "lift_graph", fail)
    model = Net().eval()
    with caplog.at_level(logging.WARNING, "canvas"):
        compiled = torch.compile(model, backend="canvas")
        for _ in range(2):
            same(plain(compiled(x4)), run(model, x4))
    assert len(caplog.messages) == 1
    assert caplog.messages[0].endswith(
        "operators stays in PyTorch: PyTorch cannot export it: because"
    )


@pytest.mark.parametrize("specialize", [False, True])
def test_a_number_of_a_module_that_changes(caplog, specialize):
    model, x = nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()).eval(), torch.randn(2, 3, 8, 8)
    compiled = torch.compile(model, backend="canvas")
    with (
        torch._dynamo.config.patch(specialize_float=specialize),
        caplog.at_level(logging.WARNING, "canvas"),
    ):
        for eps in (1e-5, 0.1, 0.2):
            model[0].eps = eps
            with torch.no_grad():
                same(compiled(x), model(x))
    assert len(caplog.messages) == (not specialize), caplog.messages
    assert specialize or "specialize_float = True has it compiled as a" in caplog.messages[0]


def test_sizes_that_vary(caplog):
    model = Net().eval()
    compiled = torch.compile(model, backend="canvas")
    with caplog.at_level(logging.WARNING, "canvas"):
        for n in (2, 3, 5, 3, 2):
            x = torch.randn(n, 4)
            same(plain(compiled(x)), run(model, x))
    assert caplog.messages == [
        "canvas: sizes that vary are compiled one by one, the last 8 of a graph kept"
    ]
    assert plain(compiled(torch.randn(0, 4)))["y"].shape == (0, 4)


def test_sizes_without_end(caplog, monkeypatch):
    """Of very many sizes some stay in PyTorch: none is compiled again at every call."""
    made = []
    real = torch_backend.Specialization
    monkeypatch.setattr(torch_backend, "DROPPED", 3)
    monkeypatch.setattr(torch_backend, "SIZES", 2)
    monkeypatch.setattr(torch_backend, "Specialization", lambda *a: made.append(1) or real(*a))
    model = Net().eval()
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="canvas")
    with caplog.at_level(logging.WARNING, "canvas"):
        for n in [2, 3, 4, 5, 6, 7, 8, 9] * 2:
            x = torch.randn(n, 4)
            same(plain(compiled(x)), run(model, x))
    assert len(made) <= 1 + 2 + 3  # the first graph has one size, the second all others
    assert caplog.messages[-1] == "canvas: after 5 sizes of a graph others stay in PyTorch"


def test_strides_and_changes_in_place():
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Conv2d(3, 3, 1)).eval()
    compiled = torch.compile(model, backend="canvas")
    for form in (torch.contiguous_format, torch.channels_last):
        a = torch.randn(2, 3, 4, 4).to(memory_format=form)
        b = a.clone()
        with torch.no_grad():
            got, wanted = compiled(a), model(b)
        same(got, wanted)
        assert got.stride() == wanted.stride()
        same(a, b)
        assert (a >= 0).all()


def test_what_is_refused():
    model = Net().eval()
    compiled = torch.compile(model, backend="canvas")
    with pytest.raises(canvas.CanvasError, match="input 'x' requires a gradient"):
        compiled(x4.clone().requires_grad_())
    with torch.autocast("cpu"), pytest.raises(canvas.CanvasError, match="autocast is on, but the"):
        compiled(x4)
    model.train()
    with pytest.raises(canvas.CanvasError, match="the model is in training mode, and the backend"):
        compiled(x4)
    model.eval()
    compiled(x4)
    lone = nn.Linear(4, 4).eval()  # nothing in it asks whether it is in training mode
    compiled = torch.compile(lone, backend="canvas")
    compiled(x4)
    lone.train()
    with pytest.raises(canvas.CanvasError, match="the model is in training mode, and the backend"):
        compiled(x4)
    lone.eval().to("meta")
    with pytest.raises(canvas.CanvasError, match="is on the device 'meta'"):
        compiled(x4.to("meta"))


@pytest.mark.parametrize(
    "function",
    [
        lambda f, x: torch.vmap(f)(x),
        lambda f, x: torch.func.grad(lambda y: f(y).sum())(x) + f(x),
        lambda f, x: torch.func.jvp(f, (x,), (x,))[1],
    ],
)
def test_transforms_within_a_graph_stay_in_pytorch(function):
    layer = nn.Linear(4, 4).eval()
    compiled = torch.compile(lambda x: function(layer, x), backend="canvas")
    got = compiled(x4)
    same(got, function(layer, x4).detach())
    assert not got.requires_grad


def test_forward_mode_is_refused():
    compiled = torch.compile(nn.Linear(4, 4).eval(), backend="canvas")
    compiled(x4)
    with forward_ad.dual_level(), pytest.raises(canvas.CanvasError, match="has a tangent of forw"):
        compiled(forward_ad.make_dual(x4, x4))


def test_options():
    model = nn.Linear(4, 4).eval()
    compiled = torch.compile(model, backend="canvas", options={"threads": 2, "check": False})
    compiled(x4)
    cases = [
        ({"options": {"thread": 2}}, "has no option 'thread'; did you mean 'threads'"),
        ({"options": {"winograd": 3}}, "winograd is False, True, 2 or 4, not 3"),
        ({"options": {"threads": 0}}, "threads is from 1 to 256, not 0"),
        ({"options": {"threads": 300}}, "threads is from 1 to 256, not 300"),
        ({"options": {"threads": True}}, "threads is a whole number, not True"),
        ({"options": {"log": 3}}, "log is a path, not 3"),
        ({"options": {"log": "a\0b"}}, r"log is a path, not 'a\x00b'"),
        ({"options": {"check": 3}}, "check is True or False, not 3"),
        ({"options": {"check": None}}, "check is True or False, not None"),
        ({"options": {3: 1}}, "the backend 'canvas' has no option 3"),
        ({"options": 3}, "options is a dict of threads, log, check, winograd, not 3"),
        (
            {"mode": "max-autotune"},
            "the backend 'canvas' has no mode 'max-autotune': leave it out",
        ),
    ]
    for named, words in cases:
        torch._dynamo.reset()
        with pytest.raises(canvas.CanvasError) as raised:
            torch.compile(model, backend="canvas", **named)(x4)
        assert words in str(raised.value) and "\n" not in str(raised.value)


ORDERS = [
    "import canvas, sys; assert 'torch' not in sys.modules; import torch._dynamo",
    pytest.param("import torch._dynamo, canvas", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("order", ORDERS)
def test_registered_by_import_of_canvas(order):
    look = "from torch._dynamo.backends.registry import lookup_backend, _COMPILER_FNS as known"
    code = f"{order}\n{look}\nassert 'canvas' in known and lookup_backend('canvas')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


class Excited(nn.Module):
    """Squeeze and excitation: Dynamo and exports are at work on it for some time."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 1)
        self.norm = nn.BatchNorm2d(8)
        self.down, self.up = nn.Conv2d(8, 2, 1), nn.Conv2d(2, 8, 1)
        self.last = nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        y = self.norm(self.first(x))
        mean = nn.functional.adaptive_avg_pool2d(y, 1)
        return self.last(y * torch.sigmoid(self.up(nn.functional.silu(self.down(mean)))))


def test_threads_compile_other_sizes_at_once():
    """An export in one thread while Dynamo traces in another one."""
    wrong = []

    def call(fast, model, sizes):
        try:
            for n in sizes:
                x = torch.randn(n, 3, 9, 9)
                with torch.no_grad():
                    same(fast(x), model(x))
        except BaseException as error:
            wrong.append(error)

    for _ in range(3):
        torch._dynamo.reset()
        model = Excited().eval()
        fast = torch.compile(model, backend="canvas")
        threads = [
            threading.Thread(target=call, args=(fast, model, sizes))
            for sizes in ((1, 2, 1), (3, 4, 3))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_an_export_marks_nodes_for_its_own_thread_alone():
    """Another thread would mark its own in a dictionary that the export replaces."""
    original, seen, kept = fx_traceback.annotate, {}, []

    def look(name):
        with fx_traceback.annotate({"by": name}):
            seen[name] = fx_traceback.current_meta.get("custom", {}).get("by")

    class Looking(nn.Module):
        def forward(self, x):
            kept.append(fx_traceback.annotate)
            look("own")
            other = threading.Thread(target=look, args=("other",))
            other.start()
            other.join()
            return x.relu() + 1

    aten.export(Looking().eval(), (torch.randn(2, 3),))
    assert seen == {"own": "own", "other": None}
    assert fx_traceback.annotate is original and kept[0].__wrapped__ is original.__wrapped__
    fx_traceback.annotate = kept[0]  # as a module that was imported meanwhile has it
    try:
        later = threading.Thread(target=look, args=("later",))
        later.start()
        later.join()
    finally:
        fx_traceback.annotate = original
    assert seen["later"] == "later"


def test_a_fork_while_dynamo_compiles():
    """A child, where the thread that held Dynamo's lock is not there, compiles all the same."""
    from torch._dynamo import convert_frame

    held, done = threading.Event(), threading.Event()

    def hold():
        with convert_frame.compile_lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if not child:
        try:
            with locks.EXPORTING, locks.EXPORTING, locks.PACKING:
                os._exit(0)
        finally:
            os._exit(1)
    done.set()
    thread.join()
    for _ in range(100):
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child waits for a lock that nobody has")
    assert status == 0
    with locks.EXPORTING:
        pass
