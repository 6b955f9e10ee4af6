"""YAML by the core schema of YAML 1.2 (yaml.org/spec/1.2.2, 10.3.2), with the line of everything that is read.

PyYAML itself goes by YAML 1.1, where ``on`` is true, ``1e-3`` is text, ``010`` is eight, and the later of two equal
names wins; here ``on`` is text, the others are numbers, and equal names are an error.
"""

from __future__ import annotations

import re
from typing import Any

from gpusim.errors import ModelError
from gpusim.model import validate

TAG = "tag:yaml.org,2002:"
_PLAIN = {
    "null": re.compile(r"(?:~|null|Null|NULL|)$"),
    "bool": re.compile(r"(?:true|True|TRUE|false|False|FALSE)$"),
    "int": re.compile(r"[-+]?[0-9]+$"),
    "float": re.compile(r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan)$"),
}
"""What text without quotes is; the first that fits."""
WIDTH = 110
MOST_NODES = 1_000_000
MOST_DEPTH = 100


class Entries(dict[Any, Any]):
    """A mapping with its line in the file, and those of its names."""

    line = 0
    lines: dict[Any, int]


class Items(list[Any]):
    """A list with its line, and those of its items."""

    line = 0
    lines: list[int]


class _Reader:
    """Makes plain values of the nodes of one file."""

    def __init__(self, yaml: Any, name: str) -> None:
        self._yaml, self._name = yaml, name
        self._open: list[int] = []
        self._count = 0

    def _at(self, node: Any) -> str:
        return f"{self._name} line {node.start_mark.line + 1}"

    def value(self, node: Any) -> Any:
        """A node with all that is in it."""
        self._count += 1
        if self._count > MOST_NODES:  # a few anchors in anchors can stand for billions
            rule = f"has more than {MOST_NODES} entries, with all that * repeats"
            raise validate.fail(self._at(node), rule, "split the diagram")
        if isinstance(node, self._yaml.ScalarNode):
            return self._scalar(node)
        if len(self._open) > MOST_DEPTH:
            raise validate.fail(self._at(node), f"is nested more than {MOST_DEPTH} deep", "split the diagram")
        if id(node) in self._open:
            raise validate.fail(self._at(node), "a part holds itself (by & and *)", "write the inner part out")
        self._open.append(id(node))
        made = self._entries(node) if isinstance(node, self._yaml.MappingNode) else self._items(node)
        self._open.pop()
        return made

    def _scalar(self, node: Any) -> Any:
        text = node.value
        kind = node.tag.removeprefix(TAG)
        if node.tag == "!" or node.style is not None:
            return text
        if kind not in (*_PLAIN, "str", "timestamp", "merge", "value") or not node.tag.startswith(TAG):
            raise validate.fail(self._at(node), f"the tag {node.tag!r} is unknown", "leave it out")
        found = next((name for name, form in _PLAIN.items() if form.match(text)), "str")
        made = {
            "null": lambda: None,
            "bool": lambda: text.lower() == "true",
            "int": lambda: int(text) if len(text) < 16 else float(text),  # more digits than a double has
            "float": lambda: float(text.lower().replace(".inf", "inf").replace(".nan", "nan")),
            "str": lambda: text,
        }
        return made[found]()

    def _entries(self, node: Any) -> Entries:
        out = Entries()
        out.line, out.lines = node.start_mark.line + 1, {}
        for key_node, value_node in node.value:
            key = self.value(key_node)
            if not isinstance(key, str):
                shown = key_node.value if isinstance(key_node, self._yaml.ScalarNode) else key
                raise validate.fail(self._at(key_node), f"the name {shown!r} is no text", "put it in quotes")
            if key in out:
                rule = f"there are two of the name '{key}', the first in line {out.lines[key]}"
                raise validate.fail(self._at(key_node), rule, "rename one")
            out.lines[key] = key_node.start_mark.line + 1
            out[key] = self.value(value_node)
        return out

    def _items(self, node: Any) -> Items:
        out = Items(self.value(item) for item in node.value)
        out.line, out.lines = node.start_mark.line + 1, [item.start_mark.line + 1 for item in node.value]
        return out


def parse(text: str, name: str) -> Any:
    """Plain values of a text: mappings as :class:`Entries`, lists as :class:`Items`.

    Args:
        text: of the file.
        name: of the file, for messages.

    Raises:
        ModelError: it is no YAML, has two equal names in a mapping, a part that holds itself, or unknown tags.
    """
    yaml = _library()
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{name} line {mark.line + 1}" if mark is not None else name
        why = getattr(error, "problem", None) or getattr(error, "reason", None) or "it can't be read"
        raise validate.fail(where, f"is no YAML ({why})", "correct it there, or in the line before") from None
    except RecursionError:
        raise validate.fail(name, "is nested too deeply", "give diagrams, blocks and wires") from None
    return None if node is None else _Reader(yaml, name).value(node)


def written(value: Any) -> str:
    """Plain values as text; the innermost lists and mappings in one line each."""
    yaml = _library()

    class Dumper(yaml.SafeDumper):  # type: ignore[misc, name-defined]
        """Text that any version of YAML reads as text."""

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            """Lists are indented below their names."""
            return super().increase_indent(flow, False)

        def ignore_aliases(self, data: Any) -> bool:
            """What is there twice is written twice."""
            return True

    Dumper.yaml_implicit_resolvers = {k: list(v) for k, v in yaml.SafeDumper.yaml_implicit_resolvers.items()}
    for kind in ("int", "float"):
        Dumper.add_implicit_resolver(TAG + kind, _PLAIN[kind], list("-+.0123456789"))
    made = yaml.dump(value, Dumper=Dumper, sort_keys=False, default_flow_style=None, width=WIDTH, allow_unicode=True)
    return str(made)


def _library() -> Any:
    """PyYAML, only where files are read or written."""
    try:
        import yaml
    except ImportError as error:
        raise ModelError(f"files of diagrams need PyYAML ({error}); install it: pip install pyyaml") from error
    return yaml
