"""matplotlib with settings of our own, whatever the user's are: the same points, the same bytes.

Text is measured and drawn in the font that matplotlib brings; no display is needed or opened.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import CanvasError, one_line

INK = "#222222"  # of text and axes; inline_svg.py exchanges it for the colour of a page
DPI = 288  # of what is measured and of PNG
SMALL = 6.4  # points, of most text
SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": SMALL,
    "text.parse_math": False,
    "text.hinting": "none",
    "svg.hashsalt": "canvas",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
}


@contextmanager
def own_settings() -> Iterator[None]:
    """Its own settings whatever the user's are, and none of its remarks."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise CanvasError(
            'a plot needs matplotlib, not installed here: pip install "canvas-kas[plot]"'
        ) from error
    except Exception as error:  # of a library that does not fit it
        raise CanvasError(
            f"a plot needs matplotlib, which fails here: {one_line(error)}"
        ) from error
    log = logging.getLogger("matplotlib")
    level = log.level
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.simplefilter("ignore")  # a letter that the font lacks is an empty box
        log.setLevel(logging.ERROR)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        try:
            yield
        finally:
            log.setLevel(level)


def empty_figure(width: float, height: float) -> Any:
    """An empty figure of so many points."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure((width / 72, height / 72), dpi=DPI)
    FigureCanvasAgg(figure)
    return figure
