"""Builder methods for joint force sensors and contact sensors."""

from __future__ import annotations

from gpusim import validate
from gpusim.builder.builder import ModelBuilder, builder_method
from gpusim.description.joint_kinds import joint_type
from gpusim.description.specs import CONTACT_SENSOR, JOINT_SENSOR, WORLD, SensorSpec


def _add(self: ModelBuilder, label: str | None, kind: str, index: int, site: int = -1) -> int:
    name = self._new_label("sensor", label, len(self.sensors))
    return self._adopt("sensor", SensorSpec(name, kind, index, site))


@builder_method
def add_force_sensor(self: ModelBuilder, joint: int, label: str | None = None) -> int:
    """Add a force-torque sensor in a joint. The sensor measures the wrench that the child exerts on the parent.

    The signals are ``sensor.<label>.force`` (3,), N, and ``sensor.<label>.torque`` (3,), N m. Force and torque are
    vectors in the joint frame on the parent. The torque is about the origin of the joint frame. The signals are mean
    values over the last step. The wrench is the sum of joint reaction, drives, limits, friction and impacts. Diagrams
    can read the signals.

    Args:
        joint: index of a joint with at least one locked direction or a drive.
        label: unique name, default ``sensor<index>``.

    Returns:
        The index of the sensor.

    Raises:
        ModelError: the joint is unknown or free, or the label exists already.
    """
    element = self.element("sensor", label)
    joint = self.check_index(element, "joint", joint, "joint")
    kind, name = joint_type(self.joints[joint].kind), self.joints[joint].label
    if not kind.bears and kind.pulls:
        raise validate.fail(element, f"joint '{name}' is a wrapped rope", f"read its pull, joint.{name}.tension")
    if not kind.bears:
        rule = f"joint '{name}' is free and carries no load"
        raise validate.fail(
            element, rule, "give a joint that locks a direction or has a drive, or add a contact sensor"
        )
    return _add(self, label, JOINT_SENSOR, joint)


@builder_method
def add_contact_sensor(self: ModelBuilder, body: int, site: int | None = None, label: str | None = None) -> int:
    """Add a sensor for all contacts of a body, for example a foot.

    The signals are ``sensor.<label>.force`` (3,), N, ``sensor.<label>.torque`` (3,), N m, and
    ``sensor.<label>.center_of_pressure`` (3,), m. Force, torque and center of pressure are in the world frame. The
    signals are mean values over the last step and include impacts. Therefore, the sum of ``force * dt`` over the steps
    is the impulse that the contacts transfer. Diagrams can read the signals.

    Args:
        body: body index.
        site: site on the body, for example at the sole. The torque is about the origin of the site. The center of
            pressure is in the plane z = 0 of the site. Default: the body frame.
        label: unique name, default ``sensor<index>``.

    Returns:
        The index of the sensor.

    Raises:
        ModelError: the body or site is unknown, the body is the world, the site is on another body, or the label exists
            already.
    """
    element = self.element("sensor", label)
    body = self.check_body(element, "body", body)
    if body == WORLD:
        raise validate.fail(element, "body = -1 is the world", "give the body that touches the world")
    if site is not None:
        site = self.check_index(element, "site", site, "site")
        if self.sites[site].body != body:
            rule = f"site '{self.sites[site].label}' is on {self.body_label(self.sites[site].body)}"
            raise validate.fail(element, rule, f"give a site on {self.body_label(body)}")
    return _add(self, label, CONTACT_SENSOR, body, -1 if site is None else site)
