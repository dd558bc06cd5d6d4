"""The images that a search trains on: readers by name, three splits, augmentation."""

from .batches import DataFailed, NamedSource, Source
from .images_folder import keep_beside, unreadable
from .readers import DATA_HELP, READERS, SPLITS, Data, as_data, data_from, load_data, load_images
from .remarks import Remarks
from .resident import resident
from .stored import Mapped
from .streamed import Streamed, stream, streamed

__all__ = [
    "DATA_HELP",
    "READERS",
    "SPLITS",
    "Data",
    "DataFailed",
    "Mapped",
    "NamedSource",
    "Remarks",
    "Source",
    "Streamed",
    "as_data",
    "data_from",
    "keep_beside",
    "load_data",
    "load_images",
    "resident",
    "stream",
    "streamed",
    "unreadable",
]
