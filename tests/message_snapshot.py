"""What tests look for in messages."""

from __future__ import annotations

import re


def naming(words: str) -> str:
    """Return a pattern for `match=`: the message contains every one of the words, in any order."""
    return "(?s)^" + "".join(rf"(?=.*(?<![\w-])(?<!\d\.){re.escape(word)}(?!\w|\.\d))" for word in words.split())


def names(message: str, words: str) -> bool:
    """Return whether a message contains every one of the words."""
    return re.search(naming(words), message) is not None
