"""Bushing with full matrices: springs and dampers that couple all six coordinates of a joint.

    F = -K q - C q',   K, C (6, 6) symmetric,   q: coordinates of the joint

Each matrix entry acts like a spring or damper (spring.py). The force law is second-order accurate, and stable for all
positive semidefinite K and C.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from gpusim import validate
from gpusim.description.actuator_kinds import (
    BEFORE_LAST,
    LAST,
    NEXT,
    ActuatorType,
    AxisMaker,
    Group,
    Parameter,
    Reading,
    StateReader,
    StepBuffers,
    register,
)
from gpusim.description.references import JOINT
from gpusim.description.specs import ActuatorSpec
from gpusim.typing import Array

SIZE = 6
ENTRIES = tuple((i, j) for i in range(SIZE) for j in range(i, SIZE))
"""Index pairs of the upper triangle, row by row, in the order of the parameters."""
FORCES = ("force_x", "force_y", "force_z", "torque_x", "torque_y", "torque_z")


def matrix(group: Group, letter: str, number: int) -> Array:
    """Return the matrix K (``letter`` "k") or C ("c") of actuator ``number``, (1 or num_worlds, 6, 6)."""
    columns = {entry: group.params[f"{letter}{entry[0]}{entry[1]}"][:, number] for entry in ENTRIES}
    worlds = max(column.size for column in columns.values())
    full = np.zeros((worlds, SIZE, SIZE))
    for (i, j), column in columns.items():
        full[:, i, j] = full[:, j, i] = column
    return full


def _force_reading(component: int) -> Reading:
    def read(group: Group, now: StateReader) -> Array:
        effort = []
        for number, axes in enumerate(group.axes):
            q, rate = now.axis_value(axes), now.axis_rate(axes)
            spring = matrix(group, "k", number)[:, component] * q
            effort.append(-(spring + matrix(group, "c", number)[:, component] * rate).sum(axis=1))
        return np.stack(effort, axis=1)

    name = FORCES[component]
    return Reading(name, "N" if component < 3 else "N m", f"{name.replace('_', ' along ')} of the parent's frame", read)


@register
class MatrixSpring(ActuatorType):
    """Bushing with the force -K q - C q' on the six coordinates of a joint."""

    name: ClassVar[str] = "matrix_spring"
    kernel_file: ClassVar[str] = "matrix_spring.cuh"
    kernel: ClassVar[tuple[str, ...]] = ("evaluate_coupled",)
    prefix: ClassVar[str] = "bushing"
    coupled: ClassVar[bool] = True
    references: ClassVar = {"joint": JOINT}
    parameters: ClassVar[tuple[Parameter, ...]] = tuple(
        Parameter(f"{letter}{i}{j}", "SI", f"entry {i}, {j} of the {name}")
        for letter, name in (("k", "stiffness"), ("c", "damping"))
        for i, j in ENTRIES
    )
    readings: ClassVar[tuple[Reading, ...]] = tuple(_force_reading(component) for component in range(SIZE))

    def axes(self, spec: ActuatorSpec, maker: AxisMaker) -> list[int]:
        """Return the axis row of each joint coordinate."""
        return [maker.joint_axis(spec.params["joint"], axis) for axis in range(SIZE)]

    def check(self, group: Group) -> None:
        """Raise ModelError if a matrix is not positive semidefinite, or a direction has no stiffness and no damping."""
        for number, spec in enumerate(group.specs):
            k, c = matrix(group, "k", number), matrix(group, "c", number)
            for name, values in (("stiffness", k), ("damping", c)):
                min_eigenvalue = np.linalg.eigvalsh(values).min()
                if min_eigenvalue < -1e-9 * np.abs(values).max():
                    rule = f"the {name} matrix has the negative eigenvalue {min_eigenvalue:g}"
                    raise validate.fail(spec.element, rule, "give a positive semidefinite matrix")
            if np.linalg.eigvalsh(k + c).min() <= 0.0:
                rule = "a motion has neither stiffness nor damping"
                raise validate.fail(spec.element, rule, "give this motion stiffness or damping")

    def potential(self, group: Group, now: StateReader) -> Array | None:
        """Return the stored energy q^T K q/2 (J)."""
        stored = []
        for number, axes in enumerate(group.axes):
            q = now.axis_value(axes)
            stored.append(0.5 * (q * np.matmul(matrix(group, "k", number), q[..., None])[..., 0]).sum(axis=1))
        return np.stack(stored, axis=1)

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        """Add the linear impulse-velocity law."""
        if velocity is not None:
            return
        semi_implicit, kick = work.scheme == "semi_implicit", work.kick_time
        for number, axes in enumerate(group.axes):
            k, c = matrix(group, "k", number), matrix(group, "c", number)
            q, rate, before = work.axis_position[:, axes], work.rate[:, axes], work.rate_old[:, axes]
            if semi_implicit:
                known, slope = np.matmul(k, q[..., None]), c + kick[..., None] * k
            else:
                spring = np.matmul(k, (q - 0.25 * work.h_prev * rate)[..., None])
                known = spring + np.matmul(c, (LAST * rate + BEFORE_LAST * before)[..., None])
                slope = 0.25 * work.h * k + NEXT * c
            work.add_coupled_law(group, number, -kick * known[..., 0], kick[..., None] * slope)
