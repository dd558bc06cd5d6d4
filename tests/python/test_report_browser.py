"""The page of a study in headless Chromium: its own policy blocks nothing of it, it follows the
light or dark setting, and it fits a narrow window.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from made_pages import fit_study, search_study

from canvas.reporting.html_parts import POLICY
from canvas.reporting.page import page_of

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = next((found for name in NAMES if (found := shutil.which(name))), "")
SECONDS = 100  # for one start of the browser
DARK = "--blink-settings=preferredColorScheme=0"

pytestmark = pytest.mark.skipif(not BROWSER, reason=f"none of {', '.join(NAMES)} is installed")

# Writes what the browser made of a page into its title; a copy without policy may run it.
MEASURE = """<script>addEventListener("load", () => {
  const root = document.documentElement, body = getComputedStyle(document.body);
  const wide = [...document.querySelectorAll("section, nav, h1, p, figure, pre, .scroll")]
    .filter(e => e.getBoundingClientRect().right > root.clientWidth + 1).length;
  const dots = [...document.querySelectorAll("figure svg")]
    .every(e => e.getBoundingClientRect().width > 200 && e.getBoundingClientRect().height > 100);
  document.title = [innerWidth, root.scrollWidth, wide, dots, body.backgroundColor, body.color]
    .join("|");
});</script>"""


@pytest.fixture(scope="module", params=["search", "fit"])
def text(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp(request.param)
    return page_of(search_study(folder, True) if request.param == "search" else fit_study(folder))


def browse(page: Path, home: Path, *flags: str) -> tuple[str, str]:
    """The page as the browser has it, and the browser's log."""
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    more = [f"--user-data-dir={home}", "--enable-logging=stderr", "--dump-dom", page.as_uri()]
    with tempfile.TemporaryDirectory(dir="/tmp") as short:  # the path of a socket has a limit
        done = subprocess.run(
            [*command, *flags, *more],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={**os.environ, "TMPDIR": short},
        )
    return done.stdout, done.stderr


def measured(text: str, folder: Path, width: int, *flags: str) -> list[str]:
    """Window, content, elements that stick out, whether figures have a size, two colours."""
    page = folder / "measured.html"
    page.write_text(text.replace(POLICY, "").replace("</head>", f"{MEASURE}</head>"))
    made, log = browse(page, folder / "home", f"--window-size={width},900", *flags)
    title = re.search(r"<title>(\d+\|[^<]*)</title>", made)
    assert title, log
    return title[1].split("|")


def test_nothing_of_the_page_is_blocked_or_wrong(text: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(text)
    made, log = browse(page, tmp_path / "home")
    assert "CONSOLE" not in log, log
    assert made.count("<svg") == text.count("<svg") and "</html>" in made
    assert text.count("<td") == made.count("<td")


@pytest.mark.parametrize("width", [500, 1200])  # a window of Chromium is not narrower
def test_the_page_fits_the_window(width: int, text: str, tmp_path: Path) -> None:
    window, content, wide, figures, *_ = measured(text, tmp_path, width)
    assert int(content) <= int(window) and int(window) <= width
    assert (wide, figures) == ("0", "true")


def test_the_page_fits_a_telephone(text: str, tmp_path: Path) -> None:
    """In a frame of 360 pixels, as Chromium's own window is wider."""
    page = tmp_path / "page.html"
    inner = text.replace(POLICY, "").replace("</head>", f"{MEASURE}</head>")
    page.write_text(inner.replace("document.title =", "parent.document.title ="))
    frame = tmp_path / "frame.html"
    frame.write_text('<title></title><iframe src="page.html" width=360 height=800></iframe>')
    made, log = browse(frame, tmp_path / "home", "--allow-file-access-from-files")
    title = re.search(r"<title>(\d+\|[^<]*)</title>", made)
    assert title, log
    window, content, wide, figures, *_ = title[1].split("|")
    assert int(window) == 360 >= int(content)
    assert (wide, figures) == ("0", "true")


def test_the_page_follows_light_and_dark(text: str, tmp_path: Path) -> None:
    light = measured(text, tmp_path, 1000)[-2:]
    dark = measured(text, tmp_path, 1000, DARK)[-2:]
    assert light == ["rgb(255, 255, 255)", "rgb(34, 34, 34)"]
    assert dark == ["rgb(21, 23, 26)", "rgb(232, 232, 232)"]
