"""The figure of a study: every mark stands where its figures say, labels cover nothing."""

from __future__ import annotations

import itertools
import math
import random
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_study import CONTROLS, FINDS, add_finals, make_study

import canvas
from canvas.errors import CanvasError, NoSolution
from canvas.reporting import plot
from canvas.reporting.axis_range import limits, shown_values, typical
from canvas.reporting.drawn import own_settings
from canvas.reporting.figure import (
    PAPER,
    SIZES,
    Axis,
    Box,
    Drawing,
    Point,
    complete,
    grown,
    is_sign,
    is_wide,
    log_ticks,
)
from canvas.reporting.labels import MOST, place_labels, wrap
from canvas.reporting.plot import X_AXES, pareto_figure, plot_pareto
from canvas.study import Study

SVG = "{http://www.w3.org/2000/svg}"


def drawn(folder: Path, x: str = "latency", title: str = "") -> Drawing:
    """The drawing behind the figure of a study."""
    made = []

    def keep(*arguments: object) -> bytes:
        with own_settings():
            made.append(complete(*arguments[:-1]))
        return b""

    with pytest.MonkeyPatch.context() as patch, Study.read(folder) as study:
        patch.setattr(plot, "draw", keep)
        pareto_figure(study, x, title)
    return made[0]


def marks(drawing: Drawing) -> dict[str, tuple[str, float, float]]:
    """By name: the shape of the mark, and where it stands in data units."""
    return {
        line.get_gid(): (line.get_marker(), line.get_xdata()[0], line.get_ydata()[0])
        for line in drawing.marks
    }


def texts(drawing: Drawing) -> list[str]:
    return [text.get_text() for text in drawing.figure.texts]


def words(drawing: Drawing) -> str:
    return " ".join(text.get_text() for text in drawing.figure.texts if text.get_gid() == "words")


def named(drawing: Drawing) -> set[str]:
    return {text.get_text() for text in drawing.labels if text}


@pytest.mark.parametrize("x", X_AXES)
def test_marks_stand_where_their_figures_say(tmp_path: Path, x: str) -> None:
    drawing = drawn(make_study(tmp_path, CONTROLS + FINDS), x)
    found, base = marks(drawing), CONTROLS[0]
    for name, kind, status, accuracy, speedup, macs, params in CONTROLS + FINDS:
        key = f"find {name}" if kind == "find" else name
        if status != "done":
            assert key not in found
            continue
        if name == "identity":
            continue  # it is outside of the axes
        value = {"latency": speedup, "macs": macs / base[5], "params": params / base[6]}[x]
        assert found[key][1:] == pytest.approx((value, 100 * accuracy))
    assert drawing.axes.get_xscale() == ("linear" if x == "latency" else "log")
    assert drawing.axes.get_xlabel() == X_AXES[x].text
    assert len(drawing.axes.get_xticks()) >= 3


def test_kinds_differ_without_colour(tmp_path: Path) -> None:
    drawing = drawn(make_study(tmp_path, CONTROLS + FINDS))
    found = marks(drawing)
    shapes = [found[name][0] for name, kind, *_ in CONTROLS]
    assert "o" not in shapes and len(set(shapes)) == len(shapes)
    assert found["baseline"][0] == "*"
    assert found["find 0"][0] == found["find 4"][0] == "o"
    steps = {line.get_gid(): line.get_linestyle() for line in drawing.axes.lines}
    assert steps["steps"] == "-" and steps["control-steps"] == "--"
    fills = {mark.get_gid(): mark.get_markerfacecolor() for mark in drawing.marks}
    assert fills["grouped"] == PAPER != fills["find 0"]  # a control is hollow


def test_the_legend_has_each_kind_as_it_is_drawn(tmp_path: Path) -> None:
    drawing = drawn(make_study(tmp_path, CONTROLS + FINDS))
    legend = drawing.axes.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [
        "finds: front or best",
        "other finds",
        "known operators (controls)",
        "unchanged network",
    ]
    shown = [(handle.get_marker(), handle.get_linestyle()) for handle in legend.legend_handles]
    assert shown == [("o", "-"), ("o", "None"), ("s", "--"), ("*", "--")]


def test_finds_are_drawn_above_controls(tmp_path: Path) -> None:
    same = ("9", "find", "done", 0.963, 0.5, 500, 250)  # where the control `grouped` is
    for x in X_AXES:
        drawing = drawn(make_study(tmp_path / x, [*CONTROLS, *FINDS, same]), x)
        height = {kind: set() for kind in SIZES}
        for point, mark in zip(drawing.points, drawing.marks):
            height[point.kind].add(mark.get_zorder())
        assert max(height["control"]) < min(height["find"] | height["front"])
        assert max(height["baseline"]) < min(height["control"])


def test_a_fast_and_inaccurate_control_sets_no_axis(tmp_path: Path) -> None:
    """With and without it the axes are the same; it is at the edge, its values in its label."""
    without = [row for row in CONTROLS if row[0] != "identity"]
    for number, (x, label) in enumerate(
        {"latency": "identity (66 %, 1.6x)", "macs": "identity (66 %, 0.02x)"}.items()
    ):
        drawing = drawn(make_study(tmp_path / f"{number}a", CONTROLS + FINDS), x)
        plain = drawn(make_study(tmp_path / f"{number}b", without + FINDS), x)
        assert drawing.y_limits == plain.y_limits
        assert x == "macs" or drawing.x_limits == plain.x_limits  # one is a log scale there
        assert marks(drawing)["identity"][0] == "v"
        assert label in named(drawing)
        (low, high), (_, _, y) = drawing.axes.get_ylim(), marks(drawing)["identity"]
        assert low < y < low + 0.05 * (high - low)


PERCENT = st.floats(0, 100, allow_subnormal=False)  # some library flushes them to 0


@given(st.lists(PERCENT, min_size=1, max_size=8), st.lists(PERCENT))
def test_the_range_of_an_axis_holds_what_is_kept_and_what_is_better(
    kept: list[float], others: list[float]
) -> None:
    for better in (1, -1):
        low, high = shown_values(kept, others, better)
        assert low <= min(kept) and max(kept) <= high
        best = max([*kept, *others]) if better > 0 else min([*kept, *others])
        assert low <= best <= high
        assert {low, high} <= {*kept, *others}


def test_the_range_leaves_out_what_is_far_worse() -> None:
    assert shown_values([90, 97], [89, 85, 10], 1) == (85, 97)
    assert shown_values([1, 2], [1.5, 2.5, 9], -1) == (1, 2.5)
    assert shown_values([5], [], 1) == (5, 5)
    assert typical([1, 2, 3, 4, 5, 50]) == [1, 2, 3, 4, 5]


def test_the_front_is_of_the_axes_drawn_and_controls_stand_in_it(tmp_path: Path) -> None:
    """By latency the unchanged network beats every find: 0 is named because it is chosen."""
    folder = make_study(tmp_path, CONTROLS + FINDS)
    for x, names in (("latency", {"0"}), ("macs", {"0", "3"}), ("params", {"0", "3", "4"})):
        labels = {label.partition(" (")[0] for label in named(drawn(folder, x))}
        assert labels == names | {"unchanged", "identity", "1x1", "grouped"}, x


def test_equal_finds_are_both_on_the_front(tmp_path: Path) -> None:
    twins = [("1", "find", "done", 0.9, 0.8, 300, 100), ("2", "find", "done", 0.9, 0.8, 300, 100)]
    assert {"1", "2"} <= named(drawn(make_study(tmp_path, CONTROLS + twins), "macs"))


@pytest.mark.parametrize("x", X_AXES)
def test_the_step_lines_say_what_is_reached(tmp_path: Path, x: str) -> None:
    rows = CONTROLS + FINDS
    drawing = drawn(make_study(tmp_path, rows), x)
    base = CONTROLS[0]
    place = {
        ({"latency": speed, "macs": macs / base[5], "params": params / base[6]}[x], 100 * share): (
            name
        )
        for name, _, status, share, speed, macs, params in rows
        if status == "done"
    }
    front = {
        "latency": ({"0", "3"}, {"identity", "1x1", "grouped"}),
        "macs": ({"3", "0"}, {"identity", "1x1", "grouped"}),
        "params": ({"4", "3", "0"}, {"identity", "1x1", "grouped"}),
    }[x]
    for finds, gid, names in ((True, "steps", front[0]), (False, "control-steps", front[1])):
        corners = drawing.corners(finds)
        line = next(line for line in drawing.axes.lines if line.get_gid() == gid)
        assert list(zip(line.get_xdata(), line.get_ydata())) == corners
        assert {place[corner] for corner in corners[::2]} == names
        for (x1, y1), (x2, y2) in itertools.pairwise(corners):
            assert (x1 == x2) != (y1 == y2)  # upright or level
        ahead = -1 if x == "latency" else 1
        for (x1, y1), (x2, y2) in itertools.pairwise(corners[::2]):
            assert x1 < x2 and ahead * y1 < ahead * y2
        for (_, y1), (_, corner), (_, y2) in zip(corners[::2], corners[1::2], corners[2::2]):
            assert corner == min(y1, y2)  # nothing is promised that nothing reaches


def test_finals_are_drawn_alone_and_on_the_test_images(tmp_path: Path) -> None:
    folder = make_study(tmp_path, CONTROLS + FINDS)
    assert drawn(folder).axes.get_ylabel() == "validation accuracy (%)"
    tests = {"baseline": 0.94, "identity": 0.6, "1x1": 0.8, "grouped": 0.92, "3": 0.88}
    add_finals(
        folder, {name: [share - 0.01, share, share + 0.01] for name, share in tests.items()}
    )
    drawing = drawn(folder)
    assert drawing.axes.get_ylabel() == "test accuracy (%)"
    assert set(marks(drawing)) == {"baseline", "identity", "1x1", "grouped", "find 3"}
    assert "Bars: standard deviation over 3 seeds" in words(drawing)
    assert "2 not among the finalists" in words(drawing)
    assert "find 3: 88.00 % (+- 1.00) at 0.8x" in map(str, drawing.points)


def test_the_caption_tells_what_is_not_shown(tmp_path: Path) -> None:
    drawing = drawn(make_study(tmp_path, CONTROLS + FINDS))
    assert "3 finds; not shown: 1 pruned, 1 failed." in words(drawing)
    assert "Bars: standard error of 1000 images." in words(drawing)
    assert "Latency: batch 1, one thread," in words(drawing)
    assert "Ring: fastest within 1.0 points of the unchanged network." in words(drawing)


def test_bars_are_the_error_of_a_share(tmp_path: Path) -> None:
    drawing = drawn(make_study(tmp_path, CONTROLS))
    error = 100 * math.sqrt(0.87 * 0.13 / 1000)
    assert f"1x1: 87.00 % (+- {error:.2f}) at 0.9x" in map(str, drawing.points)
    bars = [bar.lines[2][0].get_segments()[0] for bar in drawing.axes.containers]
    assert len(bars) == len(CONTROLS)
    ends = {tuple(round(y, 6) for _, y in bar) for bar in bars}
    assert (round(87 - error, 6), round(87 + error, 6)) in ends


def test_what_is_far_below_is_at_the_edge(tmp_path: Path) -> None:
    low = ("9", "find", "done", 0.1, 0.3, 500, 500)
    drawing = drawn(make_study(tmp_path, [*CONTROLS, *FINDS, low]))
    assert marks(drawing)["find 9"][0] == "v" and marks(drawing)["find 9"][2] > 50
    assert "Triangles at the edge: 2 outside the axes." in words(drawing)
    assert "find 9: 10.00 % (+- 0.95) at 0.3x" in map(str, drawing.points)


def test_the_row_to_take_has_a_ring(tmp_path: Path) -> None:
    drawing = drawn(make_study(tmp_path, CONTROLS + FINDS))
    rings = [line for line in drawing.axes.lines if line.get_gid() == "ring"]
    place = [(line.get_xdata()[0], line.get_ydata()[0]) for line in rings]
    assert place == [marks(drawing)["baseline"][1:]]


# ---- the file -----------------------------------------------------------------------------------


def test_the_same_study_gives_the_same_bytes_and_the_title_is_escaped(tmp_path: Path) -> None:
    import matplotlib

    folder = make_study(tmp_path, CONTROLS + FINDS)
    plot_pareto(folder, tmp_path / "a.svg", "macs", "a < b & \x01 $c$")
    with matplotlib.rc_context({"font.size": 30, "svg.hashsalt": "mine", "axes.grid": False}):
        canvas.plot_pareto(
            str(folder), str(tmp_path / "b.SVG"), x="macs", title="a < b & \x01 $c$"
        )
        assert matplotlib.rcParams["font.size"] == 30
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.SVG").read_bytes()
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    ids = {element.get("id") for element in root.iter()}
    assert {"baseline", "identity", "1x1", "grouped", "find 0", "steps", "ring"} <= ids
    told = {e.tag.partition("}")[2]: e.text for e in reversed(list(root.iter()))}
    assert told["title"] == "a < b & \\x01 $c$"
    assert "find 3: 90.00 % (+- 0.95) at 0.3x" in told["description"].splitlines()
    assert not list(root.iter(f"{SVG}text"))  # letters are drawn: no viewer's font changes them
    assert "date" not in told


@pytest.mark.parametrize("ending, magic", [("png", b"\x89PNG\r\n"), ("PDF", b"%PDF-1.")])
def test_the_ending_says_what_is_drawn(tmp_path: Path, ending: str, magic: bytes) -> None:
    folder = make_study(tmp_path, CONTROLS + FINDS)
    files = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for path in files:
        plot_pareto(folder, path)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_bytes().startswith(magic)


def test_no_window_system_is_looked_for(tmp_path: Path) -> None:
    folder = make_study(tmp_path, CONTROLS + FINDS)
    plot_pareto(folder, tmp_path / "a.svg")
    assert "matplotlib.pyplot" not in sys.modules


def test_without_matplotlib_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_study(tmp_path / "study", CONTROLS)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = 'a plot needs matplotlib, not installed here: pip install "canvas-kas[plot]"'
    with pytest.raises(CanvasError, match=re.escape(message)):
        plot_pareto(folder, tmp_path / "a.svg")
    assert not (tmp_path / "a.svg").exists()


def test_nothing_to_show_is_said(tmp_path: Path) -> None:
    rows = {
        "is complete yet": [FINDS[3]],
        "the unchanged network is not trained yet": [CONTROLS[1]],
        "no latency is taken in the study": [(*CONTROLS[0][:4], None, 1000, 500)],
    }
    for number, (message, made) in enumerate(rows.items()):
        with pytest.raises(NoSolution, match=message):
            drawn(make_study(tmp_path / str(number), made))
    assert marks(drawn(tmp_path / "2", "macs")).keys() == {"baseline"}  # one is a figure, too


def test_a_bad_file_is_one_message_and_leaves_nothing(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", CONTROLS)
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.iterdir())
    for name in ("a.jpg", "a", ".svg", "no/a.svg", "folder.svg", "file/a.svg"):
        with pytest.raises(CanvasError, match=r"ends in \.svg, \.png or \.pdf, not|cannot write"):
            plot_pareto(folder, tmp_path / name)
        assert sorted(tmp_path.iterdir()) == before, name
    with pytest.raises(CanvasError, match="x is latency, macs, params, not 'time'"):
        plot_pareto(folder, tmp_path / "a.svg", "time")


# ---- scales and labels ------------------------------------------------------------------------


@given(st.floats(1e-6, 1e6), st.floats(8.01, 1e5))
def test_ticks_of_a_logarithm_are_few_round_and_inside(low: float, factor: float) -> None:
    assert is_wide([low, low * factor]) and not is_wide([low, 7 * low])
    first, last = limits([math.log10(low), math.log10(low * factor)])
    ticks = log_ticks(first, last)
    assert 2 <= len(ticks) <= 12
    assert ticks == sorted(set(ticks))
    for tick in ticks:
        assert first <= math.log10(tick) <= last
        assert f"{tick:e}"[0] in "1235" and float(f"{tick:.0e}") == pytest.approx(tick)


@pytest.mark.parametrize("value", [0.0, 1.0, 97.5])
def test_limits_of_one_value_have_room(value: float) -> None:
    low, high = limits([value])
    assert low < value < high


AREA = Box(0, 0, 300, 200)
PLACES = st.tuples(
    st.floats(10, 290), st.floats(10, 190), st.floats(5, 80), st.sampled_from([6.0, 9.0])
)


@given(st.lists(PLACES, max_size=30))
def test_labels_cover_no_mark_and_no_other_label(
    anchors: list[tuple[float, float, float, float]],
) -> None:
    signs = [Box(x - 4, y - 4, x + 4, y + 4) for x, y, *_ in anchors]
    boxes = [box for box in place_labels(anchors, AREA, signs, []) if box]
    for box in boxes:
        assert box.within(AREA)
        assert not any(box.overlap(sign) for sign in signs)
    for a, b in itertools.combinations(boxes, 2):
        assert not a.overlap(b)
    if anchors:  # alone it always finds a place
        assert place_labels(anchors[:1], AREA, signs[:1], [])[0]


def test_labels_keep_their_size_and_prefer_free_places() -> None:
    right, left = Box(105, 95, 145, 105), Box(55, 95, 95, 105)
    assert place_labels([(100, 100, 40, 10)], AREA, [], []) == [right]
    many = place_labels(10 * MOST * [(100, 100, 1, 1)], AREA, [], [])
    assert len(many) == 10 * MOST and not any(many[MOST:])
    assert place_labels([(100, 100, 40, 10)], AREA, [], [right]) == [left]
    assert place_labels([(100, 100, 40, 10)], right, [right], []) == [None]
    crowded = [Box(60, 60, 140, 140)]  # the place is far, but there is one
    far = place_labels([(100, 100, 40, 10)], AREA, crowded, [])[0]
    assert far and not far.overlap(crowded[0])


def random_front(seed: int, x: str) -> list[Point]:
    chance = random.Random(f"{seed} {x}")
    count = chance.choice([1, 5, 25, 120])
    narrow = chance.choice([1.0, 0.1])  # all marks in one corner
    kinds = ["baseline", *["control"] * 6, *["front"] * min(count, 12), *["find"] * count]
    return [
        Point(
            f"{kind}{number}" if kind == "control" else str(chance.randrange(3000)),
            kind,
            chance.uniform(0.02, 1.5 * narrow),
            99 - narrow * chance.uniform(0, 79),
            chance.uniform(0, 3),
            number == 0,
        )
        for number, kind in enumerate(kinds)
    ]


@pytest.mark.parametrize("x, seed", zip([*X_AXES] * 2, range(6)))
def test_labels_of_any_front_cross_no_mark_and_no_other_label(x: str, seed: int) -> None:
    """Measured again, by renderers of other resolutions than the one that placed them."""
    points = random_front(seed, x)
    with own_settings():
        drawing = complete(points, X_AXES[x], Axis("accuracy", 1), "caption " * 40, "title")
        for dpi in (72, 200)[seed % 2 :][:1]:
            drawing.figure.set_dpi(dpi)
            renderer = drawing.figure.canvas.get_renderer()
            signs = [
                line.get_window_extent(renderer) for line in drawing.axes.lines if is_sign(line)
            ]
            boxes = [text.get_window_extent(renderer) for text in drawing.labels if text]
            area = drawing.axes.get_window_extent(renderer)
            assert len(signs) == len(points) + 1  # and the ring
            for a, b in itertools.combinations(boxes, 2):
                assert not touch(a, b)
            for box in boxes:
                assert not any(touch(box, sign) for sign in signs)
                assert area.x0 - 1 <= box.x0 and box.x1 <= area.x1 + 1
            for text in drawing.figure.texts:  # nothing is cut off
                box = text.get_window_extent(renderer)
                assert box.x0 >= 0 and box.x1 <= drawing.figure.bbox.x1
                assert box.y0 >= 0 and box.y1 <= drawing.figure.bbox.y1
    assert all(text for text in drawing.labels[:7])  # the baseline and the controls
    if unnamed := drawing.unnamed():
        assert f"No room for the names of {unnamed}." in words(drawing)


def touch(a: object, b: object) -> bool:
    return bool(min(a.x1, b.x1) > max(a.x0, b.x0) and min(a.y1, b.y1) > max(a.y0, b.y0))


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "P", "Zs"]), max_size=300))
def test_wrapped_lines_fit_and_lose_nothing(text: str) -> None:
    lines = wrap(text, len, 12)
    assert all(len(line) <= 12 for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(text.split())


def test_a_grown_box_is_larger_on_all_sides() -> None:
    assert grown(Box(1, 2, 3, 4), 0.5) == Box(0.5, 1.5, 3.5, 4.5)
