"""Image folders that stay in files: how long a start takes, and how much memory a search needs.

    ./dev bench folder [--names N] [--images N] [--side N] [--seconds S] [--folder DIR] [--json]
                       [--record]

Made-up JPEG files in ten classes or more lie in DIR, by default a temporary folder, and are linked
to as many names as wanted. `first` and `later` are seconds until `canvas.load_data` has N names,
without and with the index that a study keeps. `memory` is the largest sum of proportional set
sizes of a search of S seconds with two workers, `alone` that of the same search on 100 images.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

import harness
import numpy as np
import torch
from PIL import Image

from canvas.data import images_folder, keep_beside
from canvas.data.images import Requested
from canvas.data.images_folder import read_folder

CLASS = 1300  # names of a class, as ImageNet has them
PIXELS = 300  # side of the files
DIFFERENT = 200  # files that are really there
SEARCH = """
import sys
import canvas
from canvas.data import images_folder
images_folder.IN_MEMORY = 0
canvas.search(
    "bench_folder:small", "folder:" + sys.argv[1], budget="macs=0.5x", out=sys.argv[2],
    time_limit=float(sys.argv[3]), image_size=int(sys.argv[4]), workers=2, compile="no",
    pretests="no", latency="torch", progress="lines",
)
"""


def small(classes: int) -> torch.nn.Module:
    """A network whose activations are small beside the images."""
    layers: list[torch.nn.Module] = [torch.nn.Conv2d(3, 8, 7, 8), torch.nn.ReLU()]
    for _ in range(2):
        layers += [torch.nn.Conv2d(8, 8, 3, padding=1), torch.nn.ReLU()]
    layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(8, classes)]
    return torch.nn.Sequential(*layers)


def make(root: Path, count: int) -> None:
    """`count` names of images below `root`/train; nothing where they are there."""
    classes = max(10, -(-count // CLASS))
    each = count // classes
    random = np.random.default_rng(0)
    pool = root / "pool"
    pool.mkdir(parents=True, exist_ok=True)
    for i in range(DIFFERENT):
        coarse = random.integers(0, 256, (PIXELS // 10, PIXELS // 10, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((PIXELS, PIXELS)).save(pool / f"{i}.jpg", quality=85)
    for label in range(classes):
        folder = root / "train" / f"c{label:04}"
        folder.mkdir(parents=True, exist_ok=True)
        missing = set(range(each)) - {int(name[:-4]) for name in os.listdir(folder)}
        for i in missing:
            own = folder / f"{i}.jpg"
            first = pool / f"{label * each % DIFFERENT}.jpg" if i < 1 else folder / "0.jpg"
            if i < 1:
                own.write_bytes(first.read_bytes())
            else:
                os.link(first, own)
    for path, _, _ in os.walk(root):
        os.utime(path, (1e9, 1e9))  # long ago, as of a real folder


def start(root: Path, side: int, beside: Path) -> float:
    """Seconds until the images are there."""
    begun = time.monotonic()
    data = read_folder(f"folder:{root}", str(root), Requested(image_size=side, beside=beside))
    used = time.monotonic() - begun
    keep_beside(data, beside)
    return used


def memory(root: Path, out: Path, seconds: float, side: int) -> float:
    """MB that a search takes at most, with all its children."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", SEARCH, str(root), str(out), str(seconds), str(side)]
    most = 0.0
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as search:
        while search.poll() is None:
            most = max(most, sum(map(proportional, family(search.pid))))
            time.sleep(0.2)
        assert search.stderr is not None
        said = search.stderr.read()
    if search.returncode:
        sys.exit(f"the search failed:\n{said}")
    return most


def family(pid: int) -> list[int]:
    """A process and what descends from it."""
    found = [pid]
    for one in found:
        try:
            tasks = os.listdir(f"/proc/{one}/task")
            found += [
                int(child)
                for task in tasks
                for child in Path(f"/proc/{one}/task/{task}/children").read_text().split()
            ]
        except OSError:  # it has ended
            continue
    return found


def proportional(pid: int) -> float:
    """MB of a process; what it shares counts by how many share it."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    return next(int(line.split()[1]) / 1e3 for line in text.splitlines() if line[:4] == "Pss:")


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--names", type=int, default=1_300_000, metavar="N")
    parser.add_argument("--images", type=int, default=60_000, metavar="N")
    parser.add_argument("--side", type=int, default=224, metavar="N")
    parser.add_argument("--seconds", type=float, default=120, metavar="S")
    parser.add_argument("--folder", default=None, metavar="DIR")
    given = parser.parse_args()
    recorder = harness.Recorder("folder", given.record)
    place = tempfile.TemporaryDirectory() if given.folder is None else nullcontext(given.folder)
    with place as folder, tempfile.TemporaryDirectory() as kept:
        images_folder.IN_MEMORY = 0
        names, images, few = (Path(folder) / name for name in ("names", "images", "few"))
        for root, count in ((names, given.names), (images, given.images), (few, 100)):
            make(root, count)
        first, later = (start(names, given.side, Path(kept) / "index") for _ in range(2))
        used, alone = (
            memory(root, Path(kept) / root.name, given.seconds, given.side)
            for root in (images, few)
        )
    row = {"first": first, "later": later, "memory": used, "alone": alone}
    print(json.dumps(row) if given.json else line(given.names, given.images, row), flush=True)
    case = f"{given.names} names"
    recorder.add("folder", case, {"first": (first, "s"), "later": (later, "s")})
    case = f"{given.images} images of {given.side} pixels"
    recorder.add("folder", case, {"memory": (used, "MB"), "alone": (alone, "MB")})


def line(names: int, images: int, row: dict[str, float]) -> str:
    return (
        f"{names} names: {row['first']:.1f} s the first time, {row['later']:.1f} s later\n"
        f"{images} images: {row['memory']:.0f} MB, {row['alone']:.0f} MB with 100 of them"
    )


if __name__ == "__main__":
    harness.run(main)
