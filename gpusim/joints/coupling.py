"""Couplings of two joint coordinates: gear and mimic, one row over up to four bodies."""

from __future__ import annotations

from gpusim.model import validate
from gpusim.model.builder import ModelBuilder, builder_method
from gpusim.model.specs import CouplingSpec


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
    """Couple two joint coordinates so that ``velocity_b = ratio * velocity_a``; their starting offset is kept.

    Args:
        joint_a: driving joint.
        joint_b: driven joint.
        ratio: not zero; negative for external teeth.
        axis_a, axis_b: which coordinate of each joint.
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
) -> int:
    """Make a joint follow another: ``q_joint = multiplier * q_leader + offset`` (URDF mimic).

    Args:
        joint: the joint that follows.
        leader: the joint that leads.
        multiplier: not zero.
        offset: rad or m.
        axis, leader_axis: which coordinate of each joint.
        label: unique name.

    Returns:
        The coupling's index.
    """
    return _couple(self, leader, leader_axis, joint, axis, "multiplier", multiplier, offset, label)


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
    return builder.add_coupling(CouplingSpec(label or "", leader, leader_axis, follower, follower_axis, factor, offset))
