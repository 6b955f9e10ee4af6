"""The one table of the arrays that a simulation holds: name, shape, number type, unit, meaning.

Dimensions by name: worlds, bodies (with the world itself as the last one), constraints, block (rows of the
largest constraint), axes, angles, controls. Number type "pose" is float64 always, "real" the simulation's
dtype, "int" int32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim.typing import Array


@dataclass(frozen=True)
class Field:
    """One array."""

    name: str
    dims: tuple[str | int, ...]
    kind: str
    unit: str
    doc: str


STATE_FIELDS: tuple[Field, ...] = (
    Field("time", ("worlds",), "pose", "s", "simulated time"),
    Field("position", ("worlds", "bodies", 3), "pose", "m", "center of mass, world frame"),
    Field("orientation", ("worlds", "bodies", 4), "pose", "-", "body to world, xyzw"),
    Field("linear_velocity", ("worlds", "bodies", 3), "real", "m/s", "of the center of mass, half a step back"),
    Field("angular_momentum", ("worlds", "bodies", 3), "real", "kg m2/s", "about the center of mass, half a step back"),
    Field("step_before", ("worlds",), "pose", "s", "size of the last substep; 0 right after a reset"),
    Field("impulse", ("worlds", "constraints", "block"), "real", "N s", "of the last kick"),
    Field("kick_before", ("worlds",), "pose", "s", "time that the last kick covered"),
    Field("axis_mode", ("worlds", "axes"), "int", "-", "state of each axis row (reference/laws.py)"),
    Field("axis_velocity", ("worlds", "axes"), "real", "m/s", "row velocity of the last drift, bias included"),
    Field("axis_velocity_before", ("worlds", "axes"), "real", "m/s", "row velocity one half step further back"),
    Field("angle", ("worlds", "angles"), "pose", "rad", "joint angles, counted over full turns"),
    Field("coupling_offset", ("worlds", "couplings"), "pose", "rad", "offset of gears and mimics; NaN: from the pose"),
    Field("command_before", ("worlds", "controls"), "pose", "-", "commands of the last step"),
    Field("residual", ("worlds",), "real", "m/s", "greatest row error that the last solve left"),
)

PARAMETER_FIELDS: tuple[Field, ...] = (
    Field("gravity", ("worlds", 3), "pose", "m/s2", "acceleration of free fall, world frame"),
    Field("mass", ("worlds", "bodies"), "pose", "kg", "mass"),
    Field("inertia", ("worlds", "bodies", 3, 3), "pose", "kg m2", "about the center of mass, body axes"),
    Field("limit_lower", ("worlds", "axes"), "pose", "m", "lower limit of an axis (rad on a turn)"),
    Field("limit_upper", ("worlds", "axes"), "pose", "m", "upper limit of an axis"),
    Field("damping", ("worlds", "axes"), "pose", "N s/m", "viscous damping of an axis"),
    Field("friction", ("worlds", "axes"), "pose", "N", "dry friction of an axis"),
    Field("armature", ("worlds", "axes"), "pose", "kg", "inertia felt along an axis"),
)


def number_type(kind: str, real: np.dtype[np.floating]) -> np.dtype:  # type: ignore[type-arg]
    """NumPy dtype of a field's kind."""
    return {"pose": np.dtype(np.float64), "real": np.dtype(real), "int": np.dtype(np.int32)}[kind]


def allocate(fields: tuple[Field, ...], sizes: dict[str, int], real: np.dtype[np.floating]) -> dict[str, Array]:  # type: ignore[type-arg]
    """Zeroed arrays of a table by name."""
    return {
        f.name: np.zeros([sizes[d] if isinstance(d, str) else d for d in f.dims], number_type(f.kind, real))
        for f in fields
    }
