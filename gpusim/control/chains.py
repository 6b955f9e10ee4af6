"""Chains of joints of a model, as blocks of kinematics take them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpusim.model import validate
from gpusim.model.builder import ModelBuilder
from gpusim.model.joint_kinds import ANGLE, TRANSLATION, joint_type
from gpusim.transform import Transform

_KINDS = {ANGLE: "turn", TRANSLATION: "slide"}
"""By what a joint's only coordinate is."""


def chain(b: ModelBuilder, base: str, tip: str) -> dict[str, Any]:
    """The joints from a body to a site, for blocks ``chain`` and ``ik``: ``d.add("ik", "arm", **chain(b, ...), ...)``.

    Args:
        b: the builder.
        base: label of the body that all is relative to.
        tip: label of a site on the last body.

    Returns:
        ``joints``: each with ``place`` (7,) behind the one before, ``axis``, ``kind``, limits and label; ``tip`` (7,).

    Raises:
        ModelError: an unknown body or site, no way of hinges and slides (fixed joints count) between them.
    """
    element = f"chain from '{base}' to '{tip}'"
    bodies = {body.label: k for k, body in enumerate(b.bodies)}
    sites = {site.label: site for site in b.sites}
    for name, known, what in ((base, bodies, "body"), (tip, sites, "site")):
        if name not in known:
            listed = ", ".join(list(known)[:20]) or "none"
            raise validate.fail(element, f"there is no {what} '{name}'", f"name one: {listed}")
    joints: list[dict[str, Any]] = []
    parents = {joint.child: joint for joint in reversed(b.joints) if joint.child >= 0}
    ahead, body = sites[tip].xform, sites[tip].body
    ends: list[Transform] = []
    while body != bodies[base]:
        if body not in parents or len(joints) > len(b.joints):
            raise validate.fail(element, f"no joint leads from '{base}' to it", "name a body that carries it")
        joint = parents[body]
        after = joint.child_xform.inverse() * ahead
        body = joint.parent
        coordinates = joint_type(joint.kind).kinds(joint)
        if not coordinates:
            ahead = joint.parent_xform * after
            continue
        if len(coordinates) > 1 or coordinates[0] not in _KINDS or "columns" not in joint.params:
            rule = f"joint '{joint.label}' is {joint.kind}, neither a hinge nor a slide"
            raise validate.fail(element, rule, "name ends with hinges and slides between them")
        ends.append(after)
        limits = (float(np.ravel(joint.params.get(k, s))[0]) for k, s in
                  (("limit_lower", -math.inf), ("limit_upper", math.inf)))  # fmt: skip
        lower, upper = (x if math.isfinite(x) else None for x in limits)
        axis = [float(x) for x in np.asarray(joint.params["columns"])[:, 2]]
        joints.append(
            {"axis": axis, "kind": _KINDS[coordinates[0]], "lower": lower, "upper": upper, "label": joint.label}
        )
        ahead = joint.parent_xform
    joints.reverse()
    ends.reverse()
    places = [ahead, *ends]
    for joint_entry, place in zip(joints, places, strict=False):
        joint_entry["place"] = _numbers(place)
    return {"joints": joints, "tip": _numbers(places[-1])}


def _numbers(place: Transform) -> list[float]:
    return [*(float(x) for x in place.position), *(float(x) for x in place.rotation)]
