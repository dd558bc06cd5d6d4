"""Progress on a terminal: what the screen shows, which way is chosen, and what Ctrl-C leaves."""

import errno
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
import types
import warnings
from pathlib import Path

import pytest
from rich.console import Console

from canvas.errors import CanvasError
from canvas.fit_options import read_fit_options
from canvas.reporting import displays, live
from canvas.reporting.displays import make_display, wanted_way
from canvas.reporting.live import LiveDisplay, clock
from canvas.reporting.progress import Display, Silent
from canvas.reporting.uninterrupted import uninterrupted
from canvas.study import Candidate, Study

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
ESCAPE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])")
KERNEL = "canvas 1\nkernel k\na = input\nb = unfold a over=H,W k=K\nc = fc b to=C\nout c\n"


def screen(text):
    """The lines that a terminal would show, as far as Rich's codes are needed: up, erase line."""
    lines, row, column, at = [""], 0, 0, 0
    while at < len(text):
        code = ESCAPE.match(text, at)
        if code:
            at = code.end()
            if code[2] == "A":
                row -= int(code[1] or 1)
            elif code[2] == "K":
                lines[row] = ""
            assert code[2] in "AKmhl" and row >= 0, code[0]
            continue
        if text[at] == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif text[at] == "\r":
            column = 0
        else:
            lines[row] = lines[row][:column].ljust(column) + text[at] + lines[row][column + 1 :]
            column += 1
        at += 1
    return [line.rstrip() for line in lines]


def cursor_codes(text):
    """When the cursor was hidden and shown."""
    return re.findall(r"\x1b\[\?25[lh]", text)


def row(name, kind="find", status="done", accuracy=0.9, reason="", speedup=None):
    return Candidate(
        id=len(name),
        name=name,
        kind=kind,
        number=None,
        kernel=KERNEL,
        pack=KERNEL,
        hash=None,
        layer_macs=None,
        status=status,
        reason=reason,
        log="",
        macs=500,
        params=None,
        val_accuracy=accuracy,
        latency_ms=None,
        latency_spread_ms=None,
        speedup=speedup,
        seconds=10.0,
    )


class Screen(io.StringIO):
    """What is written to a terminal; a subclass, so that its methods can be replaced."""


@pytest.fixture
def terminal(monkeypatch):
    """A display on a terminal of 80 columns whose clock stands at `at[0]` seconds."""
    at = [0.0]
    monkeypatch.setattr(live.time, "monotonic", lambda: at[0])
    console = Console(file=Screen(), force_terminal=True, width=80, height=40)
    display = LiveDisplay(console, "net on images", 600.0, 0.0)

    def shown():
        display.refresh()
        return screen(console.file.getvalue())

    yield display, at, shown
    display.close()


def test_the_screen_of_a_search(terminal):
    display, at, shown = terminal
    display.line("net on images: 100 images\nlayer  MACs")
    waiting = row("1x1", "control", "new", None)
    display.begin([row("baseline", "baseline", accuracy=0.95), waiting, row("0")], 1000)
    display.phase("", 4)
    display.started("1x1", 6)
    display.started("3", 6)
    display.epoch("3", 0.5)
    at[0] = 65.0
    lines = shown()
    assert lines[:2] == ["net on images: 100 images", "layer  MACs"]
    assert cursor_codes(display.console.file.getvalue())[-1] == "\x1b[?25h"  # kill -9 leaves it
    assert "net on images   1:05 of 10:00" in lines and "trials 1 of 4" in lines
    for words in (
        "1x1 1 of 6",
        "3 2 of 6 50.0 %",
        "baseline 95.0 % 0.50x done",
        "1x1 0.50x training",
        "find 0 90.0 % 0.50x done unfold fc",
        "finds: 1 done, 0 pruned, 0 rejected, 0 failed",
    ):
        assert words in [" ".join(line.split()) for line in lines], lines
    at[0] = 100.0
    display.finished(row("3", status="pruned", reason="50.0 % after epoch 2"), 100.0, 1000)
    lines = shown()
    assert lines[2].startswith("[ 100 s] 3 ") and "epoch 2)  unfold fc" in " ".join(lines[2:4])
    # One ending took 100 s; two finds and a control are left, which the limit cuts short.
    assert "trials 2 of 4, about 5:00 left" in lines
    assert "finds: 1 done, 1 pruned, 0 rejected, 0 failed" in lines
    display.limit = None
    display.after(50.0)  # finals and timing
    assert "trials 2 of 4, about 5:00 left, 5:50 with all that follows" in shown()
    display.limit = 420.0
    assert "trials 2 of 4, about 5:00 left, 5:20 with all that follows" in shown()
    display.limit = 600.0
    display.phase("finals: 6 trainings of 2 epochs", 6)
    display.after(0.0)
    display.started("find 0 seed 2", 2)
    at[0] = 105.0
    display.ended("find 0 seed 2")
    assert "finals 1 of 6, about 0:25 left" in shown()
    display.phase("timing 2 networks, one at a time", 2)
    display.timed(row("0", speedup=1.25))
    lines = shown()
    assert "timing 1 of 2, about 0:00 left" in lines and any("1.25x" in line for line in lines)
    display.close()
    lines = screen(display.console.file.getvalue())
    assert [line for line in lines if line] == lines[:4]  # the table is gone


def test_the_screen_of_a_fit(terminal, monkeypatch, tmp_path):
    """Ratios are to the teacher, and what waits is shown as waiting."""
    torch = pytest.importorskip("torch")
    from canvas.fitting import fit_run
    from canvas.reporting import callbacks

    display, _, shown = terminal
    with Study.open(tmp_path) as study:
        options = {**read_fit_options({"model": "m", "data": "d"}), "command": "fit"}
        study.begin(options, "images", "abc", (100, 50), "")
        task = types.SimpleNamespace(judged_by=study.metric)
        teacher = types.SimpleNamespace(
            network=torch.nn.Identity(), targets=(), task=task, train=torch.zeros(1, 1, 2, 2)
        )
        monkeypatch.setattr(fit_run, "cost_on", lambda network, example: (400, 10))
        run = fit_run.FitRun(study, options, teacher, None, display, 0.0, callbacks.Callbacks())
        run.fit_jobs = types.SimpleNamespace(score=lambda network: 0.75)
        monkeypatch.setattr(run, "_stages", lambda: display.phase("tuning 1 network", 1))
        run.run()
        lines = [" ".join(line.split()) for line in shown()]
    assert "teacher 75.0 % 1.00x done" in lines and "teacher, tuned waiting" in lines, lines


@pytest.mark.parametrize("width", [20, 40, 80])
def test_nothing_breaks_out_of_its_line(terminal, width):
    """Long names, control characters, markup and emoji codes of strangers stand as they are."""
    display, _, shown = terminal
    display.console.width = width
    display.title = "[bold]net[/] \x1b[2J:smile:\nnext"
    nasty = "[red]boo[/red] [link=x] \x1b]0;title\x07 [/] " + 300 * "x"
    display.begin([row("grouped-" + 100 * "9", "control", "failed", None, nasty)], 1000)
    display.phase("", 1)
    display.started("[blink]" + 100 * "n", 2)
    display.finished(row("0", status="failed", accuracy=None, reason="error: " + nasty), 1.0, 1000)
    display.line(nasty)
    lines = shown()
    assert max(map(len, lines)) <= width
    whole = "".join(lines).replace(" ", "")
    assert "[red]boo[/red][link=x]\\x1b]0;title\\x07[/]" in whole
    assert "[bold]net[/]\\x1b[2J:smile:\\nnext" in whole or width == 20
    assert "[blink]nn" in whole
    assert "\x1b]" not in display.console.file.getvalue()


def test_long_kernels_leave_the_figures_alone(terminal):
    display, _, shown = terminal
    display.console.width = 72
    long = row("0", speedup=1.25)
    long.kernel = KERNEL + "".join(f"z{i} = relu c\n" for i in range(30))
    display.begin([row("depthwise-separable", "control"), long], 1000)
    display.phase("", 1)
    lines = shown()
    assert any(re.match(r"best so far +accuracy +MACs +speed-up +status$", x) for x in lines)
    assert any(re.match(r"find 0 +90.0 % +0.50x +1.25x +done +unfold fc", x) for x in lines), lines
    assert max(map(len, lines)) <= 72


def test_many_trainings_and_rows_keep_to_the_screen(terminal):
    display, _, shown = terminal
    display.console.height = 24
    display.begin([row(str(i)) for i in range(500)], 1000)
    display.phase("", 1000)
    for i in range(64):
        display.started(str(i), 3)
    lines = shown()
    assert "and 56 more" in lines and len([line for line in lines if "find" in line]) == 6


class Tty(Screen):
    def isatty(self):
        return True


def test_no_line_is_lost_whoever_writes(monkeypatch):
    """While the table changes its height: lines of the search, of callbacks, warnings, and text
    without an end.
    """
    stream, interval = Tty(), sys.getswitchinterval()
    monkeypatch.setattr(sys, "stderr", stream)
    console = Console(stderr=True, force_terminal=True, width=80, height=40)
    display = LiveDisplay(console, "net", 600.0, time.monotonic())
    display.begin([row("0")], 1000)
    display.phase("", 100)
    over = threading.Event()

    def grow():
        while not over.is_set():
            for change in (lambda n: display.started(n, 3), display.ended):
                for number in range(8):
                    change(str(number))
            display.refresh()

    def parts(index):
        sys.stderr.write("part ")
        sys.stderr.write(f"{index} end\n")

    writers = {
        "line": lambda index: display.line(f"line {index} end"),
        "print": lambda index: print("print", index, "end", file=sys.stderr),
        "part": parts,
        "warn": lambda index: warnings.warn_explicit(f"warn {index} end", UserWarning, "x", index),
    }

    def write(name):
        for index in range(100):
            writers[name](index)

    growing = threading.Thread(target=grow)
    threads = [threading.Thread(target=write, args=(name,)) for name in writers]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: sys.stderr.write(f"{message}\n")
        sys.setswitchinterval(1e-6)
        try:
            for thread in (growing, *threads):
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            over.set()
            growing.join()
            sys.setswitchinterval(interval)
    sys.stderr.write("no end")
    display.close()
    assert sys.stderr is stream
    lines = [line for line in screen(stream.getvalue()) if line]
    assert sorted(lines) == sorted(
        ["no end", *(f"{name} {index} end" for name in writers for index in range(100))]
    )


def test_a_terminal_that_closes_stops_nothing(terminal, monkeypatch):
    display, _, _ = terminal

    def gone(text):
        raise OSError(errno.EIO, "Input/output error")

    display.phase("", 1)
    monkeypatch.setattr(display.console.file, "write", gone, raising=False)
    display.finished(row("0"), 1.0, 1000)
    display.farewell("the same command continues")
    display.close()


def test_no_colour_takes_the_colours_only(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    console = Console(file=io.StringIO(), force_terminal=True, width=80)
    display = LiveDisplay(console, "net", None, time.monotonic())
    display.begin([row("0", status="failed", reason="nan: it is")], 1000)
    display.phase("", 1)
    display.close()
    text = console.file.getvalue()
    assert "finds: 0 done, 0 pruned, 0 rejected, 1 failed" in text and "\x1b[3" not in text


@pytest.mark.parametrize(
    "way, tty, term, expected",
    [
        ("live", True, "xterm", LiveDisplay),
        ("live", True, "dumb", Display),
        ("live", False, "xterm", Display),
        ("lines", True, "xterm", Display),
        ("off", True, "xterm", Silent),
    ],
)
def test_the_way_that_is_chosen(monkeypatch, way, tty, term, expected):
    stream = io.StringIO()
    stream.isatty = lambda: tty
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", term)
    assert type(make_display(way, None, "net", None, 0.0)) is expected
    if expected is LiveDisplay:
        assert type(make_display(way, print, "net", None, 0.0)) is Display  # `say` wants lines
        monkeypatch.setattr(displays.importlib.util, "find_spec", lambda name: None)
        assert type(make_display(way, None, "net", None, 0.0)) is Display  # rich is not there


def test_the_flag_goes_before_the_environment(monkeypatch):
    monkeypatch.delenv("CANVAS_PROGRESS", raising=False)
    assert wanted_way(None) == "live"
    monkeypatch.setenv("CANVAS_PROGRESS", "off")
    assert (wanted_way(None), wanted_way("lines")) == ("off", "lines")
    monkeypatch.setenv("CANVAS_PROGRESS", "loud")
    with pytest.raises(CanvasError, match="CANVAS_PROGRESS takes live, lines, off, not 'loud'"):
        wanted_way(None)
    with pytest.raises(CanvasError, match="progress is live, lines, off, not 'loud'"):
        make_display("loud", None, "net", None, 0.0)


def test_silence_still_says_how_to_go_on():
    said = []
    display = make_display("off", said.append, "net", None, 0.0)
    display.line("a")
    display.phase("b", 1)
    display.finished(row("0"), 1.0, 1000)
    display.farewell("c")
    assert said == ["c"]


def test_a_clock():
    assert [clock(s) for s in (0, 65.9, 3600, 90061)] == ["0:00", "1:05", "1:00:00", "25:01:01"]


# ---- a search on a real terminal ----------------------------------------------------------------

HERE = Path(__file__).parent


class Search:
    """`canvas search` with its standard error on a terminal of its own, its output in a pipe; its
    children train nothing, and with `hangs` the one that trains the find never ends.
    """

    def __init__(self, folder, hangs=False):
        words = "search --model faults_models:build --data digits --trials 1 --epochs 2"
        more = "--images 200 --finalists 0 --compile no --workers 1 --out study"
        more += " --prune none --pretests no"  # each network is trained once
        faults = {"CANVAS_FAULTS": "sleep", "CANVAS_COUNTER": str(folder / "count")}
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("4H", 30, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [sys.executable, HERE / "faults_command.py", *words.split(), *more.split()],
            cwd=folder,
            env={**ENVIRONMENT, "TERM": "xterm", **(faults if hangs else {})},
            stdin=self.slave,
            stdout=subprocess.PIPE,
            stderr=self.slave,
            start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),  # its own terminal
            text=True,
        )
        self.shown = ""

    def listen(self, until=None, seconds=200):
        """Until `until` is on the screen, or the search is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if select.select([self.master], [], [], 0.1)[0]:
                self.shown += os.read(self.master, 1 << 16).decode()
            elif self.process.poll() is not None:
                return
            if until is not None and until in self.shown:
                return
        raise AssertionError(self.shown)

    def end(self):
        """Exit code and standard output; the terminal must be as it was."""
        out, _ = self.process.communicate(timeout=60)
        assert termios.tcgetattr(self.slave) == self.before
        assert cursor_codes(self.shown)[-1] == "\x1b[?25h"
        assert "Traceback" not in self.shown
        os.close(self.master)
        os.close(self.slave)
        return self.process.returncode, out


def test_ctrl_c_and_the_end_leave_the_terminal_as_it_was(tmp_path):
    search = Search(tmp_path, hangs=True)
    search.listen("  done  ")  # the line of the first training; others and the timing follow
    assert "best so far" in search.shown
    os.write(search.master, b"\x03")
    search.listen()
    code, out = search.end()
    assert (code, out) == (130, "")
    last = [line for line in screen(search.shown.replace("^C", "")) if line]
    assert "the same command continues" in " ".join(last[-2:])
    assert not [line for line in last if "best so far" in line]

    search = Search(tmp_path)
    search.listen()
    code, out = search.end()
    assert code in (0, 1) and re.search(r"\n[* ] baseline ", out) and "\x1b" not in out
    lines = [line for line in screen(search.shown) if line]
    assert any("  done  " in line for line in lines)
    assert "going on with" in " ".join(lines)
    assert not [line for line in lines if "best so far" in line]


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, whatever the process that runs the tests has made of it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_until_all_is_drawn(interruptible):
    seen = []
    with pytest.raises(KeyboardInterrupt):
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            seen.append("drawn")
        seen.append("too late")
    assert seen == ["drawn"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
