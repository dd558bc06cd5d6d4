"""Studies with packs and curves, and a parser of pages: for tests of the page of a study."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from made_study import CONTROLS, FINDS, add_finals, make_study

from canvas import _core
from canvas.fit_options import read_fit_options
from canvas.study import FittedItem, ScreenedKernel, Study

ROOT = Path(__file__).resolve().parents[2]
TARGETS = "stem 8 16 8 8 3 1 1\nlast 16 16 8 8 3 2 1\n"
VOID = {"meta", "br", "hr", "img", "link", "input"}
TESTS = {"baseline": 0.94, "identity": 0.6, "1x1": 0.8, "grouped": 0.92, "0": 0.93, "3": 0.88}


def pack_of(kernel: str) -> str:
    """The pack of an example kernel at two layers."""
    text = (ROOT / f"examples/kernels/{kernel}.kernel").read_text()
    return _core.solve(text, TARGETS, "macs=1x,params=2x", "exempt=1 G=4")


def search_study(folder: Path, finals: bool = False) -> Path:
    """A search with packs, curves and reasons."""
    make_study(folder, CONTROLS + FINDS)
    pack = pack_of("involution")
    with Study.open(folder) as study:
        study.database.execute("UPDATE network SET pack = ?, kernel = ? WHERE kind = 'find'",
                               (pack, pack))  # fmt: skip
        study.database.execute("UPDATE task SET reason = 'rung 1: 20.0 %, 23.2 % wanted' "
                               "WHERE state = 'pruned'")  # fmt: skip
        curves = [
            (row.id, number, (row.val_accuracy or 0.5) * (number + 2) / 5, 2 * number, number)
            for row in study.candidates()
            for number in range(4)
        ]
        with study._transaction():
            study.database.executemany("INSERT INTO epoch VALUES (?, ?, ?, 1, ?, ?)", curves)
        for index, budget in ((8, 94208), (9, 11776)):
            study.record_draw(index, "unsolved", f"macs {budget} are over the budget")
    if finals:
        add_finals(folder, {name: [v - 0.01, v, v + 0.01] for name, v in TESTS.items()})
    return folder


def fit_study(folder: Path) -> Path:
    """A fit of two budgets: teacher, a mix and known operators for each."""
    options = read_fit_options(
        {"model": "resnet8", "data": "digits", "budget": ["latency=0.6x", "macs=0.3x"]}
    )
    networks = [{"name": "teacher", "kind": "baseline", "role": "teacher"}]
    packs = pack_of("involution"), pack_of("grouped")
    for number, budget in enumerate(options["budget"]):
        for name, kind, role, pack in (
            (str(number), "find", "mix", packs[0]),
            (f"known {number} at {budget}", "control", "controls", packs[1]),
        ):
            choice = {"stem": f"{role}-operator@0.5", "last": "keep"}
            networks.append({"name": name, "kind": kind, "role": role, "budget": budget,
                             "pack": pack, "choice": choice})  # fmt: skip
    with Study.open(folder) as study:
        study.begin({"command": "fit", **options}, "digits", "0" * 64, (1000, 400), TARGETS)
        for number, error in enumerate((0.5, 0.6, 0.2), 1):
            study.record_screened(ScreenedKernel(number, packs[0], None, f"{number}", error, 2.0))
        study.record_fitted(FittedItem("stem", "grouped@0.5", 40, 1, packs[1], None, None, None,
                                       1, 1, reason="the fit diverged", seconds=1.5))  # fmt: skip
        for at, id in enumerate(study.add_networks(networks)):
            accuracy, macs = 0.97 - 0.01 * at, 1000 - 150 * at
            study.tuned(id, 6, accuracy, (0.5, 0.1), "", 3.0 * at, (macs, 500 - 50 * at))
            study.database.execute(
                "UPDATE network SET speedup = ? WHERE id = ?", (1 + 0.2 * at, id)
            )
    return folder


class Page(HTMLParser):
    """A page taken apart: elements with their attributes, texts by element, what is wrong."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text_of_page = text
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.wrong: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        self.wrong += [f"<{tag}> is not closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.wrong.append(f"<{tag}> has an attribute twice")
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes nothing")

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1] if self.open else "", data))

    def of(self, tag: str) -> list[str]:
        """The texts in elements of a tag."""
        return [text for at, text in self.texts if at == tag]

    def attributes(self, *names: str) -> list[str]:
        return [more[name] for _, more in self.elements for name in names if name in more]

    @property
    def ids(self) -> list[str]:
        return self.attributes("id")

    @property
    def references(self) -> list[str]:
        """What the page refers to: links, and url(...) of attributes and styles."""
        found = self.attributes("href", "src", "xlink:href", "action", "data", "srcset")
        for _, more in self.elements:
            for value in more.values():
                found += re.findall(r"url\(([^)]*)\)", value)
        return found + re.findall(r"url\(([^)]*)\)|@import", "".join(self.of("style")))
