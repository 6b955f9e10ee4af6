"""Reader for URDF text. The result is an XML tree with only the elements that the importer uses."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from gpusim.errors import ModelError
from gpusim.input_files import bounded_bytes

Element = Any  # lxml.etree._Element. lxml comes with yourdfpy, an optional dependency.


@dataclass
class Source:
    """Name and format of the URDF text. Messages start with the format and the name."""

    name: str
    form: str = "URDF"

    def error(self, text: str, element: Element | None = None) -> ModelError:
        """Return a ModelError whose message contains file, line and ``text``."""
        line = f" line {element.sourceline}" if element is not None and element.sourceline else ""
        # keeps the message on one line
        return ModelError(" ".join(f"{self.form} {self.name}{line}: {text}".split()))


@dataclass
class Document:
    """A checked document.

    Attributes:
        source: source of the text.
        robot: the <robot> element, with only the elements that the importer reads.
        warnings: pairs (sentence, severity).
        ignored: element name -> number of dropped elements.
        collisions: pairs (<link>, <collision>) as in the file.
        visuals: pairs (<link>, <visual>) as in the file.
        materials: <material> elements of the robot.
        link_labels, joint_labels: name in the file -> label in the model.
        extras: pairs (owner, element) of extensions, such as (<robot>, <gazebo>) and (<link>, <contact>).
    """

    source: Source
    robot: Element
    warnings: list[tuple[str, str]] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    collisions: list[tuple[Element, Element]] = field(default_factory=list)
    visuals: list[tuple[Element, Element]] = field(default_factory=list)
    materials: list[Element] = field(default_factory=list)
    extras: list[tuple[Element, Element]] = field(default_factory=list)
    link_labels: dict[str, str] = field(default_factory=dict)
    joint_labels: dict[str, str] = field(default_factory=dict)

    def warn(self, text: str, severity: str = "info") -> None:
        """Add a warning "element: what; effect; fix" for the report (see :class:`gpusim.importers.Finding`)."""
        self.warnings.append((text, severity))


def read_document(
    path_or_text: str | os.PathLike[str], expand: Callable[[bool], str], name: str | os.PathLike[str] = ""
) -> Document:
    """Read a URDF file or URDF text (a string that starts with "<") and reduce it to <link> and <joint> elements.

    ``expand(is_text)`` must return the URDF text of a xacro template. ``is_text`` is False if the template is a file.
    Messages show ``name`` instead of the path.

    Raises:
        ModelError: the file is missing, is not XML, has no <robot> with links, or is a template with an error.
    """
    root, source, warnings = parse_xml(path_or_text, name=name)
    if _is_template(root):
        root, _, warnings = parse_xml(expand(source.name == "text"))
        source.name = f"expanded {source.name}"
        _check_expanded(root, source)
    tag = local_name(root)
    if tag != "robot":
        hint = {"sdf": "convert the SDF file to URDF", "mujoco": "this is MJCF, not URDF"}.get(tag, "give a URDF file")
        raise source.error(f"the outermost element is <{tag}>, but a URDF file contains one <robot>; {hint}", root)
    document = Document(source, root, warnings)
    _reduce(document)
    if root.find("link") is None:
        raise source.error('<robot> has no <link>; add at least one, such as <link name="base"/>', root)
    if not root.get("name"):
        document.warn("<robot> has no name; 'robot' used instead")
        root.set("name", "robot")
    return document


# Matches declared XML versions that parsers reject (all except 1.x).
_VERSION = re.compile(rb"""(?<=<\?xml)(\s+version\s*=\s*)["'](?!1\.\d+["'])([^"'<>]{0,20})["']""")


def parse_xml(
    path_or_text: str | os.PathLike[str], form: str = "URDF", name: str | os.PathLike[str] = ""
) -> tuple[Element, Source, list[tuple[str, str]]]:
    """Return the outermost XML element of a file or text, the source of the text, and pairs (warning, severity).

    Raises:
        ModelError: the file is missing, or is not XML. The message starts with the format
            ``form``, followed by ``name`` or by the path of the file.
    """
    from lxml import etree

    text = path_or_text.lstrip("\ufeff \t\r\n") if isinstance(path_or_text, str) else ""
    # A robot file needs neither entities nor network access.
    options: dict[str, Any] = {"resolve_entities": False, "no_network": True, "remove_comments": True}
    if text.startswith("<"):
        source = Source("text", form)
        # The text is already decoded, so ignore its declared encoding.
        content = text.encode("utf-8", "surrogatepass")
        options["encoding"] = "utf-8"
    else:
        source = Source(f"file {os.fspath(name or path_or_text)!r}", form)
        content = _read_file(path_or_text, source)
    version, warnings = _VERSION.search(content, 0, 100), list[tuple[str, str]]()
    if version is not None:
        content = _VERSION.sub(rb'\1"1.0"', content, count=1)
        text = f'there is no XML version "{version.group(2).decode(errors="replace")}"; read as 1.0'
        warnings.append((text, "info"))
    try:
        return etree.fromstring(content, etree.XMLParser(**options)), source, warnings
    except etree.XMLSyntaxError as error:
        root = _recovered(content, etree.XMLParser(recover=True, **options), warnings)
        if root is None:
            raise source.error(f"not well-formed XML ({error.msg}); fix the text there") from None
        return root, source, warnings


# Harmless XML errors, which other URDF readers accept -> how this reader handles the error.
_HARMLESS = {
    "ERR_ATTRIBUTE_REDEFINED": "the first one is used",
    "ERR_DOCUMENT_END": "everything after the root element is ignored",
    "ERR_HYPHEN_IN_COMMENT": "comments are ignored",
    "ERR_LT_IN_ATTRIBUTE": "read as text",
    "ERR_NAME_REQUIRED": "a lone & is ignored",
    "ERR_RESERVED_XML_NAME": "the declaration is ignored",
    "NS_ERR_UNDEFINED_NAMESPACE": "the prefix is ignored",
}


def _recovered(content: bytes, parser: Any, warnings: list[tuple[str, str]]) -> Element | None:
    """Parse XML that is not well-formed. Return the root element, or None after a serious error."""
    from lxml import etree

    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError:  # no element
        return None
    errors = {error.type_name: error for error in reversed(parser.error_log)}
    if root is None or not errors.keys() <= _HARMLESS.keys():
        return None
    for kind, error in errors.items():
        message = " ".join(error.message.split()).rstrip(".")
        warnings.append((f"line {error.line}: not well-formed XML ({message}); {_HARMLESS[kind]}", "info"))
    for element in root.iter("*") if "ERR_ATTRIBUTE_REDEFINED" in errors else ():
        first = {name: element.get(name) for name in element.keys()}  # lxml keeps repeated attributes # noqa: SIM118
        element.attrib.clear()
        element.attrib.update(first)
    return root


def _read_file(path: str | os.PathLike[str], source: Source) -> bytes:
    try:
        return bounded_bytes(path)
    except FileNotFoundError:
        raise source.error(f"no such file; check the path, or give {source.form} text that starts with '<'") from None
    except IsADirectoryError:
        raise source.error(f"this is a folder; give the .{source.form.lower()} file in it") from None
    except (OSError, ValueError) as error:  # ValueError for a NUL byte in the name
        reason = getattr(error, "strerror", None) or error
        raise source.error(f"cannot be read ({reason}); check the path and its permissions") from None


def local_name(element: Element) -> str:
    """Return an element's name without its namespace or its undeclared prefix."""
    return str(element.tag).rpartition("}")[2].rpartition(":")[2]


def _is_template(root: Element) -> bool:
    return next(_template_parts(root), None) is not None


def _template_parts(root: Element) -> Iterator[Element]:
    for element in root.iter():
        if not isinstance(element.tag, str):
            continue
        values = [str(value) for value in element.attrib.values()]
        if "xacro" in element.tag.partition("}")[0] or any("${" in v or "$(" in v for v in values):
            yield element


def _check_expanded(root: Element, source: Source) -> None:
    element = next(_template_parts(root), None)
    if element is not None:
        name = local_name(element)
        raise source.error(f"<{name}> is still a xacro template after its expansion; correct it", element)


# Element -> children to keep. Collisions and visuals are stored separately. Sensors and plugins are ignored.
_READ_CHILDREN: dict[str, tuple[str, ...]] = {
    "robot": ("link", "joint"),
    "link": ("inertial",),
    "inertial": ("origin", "mass", "inertia"),
    "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic"),
}
# Extensions of other programs that the importer reads.
_EXTRAS = {"collision_filter_group", "contact", "gazebo", "mujoco", "ros2_control", "transmission"}
# Unsupported extensions that affect the motion.
_ACTING = {"ball_constraint", "force_element", "gravity", "joint", "kinematic", "linear_bushing_rpy", "loop_joint"}
# Known URDF elements that the reader drops without a warning.
_SILENT = {"material", "calibration", "safety_controller"}


def _reduce(document: Document) -> None:
    from lxml import etree

    # With an xmlns for the whole document, every tag has that namespace. Tags of other namespaces are extensions.
    space = str(document.robot.tag).rpartition("}")[0]

    def visit(element: Element) -> None:
        element.tag = local_name(element)
        allowed = _READ_CHILDREN.get(element.tag, ())
        for child in list(element):
            if not isinstance(child.tag, str):  # a processing instruction or an entity
                element.remove(child)
                continue
            name = local_name(child)
            if name in allowed and child.tag.rpartition("}")[0] == space and ":" not in child.tag.rpartition("}")[2]:
                visit(child)
                continue
            element.remove(child)
            if name in ("collision", "visual") and element.tag == "link":
                (document.collisions if name == "collision" else document.visuals).append((element, child))
                continue
            if name == "material" and element.tag == "robot":
                document.materials.append(child)
            if name in _EXTRAS:
                document.extras.append((element, child))
            elif name not in _SILENT and element.tag in _READ_CHILDREN:
                document.ignored[name] += 1

    visit(document.robot)
    for name in sorted(_ACTING & document.ignored.keys()):
        text = f"{document.ignored[name]} <{name}> of an extension are not read; add them to the builder"
        document.warn(f"<{name}>: {text}", "motion")
    etree.cleanup_namespaces(document.robot)  # serialization would restore the namespace
    _check_repeated(document)


def _check_repeated(document: Document) -> None:
    single = {"inertial", "origin", "mass", "inertia", "parent", "child", "limit", "dynamics", "mimic"}
    for element in document.robot.iter():
        repeated = element.findall("axis")[1:]
        for axis in repeated:
            element.remove(axis)
        if repeated:
            text = f"has {len(repeated) + 1} <axis>; the first is used"
            document.warn(f"{title(element)} {text}")
        for name, number in Counter(child.tag for child in element).items():
            if name in single and number > 1:
                raise document.source.error(f"{title(element)} has {number} <{name}>; keep one", element)


def title(element: Element) -> str:
    """Return the name of an element for messages, such as ``joint 'elbow'``, or its tag if it has no name."""
    if element.get("name"):
        return f"{element.tag} {element.get('name')!r}"
    parent = element.getparent()
    inside = f" of {title(parent)}" if parent is not None and parent.tag != "robot" else ""
    return f"<{element.tag}>{inside}"
