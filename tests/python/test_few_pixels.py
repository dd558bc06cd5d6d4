"""Layers whose images have one pixel, or few: every weight of what is drawn for them gets a
gradient, and convolutions on one pixel stay unless they are asked for.
"""

import os
import warnings

import pytest
import torch
from torch import nn

import canvas
from canvas import CanvasError, KernelPack, _core
from canvas.errors import NoSolution
from canvas.nn.network import Recipe, build_network
from canvas.nn.survey import ONE_PIXEL

CONV = "canvas 1\nkernel conv\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n"
NIGHTLY = bool(os.environ.get("CANVAS_TEST_ALL"))


class SqueezeExcite(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        self.reduce = nn.Conv2d(channels, channels // 4, 1)
        self.expand = nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x):
        squeezed = nn.functional.silu(self.reduce(x.mean((2, 3), keepdim=True)))
        return x * self.expand(squeezed).sigmoid()


def network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1),
        SqueezeExcite(),
        nn.Conv2d(16, 16, 3, padding=1),
        nn.AdaptiveAvgPool2d(2),
        nn.Conv2d(16, 16, 3, padding=1, stride=2),
        nn.Conv2d(16, 8, 1),
    )


IMAGE = torch.zeros(2, 3, 12, 12)


def reasons(conversion):
    return {row.name: row.reason for row in conversion.table}


def test_convolutions_on_one_pixel_stay():
    kept = canvas.convert(network(), IMAGE)
    assert reasons(kept) == {
        "0": "it is the first convolution",
        "1.reduce": ONE_PIXEL,
        "1.expand": ONE_PIXEL,
        "2": "",
        "4": ONE_PIXEL,  # 2x2, pooled by its stride
        "5": ONE_PIXEL,
    }
    assert "5  " in str(kept) and ONE_PIXEL in str(kept)
    asked = reasons(canvas.convert(network(), IMAGE, policy="all"))
    assert [name for name, reason in asked.items() if not reason] == [
        "1.reduce",
        "1.expand",
        "2",
        "4",
        "5",
    ]
    assert reasons(canvas.convert(network(), IMAGE, policy="spatial"))["4"] == ONE_PIXEL


def test_it_is_said_where_all_are_on_one_pixel():
    layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.AdaptiveAvgPool2d(1))
    with pytest.raises(CanvasError, match="policy 'all' would replace 1"):
        canvas.convert(nn.Sequential(*layers, nn.Conv2d(8, 8, 1)), IMAGE)


def idle(pack, images=32, rounds=12):
    """The parameters of which some number has no gradient in any of some random batches."""
    found = []
    for binding in pack.module.BINDINGS:
        module = pack.module(binding["cin"], target=binding["name"]).double()
        seen = {
            name: torch.zeros_like(p, dtype=torch.bool) for name, p in module.named_parameters()
        }
        if not seen:
            continue  # a kernel without weights
        start = [parameter.detach().clone() for parameter in module.parameters()]
        for turn in range(rounds):
            with torch.no_grad():
                for parameter, first in zip(module.parameters(), start):
                    noise = torch.randn_like(first) * first.pow(2).mean().sqrt()
                    parameter.copy_(noise * 2.0 ** (turn % 4 - 1))
            x = torch.randn(images, binding["cin"], binding["h"], binding["w"]).double()
            out = module(x)
            module.zero_grad()
            (out * torch.rand_like(out)).sum().backward()
            for name, parameter in module.named_parameters():
                if parameter.grad is not None:
                    seen[name] |= parameter.grad.abs() > 1e-12 * parameter.grad.abs().max()
            if all(mask.all() for mask in seen.values()):
                break
        found += [(binding["name"], name) for name, mask in seen.items() if not mask.all()]
    return found


TARGETS = {
    "one pixel": "a 8 8 1 1 3 1 1\n",
    "with others": "a 8 8 1 1 1 1 1\nb 8 16 1 1 1 1 1\nc 16 8 1 1 1 1 1\nd 8 8 6 6 3 1 1\n",
    "few pixels": "a 8 8 2 2 5 1 1\nb 8 8 1 6 3 1 1\nc 8 16 2 2 3 2 1\nd 8 8 4 3 7 1 1\n",
    "a row": "a 8 8 1 9 3 1 1\n",
    "a column": "a 8 8 9 1 3 1 1\n",
}


@pytest.mark.parametrize("options", ["", "draws=paper", "require=none"])
@pytest.mark.parametrize("targets", TARGETS.values(), ids=TARGETS.keys())
def test_every_weight_gets_a_gradient(targets, options):
    torch.manual_seed(0)
    solved, parents = 0, []
    for index in range(140 if NIGHTLY else 3):
        drawn = _core.draw(targets, 5, index, options)
        assert drawn is not None
        parents = [drawn, *parents][:2]
        for kernel, groups in filter(
            None, (drawn, _core.mutate(targets, 5, index, options, parents))
        ):
            try:
                pack = KernelPack(_core.solve(kernel, targets, "macs=2x,params=2x", f"G={groups}"))
            except NoSolution:
                continue
            solved += 1
            assert idle(pack) == [], pack.text
    assert solved


def test_a_network_with_all_of_its_layers_replaced():
    model = canvas.convert(network(), IMAGE, policy="all").model
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            canvas.replace(model, canvas.sample(model, IMAGE, budget="macs=1x", seed=seed))
        model.zero_grad()
        for _ in range(4):  # a batch may leave a small weight behind a relu without a gradient
            model(torch.randn(16, 3, 12, 12)).square().mean().backward()
        assert all(q.grad is not None and q.grad.any() for q in model.parameters()), seed


def test_a_pack_by_hand_is_warned_of():
    model = canvas.convert(network(), IMAGE, policy="all").model
    lines = [
        line.split()
        for line in canvas.convert(network(), IMAGE, policy="all").targets.splitlines()
    ]
    binds = "".join(
        f"bind {n} Cin={i} Cout={o} H={h} W={w} KH={k[0]} KW={k[-1]} stride={s}\n"
        for n, i, o, h, w, k, s, _ in lines
    )
    with pytest.warns(UserWarning, match="target '4': on its image of 1x1 not every number"):
        canvas.replace(model, KernelPack(CONV + binds))
    targets = "a 8 8 1 1 3 1 1\n"
    with pytest.raises(NoSolution, match="not every number of weight w0"):
        _core.solve(CONV, targets, "macs=none,params=none", "")
    assert _core.idle_weights(_core.solve(CONV, targets, "macs=none,params=none", "exempt=1"))
    assert _core.idle_weights(_core.bind(CONV, "C=8,H=12,W=12")) == ""


def test_a_pack_of_an_earlier_study_replaces_what_it_names(tmp_path, monkeypatch):
    (tmp_path / "squeezing.py").write_text(
        "from test_few_pixels import network\n\n\n"
        "def model(channels=3, classes=8, image_size=12, width=None):\n"
        "    from torch import nn\n"
        "    return nn.Sequential(network(), nn.Flatten())\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    recipe = Recipe("squeezing:model", None, (3, 12, 12), 8, "paper", 0)
    bare = build_network(recipe)
    conversion = canvas.convert(bare, IMAGE, policy="all")
    pack = canvas.sample(conversion.model, IMAGE, budget="macs=1x", seed=1)
    replaced = canvas.get_placeholders(build_network(recipe, pack.text))
    assert {child.target.name for child in replaced.values()} == set(pack.targets)
