"""Devices: slots, memory, out of memory, devices that go; by a fake accelerator on the CPU."""

# ruff: noqa: F811 - fixtures have the names of what they give

import json
import re
from collections import deque

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("scipy")

from small_trained import Small, data, network  # noqa: E402, F401

import canvas  # noqa: E402
from canvas import models  # noqa: E402
from canvas.cli import main  # noqa: E402
from canvas.data import load_data, resident, stored  # noqa: E402
from canvas.data.augment import generator  # noqa: E402
from canvas.data.resident import DeviceImages, Resident  # noqa: E402
from canvas.deploy.trainer import train_network  # noqa: E402
from canvas.devices import check_amp, fake, open_device, resolve, scaler_of  # noqa: E402
from canvas.devices.cuda import Cuda  # noqa: E402
from canvas.devices.device import Device, DeviceLost, OutOfDeviceMemory  # noqa: E402
from canvas.errors import CanvasError  # noqa: E402
from canvas.fitting import fit_run, menu  # noqa: E402
from canvas.options import read_device, read_options  # noqa: E402
from canvas.study import Study  # noqa: E402
from canvas.tasks.evaluate import failing_as  # noqa: E402
from canvas.workers.on_devices import FULL, GONE, OnDevices  # noqa: E402
from canvas.workers.pool import WAITING  # noqa: E402


class Accelerators:
    """The folder of devices.json, to be changed while something runs."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()

    def say(self, **facts):
        known = {"count": 2, "memory": 1000, "need": 400, "lost": []}
        place = self.folder / "devices.json"
        if place.exists():
            known = json.loads(place.read_text())
        new = self.folder / "new.json"
        new.write_text(json.dumps(known | facts))
        new.replace(place)


@pytest.fixture
def accelerators(tmp_path, monkeypatch):
    found = Accelerators(tmp_path / "fakes")
    monkeypatch.setenv(fake.FOLDER, str(found.folder))
    found.say()
    return found


# ---- names --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cpu", ["cpu"]),
        ("auto", ["cpu"]),
        ("fake", ["fake:0", "fake:1"]),
        ("fake:1", ["fake:1"]),
        ("fake:1, 0", ["fake:1", "fake:0"]),
    ],
)
def test_devices_by_name(accelerators, monkeypatch, text, names):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found = resolve(read_device(text))
    assert [device.name for device in found] == names
    assert [type(open_device(name)) for name in names] == [type(device) for device in found]


@pytest.mark.parametrize(
    "text", ["", "gpu", "cuda:", "cuda:a", "cuda:0,0", "cuda:-1", "cpu:0", "cuda:0;1", 3, "cuda,0"]
)
def test_what_is_no_device(text):
    with pytest.raises(CanvasError, match=r"--device takes (auto, cpu, cuda|each device once)"):
        read_options({"model": "resnet8", "data": "digits", "device": text})


def test_devices_that_are_not_there(accelerators, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(CanvasError, match="--device cuda:1: torch finds no such device here"):
        resolve("cuda:1")
    with pytest.raises(CanvasError, match="there is no fake:2, only fake:0, fake:1"):
        resolve("fake:0,2")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), OutOfDeviceMemory),
        (RuntimeError("CUDA error: out of memory"), OutOfDeviceMemory),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), OutOfDeviceMemory),
        (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), OutOfDeviceMemory),
        (RuntimeError("CUDA error: all CUDA-capable device(s) is/are busy or unavailable"),
         DeviceLost),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), DeviceLost),
        (RuntimeError("CUDA error: device-side assert triggered"), RuntimeError),
        (RuntimeError("CUDA error: an illegal memory access was encountered"), RuntimeError),
        (ValueError("the loss is nan"), ValueError),
    ],
)  # fmt: skip
def test_what_a_gpu_does_wrong(monkeypatch, error, expected):
    for name in ("set_device", "reset_peak_memory_stats", "empty_cache"):
        monkeypatch.setattr(torch.cuda, name, lambda *_: None)
    with pytest.raises(expected) as caught, Cuda("cuda:0").training(torch.nn.Identity()):
        raise error
    assert type(caught.value) is (expected if expected is not RuntimeError else RuntimeError)


# ---- slots, by a pool that is told what its jobs say --------------------------------------------


class Script:
    """A pool whose jobs say the messages of `says` (by job, a list for each time it is begun)."""

    def __init__(self, size, says):
        self.size, self.says = size, {job: deque(lists) for job, lists in says.items()}
        self.under_way = {}
        self.begun = []  # (job, device)
        self.answers = []
        self.paused = set()

    def busy(self):
        return list(self.under_way)

    def has_room(self):
        return len(self.under_way) < self.size

    def start(self, job, words, limit, preferred=None):
        assert self.has_room()
        self.begun.append((job, words.get("device")))
        self.under_way[job] = deque(self.says[job].popleft())

    def answer(self, job, go):
        self.answers.append((job, go))
        self.paused.discard(job)

    def stop(self, job):
        self.under_way.pop(job, None)
        return 1.0

    def close(self):
        self.under_way.clear()

    def wait(self, seconds):
        """The next message of each job that does not wait for a verdict."""
        told = []
        for job in list(self.under_way):
            if job in self.paused or not self.under_way[job]:
                continue
            message = dict(self.under_way[job].popleft())
            if message["event"] in WAITING:
                self.paused.add(job)
            if message["event"] in ("done", "failed", "stopped"):
                del self.under_way[job]
            told.append((job, message))
        return told


BUILT, DONE = {"event": "built"}, {"event": "done"}


def epoch(number, memory=0):
    return {"event": "epoch", "number": number, "memory": memory}


def failed(kind):
    return {"event": "failed", "kind": kind, "reason": "why"}


def drive(pool, jobs, most=1000):
    """What the driver hears of the jobs, which it starts as room is there."""
    jobs, heard, at_once = deque(jobs), [], []
    for _ in range(most):
        while jobs and pool.has_room():
            pool.start(jobs.popleft(), {"kind": "accuracy"}, 10)
        at_once.append(len(pool.pool.busy()))
        for job, message in pool.wait(0):
            heard.append((job, message["event"], message.get("number", message.get("kind"))))
            if message["event"] in WAITING:
                pool.answer(job, True)
        if not jobs and not pool.busy():
            return heard, max(at_once)
    raise AssertionError(f"nothing ends: {heard}")


def on(pool, *names, lines=None):
    say = (lambda line: None) if lines is None else lines.append
    return OnDevices(pool, [open_device(name) for name in names], "no", say)


WHOLE = [BUILT, epoch(0), epoch(1), DONE]
TOLD = [("built", None), ("epoch", 0), ("epoch", 1), ("done", None)]


def of(heard, job):
    return [(event, fact) for j, event, fact in heard if j == job]


def test_one_training_runs_on_each_device_until_its_memory_is_known(accelerators):
    pool = Script(8, {job: [[BUILT, epoch(0), epoch(1), DONE]] for job in range(6)})
    heard, most = drive(on(pool, "fake:0", "fake:1"), range(6))
    assert most == 2 and {device for _, device in pool.begun} == {"fake:0", "fake:1"}
    assert all(of(heard, job) == TOLD for job in range(6))


@pytest.mark.parametrize(("peak", "share"), [(400, 2), (100, 9), (2000, 1), (1, 12)])
def test_as_many_share_a_device_as_its_memory_holds(accelerators, peak, share):
    says = {job: [[BUILT, epoch(0, peak), epoch(1, peak), DONE]] for job in range(40)}
    lines = []
    _, most = drive(on(Script(12, says), "fake:0", lines=lines), range(40))
    assert most == share
    assert len(lines) == (share > 1)
    assert not lines or lines[0] == f"fake:0: {share} trainings at a time, {peak} bytes each"


def test_a_verdict_that_comes_while_a_training_is_done_again_waits_for_its_place(accelerators):
    """The device goes while the driver thinks about epoch 1."""
    says = {0: [[epoch(0), epoch(1), failed(GONE)], [epoch(0), epoch(1), {"event": "stopped"}]]}
    pool = Script(2, says)
    executor = on(pool, "fake:0", "fake:1")
    executor.start(0, {"kind": "accuracy"}, 10)
    assert executor.wait(0) == [(0, epoch(0))]
    executor.answer(0, True)
    assert executor.wait(0) == [(0, epoch(1))]
    pool.paused.clear()
    assert executor.wait(0) == [] and executor.wait(0) == []
    assert pool.begun == [(0, "fake:0"), (0, "fake:1")]
    executor.answer(0, False)
    for _ in range(3):
        executor.wait(0)
    assert pool.answers == [(0, True), (0, True), (0, False)] and not executor.busy()


def test_out_of_memory_reduces_sharing_and_is_no_failure(accelerators):
    says = {
        0: [[BUILT, epoch(0, 300), epoch(1, 300), DONE]],
        1: [WHOLE],
        2: [[BUILT, epoch(0), failed(FULL)], [BUILT, epoch(0), epoch(1), DONE]],
        3: [WHOLE],
        4: [WHOLE],
    }
    pool, lines = Script(3, says), []
    executor = on(pool, "fake:0", lines=lines)
    heard, _ = drive(executor, range(5))
    assert all(of(heard, job) == TOLD for job in range(5))  # nothing is told twice
    assert pool.begun.count((2, "fake:0")) == 2
    assert executor.share["fake:0"] < 3 and any("ran out of memory" in line for line in lines)
    assert pool.answers.count((2, True)) == 3  # twice to epoch 0, once to epoch 1


def test_a_training_that_is_alone_and_has_too_little_memory_has_failed(accelerators):
    pool = Script(2, {0: [[BUILT, failed(FULL)]], 1: [WHOLE]})
    heard, _ = drive(on(pool, "fake:0"), range(2))
    assert of(heard, 0) == [("built", None), ("failed", "out_of_memory")]
    assert of(heard, 1) == TOLD


def test_the_jobs_of_a_lost_device_go_to_the_others(accelerators):
    says = {0: [[BUILT, epoch(0), failed(GONE)], WHOLE], 1: [WHOLE], 2: [WHOLE]}
    pool, lines = Script(4, says), []
    heard, _ = drive(on(pool, "fake:0", "fake:1", lines=lines), range(3))
    assert all(of(heard, job) == TOLD for job in range(3))
    assert [device for job, device in pool.begun if job == 0] == ["fake:0", "fake:1"]
    assert lines == ["fake:0 does not answer any more: why"]


def test_without_a_device_the_search_ends_with_one_message(accelerators):
    pool = Script(4, {0: [[BUILT, failed(GONE)]]})
    with pytest.raises(CanvasError, match="no device is left: why; what is done is kept"):
        drive(on(pool, "fake:0"), range(1))


def test_a_job_that_waits_to_be_begun_again_can_be_stopped(accelerators):
    says = {0: [[BUILT, epoch(0, 300)]], 1: [[BUILT, failed(FULL)]]}
    pool = Script(2, says)
    executor = on(pool, "fake:0")
    executor.share["fake:0"] = 2
    for job in (0, 1):
        executor.start(job, {"kind": "accuracy"}, 10)
    for _ in range(3):
        executor.wait(0)
    assert sorted(executor.busy()) == [0, 1] and pool.busy() == [0]
    executor.stop(1)
    assert executor.busy() == [0]


def test_other_jobs_run_on_no_device(accelerators):
    pool = Script(2, {7: [[DONE]]})
    executor = on(pool, "fake:0")
    executor.start(7, {"kind": "latency"}, 10)
    assert pool.begun == [(7, None)] and executor.wait(0) == [(7, DONE)]


def test_random_accidents_change_nothing_that_is_told(accelerators):
    """Trainings that run out of memory or lose their device, many times."""
    import random

    for seed in range(60):
        chance = random.Random(seed)
        says = {}
        for job in range(8):
            tries = []
            for _ in range(chance.randrange(3)):
                cut = chance.randrange(4)
                tries.append([*WHOLE[:cut], failed(FULL)])
            says[job] = [*tries, WHOLE, *[WHOLE] * 3]
        pool = Script(chance.randrange(1, 5), says)
        executor = on(pool, "fake:0", "fake:1")
        executor.share = dict.fromkeys(executor.share, 3)
        heard, _ = drive(executor, range(8), 1000)
        for job in range(8):
            own = of(heard, job)
            whole = own == TOLD
            alone = own[-1] == ("failed", "out_of_memory") and own[:-1] == TOLD[: len(own) - 1]
            assert whole or alone, (seed, job, own)


# ---- amp ----------------------------------------------------------------------------------------


def test_amp_that_a_device_has_not_is_one_message(accelerators):
    accelerators.say(bf16=False)
    with pytest.raises(CanvasError, match="fake:0 cannot train with --amp bf16: it takes no or f"):
        check_amp(open_device("fake:0"), "bf16")
    with pytest.raises(CanvasError, match="cpu cannot train with --amp fp16: it takes no or bf16"):
        check_amp(Device("cpu"), "fp16")
    check_amp(open_device("fake:0"), "fp16")
    assert not scaler_of(torch.device("cpu"), "fp16").is_enabled()


# ---- images on a device -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["digits", "synthetic"])
def test_images_on_a_device_are_those_in_memory(tmp_path, name):
    data = load_data(name, images=200, crop=1, normalize=True)
    seal = stored.store(data, tmp_path / "images")
    mapped = stored.Mapped(tmp_path / "images", seal)
    place = torch.device("cpu")
    for source in (data, mapped):
        near = resident(source, place, 1 << 40, ("train", "validation"))
        assert isinstance(near, Resident) and isinstance(near.train[0], DeviceImages)
        passes = [
            list(one.epoch(32, torch.Generator().manual_seed(1), generator(1)))
            for one in (data, near)
        ]
        for (images, labels), (others, named) in zip(*passes, strict=True):
            assert torch.equal(images, others) and torch.equal(labels, named)
        for split in ("train", "validation", "test"):
            for a, b in zip(data.scoring(split), near.scoring(split), strict=True):
                assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])
            assert near.count(split) == data.count(split)
        near.train[0][:3].zero_()  # a batch is a copy
        assert torch.equal(near.train[0][:3], data.train[0][:3])
        assert resident(source, place, 1000, ("train",)) is source


# ---- searches -----------------------------------------------------------------------------------

SHORT = {
    "model": "resnet8", "width": 4, "data": "synthetic", "images": 200, "budget": "macs=0.5x",
    "trials": 2, "epochs": 2, "finalists": 1, "final_seeds": 1, "pretests": "no", "lag": 1,
    "latency": "none", "progress": "off", "prune": "none", "memory_format": "contiguous",
}  # fmt: skip


def curves(folder):
    with Study.read(folder) as study:
        return {row.name: (row.status, study.curve(row.id), row.tests)
                for row in study.candidates()}  # fmt: skip


@pytest.fixture(scope="module")
def on_the_cpu(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cpu") / "out"
    canvas.search(out=folder, **SHORT)
    return curves(folder)


def test_a_search_on_devices_gives_what_one_on_the_cpu_gives(tmp_path, accelerators, on_the_cpu):
    lines = []
    words = SHORT | {"progress": "lines", "say": lines.append}
    canvas.search(out=tmp_path / "out", device="fake", workers=4, **words)
    assert curves(tmp_path / "out") == on_the_cpu
    assert "networks are trained on fake:0,1" in lines
    assert any("2 trainings at a time, 400 bytes each" in line for line in lines)
    assert not list(accelerators.folder.glob("fake-*/*"))  # all is given back
    with Study.read(tmp_path / "out") as study:
        assert study.sessions()[-1]["options"]["device"] == "fake:0,1"


def test_out_of_memory_is_no_failed_candidate(tmp_path, accelerators, on_the_cpu):
    """The unchanged network takes little, the others much: what was measured is too hopeful."""
    model = models.resnet8(width=4)
    accelerators.say(
        count=1, need=600, needs={str(sum(p.numel() for p in model.parameters())): 200}
    )
    lines = []
    words = SHORT | {"progress": "lines", "say": lines.append}
    canvas.search(out=tmp_path / "out", device="fake", workers=4, **words)
    assert curves(tmp_path / "out") == on_the_cpu
    assert any("ran out of memory: 1 trainings" in line or "ran out of memory" in line
               for line in lines)  # fmt: skip


def test_a_network_that_never_fits_has_failed(tmp_path, accelerators):
    accelerators.say(need=2000)
    with pytest.raises(
        CanvasError, match="the unchanged network cannot be trained: out_of_memory"
    ):
        canvas.search(out=tmp_path / "out", device="fake", workers=2, **SHORT)


@pytest.mark.nightly
def test_a_device_that_disappears_and_a_search_that_goes_on_elsewhere(
    tmp_path, accelerators, on_the_cpu
):
    out = tmp_path / "out"
    seen = []

    def lose(study, candidate):
        seen.append(candidate.name)
        lost = ["fake:0"] if len(seen) == 1 else ["fake:0", "fake:1"]
        accelerators.say(lost=lost)

    with pytest.raises(CanvasError, match="no device is left"):
        canvas.search(out=out, device="fake", workers=2, callbacks=[lose], **SHORT)
    assert seen
    lines = []
    canvas.search(out=out, **SHORT | {"progress": "lines", "say": lines.append})
    assert curves(out) == on_the_cpu
    assert any(
        line.startswith("earlier networks were trained on fake:0,1: the same") for line in lines
    )


def test_amp_is_part_of_the_question(tmp_path, on_the_cpu):
    words = SHORT | {"trials": 1}
    canvas.search(out=tmp_path / "out", amp="bf16", **words)
    assert curves(tmp_path / "out")["baseline"] != on_the_cpu["baseline"]
    with pytest.raises(CanvasError, match="--amp"):
        canvas.search(out=tmp_path / "out", **words)


def test_nothing_is_timed_without_latency(tmp_path, on_the_cpu):
    words = SHORT | {"trials": 1}
    report = canvas.search(out=tmp_path / "out", **words)
    assert "fewest-macs within 1.0" in report.text
    with Study.read(tmp_path / "out") as study:
        assert all(row.latency_ms is None for row in study.candidates())
    for more in ({"pick": "fastest within 1.0"}, {"objectives": "latency"},
                 {"budget": "latency=0.5x"}):  # fmt: skip
        with pytest.raises(CanvasError, match="--latency none times nothing"):
            canvas.search(out=tmp_path / "other", **words | more)


def test_an_object_is_trained_on_a_device_too(tmp_path, accelerators):
    places = []

    def train(model, context):
        places.append(str(context.device))
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(context.epochs):
            optimizer.zero_grad()
            model(torch.zeros(2, 1, 8, 8)).sum().backward()
            optimizer.step()
            yield 0.0

    canvas.search(
        models.resnet8(channels=1, classes=2, image_size=8, width=4), train=train,
        score=lambda model: 0.5, example_input=torch.zeros(1, 1, 8, 8), trials=1, epochs=1,
        device="fake:1", out=tmp_path / "out", progress="off", compile="no", latency="none",
    )  # fmt: skip
    assert places and set(places) == {"cpu"}  # where a fake device computes
    assert list(accelerators.folder.glob("fake-1")) and not list(
        accelerators.folder.glob("*/*[0-9]")
    )


def test_memory_is_given_back_by_a_process_that_was_killed(accelerators):
    folder = accelerators.folder / "fake-0"
    folder.mkdir()
    (folder / "999999999").write_text("900")
    device, network = open_device("fake:0"), torch.nn.Identity()
    assert device.memory() == (1000, 1000)
    with device.training(network):
        network(torch.zeros(1))
        assert device.memory() == (600, 1000) and device.peak() == 400
    assert device.memory() == (1000, 1000)


def loop_for_a_device(model, context):
    for _ in range(context.epochs):
        model(torch.zeros(2, 1, 8, 8)).sum().backward()
        yield 0.0


def score_of_a_device(model):
    return 0.5


OWN_LOOP = {
    "train": loop_for_a_device, "score": score_of_a_device, "trials": 1, "epochs": 1,
    "example_input": torch.zeros(1, 1, 8, 8), "progress": "off", "compile": "no",
    "latency": "none",
}  # fmt: skip


def small_resnet():
    return models.resnet8(channels=1, classes=2, image_size=8, width=4)


@pytest.mark.nightly
def test_a_device_that_fails_in_the_code_of_a_user_is_no_failed_candidate(tmp_path, accelerators):
    accelerators.say(need=2000)
    with pytest.raises(CanvasError, match="out_of_memory: alone on fake:0"):
        canvas.search(small_resnet, out=tmp_path / "a", device="fake:0", **OWN_LOOP)
    accelerators.say(lost=["fake:0"])
    with pytest.raises(CanvasError, match="no device is left: CUDA error"):
        canvas.search(small_resnet, out=tmp_path / "b", device="fake:0", **OWN_LOOP)
    accelerators.say(need=10, lost=[])
    canvas.search(small_resnet, out=tmp_path / "b", device="fake:0", **OWN_LOOP)
    with Study.read(tmp_path / "b") as study:
        assert study.select("find", "done") and not study.select(status="failed")


@pytest.mark.parametrize("error", ["CUDA out of memory", "CUDA error: GPU is lost"])
def test_what_a_device_does_wrong_passes_through_the_code_of_a_user(error):
    with pytest.raises(RuntimeError, match=error), failing_as("the metric of task 'own'"):
        raise RuntimeError(error)
    failed = pytest.raises(CanvasError, match="the metric of task 'own' failed")
    with failed, failing_as("the metric of task 'own'"):
        raise RuntimeError("something else")


def test_a_loop_decides_itself_what_is_in_16_bits(tmp_path):
    with pytest.raises(CanvasError, match=r"a loop of yours decides itself .*: leave amp out"):
        canvas.search(small_resnet(), out=tmp_path / "out", amp="bf16", **OWN_LOOP)


# ---- fits ---------------------------------------------------------------------------------------

FIT = {
    "budget": "macs=0.5x", "draws": 0, "epochs": 1, "longer": 1, "final_seeds": 2, "workers": 1,
    "latency": "none", "progress": "off",
}  # fmt: skip


def finals(found):
    return [(one.name, one.tests, one.tuned_divergence) for one in found.candidates]


def test_a_fit_on_a_device_gives_what_one_on_the_cpu_gives(
    tmp_path, accelerators, network, data, monkeypatch
):
    monkeypatch.setattr(menu, "CONTROLS", menu.CONTROLS[:2])
    monkeypatch.setattr(fit_run, "KNOWN", menu.CONTROLS[:2])
    cpu = canvas.fit(network, data, **FIT)
    found = canvas.fit(network, data, device="fake:0", out=tmp_path / "out", **FIT)
    assert finals(found) == finals(cpu) and any(one.tests for one in found.candidates)
    assert list(accelerators.folder.glob("fake-0")) and not list(accelerators.folder.glob("*/*"))
    with Study.read(tmp_path / "out") as study:
        assert study.sessions()[-1]["options"]["device"] == "fake:0"
    mixed = canvas.fit(network, data, device="fake:0", amp="bf16", **FIT)
    assert finals(mixed) != finals(cpu)


@pytest.mark.parametrize(
    ("facts", "words", "message"),
    [
        ({}, {"device": "fake:0,1"}, "a fit runs on one device, not on fake:0,1"),
        ({}, {"device": "fake:7"}, "there is no fake:7"),
        ({"bf16": False}, {"device": "fake:0", "amp": "bf16"}, "cannot train with --amp bf16"),
        ({}, {"amp": "fp16"}, "cpu cannot train with --amp fp16"),
        pytest.param(
            {"need": 5000}, {"device": "fake:0"}, "fake:0 has too little memory: .* is kept, the",
            marks=pytest.mark.nightly,
        ),
        ({"lost": ["fake:0"]}, {"device": "fake:0"}, "fake:0 does not answer: .* is kept, the"),
    ],
)  # fmt: skip
def test_a_fit_that_cannot_be_is_one_message(
    tmp_path, accelerators, network, data, monkeypatch, facts, words, message
):
    monkeypatch.setattr(menu, "CONTROLS", menu.CONTROLS[:2])
    monkeypatch.setattr(fit_run, "KNOWN", menu.CONTROLS[:2])
    accelerators.say(**facts)
    out = tmp_path / "out"
    with pytest.raises(CanvasError, match=message):
        canvas.fit(network, data, out=out, **FIT | words)
    if "lost" in facts or "need" in facts:  # nothing of it is recorded as a failure
        accelerators.say(lost=[], need=10)
        again = canvas.fit(network, data, out=out, **FIT | words)
        assert sum(bool(one.tests) for one in again.candidates) > 2
        with Study.read(out) as study:
            assert not study.select(status="failed")


@pytest.mark.parametrize("facts", [{"need": 5000}, {"lost": ["fake:0"]}])
def test_a_teacher_that_no_device_trains_is_one_message(tmp_path, accelerators, facts, capsys):
    accelerators.say(**facts)
    words = ["fit", "--model", "resnet8", "--data", "synthetic", "--images", "120", "--width", "4",
             "--teacher-epochs", "1", "--draws", "0", "--budget", "macs=0.5x", "--latency", "none",
             "--device", "fake:0", "--out", str(tmp_path / "out")]  # fmt: skip
    assert main(words) == 2
    said = capsys.readouterr().err
    assert re.search(r"canvas: fake:0 (has too little memory|does not answer): .* is kept", said)
    assert "Traceback" not in said


# ---- latency on a GPU ---------------------------------------------------------------------------


def test_networks_are_timed_on_the_device(tmp_path, accelerators):
    words = SHORT | {"trials": 1, "latency": "cuda", "compile": "no", "workers": 2}
    report = canvas.search(out=tmp_path / "out", device="fake:1", **words)
    assert "fake:1, its own time" in report.text and "as a CUDA graph (g)" in report.text
    with Study.read(tmp_path / "out") as study:
        rows = study.select(status="done")
        for row in rows:
            engines = {timing.engine: timing for timing in study.timings(row.id)}
            assert set(engines) == {"gpu", "gpu-graph"}
            assert all(timing.latency_ms > 0 for timing in engines.values())
            assert row.engine in engines and row.speedup is not None
    canvas.search(
        out=tmp_path / "out", **words | {"latency": "torch"}
    )  # times of a CPU are others
    with Study.read(tmp_path / "out") as study:
        engines = {t.engine for row in study.select(status="done") for t in study.timings(row.id)}
        assert engines == {"eager"}


def test_times_of_a_gpu_need_one(tmp_path, accelerators):
    words = SHORT | {"latency": "cuda"}
    with pytest.raises(CanvasError, match="--latency cuda times on a GPU, not on cpu: give --dev"):
        canvas.search(out=tmp_path / "out", **words)


def test_networks_are_timed_in_the_bits_of_amp():
    from canvas.workers.engines import Mixed, on_gpu

    network = torch.nn.Linear(4, 4)
    mixed = on_gpu(network, open_device("fake:0"), "bf16")
    assert isinstance(mixed, Mixed) and mixed(torch.zeros(1, 4)).dtype == torch.bfloat16
    assert on_gpu(network, open_device("fake:0"), "no") is network
    with pytest.raises(CanvasError, match="cpu is no GPU"):
        on_gpu(network, Device("cpu"), "no")


@pytest.mark.parametrize(
    ("facts", "device", "words"),
    [
        ({"need": 5000}, "fake:0", "fake:0 has too little memory: .* is kept, the same command"),
        ({"lost": ["fake:1"]}, "fake:1", "fake:1 does not answer: .* is kept, the same command"),
        ({}, "fake:0,1", "a training runs on one device, not on fake:0,1"),
        ({}, "fake:5", "there is no fake:5, only fake:0, fake:1"),
    ],
)
def test_a_long_training_that_a_device_ends_is_one_message(
    tmp_path, accelerators, facts, device, words
):
    accelerators.say(**facts)
    asked = {
        "model": "resnet8", "data": "synthetic", "images": 100, "width": 4, "epochs": 1,
        "out": tmp_path / "out", "say": lambda line: None,
    }  # fmt: skip
    with pytest.raises(CanvasError, match=words):
        train_network("baseline", device=device, **asked)
    accelerators.say(need=10, lost=[])
    assert train_network("baseline", device="fake:0", resume=True, **asked).epoch == 1
