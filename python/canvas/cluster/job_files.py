"""Files that a job reads or leaves, which lie with the driver and are copied to a node and back.

A job names a file by its path.  On a node it gets the path of a copy there, and what it wrote
comes back with its last word.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

READ = ("kept", "layer", "teacher")  # words that are the path of a file that a job reads
READ_EACH = "weights"  # a word that has such a path for each layer
WRITTEN = ("kept", "layer", "result")  # words that are the path of a file that a job may write

Words = dict[str, Any]


def paths_of(words: Mapping[str, Any]) -> Iterator[Path]:
    """The files that a job may read."""
    yield from (Path(words[key]) for key in READ if words.get(key))
    yield from (Path(path) for path in (words.get(READ_EACH) or {}).values() if path)


def contents_of(words: Mapping[str, Any]) -> dict[str, bytes]:
    """The files that there are, by path."""
    found = {}
    for path in paths_of(words):
        try:
            found[str(path)] = path.read_bytes()
        except OSError:
            continue  # the job copes without it
    return found


def digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def replaced(words: Mapping[str, Any], copies: Mapping[str, str]) -> Words:
    """The words with the copies' paths in the place of the paths that the driver has."""
    changed: Words = dict(words)
    for key in {*READ, *WRITTEN}:
        if words.get(key):
            changed[key] = copies[words[key]]
    if words.get(READ_EACH):
        changed[READ_EACH] = {
            layer: copies.get(path, "") for layer, path in words[READ_EACH].items()
        }
    return changed
