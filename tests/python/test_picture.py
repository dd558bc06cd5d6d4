"""Pictures of kernels are XML that says which kernel it shows; their geometry is tested in C."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from canvas import KernelPack, _core

ROOT = Path(__file__).resolve().parents[2]
SVG = "{http://www.w3.org/2000/svg}"
KERNELS = {path.stem: path.read_text() for path in (ROOT / "examples/kernels").glob("*.kernel")}


def described(svg: str) -> str:
    """The kernel's text, out of its picture."""
    text = ElementTree.fromstring(svg).findtext(f"{SVG}desc")
    assert text is not None
    return text


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_a_picture_is_xml_with_a_box_for_each_line(name: str) -> None:
    root = ElementTree.fromstring(_core.svg(KERNELS[name]))
    text = _core.print_kernels(KERNELS[name])
    assert root.tag == f"{SVG}svg" and root.get("role") == "img"
    assert root.findtext(f"{SVG}title") == name
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    lines = [line for line in text.splitlines()[2:] if line]
    labels = root.findall(f".//{SVG}rect/../{SVG}text")[::2]
    boxes = ["".join(label.itertext()) for label in labels]
    assert boxes == [line.partition(" :")[0].rstrip() for line in lines]


def test_a_picture_is_read_back() -> None:
    drawn = [_core.draw("64,56,56", 1, index, "primitives=5..30") for index in range(40)]
    texts = [kernel[0] for kernel in drawn if kernel] + list(KERNELS.values())
    assert len(texts) > 40
    for text in texts:
        svg = _core.svg(text)
        assert described(svg) == "\n" + _core.print_kernels(text)
        assert _core.svg(described(svg)) == svg


def test_every_meaning_is_escaped() -> None:
    text = "canvas 1\nkernel k\na = input\nb = group a by=G\nc = exp b\nout c\n"
    meanings = [t.text for t in ElementTree.fromstring(_core.svg(text)).iter(f"{SVG}title")][1:]
    rows = {row["name"]: row["meaning"] for row in json.loads(_core.primitives())}
    assert meanings[2] == rows["exp"]
    assert "[X] -> [by, X/by]" in str(meanings[1])


SEVERAL = """canvas 1
kernel conv
a = input
b = unfold a over=H,W k=K
c = fc b to=C
out c
bind s C=8 H=5 W=4
kernel thin
a = input
b = fc a to=x0
c = gelu b
d = fc c to=C
out d
norm batch
bind t C=8 H=5 W=4 x0=2
keep u C=8 H=5 W=4
"""


def test_a_pack_of_several_kernels_is_one_picture() -> None:
    pack = KernelPack(SEVERAL)
    root = ElementTree.fromstring(pack.svg)
    assert described(pack.svg) == "\n" + pack.text
    assert KernelPack(described(pack.svg).strip() + "\n").svg == pack.svg
    labels = [text.text for text in root.iter(f"{SVG}text")]
    for line in ("kernel conv: s", "kernel thin: t", "keep: u", "out c", "out d"):
        assert labels.count(line) == 1
    assert len(root.findall(f".//{SVG}rect")) == 4 + 5
    one = KernelPack("".join(SEVERAL.partition("kernel thin")[:1]) + "keep u C=8 H=5 W=4\n")
    assert "kernel conv: s" in one.svg and "keep: u" in one.svg and "<rect" in one.svg


def test_sizes_do_not_change_the_picture() -> None:
    pack = _core.bind(KERNELS["convolution"], "C=64,H=56,W=56")
    assert _core.svg(pack) == _core.svg(KERNELS["convolution"]) == KernelPack(pack).svg
