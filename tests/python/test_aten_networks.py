"""Whole networks through canvas.aten against PyTorch: known ones in small, random ones."""

import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from network_interpreter import differences
from random_networks import Attention, Tokens, draw
from torch import Tensor, nn

import canvas
from canvas import _core, aten
from canvas.inference.native_network import NativeNetwork
from canvas.models import resnet8, resnet18

BOUND = 2e-5
NIGHTLY = bool(os.environ.get("CANVAS_TEST_ALL"))
needs_all = pytest.mark.skipif(not NIGHTLY, reason="long, CANVAS_TEST_ALL=1 runs it")


def lively(model: nn.Module, seed: int = 0) -> nn.Module:
    """In evaluation mode, with statistics of norms that are not 0 and 1."""
    generator = torch.Generator().manual_seed(seed)
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            module.running_mean.normal_(generator=generator)
            module.running_var.uniform_(0.5, 2, generator=generator)
    return model.eval()


class Inverted(nn.Module):
    """A block of MobileNet-V2."""

    def __init__(self, c: int, out: int, stride: int) -> None:
        super().__init__()
        wide = 3 * c
        self.same = c == out and stride == 1
        self.body = nn.Sequential(
            *(nn.Conv2d(c, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(inplace=True)),
            *(nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide)),
            *(nn.ReLU6(inplace=True), nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out)),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.same else self.body(x)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.deep = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 8, 3, padding=1)
        self.up, self.out = nn.ConvTranspose2d(8, 4, 2, 2), nn.Conv2d(8, 3, 1)

    def forward(self, x: Tensor) -> Tensor:
        left = F.relu(self.down(x))
        low = F.relu(self.deep(F.max_pool2d(left, 2)))
        smooth = F.interpolate(low, scale_factor=2.0, mode="bilinear", align_corners=False)
        return self.out(torch.cat([left, self.up(low)], 1)) + smooth[:, :3]


class ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patch, self.cls = nn.Conv2d(3, 8, 4, 4), nn.Parameter(torch.randn(1, 1, 8))
        self.place = nn.Parameter(torch.randn(1, 5, 8))
        self.block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        tokens = self.patch(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.cls.expand(x.shape[0], -1, -1), tokens], 1) + self.place
        return self.head(self.norm(self.block(tokens))[:, 0])


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.BatchNorm2d(3 + 2 * k) for k in range(3))
        self.layers = nn.ModuleList(nn.Conv2d(3 + 2 * k, 2, 3, padding=1) for k in range(3))

    def forward(self, x: Tensor) -> Tensor:
        parts = [x]
        for norm, layer in zip(self.norms, self.layers):
            parts.append(layer(F.relu(norm(torch.cat(parts, 1)))))
        return F.avg_pool2d(torch.cat(parts, 1), 2)


class Shuffle(nn.Module):
    """A block of ShuffleNet-V2."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 3, 1), nn.ReLU(), nn.Conv2d(3, 3, 3, padding=1, groups=3)
        )

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, dim=1)
        y = torch.cat([left, self.body(right)], 1)
        n, c, h, w = y.shape
        return y.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


class Fire(nn.Module):
    """A module of SqueezeNet."""

    def __init__(self) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(4, 2, 1)
        self.one, self.three = nn.Conv2d(2, 3, 1), nn.Conv2d(2, 3, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.squeeze(x), inplace=True)
        return torch.cat([F.relu(self.one(x)), F.relu(self.three(x))], 1)


class TemporalShift(nn.Module):
    """Channels of the frame before and of the one behind, written into zeros."""

    def forward(self, x: Tensor) -> Tensor:
        frames, shifted = x.view(2, 3, 6, 4, 4), torch.zeros(2, 3, 6, 4, 4)
        shifted[:, :-1, :2] = frames[:, 1:, :2]
        shifted[:, 1:, 2:4] = frames[:, :-1, 2:4]
        shifted[:, :, 4:] = frames[:, :, 4:]
        shifted[..., ::2, 0] += 1
        shifted[:, 1, :, [0, 2]] = shifted[:, 0, :, [3, 1]]
        shifted[shifted < 0] = -0.5
        return shifted.flatten(0, 1)


class Marks(nn.Module):
    """Bools written in part, with bools, with numbers and into floats."""

    def forward(self, x: Tensor) -> Tensor:
        marks, out = x > 0, x.clone()
        marks[:, 1:3] = False
        marks[0] = True
        marks[:, 0] = x[:, 1]
        out[:, 2] = x[:, 0] > 0
        out[marks] = 3
        return torch.where(marks, out, -x) + marks * 0.5


class WithoutAutocast(nn.Module):
    """Mixed precision is off in a region, in one within it, and in one that gives the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layer(x)
        with torch.autocast("cpu", enabled=False):
            z = (y.float() * 2).softmax(-1)
            with torch.autocast("cuda", enabled=False):
                u, v = z @ z.transpose(-1, -2), z + 1
        y = y + u.sum(-1, keepdim=True)
        with torch.autocast("cpu", enabled=False):
            v = v * self.layer(v)
        return v, y


class Windows(nn.Module):
    """The mask of shifted windows, as of Swin transformers: made anew in each call."""

    def forward(self, scores: Tensor) -> Tensor:
        place, count = scores.new_zeros((8, 8)), 0
        for rows in (slice(0, -4), slice(-4, -2), slice(-2, None)):
            for columns in (slice(0, -4), slice(-4, -2), slice(-2, None)):
                place[rows, columns] = count
                count += 1
        place = place.view(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16)
        apart = place.unsqueeze(1) - place.unsqueeze(2)
        return (scores + apart.masked_fill(apart != 0, -100.0)).softmax(-1)


class Words(nn.Module):
    """Whole numbers in; recurrent."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.cell = nn.Embedding(9, 4), nn.GRU(4, 3, batch_first=True)

    def forward(self, words: Tensor) -> Tensor:
        return self.cell(self.table(words))[0][:, -1].log_softmax(-1)


def vgg() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2)),
        *(nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(True), nn.AdaptiveAvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(24, 8), nn.ReLU(True), nn.Dropout(), nn.Linear(8, 3)),
    )


def mobile() -> nn.Module:
    blocks = [Inverted(4, 4, 1), Inverted(4, 6, 2)]
    stem = [nn.Conv2d(3, 4, 3, 2, 1, bias=False), nn.BatchNorm2d(4), nn.ReLU6()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "resnet8": (resnet8, (1, 3, 8, 8)),
    "mobilenet": (mobile, (2, 3, 9, 9)),
    "unet": (UNet, (1, 2, 6, 8)),
    "vgg": (vgg, (2, 3, 8, 8)),
    "vit": (ViT, (2, 3, 8, 8)),
    "densenet": (Dense, (1, 3, 5, 5)),
    "shufflenet": (Shuffle, (2, 6, 4, 4)),
    "squeezenet": (Fire, (1, 4, 5, 5)),
    "temporal shift": (TemporalShift, (6, 6, 4, 4)),
    "marks": (Marks, (2, 5)),
    "without autocast": (WithoutAutocast, (2, 5, 8)),
    "windows": (Windows, (4, 16, 16)),
    "attention": (lambda: nn.Sequential(Attention(4, 2), Tokens(nn.LayerNorm(4))), (1, 4, 3, 3)),
}


def native(imported: Any, inputs: Any, optimize: bool = True) -> list[Tensor]:
    text = imported.text
    network = NativeNetwork(text if optimize else _core.network_optimize(text, "constants"))
    packed = network.pack([imported.weights[row[0]] for row in network.weights])
    return network.run(packed, [x.contiguous() for x in inputs])


def far(found: list[Tensor], wanted: list[Tensor]) -> float:
    return max(
        float((a.double() - b.double()).abs().max()) / max(1.0, float(b.abs().max()))
        for a, b in zip(found, wanted, strict=True)
    )


def as_list(answer: Any) -> list[Tensor]:
    return [x.detach() for x in (answer if isinstance(answer, (tuple, list)) else [answer])]


def check(model: nn.Module, *inputs: Tensor, compiled: bool = False) -> Any:
    wanted = as_list(model(*inputs))
    exported = aten.export(model, inputs)
    assert [aten.unsupported(n) for n in exported.graph.nodes if aten.unsupported(n)] == []
    imported = aten.import_graph(exported)
    optimized = _core.network_optimize(imported.text)
    assert max(differences(imported, inputs, wanted)) < BOUND
    assert max(differences(imported, inputs, wanted, optimized)) < BOUND
    if compiled:
        assert far(native(imported, inputs), wanted) < BOUND
    return imported


@pytest.mark.parametrize("name", MODELS)
def test_a_known_network(name: str) -> None:
    torch.manual_seed(1)
    make, shape = MODELS[name]
    check(lively(make()), torch.randn(shape))


class Region(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cpu", enabled=False):
            y = x.exp()
        return y, y + 1


def test_what_is_exported_without_autocast_still_runs_in_pytorch() -> None:
    model, x = Region().eval(), torch.randn(2, 5, 8)
    exported = aten.export(model, (x,))
    assert [spec.arg.name for spec in exported.graph_signature.output_specs] == [
        node.name for node in exported.graph.output_node().args[0]
    ]
    for ours, theirs in zip(exported.module()(x), model(x), strict=True):
        assert torch.allclose(ours, theirs)


def test_nan_may_be_written_where_a_mask_holds() -> None:
    class Hidden(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x * 2
            y[x > 0] = float("nan")
            return y

    x = torch.tensor([[1.0, -1.0, 0.0]])
    for model in (Hidden(), nn.Sequential(Hidden(), nn.Identity())):
        found = canvas.compile(model.eval(), x)(x)
        assert torch.equal(found.isnan(), x > 0) and found[0, 1] == -2


def test_a_network_of_words() -> None:
    words = torch.tensor([[1, 8, 0], [2, 2, 5]])
    imported = check(Words().eval(), words)
    assert "in words i32 [2, 3] 0..9\n" in imported.text


@needs_all
def test_resnet18_natively() -> None:
    model, x = lively(resnet18()), torch.randn(1, 3, 32, 32)
    imported = aten.import_graph(aten.export(model, (x,)))
    assert far(native(imported, [x]), as_list(model(x))) < BOUND


def test_pytorchs_own_decompositions_do() -> None:
    """Of what a backend of torch.compile, or torch.export alone, gives."""
    model, x = (
        lively(nn.Sequential(mobile(), nn.Hardswish(), nn.Softplus())),
        torch.randn(1, 3, 8, 8),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = torch.export.export(model, (x,))
        core = plain.run_decompositions()
    for exported in (plain, core):
        assert max(differences(aten.import_graph(exported), [x], [model(x)])) < BOUND
    assert [aten.unsupported(n) for n in core.graph.nodes if aten.unsupported(n)] == []


# ---- found kernels ------------------------------------------------------------------------------


def with_kernels(norm: str) -> tuple[nn.Module, Tensor, Any]:
    torch.manual_seed(2)
    x = torch.randn(2, 3, 6, 6)
    layers = [nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 8, 3, 2, 1), nn.Conv2d(8, 8, 3, 1, 1)]
    converted = canvas.convert(nn.Sequential(*layers), x).model
    pack = canvas.sample(converted, x, budget="macs=0.7x", seed=1, norm=norm)
    return lively(canvas.replace(converted, pack)), x, pack


@pytest.mark.parametrize("norm", ["none", "batch"])
def test_a_kernel_is_one_program(norm: str) -> None:
    model, x, pack = with_kernels(norm)
    imported = check(model, x)
    calls = [line for line in imported.text.splitlines() if f"= kernel_{pack.hash[:8]}" in line]
    assert len(calls) == len(pack.targets)
    if norm == "batch":  # folded weights are constant values: norms that change are seen
        model.get_buffer("1.kernel.norm0.0.running_mean").add_(1.0)
        assert max(differences(imported, [x], [model(x)])) < BOUND
        canvas.fold(model, inplace=True)
        check(model, x)


def test_a_kernel_by_its_operator() -> None:
    model, x, _ = with_kernels("batch")
    exported = aten.export(model, (x,))
    assert torch.allclose(exported.module()(x), model(x), atol=1e-4)
    assert "forward" not in vars(model.get_submodule("1.kernel"))


def test_a_kernel_on_another_image_is_operators() -> None:
    model, _, _ = with_kernels("none")
    other = torch.randn(1, 3, 10, 10)
    assert "program kernel_" not in check(model, other).text


# ---- weights ------------------------------------------------------------------------------------


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
        self.b.weight = self.a.weight
        self.register_buffer("shift", torch.ones(3))
        self.register_buffer("again", self.a.weight.detach())
        self.unused = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(self.b(self.a(x)), self.get_buffer("again"))
        return y + self.get_buffer("shift") + torch.arange(3.0)


def test_weights_are_those_of_the_module() -> None:
    model, x = Tied().eval(), torch.randn(2, 3)
    imported = aten.import_graph(aten.export(model, (x,)))
    assert len(imported.weights) == 3  # tied, the buffer, the constant; none that nobody reads
    assert imported.text.count(" from ") == 2
    kept = {weight.data_ptr() for weight in imported.weights.values()}
    assert {model.a.weight.data_ptr(), model.get_buffer("shift").data_ptr()} < kept
    with torch.no_grad():
        model.a.weight.add_(0.5)
        model.get_buffer("shift").mul_(3)
    assert max(differences(imported, [x], [model(x)])) < BOUND


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("order", torch.tensor([2, 0]))
        self.register_buffer("mask", torch.tensor([True, False, True]))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = x.masked_fill(self.mask, -1.0)
        return x, y, y, x[:, self.order], torch.zeros(2)


def test_outputs_that_are_given_or_twice_are_copies() -> None:
    model, x = Masked().eval(), torch.randn(2, 3)
    imported = aten.import_graph(aten.export(model, (x,)))
    assert len(imported.outputs) == len(set(imported.outputs)) == 5
    assert max(differences(imported, [x], model(x))) < BOUND
    assert imported.copied == ["order", "mask"]


# ---- what is refused ----------------------------------------------------------------------------


class Does(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Identity())
        self.inner.append(Inner(function))

    def forward(self, *given: Any) -> Any:
        return self.inner[1](*given)


class Inner(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Any) -> Any:
        return self.function(*given)


X = torch.randn(2, 4)
REFUSED: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "operator": (
        lambda x: x.sort()[0],
        X,
        r"'aten.sort.default' in 'inner.1' \(Inner\): the operator is not known",
    ),
    "dtype": (lambda x: x.double() * 2, X, "it computes float64, only float32 is known"),
    "input": (
        lambda x: x * 2,
        X.half(),
        "input 'given_0' is of float16, inputs are of float32, or",
    ),
    "numbers": (lambda x: x + 1, torch.arange(3), "it computes int64, only float32 is known"),
    "indices": (lambda x: x.max(1)[1].float(), X, "it computes int64, only float32 is known"),
    "result": (
        lambda x: torch.native_layer_norm(x, [4], None, None, 1e-5)[1],
        X,
        "its result 1 is not known, only values are",
    ),
    "bool": (lambda x: x > 0, X, "is no tensor of float32 that it computes"),
    "random": (torch.rand_like, X, "'aten.rand_like.default' in 'inner.1'"),
    "training": (lambda x: F.dropout(x, 0.5, True), X, "it drops at random, call model.eval"),
    "statistics": (
        lambda x: F.batch_norm(x, None, None, training=True),
        X,
        "it normalises by its own batch, call model.eval",
    ),
    "empty": (lambda x: x[:, 4:], X, "its result is empty"),
    "write": (lambda x: x.add_(1), X, "the model writes to 'given_0' when it is called"),
    "raise": (lambda x: 1 // 0, X, "PyTorch cannot export the model: .*ZeroDivisionError"),
    "norm": (lambda x: torch.linalg.vector_norm(x, 3), X, "a norm of order 3 is not known, 1"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_named(name: str) -> None:
    function, x, message = REFUSED[name]
    with pytest.raises(canvas.CanvasError, match=message) as caught:
        aten.import_graph(aten.export(Does(function), (x,)))
    assert len(str(caught.value).splitlines()) == 1


def test_a_size_that_is_not_fixed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batch = torch.export.Dim("batch", min=2, max=8)
        exported = torch.export.export(nn.ReLU(), (X,), dynamic_shapes=({0: batch},))
    with pytest.raises(canvas.CanvasError, match="size of 'input' is not fixed, networks"):
        aten.import_graph(exported)


def test_what_is_no_graph() -> None:
    wrong: Any = nn.ReLU()
    with pytest.raises(canvas.CanvasError, match=r"what torch.export.export gives, not ReLU"):
        aten.import_graph(wrong)


def test_a_weight_of_another_type() -> None:
    model = nn.Linear(4, 2).half()
    with pytest.raises(canvas.CanvasError, match="float16"):
        aten.import_graph(aten.export(model.eval(), (X.half(),)))


# ---- random networks ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(200 if NIGHTLY else 20))
def test_a_random_network(seed: int) -> None:
    model, x = draw(seed)
    with torch.no_grad():
        check(model, x)


@pytest.mark.parametrize("seed", range(200 if NIGHTLY else 1))
def test_a_random_network_natively(seed: int) -> None:
    model, x = draw(seed)
    with torch.no_grad():
        wanted = as_list(model(x))
        imported = aten.import_graph(aten.export(model, (x,)))
        assert far(native(imported, [x]), wanted) < BOUND
        assert far(native(imported, [x], optimize=False), wanted) < BOUND
