"""Couplings of joint coordinates: gear, mimic and linear coupling. Each coupling is one constraint row."""

from __future__ import annotations

from collections.abc import Sequence

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.specs import CouplingSpec, Term


@builder_method
def add_gear(
    self: ModelBuilder,
    joint_a: int,
    joint_b: int,
    ratio: float,
    axis_a: int = 0,
    axis_b: int = 0,
    label: str | None = None,
) -> int:
    """Couple two joint coordinates by ``velocity_b = ratio * velocity_a``.

    The difference ``q_b - ratio * q_a`` of the joint coordinates keeps its initial value.

    Args:
        joint_a: driving joint.
        joint_b: driven joint.
        ratio: gear ratio, not zero. It is negative for two external gears.
        axis_a, axis_b: index of the coupled coordinate in each joint.
        label: unique name.

    Returns:
        The coupling's index.
    """
    return _couple(self, joint_a, axis_a, joint_b, axis_b, "ratio", ratio, None, label)


@builder_method
def add_mimic(
    self: ModelBuilder,
    joint: int,
    leader: int,
    multiplier: float = 1.0,
    offset: float = 0.0,
    axis: int = 0,
    leader_axis: int = 0,
    label: str | None = None,
    curve: Sequence[float] = (0.0, 0.0, 0.0),
) -> int:
    """Make a joint follow a leader joint: ``q_joint = multiplier * q_leader + offset`` (URDF mimic).

    A curve (c2, c3, c4) adds the polynomial ``c2 q_leader^2 + c3 q_leader^3 + c4 q_leader^4``.

    Args:
        joint: following joint.
        leader: leader joint.
        multiplier: factor of the leader's coordinate. Without a curve, it must not be zero.
        offset: offset of the coordinate of ``joint`` (rad or m).
        axis, leader_axis: index of the coupled coordinate in each joint.
        label: unique name.
        curve: coefficients (c2, c3, c4) of the polynomial. Tendons and wrapped ropes cannot be leaders with a curve.

    Returns:
        The coupling's index.

    Raises:
        ModelError: a joint or coordinate does not exist, a number is invalid, or the leader does not support a curve.
    """
    numbers = validate.numbers(self.element("coupling", label), "curve", curve, 3).tolist()
    if any(numbers):
        return _add_curve(self, (leader, leader_axis), (joint, axis), multiplier, offset, numbers, label)
    return _couple(self, leader, leader_axis, joint, axis, "multiplier", multiplier, offset, label)


def _add_curve(
    builder: ModelBuilder,
    leader: tuple[int, int],
    follower: tuple[int, int],
    multiplier: float,
    offset: float,
    curve: Sequence[float],
    label: str | None,
) -> int:
    element = builder.element("coupling", label)
    leader = builder.check_joint(element, "leader joint", *leader), leader[1]
    follower = builder.check_joint(element, "joint", *follower), follower[1]
    spec, checked = builder.joints[leader[0]], checked_terms(builder, element, [(*follower, 1.0)])
    others = [term for term in checked if term[:2] != leader]
    if "terms" in spec.params or "path" in spec.params or not others:
        rule = f"joint '{spec.label}' cannot lead with a curve: it is a tendon, a wrapped rope or the joint itself"
        raise validate.fail(element, rule, "give a hinge or a slide as the leader")
    linear = validate.number(element, "multiplier", multiplier) - sum(f for j, k, f in checked if (j, k) == leader)
    terms = [(*leader, -linear), *others]
    negated = (-curve[0], -curve[1], -curve[2])
    return builder.add_coupling(CouplingSpec(label or "", terms, validate.number(element, "offset", offset), negated))


def _couple(
    builder: ModelBuilder,
    leader: int,
    leader_axis: int,
    follower: int,
    follower_axis: int,
    name: str,
    value: float,
    offset: float | None,
    label: str | None,
) -> int:
    element = builder.element("coupling", label)
    leader = builder.check_joint(element, "leader joint", leader, leader_axis)
    follower = builder.check_joint(element, "follower joint", follower, follower_axis)
    if (leader, leader_axis) == (follower, follower_axis):
        raise validate.fail(element, "couples a coordinate with itself", "give two different joints")
    factor = validate.ratio(element, name, value)
    if offset is not None:
        offset = validate.number(element, "offset", offset)
    terms = ((leader, leader_axis, -factor), (follower, follower_axis, 1.0))
    return builder.add_coupling(CouplingSpec(label or "", checked_terms(builder, element, terms), offset))


@builder_method
def add_linear_coupling(
    self: ModelBuilder,
    terms: Sequence[tuple[int, float] | tuple[int, int, float]],
    offset: float | None = None,
    label: str | None = None,
) -> int:
    """Keep a weighted sum of joint coordinates constant, ``sum of factor * q = offset``, as gears do.

    The force on each coordinate is proportional to its factor. The coupling does no work.

    Args:
        terms: list of (joint, factor) or (joint, axis, factor). The coupling replaces a tendon in this list by the
            terms of the tendon.
        offset: value of the sum (m or rad). Default: value in the starting pose.
        label: unique name.

    Returns:
        The coupling's index.

    Raises:
        ModelError: ``terms`` is empty or has an unknown joint or coordinate, or a factor is zero.
    """
    element = self.element("coupling", label)
    checked = checked_terms(self, element, terms)
    if offset is not None:
        offset = validate.number(element, "offset", offset)
    return self.add_coupling(CouplingSpec(label or "", checked, offset))


def checked_terms(
    builder: ModelBuilder, element: str, terms: Sequence[tuple[int, float] | tuple[int, int, float]]
) -> list[Term]:
    """Check the terms of a weighted sum. Return them as (joint, axis, factor), with tendons expanded into their terms.

    Raises:
        ModelError: a term is invalid. The message contains ``element``.
    """
    factors: dict[tuple[int, int], float] = {}
    hint = "give a list of (joint, factor) or (joint, axis, factor)"
    try:
        triples = [(t[0], 0, t[1]) if len(t) == 2 else (t[0], t[1], t[2]) for t in terms]
    except (TypeError, IndexError):
        raise validate.fail(element, f"terms = {terms!r} is not a list of terms", hint) from None
    for joint, axis, value in triples:
        factor = validate.ratio(element, "factor", value)
        spec = builder.joints[builder.check_joint(element, "joint", joint, axis)]
        for inner_joint, inner_axis, inner in spec.params.get("terms", [(joint, axis, 1.0)]):
            key = int(inner_joint), int(inner_axis)
            factors[key] = factors.get(key, 0.0) + factor * inner
    if not factors or not all(factors.values()):
        raise validate.fail(element, "has no terms, or the total factor of a coordinate is zero", hint)
    return [(joint, axis, factor) for (joint, axis), factor in factors.items()]
