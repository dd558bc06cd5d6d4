"""Options of draws: each holds in every draw, whatever the space and however free, and in
children; what no kernel can be is refused with the cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import ALL

import canvas
from canvas import _core

TARGETS = "a 16 16 28 28 3x3 1 1\nb 32 32 14 14 3x3 1 1\n"
DRAWS = 300
FORCED = 100 if ALL else 40  # draws with a matmul, slow in the wide space
SPACES = ("paper", "published", "wide")


def nodes(kernel: str) -> list[tuple[str, dict[str, str]]]:
    """The primitives of a kernel's text: word with its mode, attributes."""
    found = []
    for line in kernel.splitlines():
        words = line.partition("#")[0].partition(" : ")[0].split()
        if words[1:2] != ["="] or words[2] == "input":
            continue
        attributes = dict(word.split("=", 1) for word in words[3:] if "=" in word)
        modes = [
            word for word in words[3:] if word in ("mean", "max", "each", "none", "scaled", "rms")
        ]
        found.append(("_".join([words[2], *modes]), attributes))
    return found


def kinds(kernel: str) -> set[str]:
    return {"mix" if word == "fc" and "over" in of else word for word, of in nodes(kernel)}


WEIGHTED = ("fc", "scale", "bias")


def weighted(kernel: str) -> int:
    return sum(word in WEIGHTED for word, _ in nodes(kernel))


def values(kernel: str, word: str, key: str, default: str = "") -> list[str]:
    return [of.get(key, default) for name, of in nodes(kernel) if name == word]


def widest(kernel: str) -> int:
    """The most nodes without consumer while the kernel grows, in the order of its text."""
    open_nodes, most = {"a"}, 1
    for line in kernel.splitlines():
        words = line.partition(" : ")[0].split()
        if words[1:2] == ["="] and words[2] != "input":
            open_nodes -= set(words[3:])
            open_nodes.add(words[0])
            most = max(most, len(open_nodes))
    return most


def drawn(options: str, count: int = DRAWS) -> list[str]:
    found = [_core.draw(TARGETS, 5, index, options) for index in range(count)]
    return [kernel for kernel, _ in filter(None, found)]


def children(options: str, count: int = 40) -> list[str]:
    """Of parents that were drawn without the options."""
    parents = [_core.draw(TARGETS, 5, index, "space=wide") for index in range(6)]
    made = (
        _core.mutate(
            TARGETS,
            5,
            index,
            options,
            [parents[index % 5], parents[index % 5 + 1]][: 1 + index % 2],
        )
        for index in range(count)
    )
    return [kernel for kernel, _ in filter(None, made)]


HOLDS: dict[str, Callable[[str], bool]] = {
    "forbid=softmax:exp:group": lambda k: (
        not any(kind.startswith(("softmax", "exp", "group")) for kind in kinds(k))
    ),
    "allow=fc:unfold:fold:relu:badd": lambda k: (
        kinds(k) <= {"fc", "unfold", "fold_mean", "fold_max", "relu", "add"}
    ),
    "need=softmax": lambda k: "softmax" in kinds(k),
    "need=relu:b": lambda k: (
        "relu" in kinds(k)
        and bool(kinds(k) & {"add", "sub", "mul", "min", "max", "matmul", "matmul_scaled", "bias"})
    ),
    "windows=3:5": lambda k: set(values(k, "unfold", "k")) <= {"3", "5"},
    "windows=K:9 dilations=2": lambda k: (
        set(values(k, "unfold", "k")) <= {"K", "9"}
        and set(values(k, "unfold", "dilation", "1")) <= {"2"}
    ),
    "dilations=1:4": lambda k: set(values(k, "unfold", "dilation", "1")) <= {"1", "4"},
    "shifts=2:5": lambda k: {abs(int(by)) for by in values(k, "shift", "by")} <= {2, 5},
    "width=1": lambda k: widest(k) == 1,
    "width=1..2": lambda k: widest(k) <= 2,
    "weighted=2..3": lambda k: 2 <= weighted(k) <= 3,
    "weighted_share=0.3": lambda k: weighted(k) <= 0.3 * len(nodes(k)),
    "draws=rules,softmax=0,shift=0,free=0.5": lambda k: not kinds(k) & {"softmax", "shift"},
    "draws=paper,elementwise=0": lambda k: not kinds(k) & {"relu", "gelu", "sin", "abs", "neg"},
}


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("options", HOLDS)
def test_an_option_holds_in_every_draw(options: str, space: str) -> None:
    """In draws by rules, free ones and those of the paper, and in children."""
    count = DRAWS if space == "paper" else DRAWS // 3
    for kind in ("",) if "draws=" in options else ("", "draws=rules,free=1", "draws=paper"):
        found = drawn(
            f"space={space} {kind} {options}", count // (1 if "draws=" in options else 3)
        )
        assert len(found) > count // 12
        assert [kernel for kernel in found if not HOLDS[options](kernel)] == []
    for kernel in children(f"space={space} {options}"):
        assert HOLDS[options](kernel), kernel


def test_sizes_that_are_named_are_drawn() -> None:
    found = drawn("windows=5:9 dilations=1:2 shifts=4")
    assert {k for kernel in found for k in values(kernel, "unfold", "k")} == {"5", "9"}
    assert {d for kernel in found for d in values(kernel, "unfold", "dilation", "1")} == {"1", "2"}
    assert {by for kernel in found for by in values(kernel, "shift", "by")} == {"4", "-4"}


@pytest.mark.parametrize("space", SPACES[1:])
def test_a_matmul_is_forced(space: str) -> None:
    def share(kernels: list[str]) -> float:
        return sum(any(kind.startswith("matmul") for kind in kinds(k)) for k in kernels) / len(
            kernels
        )

    assert share(drawn(f"space={space} with_matmul=1", FORCED)) == 1
    plain = share(drawn(f"space={space}", FORCED))
    assert plain < share(drawn(f"space={space} with_matmul=0.5", FORCED)) < 1


@pytest.mark.parametrize("space", SPACES)
def test_no_weight_fixes_the_image(space: str) -> None:
    """Every draw runs at another size of image than its targets'."""
    options = f"space={space} fixed_hw=refuse draws=rules,free=0.5"
    for kernel in [*drawn(options, 100), *children(options)]:
        assert not fixes_image(kernel)
    if space != "paper":
        free = drawn(f"space={space} need=mix", 60)
        assert any(fixes_image(kernel) for kernel in free)


def fixes_image(kernel: str) -> bool:
    """Whether the shape of a weight depends on H or W."""
    shapes, image = {}, re.compile(r"\b[HW]\b")
    for line in kernel.splitlines():
        text, _, shape = line.partition(" : ")
        words = text.split()
        if words[1:2] != ["="]:
            continue
        shapes[words[0]] = [
            axis for axis in shape.split() if not re.match(r"[HW]2?(?:[=/]|$)", axis)
        ]
        if words[2] in WEIGHTED:
            of = dict(word.split("=", 1) for word in words[3:] if "=" in word)
            read = [] if "over" in of else shapes[words[3]]
            if any(image.search(text) for text in (of.get("over", ""), of.get("to", ""), *read)):
                return True
    return False


WINDOWS = re.compile(r"unfold .*over=([HW,]+) k=(\w+)(?: dilation=(\d+))?")


def test_the_receptive_size() -> None:
    """Of kernels that see by unfold alone: windows of a chain multiply."""
    options = "allow=fc:unfold:relu width=1 receptive=9"
    for kernel in [*drawn(options, 100), *children(options)]:
        h = w = 1
        for over, k, dilation in WINDOWS.findall(kernel):
            reach = (3 if k == "K" else int(k)) - 1
            if dilation:  # only children have it, from a parent of a wider space
                h = 9
            h += reach * ("H" in over)
            w += reach * ("W" in over)
        assert h * w >= 9, kernel
    assert len(drawn("receptive=400", 60)) > 50


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (
            "need=softmax forbid=softmax",
            "need= needs 'softmax', which allow=, forbid= or a weight",
        ),
        ("need=mix", "space=paper does not have: give a wider space"),
        ("with_matmul=0.1", "space=paper does not have: give a wider space"),
        ("allow=relu:unfold", "leave no primitive with weights: allow fc"),
        ("allow=fc", "leave no primitive without weights"),
        ("weighted=6..8", "of at most 8 primitives a share of 0.6 is 4"),
        ("forbid=unfold:shift:fold:softmax", "that reads neighbours"),
        ("require=none allow=relu:fc receptive=2", "no primitive that reads other pixels"),
        (
            "need=relu:exp:sin:abs primitives=2..3",
            "names 4 primitives, and kernels have at most 3",
        ),
        ("windws=3", "there is no option 'windws': did you mean 'windows='?"),
        ("forbid=convolution", "name 'unfold' and 'fc'"),
        ("forbid=sotfmax", "did you mean 'softmax'?"),
        ("windows=4", "K or an odd number in 3..31, not 4"),
        ("windows=1", "K or an odd number in 3..31, not 1"),
        ("windows=3:3", "column 11: '3' stands twice in the list"),
        ("windows=K:3:K", "'K' stands twice in the list"),
        ("dilations=1:2:1", "'1' stands twice in the list"),
        ("shifts=2:2", "'2' stands twice in the list"),
        (
            "need=softmax:exp:sin:abs:relu:gelu:group:mul primitives=3..8",
            "names 8 primitives, require=reach takes 1 more (one with weights), and kernels have",
        ),
        ("weighted=0..0", "leaves kernels without weights"),
        ("width=0", "number 0 is not in 1..62"),
        ("receptive=0", "number 0 is not in 1..3969"),
        ("fixed_hw=no", "expected 'allow' or 'refuse'"),
        ("space=all", "expected 'paper', 'published' or 'wide'"),
    ],
)
def test_what_cannot_be_is_refused_at_once(options: str, cause: str) -> None:
    with pytest.raises(canvas.CanvasError, match=re.escape(cause)):
        _core.draw(TARGETS, 1, 0, options)


# -- canvas.sample --


def sampled(**options: Any) -> str:
    pytest.importorskip("torch")
    text: str = canvas.empty_sample(**{"seed": 3, **options}).kernel
    return text


PUBLISHED: list[tuple[dict[str, Any], Callable[[str], bool]]] = [
    (
        {"forbidden_filter": "Softmax, exp\tB"},
        lambda k: not kinds(k) & {"softmax", "exp", "add", "mul"},
    ),
    ({"allowed_filter": ["fc", "unfold", "relu"]}, lambda k: kinds(k) <= {"fc", "unfold", "relu"}),
    ({"necessary_filter": "bmm", "space": "published"}, lambda k: "matmul" in str(kinds(k))),
    (
        {"kernel_sizes": (5,), "dilated_sizes": (1, 2)},
        lambda k: set(values(k, "unfold", "k")) <= {"5"},
    ),
    ({"shift_sizes": (2,)}, lambda k: {abs(int(by)) for by in values(k, "shift", "by")} <= {2}),
    ({"num_primitive_range": (4, 4)}, lambda k: len(nodes(k)) == 4),
    ({"num_max_width_range": (1, 2)}, lambda k: widest(k) <= 2),
    ({"num_weighted_range": (2, 2)}, lambda k: weighted(k) == 2),
    ({"max_weighted_ratio": 0.25}, lambda k: weighted(k) <= 0.25 * len(nodes(k))),
    ({"min_receptive_size": 25}, lambda k: len(nodes(k)) > 0),
    (
        {"force_bmm_possibility": 1.0, "space": "wide"},
        lambda k: any(kind.startswith("matmul") for kind in kinds(k)),
    ),
    (
        {"ensure_spatial_invariance": False, "space": "published"},
        lambda k: not fixes_image(k),
    ),
]


@pytest.mark.parametrize(
    ("options", "holds"), PUBLISHED, ids=lambda v: next(iter(v), "") if isinstance(v, dict) else ""
)
def test_the_names_of_the_release(options: dict[str, Any], holds: Callable[[str], bool]) -> None:
    for seed in range(4):
        assert holds(sampled(seed=seed, **options))


def test_workers_and_timeout_change_no_draw() -> None:
    assert len({sampled(workers=workers, timeout=60) for workers in (1, 2, 7)}) == 1


def test_a_timeout_ends_with_the_cause() -> None:
    with pytest.raises(canvas.NoSolution, match=r"within the timeout of 0\.01 s; the last one: "):
        sampled(budget="macs=0.9999x..1x,params=0.0001x", timeout=0.01)


def test_a_budget_of_latency() -> None:
    assert sampled(budget="latency=50x")
    with pytest.raises(
        canvas.NoSolution, match=r"its layers take .*x the time of the convolutions"
    ):
        sampled(budget="macs=1x,latency=0.00001x", timeout=0.01)
    with pytest.raises(canvas.CanvasError, match=r"^budget takes one latency"):
        sampled(budget="latency=2")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers is a whole number from 1, not 0"),
        ({"workers": True}, "workers is a whole number from 1, not True"),
        ({"timeout": -1}, "timeout is a number of seconds, 0 for none, not -1"),
        ({"min_receptive_size": 0}, "min_receptive_size is a whole number from 1 to 3969, not 0"),
        ({"num_primitive_range": (0, 0)}, "num_primitive_range takes two numbers from 1 to 62"),
        ({"num_primitive_range": (5, 3)}, "the smaller one first"),
        ({"num_weighted_range": (0, 0)}, "num_weighted_range takes two numbers from 0 to 62"),
        ({"num_max_width_range": (0, 0)}, "num_max_width_range takes two numbers from 1 to 62"),
        ({"num_max_width_range": 3}, "num_max_width_range is a pair of whole numbers, not 3"),
        ({"kernel_sizes": (3, 4)}, "kernel_sizes takes odd numbers from 3 to 31, not 4"),
        ({"kernel_sizes": (1,)}, "kernel_sizes takes odd numbers from 3 to 31, not 1"),
        ({"kernel_sizes": 3}, "kernel_sizes is a list of whole numbers"),
        ({"dilated_sizes": (0,)}, "dilated_sizes takes numbers from 1 to 15, not 0"),
        ({"shift_sizes": ()}, "shift_sizes is a list of whole numbers"),
        ({"max_weighted_ratio": 0}, "max_weighted_ratio is a number above 0 and at most 1, not 0"),
        ({"force_bmm_possibility": 2}, "force_bmm_possibility is a number from 0 to 1, not 2"),
        ({"force_bmm_possibility": 0.5}, "with_matmul|force_bmm_possibility needs 'matmul'"),
        ({"ensure_spatial_invariance": 1}, "ensure_spatial_invariance is True or False, not 1"),
        ({"allowed_filter": 3}, "allowed_filter is a text such as"),
        ({"forbidden_filter": "soft max!"}, "forbidden_filter holds 'max!', which is no name"),
        ({"forbidden_filter": "sotfmax"}, "forbidden_filter: no primitive is 'sotfmax': did you"),
        ({"forbidden_filter": "conv"}, "forbidden_filter: .* name 'unfold' and 'fc'"),
        ({"allowed_filter": "fc"}, "^allowed_filter and forbidden_filter leave no primitive"),
        ({"primitives": 4, "num_primitive_range": (4, 4)}, "are the same: give one of them"),
        ({"space": "huge"}, "^space: expected 'paper', 'published' or 'wide', found 'huge'"),
        ({"require": "x"}, "^require: expected 'reach' or 'none', found 'x'"),
        ({"draws": "x"}, "^draws: expected 'rules', 'learned' or 'paper', found 'x'"),
        ({"groups": 0}, "^groups: number 0 is not in "),
        ({"kernel_sizes": (3, 3)}, "^kernel_sizes: '3' stands twice in the list"),
    ],
    ids=str,
)  # fmt: skip
def test_bad_values_are_one_message(options: dict[str, Any], message: str) -> None:
    with pytest.raises(canvas.CanvasError, match=message):
        sampled(**options)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(TypeError, match="did you mean 'forbidden_filter'"):
        sampled(forbiden_filter="softmax")


# -- the release's other names --


def test_the_exports_of_the_release() -> None:
    torch = pytest.importorskip("torch")
    for name in [
        "KernelPack",
        "Identity",
        "Conv2D",
        "Placeholder",
        "get_placeholders",
        "remove_cache",
        "seed",
        "debug_sample",
        "empty_sample",
        "sample",
        "replace",
        "get_state_dict",
        "restore_from_state_dict",
        "init_weights",
    ]:
        assert getattr(canvas, name).__doc__
        assert name in canvas.__all__
    assert "unfold c" not in canvas.debug_sample().kernel
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 3), canvas.Placeholder())
    image = torch.randn(1, 3, 12, 12)
    canvas.get_placeholders(network, image)
    expected = network(image)
    canvas.replace(network, canvas.Identity)
    assert torch.equal(network(image), expected)
    canvas.replace(network, canvas.Conv2D)
    assert network(image).shape == expected.shape
    whole = canvas.get_state_dict(network)
    without = canvas.get_state_dict(network, remove_placeholders=True)
    assert set(whole) - set(without) == {"1.kernel.weight"}
    network.apply(canvas.init_weights)
    canvas.restore_from_state_dict(network, whole)
    assert torch.equal(network.state_dict()["0.weight"], whole["0.weight"])
    canvas.restore_from_state_dict(network, without)
    with pytest.raises(canvas.CanvasError, match=r"lacks '1\.kernel\.weight'"):
        canvas.restore_from_state_dict(network, without, strict=True)
    with pytest.raises(canvas.CanvasError, match="has, and the network has not, 'more'"):
        canvas.restore_from_state_dict(network, {**whole, "more": image})
    canvas.remove_cache()
