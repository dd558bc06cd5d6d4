"""Long trainings of unchanged networks: the teachers of the fits.

    ./dev bench teacher [--data NAME] [--model NAME] [--width N] [--epochs E] [--seed S]
                        [--out FILE] [--json] [--record]

FILE gets the weights of the epoch that is best on validation; `canvas.load_weights` reads it. The
training itself, with a checkpoint per epoch and its log, is in the folder of the same name without
the suffix. After a kill, the same command continues after the last complete epoch; once the
training is complete, it only prints the result. The images are augmented as their reader says
(docs/images.md): photographs are normalised, flipped and shifted.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import harness

import canvas
from canvas.data import Data
from canvas.deploy import setting, trainer
from canvas.training import checkpoint

SEED = 1


def short_name(data: Data) -> str:
    """The name of the images, of a folder its last part."""
    return Path(data.name).name


def place(data: Data, model: str, width: int, epochs: int) -> Path:
    """Where the weights of a teacher are kept by default."""
    name = f"{short_name(data)}-{model}-{width}-{epochs}.safetensors"
    return harness.ROOT / "build" / "bench-teacher" / name


def trained(
    data: Data, model: str, width: int, epochs: int, file: Path, seed: int = SEED
) -> trainer.Trained:
    """The training of `file`, from its last complete epoch on; `file` gets the best weights."""
    if file.suffix != ".safetensors":
        sys.exit(f"'{file}' must end in .safetensors: name the teacher's file so")
    folder = file.with_suffix("")
    ended = trainer.train_network(
        "baseline",
        data=data,
        model=model,
        width=width,
        epochs=epochs,
        seed=seed,
        out=folder,
        resume=(folder / setting.STATE).exists(),
        device="cpu",
        threads=1,
    )
    checkpoint.write(file, *checkpoint.read(folder / trainer.BEST))
    return ended


def main() -> None:
    parser = harness.parser(__doc__)
    parser.add_argument("--data", default="digits-scattered", metavar="NAME")
    parser.add_argument("--model", default="resnet18", metavar="NAME")
    parser.add_argument("--width", type=int, default=32, metavar="N")
    parser.add_argument("--epochs", type=int, default=16, metavar="E")
    parser.add_argument("--seed", type=int, default=SEED, metavar="S")
    parser.add_argument("--out", default=None, metavar="FILE")
    given = parser.parse_args()
    recorder = harness.Recorder("teacher", given.record)
    what = (canvas.load_data(given.data), given.model, given.width, given.epochs)
    file = Path(given.out or place(*what))
    ended = trained(*what, file, seed=given.seed)
    row = {
        "test": 100 * ended.test_accuracy,
        "error": 100 * ended.standard_error,
        "validation": 100 * ended.val_accuracy,
        "epoch": ended.epoch,
    }
    print(json.dumps(row) if given.json else f"{ended}\nThe weights are in '{file}'.", flush=True)
    values = {"test": (row["test"], "%"), "validation": (row["validation"], "%")}
    case = f"{short_name(what[0])} {given.model} width {given.width}, {given.epochs} epochs"
    recorder.add("teacher", case, values, {"test": row["error"]}, seed=given.seed)


if __name__ == "__main__":
    harness.run(main)
