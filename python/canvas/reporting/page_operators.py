"""The part of a page on networks: the operator of each layer, drawn, with shapes and code.

pack --> a table of its layers --> per operator: picture, text with sizes, PyTorch code
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _core
from ..errors import CanvasError
from ..stored_options import FIT, command_of
from ..study import Candidate, Study
from .front import speed, title
from .html_parts import code_block, element, foldable, table
from .inline_svg import inline_svg
from .report import Report
from .table import ratio_of, short

MOST = 12  # networks on a page
LAYER = re.compile(r"^(bind|keep) (?P<name>\S+) (?P<sizes>Cin=[^#\n]*?) *(?:# .*)?$", re.M)
SIZES = ("Cin", "Cout", "KH", "KW", "H", "W", "stride")


def operators(study: Study, report: Report) -> list[str]:
    """The network and the find that are the best of each budget, then the finds on the front."""
    first = [*report.chosen, *report.best_finds, *report.front]
    rows = list({row.id: row for row in first if row.pack}.values())
    if not rows:
        return [element("p", "No network has an operator to show yet.")]
    baseline = next((row for row in report.rows if row.kind == "baseline"), None)
    parts = []
    for number, row in enumerate(rows[:MOST]):
        choice = study.choice_of(row.id) if command_of(study.options()) == FIT else {}
        parts.append(network(row, baseline, choice, f"k{number}", number == 0))
    if len(rows) > MOST:
        words = f"{len(rows) - MOST} more finds are on the front: canvas trials lists them."
        parts.append(element("p", words, "faint"))
    return parts


def network(
    row: Candidate,
    baseline: Candidate | None,
    choice: Mapping[str, str],
    prefix: str,
    is_open: bool,
) -> str:
    """A network: what it costs, its layers, and each different operator once."""
    budget = f" at {row.budget}" if row.budget and row.budget not in title(row) else ""
    try:
        pack = _core.print_pack(row.pack)
        parts = [layer_parts(pack, choice, prefix)]
    except CanvasError as error:  # a stranger's text
        parts = [element("p", f"Its pack cannot be read: {error}.")]
    figures = [row.metric.text(row.val_accuracy) + " on validation"]
    figures += [row.metric.text(row.test_mean, row.test_spread) + " on test"] * bool(row.tests)
    figures += [f"speed-up {speed(row)}"] if row.speedup is not None else []
    figures += [f"{ratio_of(row.macs, baseline.macs if baseline else None)} of the MACs"]
    parts.insert(0, element("p", "; ".join(figures), "faint"))
    return foldable(title(row) + budget, "\n".join(parts), is_open)


def layer_parts(pack: str, choice: Mapping[str, str], prefix: str) -> str:
    """The table of the layers of a pack, and its operators."""
    costs = {cost["name"]: cost for cost in json.loads(_core.cost(pack))["targets"]}
    names, packs = {}, _core.parts(pack)
    for part in packs:
        for layer in LAYER.finditer(part):
            names[layer["name"]] = choice.get(layer["name"], kernel_name(part))
    drawn = [operator(part, names, f"{prefix}-{at}-") for at, part in enumerate(packs)]
    return "\n".join([layers(pack, names, costs), *drawn])


def layers(pack: str, names: Mapping[str, str], costs: Mapping[str, Any]) -> str:
    """A table of the layers of a pack: sizes, operator, cost beside that of the convolution."""
    rows: list[list[str]] = [
        ["layer", "channels", "window", "image", "stride", "operator", "sizes", "MACs", "ratio"]
    ]
    for found in LAYER.finditer(pack):
        values = dict(word.split("=", 1) for word in found["sizes"].split())
        cin, cout, kh, kw, h, w, stride = (int(values.pop(name)) for name in SIZES)
        groups = int(values.get("groups", 1))
        own = cin // groups * cout * kh * kw * -(-h // stride) * -(-w // stride)
        name, cost = found["name"], costs.get(found["name"])
        macs = own if cost is None else cost["macs"]
        rows.append(
            [
                name,
                f"{cin} to {cout}",
                f"{kh}x{kw}",
                f"{h}x{w}",
                str(stride),
                "kept" if cost is None else names.get(name, ""),
                " ".join(f"{key}={value}" for key, value in values.items()),
                short(macs),
                ratio_of(macs, own),
            ]
        )
    return table(rows, numbers={4, 7, 8})


def operator(pack: str, names: Mapping[str, str], prefix: str) -> str:
    """One operator: its layers, its picture, its text with the sizes of each layer, its code."""
    own = [layer["name"] for layer in LAYER.finditer(pack)]
    words = sorted({names[name] for name in own})
    picture = inline_svg(_core.svg(pack), prefix)
    text = foldable("text with shapes", code_block(pack), True)
    code = foldable("PyTorch code", code_block(_core.torch_code(pack)))
    return (
        element("h4", f"{', '.join(words)}: {layer_list(own)}")
        + f'<div class="operator"><div class="kernel">{picture}</div><div>{text}{code}</div></div>'
    )


def layer_list(names: Sequence[str]) -> str:
    if len(names) <= 6:
        return ", ".join(names)
    return f"{', '.join(names[:5])} and {len(names) - 5} more layers"


def kernel_name(pack: str) -> str:
    found = re.search(r"^kernel (\S+)$", pack, re.M)
    return found[1] if found else ""
