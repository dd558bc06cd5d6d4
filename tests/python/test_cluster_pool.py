"""The pool of a cluster, on machines that follow a script: nodes that join, refuse, die, hang."""

import math
import random
import re
import time
from collections import deque

import pytest

torch = pytest.importorskip("torch")

import machines  # noqa: E402
from machines import Scripted, node  # noqa: E402

from canvas.cluster import cluster_pool  # noqa: E402
from canvas.cluster.cluster_pool import LOSSES, ClusterPool  # noqa: E402
from canvas.errors import CanvasError  # noqa: E402
from canvas.workers.on_devices import FULL, GONE  # noqa: E402
from canvas.workers.pool import LOST_DATA, WAITING  # noqa: E402

BUILT, DONE = {"event": "built"}, {"event": "done"}


def epoch(number):
    return {"event": "epoch", "number": number}


def failed(kind, reason="why"):
    return {"event": "failed", "kind": kind, "reason": reason, "log": ""}


WHOLE = [BUILT, epoch(0), epoch(1), DONE]
TOLD = ["built", 0, 1, "done"]


@pytest.fixture(autouse=True)
def hasty(monkeypatch):
    """No waiting for nodes."""
    monkeypatch.setattr(cluster_pool, "LOOK", 0.0)
    monkeypatch.setattr(cluster_pool, "JOINING", 0.2)


def pool_on(cluster, lines=None, **words):
    say = (lambda line: None) if lines is None else lines.append
    words = {"images": {"name": "own:data", "seal": ""}, "ready": {"pack": None}, **words}
    return ClusterPool(cluster, words.pop("images"), words.pop("ready"), say, **words)


def drive(pool, jobs, verdicts=None, most=20000, words=None):
    """What a driver hears of each job, which it starts as room is there."""
    jobs, heard = deque(jobs), {job: [] for job in jobs}
    for _ in range(most):
        while jobs and pool.has_room():
            job = jobs.popleft()
            pool.start(job, {"kind": "accuracy", "pack": None, **(words or {})}, 10)
        for job, message in pool.wait(0.01):
            event = message["event"]
            heard[job].append(message.get("number", message.get("kind", event)))
            if event in WAITING:
                pool.answer(job, (verdicts or {}).get((job, message.get("number")), True))
        if not jobs and not pool.busy():
            return heard
    raise AssertionError(f"nothing ends: {heard}, {pool.busy()}")


# ---- nodes that join ----------------------------------------------------------------------------


def test_one_host_tries_a_node_before_the_others_come():
    cluster, lines = Scripted(node("1", 3), node("2", 2)), []
    cluster.pending = {"2"}
    pool = pool_on(cluster, lines)
    assert pool.size == 1 or cluster.placed.count(("1", {"CPU": 1})) == 3
    pool.wait(0)
    assert [name for name, _ in cluster.placed] == ["1", "2", "1", "1"]
    cluster.pending.clear()
    for _ in range(3):
        pool.wait(0)
    assert pool.size == 5 and lines == [
        "node 10.0.0.1: up to 3 trainings at a time",
        "node 10.0.0.2: up to 2 trainings at a time",
    ]
    pool.close()
    assert cluster.closed


@pytest.mark.parametrize(("workers", "size"), [(1, 1), (3, 3), (9, 5)])
def test_workers_limit_the_hosts(workers, size):
    cluster = Scripted(node("1", 3), node("2", 2))
    pool = pool_on(cluster, size=workers)
    for _ in range(4):
        pool.wait(0)
    assert pool.size == size and len(cluster.placed) == size


def test_a_node_that_joins_later_is_used():
    cluster = Scripted(node("1", 1), says={job: [WHOLE] for job in range(6)})
    pool = pool_on(cluster)
    cluster.there.append(node("2", 4))
    assert drive(pool, range(6)) == dict.fromkeys(range(6), TOLD)
    assert pool.size == 5 and {where for _, where, _ in cluster.begun} == {"1", "2"}


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"torch": "1.0+cpu"}, "it has torch 1.0\\+cpu, this machine"),
        ({"canvas": "0.0.1"}, "it has canvas 0.0.1, this machine"),
        ({"sources": "other"}, "its canvas has other files than that of this machine"),
    ],
)
def test_another_version_is_not_used(facts, why):
    cluster, lines = Scripted(node("1"), node("2"), says={0: [WHOLE]}), []
    cluster.facts["1"] = facts
    pool = pool_on(cluster, lines)
    assert drive(pool, [0]) == {0: TOLD} and cluster.begun[0][1] == "2"
    assert any(re.match(f"node 10.0.0.1 is not used: {why}", line) for line in lines)
    assert "1" in cluster.ended and [name for name, _ in cluster.placed].count("1") == 1
    with pytest.raises(CanvasError, match=f"no node of the cluster can do the work: .*{why}"):
        other = Scripted(node("1"))
        other.facts["1"] = facts
        pool_on(other)
    assert other.closed


def test_a_node_on_which_the_first_job_fails_is_not_used():
    cluster = Scripted(node("1"))
    cluster.ready["1"] = failed("error", "model 'nets:small' cannot be imported")
    with pytest.raises(CanvasError, match=r"10\.0\.0\.1: model 'nets:small' cannot be imported; "):
        pool_on(cluster)


def test_a_cluster_without_a_free_core():
    cluster = Scripted(node("1", 0), node("2", 0))
    with pytest.raises(CanvasError, match="none of 2 nodes has a free core; what is done is kept"):
        pool_on(cluster)
    with pytest.raises(CanvasError, match="none of 1 nodes has a free GPU"):
        pool_on(Scripted(node("1")), device="cuda")


def test_builds_of_one_version_work_together():
    cluster = Scripted(node("1", 1), says={0: [WHOLE]})
    cluster.facts["1"] = {"torch": torch.__version__.partition("+")[0] + "+cu126"}
    assert drive(pool_on(cluster), [0]) == {0: TOLD}


@pytest.mark.parametrize("silent", [set(), {"1"}])
def test_nodes_that_all_do_nothing_but_time(silent):
    """Whether the node has answered as one that times or not."""
    cluster = Scripted(node("1", 2, quiet=1))
    cluster.silent = silent
    began = time.monotonic()
    with pytest.raises(CanvasError, match="it has the resource 'quiet' and does nothing but time"):
        pool_on(cluster, label="quiet")
    assert time.monotonic() - began < 3


def test_a_first_job_that_does_not_end(monkeypatch):
    """It has longer than a node has to come, but not longer than the search."""
    cluster = Scripted(node("1"))
    cluster.ready["1"] = {"event": "built"}
    work = machines.ScriptedHost.work
    monkeypatch.setattr(machines.ScriptedHost, "work", lambda self, *words: work(self, *words)[1:])
    monkeypatch.setattr(cluster_pool, "FIRST_JOB", 1.0)
    for limit, least in ((math.inf, 0.9), (0.5, 0.4)):
        began = time.monotonic()
        with pytest.raises(CanvasError, match="builds the network, has not ended; what is done"):
            pool_on(cluster, deadline=began + limit)
        assert least < time.monotonic() - began < least + 2


def test_images_are_sent_once_to_a_node_that_lacks_them(tmp_path):
    content = {"facts.json": b"{}", "train_images.npy": bytes(range(250)), "empty.npy": b""}
    for name, data in content.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "index.npz").write_bytes(b"not sent")
    cluster = Scripted(node("1"), node("2"))
    cluster.images = {"1": deque(["lacks", ""]), "2": deque([""])}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster_pool, "PART", 100)
        hosts = []
        place = cluster.place
        cluster.place = lambda *words: hosts.append(place(*words)) or hosts[-1]
        pool = pool_on(cluster, images={"folder": str(tmp_path), "seal": "s"})
        for _ in range(4):
            pool.wait(0)
    sent = {}
    for seal, name, start, data in next(h for h in hosts if h.parts).parts:
        assert seal == "s" and start == len(sent.get(name, b""))
        sent[name] = sent.get(name, b"") + data
    assert sent == content and sum(bool(host.parts) for host in hosts) == 1 and pool.size == 4


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        (["lacks", "lacks"], "the images that it was sent are damaged"),
        (["there is no folder '/data'"], "there is no folder '/data'"),
    ],
)
def test_a_node_without_images_is_not_used(tmp_path, answers, why):
    cluster = Scripted(node("1"))
    cluster.images["1"] = deque(answers)
    with pytest.raises(CanvasError, match=why):
        pool_on(cluster, images={"folder": str(tmp_path), "seal": "s"})


# ---- nodes that die -----------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(4))
def test_a_training_whose_host_dies_begins_again_unnoticed(at):
    dying = [*WHOLE[:at], "dies"]
    cluster, lines = Scripted(node("1", 1), node("2", 1), says={0: [dying, WHOLE]}), []
    pool = pool_on(cluster, lines)
    assert drive(pool, [0]) == {0: TOLD}
    assert len(cluster.begun) == 2
    assert any("is lost (the actor died), its training begins again" in line for line in lines)


@pytest.mark.parametrize("begun", [False, True])
def test_a_verdict_that_comes_while_it_is_trained_again_is_for_its_own_epoch(begun):
    """It is lost while the driver thinks about epoch 1; what it got for epoch 0 comes first."""
    cluster = Scripted(node("1", 1), says={0: [[BUILT, epoch(0), epoch(1), "dies"], WHOLE]})
    pool = pool_on(cluster)
    pool.start(0, {"kind": "accuracy", "pack": None}, 10)
    heard = []
    while epoch(1) not in heard:
        for job, message in pool.wait(0.01):
            heard.append(message)
            if message == epoch(0):
                pool.answer(job, True)
    (slot,) = [slot for slot in pool.slots if slot.job == 0]
    slot.host.dead = True
    pool._lost(slot, "it was killed")
    while begun and not any(slot.job == 0 for slot in pool.slots):
        pool._look()
        pool._take(0.0)
        pool._begin_queued()
    pool.answer(0, False)
    until = time.monotonic() + 5
    while pool.busy():
        assert time.monotonic() < until
        heard += [message for _, message in pool.wait(0.01)]
    assert cluster.verdicts == [(0, True), (0, True), (0, False)]
    assert [m.get("number", m["event"]) for m in heard] == ["built", 0, 1, "stopped"]


def test_a_job_that_kills_its_hosts_has_failed():
    cluster = Scripted(node("1", 1), node("2", 1), says={0: [["dies"]] * 9, 1: [WHOLE]})
    pool = pool_on(cluster)
    heard = drive(pool, [0, 1])
    assert heard == {0: ["crashed"], 1: TOLD}
    assert sum(job == 0 for job, _, _ in cluster.begun) == LOSSES


def test_a_node_that_leaves_the_cluster():
    cluster = Scripted(node("1", 1), node("2", 1), says={0: [WHOLE, WHOLE], 1: [WHOLE, WHOLE]})
    pool, lines = pool_on(cluster), []
    pool.say = lines.append
    for _ in range(3):
        pool.wait(0)
    cluster.silent = {"1"}
    pool.start(0, {"kind": "accuracy", "pack": None}, 10)
    pool.start(1, {"kind": "accuracy", "pack": None}, 10)
    del cluster.there[0]
    heard = []
    while pool.busy():
        for job, message in pool.wait(0.01):
            heard.append((job, message.get("number", message["event"])))
            if message["event"] in WAITING:
                pool.answer(job, True)
    assert [what for job, what in heard if job == 0] == TOLD
    assert [what for job, what in heard if job == 1] == TOLD
    assert any("its node has left the cluster" in line for line in lines)


def test_a_host_that_hangs_is_given_up(monkeypatch):
    monkeypatch.setattr(cluster_pool, "POLL", 0.0)
    monkeypatch.setattr(cluster_pool, "SILENT", 0.1)
    cluster = Scripted(node("1", 1), node("2", 1), says={0: [WHOLE, WHOLE]})
    lines = []
    pool = pool_on(cluster, lines)
    for _ in range(3):
        pool.wait(0)
    cluster.silent = {"1"}
    assert drive(pool, [0]) == {0: TOLD}
    assert [where for _, where, _ in cluster.begun] == ["1", "2"]
    assert any("it did not answer for" in line for line in lines)


def test_no_node_is_left():
    cluster = Scripted(node("1", 1), says={0: [["dies"], WHOLE]})
    pool = pool_on(cluster)
    pool.start(0, {"kind": "accuracy", "pack": None}, 10)
    cluster.there.clear()
    with pytest.raises(CanvasError, match="no node of the cluster can do the work"):
        for _ in range(200):
            pool.wait(0.01)


def test_a_full_disk_on_a_node():
    cluster = Scripted(node("1", 1), node("2", 1), says={0: [["fails"], WHOLE]})
    lines = []
    pool = pool_on(cluster, lines)
    for _ in range(3):
        pool.wait(0)
    assert drive(pool, [0]) == {0: TOLD}
    assert "node 10.0.0.1 is not used: No space left on device" in lines


def test_nothing_is_lost_or_told_twice_whatever_dies():
    """200 trainings on six nodes, of which hosts die, images are gone, limits are reached."""
    chance = random.Random(5)
    says = {}
    for job in range(200):
        tries = []
        while chance.random() < 0.4 and len(tries) < LOSSES - 1:
            tries.append([*WHOLE[: chance.randrange(4)], "dies"])
        if chance.random() < 0.2:
            tries.append([*WHOLE[: chance.randrange(3)], failed("timeout")])
        says[job] = [*tries, WHOLE, WHOLE]
    cluster = Scripted(*(node(str(n), 2) for n in range(6)), says=says)
    pool = pool_on(cluster)
    heard = drive(pool, range(200), most=100000)
    assert heard == dict.fromkeys(range(200), TOLD)


# ---- failures that may be the node's ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["timeout", "crashed(SIGKILL)"])
def test_a_slow_or_small_node_gets_no_blame_and_gives_none(kind):
    says = {0: [[BUILT, failed(kind)], WHOLE], 1: [[failed(kind)], [failed(kind)]]}
    cluster = Scripted(node("1", 1), node("2", 1), says=says)
    pool = pool_on(cluster)
    for _ in range(3):
        pool.wait(0)
    assert drive(pool, [0, 1]) == {0: TOLD, 1: [kind]}
    for job in (0, 1):
        assert len({where for j, where, _ in cluster.begun if j == job}) == 2


def test_on_one_node_a_failure_is_a_failure():
    cluster = Scripted(node("1", 4), says={0: [[failed("timeout")]], 1: [[failed("error")]]})
    assert drive(pool_on(cluster), [0, 1]) == {0: ["timeout"], 1: ["error"]}


def test_images_that_are_gone_cost_the_node_not_the_search():
    says = {0: [[failed(LOST_DATA, "no images")], WHOLE]}
    cluster, lines = Scripted(node("1", 1), node("2", 1), says=says), []
    pool = pool_on(cluster, lines)
    assert drive(pool, [0]) == {0: TOLD}
    assert "node 10.0.0.1 is not used: no images" in lines
    alone = Scripted(node("1", 1), says={0: [[failed(LOST_DATA, "no images")]]})
    with pytest.raises(CanvasError, match="no images; what is done is kept"):
        drive(pool_on(alone), [0])


def test_a_gpu_with_too_little_memory_is_shared_by_fewer():
    says = {job: [WHOLE] for job in range(8)} | {3: [[BUILT, failed(FULL)], WHOLE]}
    cluster, lines = Scripted(node("1", 8, GPU=1), says=says), []
    pool = pool_on(cluster, lines, device="cuda", amp="bf16", per_gpu=4)
    for _ in range(3):
        pool.wait(0)
    assert cluster.placed[0] == ("1", {"CPU": 1, "GPU": 0.25}) and pool.size == 4
    assert drive(pool, range(8)) == dict.fromkeys(range(8), TOLD)
    assert pool.size == 3 and any("ran out of memory: one training less" in s for s in lines)
    assert all(w["device"] == "cuda:0" and w["amp"] == "bf16" for _, _, w in cluster.begun)
    alone = Scripted(node("1", 8, GPU=1), says={0: [[failed(FULL)]]})
    assert drive(pool_on(alone, device="cuda"), [0]) == {0: ["out_of_memory"]}


def test_a_gpu_that_goes_takes_its_trainings_elsewhere():
    says = {job: [WHOLE, WHOLE] for job in range(4)} | {0: [[BUILT, failed(GONE)], WHOLE]}
    cluster, lines = Scripted(node("1", 8, GPU=1), node("2", 8, GPU=1), says=says), []
    pool = pool_on(cluster, lines, device="cuda", per_gpu=2)
    for _ in range(3):
        pool.wait(0)
    assert drive(pool, range(4)) == dict.fromkeys(range(4), TOLD)
    assert any("does not answer any more" in line for line in lines) and pool.size == 2
    lone = Scripted(node("1", 8, GPU=1), says={0: [[failed(GONE, "xid 79")]]})
    with pytest.raises(CanvasError, match="none of its GPUs answers any more"):
        drive(pool_on(lone, device="cuda"), [0])


# ---- timing -------------------------------------------------------------------------------------


def test_networks_are_timed_on_nodes_with_the_label():
    says = {job: [[DONE]] for job in range(4)} | {9: [WHOLE]}
    cluster = Scripted(node("1", 4), node("2", 4, quiet=1), says=says)
    pool = pool_on(cluster, label="quiet")
    for _ in range(4):
        pool.wait(0)
    assert [r for name, r in cluster.placed if name == "2"] == [{"CPU": 1, "quiet": 1e-3}]
    pool.start(9, {"kind": "accuracy", "pack": None}, 10)
    for job in range(4):
        pool.start(job, {"kind": "latency", "pack": None}, 10)
    while pool.busy():
        for job, message in pool.wait(0.01):
            if message["event"] in WAITING:
                pool.answer(job, True)
    assert {(job, where) for job, where, _ in cluster.begun} == {
        (9, "1"), (0, "2"), (1, "2"), (2, "2"), (3, "2"),
    }  # fmt: skip
    assert all(words["device"] == "cpu" for _, _, words in cluster.begun)


def test_a_node_that_times_is_lost():
    """Another one takes its jobs; without any, a message comes."""
    cluster = Scripted(
        node("1", 1), node("2", 1, quiet=1), says={0: [["dies"], [DONE]], 1: [["dies"]]}
    )
    pool = pool_on(cluster, label="quiet")
    for _ in range(3):
        pool.wait(0)
    del cluster.there[1]
    cluster.there.append(node("3", 1, quiet=1))
    pool.start(0, {"kind": "latency", "pack": None}, 10)
    while pool.busy():
        pool.wait(0.01)
    assert [where for _, where, _ in cluster.begun][-1] == "3"
    del cluster.there[1]
    pool.start(1, {"kind": "latency", "pack": None}, 10)
    began = time.monotonic()
    with pytest.raises(CanvasError, match="no node with the resource 'quiet' is there any more"):
        while pool.busy():
            pool.wait(0.01)
    assert time.monotonic() - began < 5


def test_a_cluster_without_the_label():
    with pytest.raises(CanvasError, match="no node of the cluster has the resource 'quiet'"):
        pool_on(Scripted(node("1")), label="quiet")


@pytest.mark.parametrize(
    ("timed", "expected"),
    [
        ({"event": "done", "share": 0.4, "missing": ""}, TOLD),
        (failed("error", "no compiler"), ["error"]),
    ],
)
def test_the_layers_of_a_find_are_timed_before_it_is_trained_elsewhere(timed, expected):
    cluster = Scripted(node("1", 1), node("2", 1, quiet=1), says={0: [[timed], WHOLE]})
    pool = pool_on(cluster, label="quiet")
    words = {"layers": {"targets": "t", "batch": 1}, "path": [], "deterministic": False}
    assert drive(pool, [0], words=words) == {0: expected}
    (_, first, asked), *rest = cluster.begun
    assert first == "2" and asked["kind"] == "layers" and asked["targets"] == "t"
    assert "training" not in asked
    if rest:
        ((_, where, training),) = rest
        assert where == "1" and training["timed_layers"] == {"share": 0.4, "missing": ""}


# ---- files and ends -----------------------------------------------------------------------------


def test_files_go_to_the_host_and_come_back(tmp_path):
    kept, layer = tmp_path / "kept", tmp_path / "layer"
    layer.write_bytes(b"recorded")
    left = {**DONE, "files": {str(kept): b"left off"}}
    cluster = Scripted(node("1", 1), says={0: [[BUILT, left]], 1: [WHOLE]})
    pool = pool_on(cluster)
    words = {"kept": str(kept), "layer": str(layer)}
    drive(pool, [0], words=words)
    (slot,) = pool.slots
    assert kept.read_bytes() == b"left off" and slot.host.taken == {str(layer): b"recorded"}
    slot.host.taken.clear()
    slot.host.taken[str(layer)] = b"recorded"
    kept.write_bytes(b"changed")
    drive(pool, [1], words=words)
    assert slot.host.taken[str(kept)] == b"changed"


def test_a_verdict_for_a_job_that_has_failed_meanwhile():
    """Its last host dies while the driver looks for room, before it hears of that."""
    lives = [[BUILT, epoch(0), "dies"]] * LOSSES
    cluster = Scripted(node("1", 1), node("2", 1), says={0: lives})
    pool = pool_on(cluster)
    pool.start(0, {"kind": "accuracy", "pack": None}, 10)
    while not pool.wait(0.01):
        pass
    pool.wait(0)
    while 0 in pool.jobs:
        for slot in [slot for slot in pool.slots if slot.job == 0]:
            pool._lost(slot, "it was killed")
        pool._look()
        pool._take(0.0)
        pool._begin_queued()
    pool.answer(0, True)
    assert [message["kind"] for _, message in pool.messages if message["event"] == "failed"]
    pool.stop(0)
    assert pool.wait(0) == [] and not pool.losses and not pool.busy()


def test_a_stopped_training_ends_with_its_host():
    cluster = Scripted(node("1", 2), says={0: [WHOLE], 1: [WHOLE]})
    pool = pool_on(cluster)
    pool.wait(0)
    pool.start(0, {"kind": "accuracy", "pack": None}, 10)
    pool.stop(0)
    pool.stop(77)
    assert pool.busy() == [] and cluster.ended == ["1"] and pool.wait(0) == []
    assert drive(pool, [1]) == {1: TOLD} and pool.size == 2
