"""Targets, the layers that a kernel may replace: names, sizes and their lines of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

NAME_LIMIT = 120
RARE = {"groups": 1, "dilation": 1, "projected": 0}  # sizes that lines have if they are others


@dataclass(frozen=True)
class Target:
    """A layer to replace: channels, height and width of its input, window, stride, groups,
    dilation; `projected`: 1 if a 1x1 projection to `cout` channels stands before the kernel.
    """

    name: str
    cin: int
    cout: int
    h: int
    w: int
    kh: int = 3
    kw: int = 3
    stride: int = 1
    groups: int = 1
    dilation: int = 1
    projected: int = 0

    def line(self) -> str:
        """The target as a line of a targets text."""
        sizes = f"{self.cin} {self.cout} {self.h} {self.w} {self.kh}x{self.kw} {self.stride}"
        rare = f" {self.dilation}" if self.dilation != 1 or self.projected else ""
        rare += " 1" if self.projected else ""
        return f"{self.name} {sizes} {self.groups}{rare}"

    @classmethod
    def from_line(cls, line: str) -> Target:
        """The target of one line of a targets text, whose window is written as HxW."""
        name, cin, cout, h, w, window, *rest = line.split()
        kh, kw = window.split("x")
        return cls(name, *map(int, (cin, cout, h, w, kh, kw, *rest)))

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the layer for one image."""
        return self.params * -(-self.h // self.stride) * -(-self.w // self.stride)

    @property
    def params(self) -> int:
        """Weights of the layer, without bias."""
        return self.cin // self.groups * self.cout * self.kh * self.kw

    def as_kept(self) -> Target:
        """Without a projection, which stands before kernels alone."""
        return replace(self, projected=0)

    def sizes(self) -> tuple[int, ...]:
        window = self.kh, self.kw, self.h, self.w, self.stride
        return self.cin, self.cout, *window, self.groups, self.dilation, self.projected

    def sizes_text(self) -> str:
        """Name and sizes as the bind and keep lines of a pack have them."""
        text = (
            f"{self.name} Cin={self.cin} Cout={self.cout} KH={self.kh} KW={self.kw} "
            f"H={self.h} W={self.w} stride={self.stride}"
        )
        rare = (
            f" {key}={getattr(self, key)}"
            for key, usual in RARE.items()
            if getattr(self, key) != usual
        )
        return text + "".join(rare)


def screening_layer(targets: Sequence[Target]) -> Target:
    """The layer on which kernels are judged: unstrided, with as many inputs as outputs and
    windows; of those the one in the middle.  Without any, the layer with the most MACs.
    """
    usual = [t for t in targets if t.stride == 1 and t.cin == t.cout and t.kh * t.kw > 1]
    if usual:
        return usual[len(usual) // 2]
    return max(targets, key=lambda target: target.macs)


def plain_name(path: str, taken: set[str]) -> str:
    """A path in the characters that names of targets may have, different from those taken (it is
    added).
    """
    plain = re.sub(r"[^A-Za-z0-9_.:/+-]", "_", path)[-NAME_LIMIT:] or "placeholder"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    taken.add(name)
    return name


def targets_text(targets: Sequence[Target]) -> str:
    """The lines of a targets text."""
    return "".join(target.line() + "\n" for target in targets)
