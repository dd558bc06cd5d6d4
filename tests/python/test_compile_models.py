"""Models of PyTorch compiled to machine code by all that Canvas has, beside PyTorch."""

from __future__ import annotations

import copy
import logging
import re
import struct
import subprocess
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional

import canvas
from canvas import _core, aten
from canvas.inference import memory_bound
from canvas.inference.arguments_flat import FlatArguments


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


def test_views_that_leave_their_sign_to_the_reader():
    model, x = nn.Conv2d(3, 4, 3).eval(), torch.randn(1, 3, 6, 6)
    compiled = canvas.compile(model, x)
    for given in (torch._neg_view(x), torch.complex(x, x).conj().imag):
        assert given.is_neg()
        same(compiled(given), model(given))
    model.weight = nn.Parameter(torch._neg_view(model.weight.detach()))
    same(compiled(x), model(x))


def test_zeros_without_memory():
    """As PyTorch makes derivatives of."""
    model, zeros = nn.Conv2d(3, 4, 3).eval(), torch._efficientzerotensor((1, 3, 6, 6))
    compiled = canvas.compile(model, torch.randn(1, 3, 6, 6))
    for call in (compiled, torch.compile(model, backend="canvas")):
        with torch.no_grad():
            torch.testing.assert_close(call(zeros), model(zeros))


def test_operators_that_may_fail_stay_in_pytorch():
    """Such as that of a matrix without an inverse."""

    class Inverse(nn.Module):
        def forward(self, x):
            return torch.linalg.inv(x) @ x.mT + 1

    model, x = Inverse().eval(), torch.eye(3) + torch.rand(3, 3) / 8
    compiled = canvas.compile(model, x)
    torch.testing.assert_close(compiled(x), model(x))
    with pytest.raises(RuntimeError, match="inversion could not be completed"):
        compiled(torch.ones(3, 3))


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
        assert float(words[6].rstrip(",")) <= 1e-4 * float(words[9]) > 0


class Product(nn.Module):
    def forward(self, a, b):
        return a.t() @ b


def test_threads_make_no_difference_to_the_bits():
    """gcc, tuned for AMD, made a product and a sum of some terms in a parallel loop."""
    torch.manual_seed(0)
    given = torch.randn(50000, 3), torch.randn(50000, 128)
    alone, shared = (canvas.compile(Product().eval(), given, threads=t)(*given) for t in (1, 2))
    assert torch.equal(alone, shared)


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
    why = r"only what is native code as a whole can be saved, .*: aten.sort.default: the operator"
    with pytest.raises(canvas.CanvasError, match=why):
        compiled.save("nowhere")


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 5)

    def forward(self, x):
        inner = self.first(x)
        return {"sums": inner.sum(1), "both": [inner * 2, inner], "most": inner.amax(1)}


def test_outputs_are_saved_in_the_order_of_the_model(tmp_path):
    torch.manual_seed(1)
    compiled = canvas.compile(TwoHeads().eval(), torch.randn(3, 4))
    compiled.save(tmp_path / "heads", name="heads")
    header = (tmp_path / "heads/heads.h").read_text()
    sizes = re.findall(r"outputs\[\d\]: \w+ f32 (\[.*?\])", header)
    assert sizes == ["[3]", "[3, 5]", "[3, 5]", "[3]"]
    flags = "-O2 -march=native -fsanitize=address"  # it frees all that it asked for
    build = f"cc {flags} -Wall -Wextra -Werror -o run main.c heads.c -lm"
    command = f"ulimit -S -v unlimited; {build} && ./run"  # the sanitizer maps terabytes
    home = tmp_path / "heads"
    done = subprocess.run(command, shell=True, cwd=home, check=True, capture_output=True)
    for line in done.stdout.decode().splitlines():
        words = line.split()
        assert float(words[6].rstrip(",")) <= 1e-5 * float(words[9]) > 0


def test_saved_c_refuses_fast_math_and_tells_wrong_outputs(tmp_path):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()
    canvas.compile(model, torch.randn(3, 8)).save(tmp_path / "home", name="small")
    build = ["cc", "-o", "run", "main.c", "small.c", "-lm"]

    def done(*command):
        return subprocess.run(command, cwd=tmp_path / "home", capture_output=True, text=True)

    refused = done(*build, "-Ofast")
    assert refused.returncode and "compile this file without" in refused.stderr
    assert done(*build, "-O2").returncode == 0
    assert done("./run").returncode == 0
    example = tmp_path / "home/example.bin"
    data = bytearray(example.read_bytes())
    data[128:132] = struct.pack("f", 100)  # behind 3 x 8 numbers of input, up to a multiple of 64
    example.write_bytes(data)
    wrong = done("./run")
    assert wrong.returncode == 1 and "larger than rounding" in wrong.stderr, wrong.stdout


@pytest.mark.parametrize(
    "kernel, stride, more, split",
    [(4, 2, 0, True), (3, 2, 1, True), (5, 3, 2, True), (2, 2, 0, False)],
)
def test_transposed_convolutions_are_split_by_their_stride(kernel, stride, more, split):
    torch.manual_seed(1)
    model = nn.ConvTranspose2d(8, 16, kernel, stride, 1, output_padding=more).eval()
    image = torch.randn(1, 8, 9, 10)
    compiled = canvas.compile(model, image)
    assert (f"%{stride} == 0" in compiled.text) == split
    torch.testing.assert_close(compiled(image), model(image))


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


TWO_SUMS = """canvas 1
kernel two_sums
a = input                      : C H W
b = fc a to=x0                 : x0 H W
c = gelu b                     : x0 H W
d = unfold c over=H k=K        : x0 KH H W
e = fc d to=C                  : C H W
out e
"""


def test_a_kernel_of_two_sums_becomes_two_calls():
    torch.manual_seed(3)
    x = torch.randn(1, 4, 6, 6)
    layers = [nn.Conv2d(4, 4, 3, padding=1, bias=False) for _ in range(2)]
    converted = canvas.convert(nn.Sequential(*layers, nn.ReLU()).eval(), x)
    pack = _core.solve(TWO_SUMS, converted.targets, "macs=0.9x,params=none", "")
    model = canvas.replace(converted.model, canvas.KernelPack(pack)).eval()
    compiled = canvas.compile(model, x)
    same(compiled(x), model(x))
    assert compiled.text.count("= kernel_") == 2


# ---- where native code ends and PyTorch begins --------------------------------------------------


class Does(nn.Module):
    """A layer, a table, bools and whole numbers that it holds, and a function of them."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.layer, self.table = nn.Linear(4, 4), nn.Embedding(7, 4)
        self.register_buffer("order", torch.tensor([2, 0, 1]))
        self.register_buffer("mask", torch.tensor([True, False, True, False]))

    def forward(self, *given):
        return self.function(self, *given)


class Named(nn.Module):
    """An input whose name is that of a buffer in a graph."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, b_order, c_mask, x):
        return torch.where(c_mask, self.layer(x)[:, b_order], 0.5)


def _twice_zeros(s, x):
    zeros = torch.zeros_like(x, dtype=torch.int64)
    return s.layer(x.gather(1, zeros)).scatter(1, zeros[:, :1], 0.5)


def _indices_through_a_cut(s, x):
    places = torch.arange(4)
    return s.layer(s.layer(x)[:, places].sort(1)[0])[:, places.flip(0)] + places


X4 = torch.tensor([[0.5, -1.0, 2.0, 0.25], [1.5, 0.0, -0.5, 3.0]])
NUMBERS = torch.tensor([[-3], [5]])
BORDERS = {
    "numbers out": (lambda s, x: (s.layer(x), torch.arange(4)), X4),
    "bools out": (lambda s, x: (s.layer(x), s.layer(x) > 0), X4),
    "numbers that PyTorch alone reads": (_twice_zeros, X4),
    "numbers of both": (_indices_through_a_cut, X4),
    "a bool across a cut": (lambda s, x: s.layer(x.sort(1)[0].where(s.layer(x) > 0, x)), X4),
    "nothing beside a layer": (lambda s, x: torch.cat([s.layer(x), torch.zeros(2, 0)], 1), X4),
    "numbers in": (lambda s, n, x: s.layer(x) * n.float(), NUMBERS, X4),
    "numbers held": (lambda s, x: s.layer(x)[:, s.order + 1] + s.table(s.order)[:2, :3], X4),
    "complex": (lambda s, x: torch.view_as_real(torch.fft.fft(s.layer(x))), X4),
    "a constant of NaN": (lambda s, x: s.layer(x) + (torch.arange(4.0) - 1).sqrt(), X4),
    "a named input": (Named(), torch.tensor([3, 0, 0, 1]), torch.arange(4) > 1, X4),
}


@pytest.mark.parametrize("name", BORDERS)
def test_types_at_borders(name):
    function, *given = BORDERS[name]
    model = (function if isinstance(function, nn.Module) else Does(function)).eval()
    compiled = canvas.compile(model, tuple(given))
    for _ in range(2):
        got, wanted = compiled(*given), model(*given)
        for a, b in zip(*(y if isinstance(y, tuple) else (y,) for y in (got, wanted))):
            assert a.dtype == b.dtype and a.stride() == b.stride()
            torch.testing.assert_close(a, b.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_constants_are_computed_where_they_are_read():
    compiled = canvas.compile(Does(_indices_through_a_cut).eval(), X4)
    assert [why.partition(":")[0] for why in compiled._example_size().cut.left] == [
        "aten.sort.default"
    ]


def test_nobody_is_warned_of_what_pytorch_does():
    model = Does(lambda s, x: s.layer(x) + torch.arange(4)).eval()
    exported = torch.export.export(model, (X4,))
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        canvas.compile(model, X4)
        aten.import_graph(exported)


def test_parts_are_not_decomposed_again(monkeypatch):
    model = Does(lambda s, x: (s.layer(x) + torch.arange(4)).sort(1)[0]).eval()
    runs = []
    decompose = torch.export.ExportedProgram.run_decompositions
    monkeypatch.setattr(
        torch.export.ExportedProgram,
        "run_decompositions",
        lambda exported, table: runs.append(exported) or decompose(exported, table),
    )
    canvas.compile(model, X4)
    assert len(runs) == 1


def test_another_default_device_is_not_that_of_outputs():
    model = Does(lambda s, x: (s.layer(x).t() + 1).reshape(-1, 1)).eval()
    with torch.device("meta"):
        compiled = canvas.compile(model, X4)
        answers = [compiled(X4) for _ in range(2)]
        backend = torch.compile(model, backend="canvas")
        answers += [backend(X4) for _ in range(2)]
    for got in answers:
        assert got.device.type == "cpu"
        torch.testing.assert_close(got, model(X4))


def test_numbers_that_a_model_holds_may_change():
    model = Does(lambda s, x: s.layer(x)[:, s.order + 1] + s.table(s.order)[:2, :3]).eval()
    compiled = canvas.compile(model, X4)
    compiled(X4)
    for change in (lambda: model.order.add_(-0).fill_(2), lambda: model.order.numpy().fill(1)):
        change()
        torch.testing.assert_close(compiled(X4), model(X4).detach())


def _ones(count):
    torch._check(count >= 0)
    return torch.ones(count), torch.arange(count)


ITEMS = {
    "a slice": lambda s, x, n: s.layer(x)[:, n:],
    "a slice that is a copy": lambda s, x, n: s.layer(x)[:, n:].contiguous(),
    "a factor": lambda s, x, n: s.layer(x) * n,
    "an answer": lambda s, x, n: (s.layer(x), n),
    "numbers from it on": lambda s, x, n: s.layer(x) + torch.arange(n, n + 4),
    "a division": lambda s, x, n: s.layer(x) * (12 // n),
    "sizes without a bound": lambda s, x, n: (s.layer(x), *_ones(n)),
    "places": lambda s, x, n: (s.layer(x), (x > n - 2).nonzero(), x[x > n - 2]),
}


class Counts(nn.Module):
    """A number of a buffer decides; `changed` by forward, or by the caller."""

    def __init__(self, function, changed):
        super().__init__()
        self.function, self.changed = function, changed
        self.layer = nn.Linear(4, 4)
        self.register_buffer("count", torch.tensor(1))

    def forward(self, x):
        y = self.function(self, x, self.count.item())
        if self.changed:
            self.count += 1
        return y


@pytest.mark.parametrize("changed", [True, False], ids=["by forward", "by the caller"])
@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("how", ["compile", "backend"])
def test_numbers_of_buffers_that_change(how, name, changed, monkeypatch):
    monkeypatch.setattr(torch._dynamo.config, "capture_scalar_outputs", True)
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Counts(ITEMS[name], changed).eval()
    eager = copy.deepcopy(model)
    with torch.no_grad():
        backend = how == "backend"
        compiled = torch.compile(model, backend="canvas") if backend else canvas.compile(model, X4)
        for _ in range(3):
            got, wanted = compiled(X4), eager(X4)
            for a, b in zip(*(y if isinstance(y, tuple) else (y,) for y in (got, wanted))):
                assert type(a) is type(b)
                torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
                assert not isinstance(a, torch.Tensor) or a.stride() == b.stride()
            assert torch.equal(model.count, eager.count)
            if not changed:
                model.count += 1
                eager.count += 1


def test_a_number_that_forward_changes_is_not_compiled_anew(monkeypatch):
    compiled = canvas.compile(Counts(ITEMS["a factor"], True).eval(), X4)
    compiled(X4)
    made = len(compiled._sizes)
    monkeypatch.setattr(compiled, "_start", None)
    for _ in range(3):
        compiled(X4)
    assert len(compiled._sizes) == made


def test_a_condition_that_a_number_of_a_buffer_breaks_is_told():
    def function(s, x, n):
        torch._check(n < 2)
        return s.layer(x) * n

    compiled = canvas.compile(Counts(function, True).eval(), X4)
    compiled(X4)
    with pytest.raises(RuntimeError):
        compiled(X4)


def test_a_constant_beside_a_weight_that_nobody_reads():
    """A tensor of the graph is among the weights, and one of the module is not."""
    model = Does(lambda s, x: s.layer(x) * torch.tensor([1.0, 2.0, 3.0, 4.0]) + s.mask).eval()
    compiled = canvas.compile(model, X4)
    torch.testing.assert_close(compiled(X4), model(X4).detach())


STRIDES = {
    "gaps": lambda x: (x * 2)[:, 1:2],
    "steps": lambda x: (x + 1)[:, ::2],
    "shared": lambda x: (x * 2).mean(1, keepdim=True).expand(2, 5),
    "overlapping": lambda x: (x * 2).view(-1).unfold(0, 3, 1),
    "turned": lambda x: (x - 1).t(),
}


@pytest.mark.parametrize("name", STRIDES)
def test_strides_of_outputs(name):
    model = Does(lambda s, x: STRIDES[name](s.layer(x))).eval()
    compiled = canvas.compile(model, X4)
    for _ in range(2):
        got, wanted = compiled(X4), model(X4).detach()
        torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)
        assert got.stride() == wanted.stride()


def test_what_is_changed_shares_no_memory():
    model = Does(lambda s, x, y: (x.add_(1), s.layer(y))[1]).eval()
    compiled = canvas.compile(model, (X4.clone(), X4))
    x = X4.clone()
    compiled(x, X4)
    with pytest.raises(
        canvas.CanvasError, match=r"'given\.\d' and 'given\.\d' share memory, and the m"
    ):
        compiled(x, x)
    with pytest.raises(canvas.CanvasError, match=r"elements of 'given\.0' share memory, as those"):
        compiled(X4[:1].expand_as(X4), X4)


class Nested(nn.Module):
    """Changes a part of an argument, and reads others."""

    def __init__(self):
        super().__init__()
        self.layer, self.table = nn.Linear(4, 4), nn.Embedding(5, 4)

    def forward(self, states, more, *rest, ids):
        states[0].add_(1)
        return self.layer(states[1]) + more["key"] + self.table(ids) + rest[0]


@pytest.mark.parametrize("backend", [True, False])
def test_messages_name_arguments_as_the_caller_does(backend):
    torch._dynamo.reset()
    model, x, ids = Nested().eval(), [torch.randn(4, 4) for _ in range(4)], torch.arange(4)
    flat = FlatArguments(model, (([x[0], x[1]], {"key": x[2]}, x[3]), {"ids": ids}))
    assert flat.names == ["states.0", "states.1", "more.key", "rest.0", "ids"]
    example = (ids, [x[0], x[1]], {"key": x[2]}, x[3])
    made = Turned(model).eval()
    compiled = torch.compile(made, backend="canvas") if backend else canvas.compile(made, example)
    with torch.no_grad():
        compiled(*example)
        with pytest.raises(canvas.CanvasError, match=r"^'states\.0' and 'more\.key' share mem"):
            compiled(ids, [x[0], x[1]], {"key": x[0][:]}, x[3])
        with pytest.raises(canvas.CanvasError, match=r"^'states\.0' and 'last' share memory"):
            compiled(ids, [x[0], x[1]], {"key": x[2]}, x[0][:])
        with pytest.raises(canvas.CanvasError, match=r"^input 'ids' holds indices from 3 to 6"):
            compiled(ids + 3, *example[1:])
        with pytest.raises(canvas.CanvasError, match=r"^elements of 'states\.0' share memory, as"):
            compiled(ids, [x[0][:1].expand(4, 4), x[1]], *example[2:])


class Turned(nn.Module):
    """Takes a named argument by its place."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, ids, states, more, last):
        return self.inner(states, more, last, ids=ids)


def test_numbers_that_are_infinite_or_none():
    """What is compared at the first call is finite; later inputs need not be."""
    inf, nan = torch.inf, torch.nan
    x = torch.tensor(
        [[-inf] * 4, [1.0, inf, 0.0, -inf], [nan, 1, -1, 0], [0.0, -2.0, 3e38, 1e-40]]
    )

    def function(_, x):
        rows = [x.relu(), x.clamp(-1, 1), x.sign(), x.softmax(1), functional.gelu(-x.abs())]
        return [
            *rows,
            x.logsumexp(1),
            x.amax(1),
            functional.max_pool1d(x, 2),
            torch.maximum(x, x.T),
        ]

    compiled = canvas.compile(Does(function).eval(), torch.randn(4, 4))
    compiled(torch.randn(4, 4))
    got = compiled(x)
    for a, b in zip(got, function(None, x)):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6, equal_nan=True)


def test_a_network_that_needs_more_memory_than_there_is_is_refused():
    """The output has 10^11 elements: nobody may begin to write them."""
    model = nn.ConvTranspose2d(1, 1, 1, stride=40000).eval()
    why = r"^the outputs of the model take [\d,.]+ GiB of memory, and "
    with pytest.raises(canvas.CanvasError, match=why):
        canvas.compile(model, torch.zeros(1, 1, 9, 9))
    small = nn.Sequential(model, nn.MaxPool2d(300000)).eval()
    with pytest.raises(canvas.CanvasError, match=r"^the model needs [\d,.]+ GiB of memory, and "):
        canvas.compile(small, torch.zeros(1, 1, 9, 9))


def test_files_that_the_system_keeps_in_memory_are_not_used_memory(tmp_path, monkeypatch):
    """A container counts them as used, and gives them back when asked."""
    monkeypatch.setattr(memory_bound, "GROUP", tmp_path)
    (tmp_path / "memory.max").write_text(f"{8 << 20}\n")
    (tmp_path / "memory.current").write_text(f"{7 << 20}\n")
    assert memory_bound.memory_left() == 1 << 20
    (tmp_path / "memory.stat").write_text(
        f"anon {1 << 20}\nactive_file {2 << 20}\ninactive_file {3 << 20}\nslab 7\n"
    )
    assert memory_bound.memory_left() == 6 << 20


def test_a_value_of_more_elements_than_a_program_can_say_is_refused_by_its_sizes():
    """All pairs are 9 * 10^12 elements, which the core told by a line of its text."""
    model = Does(lambda s, x: (x[:, None] * x[None]).sum(0)).eval()
    why = r"^the model computes '[a-z_]+', whose sizes are \[3000000, 3000000\], and a tensor has "
    with pytest.raises(canvas.CanvasError, match=why):
        canvas.compile(model, torch.zeros(3000000))


def test_a_size_that_is_answered_is_a_tuple_of_numbers():
    """As torch.export has it; under torch.compile it stays what it is."""
    model = Sizes().eval()
    image = torch.randn(2, 3, 8, 8)
    values, size = canvas.compile(model, image)(image)
    torch.testing.assert_close(values, model(image)[0], rtol=1e-4, atol=1e-5)
    assert tuple(size) == (2, 4, 6, 6) and all(type(number) is int for number in size)
    with torch.no_grad():
        values, size = torch.compile(model, backend="canvas")(image)
    torch.testing.assert_close(values, model(image)[0], rtol=1e-4, atol=1e-5)
    assert type(size) is torch.Size and size == (2, 4, 6, 6)


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        y = self.conv(x).relu()
        return y, y.shape
