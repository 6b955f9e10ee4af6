"""Builder methods for sensors of forces: in joints, and of what touches a body."""

from __future__ import annotations

from gpusim.model import validate
from gpusim.model.builder import ModelBuilder, builder_method
from gpusim.model.joint_kinds import joint_type
from gpusim.model.specs import CONTACT_SENSOR, JOINT_SENSOR, WORLD, SensorSpec


def _add(self: ModelBuilder, label: str | None, kind: str, index: int, site: int = -1) -> int:
    name = self._new_label("sensor", label, len(self.sensors))
    self.sensors.append(SensorSpec(name, kind, index, site))
    self._labels["sensor"][name] = len(self.sensors) - 1
    return len(self.sensors) - 1


@builder_method
def add_force_sensor(self: ModelBuilder, joint: int, label: str | None = None) -> int:
    """Add a force-torque sensor in a joint: what the child exerts on the parent.

    Signals ``sensor.<label>.force`` (3,) N and ``sensor.<label>.torque`` (3,) N m, at the joint's point and along its
    frame on the parent: the mean over the last step, of all rows of the joint together (reaction, drives, limits,
    friction, bounces). Diagrams can read them. They are one step older than poses and velocities.

    Args:
        joint: joint index, of a joint that locks something or has a drive.
        label: unique name; ``sensor<index>`` if left out.

    Returns:
        The sensor's index.

    Raises:
        ModelError: an unknown or free joint, a label that is taken.
    """
    element = self.element("sensor", label)
    if isinstance(joint, bool) or not isinstance(joint, int) or not 0 <= joint < len(self.joints):
        rule = f"joint = {joint!r} is unknown: there are {len(self.joints)} joints"
        raise validate.fail(element, rule, "give what add_joint_... returned")
    if not joint_type(self.joints[joint].kind).bears:
        rule = f"joint '{self.joints[joint].label}' is free and bears nothing"
        raise validate.fail(element, rule, "give a joint that holds something, or add a contact sensor")
    return _add(self, label, JOINT_SENSOR, joint)


@builder_method
def add_contact_sensor(self: ModelBuilder, body: int, site: int | None = None, label: str | None = None) -> int:
    """Add a sensor of all that touches a body, as under a foot.

    Signals ``sensor.<label>.force`` (3,) N, ``.torque`` (3,) N m about the sensor's origin, and
    ``.center_of_pressure`` (3,) m, all in the world frame: the mean over the last step, bounces included. The sum of
    force times dt is the momentum exchanged. They are one step older than poses and velocities; diagrams can read them.

    Args:
        body: body index.
        site: of the body, as its sole: torques are about its origin, and the center of pressure lies in its plane
            z = 0; left out: the body frame.
        label: unique name; ``sensor<index>`` if left out.

    Returns:
        The sensor's index.

    Raises:
        ModelError: an unknown body or site, a site of another body, a label that is taken.
    """
    element = self.element("sensor", label)
    body = self.check_body(element, "body", body)
    if body == WORLD:
        raise validate.fail(element, "body = -1 is the world", "put it on what touches the world")
    if site is not None:
        if isinstance(site, bool) or not isinstance(site, int) or not 0 <= site < len(self.sites):
            rule = f"site = {site!r} is unknown: there are {len(self.sites)} sites"
            raise validate.fail(element, rule, "give what add_site returned")
        if self.sites[site].body != body:
            rule = f"site '{self.sites[site].label}' is on {self.body_label(self.sites[site].body)}"
            raise validate.fail(element, rule, f"give a site on {self.body_label(body)}")
    return _add(self, label, CONTACT_SENSOR, body, -1 if site is None else site)
