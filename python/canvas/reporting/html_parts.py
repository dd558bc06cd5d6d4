"""Parts of an HTML page, every text of them escaped, and the page's colours and measures.

A page is one file: no script, nothing from elsewhere; its Content-Security-Policy allows nothing
but its own style.
"""

from __future__ import annotations

import html
from collections.abc import Container, Sequence

from ..text import printable, printable_lines

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

STYLE = """
:root { color-scheme: light dark; --ink: #222222; --paper: #ffffff; --faint: #555555;
  --grid: #e6e6e6; --grey: #767676; --find: #0072b2; --control: #b54a00; --card: #f5f6f7;
  --white: #ffffff; --moves: #eceff1; --shift: #e6dff0; --unfold: #d5e9f5; --fc: #b7d0ea;
  --map: #fbf0c6; --fold: #d3ead9; --softmax: #c4e3de; --broadcast: #fadfc8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #15171a; --faint: #b4b8bd; --grid: #363b41; --grey: #989ea5;
    --find: #5ab9ee; --control: #f2a45c; --card: #1f2226; --white: #15171a; --moves: #2c3136;
    --shift: #3a3147; --unfold: #1f3a4d; --fc: #24456b; --map: #4a421c; --fold: #254030;
    --softmax: #1f433d; --broadcast: #523723; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.2rem 1rem 3rem; max-width: 70rem; color: var(--ink);
  background: var(--paper); font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif;
  overflow-wrap: break-word; }
h1 { font-size: 1.35rem; line-height: 1.35; margin: .3rem 0 .6rem; }
h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; padding-top: .5rem;
  border-top: 1px solid var(--grid); }
section > details { margin: .8rem 0; }
section > details > summary { font-size: 1.02rem; font-weight: 600; }
h4 { font-size: .95rem; margin: 1rem 0 .4rem; }
p { margin: .5rem 0; max-width: 48rem; }
.faint, figcaption { color: var(--faint); font-size: .88rem; }
.state { display: inline-block; padding: 0 .55rem; border: 1px solid currentColor;
  border-radius: 1rem; font-size: .82rem; color: var(--faint); }
.running { color: var(--control); }
nav { font-size: .9rem; margin: .8rem 0; }
nav a { margin-right: .9rem; color: var(--find); white-space: nowrap; }
.figures { display: flex; flex-wrap: wrap; gap: 1.2rem; }
figure { margin: .4rem 0; flex: 1 1 20rem; min-width: 0; max-width: 31rem; }
figure svg { width: 100%; height: auto; display: block; stroke-linejoin: round; }
.scroll { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .6rem .22rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--grid); }
th { font-weight: 600; color: var(--faint); }
.number { text-align: right; }
td { white-space: nowrap; }
td:last-child { white-space: normal; min-width: 11rem; }
td.number:last-child { min-width: 0; }
.results td:last-child { min-width: 7rem; }
@media (max-width: 44rem) { .results td:last-child { white-space: nowrap; } }
tr.taken td { font-weight: 600; }
pre { background: var(--card); padding: .6rem .8rem; overflow-x: auto; border-radius: 4px;
  font: .82rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; margin: .4rem 0; }
pre.wrapped { white-space: pre-wrap; overflow-wrap: anywhere; }
summary { cursor: pointer; color: var(--find); font-size: .9rem; }
details { margin: .35rem 0; }
.operator { display: flex; flex-wrap: wrap; gap: .4rem 1.6rem; align-items: flex-start; }
.operator > div { flex: 1 1 20rem; min-width: 0; }
.operator > .kernel { flex: 0 1 auto; max-width: 100%; }
.kernel svg { max-width: 100%; height: auto; display: block; }
.kernel text { fill: var(--ink); }
.kernel text[fill="#444"] { fill: var(--faint); }
.kernel [stroke="#333"] { stroke: var(--ink); }
.kernel [fill="#333"] { fill: var(--ink); }
.kernel path[fill="#fff"] { fill: var(--paper); }
.kernel rect[fill="#ffffff"] { fill: var(--white); }
.kernel rect[fill="#eceff1"] { fill: var(--moves); }
.kernel rect[fill="#e6dff0"] { fill: var(--shift); }
.kernel rect[fill="#d5e9f5"] { fill: var(--unfold); }
.kernel rect[fill="#b7d0ea"] { fill: var(--fc); }
.kernel rect[fill="#fbf0c6"] { fill: var(--map); }
.kernel rect[fill="#d3ead9"] { fill: var(--fold); }
.kernel rect[fill="#c4e3de"] { fill: var(--softmax); }
.kernel rect[fill="#fadfc8"] { fill: var(--broadcast); }
@media print { details > * { display: block; } nav { display: none; } }
"""


def escaped(text: object) -> str:
    """A text for a page: on one line, with nothing that HTML would read."""
    return html.escape(printable(str(text)))


def element(tag: str, text: object, kind: str = "") -> str:
    """An element with a text in it; `kind` is its class."""
    return f"<{tag}{_class(kind)}>{escaped(text)}</{tag}>"


def code_block(text: str, kind: str = "") -> str:
    """A text with line breaks, as it is; the kind `wrapped` has no line that is scrolled."""
    return f"<pre{_class(kind)}>{html.escape(printable_lines(text.rstrip()))}</pre>"


def foldable(summary: str, body: str, is_open: bool = False) -> str:
    """A part that opens and closes when its summary is clicked."""
    head = "<details open>" if is_open else "<details>"
    return f"{head}{element('summary', summary)}{body}</details>"


def figure(svg: str, caption: str = "") -> str:
    words = element("figcaption", caption) if caption else ""
    return f"<figure>{svg}{words}</figure>"


def section(name: str, title: str, *parts: str) -> str:
    return f'<section id="{name}">\n{element("h2", title)}\n' + "\n".join(parts) + "\n</section>"


def table(
    rows: Sequence[Sequence[object]], numbers: Container[int] = (), taken: Container[int] = ()
) -> str:
    """A table whose first row is its head; `numbers` are the columns that end flush, `taken` the
    rows in bold, counted from the head.
    """
    lines = []
    for at, row in enumerate(rows):
        tag = "td" if at else "th"
        cells = (
            element(tag, cell, "number" if column in numbers else "")
            for column, cell in enumerate(row)
        )
        lines.append(f"<tr{_class('taken' if at in taken else '')}>{''.join(cells)}</tr>")
    return f'<div class="scroll"><table>\n{chr(10).join(lines)}\n</table></div>'


def document(title: str, body: str, refresh: int = 0) -> str:
    """The whole page; it loads itself again every `refresh` seconds, or never."""
    again = f'<meta http-equiv="refresh" content="{refresh}">\n' if refresh else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n{again}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n{body}\n</body>\n</html>\n"
    )


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
