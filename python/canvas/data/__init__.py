"""The images that a search trains on: readers by name, three splits, augmentation."""

from .batches import NamedSource, Source
from .readers import DATA_HELP, READERS, SPLITS, Data, as_data, data_from, load_data, load_images
from .stored import Mapped
from .streamed import LoaderFailed, Streamed, stream, streamed

__all__ = [
    "DATA_HELP",
    "READERS",
    "SPLITS",
    "Data",
    "LoaderFailed",
    "Mapped",
    "NamedSource",
    "Source",
    "Streamed",
    "as_data",
    "data_from",
    "load_data",
    "load_images",
    "stream",
    "streamed",
]
