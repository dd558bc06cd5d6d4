"""The figure of a study: every mark stands where its figures say, labels cover nothing."""

from __future__ import annotations

import itertools
import math
import random
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_study import CONTROLS, FINDS, add_finals, make_study

import canvas
from canvas.errors import CanvasError, NoSolution
from canvas.reporting.labels import Box, place_labels, text_width, wrap
from canvas.reporting.plot import X_AXES, Figure, Point, Scale, nice_step, pareto_svg, plot_pareto
from canvas.study import Study

SVG = "{http://www.w3.org/2000/svg}"


def drawn(folder: Path, x: str = "latency", title: str = "") -> ElementTree.Element:
    with Study.read(folder) as study:
        return ElementTree.fromstring(pareto_svg(study, x, title))


def marks(root: ElementTree.Element) -> dict[str, tuple[str, float, float]]:
    """By name: the element's tag and the middle of the mark."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        name = group.findtext(f"{SVG}title").partition(":")[0]
        sign = group[1]
        if sign.tag == f"{SVG}circle":
            found[name] = ("circle", float(sign.get("cx")), float(sign.get("cy")))
        else:
            corners = [tuple(map(float, c.split(","))) for c in sign.get("points").split()]
            xs, ys = zip(*corners)
            middle = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
            found[name] = (f"{len(corners)} corners", *middle)
    return found


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def axis(root: ElementTree.Element, anchor: str, form: str) -> list[tuple[float, float]]:
    """(value, pixel) of each tick label."""
    found = []
    for text in root.iter(f"{SVG}text"):
        if text.get("fill") is None and re.fullmatch(form, text.text or ""):
            if text.get("text-anchor") != anchor:
                continue
            pixel = float(text.get("x")) if anchor == "middle" else float(text.get("y")) - 3
            found.append((float(text.text.rstrip("x")), pixel))
    return found


def read(ticks: list[tuple[float, float]], pixel: float, log: bool) -> float:
    """The value at a pixel, by the first and the last tick."""
    (a, start), (b, end) = ticks[0], ticks[-1]
    part = (pixel - start) / (end - start)
    return a * (b / a) ** part if log else a + (b - a) * part


@pytest.mark.parametrize("x", X_AXES)
def test_marks_stand_where_the_ticks_say(tmp_path: Path, x: str) -> None:
    root = drawn(make_study(tmp_path, CONTROLS + FINDS), x)
    found = marks(root)
    across, up = axis(root, "middle", r"[\d.]+x"), axis(root, "end", r"\d+")
    assert len(across) >= 3 and len(up) >= 3
    base = CONTROLS[0]
    for name, kind, status, accuracy, speedup, macs, params in CONTROLS + FINDS:
        key = f"find {name}" if kind == "find" else name
        if status != "done":
            assert key not in found
            continue
        value = {"latency": speedup, "macs": macs / base[5], "params": params / base[6]}[x]
        shape, left, top = found[key]
        tolerance = 0.3 if "3" in shape or "10" in shape else 0.1  # their middle is not their mark
        assert read(across, left, x != "latency") == pytest.approx(value, rel=0.01)
        assert read(up, top, False) == pytest.approx(100 * accuracy, abs=tolerance)


def test_kinds_differ_without_colour(tmp_path: Path) -> None:
    found = marks(drawn(make_study(tmp_path, CONTROLS + FINDS)))
    shapes = [found[name][0] for name, kind, *_ in CONTROLS]
    assert "circle" not in shapes
    assert found["baseline"][0] == "10 corners" and shapes.count("10 corners") == 1
    assert found["find 0"][0] == found["find 4"][0] == "circle"


def test_the_front_is_of_the_axes_drawn(tmp_path: Path) -> None:
    folder = make_study(tmp_path, CONTROLS + FINDS)
    for x, names in (("latency", {"0", "3"}), ("macs", {"0", "3"}), ("params", {"0", "3", "4"})):
        labels = set(texts(drawn(folder, x)))
        assert labels & {"0", "3", "4", "5", "7"} == names, x
        assert {"unchanged", "identity", "1x1", "grouped"} <= labels


def test_equal_finds_are_both_on_the_front(tmp_path: Path) -> None:
    twins = [("1", "find", "done", 0.9, 0.8, 300, 100), ("2", "find", "done", 0.9, 0.8, 300, 100)]
    assert {"1", "2"} <= set(texts(drawn(make_study(tmp_path, CONTROLS + twins))))


@pytest.mark.parametrize("x", X_AXES)
def test_the_step_line_says_what_the_finds_reach(tmp_path: Path, x: str) -> None:
    root = drawn(make_study(tmp_path, CONTROLS + FINDS), x)
    line = root.find(f"{SVG}polyline").get("points").split()
    corners = [tuple(map(float, corner.split(","))) for corner in line]
    front = [marks(root)[f"find {name}"][1:] for name in ("0", "3", "4")]
    assert set(corners[::2]) <= set(front)
    for (x1, y1), (x2, y2) in itertools.pairwise(corners):
        assert (x1 == x2) != (y1 == y2)  # upright or level
    ahead = 1 if x == "latency" else -1
    for (x1, y1), (x2, y2) in itertools.pairwise(corners[::2]):
        assert x1 < x2 and ahead * y1 < ahead * y2
    for (_, y1), (_, corner), (_, y2) in zip(corners[::2], corners[1::2], corners[2::2]):
        assert corner == max(y1, y2)  # nothing is promised that no find reaches


def test_finals_are_drawn_alone_and_on_the_test_images(tmp_path: Path) -> None:
    folder = make_study(tmp_path, CONTROLS + FINDS)
    assert "validation accuracy (%)" in texts(drawn(folder))
    tests = {"baseline": 0.94, "identity": 0.6, "1x1": 0.8, "grouped": 0.92, "3": 0.88}
    add_finals(
        folder, {name: [share - 0.01, share, share + 0.01] for name, share in tests.items()}
    )
    root = drawn(folder)
    words = " ".join(texts(root))
    assert "test accuracy (%)" in texts(root)
    assert set(marks(root)) == {"baseline", "identity", "1x1", "grouped", "find 3"}
    assert (
        "Bars: standard deviation over 3 seeds" in words and "2 not among the finalists" in words
    )
    data = root.findtext(f"{SVG}desc")
    assert "find 3: 88.00 % (+- 1.00) at 0.8x" in data


def test_the_caption_tells_what_is_not_shown(tmp_path: Path) -> None:
    words = " ".join(texts(drawn(make_study(tmp_path, CONTROLS + FINDS))))
    assert "3 finds; not shown: 1 pruned, 1 failed." in words
    assert "Bars: standard error of 1000 images." in words
    assert "Latency: batch 1, one thread," in words
    assert "Ring: fastest within 1.0 points of the unchanged network." in words


def test_the_error_of_a_share(tmp_path: Path) -> None:
    data = drawn(make_study(tmp_path, CONTROLS)).findtext(f"{SVG}desc")
    error = 100 * math.sqrt(0.87 * 0.13 / 1000)
    assert f"1x1: 87.00 % (+- {error:.2f}) at 0.9x" in data


def test_what_is_far_below_stands_at_the_foot(tmp_path: Path) -> None:
    low = ("9", "find", "done", 0.1, 0.3, 500, 500)
    root = drawn(make_study(tmp_path, [*CONTROLS, *FINDS, low]))
    assert marks(root)["find 9"][0] == "3 corners"
    assert "Triangles at the foot: 1 below the axis." in " ".join(texts(root))
    assert "find 9: 10.00 %" in root.findtext(f"{SVG}desc")


def test_the_same_study_gives_the_same_bytes_and_the_title_is_escaped(tmp_path: Path) -> None:
    folder = make_study(tmp_path, CONTROLS + FINDS)
    plot_pareto(folder, tmp_path / "a.svg", "macs", "a < b & \x01 c")
    canvas.plot_pareto(str(folder), str(tmp_path / "b.SVG"), x="macs", title="a < b & \x01 c")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.SVG").read_bytes()
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.findtext(f"{SVG}title") == "a < b & \\x01 c"
    assert "a < b & \\x01 c" in texts(root)


def test_nothing_to_show_is_said(tmp_path: Path) -> None:
    rows = {
        "is trained to the end yet": [FINDS[3]],
        "the unchanged network is not trained yet": [CONTROLS[1]],
        "no latency is taken in the study": [(*CONTROLS[0][:4], None, 1000, 500)],
    }
    for number, (message, made) in enumerate(rows.items()):
        with pytest.raises(NoSolution, match=message):
            drawn(make_study(tmp_path / str(number), made))
    assert marks(drawn(tmp_path / "2", "macs")).keys() == {
        "baseline"
    }  # one point is a figure, too


def test_a_bad_file_is_one_message_and_leaves_nothing(tmp_path: Path) -> None:
    folder = make_study(tmp_path / "study", CONTROLS)
    (tmp_path / "folder.svg").mkdir()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.iterdir())
    for name in ("a.png", "a", ".svg", "no/a.svg", "folder.svg", "file/a.svg"):
        with pytest.raises(CanvasError, match=r"ends in \.svg, not|cannot write"):
            plot_pareto(folder, tmp_path / name)
        assert sorted(tmp_path.iterdir()) == before, name
    with pytest.raises(CanvasError, match="x is latency, macs, params, not 'time'"):
        plot_pareto(folder, tmp_path / "a.svg", "time")


# ---- scales and labels ------------------------------------------------------------------------


@given(st.floats(1e-6, 1e6), st.floats(1.0001, 1e5), st.booleans())
def test_ticks_are_few_round_and_inside(low: float, factor: float, log: bool) -> None:
    scale = Scale([low, low * factor], 0.0, 100.0, may_log=log)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 12
    assert ticks == sorted(set(ticks))
    for tick in ticks:
        assert -1e-6 <= scale(tick) <= 100 + 1e-6
        if scale.log:
            assert f"{tick:e}"[0] in "1235" and float(f"{tick:.0e}") == pytest.approx(tick)
    assert 0 < scale(low) < scale(low * factor) < 100


@pytest.mark.parametrize("value", [0.0, 1.0, 97.5])
def test_a_scale_of_one_value_has_room(value: float) -> None:
    scale = Scale([value], 200.0, 0.0)
    assert scale(value) == pytest.approx(100) and len(scale.ticks()) >= 2


@pytest.mark.parametrize(
    "least, step", [(1, 1), (1.1, 2), (0.04, 0.05), (7, 10), (20, 20), (0.1, 0.1), (2e-5, 2e-5)]
)
def test_nice_steps(least: float, step: float) -> None:
    assert nice_step(least) == pytest.approx(step)


AREA = Box(0, 0, 300, 200)
PLACES = st.tuples(st.floats(10, 290), st.floats(10, 190), st.floats(5, 80))


@given(st.lists(PLACES, max_size=30))
def test_labels_cover_no_mark_and_no_other_label(
    anchors: list[tuple[float, float, float]],
) -> None:
    signs = [Box(x - 4, y - 4, x + 4, y + 4) for x, y, _ in anchors]
    boxes = [box for box in place_labels(anchors, 8.5, AREA, signs, []) if box]
    for box in boxes:
        assert box.within(AREA)
        assert not any(box.overlap(sign) for sign in signs)
    for a, b in itertools.combinations(boxes, 2):
        assert not a.overlap(b)
    if anchors:  # alone it always finds a place
        assert place_labels(anchors[:1], 8.5, AREA, signs[:1], [])[0]


def test_labels_keep_their_size_and_prefer_free_places() -> None:
    right, left = Box(105, 95, 145, 105), Box(55, 95, 95, 105)
    assert place_labels([(100, 100, 40)], 10, AREA, [], []) == [right]
    assert place_labels([(100, 100, 40)], 10, AREA, [], [right]) == [left]
    assert place_labels([(100, 100, 40)], 10, right, [right], []) == [None]


@pytest.mark.parametrize("count", [1, 5, 25, 120])
@pytest.mark.parametrize("x", X_AXES)
def test_figures_of_any_size_have_their_labels_in_place(count: int, x: str) -> None:
    chance = random.Random(count)
    kinds = ["baseline", *["control"] * 6, *["front"] * min(count, 12), *["find"] * count]
    points = [
        Point(f"{kind}{n}", kind, chance.uniform(0.02, 1.5), chance.uniform(20, 99), 1.0, n == 0)
        for n, kind in enumerate(kinds)
    ]
    figure = Figure(points, X_AXES[x], "accuracy", "caption " * 40, "title")
    root = ElementTree.fromstring(figure.svg())
    width, height = (float(root.get(name)) for name in ("width", "height"))
    boxes = [box for box in figure.labels if box]
    assert len(boxes) >= 7  # the baseline and the controls, at least
    for a, b in itertools.combinations(boxes, 2):
        assert not a.overlap(b)
    for point in points:
        left, top = figure.at(point)
        assert figure.area.left <= left <= figure.area.right
        assert figure.is_below(point) or figure.area.top <= top <= figure.area.bottom
        if point.kind != "find":
            assert not any(box.overlap(figure._sign(point)) for box in boxes)
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("y")) <= height and 0 <= float(text.get("x")) <= width


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "P", "Zs"]), max_size=300))
def test_wrapped_lines_fit_and_lose_nothing(text: str) -> None:
    lines = wrap(text, 10, 120)
    assert all(text_width(line, 10) <= 120 for line in lines)
    assert "".join(lines).replace(" ", "") == "".join(text.split())
