"""Built-in networks and those of the user, found by name."""

import pytest
import torch
from torch import nn

from canvas.errors import CanvasError
from canvas.models import check_model, load_model, resnet18


def params(model):
    return sum(p.numel() for p in model.parameters())


def convolutions(model):
    return [m for m in model.modules() if isinstance(m, nn.Conv2d)]


def test_resnet8_has_three_stages_of_one_block():
    model = load_model("resnet8", channels=1, classes=10, image_size=16)
    shapes = [
        (c.in_channels, c.out_channels, c.kernel_size[0], c.stride[0]) for c in convolutions(model)
    ]
    assert shapes == [
        (1, 16, 3, 1),
        (16, 16, 3, 1),
        (16, 16, 3, 1),
        (16, 32, 3, 2),
        (32, 32, 3, 1),
        (16, 32, 1, 2),
        (32, 64, 3, 2),
        (64, 64, 3, 1),
        (32, 64, 1, 2),
    ]
    assert model(torch.zeros(2, 1, 16, 16)).shape == (2, 10)


def test_width_scales_every_stage():
    model = load_model("resnet8", width=5)
    assert {c.out_channels for c in convolutions(model)} == {5, 10, 20}


def test_resnet18_counts_what_torchvision_counts():
    assert params(resnet18(3, 1000, 224)) == 11_689_512
    assert len(convolutions(resnet18())) == 20


@pytest.mark.parametrize(("size", "kernel", "pooled"), [(64, 3, False), (65, 7, True)])
def test_the_stem_is_small_for_small_images(size, kernel, pooled):
    model = load_model("resnet18", image_size=size, width=4)
    assert convolutions(model)[0].kernel_size[0] == kernel
    assert isinstance(model.maxpool, nn.MaxPool2d) is pooled


def test_the_seed_fixes_the_weights():
    def weights(seed):
        torch.manual_seed(seed)
        return load_model("resnet8", width=2).state_dict()

    a, b, c = weights(1), weights(1), weights(2)
    assert all(torch.equal(a[k], b[k]) for k in a)
    assert not all(torch.equal(a[k], c[k]) for k in a)


MINE = """
import torch
from torch import nn
CONSTANT = 3
def net(in_channels, num_classes):
    return nn.Sequential(nn.Conv2d(in_channels, 4, 3), nn.Flatten(), nn.LazyLinear(num_classes))
def wide(channels, classes, width=2): return nn.Conv2d(channels, width, 1)
def no_module(): return "hello"
def broken(): raise RuntimeError("first line\\nsecond line")
def leaves(): raise SystemExit(3)
class Holder:
    @staticmethod
    def net(): return nn.Identity()
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine_models.py").write_text(MINE)
    (tmp_path / "needs_other.py").write_text("import a_module_that_is_not_there")
    (tmp_path / "bad_syntax.py").write_text("def (")
    (tmp_path / "a_script.py").write_text("import sys; sys.exit(2)")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_callable_is_handed_the_facts_that_it_names(mine):
    model = load_model("mine_models:net", channels=2, classes=7)
    assert model(torch.zeros(1, 2, 5, 5)).shape == (1, 7)
    assert load_model("mine_models:wide", channels=3, width=9).out_channels == 9
    assert isinstance(load_model("mine_models:Holder.net"), nn.Identity)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("resnet9", "no model is called 'resnet9': there are resnet8 and resnet18"),
        ("", "no model is called ''"),
        ("no_such_module_anywhere:net", "there is no module 'no_such_module_anywhere'"),
        ("needs_other:net", "needs 'a_module_that_is_not_there', not installed"),
        ("bad_syntax:net", "cannot be imported: SyntaxError"),
        ("mine_models:nothing", "has no 'nothing'"),
        ("mine_models:CONSTANT", "is of type int, it must be callable"),
        (
            "mine_models:no_module",
            "returned an object of type str, it must return a torch.nn.Module",
        ),
        ("mine_models:broken", "cannot be built: first line"),
        ("mine_models:leaves", "cannot be built: SystemExit: 3"),
        ("a_script:net", "cannot be imported: SystemExit: 2"),
        ("mine_models:", "not of the form package.module:callable"),
        ("../evil:net", "not of the form package.module:callable"),
    ],
)
def test_a_name_that_cannot_be_used_is_one_message(mine, name, words):
    with pytest.raises(CanvasError) as error:
        load_model(name)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_width_that_a_model_does_not_take_is_rejected(mine):
    with pytest.raises(CanvasError, match="takes no width"):
        load_model("mine_models:net", width=3)


def test_a_network_must_fit_the_images(mine):
    model = load_model("resnet8", channels=3, width=2)
    with pytest.raises(CanvasError, match="does not take images of 1x8x8"):
        check_model(model, "resnet8", (1, 8, 8), 10)
    with pytest.raises(CanvasError, match=r"must answer \[N, 4\]"):
        check_model(model, "resnet8", (3, 8, 8), 4)
    assert model.training
