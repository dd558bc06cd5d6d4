"""`canvas fit`: the data and the network by name, its weights from a file or trained here."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from torch import nn

from ..data import Data, load_data
from ..data.readers import image_options
from ..errors import CanvasError
from ..nn.network import Recipe, build_network
from ..reporting.displays import make_display
from ..reporting.progress import Display
from ..reporting.report import Report
from ..study import TEACHER
from ..training.kept import Kept
from ..training.train import NotFinite, Training
from ..training.weights_file import load_weights
from .fit import fit_into, study_of


def fit_model(options: dict[str, Any], folder: Path, fresh: bool, progress: str) -> Report:
    """A fit in `folder` with the options of `canvas fit`; `progress` is a way of displays.py."""
    begun = time.monotonic()
    images = load_data(options["data"], **image_options(options))
    title = f"{options['model']} on {images.name}"
    display = make_display(progress, None, title, options["time_limit"], begun)
    with study_of(folder, fresh) as study:
        try:
            network = teacher_of(options, images, study.folder, display)
        except KeyboardInterrupt:
            display.close()
            display.farewell("stopped while the teacher was trained: the same command goes on")
            raise
        finally:
            display.close()
        display = make_display(progress, None, title, options["time_limit"], begun)
        return fit_into(study, network, images, options, display, begun).report


def teacher_of(options: dict[str, Any], images: Data, folder: Path, display: Display) -> nn.Module:
    """The network with the weights of the user's file, or trained here, an epoch at a time so
    that a kill costs no more than one.
    """
    recipe = Recipe(
        options["model"], options["width"], images.shape, images.classes, options["policy"],
        options["seed"],
    )  # fmt: skip
    network = build_network(recipe)
    if options["weights"] is not None:
        return load_weights(network, options["weights"])
    epochs = options["teacher_epochs"]
    words = {**recipe.to_json(), "shape": list(recipe.shape)}  # as JSON has it
    facts = {"recipe": words, "epochs": epochs, "images": images.checksum}
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
