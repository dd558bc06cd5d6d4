"""Whether a network is still the one that a study began with; nn/behaviour.py makes the record."""

from __future__ import annotations

from ..options import json_object

TOLERANCE = 1e-3  # of the largest answer: other processors round otherwise, by far less


def other_network(recorded: str, now: str) -> str:
    """How the network of `now` differs from the recorded one; "" where it does not, and where
    nothing is recorded.
    """
    if not recorded or not now:
        return ""
    old, new = json_object(recorded), json_object(now)
    if old.get("structure") != new.get("structure"):
        return "its layers are others"
    was, is_now = old.get("answers") or [], new.get("answers") or []
    if not was or not is_now:
        return ""  # it answers otherwise each time that it is built
    near = TOLERANCE * max(map(abs, was))
    if len(was) != len(is_now) or any(abs(a - b) > near for a, b in zip(was, is_now)):
        return "its answers are others"
    return ""
