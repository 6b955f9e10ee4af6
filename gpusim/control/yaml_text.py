"""Reader and writer of YAML 1.2."""

from __future__ import annotations

import io
import re
from typing import Any

from gpusim import validate

MAX_ENTRIES = 1_000_000
MAX_DEPTH = 100


# Pattern of a message of the parser, the message in plain words, and the fix. All other messages remain unchanged.
_PLAIN = (
    (r"expected <block end>, but found '(-|<block sequence start>)'", "the '- ' is not below that of the other entries",
     "indent all entries of a list alike"),
    (r"expected <block end>, but found .*", "the indent does not fit the lines before",
     "indent it like the lines before, or begin an entry of a list with '- '"),
    (r"found character '\\t' .*", "the line has a tab", "indent with spaces"),
    (r"mapping values are not allowed here", "a ':' is not allowed here",
     "add the ':' that the line before lacks, or quote the text"),
    (r"could not find expected ':'", "a ':' is missing", "add it, here or in the line before"),
    (r"expected ',' or '([\]}])', but got '(.*)'", r"it has '\2' where '\1' or ',' must be", "close the bracket"),
    (r'found duplicate key "(.*)"', r"it has '\1' twice", "remove one of them"),
)  # fmt: skip


def _plain(why: str) -> tuple[str, str]:
    """Describe an error of the YAML parser in plain words, and how to fix it."""
    for pattern, words, fix in _PLAIN:
        if match := re.fullmatch(pattern, why):
            return match.expand(words), fix
    return why, "correct it there, or in the line before"


def parse(text: str, name: str) -> Any:
    """Parse YAML text to plain numbers, texts, dicts and lists. :func:`line` returns the line of a dict or list.

    Args:
        text: contents of the file.
        name: name of the file, for messages.

    Raises:
        ModelError: the text is not valid YAML, has unknown tags or repeated names in a mapping, or is too large.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import RoundTripConstructor, SafeConstructor
    from ruamel.yaml.error import YAMLError

    class Constructor(RoundTripConstructor):
        """Constructor that returns plain Python values, reads dates as text, and raises an error for unknown tags."""

    for tag in ("null", "bool", "int", "float", "str", "timestamp", "value"):
        kind = "str" if tag in ("timestamp", "value") else tag
        Constructor.add_constructor(f"tag:yaml.org,2002:{tag}", getattr(SafeConstructor, f"construct_yaml_{kind}"))
    Constructor.add_constructor(None, SafeConstructor.construct_undefined)
    yaml = YAML(pure=True)
    yaml.Constructor, yaml.composer.warn_double_anchors = Constructor, False
    try:
        found = yaml.load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name} line {mark.line + 1}" if mark is not None else name
        why = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be read")
        why = why.partition(" with value ")[0]  # the message for equal names repeats a long value
        words, fix = _plain(why)
        raise validate.fail(where, f"is not valid YAML ({words})", fix) from None
    except (ValueError, KeyError):
        raise validate.fail(name, "has a number or a tag that can't be read", "give fewer digits and no tags") from None
    except RecursionError:
        raise validate.fail(name, "is nested too deeply", "use fewer levels") from None
    count, depth = _size(found, name, {})
    if depth > MAX_DEPTH:
        raise validate.fail(name, "is nested too deeply", "use fewer levels")
    if count > MAX_ENTRIES:  # nested anchors can represent billions of entries
        rule = f"has more than {MAX_ENTRIES} entries, including those that * repeats"
        raise validate.fail(name, rule, "split the file")
    return found


def _size(found: Any, name: str, known: dict[int, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of entries in a value, and its nesting depth. Each use of a YAML anchor counts."""
    if not isinstance(found, dict | list):
        return 1, 0
    if id(found) not in known:
        for key in found if isinstance(found, dict) else ():
            if not isinstance(key, str):
                rule = f"the name {key!r} is not text"
                raise validate.fail(f"{name} line {line(found, key)}", rule, "put it in quotes")
        inner = [_size(item, name, known) for item in (found.values() if isinstance(found, dict) else found)]
        known[id(found)] = 1 + sum(count for count, _ in inner), 1 + max((depth for _, depth in inner), default=0)
    return known[id(found)]


def line(found: Any, key: Any = None) -> int:
    """Return the line in the file at which a mapping, a list or an entry starts."""
    if not hasattr(found, "lc"):
        return 0
    return int((found.lc.data or {}).get(key, (found.lc.line,))[0]) + 1


def written(value: Any) -> str:
    """Return plain values as YAML text. Each innermost list or mapping is on one line."""
    from ruamel.yaml import YAML

    yaml: Any = YAML(typ="safe", pure=True)
    yaml.default_flow_style, yaml.width, yaml.sort_base_mapping_type_on_output = None, 110, False
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.ignore_aliases = lambda data: True
    stream = io.StringIO()
    yaml.dump(value, stream)
    return stream.getvalue()
