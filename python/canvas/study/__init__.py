"""A study: all that a search or a fit did, in one SQLite file; only this package speaks SQL.

schema -> examine -> store -> queries -> records
tables, what is checked first, the file, what is read, what is written
"""

from .model_record import other_network
from .outputs import (
    FILE,
    FIND_FILES,
    KEPT,
    LOOPS,
    REPORT,
    TEACHER,
    WEIGHTS_NAME,
    forget_kept,
    keeps,
    kept_file,
    layer_file,
    remove_kept,
    weights_file,
)
from .queries import CLASSIFICATION, final_epochs
from .records import Study
from .rows import (
    ENDED,
    FIRST,
    SECOND,
    TRIED,
    WHOLE,
    Audited,
    Candidate,
    Final,
    FittedItem,
    Item,
    ScreenedKernel,
    Timing,
)
from .schema import VERSION
from .spent import Spent, spent
from .store import is_running, writing

__all__ = [
    "CLASSIFICATION",
    "ENDED",
    "FILE",
    "FIND_FILES",
    "FIRST",
    "KEPT",
    "LOOPS",
    "REPORT",
    "SECOND",
    "TEACHER",
    "TRIED",
    "VERSION",
    "WEIGHTS_NAME",
    "WHOLE",
    "Audited",
    "Candidate",
    "Final",
    "FittedItem",
    "Item",
    "ScreenedKernel",
    "Spent",
    "Study",
    "Timing",
    "final_epochs",
    "forget_kept",
    "is_running",
    "keeps",
    "kept_file",
    "layer_file",
    "other_network",
    "remove_kept",
    "spent",
    "weights_file",
    "writing",
]
