"""A study: everything that a search did, in one SQLite file; only this package speaks SQL.

schema -> store -> queries -> records      tables, the file, what is read, what is written
"""

from .model_record import other_network
from .queries import final_epochs
from .records import Study
from .rows import ENDED, FIRST, SECOND, TRIED, WHOLE, Audited, Candidate, Final, Item, Timing
from .schema import VERSION
from .store import FILE, kept_file, remove_kept, writing

__all__ = [
    "ENDED",
    "FILE",
    "FIRST",
    "SECOND",
    "TRIED",
    "VERSION",
    "WHOLE",
    "Audited",
    "Candidate",
    "Final",
    "Item",
    "Study",
    "Timing",
    "final_epochs",
    "kept_file",
    "other_network",
    "remove_kept",
    "writing",
]
