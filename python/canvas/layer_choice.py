"""Which layers of a network are replaced: one text that travels from the options of a command to
the conversion of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import CanvasError

POLICIES = ("paper", "spatial", "all")
UNEQUAL = ("gcd", "project", "skip")


@dataclass(frozen=True)
class LayerChoice:
    """The policy, and what else is replaced.  As text, `policy` with what differs from the
    defaults behind it: "paper linear=yes".
    """

    policy: str = "paper"
    linear: bool = False
    depthwise: bool = False
    unequal: str = "gcd"

    def __str__(self) -> str:
        words = [f"{name}=yes" for name in ("linear", "depthwise") if getattr(self, name)]
        words += [f"unequal={self.unequal}"] * (self.unequal != "gcd")
        return " ".join([self.policy, *words])

    @classmethod
    def parse(cls, text: str) -> LayerChoice:
        """Of its text; CanvasError for a word that is none of those known."""
        policy, *words = text.split() or [""]
        given = dict(word.split("=", 1) for word in words if "=" in word)
        return cls(
            policy,
            given.get("linear") == "yes",
            given.get("depthwise") == "yes",
            given.get("unequal", "gcd"),
        ).checked()

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> LayerChoice:
        """Of the options of a command or a study; an earlier version has fewer of them."""
        return cls(
            options["policy"],
            options.get("linear", "no") == "yes",
            options.get("depthwise", "no") == "yes",
            options.get("unequal", "gcd"),
        )

    def checked(self) -> LayerChoice:
        """Itself; CanvasError for a value that is none of those known."""
        for name, known in (("policy", POLICIES), ("unequal", UNEQUAL)):
            if getattr(self, name) not in known:
                raise CanvasError(
                    f"{name} '{getattr(self, name)}' is unknown, it is one of: {', '.join(known)}"
                )
        return self
