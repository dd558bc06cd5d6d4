"""The study: what is recorded stays, what was interrupted is done again, no file is lost."""

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from canvas.errors import CanvasError
from canvas.metric import Metric
from canvas.options import read_options
from canvas.study import Final, FittedItem, ScreenedKernel, Study, Timing, final_epochs

OPTIONS = read_options({"model": "resnet8", "data": "digits"})


def begin(study, options=OPTIONS, checksum="abc", targets="t", test_groups=(), task=None):
    return study.begin(options, "images", checksum, (100, 50), targets, test_groups, task=task)


@pytest.fixture
def study(tmp_path):
    with Study.open(tmp_path / "s") as study:
        begin(study)
        yield study


def add_find(study, index, hash=None):
    study.add(str(index), "find", "kernel", "pack", hash or f"hash{index}", 10)
    return study.candidates("name = ?", str(index))[0].id


def test_a_training_leaves_its_curve_and_a_latency_task(study):
    id = add_find(study, 3)
    study.started(id)
    study.built(id, 100, 10)
    study.epoch(id, 0, 0.5, 1.0, 0.1)
    study.epoch(id, 1, 0.75, 0.9, 0.2)
    study.finished(id, "done")
    row = study.candidate(id)
    assert (row.status, row.val_accuracy, row.macs, row.seconds) == ("done", 0.75, 100, 0.2)
    assert study.curve(id) == [0.5, 0.75]
    tasks = study.database.execute("SELECT kind, state, attempt FROM task").fetchall()
    assert [tuple(t) for t in tasks] == [("accuracy", "done", 1), ("latency", "queued", 0)]
    eager = Timing("eager", 1.5, 0.1, 2.0, "compiled", 1, "")
    compiled = Timing("compiled", 1.0, 0.1, 3.0, "compiled", 1, "")
    study.latency(id, [eager, compiled])
    row = study.candidate(id)
    assert (row.latency_ms, row.speedup, row.engine) == (1.0, 3.0, "compiled")
    assert study.timings(id) == [eager, compiled]


def test_what_a_killed_driver_left_running_is_new_and_keeps_nothing(tmp_path):
    with Study.open(tmp_path) as study:
        begin(study)
        done, running = add_find(study, 0), add_find(study, 1)
        for id in (done, running):
            study.started(id)
            study.epoch(id, 0, 0.5, 1.0, 0.1)
        study.finished(done, "done")
    with Study.open(tmp_path) as study:
        assert study.candidate(done).status == "done" and study.curve(done) == [0.5]
        again = study.candidate(running)
        assert (again.status, again.val_accuracy, study.curve(running)) == ("new", None, [])
        assert study.next_draw() == 2


def test_an_index_and_a_kernel_are_recorded_once(study):
    add_find(study, 0, "same")
    with pytest.raises(sqlite3.IntegrityError):
        add_find(study, 1, "same")
    assert study.next_draw() == 1  # neither the draw nor the candidate of the second is there
    assert study.named_by_hash("same", "") == "0"
    study.record_draw(1, "duplicate")
    with pytest.raises(sqlite3.IntegrityError):
        study.record_draw(1, "skipped")
    assert study.draw_counts() == {"trial": 1, "duplicate": 1}


def test_a_second_search_is_rejected_while_one_runs(study):
    code = (
        "import sys\nfrom pathlib import Path\nfrom canvas.study import Study\n"
        "try: Study.open(Path(sys.argv[1]), fresh=True)\n"
        "except ValueError as error: print(error)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", code, study.folder], capture_output=True, text=True, env=environment
    )
    assert "another search is running" in done.stdout, done.stderr
    assert study.options()  # and --fresh of the second took nothing away


def test_reading_is_possible_while_a_search_runs(study):
    add_find(study, 0)
    with Study.read(study.folder) as reader:
        assert [row.name for row in reader.candidates()] == ["0"]
        with pytest.raises(sqlite3.OperationalError):
            reader.record_draw(5, "skipped")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"epochs": 3}, "--epochs 3 instead of 6"),
        ({"budget": "macs=0.3x"}, "--budget macs=0.3x instead of macs=0.5x"),
        ({"width": 8}, "--width 8 instead of default"),
        ({"seed": 2, "grace": 0}, "--seed 2 instead of 1, --grace 0 instead of 2"),
    ],
)
def test_another_question_is_rejected_with_its_difference(study, change, words):
    with pytest.raises(CanvasError) as error:
        begin(study, {**OPTIONS, **change})
    assert words in str(error.value) and "another folder" in str(error.value)


def test_other_images_or_layers_are_another_question(study):
    with pytest.raises(CanvasError, match="other images"):
        begin(study, checksum="def")
    with pytest.raises(CanvasError, match="other layers"):
        begin(study, targets="u")


def test_more_trials_more_time_and_more_workers_are_the_same_question(study):
    assert begin(study, {**OPTIONS, "trials": 99, "time_limit": 5.0, "workers": 7})


def test_fresh_removes_what_a_search_wrote_and_nothing_else(tmp_path):
    with Study.open(tmp_path) as study:
        begin(study)
        add_find(study, 0)
    (tmp_path / "find-0000").mkdir()
    (tmp_path / "find-0000" / "pack.txt").touch()
    (tmp_path / "find-0001").mkdir()  # not ours: no pack in it
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "pareto.csv").touch()
    with Study.open(tmp_path, fresh=True) as study:
        assert study.candidates() == []
    assert {p.name for p in tmp_path.iterdir()} >= {"find-0001", "notes.txt"}
    assert not (tmp_path / "find-0000").exists() and not (tmp_path / "pareto.csv").exists()


def foreign(path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE theirs (x)")


def text(path):
    path.write_text("this is no database\n" * 100)


def few_bytes(path):
    path.write_text("x")  # SQLite alone would take it for an empty database


def newer(path):
    with Study.open(path.parent) as study:
        study.database.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (foreign, "is not a study"),
        (text, "is not a study"),
        (few_bytes, "is not a study"),
        (newer, "has format 99"),
    ],
)
@pytest.mark.parametrize("fresh", [False, True])
def test_a_file_that_is_not_ours_is_rejected_and_left_alone(tmp_path, make, words, fresh):
    path = tmp_path / "study.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(CanvasError, match=words) as error:
        Study.open(tmp_path, fresh=fresh)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == before


def test_a_folder_that_cannot_be_is_one_message(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CanvasError, match="cannot hold a study: Not a directory"):
        Study.open(tmp_path / "file" / "below")
    with pytest.raises(CanvasError, match="cannot hold a study: it is a file, give a folder"):
        Study.open(tmp_path / "file")
    with pytest.raises(CanvasError, match="there is no study"):
        Study.read(tmp_path / "nothing")


def test_the_file_says_whose_it_is(tmp_path):
    with Study.open(tmp_path) as study:
        assert study.database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert (tmp_path / "study.db").read_bytes()[68:72] == b"CnvS"


FORMAT_2 = Path(__file__).with_name("study_format_2.sql").read_text()


def test_a_study_of_format_2_keeps_all_but_its_second_state(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_2)
        old = database.execute(
            "SELECT name, status, reason, log, kind, hash, budget, macs, val_accuracy, speedup "
            "FROM candidate ORDER BY id"
        ).fetchall()
    database.close()
    with pytest.raises(CanvasError, match="has the older format 2"):
        Study.read(tmp_path)
    with Study.open(tmp_path) as study:
        rows = study.candidates()
        new = [(r.name, r.status, r.reason, r.log, r.kind, r.hash, r.budget, r.macs,
                r.val_accuracy, r.speedup) for r in rows]  # fmt: skip
        assert new[:-1] == old[:-1] and [row[1] for row in new] == [
            "done", "failed", "failed", "pruned", "new",
        ]  # fmt: skip
        assert old[-1][1] == "running"  # its driver was killed
        assert study.timings(1) and study.curve(1) == [0.5] and study.finals() == {}
        assert not study.database.execute("PRAGMA foreign_key_check").fetchall()
        finals = "SELECT count(*) FROM task WHERE kind = 'final'"
        assert study._one(finals) == 0  # they are trained again: which images were right is lost
        assert study.test_groups() == list(range(study.fact("test_images")))
        made = dict(study.database.execute("SELECT name, sql FROM sqlite_master").fetchall())
        assert all("old_task" not in (sql or "") for sql in made.values())
        study.add("5", "find", "k", "p", "h5", 1)
        study.started(study.select(name="5")[0].id)
        assert study.select(status="running")[0].name == "5"


FORMAT_3 = Path(__file__).with_name("study_format_3.sql").read_text()


def test_a_study_of_format_3_keeps_all_but_its_finals(tmp_path):
    """Format 4 added columns; a study without them is what format 3 was."""
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_3)
    database.close()
    with Study.open(tmp_path) as study:
        assert study.timings(1)[0].speedup_spread is None and study.candidates()[0].val_accuracy
        columns = {row["name"] for row in study.database.execute("PRAGMA table_info(final)")}
        assert "hits" in columns and study.finals() == {}
        assert {row.memory_format for row in study.candidates()} == {"contiguous"}
        assert study.options()["norm"] == "none"  # no kernel had norms


def test_hits_are_a_bit_per_test_image(study):
    id = add_find(study, 0)
    study.final_started(id, 7, 6)
    hits = bytes(7)
    for wrong in (hits[:-1], hits + b"\0", b"\0" * 6 + b"\x20", b""):
        with pytest.raises(ValueError, match="bytes of hits for 50 images"):
            study.final(id, 7, 6, (0.5, wrong), 1.0)
    hits = bytes([0b10110000, 0, 0, 0, 0, 0, 0b01000000])
    assert study.final(id, 7, 6, (0.5, hits), 1.0) == 4 / 50
    assert study.finals() == {id: [Final(7, hits, 0.08)]} and study.candidate(id).tests == (0.08,)


def test_the_groups_of_the_test_images_are_kept(tmp_path):
    with Study.open(tmp_path) as study:
        begin(study, test_groups=[i % 5 for i in range(50)])
        assert study.test_groups() == [i % 5 for i in range(50)]
        study.database.execute("UPDATE study SET test_groups = '[1, 2]'")
        with pytest.raises(CanvasError, match="its test_groups are not 50 numbers"):
            study.test_groups()


def test_a_study_of_format_3_goes_on_as_it_began(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_3)
        old = database.execute("SELECT name, status, reason, macs FROM candidate").fetchall()
    database.close()
    with Study.open(tmp_path) as study:
        rows = study.candidates()
        assert [(r.name, r.status, r.reason, r.macs) for r in rows[:-1]] == old[:-1]
        assert (rows[-1].status, rows[-1].origin, rows[0].origin) == ("new", "draw", "")
        items = study.items()
        assert [(i.number, i.name, i.rung, i.state) for i in items] == [
            (0, "0", 2, "failed"), (1, "3", 2, "failed"), (2, "4", 2, "open"),
        ]  # fmt: skip
        assert study.rungs(1) == {2: 0.5} and rows[0].rung == 2 and rows[0].val_seeds == 1
        kept = study.options()
        assert (kept["strategy"], kept["prune"], kept["lag"]) == ("random", "macs", 4)
        options = {**kept, "prune": "paper", "lag": 9}
        study.adopt(options, {"lag": 9})
        assert (options["prune"], options["lag"]) == ("macs", 9)
        assert not study.database.execute("PRAGMA foreign_key_check").fetchall()
        study.add("5", "find", "k", "p", "h5", 1)
        assert study.items()[-1].number == 3


FORMAT_4 = Path(__file__).with_name("study_format_4.sql").read_text()


def test_a_study_of_format_4_keeps_its_timings(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_4)
    database.close()
    with Study.open(tmp_path) as study:
        eager, compiled = study.timings(1)
        assert (eager.latency_ms, compiled.latency_ms, compiled.speedup_spread) == (2.0, 1.5, 0.1)
        assert eager.seconds is None and study.share_of_timing() is None
        native = Timing("native", 1.0, 0.1, 2.0, "native", 1, "", 0.1, 0.5)
        study.timing_started(1)
        study.latency(1, [eager, native, compiled])
        assert study.timings(1) == [eager, compiled, native]


FORMAT_5 = Path(__file__).with_name("study_format_5.sql").read_text()


def test_a_study_of_format_5_keeps_the_seconds_of_its_timings(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_5)
    database.close()
    with Study.open(tmp_path) as study:
        eager, compiled = study.timings(1)
        assert (eager.seconds, eager.processor, compiled.latency_ms) == (1.5, None, 1.5)
        assert study.processor_of_timing() is None
        study.timing_started(1)
        study.latency(1, [Timing("native", 1.0, 0.1, 2.0, "native", 1, "", 0.1, 0.5, 0.75)])
        assert study.processor_of_timing() == 0.75


FORMAT_6 = Path(__file__).with_name("study_format_6.sql").read_text()


def test_a_study_of_format_6_gets_the_tables_of_fits(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_6)
    database.close()
    with Study.open(tmp_path) as study:
        assert study.processor_of_timing() and study.timings(1)[0].processor == 1.25
        rows = study.candidates()
        assert {row.role for row in rows} == {""} and not any(row.weights for row in rows)
        assert study.screened() == [] and study.fitted_items() == []


FORMAT_7 = Path(__file__).with_name("study_format_7.sql").read_text()


def test_a_study_of_format_7_keeps_what_a_fit_recorded(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_7)
    database.close()
    with Study.open(tmp_path) as study:
        assert [row.hash for row in study.screened()] == ["h1"]
        assert [item.operator for item in study.fitted_items()] == ["grouped@0.5"]
        assert {row["error"] for row in study.measurements()} == {None}


FORMAT_8 = Path(__file__).with_name("study_format_8.sql").read_text()


def test_a_study_of_format_8_is_one_of_classification(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_8)
    database.close()
    with Study.open(tmp_path) as study:
        assert study.task() == "classification" and study.metric == Metric()
        row = study.candidates()[-1]
        assert (row.divergence, row.tuned_divergence) == (0.5, None)
        assert study.measurements()[-1]["error"] == 0.25


FORMAT_9 = Path(__file__).with_name("study_format_9.sql").read_text()


def test_a_study_of_format_9_keeps_its_timings_and_takes_those_of_a_gpu(tmp_path):
    with sqlite3.connect(tmp_path / "study.db") as database:
        database.executescript(FORMAT_9)
        before = database.execute("SELECT * FROM timing").fetchall()
    database.close()
    with Study.open(tmp_path) as study:
        assert [tuple(row) for row in study.database.execute("SELECT * FROM timing")] == before
        study.database.execute(
            "INSERT INTO timing (candidate, engine, batch) VALUES (1, 'gpu-graph', 1)"
        )
        with pytest.raises(sqlite3.IntegrityError):
            study.database.execute(
                "INSERT INTO timing (candidate, engine, batch) VALUES (1, 'abacus', 1)"
            )


def test_a_study_keeps_its_task_and_refuses_what_is_none(tmp_path):
    metric = Metric("RMSE", "K", higher_is_better=False, per_example=False)
    task = {"name": "heat", "metric": metric.to_json()}
    with Study.open(tmp_path) as study:
        begin(study, task=task)
        id = add_find(study, 0)
        study.final(id, 7, final_epochs(OPTIONS), (31.5, b""), 1.0, test=29.25)
        assert study.task() == "heat" and study.metric == metric
        with pytest.raises(CanvasError, match="another task or metric"):
            begin(study)
    with Study.read(tmp_path) as study:  # 29 K is no share, and no damage
        assert study.finals()[id] == [Final(7, b"", 29.25)]
    for wrong in ("no JSON", "[]", '{"metric": {"unit": 3}}', '{"metric": []}'):
        with sqlite3.connect(tmp_path / "study.db") as database:
            database.execute("UPDATE study SET task = ?", (wrong,))
        database.close()
        with pytest.raises(CanvasError, match="its task is no task"):
            Study.read(tmp_path)


def test_what_a_fit_records_comes_back(tmp_path):
    item = FittedItem(
        "conv1", "grouped@0.5", 40, 1, "pack", 0.25, 0.5, 1e-6, 100, 10, "ab", "", 1.5
    )
    failed = replace(item, steps=100, divergence=None, reason="its outputs are not finite")
    kernels = [ScreenedKernel(n, f"kernel {n}", None, f"h{n}", 0.5, 0.1) for n in (1, 2)]
    with Study.open(tmp_path) as study:
        begin(study)
        for row in (item, failed):
            study.record_fitted(row)
        for row in kernels:
            study.record_screened(row)
        network = {"name": "0", "kind": "find", "role": "mix", "budget": "macs=0.5x"}
        network |= {"pack": "pack", "hash": "hash", "layer_macs": 100}
        (id,) = study.add_networks([{**network, "choice": {"b": "grouped@0.5", "a": "keep"}}])
        assert study.candidate(id).status == "new" and study.tuned_epochs(id) == 0
        for epochs, accuracy in ((2, 0.75), (6, 0.875)):
            study.tuned(id, epochs, accuracy, (0.125, 0.0625), "cd", 3.0, (1000, 50))
            assert study.tuned_epochs(id) == epochs
    with Study.read(tmp_path) as study:
        assert study.fitted_items() == [item, failed] and study.screened() == kernels
        row = study.candidate(id)
        assert (row.status, row.role, row.val_accuracy) == ("done", "mix", 0.875)
        assert (row.divergence, row.weights, row.macs, row.rung) == (0.125, "cd", 1000, 2)
        assert study.choice_of(id) == {"b": "grouped@0.5", "a": "keep"}


def test_the_share_of_timing_counts_a_run_that_was_killed_as_far_as_it_recorded(tmp_path):
    for seconds, share in ((10.0, 0.2), (None, pytest.approx(0.2, abs=0.01))):
        with Study.open(tmp_path) as study:
            begin(study)
            id = study.candidates()[0].id if study.candidates() else add_find(study, 0)
            study.timing_started(id)
            study.latency(id, [Timing("native", 1.0, 0.1, 2.0, "native", 1, "", 0.1, 2.0)])
            if seconds:
                study.session_ended(seconds)
            assert study.share_of_timing() == share
            if not seconds:
                (last,) = study.database.execute(
                    "SELECT seconds FROM session ORDER BY id DESC LIMIT 1"
                ).fetchone()
                assert 0 < last < 5


def test_a_study_of_an_older_format_is_the_same_as_a_new_one(tmp_path):
    """But for the order of columns and for blanks."""

    def shape(folder):
        with Study.open(folder) as study:
            tables = study.database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            names = sorted(row["name"] for row in tables)
            columns = [study.database.execute(f"PRAGMA table_info({n})").fetchall() for n in names]
            return {n: sorted(c["name"] for c in rows) for n, rows in zip(names, columns)}

    expected = shape(tmp_path / "new")
    for number, text in (
        (2, FORMAT_2),
        (3, FORMAT_3),
        (4, FORMAT_4),
        (5, FORMAT_5),
        (6, FORMAT_6),
        (7, FORMAT_7),
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        with sqlite3.connect(folder / "study.db") as database:
            database.executescript(text)
        database.close()
        assert shape(folder) == expected


def test_a_task_is_the_only_state(study):
    """What a candidate's row says is its task's; nothing else stores it."""
    add_find(study, 0)
    id = study.select(name="0")[0].id
    for state, shown in (("queued", "new"), ("running", "running"), ("pruned", "pruned")):
        study.database.execute("UPDATE task SET state = ?, reason = 'why'", (state,))
        assert (study.candidate(id).status, study.candidate(id).reason) == (shown, "why")
    columns = {row["name"] for row in study.database.execute("PRAGMA table_info(network)")}
    assert not columns & {"status", "reason", "log", "state"}
