"""Every operator of canvas.aten against PyTorch, by the interpreter, on small odd shapes."""

import itertools
from typing import Any

import pytest
import torch
from network_interpreter import differences
from one_operator import Constant, OneOperator, Weight

import canvas
from canvas import aten
from canvas.aten.families import ROWS

BOUND = 3e-6
counter = itertools.count()


def R(*shape: int, low: float | None = None) -> torch.Tensor:
    """Numbers of both signs, or above `low`; the same in every run."""
    made = torch.randn(shape, generator=torch.Generator().manual_seed(next(counter)))
    return made if low is None else made.abs() + low


def I(*values: int) -> Constant:  # noqa: E743
    return Constant(torch.tensor(values))


def B(*shape: int) -> Constant:
    return Constant(R(*shape) > 0)


X = R(2, 3, 5, 7)
LEAST = torch.tensor(
    [[torch.finfo(torch.float32).min] * 3, [0, torch.finfo(torch.float32).min, 0]]
)
HIDDEN = torch.tensor([[0.0, 1.0, -torch.inf], [-torch.inf] * 3])
SIGNS = torch.tensor([[-30.0, -2.0, -0.5, 0.0], [0.5, 1.0, 3.5, 30.0]])
BATCH = (Weight(R(3)), Weight(R(3)), R(3), Weight(R(3, low=0.1)))
CONV = [0, 0], [1, 1]
UNARY = """relu relu6 sigmoid tanh silu hardsigmoid hardswish mish selu log_sigmoid neg abs expm1
square sin cos erf floor ceil trunc sign""".split()  # noqa: SIM905
ARITHMETIC = ["add", "sub", "mul", "div", "rsub"]
COPIES = ["clone", "contiguous", "detach", "alias", "lift_fresh_copy", "lift_fresh", "_to_copy"]
LINEAR = ("linear", 1, [5]), ("bilinear", 2, [4, 5]), ("trilinear", 3, [3, 2, 5])
Case = tuple[Any, ...]  # arguments, and perhaps a dict of more

# name without "aten." and ".default" -> calls
CASES: dict[str, list[Case]] = {
    # element by element
    **{
        name: [(SIGNS,), (X,)]
        for name in UNARY
    },
    **{
        name: [(R(2, 5, low=0.1),)]
        for name in ["exp", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "tan"]
    },
    "gelu": [(SIGNS,), (SIGNS, {"approximate": "tanh"})],
    "leaky_relu": [(SIGNS,), (SIGNS, 0.3)],
    "elu": [(SIGNS,), (SIGNS, 0.5, 1.5, 0.7)],
    "celu": [(SIGNS, 0.7)],
    "prelu": [(X, Weight(R(3))), (SIGNS, Weight(R(1))), (X, Weight(R()))],
    "softplus": [(SIGNS,), (SIGNS, 2.0, 3.0)],
    "hardtanh": [(SIGNS,), (SIGNS, -0.6, 2)],
    "threshold": [(SIGNS, 0.4, -1.0)],
    "hardshrink": [(SIGNS, 0.5)],
    "glu": [(R(2, 6, 3), 1), (R(3, 4),)],
    # arithmetic
    **{
        f"{name}.Tensor": [(X, R(3, 1, 7)), (R(5, 1), R(2, 1, 7)), (R(2), Constant(R(2)))]
        for name in ARITHMETIC
    },
    **{f"{name}.Scalar": [(X, 2), (SIGNS, -0.25)] for name in ARITHMETIC},
    **{name: [(X, R(7))] for name in ["maximum", "minimum", "max.other", "min.other"]},
    "clamp": [(SIGNS, -1, 2.5), (SIGNS, None, 1), (SIGNS, 0.25)],
    "clamp.Tensor": [(X, R(7, low=-2), R(7, low=0.2))],
    "clamp_min": [(SIGNS, 0.5)],
    "clamp_max": [(SIGNS, 0.5)],
    "addcmul": [(R(3, 4), R(3, 1), R(4), {"value": 0.5})],
    "addcdiv": [(R(3, 4), R(3, 1), R(4, low=1), {"value": -2})],
    "lerp.Scalar": [(R(3), R(3), 0.3), (R(3), R(3), 0.7), (R(3), R(3), -0.6)],
    "lerp.Tensor": [(R(3), R(3), R(3))],
    "pow.Tensor_Scalar": [
        *((R(3, 2, low=0.3), e) for e in (0.5, 1, 2, 3, -1, -0.5, -2, 1.7)),
        (SIGNS, 2),
    ],
    "pow.Tensor_Tensor": [(R(3, low=0.2), R(2, 3))],
    "pow.Scalar": [(2.5, SIGNS[:, 1:3].contiguous())],
    # comparisons: of constants alone here, test_comparisons has the others
    **{
        f"where.{name}": [(B(2, 3), a, b)]
        for name, a, b in (
            ("self", R(3), R(2, 1)),
            ("ScalarOther", R(3), 0.5),
            ("ScalarSelf", float("-inf"), R(2, 3)),
        )
    },
    "masked_fill.Scalar": [(R(2, 3), B(3), float("-inf"))],
    "masked_fill.Tensor": [(R(2, 3), B(2, 3), Constant(torch.tensor(2.0)))],
    # the same
    **{
        name: [(R(2, 3),)]
        for name in COPIES
    },
    **{name: [(R(2, 3), 0.5, False)] for name in ["dropout", "feature_dropout", "alpha_dropout"]},
    "native_dropout": [(R(2, 3), 0.5, False)],
    "to.dtype": [(R(2), torch.float32)],
    "to.dtype_layout": [(R(2), {"dtype": torch.float32})],
    "to.other": [(R(2), Constant(R(3)))],
    "type_as": [(R(2), Constant(R(3)))],
    "expand": [(R(3, 1), [2, 3, 4]), (R(3, 1), [-1, 5]), (R(3), [3])],
    "expand_as": [(R(3, 1), R(2, 3, 2))],
    # shape
    **{
        name: [(X, [2, -1]), (X, [6, 5, 7]), (R(6, 4), [3, 8]), (R(2, 6, 2), [4, 3, 1, 2])]
        for name in ["view", "_unsafe_view", "reshape"]
    },
    "flatten.using_ints": [(X, 1), (X, 1, 2), (X,)],
    "unflatten.int": [(R(2, 6, 3), 1, [2, 3]), (R(2, 6), -1, [-1, 2])],
    "squeeze": [(R(1, 3, 1),)],
    "squeeze.dim": [(R(1, 3, 1), 0), (R(1, 3, 1), 1)],
    "squeeze.dims": [(R(1, 3, 1), [0, 2])],
    "unsqueeze": [(R(2, 3), 1), (R(2, 3), -1)],
    "permute": [(X, [0, 2, 3, 1]), (X, [3, -3, 0, 2])],
    "transpose.int": [(X, 1, -1)],
    "t": [(R(2, 3),), (R(2),)],
    "flip": [(X, [1, -1])],
    "roll": [(X, [2, -1], [2, 3]), (R(2, 3), [2]), (R(2, 3), [9], [1])],
    "pixel_shuffle": [(R(2, 8, 3, 5), 2), (R(9, 2, 1), 3)],
    "pixel_unshuffle": [(R(2, 2, 4, 6), 2)],
    "channel_shuffle": [(R(2, 6, 3, 2), 3)],
    # parts, several in one
    "slice.Tensor": [(X, 2, 1, 4), (X, -1, 0, 9223372036854775807, 3), (X, 1, -2)],
    "narrow": [(X, 3, 2, 4), (X, 3, -2, 1)],
    "select.int": [(X, 1, 2), (X, -1, -1), (R(3), 0, 1)],
    "split_with_sizes": [(X, [2, 4, 1], 3)],
    "split.sizes": [(X, [2, 4, 1], 3)],
    "split.Tensor": [(X, 3, -1)],
    "chunk": [(X, 3, 3)],
    "unbind.int": [(R(2, 3, 2), 1)],
    "cat": [([R(2, 3), R(2, 1), R(2, 4)], 1), ([R(1, 2)] * 70,), ([R(2)],)],
    "stack": [([R(2, 3), R(2, 3)], -1), ([R(2), Constant(R(2))],)],
    "repeat": [(R(2, 3), [2, 1, 3]), (R(2), [1])],
    # written in part
    "copy": [(R(2, 3), R(3)), (R(2, 3), Constant(torch.tensor(2.0)))],
    "fill.Tensor": [(R(2, 3), R())],
    "fill.Scalar": [(R(2, 3), 0.5)],
    "slice_scatter": [
        (X, R(2, 3, 5, 3), 3, 2, 5),
        (X, R(2, 3, 5, 3), -1, 1, 9223372036854775807, 2),
        (X, R(2, 1, 5, 7), 1, -1),
        (X, R(2, 3, 4, 7), 2, None, -1),
        (X, R(2, 3, 5, 7), 2),
    ],
    "index_put": [
        (R(2, 3), [B(2, 3)], Constant(torch.tensor(2.0))),
        (X, [None, B(3)], R()),
        (X, [None, None, I(0, -2)], R(2, 7)),
        (R(3, 2), [I(2, 0, 2)], R(3, 2)),
    ],
    "select_scatter": [(X, R(2, 3, 7), 2, -2), (R(3), R(), 0, 1)],
    # padding
    "constant_pad_nd": [(X, [1, 2]), (X, [0, -1, -2, 3], 0.5), (X, [-1, -1]), (X, [0, 0])],
    "pad": [(X, [1, 2, 0, 1], m) for m in ("constant", "reflect", "replicate", "circular")],
    "reflection_pad1d": [(R(2, 5), [4, 3])],
    "reflection_pad2d": [(X, [6, 1, 2, 3])],
    "reflection_pad3d": [(R(1, 2, 2, 3, 4), [1, 3, 2, 0, 1, 1])],
    "replication_pad1d": [(R(2, 5), [4, 7])],
    "replication_pad2d": [(X, [6, 1, 2, 3])],
    "replication_pad3d": [(R(1, 2, 2, 3, 4), [1, 3, 2, 0, 1, 1])],
    # convolution
    "convolution": [
        (X, Weight(R(4, 3, 3, 2)), Weight(R(4)), [2, 1], [1, 0], [1, 2], False, [0, 0], 1),
        (R(2, 4, 5, 5), Weight(R(6, 2, 3, 3)), None, [1], [1], [1], False, [0], 2),
        (R(2, 3, 5, 5), Weight(R(6, 1, 3, 3)), Weight(R(6)), [2], [2], [1], False, [0], 3),
        (R(2, 3, 4), Weight(R(3, 1, 1)), None, [1], [0], [1], False, [0], 3),
        (R(1, 3, 5, 6), Weight(R(2, 3, 1, 1)), Weight(R(2)), [2, 2], *CONV, False, [0, 0], 1),
        (R(1, 2, 3, 4, 5), Weight(R(2, 2, 2, 3, 2)), None, [1], [1], [2], False, [0], 1),
        (R(1, 3, 4, 4), R(2, 3, 2, 2), R(2), [1, 1], *CONV, False, [0, 0], 1),
        *(
            (R(2, 4, 3, 4), Weight(R(4, o, k, k)), Weight(R(o * g)), [s], [p], [d], True, [op], g)
            for o, k, s, p, d, op, g in (
                (3, 2, 2, 0, 1, 0, 1),
                (3, 3, 2, 1, 1, 1, 1),
                (1, 4, 2, 1, 1, 0, 4),
                (2, 3, 1, 1, 1, 0, 2),
                (1, 3, 3, 2, 1, 2, 2),
                (2, 3, 2, 1, 2, 1, 1),
                (2, 1, 2, 0, 1, 1, 1),
                (2, 1, 2, 0, 2, 1, 1),
                (2, 3, 1, 0, 2, 0, 1),
            )
        ),
    ],
    "conv1d": [(R(2, 3, 9), Weight(R(4, 3, 3)), Weight(R(4)), [2], [1], [2], 1)],
    "conv2d": [
        (X, Weight(R(4, 3, 3, 3)), None, [1, 2], [1, 1]),
        (R(3, 5, 6), Weight(R(2, 3, 1, 1)), Weight(R(2)), [2, 2]),
    ],
    "conv3d": [(R(1, 2, 4, 4, 4), Weight(R(3, 2, 3, 3, 3)), Weight(R(3)), [2], [1])],
    "conv1d.padding": [(R(2, 3, 9), Weight(R(4, 3, 4)), None, [1], "same")],
    "conv2d.padding": [
        (X, Weight(R(4, 3, 3, 2)), None, [1, 1], "same", [2, 1]),
        (X, Weight(R(4, 3, 3, 2)), None, [2, 1], "valid"),
    ],
    "conv3d.padding": [(R(1, 2, 3, 3, 3), Weight(R(1, 2, 3, 2, 1)), None, [1], "same")],
    "conv_transpose1d": [(R(2, 3, 4), Weight(R(3, 2, 3)), Weight(R(2)), [2], [1], [1], 1, [1])],
    "conv_transpose2d.input": [(X, Weight(R(3, 2, 2, 3)), None, [2, 3], [0, 1], [0, 2])],
    "conv_transpose3d.input": [(R(1, 2, 2, 3, 2), Weight(R(2, 2, 2, 3, 2)), Weight(R(2)), [2])],
    # pooling
    **{
        f"max_pool{n}d{kind}": [
            (R(2, 2, *size), [3] * n, [2] * n, [1] * n, [1] * n, True),
            (R(2, *size), [2] * n),
            (R(1, 2, *size), [2] * n, [1] * n, [0] * n, [2] * n),
        ]
        for n, size in ((1, [6]), (2, [6, 5]), (3, [5, 4, 6]))
        for kind in ("", "_with_indices")
        if n > 1 or not kind
    },
    "avg_pool1d": [(R(2, 3, 7), [3], [2], [1], True, False), (R(2, 3, 7), [2])],
    "avg_pool2d": [
        (X, [3, 2], [2, 3], [1, 1], ceil, count, divisor)
        for ceil, count, divisor in itertools.product((False, True), (False, True), (None, 5))
    ],
    "avg_pool3d": [(R(1, 2, 4, 5, 3), [2], [2], [1], True, True)],
    "adaptive_avg_pool1d": [(R(2, 3, 7), [3])],
    "adaptive_avg_pool2d": [(X, [1, 1]), (X, [3, 4]), (X, [5, 9])],
    "adaptive_avg_pool3d": [(R(1, 2, 4, 5, 3), [2, 3, 3])],
    "_adaptive_avg_pool2d": [(X, [2, 7])],
    "_adaptive_avg_pool3d": [(R(1, 2, 4, 5, 3), [2, 1, 3])],
    "adaptive_max_pool1d": [(R(2, 3, 7), [3])],
    "adaptive_max_pool2d": [(X, [3, 4]), (X, [1, 7])],
    "adaptive_max_pool3d": [(R(1, 2, 4, 5, 3), [2, 3, 3])],
    # normalisation
    "_native_batch_norm_legit_no_training": [
        (X, *BATCH, 0.1, 1e-3), (X, None, None, *BATCH[2:], 0, 1),
    ],
    "batch_norm": [
        (X, *BATCH, False, 0.1, 1e-3, False),
        (X, Weight(R(3, 1, 1)), R(1, 3), *BATCH[2:], False, 0.1, 1e-3, False),
    ],
    "native_group_norm": [
        (R(2, 6, 3, 2), Weight(R(6)), Weight(R(6)), 2, 6, 6, g, 1e-5) for g in (1, 2, 6)
    ],
    "group_norm": [(R(2, 6, 3), 3, Weight(R(6)), None), (R(2, 1, 5), 1)],
    "instance_norm": [
        (X, Weight(R(3)), Weight(R(3)), None, None, True, 0.1, 1e-5, False),
        (X, *BATCH, False, 0.1, 1e-5, False),
    ],
    "_native_batch_norm_legit.no_stats": [(R(1, 6, 3, 4), None, None, True, 0.1, 1e-5)],
    "native_layer_norm": [(X, [5, 7], Weight(R(5, 7)), Weight(R(5, 7)), 1e-5)],
    "layer_norm": [(X, [7]), (R(4), [4], Weight(R(4)))],
    "rms_norm": [(X, [7], Weight(R(7))), (X, [5, 7], None, 1e-3)],
    # reduction
    **{name: [(X,)] for name in ("sum", "max", "min")},
    "mean": [(X,), (Weight(R(3, 4)),)],
    "amin": [(X, [1, -1]), (X, [0], True)],
    "amax": [(X, [1, -1]), (X, [0], True), (X,)],
    **{
        name: [(X, [1, -1]), (X, [0], True), (X, None), (X, [0, 1, 2, 3], True)]
        for name in ("sum.dim_IntList", "mean.dim")
    },
    "max.dim": [(X, 1), (X, -1, True)],
    "min.dim": [(X, 1), (X, -1, True)],
    "prod.dim_int": [(X, 1), (X, -1, True)],
    **{
        f"{name}.correction": [
            (X, [1, 3], {"correction": 0}), (X, None),
            (X, [0], {"correction": 1, "keepdim": True}),
        ]
        for name in ("var", "std", "var_mean", "std_mean")
    },
    **{f"{name}.dim": [(X, [1, 2], True), (X, [3], False, True)] for name in ("var", "std")},
    "linalg_vector_norm": [(X, 2, [1], True), (X, 1), (X,)],
    "logsumexp": [(X, [1]), (X, [2, 3], True)],
    # softmax
    **{
        name: [(X, 1, *more), (SIGNS, -1, *more)]
        for names, more in (
            ("_softmax _log_softmax", [False]),
            ("softmax.int log_softmax.int", []),
        )
        for name in names.split()
    },
    "_safe_softmax": [(X, 1), (HIDDEN, -1)],
    # product
    "mm": [(R(3, 4), R(4, 2)), (R(1, 4), Weight(R(4, 3)))],
    "bmm": [(R(2, 3, 4), R(2, 4, 5))],
    "matmul": [
        (R(3, 4), R(4, 2)), (R(2, 1, 3, 4), R(5, 4, 2)), (R(4), R(4)), (R(4), R(2, 4, 3)),
        (R(2, 3, 4), R(4)), (R(1, 3, 2), R(2, 2)),
    ],
    "mv": [(R(3, 4), R(4))],
    "dot": [(R(4), R(4))],
    "linear": [
        (R(2, 4), Weight(R(3, 4)), Weight(R(3))), (R(2, 3, 2, 4), Weight(R(5, 4))),
        (R(4), Weight(R(3, 4)), Weight(R(3))),
        *((R(2, 5, 4), Weight(R(3, 4)), Weight(R(*s))) for s in ((), (1,), (5, 3), (2, 1, 3))),
    ],
    "addmm": [(R(3), R(2, 4), R(4, 3)), (R(2, 1), R(2, 4), R(4, 3), {"beta": 0.5, "alpha": 2})],
    "baddbmm": [(R(2, 2, 3), R(2, 2, 4), R(2, 4, 3), {"beta": -1, "alpha": 0.5})],
    # attention
    "scaled_dot_product_attention": [
        (R(2, 3, 5, 4), R(2, 3, 6, 4), R(2, 3, 6, 2)),
        (R(2, 5, 4), R(2, 5, 4), R(2, 5, 4), None, 0.0, True),
        (R(2, 3, 5, 4), R(2, 3, 6, 4), R(2, 3, 6, 2), R(5, 6), 0.0, False, {"scale": 0.3}),
        (R(1, 5, 4), R(1, 5, 4), R(1, 5, 4), Constant(torch.ones(5, 5).tril() > 0)),
        (R(1, 2, 4), R(1, 3, 4), R(1, 3, 4), HIDDEN),
        (R(1, 2, 4), R(1, 3, 4), R(1, 3, 4), Constant(HIDDEN > 0)),
        (R(1, 2, 4), R(1, 3, 4), R(1, 3, 4), LEAST),
    ],
    "_scaled_dot_product_flash_attention_for_cpu": [(R(2, 3, 5, 4),) * 3],
    # index
    "embedding": [
        (Weight(R(7, 3)), torch.tensor([[1, 6, 0], [2, 2, 5]])),
        (Weight(R(7, 3)), torch.tensor([3, 4], dtype=torch.int32)),
        (Weight(R(7, 3)), I(0, 6)),
    ],
    **{
        name: [
            (X, [None, I(2, 0, 2)]), (X, [None, None, I(0, 2, 4), None]),
            (X, [None, None, None, I(0, 0, 0, 1, 2)]), (X, [I(1, 0), I(2, 1)]),
            (X, [None, I(-1, 1), None, I(3, 6)]), (X, [I(1), None, None, I(5, 3, 1)]),
            (X, [None, None, Constant(torch.tensor([[0], [3]])), I(1, 2, 3)]),
            (X, [None, None, None, I(4, 5, 6, 6, 6)]), (X, [None, None, None, I(2)]),
        ]
        for name in ("index.Tensor", "_unsafe_index.Tensor")
    },
    "index_select": [(X, -1, I(3, 3, 0))],
    # interpolation
    **{
        f"upsample_nearest{n}d.vec": [
            (R(2, 2, *size), [7, 3, 8][:n], None), (R(2, 2, *size), None, [2.0, 1.7, 0.6][:n]),
            (R(2, 2, *size), [2 * s for s in size], None),
            (R(2, 2, *size), None, [1.1, 1.6, 1.05][:n]),  # sizes that stay as they are
            (R(2, 2, *size), None, [1.7, 1.2, 1.1][:n]),
        ]
        for n, size in ((1, [5]), (2, [4, 5]), (3, [3, 2, 5]))
    },
    **{
        f"upsample_{kind}{n}d.vec": [
            *((R(2, 2, *size), [7, 3, 8][:n], corners, None) for corners in (False, True)),
            (R(2, 2, *size), None, False, [2.0, 1.7, 0.6][:n]),
            (R(2, 2, *size), size, False, None),
            *((R(2, 2, *size), None, corners, [1.1, 1.6, 1.05][:n]) for corners in (False, True)),
            (R(2, 2, *size), None, False, [1.7, 1.2, 1.1][:n]),
            (R(2, 2, *size), [1, 9, 1][:n], True, None),
        ]
        for kind, n, size in LINEAR
    },
}  # fmt: skip

# Operators whose answers are bools, with another that takes them.
BOOLS = {
    f"{name}.{kind}": [(X, other)]
    for name in ["gt", "ge", "lt", "le", "eq", "ne"]
    for kind, other in (("Scalar", 0.0), ("Tensor", R(7)))
} | {
    "logical_not": [(R(3) > 0,)],
    "bitwise_not": [(R(3) > 0,)],
    **{
        name: [(R(2, 3) > 0, R(3) > 0)]
        for name in ["logical_and", "logical_or", "bitwise_and.Tensor", "bitwise_or.Tensor"]
    },
    "any": [(R(3) > 0,)],
    **{f"{name}.dim": [(R(2, 3) > 0, 1, True)] for name in ("any", "all")},
    **{f"{name}.dims": [(R(2, 3) > 0, [0, 1])] for name in ("any", "all")},
    "where.Scalar": [(R(3) > 0, True, False)],
}


def full_name(name: str) -> str:
    name = f"aten.{name}"
    return name if name.count(".") == 2 else f"{name}.default"


def calls(table: dict[str, list[Case]]) -> list[Any]:
    return [
        pytest.param(full_name(name), case, id=f"{name}-{turn}")
        for name, cases in table.items()
        for turn, case in enumerate(cases)
    ]


@pytest.mark.parametrize("name, case", calls(CASES))
def test_an_operator_computes_what_pytorch_does(name: str, case: Case) -> None:
    args, kwargs = (case[:-1], case[-1]) if isinstance(case[-1], dict) else (case, {})
    one = OneOperator(name, args, kwargs)
    assert aten.unsupported(one.node) is None
    assert max(differences(one.imported(), one.inputs, one.wanted)) < BOUND


class Chosen(torch.nn.Module):
    """Bools become numbers where they choose; every operator of BOOLS, with its own inputs."""

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        left, answer = list(given), []
        for name, cases in BOOLS.items():
            _, short, overload = full_name(name).split(".")
            for case in cases:
                args = [_taken(x, left) for x in case]
                found = getattr(getattr(torch.ops.aten, short), overload)(*args)
                answer.append(torch.where(found, 1.5, -0.5))
        return tuple(answer)


def _taken(x: Any, left: list[torch.Tensor]) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    return left.pop(0) > 0 if x.dtype == torch.bool else left.pop(0)


def test_operators_on_bools() -> None:
    given = [x for cases in BOOLS.values() for case in cases for x in case]
    given = [x for x in given if isinstance(x, torch.Tensor)]
    inputs = tuple(x if x.dtype != torch.bool else x.float() - 0.5 for x in given)
    model = Chosen().eval()
    exported = aten.export(model, inputs)
    assert {full_name(name) for name in BOOLS} <= {str(n.target) for n in exported.graph.nodes}
    assert [aten.unsupported(n) for n in exported.graph.nodes if aten.unsupported(n)] == []
    assert max(differences(aten.import_graph(exported), inputs, model(*inputs))) < BOUND


TRUTH: dict[str, Any] = {
    "bool": lambda x, y: x.bool(),
    "to bool": lambda x, y: x.to(torch.bool) & (y > 0),
    "type_as": lambda x, y: x.type_as(y > 0),
    "of bools": lambda x, y: (x > 0).bool(),
    "of numbers of bools": lambda x, y: (x > 0).float().bool(),
    "any": lambda x, y: x.any(),
    "any of a row": lambda x, y: x.any(1, keepdim=True),
    "all of a row": lambda x, y: y.all(1, keepdim=True),
    "all of bools": lambda x, y: (y > -3).all(1, keepdim=True),
    "sum": lambda x, y: (x > 0) + (y > 0),
    "product": lambda x, y: (x > 0) * (y > 0),
    "fill": lambda x, y: (x > 0).masked_fill(y > 0, 5),
    "counted": lambda x, y: (x > 0).sum(1, keepdim=True, dtype=torch.float32).sub(2).bool(),
}


class Truth(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        return [x + function(x, y).float() for function in TRUTH.values()]


def test_what_is_not_zero_is_true() -> None:
    """Numbers below 0, between 0 and 1, and NaN, too."""
    x = torch.tensor([[0.5, -0.25, 0.0, 2.0], [0.0, -0.0, -1.0, 0.0], [1.0, 1.0, -2.0, 0.0]])
    y = torch.tensor([[0.0, 1.0, torch.nan, -2.0], [1.0, -2.0, 3.0, 0.5], [-1.0, 1.0, 0.5, 3.0]])
    got = canvas.compile(Truth().eval(), (x, y), check=False)(x, y)
    for name, ours, theirs in zip(TRUTH, got, Truth()(x, y)):
        assert torch.equal(ours, theirs), name


def test_every_row_has_a_test() -> None:
    tested = {full_name(name) for name in [*CASES, *BOOLS]}
    assert set(ROWS) ^ tested == {"canvas.kernel.default"}
