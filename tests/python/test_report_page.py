"""The page of a study: complete, self-contained, escaped, written at once or not at all."""

from __future__ import annotations

import builtins
import errno
import itertools
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pages import ROOT, TARGETS, Page, fit_study, pack_of, search_study
from made_study import CONTROLS, FINDS, add_finals, make_study

import canvas
from canvas import _core
from canvas.cli import cmd_fit, cmd_search, main
from canvas.errors import CanvasError
from canvas.files import open_lock, try_lock
from canvas.fit_options import read_fit_options
from canvas.options import OPTIONS, read_options
from canvas.reporting import page as pages
from canvas.reporting.commands import asked_text, call_text, command_text, objects
from canvas.reporting.curves import Curve, keep_apart, shown_range
from canvas.reporting.fit_text import fit_headline
from canvas.reporting.html_parts import POLICY, STYLE
from canvas.reporting.inline_svg import VARIABLES, inline_svg
from canvas.reporting.page import headline, page_of
from canvas.reporting.page_facts import duration
from canvas.reporting.page_operators import layer_parts
from canvas.reporting.report import make_report
from canvas.reporting.table import table_cells
from canvas.study import FILE, Study, is_running
from canvas.study.store import LOCK

HERE = Path(__file__).parent
MOST = 2_000_000  # bytes of a page
EVIL = "a\x1b[2J</td><script>alert('x')</script>\"' onload=x &amp; <!-- b\u202ec\n<b>d</b>"


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return search_study(tmp_path_factory.mktemp("search"), finals=True)


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fit_study(tmp_path_factory.mktemp("fit"))


@pytest.fixture(scope="module")
def search_page(search: Path) -> Page:
    return Page(page_of(search))


@pytest.fixture(scope="module")
def fit_page(fit: Path) -> Page:
    return Page(page_of(fit))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return search_study(tmp_path / "study")


@contextmanager
def running(folder: Path) -> Iterator[None]:
    """As while a search runs in `folder`."""
    with open_lock(folder / LOCK) as lock:
        assert try_lock(lock)
        yield


def change(folder: Path, query: str, *values: object) -> None:
    with sqlite3.connect(folder / FILE) as database:
        database.execute(query, values)
    database.close()


def one_message(capsys: pytest.CaptureFixture[str], words: list[str], code: int = 2) -> str:
    assert main(words) == code
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("canvas: "), (out, err)
    return err


# ---- what is shown ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["search", "fit"])
def test_a_page_is_sound_and_has_nothing_from_elsewhere(
    kind: str, search_page: Page, fit_page: Page
) -> None:
    page = {"search": search_page, "fit": fit_page}[kind]
    text = page.text_of_page
    assert page.wrong == []
    assert len(page.ids) == len(set(page.ids))
    assert all(re.fullmatch(r"[\w-]+", name) for name in page.ids)
    assert page.references and {f"#{name}" for name in page.ids} >= {*page.references}
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "iframe", "object", "img", "base", "form", "image"}
    assert not [name for _, more in page.elements for name in more if name.startswith("on")]
    assert POLICY in page.attributes("content") and "default-src 'none'" in POLICY
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert "refresh" not in page.attributes("http-equiv")
    assert len(text.encode()) < MOST


def test_the_conclusion_comes_first_and_is_one_sentence(
    search: Path, fit: Path, search_page: Page, fit_page: Page
) -> None:
    with Study.read(search) as study:
        assert search_page.of("h1") == [make_report(study).conclusion]
    with Study.read(fit) as study:
        rows = make_report(study).rows
    (line,) = fit_page.of("h1")
    assert line == fit_headline(rows)
    assert "latency=0.6x" in line and "; macs=0.3x" in line and not re.search(r"\.\s", line)


def test_the_conclusions_of_budgets_are_one_sentence() -> None:
    assert headline(["A wins (1.5 %).", "No claim. It needs 3 seeds."]) == (
        "A wins (1.5 %); No claim.",
        ["It needs 3 seeds."],
    )
    assert headline(["A."]) == ("A.", [])


def test_every_network_is_in_a_figure_by_name_and_value(
    search: Path, fit: Path, search_page: Page, fit_page: Page
) -> None:
    """Pointing at a mark shows its values; every find and control has its mark in both figures."""
    for folder, page in ((search, search_page), (fit, fit_page)):
        with Study.read(folder) as study:
            rows = [row for row in study.candidates() if row.status == "done"]
            tested = any(row.tests for row in rows)
        for row in rows:
            if tested and not row.tests:
                continue
            name = f"find {row.name}" if row.kind == "find" else row.name
            shown = [text for text in page.of("title") if text.startswith(f"{name}: ")]
            assert len([text for text in shown if text.endswith("x")]) == 2, name
        for prefix in ("latency-", "macs-"):
            assert {f"{prefix}steps", f"{prefix}control-steps"} <= {*page.ids}


def test_the_figure_is_that_of_pareto(
    search: Path, capsys: pytest.CaptureFixture[str], search_page: Page
) -> None:
    assert main(["pareto", str(search), "--plot", "-", "--x", "macs"]) == 0
    drawn = inline_svg(capsys.readouterr().out, "macs-")
    strip = re.compile(r"<title>.*?</title>")
    assert strip.sub("", drawn) in strip.sub("", search_page.text_of_page)


def test_the_table_is_that_of_pareto(search: Path, search_page: Page) -> None:
    cells = search_page.of("td")
    with Study.read(search) as study:
        report = make_report(study)
    for row in table_cells(report.rows, report.picked)[1:]:
        for cell in row:
            assert not cell.strip() or cell.strip() in cells


def test_curves_have_each_training(search_page: Page) -> None:
    ids = search_page.ids
    for name, kind, *_ in CONTROLS + FINDS:
        shown = {"baseline": "unchanged", "find": f"find-{name}"}.get(kind, name)
        assert f"curve0-curve-{shown}" in ids


def test_a_fit_shows_tuning_and_screening(fit_page: Page) -> None:
    page = fit_page
    assert "curve0-curve-find-0" in page.ids and "curve1-curve-best-kernel" in page.ids
    assert "find 0: 0.1" in page.of("title") and "best kernel: 0.2" in page.of("title")


def test_operators_have_picture_shapes_and_code(search_page: Page, fit_page: Page) -> None:
    page = search_page
    pack = pack_of("involution")
    assert pack.rstrip() in page.of("pre")  # the text with shapes
    assert _core.torch_code(pack).rstrip() in page.of("pre")
    assert "d = fc c to=G*KH*KW" in page.of("text") and "[G*KH*KW H W]" in page.of("text")
    cells = page.of("td")
    for cell in ("stem", "8 to 16", "3x3", "8x8", "last", "16 to 16", "involution"):
        assert cell in cells
    cells = fit_page.of("td")
    assert {"mix-operator@0.5", "1 mix-operator@0.5, 1 keep"} <= {*cells}


def test_a_kept_layer_is_one_of_the_table(folder: Path) -> None:
    pack = pack_of("pointwise").replace("bind last", "keep last").replace(" stride=2", " stride=2")
    pack = re.sub(r"(keep last .*stride=2).*", r"\1", pack)
    change(folder, "UPDATE network SET pack = ? WHERE name = '0'", pack)
    cells = Page(page_of(folder)).of("td")
    assert cells.count("kept") == 1


def test_a_pack_that_is_none_is_a_sentence(folder: Path) -> None:
    change(folder, "UPDATE network SET pack = 'canvas 1 <b>' WHERE kind = 'find'")
    page = Page(page_of(folder))
    assert page.wrong == [] and "Its pack cannot be read: " in " ".join(page.of("p"))


def test_rejections_are_counted_by_reason(fit: Path, search_page: Page, fit_page: Page) -> None:
    cells = search_page.of("td")
    at = cells.index("draws unsolved")
    assert cells[at : at + 3] == ["draws unsolved", "2", "draw 8: macs 94208 are over the budget"]
    assert "find 7: nan: made up" in cells and "find 5: rung 1: 20.0 %, 23.2 % wanted" in cells
    assert "grouped@0.5 at stem: the fit diverged" in fit_page.of("td")


def test_time_and_cost_are_summed_by_stage(
    folder: Path, search_page: Page, fit_page: Page
) -> None:
    change(folder, "UPDATE network SET seconds = 10 WHERE kind = 'find' AND name <> '7'")
    cells = Page(page_of(folder)).of("td")
    at = cells.index("trainings: finds, to the end")
    assert cells[at : at + 4] == ["trainings: finds, to the end", "3", "30 s", "9.0 s"]
    cells = fit_page.of("td")
    at = cells.index("screening: kernels fitted to one layer")
    assert cells[at + 1 : at + 4] == ["3", "-", "6.0 s"]
    at = cells.index("tuning of whole networks")
    assert cells[at + 1 : at + 4] == ["4", "30 s", "-"]


@pytest.mark.parametrize(
    "seconds, text",
    [(None, "-"), (0, "0.0 s"), (9.96, "10.0 s"), (59.4, "59 s"), (60, "1 min 0 s"),
     (3599.6, "1 h 0 min"), (7260, "2 h 1 min")],
)  # fmt: skip
def test_durations(seconds: float | None, text: str) -> None:
    assert duration(seconds) == text


# ---- the commands -------------------------------------------------------------------------------

GIVEN = [
    {"budget": "macs=0.25x", "trials": 3, "deterministic": True},
    {"budget": None, "budget_sweep": "0.8x,0.4x", "model": "my.code:net", "time_limit": "10m"},
    {"images": 100, "normalize": "yes", "final_seeds": 5, "data": "folder:/a b/'c'"},
]


@pytest.mark.parametrize("given", GIVEN)
def test_the_command_gives_the_options_again(given: dict[str, object]) -> None:
    options = read_options({"model": "resnet8", "data": "digits", **given})
    words = shlex.split(command_text(options, Path("a b")))
    assert words[:2] == ["canvas", "search"]
    parsed = vars(cmd_search.parser().parse_args(words[2:]))
    assert parsed.pop("out") == "a b"
    for name in ("fresh", "progress", "log_dir"):
        assert not parsed.pop(name)
    assert read_options(parsed) == options


def test_the_command_of_a_fit_gives_its_options_again() -> None:
    given = {"model": "resnet8", "data": "digits", "budget": ["latency=0.6x", "macs=0.3x"]}
    options = read_fit_options({**given, "draws": 7, "time_limit": "1.5h"})
    words = shlex.split(command_text({"command": "fit", **options}, Path("out")))
    parsed = vars(cmd_fit.parser().parse_args(words[2:]))
    for name in ("out", "fresh", "progress", "log_dir"):
        del parsed[name]
    assert words[1] == "fit" and read_fit_options(parsed) == options


def test_objects_are_repeated_in_python() -> None:
    options = read_options({"model": "Net", "data": "DataLoader", "trials": 3})
    assert objects(options) == ["model", "data"]
    text = call_text(options, Path("runs/1"))
    assert text == "canvas.search(model, data, budget='macs=0.5x', trials=3, out='runs/1')"
    compile(text, "call", "eval")
    assert objects(read_options({"model": "a.b:c", "data": "folder:x"})) == []


def test_a_study_by_ask_and_tell_is_repeated_by_it(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    image = torch.zeros(1, 1, 8, 8)
    words = {"metric": "rmse", "direction": "minimize", "seed": 3, "latency": "none", "width": 4}
    with canvas.create_study("resnet8", image, trials=1, out=tmp_path, say=print, **words):
        pass
    with Study.read(tmp_path) as study:
        text = asked_text(study, tmp_path)
    assert text.startswith("canvas.create_study('resnet8', example_input, metric='rmse', ")
    again: dict[str, object] = {}
    given = {"create_study": lambda *model, **more: again.update(more, model=model)}
    eval(text.removeprefix("canvas."), given, {"example_input": image})
    assert again.pop("model") == ("resnet8", image)
    assert again.pop("out") == str(tmp_path) and again.pop("budget") == "macs=0.5x"
    with canvas.create_study("resnet8", image, out=tmp_path, say=print, **again) as study:
        assert study  # the same question: it goes on


def test_known_names_are_those_of_the_command_line() -> None:
    torch_free = {option.name: option.help for option in OPTIONS}
    for name, known in pages_named().items():
        assert all(word in torch_free[name] for word in known)
    pytest.importorskip("torch")
    from canvas.data import READERS
    from canvas.nn.built_in import BUILT_IN

    assert {*pages_named()["model"]} == {*BUILT_IN}
    assert {*pages_named()["data"]} == {
        name for name, reader in READERS.items() if not reader.path
    }


def pages_named() -> dict[str, tuple[str, ...]]:
    from canvas.reporting.commands import NAMED

    return NAMED


# ---- text from strangers ------------------------------------------------------------------------


def test_text_of_a_study_is_shown_as_text(folder: Path) -> None:
    clean = Page(page_of(folder))
    for query in (
        "UPDATE network SET name = name || ?1 WHERE kind = 'control'",
        "UPDATE task SET reason = ?1, log = ?1",
        "UPDATE network SET budget = ?1, engine = ?1, origin = ?1, parents = ?1",
        "UPDATE draw SET reason = ?1 WHERE outcome <> 'trial'",
        "UPDATE study SET data = ?1, targets = ?1, data_checksum = ?1",
        "UPDATE session SET machine = json_object('processor', ?1), "
        "versions = json_object('torch', ?1)",
        "UPDATE study SET options = json_set(options, '$.model', 'a<b>:\"c''&')",
        "INSERT INTO timing SELECT id, 'native', 1, 1, 1, 1, ?1, 1, ?1, 1, 1, 1 FROM network",
    ):
        change(folder, query, *[EVIL] * ("?1" in query))
    text = page_of(folder)
    page = Page(text)
    assert page.wrong == [] and len(page.ids) == len(set(page.ids))
    assert {tag for tag, _ in page.elements} == {tag for tag, _ in clean.elements}
    names = {name for _, more in page.elements for name in more}
    assert names == {name for _, more in clean.elements for name in more}
    shown = "a\\x1b[2J</td><script>alert('x')</script>\"' onload=x &amp; <!-- b\\u202ec\\n<b>d</b>"
    for tag in ("td", "title", "summary", "p"):
        assert any(shown in text for text in page.of(tag)), tag
    assert all(line.isprintable() for line in text.split("\n"))


# ---- the file -----------------------------------------------------------------------------------


def test_the_page_is_written_into_the_study_or_where_the_user_says(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"The page is in '{folder / 'report.html'}'.\n"
    text = (folder / "report.html").read_text()
    assert text == page_of(folder)
    assert canvas.report(folder, tmp_path / "a.html") == tmp_path / "a.html"
    assert (tmp_path / "a.html").read_text() == text
    assert main(["report", str(folder), "--html", "-"]) == 0
    assert capsys.readouterr().out == text
    assert canvas.report(str(folder)) == folder / "report.html"
    with Study.open(folder, fresh=True):
        assert not (folder / "report.html").exists()  # it showed the study that is gone


def test_a_link_of_the_study_is_replaced_and_one_of_the_user_is_followed(
    folder: Path, tmp_path: Path
) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (folder / "report.html").symlink_to(theirs)
    canvas.report(folder)
    assert theirs.read_text() == "theirs" and not (folder / "report.html").is_symlink()
    (tmp_path / "mine.html").symlink_to(theirs)
    canvas.report(folder, tmp_path / "mine.html")
    assert theirs.read_text().startswith("<!DOCTYPE html>")


def test_a_page_that_cannot_be_written_is_one_message_and_leaves_nothing(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.iterdir())
    for name, reason in (
        ("folder.html", "Is a directory"),
        ("no/a.html", "No such file or directory"),
        ("file/a.html", "Not a directory"),
    ):
        words = ["report", str(folder), "--html", str(tmp_path / name)]
        assert one_message(capsys, words) == (
            f"canvas: cannot write '{tmp_path / name}': {reason}\n"
        )
        assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EDQUOT])
def test_a_disk_that_fails_keeps_the_page_before(
    code: int, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    canvas.report(folder)
    (folder / "report.html").write_text("before")
    before = sorted(folder.iterdir())

    def fails(handle: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("canvas.files.os.fsync", fails)
    message = one_message(capsys, ["report", str(folder)])
    assert message == f"canvas: cannot write '{folder}/report.html': {os.strerror(code)}\n"
    assert (folder / "report.html").read_text() == "before"
    assert sorted(folder.iterdir()) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("name", ["study.db", "notes.txt"])
def test_a_page_replaces_no_other_file(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = folder / name
    before = place.read_bytes() if place.exists() else b"keep me"
    place.write_bytes(before)
    message = one_message(capsys, ["report", str(folder), "--html", str(place)])
    assert message == f"canvas: '{place}' is there and no page (.html): name another file\n"
    assert place.read_bytes() == before


def test_a_closed_standard_output_is_no_traceback(folder: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m canvas report {shlex.quote(str(folder))} >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    assert (folder / "report.html").exists()


@pytest.mark.parametrize("error", [ModuleNotFoundError("no"), ImportError("numpy is too old")])
def test_without_a_usable_matplotlib_the_page_says_so(
    error: ImportError, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str, *args: object, **words: object) -> object:
        if name.partition(".")[0] == "matplotlib":
            raise error
        return real(name, *args, **words)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", fail)
    assert "a plot needs matplotlib" in canvas.report(folder).read_text()


def test_a_full_device_is_one_message(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    message = one_message(capsys, ["report", str(folder), "--html", "/dev/full"])
    assert message == "canvas: cannot write '/dev/full': No space left on device\n"


@pytest.mark.parametrize(
    "rows, message",
    [
        (CONTROLS, "has no find to report (none was trained to the end): canvas trials lists"),
        ([*CONTROLS, FINDS[3]], "(finds pruned: 1, such as: no reason recorded): canvas trials"),
        (FINDS[4:], "(finds failed: 1, such as: nan: made up): canvas trials lists every"),
    ],
)
def test_a_study_without_finds_is_one_message(
    rows: list[tuple], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_study(tmp_path / "study", rows)
    assert message in one_message(capsys, ["report", str(folder)])
    assert not [path for path in folder.iterdir() if "report" in path.name]
    with pytest.raises(CanvasError, match="has no find to report"):
        canvas.report(folder)


@pytest.mark.parametrize("version", range(1, 10))
def test_a_study_of_an_older_format_is_one_message(
    version: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(tmp_path / FILE) as database:
        database.executescript((HERE / f"study_format_{version}.sql").read_text())
    database.close()
    message = one_message(capsys, ["report", str(tmp_path)])
    assert f"has the older format {version}: give its command, canvas search or" in message
    assert not (tmp_path / "report.html").exists()


def test_other_mistakes_are_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is no study in" in one_message(capsys, ["report", str(tmp_path)])
    words = ["report", str(tmp_path), "--html", "-", "--watch"]
    assert "--html - writes to standard output: leave out --watch" in one_message(capsys, words)
    assert "did you mean '--watch'?" in one_message(capsys, ["report", ".", "--wach"])


def test_without_matplotlib_the_page_says_so_in_place_of_figures(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = Page(page_of(folder))
    assert sum("needs matplotlib, not installed here" in text for text in page.of("p")) == 2
    assert page.wrong == [] and "[G*KH*KW H W]" in page.of("text")


def test_a_large_study_is_a_small_page(tmp_path: Path) -> None:
    many = [
        (str(n), "find", "done", 0.5 + n / 1000, 1 + n / 400, 480 - n, 240) for n in range(10, 410)
    ]
    folder = search_study(tmp_path / "study")
    pack = pack_of("involution")
    with Study.open(folder) as study, study._transaction():
        for name, kind, status, accuracy, speedup, macs, params in many:
            row = study.database.execute(
                "INSERT INTO network (name, kind, number, val_accuracy, speedup, macs, params, "
                "pack, kernel) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (name, kind, int(name), accuracy, speedup, macs, params, pack, pack),
            )
            study.database.execute(
                "INSERT INTO task (candidate, kind, requires, state) VALUES (?, 'accuracy', '{}', "
                "?)",
                (row.lastrowid, status),
            )
            study.database.executemany(
                "INSERT INTO epoch VALUES (?, ?, ?, 1, 1, 1)",
                [(row.lastrowid, n, accuracy * (n + 1) / 20) for n in range(20)],
            )
    text = page_of(folder)
    assert len(text.encode()) < MOST
    page = Page(text)
    for name, *_ in many:
        assert sum(title.startswith(f"find {name}: ") for title in page.of("title")) >= 2


# ---- while a search runs ------------------------------------------------------------------------


def test_a_running_search_is_seen_and_not_disturbed(folder: Path) -> None:
    assert not is_running(folder) and not is_running(folder / "nowhere")
    with running(folder):
        assert is_running(folder)
        page = Page(page_of(folder))
        assert "running" in page.of("span") and not page.attributes("http-equiv").count("refresh")
    assert not is_running(folder) and "not running" in Page(page_of(folder)).of("span")


def test_a_search_begins_although_its_lock_is_looked_at(folder: Path) -> None:
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            is_running(folder)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for _ in range(20):
            Study.open(folder).close()
    finally:
        stop.set()
        looking.join()


@pytest.mark.parametrize("rows", [[], CONTROLS, FINDS[4:]], ids=["new", "controls", "failed"])
def test_a_search_that_has_only_begun_has_a_page(rows: list[tuple], tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", rows)
    with running(folder):
        page = Page(page_of(folder))
    assert page.wrong == [] and page.of("h1")


def test_a_fit_that_has_only_begun_has_a_page(tmp_path: Path) -> None:
    options = read_fit_options({"model": "resnet8", "data": "digits", "budget": "macs=0.3x"})
    with Study.open(tmp_path) as study:
        study.begin({"command": "fit", **options}, "digits", "0" * 64, (1000, 400), TARGETS)
        page = Page(page_of(tmp_path))
    assert page.wrong == [] and page.of("h1") == ["No result: no network was tuned."]


def test_a_page_follows_the_search_to_its_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, seen = folder / "report.html", []
    lock = open_lock(folder / LOCK)
    assert try_lock(lock)

    def sleep(seconds: float) -> None:
        """What happens from one look to the next: nothing, a new candidate, the end."""
        assert seconds == pages.EVERY
        seen.append((path.read_text(), path.stat().st_mtime_ns))
        if len(seen) == 2:
            change(folder, "UPDATE task SET reason = 'something new' WHERE state = 'pruned'")
        if len(seen) == 3:
            lock.close()

    monkeypatch.setattr(pages.time, "sleep", sleep)
    assert main(["report", str(folder), "--watch"]) == 0
    texts, times = zip(*seen)
    assert texts[0] == texts[1] and times[0] == times[1] < times[2]  # written when it changed
    assert "something new" not in texts[1] and "something new" in texts[2]
    for text in texts:
        assert '<meta http-equiv="refresh" content="30">' in text and ">running<" in text
    assert 'http-equiv="refresh"' not in path.read_text() and ">not running<" in path.read_text()
    assert capsys.readouterr().out.splitlines() == [
        f"The page is '{path}', and follows the search.",
        f"The page is in '{path}'.",
    ]


def test_after_ctrl_c_the_page_no_longer_loads_itself(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pages.time, "sleep", interrupt)
    with running(folder):
        assert main(["report", str(folder), "--watch"]) == 130
        text = (folder / "report.html").read_text()
    assert 'http-equiv="refresh"' not in text and ">running<" in text


def test_watching_what_has_ended_writes_once(folder: Path) -> None:
    began = time.monotonic()
    assert main(["report", str(folder), "--watch"]) == 0
    assert time.monotonic() - began < pages.EVERY
    assert ">not running<" in (folder / "report.html").read_text()


# ---- layers -------------------------------------------------------------------------------------


def test_grouped_layers_count_by_their_own_macs() -> None:
    """The ratio of a layer is to what the network had there."""
    pack = _core.print_pack(
        "canvas 1\nkernel k\na = input : C H W\nb = fc a to=C : C H W\nout b\n"
        "bind one Cin=16 Cout=16 KH=3 KW=3 H=4 W=4 stride=1 groups=4\n"
        "keep two Cin=16 Cout=32 KH=3 KW=3 H=4 W=4 stride=2 groups=2\n"
    )
    cells = re.findall(r">([0-9.]+x)<", layer_parts(pack, {}, "k"))
    assert cells == [f"{16 * 16 / (4 * 16 * 9):.2f}x", "1.00x"]


# ---- pictures -----------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 200, allow_subnormal=False), max_size=40), st.floats(4, 20))
def test_names_of_curves_never_overlap(wanted: list[float], least: float) -> None:
    places = keep_apart(wanted, least, 6.0, 150.0)
    assert len(places) == len(wanted)
    found = sorted((place, want) for place, want in zip(places, wanted) if place is not None)
    for (a, wanted_a), (b, wanted_b) in itertools.pairwise(found):
        assert b - a >= least - 1e-6 and wanted_a <= wanted_b
    assert all(6 - 1e-6 <= place <= 150 + 1e-6 for place, _ in found)
    assert len(found) == min(len(wanted), int(144 / least + 1e-9) + 1)
    if len(wanted) == 1 and 6 <= wanted[0] <= 150:
        assert places == wanted


def test_the_identity_does_not_set_the_axis_of_curves() -> None:
    curves = [
        Curve("unchanged", "baseline", range(1, 7), [50, 80, 90, 95, 96, 97]),
        Curve("find 1", "front", range(1, 7), [30, 70, 85, 90, 92, 93]),
        Curve("identity", "control", range(1, 7), [10, 20, 30, 30, 30, 31]),
        Curve("find 2", "find", [1], [12]),
    ]
    low, high = shown_range(curves, 1, False)
    assert 60 < low < 93 and 97 < high < 110
    assert shown_range(curves, 1, True)[0] < 30


def test_every_colour_of_a_picture_follows_light_and_dark(search_page: Page) -> None:
    drawn = search_page.text_of_page
    styles = " ".join(Page(drawn).attributes("style"))
    assert not re.findall(r"#[0-9a-f]{3,6}\b", styles)
    assert {*re.findall(r"var\((--\w+)\)", styles)} == {*VARIABLES.values()}
    used = set()
    for path in (ROOT / "examples/kernels").glob("*.kernel"):
        picture = inline_svg(_core.svg(path.read_text()), "k-")
        used |= {*re.findall(r'(rect|path|text)[^>]* fill="(#\w+)"', picture)}
    assert len(used) >= 8
    for tag, colour in used:
        rule = f'.kernel {tag}[fill="{colour}"]', f'.kernel [fill="{colour}"]'
        assert any(words in STYLE for words in rule), (tag, colour)


def test_text_has_contrast_in_light_and_dark() -> None:
    """At least 4.5 to 1, as WCAG 2 (AA) asks of text."""
    blocks = re.findall(r":root \{(.*?)\}", STYLE, re.S)
    assert len(blocks) == 2
    for block in blocks:
        colours = dict(re.findall(r"(--\w+): (#\w{6})", block))
        for name in ("--ink", "--faint", "--find", "--control"):
            assert contrast(colours[name], colours["--paper"]) >= 4.5, name
        for fill in ("--card", "--moves", "--unfold", "--fc", "--map", "--fold", "--broadcast"):
            assert contrast(colours["--ink"], colours[fill]) >= 4.5, fill
        assert contrast(colours["--grey"], colours["--paper"]) >= 3  # marks and lines


def contrast(one: str, other: str) -> float:
    low, high = sorted(luminance(colour) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    shares = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (
        s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_finals_move_the_figure_to_the_test_images(folder: Path) -> None:
    assert "test accuracy" not in page_of(folder)
    add_finals(folder, {"baseline": [0.9, 0.91, 0.92], "0": [0.8, 0.81, 0.82]})
    assert "test accuracy (%) against" in " ".join(Page(page_of(folder)).of("title"))
