"""The patterns that tests look for in messages."""

from __future__ import annotations

import pytest

from tests.message_snapshot import names


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("'a' mass -1", True),
        ("-1 mass", True),
        ("'b'", False),
        ("mas", False),
        ("1", False),
        ("0", False),
        ("x.y", True),
        ("y", True),
        ("5", False),
        ("", True),
    ],
)
def test_names_looks_for_whole_words_in_any_order(words: str, found: bool) -> None:
    assert names("body 'a': mass = -1 is below 0.5; write\nx.y", words) == found
