"""No name of a program is a macro or a type of the C that is emitted for it: the text would mean
something else, or nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from canvas import _core

ROOT = Path(__file__).resolve().parents[2]
MACHINES = sorted((ROOT / "examples" / "machines").glob("*.txt"))
# Each with {X} for the name of its input: lanes of every second element and by tables, streamed
# outputs, bf16, functions, sums along lanes, borders, arguments beyond the reach of sin.
PROGRAMS = {
    "second": "in {X} f32 [c:128]\nY[c:64] = {X}[2*c] + {X}[2*c + 1]\n",
    "turned": "in {X} f32 [r:8, c:16]\nY[r:8, c:16] = {X}[r, 15 - c]\n",
    "groups": "in {X} f32 [p:64, c:16]\nin W f32 [o:16, k:4]\n"
    "Y[p:64, o:16] = {X}[p, o/4*4 + k] * W[o, k] // sum k:4\n",
    "bf16": "in {X} bf16 [r:4, c:64]\nY bf16 [r:4, c:64] = max({X}[r, c], 0) * 2\n",
    "functions": "in {X} f32 [r:4, c:64]\n"
    "Y[r:4, c:64] = sin({X}[r, c]) + exp({X}[r, c]) * erf({X}[r, c])\n",
    "sums": "in {X} f32 [r:64, k:512]\nY[r:64] = {X}[r, k] // sum k:512\n",
    "most": "in {X} f32 [r:64, k:512]\nY[r:64] = {X}[r, k] // max k:512\n",
    "border": "in {X} f32 [r:4, c:67]\n"
    "Y[r:4, c:67] = (if c + k >= 1 && c + k < 68 then {X}[r, c + k - 1] else 0) // sum k:3\n",
    "doubles": "in {X} f64 [r:4, c:64]\nY f64 [r:4, c:64] = tanh({X}[r, c])\n",
}
STREAM = "r, c:vec =>\n    @Y:stream = r, c\n"


def program(kind, name):
    return f"canvas 1\nprogram {kind}\n{PROGRAMS[kind].replace('{X}', name)}out Y\n"


def texts(name="X"):
    """Every text, by what it is of."""
    for path in MACHINES:
        machine = path.read_text()
        for kind in PROGRAMS:
            yield (kind, path.stem), _core.emit(program(kind, name), machine=machine)
        schedule = f"canvas 1\nschedule bf16\n{STREAM}"
        stream = program("functions", name), schedule.replace("bf16", "functions")
        yield ("stream", path.stem), _core.emit(*stream, machine=machine)


def own_words(text):
    """Macros and types that the text defines."""
    words = re.findall(r"^ *# *define (\w+)", text, re.M)
    return {*words, *re.findall(r"^typedef \w+ (\w+)", text, re.M)}


WORDS = sorted(set().union(*(own_words(text) for _, text in texts())))


def test_the_programs_use_what_texts_define():
    for start in ("PERMUTE_V", "PERMUTE_TWO_V", "STREAM", "BF16", "TURNED", "LOAD", "m16", "v8"):
        assert any(word.startswith(start) for word in WORDS), start


@pytest.mark.parametrize("word", WORDS)
def test_an_input_is_not_called_as_what_the_text_defines(word):
    for what, text in texts(word):
        if word in own_words(text):
            names = re.search(r"const \w+ \*restrict (\w+)", text)
            assert names is not None and names[1] != word, what
