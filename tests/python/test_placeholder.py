"""Placeholders: shapes learned in silence, draws by seed, replacing and its messages."""

import re

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import canvas  # noqa: E402
from canvas.nn.placeholder import Placeholder, run_quietly  # noqa: E402

torch.set_num_threads(1)

# The published README's example, as it stands there.
EXAMPLE = """
import canvas
import torch
from torch import nn


class ExampleModel(nn.Module):
    def __init__(self):
        super(ExampleModel, self).__init__()
        self.proj = nn.Conv2d(3, 32, 1)
        # Initialize the module to be sampled with `canvas.Placeholder()`
        self.kernel_1 = canvas.Placeholder()
        self.bn = nn.BatchNorm2d(32)
        self.relu = nn.ReLU(inplace=True)
        # Initialize the module to be sampled with `canvas.Placeholder()`
        self.kernel_2 = canvas.Placeholder()

    def forward(self, x: torch.Tensor):
        x = self.proj(x)
        # All placeholders will produce a same-shape output as the input
        x = self.kernel_1(x)
        x = self.relu(self.bn(x))
        x = self.kernel_2(x)
        return x

if __name__ == "__main__":
    # Initialize the model
    model = ExampleModel()
    # Sample a kernel
    # You may also repeat the sampling process in a loop to find a better kernel
    kernel_pack = canvas.sample(model, example_input=torch.randn(1, 3, 224, 224))
    # Replace the original kernel with the sampled one
    canvas.replace(model, kernel_pack.module)
    # Print PyTorch implementation of the sampled kernel
    print(f"Sampled kernel code: {kernel_pack.torch_code}")
"""


@pytest.fixture(autouse=True)
def first_draw():
    canvas.seed(0)


class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.proj = nn.Conv2d(3, width, 1)
        self.kernel_1 = canvas.Placeholder()
        self.bn = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(2)
        self.kernel_2 = canvas.Placeholder()

    def forward(self, x):
        return self.kernel_2(self.pool(self.bn(self.kernel_1(self.proj(x)))))


IMAGE = torch.randn(2, 3, 8, 8)


def test_readme_example(capsys):
    names = {"__name__": "__main__"}
    exec(compile(EXAMPLE, "readme", "exec"), names)
    assert "class Kernel_" in capsys.readouterr().out
    y = names["model"](torch.randn(1, 3, 224, 224))
    assert y.shape == (1, 32, 224, 224) and y.isfinite().all()
    y.mean().backward()


def test_identity_until_replaced():
    placeholder = canvas.Placeholder()
    for shape in ((2, 8), (2, 8, 5), (2, 8, 5, 6)):
        x = torch.randn(shape)
        assert placeholder(x) is x
    for shape in ((8,), (1, 2, 3, 4, 5)):
        with pytest.raises(canvas.CanvasError, match="2 to 4 axes"):
            placeholder(torch.zeros(shape))


def test_learning_leaves_no_trace():
    net = Net()
    net.bn.eval()
    before = {key: value.clone() for key, value in net.state_dict().items()}
    found = canvas.get_placeholders(net, IMAGE)
    assert list(found) == ["kernel_1", "kernel_2"]
    assert [child.target.line() for child in found.values()] == [
        "kernel_1 8 8 8 8 3x3 1 1",
        "kernel_2 8 8 4 4 3x3 1 1",
    ]
    assert all(torch.equal(value, before[key]) for key, value in net.state_dict().items())
    assert net.training and net.kernel_1.training and not net.bn.training
    assert all(p.grad is None for p in net.parameters())
    assert not any(child._forward_pre_hooks for child in net.modules())


def test_a_forward_that_raises_leaves_no_trace():
    net = Net()
    with pytest.raises(
        canvas.CanvasError, match="does not run on the example input: Given groups"
    ):
        canvas.get_placeholders(net, torch.zeros(1, 4, 8, 8))
    assert net.training and not any(child._forward_pre_hooks for child in net.modules())


def test_sampling_twice_replaces_the_kernel():
    net = Net()
    first = canvas.sample(net, IMAGE, seed=1, index=None)
    canvas.replace(net, first)
    kernel = net.kernel_1.kernel
    second = canvas.sample(net, torch.randn(1, 3, 16, 12), seed=2)
    canvas.replace(net, second.module)
    assert net.kernel_1.kernel is not kernel
    assert type(net.kernel_1.kernel).pack == second
    assert net.kernel_1.target.line() == "kernel_1 8 8 16 12 3x3 1 1"
    assert net(torch.randn(2, 3, 16, 12)).shape == (2, 8, 8, 6)


def test_process_seed():
    net = Net()
    first, second = canvas.sample(net, IMAGE), canvas.sample(net, IMAGE)
    assert first != second
    canvas.seed(0)
    assert canvas.sample(net, IMAGE) == first
    assert canvas.sample(net, IMAGE) == second
    assert canvas.sample(net, IMAGE, seed=0) == first
    canvas.seed(5)
    assert canvas.sample(net, IMAGE) == canvas.sample(net, IMAGE, seed=5)
    with pytest.raises(canvas.CanvasError, match="seed is a whole number"):
        canvas.seed(-1)
    with pytest.raises(canvas.CanvasError, match="seed is a whole number"):
        canvas.seed(True)


def test_options():
    net = Net()
    pack = canvas.sample(net, IMAGE, seed=3, primitives=(5, 6), budget="macs=0.5x", groups=4)
    assert 5 <= len(pack.kernel.splitlines()) - 4 <= 6
    assert pack.macs <= 8 * 8 * 9 * (64 + 16) // 2
    found = 0
    for index in range(10):
        try:
            found += bool(canvas.sample(net, IMAGE, seed=3, index=index, require="none").macs >= 0)
        except canvas.NoSolution:
            pass
    assert found


@pytest.mark.parametrize(
    "options",
    [
        {"budget": "macs=nan"},
        {"budget": ""},
        {"budget": "macs=0"},
        {"primitives": "9..5"},
        {"primitives": (0, 99999)},
        {"require": "luck"},
        {"groups": 3},
        {"groups": -1},
        {"seed": "x"},
        {"index": 2**63},
        {"example_input": "image"},
        {"example_input": torch.zeros(1)},
    ],
)
def test_bad_options_are_one_message(options):
    with pytest.raises(canvas.CanvasError) as error:
        canvas.sample(Net(), **{"example_input": IMAGE, **options})
    assert "\n" not in str(error.value) and str(error.value)


def test_no_kernel_in_the_budget():
    with pytest.raises(canvas.NoSolution, match="none of 1000 draws fits the budget"):
        canvas.sample(Net(), IMAGE, budget="macs=1")


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = canvas.Placeholder()

    def forward(self, x):
        return self.kernel(self.kernel(x)[..., 0])


class Never(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernel = canvas.Placeholder()

    def forward(self, x):
        return x


@pytest.mark.parametrize(
    ("module", "example", "message"),
    [
        (nn.Linear(3, 3), IMAGE, "no placeholder"),
        ("net", IMAGE, "torch.nn.Module is needed, not str"),
        (Never(), IMAGE, "'kernel' is not reached by the example input"),
        (Twice(), IMAGE, "different shapes: [2, 3, 8, 8] and [2, 3, 8]"),
        (nn.Sequential(canvas.Placeholder()), torch.zeros(8), "2 to 4 axes, not [8]"),
        (Net(), None, "'kernel_1' is not known yet; give an example_input"),
    ],
)
def test_networks_that_do_not_fit(module, example, message):
    with pytest.raises(canvas.CanvasError, match=re.escape(message)):
        canvas.sample(module, example)


def test_examples_of_other_forms():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.kernel = canvas.Placeholder()

        def forward(self, x, scale=1.0):
            return self.kernel(x * scale)

    for example in ((torch.zeros(1, 8, 4, 4), 2.0), {"x": torch.zeros(1, 8, 4, 4), "scale": 3.0}):
        net = Two()
        assert canvas.get_placeholders(net, example)["kernel"].target.sizes()[:2] == (8, 8)


def test_shared_and_root_placeholders_and_odd_names():
    shared = canvas.Placeholder()
    net = nn.Sequential(shared, shared)
    canvas.replace(net, canvas.sample(net, torch.zeros(1, 8, 4, 4)))
    assert net[0].kernel is net[1].kernel
    root = canvas.Placeholder()
    canvas.replace(root, canvas.sample(root, torch.zeros(1, 8, 4, 4)))
    assert root(torch.zeros(1, 8, 4, 4)).shape == (1, 8, 4, 4)
    odd = nn.Module()
    odd.add_module("my kernel", canvas.Placeholder())
    odd.add_module("my#kernel", canvas.Placeholder())
    odd.forward = lambda x: odd._modules["my#kernel"](odd._modules["my kernel"](x))
    pack = canvas.sample(odd, torch.zeros(1, 8, 4, 4))
    assert pack.targets == ["my_kernel", "my_kernel_2"]
    canvas.replace(odd, pack)


def test_device_and_dtype_come_from_the_network():
    net = Net().to(torch.bfloat16)
    canvas.replace(net, canvas.sample(net, IMAGE.to(torch.bfloat16)))
    assert {p.dtype for p in net.kernel_1.parameters()} == {torch.bfloat16}
    net = Net()
    pack = canvas.sample(net, IMAGE)
    canvas.replace(net.to("meta"), pack)
    assert all(p.device.type == "meta" for p in net.parameters())


def test_replace_rejects_and_changes_nothing():
    net = Net()
    pack = canvas.sample(net, IMAGE)
    other = Net(width=16)
    canvas.get_placeholders(other, IMAGE)
    with pytest.raises(canvas.CanvasError, match="no binding for 'kernel_1 16 16 8 8 3x3 1 1'"):
        canvas.replace(other, pack)
    assert other.kernel_1.kernel is None
    with pytest.raises(canvas.CanvasError, match="KernelPack or a module's class"):
        canvas.replace(net, 3)
    with pytest.raises(canvas.CanvasError, match="give an example_input"):
        canvas.replace(Net(), pack)


def test_any_class_may_replace():
    class Mine(nn.Module):
        def __init__(self, c, h, w):
            super().__init__()
            self.conv = nn.Conv2d(c, c, 3, padding=1)

        def forward(self, x):
            return self.conv(x)

    net = Net()
    canvas.get_placeholders(net, IMAGE)
    canvas.replace(net, Mine)
    assert net(IMAGE).shape == (2, 8, 4, 4)


def test_state_dict_goes_to_a_fresh_network():
    pack = canvas.sample(Net(), IMAGE)
    nets = []
    for _ in range(2):
        net = Net().eval()
        canvas.get_placeholders(net, IMAGE)
        nets.append(canvas.replace(net, pack))
    nets[1].load_state_dict(nets[0].state_dict(), strict=True)
    assert torch.equal(nets[0](IMAGE), nets[1](IMAGE))


def test_training_updates_every_weight():
    net = Net()
    canvas.replace(net, canvas.sample(net, IMAGE, seed=4))
    net(IMAGE).square().mean().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_quiet_run_restores_modes_one_by_one():
    net = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), Placeholder()))
    net[1][0].eval()
    run_quietly(net, torch.zeros(1, 2), {})
    assert [child.training for child in net.modules()] == [True, True, True, False, True]
