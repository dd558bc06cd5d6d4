"""The images that a search trains on: readers by name, three splits, augmentation."""

from .readers import DATA_HELP, READERS, SPLITS, Data, as_data, data_from, load_data, load_images
from .stored import Mapped

__all__ = [
    "DATA_HELP",
    "READERS",
    "SPLITS",
    "Data",
    "Mapped",
    "as_data",
    "data_from",
    "load_data",
    "load_images",
]
