"""Tuners and what they call after each batch."""

from . import callback
from .ga_tuner import GATuner
from .tuner import GridSearchTuner, RandomTuner, Tuner, XGBTuner

__all__ = ["GATuner", "GridSearchTuner", "RandomTuner", "Tuner", "XGBTuner", "callback"]
