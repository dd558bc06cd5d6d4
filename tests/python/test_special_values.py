"""NaN, infinities, zeros as factors and scales of every kind: what eager PyTorch makes of them."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from network_interpreter import differences
from one_operator import Constant, OneOperator
from test_aten_operators import CASES, full_name
from torch import Tensor, nn

import canvas

ALL = bool(os.environ.get("CANVAS_TEST_ALL"))
BAD = (torch.nan, torch.inf, -torch.inf) if ALL else (torch.nan, torch.inf)
FACTORS = (0, 1, -1, 0.5) if ALL else (0, -1)
SCALARS = {"alpha", "beta", "value", "weight", "slope", "negative_slope", "lambd", "threshold",
           "scale", "input_scale", "min", "max", "min_val", "max_val", "exponent"}  # fmt: skip
NO_SCALE = {"celu": 0}  # PyTorch refuses it


class Does(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *given: Any) -> Any:
        return self.function(*given)


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def schema_of(name: str) -> Any:
    space, short, overload = full_name(name).split(".")
    return getattr(getattr(getattr(torch.ops, space), short), overload)._schema


def scalars_of(name: str) -> list[tuple[int, Any]]:
    """Places and descriptions of the arguments that are factors and the like."""
    kinds = ("number", "float", "Optional[number]", "Optional[float]")
    rows = enumerate(schema_of(name).arguments)
    return [(at, a) for at, a in rows if a.name in SCALARS and str(a.type) in kinds]


def with_factors(name: str, args: list[Any], named: dict[str, Any]) -> Iterator[Any]:
    for at, argument in scalars_of(name):
        for factor in FACTORS:
            if argument.kwarg_only:
                yield args, {**named, argument.name: factor}
                continue
            given = list(args)
            for missing in schema_of(name).arguments[len(given) : at + 1]:
                given.append(missing.default_value)
            given[at] = factor
            yield given, named


def with_bad_ones(args: list[Any]) -> Iterator[list[Any]]:
    """Each input in turn has one element that is no number."""
    yield args
    for at, value in enumerate(args):
        if isinstance(value, Tensor) and value.dtype == torch.float32:
            for bad in BAD:
                put = value.clone()
                put.view(-1)[put.numel() // 2] = bad
                yield [*args[:at], put, *args[at + 1 :]]


@pytest.mark.parametrize("name", [name for name in CASES if scalars_of(name)])
def test_factors_of_0_beside_what_is_no_number(name: str) -> None:
    if "attention" in name:
        pytest.skip("it has a test of its own")
    for case in CASES[name] if ALL else CASES[name][-1:]:
        args, named = (case[:-1], case[-1]) if isinstance(case[-1], dict) else (case, {})
        for given, more in with_factors(name, list(args), named):
            for row in with_bad_ones(given):
                try:
                    one = OneOperator(full_name(name), tuple(row), more)
                except RuntimeError:  # a factor that PyTorch refuses
                    continue
                assert max(differences(one.imported(), one.inputs, one.wanted)) < 3e-6, more


class Products(nn.Module):
    """What has a factor for a product and one for what is added, those that PyTorch writes in
    terms of others, too; batches below and above the size from which PyTorch calls BLAS.
    """

    def forward(self, added: Tensor, a: Tensor, b: Tensor, large: Tensor) -> list[Tensor]:
        found = []
        for beta, alpha in ((0, 0), (0, 2), (1, 0)):
            by = {"beta": beta, "alpha": alpha}
            found += [
                torch.addmm(added[0], a[0], b[0], **by),
                torch.baddbmm(added, a, b, **by),
                torch.baddbmm(large, large, large, **by),
                torch.addbmm(added[0], a, b, **by),
                torch.addmv(added[0, :, 0], a[0], b[0, :, 0], **by),
                torch.addr(added[0], a[0, :, 0], b[0, 0], **by),
            ]
        return [y + 0.0 for y in found]


def test_products_with_a_factor_of_0() -> None:
    given = [random(2, 3, 4), random(2, 3, 5), random(2, 5, 4), random(2, 8, 8)]
    compiled = canvas.compile(Products().eval(), tuple(given))
    for row in with_bad_ones(given):
        for got, wanted in zip(compiled(*row), Products()(*row), strict=True):
            torch.testing.assert_close(got, wanted, equal_nan=True, rtol=1e-4, atol=1e-5)


# ---- interpolation ------------------------------------------------------------------------------

SCALES = (0.33333, 0.66667, 1.33333, 1.99999, 2**-0.5, 1 / 3, 1.7)
SIZES = range(1, 601) if ALL else (1, 2, 3, 64, 199)
MODES = {"linear1d": 1, "nearest1d": 1, "bilinear2d": 2, "nearest2d": 2,
         "trilinear3d": 3, "nearest3d": 3}  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("corners", [False, True])
def test_any_number_is_a_scale(mode: str, corners: bool) -> None:
    """Along each axis in turn; the images are smooth, as PyTorch's places are rounded."""
    if corners and "nearest" in mode:
        return
    count, worst = MODES[mode], 0.0
    for turn, scale in enumerate(SCALES):
        for size in SIZES:
            if int(size * scale) < 1:
                continue
            axis = turn % count
            sides = [size if at == axis else 2 for at in range(count)]
            scales = [scale if at == axis else 1.0 for at in range(count)]
            line = [size if at == axis else 1 for at in range(count)]
            x = torch.arange(float(size)).view(1, 1, *line).expand(1, 1, *sides) / 16
            more = [] if "nearest" in mode else [corners]
            name = f"aten.upsample_{mode}.vec"
            one = OneOperator(name, (x.contiguous(), None, *more, scales), {})
            worst = max(worst, *differences(one.imported(), one.inputs, one.wanted))
    assert worst < 1e-6


@pytest.mark.parametrize("again", [None, True, False] if ALL else [None])
def test_scales_of_the_modes_that_pytorch_writes(again: bool | None) -> None:
    """Compiled, several in one network."""

    def function(x: Tensor) -> list[Tensor]:
        found = []
        for mode in ("bicubic", "bilinear", "nearest-exact", "area")[: 4 if ALL else 2]:
            corners = {"align_corners": False} if mode in ("bicubic", "bilinear") else {}
            for scale in (0.33333, (1.99999, 0.66667))[0 if ALL else 1 :]:
                found.append(
                    F.interpolate(
                        x, scale_factor=scale, mode=mode, recompute_scale_factor=again, **corners
                    )
                )
        return found

    x = random(1, 2, 41, 37)
    for got, wanted in zip(canvas.compile(Does(function).eval(), x)(x), function(x), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=1e-5)


# ---- attention ----------------------------------------------------------------------------------

CAUSAL = torch.ones(6, 6, dtype=torch.bool).tril()
NO_KEY = CAUSAL.clone()
NO_KEY[0] = False
MASKS: dict[str, dict[str, Any]] = {
    "none": {},
    "bools": {"attn_mask": NO_KEY},
    "numbers": {"attn_mask": torch.zeros(6, 6).masked_fill(~NO_KEY, -torch.inf)},
    "causal": {"is_causal": True},
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("rank, width", [(4, 4), (4, 2), (3, 4)])
def test_keys_and_values_that_are_no_numbers(mask: str, rank: int, width: int) -> None:
    """PyTorch has a kernel for four axes and one width, and other code for the rest.  The scores
    of a query that is NaN are left out: of those the kernel gives 0 or NaN, by the number of keys.
    """
    shape = (1, 2, 6)[4 - rank :]
    q, k, v = random(*shape, 4), random(*shape, 4) + 1, random(*shape, width)
    named = {key: Constant(x) if isinstance(x, Tensor) else x for key, x in MASKS[mask].items()}
    for which, bad in ((k, torch.nan), (k, torch.inf), (k, -torch.inf), (v, torch.nan), (k, None)):
        given = [x.clone() for x in (q, k, v)]
        place = 1 if which is k else 2
        if bad is None:
            given[0][:], given[1][:] = 1, -torch.inf  # every score
        else:
            given[place][..., 3, :] = bad
        args = [*given, named.get("attn_mask"), 0.0, named.get("is_causal", False)]
        one = OneOperator("aten.scaled_dot_product_attention.default", tuple(args), {})
        assert max(differences(one.imported(), one.inputs, one.wanted)) < 3e-6


# ---- encoders -----------------------------------------------------------------------------------

TOKENS = 5
HIDDEN = torch.tensor([[0, 0, 0, 1, 1], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]]) > 0
NOT_LEFT, WHOLE_ROW = HIDDEN.clone(), HIDDEN.clone()
NOT_LEFT[2, 0] = WHOLE_ROW[2] = True
PADDINGS = {
    "aligned": HIDDEN,
    "not aligned": NOT_LEFT,
    "a whole row": WHOLE_ROW,
    "numbers": torch.zeros(3, TOKENS).masked_fill(HIDDEN, -torch.inf),
    "soft numbers": torch.zeros(3, TOKENS).masked_fill(HIDDEN, -1.0),
}
LATER = torch.ones(TOKENS, TOKENS, dtype=torch.bool).triu(1)
CALLS: dict[str, dict[str, Tensor]] = {
    **{name: {"src_key_padding_mask": mask} for name, mask in PADDINGS.items()},
    "both": {"mask": LATER, "src_key_padding_mask": WHOLE_ROW},
    "a mask of numbers": {"mask": random(TOKENS, TOKENS)},
    "a mask of each head": {"mask": random(6, TOKENS, TOKENS) > 0.3},
}


def encoder(layers: int = 1, before: bool = False, **options: Any) -> nn.Module:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=before)
    return nn.TransformerEncoder(layer, layers, **options).eval()


ENCODERS: dict[str, Any] = {
    "two layers": lambda: encoder(2),
    "a norm": lambda: encoder(norm=nn.LayerNorm(8)),
    "no nested tensors": lambda: encoder(enable_nested_tensor=False),
    "norms before": lambda: encoder(before=True, enable_nested_tensor=False),
    "masks not checked": lambda: encoder(mask_check=False),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ENCODERS if ALL else ["masks not checked"])
def test_encoders_with_masks(name: str) -> None:
    """The graph that is compiled is run by PyTorch, beside PyTorch's own kernels."""
    model, x = ENCODERS[name](), random(3, TOKENS, 8)
    missing = x.clone()
    missing[0, 4] = torch.nan
    for call, masks in CALLS.items():
        if not ALL and call != "both":
            continue
        graph = canvas.aten.export(model, (x,), masks).module()
        with torch.no_grad():
            for given in (x, missing):
                wanted = model(given, **masks)
                torch.testing.assert_close(
                    graph(given, **masks), wanted, equal_nan=True, rtol=0, atol=1e-5, msg=call
                )


@pytest.mark.skipif(not ALL, reason="long, CANVAS_TEST_ALL=1 runs it")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_attention_of_queries_without_keys() -> None:
    torch.manual_seed(0)
    model, x = nn.MultiheadAttention(8, 2, batch_first=True).eval(), random(3, TOKENS, 8)
    for masks in ({}, {"attn_mask": LATER}) if ALL else ({},):
        for weights in (False, True) if ALL else (False,):
            row = {"key_padding_mask": WHOLE_ROW, "need_weights": weights, **masks}
            with torch.no_grad():
                wanted = model(x, x, x, **row)[0]
                got = canvas.aten.export(model, (x, x, x), row).module()(x, x, x, **row)[0]
            torch.testing.assert_close(got, wanted, equal_nan=True, rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_encoder_is_compiled_for_every_padding(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "canvas")
    model, x = encoder(norm=nn.LayerNorm(8)), random(3, TOKENS, 8)
    compiled = canvas.compile(model, {"src": x, "src_key_padding_mask": HIDDEN})
    with torch.no_grad():
        for mask in (HIDDEN, NOT_LEFT, WHOLE_ROW):  # which of them drops padding, data say
            wanted = model(x, src_key_padding_mask=mask)
            got = compiled(src=x, src_key_padding_mask=mask)
            torch.testing.assert_close(got, wanted, equal_nan=True, rtol=0, atol=1e-5)


# ---- norms --------------------------------------------------------------------------------------


def norms(x: Tensor) -> list[Tensor]:
    return [
        F.layer_norm(x, (96,)),
        F.layer_norm(x.flatten(1).unflatten(1, (4, 768)), (768,)),
        F.group_norm(x, 4),
        F.instance_norm(x.unflatten(2, (8, 12))),
    ]


def test_norms_keep_the_digits_near_the_mean() -> None:
    """Errors against float64, beside eager PyTorch's: of all elements, and of those near the mean,
    whose own errors are smaller; of a large mean, and where the first element is far from it.
    """
    x = random(16, 32, 96)
    compiled = canvas.compile(Does(norms).eval(), x)
    far = x.clone()
    far[..., 0] += 30
    for given, near_bound in ((x, 5.0), (x + 1000, 1.0), (x - 10000, 1.0), (far, 12.0)):
        for got, eager, exact in zip(compiled(given), norms(given), norms(given.double())):
            near = exact.abs() < 0.05
            for rows, bound in ((exact.abs() >= 0, 2.5), (near, near_bound)):
                ours, theirs = (float((y - exact).abs()[rows].max()) for y in (got, eager))
                assert ours <= bound * theirs
    assert all(float(y.abs().max()) == 0 for y in compiled(torch.full_like(x, 1234.5678)))
