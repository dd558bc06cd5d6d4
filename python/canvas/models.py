"""The networks that a search knows by name, to be built by hand: `canvas.models.resnet8(...)`."""

from .nn.built_in import BUILT_IN, BasicBlock, ResNet, resnet8, resnet18
from .nn.load_model import check_model, load_model

__all__ = [
    "BUILT_IN",
    "BasicBlock",
    "ResNet",
    "check_model",
    "load_model",
    "resnet8",
    "resnet18",
]
