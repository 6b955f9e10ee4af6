"""Checks of links and joints against the URDF specification, and default values for missing optional attributes."""

from __future__ import annotations

import math
import re

import numpy as np
from scipy.spatial.transform import Rotation

from gpusim.errors import ModelError, unknown_name
from gpusim.importers.urdf_parts.urdf_xml import Document, Element, title

JOINT_TYPES = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "spherical")
SINGLE_AXIS = ("revolute", "continuous", "prismatic")
# A larger deviation of an axis from unit length is a mistake in the file, not round-off.
_AXIS_TOLERANCE = 1e-3
# For these attributes, other readers use only the first three numbers.
_VECTORS = ("xyz", "rpy", "scale", "size")
_INERTIA_NAMES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def check_document(document: Document) -> None:
    """Check every link and joint of ``document``. Add missing optional values, with warnings.

    Raises:
        ModelError: the file breaks a rule of URDF. The message names the file, the line, the element, the rule and the
            fix.
    """
    _convert_quaternions(document)
    links = _named(document, "link")
    joints = _named(document, "joint")
    for link in links.values():
        _check_inertial(document, link)
    for joint in joints.values():
        _check_joint(document, joint, links)
        _check_mimic(document, joint, joints)
    _clean_names(document, links, joints)


def _convert_quaternions(document: Document) -> None:
    """Replace ``quat_xyzw`` of origins (URDF 1.2) by roll, pitch and yaw."""
    owners = (document.robot, *(element for _, element in document.collisions + document.visuals))
    for origin in (origin for owner in owners for origin in owner.iter("origin")):
        if origin.get("quat_xyzw") is None:
            continue
        if origin.get("rpy") is not None:
            raise document.source.error("an <origin> has both rpy and quat_xyzw; keep one", origin)
        quaternion = numbers(document, origin, "quat_xyzw", 4)
        if not np.linalg.norm(quaternion) > _AXIS_TOLERANCE:
            raise document.source.error("an <origin> has a zero quat_xyzw; write 0 0 0 1 for no rotation", origin)
        angles = Rotation.from_quat(quaternion).as_euler("xyz")
        origin.set("rpy", " ".join(repr(float(angle)) for angle in angles))


def _named(document: Document, kind: str) -> dict[str, Element]:
    """Return a dict of all elements with the same tag: name -> element."""
    elements: dict[str, Element] = {}
    for element in document.robot.findall(kind):
        name = element.get("name")
        if not name:
            raise document.source.error(f'a <{kind}> has no name; add name="..."', element)
        if name in elements:
            first = elements[name].sourceline
            raise document.source.error(
                f"{kind} {name!r} exists already (line {first}); names are unique, rename one", element
            )
        elements[name] = element
    return elements


def numbers(
    document: Document,
    element: Element,
    name: str,
    count: int = 1,
    *,
    finite: bool = True,
    owner: Element | None = None,
) -> list[float]:
    """Return the ``count`` numbers of an attribute, or raise a ModelError.

    Error messages name ``owner``, the link that contains ``element``.
    """
    text = element.get(name)
    words = text.split()
    shown = text if len(text) <= 40 else text[:37] + "..."
    called = title(element) if owner is None else f"{title(element)} of {title(owner)}"
    if count == 3 and name in _VECTORS:
        words = _vector_words(document, f'{called}: {name}="{shown}"', name, text)
        element.set(name, " ".join(words))
    try:
        values = [float(word) for word in words]
    except ValueError:
        values = []
    if len(values) != count:
        expected = "one number" if count == 1 else f"{count} numbers separated by spaces"
        raise document.source.error(f'{called}: {name}="{shown}" must be {expected}', element)
    if finite and not all(map(math.isfinite, values)):
        raise document.source.error(f'{called}: {name}="{shown}" must be finite; give a number', element)
    return values


def _vector_words(document: Document, attribute: str, name: str, text: str) -> list[str]:
    """Split the text of a vector into words. Warn about commas, and about a wrong number of words."""
    words = text.split()
    if "," in text:
        parts = text.replace(",", " ").split()
        if len(parts) != 3:  # maybe decimal commas
            return words
        document.warn(f"{attribute} has commas; read as spaces")
        words = parts
    if len(words) > 3:
        document.warn(f"{attribute} has more than 3 numbers; only the first three are used")
    if len(words) == 1 and name == "scale":
        document.warn(f"{attribute} is one number; used for all three axes")
        words = 3 * words
    return words[:3]


def _check_origin(document: Document, owner: Element) -> None:
    origin = owner.find("origin")
    if origin is None:
        return
    for name in ("xyz", "rpy"):
        if origin.get(name) is not None:
            numbers(document, origin, name, 3)


def _check_inertial(document: Document, link: Element) -> None:
    """Check the numbers of <inertial>."""
    inertial = link.find("inertial")
    if inertial is None:
        return
    _check_origin(document, inertial)
    mass, inertia = inertial.find("mass"), inertial.find("inertia")
    if mass is not None and mass.get("value") is not None:
        (value,) = numbers(document, mass, "value", finite=False)
        if value < 0.0:
            raise document.source.error(
                f"link {link.get('name')!r}: mass {value:g} kg must not be negative; give a positive one", mass
            )
    if inertia is None:
        return
    missing = [name for name in _INERTIA_NAMES if inertia.get(name) is None]
    for name in missing:  # yourdfpy would put 1 kg m2 on the diagonal
        inertia.set(name, "0")
    if missing:
        document.warn(f"link {link.get('name')!r}: <inertia> lacks {', '.join(missing)}; 0 used instead", "motion")
    for name in _INERTIA_NAMES:
        numbers(document, inertia, name, finite=False)


def _check_joint(document: Document, joint: Element, links: dict[str, Element]) -> None:
    kind = joint.get("type")
    if kind not in JOINT_TYPES:
        found = f"type {kind!r}" if kind else "no type"
        raise document.source.error(f"{title(joint)} has {found}; the types are {', '.join(JOINT_TYPES)}", joint)
    for end in ("parent", "child"):
        _check_end(document, joint, end, links)
    if joint.find("parent").get("link") == joint.find("child").get("link"):
        name = joint.find("child").get("link")
        raise document.source.error(f"{title(joint)} joins link {name!r} to itself; give two different links", joint)
    _check_origin(document, joint)
    _drop_unused_elements(document, joint)
    if joint.get("type") in (*SINGLE_AXIS, "planar"):
        _check_axis(document, joint)
        _check_limit(document, joint)
        _check_dynamics(document, joint)


def _check_end(document: Document, joint: Element, end: str, links: dict[str, Element]) -> None:
    element = joint.find(end)
    name = element.get("link") if element is not None else None
    if not name:
        raise document.source.error(f'{title(joint)} has no {end} link; add <{end} link="..."/>', joint)
    if name not in links:
        raise document.source.error(f"{title(joint)}: {end}: {unknown_name('link', name, links)}", element)


def _drop_unused_elements(document: Document, joint: Element) -> None:
    """Remove child elements that this type of joint does not use, such as <axis> of a fixed joint."""
    kind = joint.get("type")
    drop = {
        "fixed": ("axis", "limit", "dynamics", "mimic"),
        "floating": ("axis", "limit", "dynamics"),
        "spherical": ("axis", "limit", "dynamics"),
    }
    for name in drop.get(kind, ()):
        element = joint.find(name)
        if element is None:
            continue
        joint.remove(element)
        if kind != "fixed" and name == "dynamics" or name == "mimic":
            # A fixed joint cannot follow another joint.
            severity = "info" if kind == "fixed" else "motion"
            document.warn(f"joint {joint.get('name')!r}: a {kind} joint has no <{name}>; it is ignored", severity)


def _check_axis(document: Document, joint: Element) -> None:
    axis = joint.find("axis")
    if axis is None or axis.get("xyz") is None:
        return  # the specification's default (1, 0, 0)
    values = numbers(document, axis, "xyz", 3)
    length = math.hypot(*values)
    if length < 1e-9:
        raise document.source.error(
            f'{title(joint)}: axis "{axis.get("xyz")}" must not be zero; give a direction such as xyz="0 0 1"', axis
        )
    if abs(length - 1.0) > _AXIS_TOLERANCE:
        document.warn(f"{title(joint)}: axis has length {length:.6g}; a unit vector used instead")


def _check_limit(document: Document, joint: Element) -> None:
    kind, limit = joint.get("type"), joint.find("limit")
    bounded = kind in ("revolute", "prismatic")
    if limit is None:
        if not bounded:
            return
        hint = ' or make it type="continuous"' if kind == "revolute" else ""
        raise document.source.error(
            f"{title(joint)}: a {kind} joint needs <limit>; "
            f'add <limit lower="..." upper="..." effort="..." velocity="..."/>{hint}',
            joint,
        )
    if bounded:
        _check_bounds(document, joint, limit)
    else:
        _drop_bounds(document, joint, limit)
    for name in ("effort", "velocity"):
        _check_max(document, joint, limit, name)


def _check_bounds(document: Document, joint: Element, limit: Element) -> None:
    missing = [name for name in ("lower", "upper") if limit.get(name) is None]
    if len(missing) == 2:
        # The specification's default locks the joint at 0, but files without both limits mean an unlimited joint
        # (wheels).
        document.warn(f"{title(joint)}: <limit> lacks lower and upper; read as unlimited")
        limit.set("lower", "-inf")
        limit.set("upper", "inf")
    elif missing:
        limit.set(missing[0], "0")
        document.warn(f"{title(joint)}: <limit> lacks {missing[0]}; 0 used instead, as URDF specifies")
    lower, upper = (numbers(document, limit, name, finite=False)[0] for name in ("lower", "upper"))
    if math.isnan(lower) or math.isnan(upper):
        raise document.source.error(f"{title(joint)}: limits must not be NaN; give numbers", limit)
    if lower > upper:
        raise document.source.error(
            f"{title(joint)}: limit lower {lower:g} exceeds upper {upper:g}; swap or fix them", limit
        )
    if lower == math.inf or upper == -math.inf:
        raise document.source.error(f"{title(joint)}: limits {lower:g} to {upper:g} allow no position; fix them", limit)
    if lower == upper:
        document.warn(f"{title(joint)}: limits {lower:g} to {upper:g} lock it; widen them if it should move")


def _drop_bounds(document: Document, joint: Element, limit: Element) -> None:
    dropped = [name for name in ("lower", "upper") if limit.attrib.pop(name, None) is not None]
    if dropped:
        text = f"a {joint.get('type')} joint has no position limits; {' and '.join(dropped)} ignored"
        document.warn(f"{title(joint)}: {text}")


def _check_max(document: Document, joint: Element, limit: Element, name: str) -> None:
    """Check an effort or velocity limit. Set a missing or nonpositive limit to infinity, with a warning."""
    if limit.get(name) is None:
        document.warn(f"{title(joint)}: <limit> lacks {name}; read as unlimited")
        limit.set(name, "inf")
        return
    (value,) = numbers(document, limit, name, finite=False)
    if not value > 0.0:  # also for NaN. Exporters write 0 or -1 for an unknown limit
        document.warn(f'{title(joint)}: {name}="{limit.get(name)}" is not positive; read as unlimited')
        limit.set(name, "inf")


def _check_dynamics(document: Document, joint: Element) -> None:
    dynamics = joint.find("dynamics")
    if dynamics is None:
        return
    for name in ("damping", "friction"):
        if dynamics.get(name) is None:
            continue
        (value,) = numbers(document, dynamics, name)
        if value < 0.0:
            raise document.source.error(
                f"{title(joint)}: {name} {value:g} must not be negative, or the joint would gain energy", dynamics
            )


def _check_mimic(document: Document, joint: Element, joints: dict[str, Element]) -> None:
    mimic = joint.find("mimic")
    if mimic is None:
        return
    leader = mimic.get("joint")
    if not leader:
        raise document.source.error(f'{title(joint)}: <mimic> names no joint; add joint="..."', mimic)
    if leader not in joints:
        raise document.source.error(f"{title(joint)}: <mimic>: {unknown_name('joint', leader, joints)}", mimic)
    for name in ("multiplier", "offset"):
        if mimic.get(name) is not None:
            numbers(document, mimic, name)
    for element in (joint, joints[leader]):
        if element.get("type") not in (*SINGLE_AXIS, "fixed"):
            raise _mimic_error(document, joint, element)


def _mimic_error(document: Document, joint: Element, cause: Element) -> ModelError:
    return document.source.error(
        f"{title(joint)}: <mimic> couples joints with one axis, but {title(cause)} is {cause.get('type')}; drop it",
        joint,
    )


def _clean_names(document: Document, links: dict[str, Element], joints: dict[str, Element]) -> None:
    """Replace dots and spaces in names of links and joints. Labels cannot contain dots or spaces."""
    link_labels, joint_labels = document.link_labels, document.joint_labels = _labels(links), _labels(joints)
    _warn_renamed(document, {"link": link_labels, "joint": joint_labels})
    for name, link in links.items():
        link.set("name", link_labels[name])
    for name, joint in joints.items():
        joint.set("name", joint_labels[name])
        for end in ("parent", "child"):
            joint.find(end).set("link", link_labels[joint.find(end).get("link")])
        mimic = joint.find("mimic")
        if mimic is not None:
            mimic.set("joint", joint_labels[mimic.get("joint")])


def _warn_renamed(document: Document, labels: dict[str, dict[str, str]], shown: int = 3) -> None:
    texts = [f"{kind} {a!r} is called {b!r}" for kind, names in labels.items() for a, b in names.items() if a != b]
    if texts:
        more = f" and {len(texts) - shown} more of the same" if len(texts) > shown else ""
        document.warn(f"signal names have no dots and spaces: {', '.join(texts[:shown])}{more}")


def _labels(names: dict[str, Element]) -> dict[str, str]:
    labels: dict[str, str] = {}
    taken = set(names)
    for name in names:
        label = re.sub(r"[.\s]+", "_", name)
        if label != name:
            while label in taken:
                label += "_"
            taken.add(label)
        labels[name] = label
    return labels
