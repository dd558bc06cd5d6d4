"""What runs on a node: a host with its child, files that travel, images in its cache."""

import json
import os
import socket
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from machines import FarHost  # noqa: E402

from canvas.cluster import host as host_module  # noqa: E402
from canvas.cluster.host import Host  # noqa: E402
from canvas.cluster.job_files import digest_of  # noqa: E402
from canvas.data import Data, load_data, stored  # noqa: E402

PROGRAM = (str(Path(__file__).with_name("small_jobs.py")),)
LIMIT = 60.0


@pytest.fixture
def host(tmp_path):
    made = FarHost(PROGRAM, 2, str(tmp_path / "cache"))
    yield made
    made.close()
    assert not made.scratch.path.exists()


def ended(host, heard):
    """The messages and files of a job until its end, each verdict yes."""
    told, files = [], {}
    while True:
        for text, more in heard:
            told.append(json.loads(text))
            files |= more
            if told[-1]["event"] in ("done", "failed", "stopped"):
                return told, files
        waits = bool(heard) and told[-1]["event"] == "epoch"
        heard = host.go(1, True) if waits else host.more()


def test_a_job_and_its_verdicts(host):
    words = {"kind": "sum", "numbers": [1, 2, 3]}
    told, files = ended(host, host.work(1, json.dumps(words), LIMIT, {}))
    assert [t.get("total") for t in told] == [0, 1, 3, 6, 6] and files == {}
    told = [json.loads(text) for text, _ in host.work(1, json.dumps(words), LIMIT, {})]
    while not told or told[-1]["event"] != "epoch":
        told += [json.loads(text) for text, _ in host.more()]
    assert json.loads(host.go(1, False)[-1][0]) == {"event": "stopped", "total": 1}


def test_files_have_other_paths_here_and_come_back_under_their_own(host):
    """Also of a second job of the same path, which gets what the first one left."""
    words = {"kind": "sum", "numbers": [1], "kept": "/driver/kept", "result": "/driver/result"}
    words["weights"] = {"conv1": "/driver/w1", "conv2": "/driver/w2", "conv3": ""}
    known = {}
    for path, data in {"/driver/kept": b"40", "/driver/w1": b"one"}.items():
        known[path] = digest_of(data)
        host.take_file(path, known[path], data)
    told, files = ended(host, host.work(1, json.dumps(words), LIMIT, known))
    assert told[0]["total"] == 40
    assert told[0]["weights"] == {"conv1": "one", "conv2": "", "conv3": ""}
    assert files == {"/driver/kept": b"41", "/driver/result": b"41"}
    known["/driver/kept"] = digest_of(b"41")  # which the host has, for it came from here
    told, _ = ended(host, host.work(1, json.dumps(words), LIMIT, known))
    assert told[-1]["total"] == 42
    for data, expected in ((b"41", 42), (b"40", 41)):
        known["/driver/kept"] = digest_of(data)
        host.take_file("/driver/kept", known["/driver/kept"], data)
        told, _ = ended(host, host.work(1, json.dumps(words), LIMIT, known))
        assert told[-1]["total"] == expected
    with pytest.raises(OSError, match="a copy of '/driver/kept' is damaged"):
        host.take_file("/driver/kept", digest_of(b"1"), b"2")


def test_a_child_that_crashes_or_has_no_images_is_a_message(host):
    told, _ = ended(host, host.work(1, json.dumps({"kind": "sum", "crash": True}), LIMIT, {}))
    assert told[-1]["kind"] == "crashed(SIGABRT)"
    told, _ = ended(host, host.work(1, json.dumps({"kind": "sum", "lost": True}), LIMIT, {}))
    assert told[-1] == {"event": "failed", "kind": "lost_data", "reason": "the images are gone",
                        "log": ""}  # fmt: skip
    told, _ = ended(host, host.work(1, json.dumps({"kind": "sum", "numbers": [2]}), LIMIT, {}))
    assert told[-1]["total"] == 2


def test_a_host_answers_though_its_child_is_busy(host, monkeypatch):
    monkeypatch.setattr(host_module, "POLL", 0.05)
    words = {"kind": "sum", "numbers": [1], "seconds": 0.5}
    heard, empty = host.work(1, json.dumps(words), LIMIT, {}), 0
    while not any('"epoch"' in text for text, _ in heard):
        heard = host.more()
        empty += not heard
    assert empty >= 2


def sent(host, folder, seal, size=1000):
    for path in sorted(folder.glob("*.npy")) + sorted(folder.glob("*.json")):
        data = path.read_bytes()
        for start in range(0, max(len(data), 1), size):
            host.take_images(seal, path.name, start, data[start : start + size])


def test_images_are_taken_and_checked(host, tmp_path):
    folder = tmp_path / "images"
    words = {"folder": str(folder), "seal": stored.store(load_data("synthetic"), folder)}
    assert host.has_images(words) == "lacks"
    sent(host, folder, words["seal"], 1 << 20)
    assert host.has_images(words) == ""
    told, _ = ended(host, host.work(1, json.dumps(
        {"kind": "sum", "numbers": [], "images": words}), LIMIT, {}))  # fmt: skip
    here = told[0]["images"]["folder"]
    assert here == str(host.cache / words["seal"]) and told[0]["images"]["seal"] == words["seal"]
    # What another host of the node has taken is there for this one; damage is noticed.
    other = FarHost(PROGRAM, 1, str(host.cache))
    assert other.has_images(words) == ""
    other.close()
    labels = Path(here, "train_labels.npy")
    labels.write_bytes(labels.read_bytes()[:-8] + bytes(range(8)))
    assert host.has_images(words) == "lacks" and not Path(here).exists()
    # A host that sees the driver's folder needs no copy.
    near = Host(PROGRAM, 1, str(tmp_path / "none"))
    assert near.has_images(words) == "" and near.images["folder"] == str(folder)
    near.close()


def test_hosts_of_one_cache_do_not_disturb_each_other(host, tmp_path):
    """Homes may be shared: each writes apart, the first one's images stay."""
    folder = tmp_path / "images"
    words = {"folder": str(folder), "seal": stored.store(load_data("synthetic"), folder)}
    other = FarHost(PROGRAM, 1, str(host.cache))
    other._incoming = lambda seal: host.cache / f"{seal}-other-1.part"
    left = host.cache / f"{words['seal']}-{socket.gethostname()}-{2**22 + 1}.part"
    left.mkdir(parents=True)
    assert host.has_images(words) == other.has_images(words) == "lacks" and not left.exists()
    for path in sorted(folder.iterdir()):
        for one in (host, other):
            one.take_images(words["seal"], path.name, 0, path.read_bytes())
    assert host.has_images(words) == other.has_images(words) == ""
    assert host.images["folder"] == str(host.cache / words["seal"])
    other.close()


def test_a_name_that_leaves_the_cache_stays_in_it(host):
    host.take_images("seal", "../../outside.npy", 0, b"1")
    assert [path.parent.parent for path in host.cache.rglob("outside.npy")] == [host.cache]


def test_a_node_without_the_folder_of_the_files(host, tmp_path, monkeypatch):
    folder = tmp_path / "images"
    data = load_data("synthetic")
    assert isinstance(data, Data)
    seal = stored.store(data, folder)
    facts = {**stored.describe(folder), "files": {"root": "/data/nowhere", "side": 32}}
    monkeypatch.setattr(stored, "describe", lambda place: facts)
    sent(host, folder, seal, 1 << 20)
    why = host.has_images({"folder": str(folder), "seal": seal})
    assert why == "there is no folder '/data/nowhere', where its images are files"


def test_what_a_host_tells_of_itself(host, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    facts = json.loads(host.hello())
    assert facts["gpus"] == "3" and facts["torch"] == torch.__version__
    assert len(facts["sources"]) == 64 and host_module.sources() == facts["sources"]
    assert host.pool.memory == max(
        2 << 30, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5 // 2
    )
