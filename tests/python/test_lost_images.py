"""Images that are cut off or changed while trainings read them: no candidate is to blame."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from canvas.data import Data, stored
from canvas.errors import CanvasError
from canvas.workers import worker
from canvas.workers.pool import Pool

# Maps the images, does what it is told to them, reads them.
READER = """
import json, mmap, os, signal, sys
for line in sys.stdin:
    job = json.loads(line)
    path = job["folder"] + "/train_images.npy"
    with open(path) as file:
        images = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    if job["do"] == "cut":
        os.truncate(path, 200)
    elif job["do"] == "cut to nothing":
        os.truncate(path, 0)
    else:
        os.kill(os.getpid(), signal.SIGBUS)
    images[:]
    print(json.dumps({"event": "done"}), flush=True)
"""


@pytest.fixture
def images(tmp_path: Path) -> dict[str, str]:
    """Folder and seal of images of more than a page."""
    split = (torch.randn(64, 1, 16, 16), torch.arange(64) % 2)
    seal = stored.store(Data("tiny", split, split, split, 2, ""), tmp_path / "images")
    return {"folder": str(tmp_path / "images"), "seal": seal}


@pytest.mark.parametrize("do", ["cut", "cut to nothing"])
def test_a_child_that_images_end_is_no_failure_of_its_job(do: str, images: dict[str, str]) -> None:
    with Pool(1, program=("-c", READER)) as pool:
        pool.start(0, {"do": do, "images": images, **images}, 60)
        with pytest.raises(CanvasError, match=r"the images in '.*' are damaged: "):
            while pool.busy():
                assert not pool.wait(1.0)


def test_a_child_that_ends_itself_is_to_blame(images: dict[str, str]) -> None:
    for words in ({"images": images}, {}):
        with Pool(1, program=("-c", READER)) as pool:
            pool.start(0, {"do": "die", **words, **images}, 60)
            messages = []
            while pool.busy():
                messages += pool.wait(1.0)
        assert [message["kind"] for _, message in messages] == ["crashed(SIGBUS)"]


def cut_in_a_page(path: Path) -> None:
    """No signal tells of it: what was cut off is zeros up to the end of its page."""
    os.truncate(path, path.stat().st_size - 8)


def write_into(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(b"\xff" * 8)
    later = path.stat().st_mtime_ns + 1
    os.utime(path, ns=(later, later))


@pytest.mark.parametrize("change", [cut_in_a_page, write_into])
@pytest.mark.parametrize("raises", [False, True])
def test_what_came_of_changed_images_is_no_result(change, raises, images) -> None:
    mapped = stored.Mapped(Path(images["folder"]), images["seal"])
    _ = mapped.train, mapped.validation
    lost = pytest.raises(worker.LostData, match=r"'train_images.npy' has changed")
    with lost, worker.whole(mapped):
        worker.check_images(mapped)
        change(Path(images["folder"], "train_images.npy"))
        if raises:
            raise ValueError("the loss is nan")


def test_images_that_are_removed_or_replaced_are_read_to_the_end(images) -> None:
    """A mapped file lives as long as it is mapped."""
    mapped = stored.Mapped(Path(images["folder"]), images["seal"])
    before = mapped.train[0][:]
    path = Path(images["folder"], "train_images.npy")
    path.unlink()
    np.save(path, np.zeros(3))
    with worker.whole(mapped):
        assert torch.equal(mapped.train[0][:], before)


def test_a_training_tells_no_epoch_of_changed_images(images, tmp_path, monkeypatch) -> None:
    """The network cuts the images off while it is trained."""
    (tmp_path / "cutting_models.py").write_text(
        "import os\nfrom torch import nn\n"
        "class Cut(nn.Module):\n"
        "    def forward(self, x):\n"
        "        if self.training:\n"
        f"            os.truncate({images['folder']!r} + '/train_images.npy', 65600)\n"
        "        return x\n"
        "def build(): return nn.Sequential(Cut(), nn.Flatten(), nn.Linear(256, 2))\n"
    )
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda *a, **k: None)
    recipe = {"model": "cutting_models:build", "width": None, "shape": [1, 16, 16], "classes": 2,
              "policy": "paper", "seed": 1}  # fmt: skip
    job = {"kind": "accuracy", "recipe": recipe, "pack": None, "check": False, "images": images,
           "epochs": 2, "batch_size": 32, "memory_format": "contiguous", "test": False,
           "score_last": False, "path": [str(tmp_path)]}  # fmt: skip
    told = []
    worker.serve(job, lambda event, **facts: told.append({"event": event, **facts}), None)
    assert [message["event"] for message in told] == ["built", "failed"]
    assert told[1]["kind"] == "lost_data" and "'train_images.npy' has changed" in told[1]["reason"]
