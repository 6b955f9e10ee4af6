"""Reader for SDF text: a tree of XML elements with line numbers, and checks of numbers, flags and poses."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from gpusim.errors import ModelError
from gpusim.input_files import bounded_bytes, is_xml_text
from gpusim.transform import Transform

UNLIMITED = 1e9
"""Limits of at least this value count as infinite. Files often contain 1e16 instead of no limit."""


@dataclass(eq=False)
class Node:
    """An XML element.

    Attributes:
        tag: name of the element in the file, with its namespace prefix.
        attrib: attributes.
        line: line number in the file.
        source: file or text, for messages.
        text: text before the first child.
        children: child elements, in the order of the file.
        folder: folder of the included file that contains the element, else None.
    """

    tag: str
    attrib: dict[str, str]
    line: int
    source: str
    text: str = ""
    children: list[Node] = field(default_factory=list)
    folder: Path | None = None

    def get(self, name: str, default: str = "") -> str:
        """Return an attribute."""
        return self.attrib.get(name, default)

    def all(self, *tags: str) -> list[Node]:
        """Return the children with one of the tags ``tags``."""
        return [child for child in self.children if child.tag in tags]

    def find(self, path: str) -> Node | None:
        """Return the first element at a path such as "surface/friction", or None."""
        tag, _, rest = path.partition("/")
        for child in self.children:
            if child.tag == tag:
                found = child.find(rest) if rest else child
                if found is not None:
                    return found
        return None

    def words(self, path: str) -> str:
        """Return the text at a path without leading and trailing spaces, or an empty text."""
        found = self.find(path)
        return "" if found is None else found.text.strip()

    def every(self, *tags: str) -> Iterator[Node]:
        """Yield all descendants with one of the tags ``tags``, at any depth."""
        for child in self.children:
            if child.tag in tags:
                yield child
            yield from child.every(*tags)

    @property
    def title(self) -> str:
        """Return the element's tag and name for messages, such as ``joint 'knee'``."""
        name = self.get("name")
        return f"{self.tag} {name!r}" if name else f"<{self.tag}>"

    def error(self, text: str) -> ModelError:
        """Return a ModelError whose message contains file and line."""
        return ModelError(" ".join(f"SDF {self.source} line {self.line}: {text}".split()))

    def number(self, path: str, default: float) -> float:
        """Return the number at a path, or ``default`` if the element is missing or empty."""
        found = self.find(path)
        if found is None or not found.text.strip():
            return default
        (value,) = found.numbers(1)
        return value

    def vector(self, path: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return ``len(default)`` numbers at a path, or ``default`` if the element is missing or empty."""
        found = self.find(path)
        return default if found is None or not found.text.strip() else found.numbers(len(default))

    def flag(self, path: str, default: bool = False) -> bool:
        """Return the boolean at a path, or ``default`` if the element is missing or empty."""
        text = self.words(path).lower()
        if text in ("", "true", "1", "false", "0"):
            return default if not text else text in ("true", "1")
        found = self.find(path) or self
        raise found.error(f'{self.title}: <{found.tag}> "{text[:40]}" is neither true nor false')

    def numbers(self, count: int, min_count: int | None = None) -> tuple[float, ...]:
        """Return the numbers in the text.

        The text must contain exactly ``count`` numbers, or, with ``min_count``, from ``min_count`` to ``count``
        numbers.

        Raises:
            ModelError: the text has a wrong number of words, or a word that is not a number.
        """
        words = self.text.replace(",", " ").split() if self.tag == "size" else self.text.split()
        try:
            values = tuple(float(word) for word in words)
        except ValueError:
            values = ()
        wrong = len(values) != count if min_count is None else not min_count <= len(values) <= count
        if wrong or any(map(math.isnan, values)):
            shown = " ".join(words)
            expected = "a number" if count == 1 else f"{count} numbers"
            raise self.error(f'<{self.tag}> "{shown[:40]}" must be {expected}')
        return values

    def pose(self) -> Transform:
        """Return the pose of a <pose> element."""
        if not self.text.strip():
            return Transform()
        if self.get("rotation_format") == "quat_xyzw":
            values = self.numbers(7)
            if not all(map(math.isfinite, values)) or not any(values[3:]):
                raise self.error(f'<pose> "{self.text.strip()[:60]}" must have a quaternion (x, y, z, w) that is not 0')
            return Transform(values[:3], values[3:])
        values = self.numbers(6)
        if not all(map(math.isfinite, values)):
            raise self.error(f'<pose> "{self.text.strip()[:60]}" must be finite')
        scale = math.pi / 180.0 if self.get("degrees") in ("true", "1") else 1.0
        return Transform.from_rpy(values[:3], [scale * angle for angle in values[3:]])


def read_sdf(path_or_text: str | os.PathLike[str], name: str | os.PathLike[str] = "") -> Node:
    """Return the <sdf> element of a file or of text that starts with "<". Messages show ``name`` instead of the path.

    Raises:
        ModelError: the file is missing, is not XML, or has no <sdf>.
    """
    if is_xml_text(path_or_text):
        source, content, encoding = (
            "text",
            str(path_or_text).lstrip("\ufeff \t\r\n").encode("utf-8", "replace"),
            "utf-8",
        )
    else:
        source, encoding = f"file {os.fspath(name or path_or_text)!r}", ""
        try:
            content = bounded_bytes(path_or_text).lstrip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ModelError(f"SDF {source}: cannot be read ({reason}); check the path") from None
    root = _parsed(content, encoding, source)
    if root.tag != "sdf":
        hint = {"robot": "this is URDF; use load_urdf", "mujoco": "this is MJCF; use load_mjcf"}.get(root.tag)
        raise root.error(
            f"the outermost element is <{root.tag}>, but an SDF file contains one <sdf>; {hint or 'give one'}"
        )
    return root


def _parsed(content: bytes, encoding: str, source: str) -> Node:
    parser = expat.ParserCreate(encoding or None)
    top = Node("", {}, 0, source)
    stack = [top]

    def start(tag: str, attrib: dict[str, str]) -> None:
        node = Node(tag, attrib, parser.CurrentLineNumber, source)
        stack[-1].children.append(node)
        stack.append(node)

    def end(tag: str) -> None:
        stack.pop()

    def text(data: str) -> None:
        if not stack[-1].children:
            stack[-1].text += data

    def entity(*_: object) -> None:  # entities can expand to any size
        raise ModelError(f"SDF {source} line {parser.CurrentLineNumber}: has an XML entity; write its text instead")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.EntityDeclHandler = text, entity
    parser.buffer_text = True
    try:
        parser.Parse(content, True)
    except expat.ExpatError as error:
        reason = expat.errors.messages[error.code]
        raise ModelError(
            f"SDF {source} line {error.lineno}: not well-formed XML ({reason}); fix the text there"
        ) from None
    return top.children[0]
