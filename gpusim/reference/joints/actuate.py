"""Stage actuate: compute the forces of actuators on bodies, and the impulse-velocity laws of joint axes."""

from __future__ import annotations

from gpusim.reference import accuracy
from gpusim.reference.joints import coupled_laws, ropes
from gpusim.reference.joints.laws import AxisLaw
from gpusim.reference.step_buffers import StepBuffers


def actuate(w: StepBuffers) -> None:
    """Compute the forces of all actuators on bodies, and the impulse-velocity laws of all joint axes (laws.py)."""
    w.force[:] = w.parameters["applied_force"]
    w.torque[:] = w.parameters["applied_torque"]
    w.law = AxisLaw(w)
    for group in w.groups.values():
        group.type.push(group, w)
        group.type.evaluate(group, w, None)
    w.law.sum(w)
    w.law.bound(w)
    ropes.move_limits(w)
    coupled_laws.invert(w)


def relinearize(w: StepBuffers, rate: object) -> None:
    """Linearize nonlinear actuator laws again at the new axis velocities ``rate``, (num_worlds, axes)."""
    nonlinear = [g for g in w.groups.values() if g.type.nonlinear]
    for group in nonlinear:
        group.type.evaluate(group, w, rate[:, group.axis])  # type: ignore[index]
    if nonlinear:
        w.law.sum(w)
        coupled_laws.invert(w)


def advance(w: StepBuffers) -> None:
    """Update the state variables of the actuators after the solve."""
    for group in w.groups.values():
        group.type.advance(group, w)
    accuracy.measure_voids(w)
    accuracy.measure_jumps(w)
    w.state.arrays["command_before"][:] = w.model.acting(w.control)
