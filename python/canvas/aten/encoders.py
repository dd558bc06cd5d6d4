"""nn.TransformerEncoder, its layers and nn.MultiheadAttention with masks, as PyTorch computes them
in evaluation mode without gradients.

PyTorch then calls one kernel for a whole layer, which an export does not see.  Its results differ
from those of the other code: an encoder drops tokens at padding and gives zeros there, a layer
reads a mask of numbers as one of bools, and a query without a key gives NaN.  Here the modules of
a model get a `forward` that computes the same by operators that an export sees.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

Kind = type[nn.Module]


@contextmanager
def encoders_as_evaluated(model: nn.Module) -> Iterator[None]:
    """Meanwhile the model's own modules of these kinds; not those whose class has a forward of its
    own.
    """
    taken = []
    for module in model.modules():
        for kind, forward in FORWARDS.items():
            plain = isinstance(module, kind) and type(module).forward is kind.forward
            if plain and not module.training and "forward" not in vars(module):
                vars(module)["forward"] = functools.partial(forward, module, module.forward)
                taken.append(module)
    try:
        yield
    finally:
        for module in taken:
            vars(module).pop("forward", None)


# ---- an encoder ---------------------------------------------------------------------------------


def _encoder(
    module: Any,
    usual: Callable[..., Tensor],
    src: Tensor,
    mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool | None = None,
) -> Tensor:
    hidden = src_key_padding_mask
    if hidden is None or mask is not None or not _drops_padding(module, src):
        # that a mask is causal is a hint, and looking at it depends on values
        return usual(src, mask, src_key_padding_mask, bool(is_causal))
    hidden = hidden != 0
    kept = hidden.logical_not().sum(1, keepdim=True)
    last = torch.arange(src.shape[1], device=src.device) >= kept
    if module.mask_check:  # where tokens are missing on the left, PyTorch leaves all in
        drops = hidden & (last == hidden).all()
    else:
        hidden = drops = last
    kept_tokens = drops.logical_not().to(src.dtype).unsqueeze(-1)
    output = torch.where(kept_tokens != 0, src, 0)
    for layer in module.layers:
        output = layer(output, src_key_padding_mask=hidden)
    output = torch.where(kept_tokens != 0, output, 0)
    return output if module.norm is None else module.norm(output)


def _drops_padding(module: Any, src: Tensor) -> bool:
    fast = torch.backends.mha.get_fastpath_enabled() and getattr(
        module, "use_nested_tensor", False
    )
    return bool(fast) and not module.layers[0].training and src.dim() == 3


# ---- a layer ------------------------------------------------------------------------------------


def _layer(
    module: Any,
    usual: Callable[..., Tensor],
    src: Tensor,
    src_mask: Tensor | None = None,
    src_key_padding_mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    if (src_mask is None and src_key_padding_mask is None) or not _is_fast_layer(module, src):
        return usual(src, src_mask, src_key_padding_mask, is_causal)
    hidden, padding = _as_bools(src_mask), _as_bools(src_key_padding_mask)
    output = usual(src, _as_numbers(hidden, src), _as_numbers(padding, src), False)
    return _without_keys_nan(output, hidden, padding, module.self_attn.num_heads)


def _is_fast_layer(module: Any, src: Tensor) -> bool:
    attention = module.self_attn
    hooks = any(
        getattr(one, "_forward_hooks", None) or getattr(one, "_forward_pre_hooks", None)
        for one in module.modules()
    )
    return (
        _is_fast_attention(attention)
        and src.dim() == 3
        and bool(module.activation_relu_or_gelu)
        and module.norm1.eps == module.norm2.eps
        and not hooks
    )


def _is_fast_attention(attention: Any) -> bool:
    return bool(
        torch.backends.mha.get_fastpath_enabled()
        and attention.batch_first
        and attention.in_proj_bias is not None
        and attention._qkv_same_embed_dim
        and attention.num_heads % 2 == 0
        and not attention.training
    )


# ---- attention ----------------------------------------------------------------------------------


def _attention(
    module: Any,
    usual: Callable[..., Any],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> Any:
    found = usual(
        query,
        key,
        value,
        key_padding_mask,
        need_weights,
        attn_mask,
        average_attn_weights,
        is_causal,
    )
    masks = [mask for mask in (key_padding_mask, attn_mask) if mask is not None]
    if (
        need_weights  # then PyTorch's other code gives NaN, too
        or not masks
        or any(mask.is_floating_point() for mask in masks)
        or query is not key
        or key is not value
        or query.dim() != 3
        or not _is_fast_attention(module)
        or module.bias_k is not None
        or module.add_zero_attn
    ):
        return found
    return _without_keys_nan(found[0], attn_mask, key_padding_mask, module.num_heads), found[1]


# ---- masks --------------------------------------------------------------------------------------


def _as_bools(mask: Tensor | None) -> Tensor | None:
    return mask if mask is None or mask.dtype == torch.bool else mask != 0


def _as_numbers(hidden: Tensor | None, like: Tensor) -> Tensor | None:
    if hidden is None:
        return None
    return torch.zeros_like(hidden, dtype=like.dtype).masked_fill(hidden, -torch.inf)


def _without_keys_nan(
    output: Tensor, hidden: Tensor | None, padding: Tensor | None, heads: int
) -> Tensor:
    """NaN for each query whose keys are all hidden, in any of the heads."""
    batch, queries = output.shape[:2]
    if padding is not None:
        padding = padding.view(batch, 1, 1, padding.shape[-1])
    if hidden is not None:
        own = (batch, heads) if hidden.dim() == 3 else (1, 1)
        hidden = hidden.view(*own, *hidden.shape[-2:])
    every = padding if hidden is None else hidden if padding is None else hidden | padding
    assert every is not None
    alone = every.all(-1).any(1).expand(batch, queries)
    numbers = alone.to(output.dtype).unsqueeze(-1)
    return torch.where(numbers != 0, torch.nan, output)


FORWARDS: dict[Kind, Callable[..., Any]] = {
    nn.TransformerEncoder: _encoder,
    nn.TransformerEncoderLayer: _layer,
    nn.MultiheadAttention: _attention,
}
