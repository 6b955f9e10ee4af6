"""Conversion of links to bodies: merging of links, mass properties and repairs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np

from gpusim.errors import ModelError, unknown_name
from gpusim.importers.inertia import (
    LIGHT_FRACTION,
    MASSLESS_FRACTION,
    MassProperties,
    combine,
    inertia_fault,
    light_link,
    repair_inertia,
    sphere_inertia,
)
from gpusim.importers.urdf_parts.urdf_tree import Joint, Tree
from gpusim.validate import GREATEST, ROUND_OFF, min_moment


@dataclass
class Body:
    """A rigid body: a main link, and the links merged into the main link. The body frame is the frame of the main link.

    Attributes:
        name: name of the body's main link.
        pose: pose (4, 4) of the body's frame in the frame of the root link.
        frames: link name -> pose (4, 4) of the link's frame in the body's frame.
        mass: repaired mass properties in the body's frame.
        added_mass: mass (kg) that a repair added.
    """

    name: str
    pose: np.ndarray
    frames: dict[str, np.ndarray] = field(default_factory=dict)
    mass: MassProperties = field(default_factory=lambda: MassProperties(0.0, np.zeros(3), np.zeros((3, 3))))
    added_mass: float = 0.0


@dataclass
class Bodies:
    """All bodies of the robot.

    Attributes:
        bodies: name -> body, in depth-first order.
        body_of: link name -> name of the body that contains the link.
        joints: name -> joint, for the joints that remain after merging.
        world: name of the root link if the root link represents the world, else None.
        still: names of the links that fixed joints connect to the world.
    """

    bodies: dict[str, Body]
    body_of: dict[str, str]
    joints: dict[str, Joint]
    world: str | None
    still: set[str] = field(default_factory=set)


def group_links(tree: Tree, *, fixed_base: bool, merge_fixed: bool, keep: Sequence[str] = ()) -> Bodies:
    """Merge links connected by fixed joints, sum their masses, and repair impossible values.

    As in ROS and Gazebo, a massless root link with the name "world" is the world itself if ``fixed_base`` is True.
    Links that match a pattern of ``keep`` are not merged.

    Raises:
        ModelError: a pattern of ``keep`` matches no link, or a body is too heavy.
    """
    unmerged = matching(keep, tree.links)
    world = tree.root if fixed_base and tree.root == "world" and _is_massless(tree, "world") else None
    result = Bodies({}, {}, {}, world)
    if world is None:
        _new_body(tree, result, tree.root)
    if fixed_base:
        result.still.add(tree.root)
    for name, joint in tree.joints.items():
        if joint.kind == "fixed" and joint.parent in result.still:
            result.still.add(joint.child)
        if merge_fixed and joint.kind == "fixed" and joint.parent != world and joint.child not in unmerged:
            body = result.bodies[result.body_of[joint.parent]]
            body.frames[joint.child] = body.frames[joint.parent] @ joint.origin
            result.body_of[joint.child] = body.name
        else:
            _new_body(tree, result, joint.child)
            result.joints[name] = joint
    _set_masses(tree, result)
    return result


def matching(patterns: Sequence[str], names: Iterable[str]) -> set[str]:
    """Return the names that match at least one pattern, such as ``"imu*"``.

    Raises:
        ModelError: a pattern matches no name.
    """
    known, matches = list(names), set[str]()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        hits = [name for name in known if fnmatchcase(name, pattern)]
        if not hits:
            raise ModelError(f"keep: {unknown_name('link', pattern, known)}")
        matches.update(hits)
    return matches


def _is_massless(tree: Tree, link: str) -> bool:
    mass = tree.links[link].mass
    return mass is None or mass.mass == 0.0


def _new_body(tree: Tree, result: Bodies, link: str) -> None:
    result.bodies[link] = Body(link, tree.poses[link], {link: np.eye(4)})
    result.body_of[link] = link


def _set_masses(tree: Tree, result: Bodies) -> None:
    for body in result.bodies.values():
        severity = _severity(result, body.name)
        body.mass = combine(_part(tree, name, frame, severity) for name, frame in body.frames.items())
    masses = [body.mass.mass for body in result.bodies.values() if body.mass.mass > 0.0]
    substitute = MASSLESS_FRACTION * math.fsum(masses) / len(masses) if masses else 1.0
    carried = _heaviest_children(result)
    for body in result.bodies.values():
        # Only bodies without shapes become light. Contacts of a light body below a heavy body are inaccurate.
        collides = any(tree.links[name].collides for name in body.frames)
        if body.name in carried and not collides and body.mass.mass == 0.0 and not body.mass.inertia.any():
            _set_light_mass(tree, body, carried[body.name])
        else:
            _repair_body(tree, body, substitute, _severity(result, body.name))


def _heaviest_children(result: Bodies) -> dict[str, MassProperties]:
    """Return a dict: body -> mass properties of its heaviest child."""
    heaviest: dict[str, MassProperties] = {}
    for joint in reversed(result.joints.values()):
        parent, properties = result.body_of.get(joint.parent, ""), result.bodies[joint.child].mass
        load = properties if properties.mass > 0.0 else heaviest.get(joint.child)
        if load is not None and (parent not in heaviest or load.mass > heaviest[parent].mass):
            heaviest[parent] = load
    return heaviest


def _set_light_mass(tree: Tree, body: Body, carried: MassProperties) -> None:
    body.added_mass, moment = light_link(carried.mass, carried.inertia)
    body.mass = MassProperties(body.added_mass, body.mass.com, moment * np.eye(3))
    text = f"has no mass, but every body needs one; {LIGHT_FRACTION:g} of the mass of its heaviest child used instead"
    tree.warn(f"{_title(body)}: {text}")


def _severity(result: Bodies, link: str) -> str:
    """Return the severity of a repair: "info" if the link is fixed to the world, else "motion"."""
    return "info" if link in result.still else "motion"


def _part(tree: Tree, name: str, frame: np.ndarray, severity: str) -> MassProperties:
    """Return the repaired mass properties of a link, in the frame of its body."""
    properties = tree.links[name].mass
    if properties is None:
        return MassProperties(0.0, frame[:3, 3].copy(), np.zeros((3, 3)))
    if not math.isfinite(properties.mass):
        tree.warn(f"link {name!r}: mass is {properties.mass:g}; 0 kg used instead", severity)
        properties = MassProperties(0.0, properties.com, properties.inertia)
    fault = inertia_fault(properties.inertia, properties.mass, allow_zero=True)
    if fault is not None:
        # A massless part has no equivalent sphere. _repair_body checks the whole body later.
        inertia = repair_inertia(properties.inertia, properties.mass) if properties.mass > 0.0 else np.zeros((3, 3))
        tree.warn(f"link {name!r}: inertia {fault}; {_describe(inertia)} used instead", severity)
        properties = MassProperties(properties.mass, properties.com, inertia)
    return properties if np.array_equal(frame, np.eye(4)) else properties.moved(frame)


def _repair_body(tree: Tree, body: Body, substitute: float, severity: str) -> None:
    """Set the mass of a massless body to ``substitute`` (kg), and replace an impossible inertia."""
    title, mass, inertia = _title(body), body.mass.mass, body.mass.inertia
    if not (mass <= GREATEST and np.all(np.abs(inertia) <= GREATEST)):
        rule = f"its mass {mass:g} kg or its inertia is not below {GREATEST:g}"
        raise ModelError(f"{title}: {rule}; correct it in the file")
    if mass == 0.0:
        mass = body.added_mass = substitute
        inertia = repair_inertia(inertia, mass)
        reason = "missing <inertial>" if tree.links[body.name].mass is None else "mass 0"
        is_kept = inertia is body.mass.inertia
        text = f"{mass:.3g} kg" + (" with its inertia from the file" if is_kept else f" and {_describe(inertia)}")
        tree.warn(f"{title}: {reason}, but every body needs a mass; {text} used instead", severity)
    elif (fault := inertia_fault(inertia, mass)) is not None:
        inertia = repair_inertia(inertia, mass)
        tree.warn(f"{title}: inertia {fault}; {_describe(inertia)} used instead", severity)
    elif _has_point_masses(tree, body):
        inertia = sphere_inertia(mass)
        tree.warn(
            f"{title}: almost no inertia, since links of the body have none; {_describe(inertia)} used instead",
            severity,
        )
    body.mass = MassProperties(mass, body.mass.com, inertia)


def _has_point_masses(tree: Tree, body: Body) -> bool:
    """Return True if a body contains point masses and its inertia is too small."""
    parts = [properties for name in body.frames if (properties := tree.links[name].mass) is not None]
    points = [part for part in parts if part.mass > 0.0 and not np.any(np.abs(part.inertia) > min_moment(part.mass))]
    largest = float(np.linalg.eigvalsh(body.mass.inertia)[2])
    return bool(points) and largest < min_moment(body.mass.mass) / ROUND_OFF


def _title(body: Body) -> str:
    others = [name for name in body.frames if name != body.name]
    if not others:
        return f"link {body.name!r}"
    names = ", ".join(map(repr, others[:3])) + (", ..." if len(others) > 3 else "")
    return f"link {body.name!r} (with {names})"


def _describe(inertia: np.ndarray) -> str:
    moments = ", ".join(f"{value:.3g}" for value in np.linalg.eigvalsh(inertia))
    return f"principal moments ({moments}) kg m2"
