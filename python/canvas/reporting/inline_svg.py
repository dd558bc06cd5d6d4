"""SVG pictures as parts of an HTML page: no comments, no names that clash, colours of the page.

Colours of the pictures become variables, which the page sets for light and dark.  What is parsed
was written by this package, never by a study, and the result is written anew from the parsed tree.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

from .drawn import INK
from .figure import BLUE, FAINT, GREY, GRID, PAPER, VERMILION

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}href"
VARIABLES = {  # colour of a figure -> variable of the page
    INK: "--ink",
    GREY: "--grey",
    BLUE: "--find",
    VERMILION: "--control",
    PAPER: "--paper",
    GRID: "--grid",
    FAINT: "--faint",
}
DROPPED = ("metadata", "style", "desc", "script", "foreignObject")
COLOUR = re.compile("|".join(VARIABLES))


def inline_svg(svg: bytes | str, prefix: str, titles: Mapping[str, str] | None = None) -> str:
    """An <svg> element of a page: identifiers begin with `prefix`, and elements whose identifier
    is in `titles` show that text to the pointer.
    """
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag.removeprefix(SVG) in DROPPED or not child.tag.startswith(SVG):
                parent.remove(child)
    seen: set[str] = set()
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        _rename(element, prefix, titles or {})
        if (name := element.get("id")) in seen:
            del element.attrib["id"]  # such as that of each label
        elif name:
            seen.add(name)
        if element.text and not element.text.strip():
            element.text = None
        element.tail = None
    root.set("role", "img")
    return ElementTree.tostring(root, encoding="unicode")


def _rename(element: ElementTree.Element, prefix: str, titles: Mapping[str, str]) -> None:
    name = element.get("id", "")
    if name in titles:
        title = ElementTree.Element("title")
        title.text = titles[name]
        element.insert(0, title)
    for key, value in list(element.attrib.items()):
        if key == "id":
            element.set(key, prefix + re.sub(r"[^\w-]", "-", value))
        elif key == LINK:
            del element.attrib[key]
            element.set("href", f"#{prefix}{value.removeprefix('#')}")
        elif key == "style":
            value = COLOUR.sub(lambda found: f"var({VARIABLES[found[0]]})", value)
            element.set(key, value.replace("url(#", f"url(#{prefix}"))
        elif "url(#" in value:
            element.set(key, value.replace("url(#", f"url(#{prefix}"))
