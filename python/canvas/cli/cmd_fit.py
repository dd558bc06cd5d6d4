"""canvas fit: start from a trained network, fit operators to its layers, choose one for each."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import CanvasError
from ..fit_options import FIT_BY_NAME, FIT_OPTIONS, read_fit_options
from ..reporting.displays import WAYS, make_display, wanted_way
from .command import Parser, add_options, end_by_sigterm_too, find_models_here, need_torch

if TYPE_CHECKING:
    from torch import nn

    from ..data import Data
    from ..reporting.progress import Display


def run(words: list[str]) -> int:
    begun = time.monotonic()
    given = vars(parser().parse_args(words))
    out, fresh, progress = given.pop("out"), given.pop("fresh"), given.pop("progress")
    options = read_fit_options(given)
    for name in ("model", "data"):
        if options[name] is None:
            raise CanvasError(f"a fit needs {FIT_BY_NAME[name].flag} {FIT_BY_NAME[name].metavar}")
    with need_torch("fit"):
        from ..data import load_data
        from ..data.readers import image_options
        from ..fitting.fit import fit_into, study_of
        from ..runner.driver import study_folder
    find_models_here(options["model"])
    end_by_sigterm_too()
    images = load_data(options["data"], **image_options(options))
    folder = study_folder(out, None, {**options, "model": f"fit-{options['model']}"})
    title = f"{options['model']} on {images.name}"
    display = make_display(wanted_way(progress), None, title, options["time_limit"], begun)
    with study_of(folder, fresh) as study:
        network = teacher_of(options, images, study.folder, display)
        found = fit_into(study, network, images, options, display, begun)
    print(found.report)
    print(f"The table is in '{folder / 'pareto.csv'}', the network of each budget beside it.")
    return 0 if found.report.chosen else 1


def parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="canvas fit",
        example="canvas fit --model resnet8 --weights resnet8.pt --data digits-scattered "
        "--budget latency=0.6x --budget macs=0.3x",
        description="Make a trained network faster. Operators are fitted to single layers of the\n"
        "network: well-known ones and drawn kernels, at several sizes. For each budget an\n"
        "integer program chooses one operator per layer; the network is then tuned by\n"
        "distillation. The table compares it with your network, with the same procedure\n"
        "restricted to known operators, and with one known operator everywhere.\n"
        "The same command continues an interrupted fit.",
        epilog="Progress goes to standard error, conclusion and table to standard output. Exit\n"
        "codes: 0, 1 if nothing was found, 2 for bad input, 130 after Ctrl-C (what is done is\n"
        "kept).",
    )
    add_options(parser, FIT_OPTIONS)
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the study (default: canvas-runs/fit-MODEL-DATA)"
    )
    parser.add_argument("--fresh", action="store_true", help="start over: remove the study in DIR")
    parser.add_argument(
        "--progress",
        choices=WAYS,
        help="live: a table if standard error is a terminal, otherwise lines; off: only the "
        "result (default: CANVAS_PROGRESS, or live)",
    )
    return parser


def teacher_of(options: dict[str, Any], images: Data, folder: Path, display: Display) -> nn.Module:
    """The network with the weights of the user's file, or trained here, an epoch at a time so
    that a kill costs no more than one.
    """
    from ..nn.network import Recipe, build_network
    from ..study import TEACHER
    from ..training.kept import Kept
    from ..training.train import NotFinite, Training
    from ..training.weights_file import load_weights

    recipe = Recipe(
        options["model"], options["width"], images.shape, images.classes, options["policy"],
        options["seed"],
    )  # fmt: skip
    network = build_network(recipe)
    if options["weights"] is not None:
        return load_weights(network, options["weights"])
    epochs = options["teacher_epochs"]
    facts = {"recipe": recipe.to_json(), "epochs": epochs, "images": images.checksum}
    kept = Kept(folder / TEACHER, facts)
    training = Training(network, images, epochs, options["seed"])
    kept.restore(training, epochs + 1)
    if training.done < epochs:
        display.phase(f"teacher: {epochs} epochs, as no --weights are given", epochs)
    try:
        while training.done < epochs:
            epoch = training.epoch()
            kept.store(training)
            name = f"teacher, epoch {epoch.number + 1}"
            display.started(name, 1)
            display.ended(name)
            display.line(f"{name} of {epochs}: {100 * epoch.accuracy:.1f} % on validation")
    except NotFinite as error:
        raise CanvasError(f"the network cannot be trained: {error}") from None
    return network
