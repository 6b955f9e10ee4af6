"""Help texts for keys and mouse. The F1 overlay and the panel show the help texts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class KeyLine:
    """Help line for keys or for a mouse action.

    Attributes:
        keys: displayed names of the keys, e.g. "Shift+R".
        what: action of the keys, or the command that the keys change.
    """

    keys: str
    what: str


@dataclass(frozen=True)
class KeyGroup:
    """Group of key lines with a title."""

    title: str
    lines: Sequence[KeyLine]


class KeyUser(Protocol):
    """Protocol of an object that handles keys before the window, such as the operator or the panel."""

    def key_groups(self) -> list[KeyGroup]:
        """Return the help texts for the object's keys."""

    def used_keys(self) -> Collection[str]:
        """Return the keys that this object uses, with the window's key names.

        The window gets these keys only together with Ctrl.
        """


def key_display_name(key: str) -> str:
    """Return a key's display name: "Space", "R", "[", "Num 4" for "kp_4", "Page up" for "page_up"."""
    return key.lower().replace("kp_", "num ").replace("_", " ").capitalize()


def window_key(key: str, shift: bool = False, taken: Collection[str] = ()) -> str:
    """Return the display name of a window key, e.g. "Shift+R".

    If the operator or the panel uses the key, the name starts with Ctrl.
    """
    return ("Ctrl+" if key in taken else "") + ("Shift+" if shift else "") + key_display_name(key)
