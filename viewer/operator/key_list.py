"""What keys and mouse do, in words: one list for F1 and for the panel, told by those who act on them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class KeyLine:
    """What some keys, or a part of the mouse, do.

    Attributes:
        keys: as a person reads them, e.g. "Shift+R".
        what: they do, or the command that they drive.
    """

    keys: str
    what: str


@dataclass(frozen=True)
class KeyGroup:
    """Lines that belong together, under a title."""

    title: str
    lines: Sequence[KeyLine]


class KeyUser(Protocol):
    """Who has keys before the window: the operator, the panel."""

    def key_groups(self) -> list[KeyGroup]:
        """What they do."""

    def taken_keys(self) -> Collection[str]:
        """Names (the window's) of keys that never reach the window, but with Ctrl."""


def key_words(key: str) -> str:
    """A key's name for people: "Space", "R", "[", "Num 4" of "kp_4", "Page up" of "page_up"."""
    return key.lower().replace("kp_", "num ").replace("_", " ").capitalize()


def window_key(key: str, shift: bool = False, taken: Collection[str] = ()) -> str:
    """A key of the window for people, e.g. "Shift+R"; with Ctrl where others have taken the key."""
    return ("Ctrl+" if key in taken else "") + ("Shift+" if shift else "") + key_words(key)
