"""Reader that turns URDF text into a reduced XML tree with the elements that the importer uses.

yourdfpy fills gaps with guesses (an inertia of 1 kg m2, for example) and raises tracebacks on other errors. The
importer therefore checks the specification first and reports the line in the file.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpusim.errors import ModelError

Element = Any  # lxml.etree._Element. lxml comes with yourdfpy, an optional dependency.


@dataclass
class Source:
    """Source of the text, named at the start of every message."""

    name: str

    def error(self, text: str, element: Element | None = None) -> ModelError:
        """Return the error to raise, with file, line and ``text``."""
        line = f" line {element.sourceline}" if element is not None and element.sourceline else ""
        # Keep the message on one line, whatever the file or the XML parser contains.
        return ModelError(" ".join(f"URDF {self.name}{line}: {text}".split()))


@dataclass
class Document:
    """A checked document.

    Attributes:
        source: source of the text.
        robot: the <robot> element, reduced to what the importer reads.
        warnings: one sentence for every filled gap.
        ignored: element name -> number of dropped elements.
        collisions: (<link>, <collision>) as in the file.
        visuals: (<link>, <visual>) as in the file.
        materials: <material> elements of the robot.
    """

    source: Source
    robot: Element
    warnings: list[str] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    collisions: list[tuple[Element, Element]] = field(default_factory=list)
    visuals: list[tuple[Element, Element]] = field(default_factory=list)
    materials: list[Element] = field(default_factory=list)


def read_document(path_or_text: str | os.PathLike[str]) -> Document:
    """Read a URDF file or URDF text (a string that starts with "<") and reduce it to <link> and <joint> elements.

    Raises:
        ModelError: no such file, not XML, a xacro template, or no <robot> with links.
    """
    root, source, warnings = _parse(path_or_text)
    _refuse_templates(root, source)
    tag = _local(root)
    if tag != "robot":
        hint = {"sdf": "convert the SDF file to URDF", "mujoco": "this is MJCF, not URDF"}.get(tag, "give a URDF file")
        raise source.error(f"the outermost element is <{tag}>, but a URDF file holds one <robot>; {hint}", root)
    document = Document(source, root, warnings)
    _reduce(document)
    if root.find("link") is None:
        raise source.error('<robot> has no <link>; add at least one, such as <link name="base"/>', root)
    if not root.get("name"):
        document.warnings.append("<robot> has no name; 'robot' put instead")
        root.set("name", "robot")
    return document


# The declared XML version, unless it is 1.x, which parsers accept.
_VERSION = re.compile(rb"""(?<=<\?xml)(\s+version\s*=\s*)["'](?!1\.\d+["'])([^"'<>]{0,20})["']""")


def _parse(path_or_text: str | os.PathLike[str]) -> tuple[Element, Source, list[str]]:
    """Return the outermost element, its source, and warnings."""
    from lxml import etree

    text = path_or_text.lstrip("\ufeff \t\r\n") if isinstance(path_or_text, str) else ""
    # A robot file needs neither entities nor network access.
    options: dict[str, Any] = {"resolve_entities": False, "no_network": True, "remove_comments": True}
    if text.startswith("<"):
        source = Source("text")
        # The text is already decoded, so ignore its declared encoding.
        content, parser = text.encode("utf-8", "surrogatepass"), etree.XMLParser(encoding="utf-8", **options)
    else:
        source = Source(f"file {os.fspath(path_or_text)!r}")
        content, parser = _read_file(path_or_text, source), etree.XMLParser(**options)
    version, warnings = _VERSION.search(content, 0, 100), []
    if version is not None:
        content = _VERSION.sub(rb'\1"1.0"', content, count=1)
        warnings.append(f'there is no XML version "{version.group(2).decode(errors="replace")}"; read as 1.0')
    try:
        return etree.fromstring(content, parser), source, warnings
    except etree.XMLSyntaxError as error:
        raise source.error(f"not well-formed XML ({error.msg}); fix the text there") from None


def _read_file(path: str | os.PathLike[str], source: Source) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise source.error("no such file; check the path, or give URDF text that starts with '<'") from None
    except IsADirectoryError:
        raise source.error("this is a folder; give the .urdf file in it") from None
    except (OSError, ValueError) as error:  # ValueError for a NUL byte in the name
        reason = getattr(error, "strerror", None) or error
        raise source.error(f"cannot be read ({reason}); check the path and its permissions") from None


def _local(element: Element) -> str:
    """Return the element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _refuse_templates(root: Element, source: Source) -> None:
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        if "xacro" in element.tag.partition("}")[0] or any("${" in str(value) for value in element.attrib.values()):
            raise source.error(
                f"<{_local(element)}> belongs to a xacro template; expand it first: xacro robot.xacro > robot.urdf",
                element,
            )


# Children to keep for each element. Collisions and visuals are kept separately. Sensors and plugins are not read.
_KEPT: dict[str, tuple[str, ...]] = {
    "robot": ("link", "joint"),
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
# Known URDF elements that are dropped without a warning.
_SILENT = {"material", "calibration", "safety_controller"}


def _reduce(document: Document) -> None:
    from lxml import etree

    # A document-wide xmlns puts every tag into that namespace. Tags from other namespaces are extensions.
    space = str(document.robot.tag).rpartition("}")[0]

    def visit(element: Element) -> None:
        element.tag = _local(element)
        kept = _KEPT.get(element.tag, ())
        for child in list(element):
            if not isinstance(child.tag, str):  # a processing instruction or an entity
                element.remove(child)
                continue
            name = _local(child)
            if name in kept and child.tag.rpartition("}")[0] == space:
                visit(child)
                continue
            element.remove(child)
            if name in ("collision", "visual") and element.tag == "link":
                (document.collisions if name == "collision" else document.visuals).append((element, child))
                continue
            if name == "material" and element.tag == "robot":
                document.materials.append(child)
            if name not in _SILENT and element.tag in _KEPT:
                document.ignored[name] += 1

    visit(document.robot)
    etree.cleanup_namespaces(document.robot)  # otherwise serializing restores that namespace
    _refuse_doubles(document)


def _refuse_doubles(document: Document) -> None:
    single = {"inertial", "origin", "mass", "inertia", "parent", "child", "limit", "dynamics", "mimic"}
    for element in document.robot.iter():
        repeated = element.findall("axis")[1:]
        for axis in repeated:
            element.remove(axis)
        if repeated:
            text = f"has {len(repeated) + 1} <axis>; the first counts"
            document.warnings.append(f"{title(element)} {text}")
        for name, number in Counter(child.tag for child in element).items():
            if name in single and number > 1:
                raise document.source.error(f"{title(element)} has {number} <{name}>; keep one", element)


def title(element: Element) -> str:
    """Return the name of an element for messages: ``joint 'elbow'``, or its tag if it has no name."""
    if element.get("name"):
        return f"{element.tag} {element.get('name')!r}"
    parent = element.getparent()
    inside = f" of {title(parent)}" if parent is not None and parent.tag != "robot" else ""
    return f"<{element.tag}>{inside}"
