"""What is exported computes the same in a process that cannot import canvas."""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from canvas import KernelPack, _core
from canvas.data import Data
from canvas.deploy import network_code
from canvas.deploy.export import export
from canvas.deploy.trainer import train_network
from canvas.errors import CanvasError
from canvas.nn.controls import DEPTHWISE_SEPARABLE, GROUPED, IDENTITY, POINTWISE
from canvas.nn.network import Recipe, build_network, plan_network
from canvas.training import checkpoint

EXAMPLES = Path(__file__).parents[2] / "examples" / "kernels"

# A network of a user's: biases, fewer channels going out than in, a layer in a Sequential, a
# buffer of its own, a builder that is an attribute.
NETS = """
import torch
from torch import nn

class Small(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.stem = nn.Conv2d(channels, 8, 3, padding=1)
        self.body = nn.Sequential(
            nn.Conv2d(8, 8, 5, padding=2), nn.BatchNorm2d(8), nn.ReLU(),
            nn.Conv2d(8, 4, 3, 2, 1), nn.Dropout(0.5), nn.Conv2d(4, 12, 3, padding=1, bias=False),
        )
        self.register_buffer("shift", torch.arange(12.0)[:, None, None])
        self.head = nn.Linear(12, classes)

    def forward(self, x):
        return self.head((self.body(self.stem(x)) + self.shift).mean((2, 3)))

    @classmethod
    def of_no_norm(cls, num_classes, in_chans):
        return cls(in_chans, num_classes)
"""

# Loads every export and keeps its answers; whoever imports canvas fails.
CHILD = """
import importlib.util, sys
from pathlib import Path
assert sys.flags.isolated
sys.modules["canvas"] = sys.modules["canvas._core"] = None
import torch
from safetensors.torch import save_file
torch.set_num_threads(1)
folder, = sys.argv[1:]
sys.path.append(folder)
answers = {}
for path in sorted(Path(folder, "exports").iterdir()):
    spec = importlib.util.spec_from_file_location(path.name, path / "network.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    network = module.load(path / "weights.safetensors")
    assert not network.training
    noise = torch.randn(2, *module.SHAPE, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        answers[path.name] = network(noise)
        if path.name.endswith("norm"):
            assert not any(".norm" in name for name in network.state_dict())
            whole = module.load(path / "weights.safetensors", fold=False)
            assert any(".norm" in name for name in whole.state_dict())
            answers[path.name + ".whole"] = whole(noise)
    answers[path.name + ".fresh"] = module.build().eval()(noise).detach()
try:
    import canvas
except ImportError:
    save_file(answers, Path(folder, "answers"))
"""


def data(channels=1, side=8, classes=10, **facts):
    labels = torch.arange(classes)
    split = (torch.randn(classes, channels, side, side), labels)
    return Data("noise", split, split, split, classes, "noise", **facts)


def recipe_of(model, width, images):
    return Recipe(model, width, images.shape, images.classes, "paper", 1)


def solved(kernel, recipe, options=""):
    """As much as the layers replaced cost; the examples have sizes that nothing else bounds."""
    return _core.solve(kernel, plan_network(recipe).targets, "macs=2x,params=2x", options)


def drawn(recipe, seed, options=""):
    """The first draw of the stream that can be solved."""
    targets = plan_network(recipe).targets
    for index in range(50):
        found = _core.draw(targets, seed, index, "")
        if found is not None:
            kernel, groups = found
            try:
                return _core.solve(kernel, targets, "macs=0.5x", f"G={groups} {options}")
            except _core.NoSolution:
                pass
    raise AssertionError("nothing was drawn")


def example(name):
    return (EXAMPLES / f"{name}.kernel").read_text()


def cases():
    """name, model, width, pack (from a recipe; None: unchanged), data."""
    resnet8 = {
        "identity": lambda r: solved(IDENTITY, r, "exempt=1"),
        "pointwise": lambda r: solved(POINTWISE, r),
        "separable": lambda r: solved(DEPTHWISE_SEPARABLE, r),
        "grouped": lambda r: solved(GROUPED, r, "G=2"),
        "involution": lambda r: solved(example("involution"), r, "G=2"),
        "squeeze_excite": lambda r: solved(example("squeeze_excite"), r),
        "residual": lambda r: solved(example("residual"), r),
        "figure8_shift": lambda r: solved(example("figure8_shift"), r, "G=2"),
        "separable_norm": lambda r: solved(DEPTHWISE_SEPARABLE, r, "norm=batch"),
        "drawn1": lambda r: drawn(r, 1),
        "drawn2": lambda r: drawn(r, 2),
    }
    for name, pack in resnet8.items():
        yield name, "resnet8", 4, pack, data()
    yield "unchanged", "resnet8", 4, None, data()
    yield "resnet18", "resnet18", 4, resnet8["drawn1"], data(channels=3, side=65, classes=3)
    yield "own", "nets_of_a_user:Small", None, resnet8["separable"], data()
    yield "own_drawn", "nets_of_a_user:Small.of_no_norm", None, resnet8["drawn1"], data(channels=2)
    norm = lambda r: drawn(r, 1, "norm=batch")  # noqa: E731
    yield "own_norm", "nets_of_a_user:Small.of_no_norm", None, norm, data(channels=2)
    yield "own_unchanged", "nets_of_a_user:Small", None, None, data()


def lived(network, images):
    """`network` with BatchNorm statistics and biases that are not those of the beginning."""
    torch.manual_seed(3)
    with torch.no_grad():
        network.train()(images.train[0] * 3 + 1)
        for parameter in network.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
    return network.eval()


@pytest.fixture(scope="module")
def nets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("user")
    (folder / "nets_of_a_user.py").write_text(NETS)
    sys.path.append(str(folder))
    yield folder
    sys.path.remove(str(folder))


def test_the_exported_networks_answer_the_same_without_canvas(nets):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    (nets / "exports").mkdir()
    expected = {}
    for name, model, width, pack_of, images in cases():
        recipe = recipe_of(model, width, images)
        pack = None if pack_of is None else KernelPack(pack_of(recipe))
        network = lived(build_network(recipe, pack and pack.text), images)
        state = network.state_dict()
        checkpoint.write(nets / "w.safetensors", state, {})
        folder = export(
            "baseline" if pack is None else pack,
            nets / "exports" / name,
            model=model, width=width, data=images, weights=nets / "w.safetensors",
        )  # fmt: skip
        assert load_file(folder / "weights.safetensors").keys() == state.keys()
        noise = torch.randn(2, *images.shape, generator=torch.Generator().manual_seed(1))
        with torch.no_grad():
            expected[name] = network(noise)
    done = subprocess.run(
        [sys.executable, "-I", "-c", CHILD, nets], capture_output=True, text=True, timeout=240
    )
    assert (done.returncode, done.stderr) == (0, "")
    answers = load_file(nets / "answers")
    torch.set_num_threads(threads)
    assert len(expected) == 17
    for name, value in expected.items():
        assert value.abs().sum() > 0
        if name.endswith("norm"):  # folded: equal up to rounding
            torch.testing.assert_close(answers[name], value, rtol=1e-4, atol=1e-4, msg=name)
        whole = answers.get(name + ".whole", answers[name])
        torch.testing.assert_close(whole, value, rtol=1e-6, atol=1e-6, msg=name)
        assert answers[name + ".fresh"].shape == value.shape
        assert not torch.equal(answers[name + ".fresh"], value)


def test_layers_with_unequal_channels_are_among_them(nets):
    targets = plan_network(recipe_of("nets_of_a_user:Small", None, data())).targets
    sizes = [tuple(map(int, line.split()[1:3])) for line in targets.splitlines()]
    assert any(cin > cout for cin, cout in sizes) and any(cin < cout for cin, cout in sizes)


def test_a_training_is_exported_with_its_best_weights_and_figures(tmp_path):
    images = data(mean=(0.5,), deviation=(0.25,), synthetic=True)
    recipe = recipe_of("resnet8", 2, images)
    pack = KernelPack(solved(DEPTHWISE_SEPARABLE, recipe))
    trained = train_network(
        pack, model="resnet8", width=2, data=images, epochs=1, out=tmp_path / "t", threads=1,
        say=lambda line: None,
    )  # fmt: skip
    folder = export(tmp_path / "t", tmp_path / "deep" / "e")
    names = {"README.md", "kernel.py", "kernel.txt", "network.py", "pack.txt", "picture.svg"}
    assert set(os.listdir(folder)) == {*names, "weights.safetensors"}
    state = load_file(folder / "weights.safetensors")
    assert all(torch.equal(state[k], v) for k, v in trained.network.state_dict().items())
    assert KernelPack((folder / "pack.txt").read_text()) == pack
    assert (folder / "kernel.txt").read_text() == pack.kernel
    assert (folder / "kernel.py").read_text() == pack.torch_code
    assert (folder / "picture.svg").read_text().startswith("<svg")
    code = (folder / "network.py").read_text()
    assert "MEAN = (0.5,)" in code and "DEVIATION = (0.25,)" in code
    text = (folder / "README.md").read_text()
    assert "which are synthetic" in text and f"{100 * trained.test_accuracy:.2f} % +-" in text
    assert 10 <= len(text.splitlines()) <= 22


def test_readme_and_code_are_lines_that_fit(tmp_path):
    recipe = recipe_of("resnet8", 4, data())
    folder = export(
        KernelPack(drawn(recipe, 1)), tmp_path / "e", model="resnet8", width=4, data=data()
    )
    assert not (folder / "weights.safetensors").exists()
    assert "network = build()" in (folder / "README.md").read_text()
    body = (folder / "network.py").read_text().partition("BINDINGS")[0]
    assert max(map(len, body.splitlines())) <= 100


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "canvas export needs --model: 'baseline' comes from no study"),
        ({"model": "resnet8"}, "canvas export needs --data"),
        ({"model": "resnet9", "data": "x"}, "no model is called 'resnet9'|no data is called 'x'"),
        ({"model": "resnet8", "width": "wide"}, "--width takes a whole number"),
        ({"model": "resnet8", "epochs": 3}, "canvas export has no option 'epochs'"),
        ({"weights": "none.safetensors"}, "cannot read 'none.safetensors'"),
        ({"weights": __file__}, "is no file of weights"),
        ({"out": Path(__file__)}, "is there already: name another --out"),
        ({"out": Path(__file__) / "e"}, "cannot write"),
    ],
)
def test_bad_input_is_one_message_and_nothing_is_written(tmp_path, words, message):
    if "weights" in words or "out" in words:
        words = {"model": "resnet8", "width": 2, "data": data(), **words}
    with pytest.raises(CanvasError, match=message):
        export("baseline", words.pop("out", tmp_path / "e"), **words)
    assert list(tmp_path.iterdir()) == []


def test_weights_of_another_network_are_rejected(tmp_path):
    save_file({"a": torch.zeros(1)}, tmp_path / "w")
    with pytest.raises(
        CanvasError, match=r"are of another network: 'conv1\.weight' is missing and"
    ):
        export("baseline", tmp_path / "e", model="resnet8", data=data(), weights=tmp_path / "w")
    assert os.listdir(tmp_path) == ["w"]


def test_a_file_that_computes_something_else_is_not_written(tmp_path, monkeypatch):
    wrong = network_code.PLACE.replace("y = self.kernel(x)", "y = 2 * self.kernel(x)")
    monkeypatch.setattr(network_code, "PLACE", wrong)
    pack = KernelPack(solved(POINTWISE, recipe_of("resnet8", 2, data())))
    with pytest.raises(CanvasError, match="the exported network computes something else, by "):
        export(pack, tmp_path / "e", model="resnet8", width=2, data=data())
    assert os.listdir(tmp_path) == []


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CanvasError, match=r"cannot write .*No space left on device"):
        export("baseline", tmp_path / "e", model="resnet8", width=2, data=data())
    assert os.listdir(tmp_path) == []


SOURCE = '''
import math
import os.path as path
from collections.abc import Sequence, Mapping
from torch import nn

LIMIT = 3  # of something
OTHER = 4

def decorate(f):
    return f

@decorate
def wanted(x: Sequence):
    """Uses LIMIT and helper."""
    return helper(x) + LIMIT

def unwanted():
    return OTHER

def helper(x):
    return math.pi if x else wanted(x)
'''


def test_only_what_a_definition_needs_is_cut_out():
    parts = network_code.definitions(SOURCE, "wanted")
    assert parts[0] == "LIMIT = 3  # of something"
    assert parts[2].startswith("@decorate\ndef wanted")
    assert [ast.parse(part).body[0].lineno for part in parts] == [1, 1, 2, 1]
    assert "unwanted" not in "".join(parts) and "OTHER" not in "".join(parts)
    head = network_code.imports([SOURCE], "\n".join(parts))
    assert head == "import math\nfrom collections.abc import Sequence\n"


def test_a_name_cannot_become_code(tmp_path):
    """The name of a pack's file stands in comments and titles."""
    pack = solved(POINTWISE, recipe_of("resnet8", 2, data()))
    path = tmp_path / '"""\nraise SystemExit(3)\n"""'
    path.write_text(pack)
    folder = export(path, tmp_path / "e", model="resnet8", width=2, data=data())
    code = (folder / "network.py").read_text()
    assert "\nraise" not in code
    first = textwrap.dedent(ast.get_docstring(ast.parse(code)))
    assert first.startswith("The network resnet8 with the kernel ___")
