"""`canvas show --as formula`: the text, evaluated by formula_text.py, equals the interpreter."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from formula_text import Formula
from test_torch_equals_interpreter import (
    STRIDE_BINDINGS,
    STRIDES,
    TEXTS,
    bind,
)

import canvas
from canvas import _core

# name: sizes, then the nodes after `a = input`: moved data whose zeros are not those of the input
MOVES = {
    "window_of_shift": "- | b = shift a over=H by=1; u = unfold b over=H,W k=3; d = fc u to=C;"
    " out d",
    "window_of_zeros": "- | b = shift a over=H by=2 fill=zero; c = shift b over=H by=-1 fill=zero;"
    " u = unfold c over=H,W k=3; d = fc u to=C; out d",
    "window_of_part": "- | p = pick a at=1 of=2; u = unfold p over=C k=3; d = fc u to=C;"
    " e = relu a; f = mul d e; out f",
    "window_of_repeated": "- | p = pool a by=2; q = repeat p by=2; u = unfold q over=H,W k=3;"
    " d = fc u to=C; out d",
    "window_of_groups": "G=2 | g = group a by=G; u = unfold g over=C k=3; d = fc u to=C; out d",
    "window_of_swapped": "G=2 | g = group a by=G; s = swap g; b = shift s over=C by=1 fill=zero;"
    " n = group b none; d = fc n to=C; out d",
    "circles": "- | b = shift a over=H by=1; c = shift b over=H by=-3; d = shift c over=H,W by=2;"
    " out d",
    "there_and_back": "G=2 | b = group a by=G; c = swap b; d = group c none; e = group d by=C/G;"
    " f = swap e; g = group f none; out g",
    "shuffled_often": "G=2 | "
    + "".join(
        f"b{i} = group {'a' if i == 0 else f'd{i - 1}'} by=4; c{i} = swap b{i};"
        f" d{i} = group c{i} none; "
        for i in range(18)
    )
    + "out d17",
    "groups_of_groups": "G=2 | b = group a by=G; c = group b none; d = group c by=4;"
    " e = fc d to=C; out e",
    "names": "x0=2 | x = fc a to=x0; y = relu x; W0 = sqr y; h = tanh W0; h_ = abs h; k = neg h_;"
    " n = norm k over=C; n_mean = fc n to=C; max = sub n_mean a; out max",
    "softmax_of_one": "- | b = fc a to=1; c = softmax b over=C; d = norm c over=C;"
    " e = norm c rms over=C; f = add d e; g = matmul f f scaled over=C; h = fold b mean over=C;"
    " i = fold g max over=H2,W2; j = add h i; k = mul j a; out k",
    "stacked_windows": "- | p = pick a at=0 of=2; q = relu p; s = stack q p;"
    " t = shift s over=C by=1 fill=zero; u = shift t over=H by=1; out u",
    "quotients": "G=2,x0=3 | b = fc a to=3*x0; c = fc a to=G*x0; d = group c by=G;"
    " e = fc b to=G*G*x0; f = mul d e; g = sub b b; h = fc g to=C; i = fc f to=C; j = add h i;"
    " out j",
}
EVEN = {"window_of_repeated"}


def pack_of(nodes: str, sizes: str) -> canvas.KernelPack:
    lines = [line.strip() for line in nodes.split(";")]
    text = "\n".join(["canvas 1", "kernel k", "a = input", *lines, ""])
    return canvas.KernelPack(_core.bind(text, sizes))


def moved(name: str, at: str) -> canvas.KernelPack:
    sizes, _, nodes = MOVES[name].partition(" | ")
    at = at.replace("H=5,W=6", "H=4,W=6") if name in EVEN else at
    return pack_of(nodes, at if sizes == "-" else f"{at},{sizes}")


def sizes_of(pack: canvas.KernelPack) -> dict[str, int]:
    """The sizes of a layer that has one copy of the kernel."""
    line = next(line for line in pack.text.splitlines() if line.startswith("bind "))
    given = {key: int(value) for key, value in re.findall(r" (\w+)=(\d+)", line)}
    assert given["Cin"] == given["Cout"]
    sizes = {key: given[key] for key in given if re.fullmatch(r"[GHW]|K[HW]|x\d+", key)}
    return {**sizes, "C": given["Cin"], "S": given["stride"]}


def compare(pack: canvas.KernelPack) -> Formula:
    formula = Formula(pack.formula)
    generator = np.random.default_rng(0)
    program = _core.lower(pack.text, 0)
    (first, *weights), _ = _core.signature(program)
    x = generator.standard_normal(first[2][1:])
    values = [generator.standard_normal(row[2]) for row in weights]
    result = formula(sizes_of(pack), x, values)
    answer = _core.evaluate(program, [array.tobytes() for array in (x, *values)])
    wanted = np.frombuffer(answer)
    assert result.size == wanted.size
    error = np.abs(result.reshape(-1) - wanted).max() / max(1, np.abs(wanted).max())
    assert error < 1e-9, f"{pack.name} differs by {error}:\n{pack.formula}"
    return formula


@pytest.mark.parametrize("name", TEXTS)
def test_equals_interpreter(name: str) -> None:
    formula = compare(bind(name))
    assert formula.read_outside == set(formula.padded)
    text, sizes = TEXTS[name]
    compare(canvas.KernelPack(_core.bind(text, f"C=16,H=8,W=4,KH=5,KW=1,{sizes}".strip(","))))


@pytest.mark.parametrize("name", MOVES)
def test_moved_data(name: str) -> None:
    formula = compare(moved(name, "C=8,H=5,W=6"))
    assert formula.read_outside == set(formula.padded)


def test_images_of_one_pixel() -> None:
    for name in ("coord_conv", "convolution", "softmax_image", "shifts", "mixer"):
        compare(canvas.KernelPack(_core.bind(*one_pixel(name))))


def one_pixel(name: str) -> tuple[str, str]:
    text, sizes = TEXTS[name]
    return text, f"C=8,H=1,W=1,{sizes}".strip(",")


@pytest.mark.parametrize("name", STRIDES)
def test_strides(name: str) -> None:
    sizes, _, nodes = STRIDES[name].partition(" | ")
    at = "C=8,H=6,W=4,stride=2,KH=5,KW=3"
    compare(pack_of(nodes, at if sizes == "-" else f"{at},{sizes}"))


def test_every_primitive() -> None:
    """The kernels that are compared have all rows of the table."""
    texts = "\n".join(text for text, _ in TEXTS.values())
    texts += ";".join([*MOVES.values(), *STRIDES.values()])
    words = {tuple(f"{row['name']} ".split(" ")[:2]) for row in json.loads(_core.primitives())}
    used = set()
    for word, rest in re.findall(r"= (\w+)([^;\n]*)", texts):
        used |= {(word, mode) for mode in ("", *rest.split())}
    assert not {(word, mode) for word, mode in words if word != "out"} - used


def test_layers_of_a_pack() -> None:
    """Below the formula stands what a layer does around the kernel."""
    plain = bind("residual", "C=8,H=5,W=6").formula
    assert plain == _core.formula(TEXTS["residual"][0])
    for at in STRIDE_BINDINGS.values():
        text = bind("residual", at).formula
        assert ("# Stride s" in text) == ("stride=" in at)
        assert ("# Projected" in text) == ("projected=" in at)
        assert ("of Cin/C copies" in text) == ("Cout" in at and "projected" not in at)
    dilated = _core.solve(TEXTS["residual"][0], "t 8 8 9 9 3x3 1 1 2 0", "macs=none", "norm=batch")
    text = canvas.KernelPack(dilated).formula
    assert "# Dilation D: " in text and "# BatchNorm follows c_, e.\n" in text


def test_several_kernels() -> None:
    packs = [bind("residual", "C=8,H=5,W=6"), bind("involution", "C=8,H=5,W=6")]
    named = [
        canvas.KernelPack(re.sub(r"bind \S+", f"bind t{i}", pack.text))
        for i, pack in enumerate(packs)
    ]
    joined = canvas.KernelPack.join(named)
    assert joined.formula == "\n".join(pack.formula for pack in packs)
    assert joined.latex == "\n".join(pack.latex for pack in packs)


@pytest.mark.parametrize("name", TEXTS)
def test_latex(name: str) -> None:
    """ASCII, balanced, and one line for each of the text."""
    pack = bind(name)
    lines = [line for line in pack.latex.splitlines() if not line.startswith("%")]
    assert lines[0] == r"\begin{align*}" and lines[-1] == r"\end{align*}"
    assert len(lines) - 2 == len(Formula(pack.formula).lines)
    for line in lines:
        assert line.isascii() and line.count("{") == line.count("}")
        assert line.count("(") == line.count(")") and line.count("[") == line.count("]")
    assert all(line.endswith(r" \\") for line in lines[1:-2]) and "\\\\" not in lines[-2]
    known = set(re.findall(r"\\[a-z]+", pack.latex))
    assert known <= {
        r"\begin", r"\end", r"\mathbf", r"\mathit", r"\sum", r"\frac", r"\sqrt", r"\max", r"\min",
        r"\exp", r"\sin", r"\tanh", r"\operatorname", r"\bmod", r"\lfloor", r"\rfloor", r"\pi",
    }  # fmt: skip


@pytest.mark.skipif(not shutil.which("pdflatex"), reason="needs pdflatex")
def test_latex_compiles(tmp_path: Path) -> None:
    body = "\n".join(bind(name).latex for name in TEXTS)
    text = "\\documentclass{article}\\usepackage{amsmath}\\begin{document}\n" + body
    (tmp_path / "a.tex").write_text(text + "\\end{document}\n")
    subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"],
        cwd=tmp_path,
        check=True,
    )
