"""Extensions in URDF files: <gazebo>, <contact> of PyBullet, <mujoco>, and collision filter groups of Drake."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from gpusim.contact.material import Material
from gpusim.importers.color_names import Color, named_color
from gpusim.importers.urdf_parts.urdf_xml import Document, Element, local_name

MAX_FRICTION = 100.0
"""Upper bound for friction coefficients. Files contain 1e5 and more for surfaces that never slip."""
_TRUE, _FALSE = ("1", "true"), ("0", "false")


@dataclass
class Extras:
    """Data about links and joints from the extensions of a file. Keys of dicts are labels of links or joints.

    Attributes:
        materials: link -> arguments for the Material of its shapes.
        colors: link -> color of its visuals.
        self_colliding: links that collide with other links of the robot.
        excluded_pairs: pairs of links that never collide.
        weightless: links without gravity.
        springs: joint -> (stiffness, rest position).
        loops: <joint> elements in <gazebo>, which close loops.
        sensors: pairs (link, <sensor> of <gazebo>).
        mesh_folders: folders of mesh files.
    """

    materials: dict[str, dict[str, object]] = field(default_factory=dict)
    colors: dict[str, Color] = field(default_factory=dict)
    self_colliding: set[str] = field(default_factory=set)
    excluded_pairs: set[frozenset[str]] = field(default_factory=set)
    weightless: list[str] = field(default_factory=list)
    springs: dict[str, tuple[float, float]] = field(default_factory=dict)
    loops: list[Element] = field(default_factory=list)
    sensors: list[tuple[str, Element]] = field(default_factory=list)
    mesh_folders: list[str] = field(default_factory=list)

    def material(self, link: str) -> Material | None:
        """Return the material of a link's shapes, or None for the default."""
        values = self.materials.get(link)
        return None if values is None else Material(**values)  # type: ignore[arg-type]


def read_extras(document: Document) -> Extras:
    """Return the data from the extensions of a checked document, and add findings for unsupported extensions."""
    extras = Extras()
    for owner, element in document.extras:
        reader = _READERS.get(local_name(element))
        if reader is not None:
            reader(document, extras, owner, element)
    return extras


def children(element: Element) -> Iterator[Element]:
    """Yield the child elements, without comments and processing instructions."""
    return (c for c in element if isinstance(c.tag, str))


def value_of(document: Document, owner: str, element: Element) -> float | None:
    """Return the number in the attribute ``value`` or in the text of an element.

    If the element has no number, warn and return None.
    """
    text = (element.get("value") or element.text or "").strip()
    try:
        number = float(text.split()[0]) if text else math.nan
    except ValueError:
        number = math.nan
    if math.isfinite(number):
        return number
    shown = text if len(text) < 40 else text[:37] + "..."
    document.warn(f'{owner}: <{local_name(element)}> "{shown}" is not a number; it is ignored')
    return None


def flag_of(element: Element) -> bool | None:
    """Return the boolean in an element's text, or None if the text is not a boolean."""
    text = (element.get("value") or element.text or "").strip().lower()
    return True if text in _TRUE else False if text in _FALSE else None


def _gazebo(document: Document, extras: Extras, owner: Element, element: Element) -> None:
    name = element.get("reference")
    if not name:
        _gazebo_model(document, extras, element)
    elif name in document.link_labels:
        _gazebo_link(document, extras, document.link_labels[name], element)
    elif name in document.joint_labels:
        _gazebo_joint(document, extras, document.joint_labels[name], element)
    else:
        document.warn(f"<gazebo reference={name!r}>: no link or joint has that name; it is ignored", "contact")


def _gazebo_model(document: Document, extras: Extras, element: Element) -> None:
    for item in children(element):
        tag = local_name(item)
        if tag == "joint":
            extras.loops.append(item)
        elif tag in ("self_collide", "selfCollide"):
            if flag_of(item):
                extras.self_colliding.update(document.link_labels.values())
        elif tag == "plugin":
            what = item.get("filename") or item.get("name") or ""
            document.warn(f"<gazebo>: plugin {what!r} is not read; its code does not run")
        elif tag in ("link", "model", "include"):
            document.warn(f"<gazebo>: <{tag}> {item.get('name') or ''!r} is not read; add it to the builder", "motion")
        elif tag == "pose":
            document.warn("<gazebo>: <pose> of the model is not read; give xform")
        elif tag == "static":
            if flag_of(item):
                document.warn("<gazebo>: <static> is not read; the joints of the robot move", "motion")
        else:
            document.ignored[f"gazebo/{tag}"] += 1


def _gazebo_link(document: Document, extras: Extras, link: str, element: Element) -> None:
    owner, frictions = f"link {link!r}", dict[str, float]()
    for item in children(element):
        tag = local_name(item)
        if tag in ("mu1", "mu2", "mu"):
            if (number := value_of(document, owner, item)) is not None:
                frictions[tag] = number
        elif tag in ("selfCollide", "self_collide"):
            if flag_of(item):
                extras.self_colliding.add(link)
        elif tag in ("turnGravityOff", "gravity"):
            if flag_of(item) is (tag == "turnGravityOff"):
                extras.weightless.append(link)
        elif tag in ("material", "visual"):
            _gazebo_color(document, extras, link, item)
        elif tag == "collision":
            for name in ("mu", "mu2"):
                friction = next((e for e in item.iter() if isinstance(e.tag, str) and local_name(e) == name), None)
                if friction is not None and (number := value_of(document, owner, friction)) is not None:
                    frictions[name] = number
        elif tag == "sensor":
            extras.sensors.append((link, item))
        else:
            _gazebo_unread(document, owner, tag, item)
    _gazebo_friction(document, extras, link, frictions)


def _gazebo_friction(document: Document, extras: Extras, link: str, frictions: dict[str, float]) -> None:
    first = frictions.get("mu1", frictions.get("mu", frictions.get("mu2")))
    if first is None:
        return
    second = frictions.get("mu2", first)
    if second != first:
        text = f"mu {first:g} along and {second:g} across; {first:g} used for all directions"
        document.warn(f"link {link!r}: friction has {text}", "contact")
    # In Gazebo, a contact has the smaller friction of its two shapes.
    _set_friction(document, extras, link, first, combine="min")


def _set_friction(document: Document, extras: Extras, link: str, friction: float, combine: str) -> None:
    bounded = min(max(friction, 0.0), MAX_FRICTION)
    if bounded != friction:
        document.warn(f"link {link!r}: friction {friction:g} is out of range; {bounded:g} used instead")
    extras.materials.setdefault(link, {}).update(friction=bounded, combine=combine)


def _gazebo_color(document: Document, extras: Extras, link: str, item: Element) -> None:
    diffuse = next((e for e in item.iter() if isinstance(e.tag, str) and local_name(e) == "diffuse"), None)
    name = (item.text or "").strip() if local_name(item) == "material" else ""
    if diffuse is not None:
        try:
            r, g, b = (min(max(float(word), 0.0), 1.0) for word in (diffuse.text or "").split()[:3])
        except ValueError:
            document.warn(f"link {link!r}: <diffuse> of <gazebo> is not a color; it is ignored", "look")
            return
        extras.colors[link] = (r, g, b)
    elif name and (color := named_color(name)) is not None:
        extras.colors[link] = color
    elif name:
        document.warn(f"link {link!r}: Gazebo material {name!r} is unknown; it is ignored", "look")


def _gazebo_unread(document: Document, owner: str, tag: str, item: Element) -> None:
    if tag in ("kp", "kd", "minDepth", "maxVel", "softCfm", "softErp", "soft_cfm", "soft_erp"):
        document.warn(f"{owner}: contact compliance <{tag}> is not read; contacts are rigid", "contact")
    elif tag in ("fdir1", "slip1", "slip2"):
        document.warn(f"{owner}: <{tag}> of <gazebo> is not read; friction is equal in all directions", "contact")
    elif tag in ("dampingFactor", "velocity_decay"):
        document.warn(f"{owner}: <{tag}> of <gazebo> is not read; the link has no damping", "motion")
    elif tag == "kinematic" and flag_of(item):
        document.warn(f"{owner}: <kinematic> of <gazebo> is not read; forces move the link", "motion")
    elif tag == "sensor":
        kind = item.get("type") or ""
        document.warn(f"{owner}: sensor of type {kind!r} is not read; add one with add_force_sensor")
    elif tag == "plugin":
        document.warn(f"{owner}: plugin {item.get('filename') or ''!r} is not read; its code does not run")
    else:
        document.ignored[f"gazebo/{tag}"] += 1


def _gazebo_joint(document: Document, extras: Extras, joint: str, element: Element) -> None:
    owner, spring = f"joint {joint!r}", dict[str, float]()
    for item in children(element):
        tag = local_name(item)
        if tag in ("springStiffness", "springReference"):
            if (number := value_of(document, owner, item)) is not None:
                spring[tag] = number
        elif tag.startswith("stop"):
            document.warn(f"{owner}: <{tag}> of <gazebo> is not read; joint limits are rigid")
        else:
            _gazebo_unread(document, owner, tag, item)
    stiffness = spring.get("springStiffness", 0.0)
    if stiffness > 0.0:
        extras.springs[joint] = (stiffness, spring.get("springReference", 0.0))
    elif stiffness < 0.0:
        document.warn(f"{owner}: springStiffness {stiffness:g} is negative; the spring is left out", "motion")


# <contact> of PyBullet


def _contact(document: Document, extras: Extras, owner: Element, element: Element) -> None:
    link = owner.get("name")
    for item in children(element):
        tag, title = local_name(item), f"link {link!r}"
        if tag in ("lateral_friction", "rolling_friction", "spinning_friction", "restitution"):
            number = value_of(document, title, item)
            if number is None:
                continue
            if tag == "lateral_friction":
                _set_friction(document, extras, link, number, combine="multiply")  # the rule of PyBullet
                continue
            number = min(max(number, 0.0), 1.0 if tag == "restitution" else math.inf)
            extras.materials.setdefault(link, {})[tag] = number
        elif tag in ("stiffness", "damping", "contact_cfm", "contact_erp"):
            document.warn(f"{title}: contact compliance <{tag}> is not read; contacts are rigid", "contact")
        elif tag == "inertia_scaling":
            factor = value_of(document, title, item)
            if factor is not None and factor != 1.0:
                document.warn(f"{title}: <inertia_scaling> {factor:g} is not read; its <inertial> is used", "motion")
        else:
            document.ignored[f"contact/{tag}"] += 1


def _mujoco(document: Document, extras: Extras, owner: Element, element: Element) -> None:
    acting = {"inertiafromgeom", "settotalmass", "boundmass", "boundinertia", "gravity", "integrator"}
    for item in children(element):
        tag = local_name(item)
        if item.get("meshdir"):
            extras.mesh_folders.append(item.get("meshdir"))
        names = [name for name, value in item.attrib.items() if name in acting and value not in _FALSE]
        if names:
            what = ", ".join(f'{name}="{item.get(name)}"' for name in names)
            document.warn(f"<mujoco>: <{tag}> has {what}; it is ignored", "motion")
        else:
            document.warn(f"<mujoco>: <{tag}> contains settings of MuJoCo's compiler; they are ignored")


# <collision_filter_group> of Drake


def _filter_group(document: Document, extras: Extras, owner: Element, element: Element) -> None:
    groups = {}
    for parent, other in document.extras:
        if local_name(other) == "collision_filter_group" and parent is owner:
            members = (e.get("link") for e in children(other) if local_name(e) == "member")
            groups[other.get("name")] = [document.link_labels[m] for m in members if m in document.link_labels]
    own_links = groups.get(element.get("name"), [])
    for item in children(element):
        if local_name(item) == "ignored_collision_filter_group":
            others = groups.get(item.get("name"))
            if others is None:
                document.warn(f"collision filter group {item.get('name')!r}: it has no members; it is ignored")
                continue
            extras.excluded_pairs.update(frozenset((a, b)) for a in own_links for b in others if a != b)


_READERS: dict[str, Callable[[Document, Extras, Element, Element], None]] = {
    "gazebo": _gazebo,
    "contact": _contact,
    "mujoco": _mujoco,
    "collision_filter_group": _filter_group,
}
