"""What the published system shows of kernels, and the test that shows the same here.

BEHAVIOURS has a row for each of 25 behaviours: its number, what it is, and the tests that show it
(C tests by their cmocka name) or the reason why it does not apply. Those that no other test shows
are tested below.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from canvas import _core

TESTS = Path(__file__).resolve().parents[1]
HERE = "python/test_published_behaviours.py"


class Behaviour(NamedTuple):
    number: int
    words: str
    tests: tuple[str, ...] = ()  # FILE::TEST below tests/
    not_here: str = ""  # why it does not apply, or which part of it


BEHAVIOURS = (
    Behaviour(1, "unfold and group give 6 axes; a grouped fc has 1/G of the weights",
              (f"{HERE}::test_a_grouped_convolution", "c/test_kernel.c::costs")),
    Behaviour(2, "a tensor is grouped once",
              (f"{HERE}::test_a_tensor_is_grouped_once", "c/test_kernel.c::derives_shapes"),
              "no C/G groups and no free number of them: group takes G, each or a number, and "
              "swap turns G groups into C/G"),
    Behaviour(3, "C has 4 factors, 9*C twelve", ("c/test_dim.c::has_divisors",)),
    Behaviour(4, "what a free size becomes where a broadcast meets C*KH",
              ("c/test_dim.c::has_divisors", "c/test_dim.c::matches_shapes")),
    Behaviour(5, "a grouped tensor meets a grouped window: one factor is left to divide",
              ("c/test_dim.c::matches_shapes",)),
    Behaviour(6, "involution is in the space and computes what PyTorch does",
              ("python/test_probability.py::test_what_the_paper_found_again_can_be_drawn",
               "python/test_torch_equals_interpreter.py::test_equals_torch")),
    Behaviour(7, "so are the other operators that a search should find again",
              ("python/test_probability.py::test_what_the_paper_found_again_can_be_drawn",
               "python/test_torch_equals_interpreter.py::test_equals_torch",
               "python/test_sample_options.py::test_a_matmul_is_forced")),
    Behaviour(8, "a vector of channels is broadcast to the image",
              ("c/test_dim.c::matches_shapes",)),
    Behaviour(9, "FLOPs and weights of known operators at 64 channels, 56x56",
              ("c/test_kernel.c::costs",
               "python/test_torch_equals_interpreter.py::test_flops_and_params")),
    Behaviour(10, "ResNet-18 at 224 has 19 layers to replace and 3,391,094,784 FLOPs in them",
              ("c/test_target.c::resnet18",
               "python/test_models.py::test_resnet18_counts_what_torchvision_counts")),
    Behaviour(11, "a size that G*K divides starts at their multiple, and grows with the layer",
              ("c/test_budget.c::answers", "c/test_budget.c::trace_says_what_was_done")),
    Behaviour(12, "a budget of exactly the least cost is taken, one less refused with the reason",
              (f"{HERE}::test_a_budget_of_the_least_cost", "c/test_budget.c::brute_force",
               "c/test_budget.c::against_all_combinations")),
    Behaviour(13, "G divides the channels of every layer",
              ("c/test_sampler.c::chooses_g",
               "python/test_controls.py::test_group_counts_are_the_common_divisors")),
    Behaviour(14, "a matrix product over pixels or channels, divided by the root of its length",
              (f"{HERE}::test_products_of_two_tensors",
               "python/test_torch_equals_interpreter.py::test_equals_torch")),
    Behaviour(15, "how many pixels an output sees; a fold of the image sees all",
              ("python/test_sample_options.py::test_the_receptive_size",
               "c/test_kernel.c::knows_what_reaches")),
    Behaviour(16, "kernels that compute different things differ, names and order do not matter",
              ("python/test_value_key.py::test_different_kernels_have_different_keys",
               "python/test_core.py::test_hash_ignores_names",
               "c/test_hash.c::decides_all_wirings")),
    Behaviour(17, "filters hold in every draw",
              ("python/test_sample_options.py::test_an_option_holds_in_every_draw",)),
    Behaviour(18, "a seed gives the same kernels in every process and thread",
              ("python/test_core.py::test_many_threads_get_the_same_answers",
               "python/test_draws_stay.py::test_draws_are_those_of_before",
               "python/test_placeholder.py::test_process_seed")),
    Behaviour(19, "no primitive follows another that it undoes or repeats",
              ("c/test_rules.c::draws_keep_the_rules", "c/test_simplify.c::makes",
               "c/test_simplify.c::finds_constants")),
    Behaviour(20, "what cannot be is one message that names the cause",
              ("python/test_sample_options.py::test_what_cannot_be_is_refused_at_once",
               "python/test_sample_options.py::test_a_timeout_ends_with_the_cause",
               "python/test_core.py::test_bad_input_is_one_message")),
    Behaviour(21, "every draw trains at every layer of ResNet-18, VGG-16 and MobileNetV2",
              ("python/test_width.py::test_sampled_kernels_on_every_layer",
               "python/test_width.py::test_outputs_keep_their_scale")),
    Behaviour(22, "weights that are stored and loaded give the same outputs",
              ("python/test_placeholder.py::test_state_dict_goes_to_a_fresh_network",
               "python/test_pack.py::test_copies_and_pickles"),
              "a shift here has the number of pixels in its text, and no chance of its own"),
    Behaviour(23, "hundreds of draws a second", ("c/test_sampler.c::draws_fast_enough",)),
    Behaviour(24, "a search trains no kernel twice",
              ("python/test_search.py::test_the_budget_binds_the_finds",
               "c/test_hash.c::agrees_with_all_mappings")),
    Behaviour(25, "free sizes fill the budget",
              ("c/test_budget.c::fills_what_is_left",
               "python/test_controls.py::test_controls_of_a_budget_fill_it")),
)  # fmt: skip


def names_of(path: Path) -> set[str]:
    pattern = r"\bcmocka_unit_test\((\w+)" if path.suffix == ".c" else r"^def (test_\w+)"
    return set(re.findall(pattern, path.read_text(), re.M))


def test_every_behaviour_has_its_row() -> None:
    assert [row.number for row in BEHAVIOURS] == list(range(1, 26))
    assert all(row.words and (row.tests or row.not_here) for row in BEHAVIOURS)


@pytest.mark.parametrize("row", BEHAVIOURS, ids=lambda row: str(row.number))
def test_the_tests_that_are_named_exist(row: Behaviour) -> None:
    for name in row.tests:
        file, _, test = name.partition("::")
        assert test in names_of(TESTS / file), name


# ---- what no other test shows -------------------------------------------------------------------


def kernel(*nodes: str) -> str:
    return "\n".join(["canvas 1", "kernel k", "a = input", *nodes, ""])


def shapes(text: str) -> dict[str, str]:
    """By node, in canonical text."""
    lines = (line.partition(" : ") for line in _core.print_kernels(text).splitlines())
    return {line.split()[0]: shape.strip() for line, _, shape in lines if shape}


def test_a_grouped_convolution() -> None:
    text = kernel("b = unfold a over=H,W k=3", "c = group b by=G", "d = fc c to=x0",
                  "e = fc d to=C", "out e")  # fmt: skip
    found = shapes(text)
    assert found["b"] == "C KH=3 KW=3 H W" and found["c"] == "G C/G KH=3 KW=3 H W"
    (weight, _) = re.findall(r"^in w\S*.*$", lowered(text, "C=64,H=6,W=6,G=4,x0=32"), re.M)
    sizes = [int(size) for size in re.findall(r":(\d+)", weight)]
    product = 1
    for size in sizes:
        product *= size
    assert product == 9 * 64 * 32 // 4


def lowered(text: str, at: str) -> str:
    return _core.lower(_core.bind(text, at), 0, 1)


def test_a_tensor_is_grouped_once() -> None:
    for again in ("group b by=G", "group b each"):
        with pytest.raises(_core.Error, match="'group' cannot be applied here"):
            _core.print_kernels(kernel("b = group a by=G", f"c = {again}", "out c"))


def test_products_of_two_tensors() -> None:
    text = kernel("b = matmul a a scaled over=H,W", "c = matmul b a over=C2 with=C",
                  "d = matmul a a over=C", "e = matmul c d over=H,W with=H2,W2",
                  "out e")  # fmt: skip
    found = shapes(text)
    assert found["b"] == "C C2" and found["d"] == "H W H2 W2" and found["e"] == "C H W"
    assert "sqrt(24" in lowered(text, "C=8,H=6,W=4")


def test_a_budget_of_the_least_cost() -> None:
    text = kernel("b = unfold a over=H,W k=3", "c = fc b to=C", "out c")
    least = 64 * 64 * 9 * 56 * 56
    targets = "layer 64 64 56 56 3 1 1"
    assert _core.solve(text, targets, f"macs={least},params=none", "")
    with pytest.raises(_core.NoSolution, match=rf"macs {least} .*over the budget"):
        _core.solve(text, targets, f"macs={least - 1},params=none", "")
