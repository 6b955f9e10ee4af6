"""Table of the arrays of a simulation: name, shape, number type, unit and meaning.

Most dimensions are numbers of elements. "bodies" includes the world as the last body. "block" is the number of rows of
the largest constraint. "surfaces" is the number of shapes plus the number of shape pairs with a custom material.
contact_fields.py describes the dimensions of contacts. There are four number types: "pose" (always float64), "stored"
(dtype of the simulation), "real" (computations in a substep, see description/config.py) and "int" (int32).
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable

import numpy as np

from gpusim import validate
from gpusim.description.actuator_kinds import ActuatorType
from gpusim.description.contact_fields import CONTACT_STATE_FIELDS, CONTACT_WORK_FIELDS
from gpusim.description.field import Field
from gpusim.typing import Array

_MAX_NUMBERS = 2**58
"""Maximum size of an array. An array of this size has 2 exabytes."""

STATE_FIELDS: tuple[Field, ...] = (
    Field("time", ("worlds",), "pose", "s", "simulated time"),
    Field("position", ("worlds", "bodies", 3), "pose", "m", "center of mass, world frame"),
    Field("orientation", ("worlds", "bodies", 4), "pose", "-", "body to world, xyzw"),
    Field("linear_velocity", ("worlds", "bodies", 3), "stored", "m/s", "of the center of mass, at the last half step"),
    Field("angular_momentum", ("worlds", "bodies", 3), "stored", "kg m2/s", "about the center of mass, last half step"),
    Field(
        "velocity_before",
        ("worlds", "bodies", 6),
        "stored",
        "m/s",
        "linear velocity, angular momentum, previous half step",
    ),
    Field("velocity_before_last", ("worlds", "bodies", 6), "stored", "m/s", "the same, one half step earlier"),
    Field("step_before", ("worlds",), "pose", "s", "size of the last substep; 0 right after a reset"),
    Field("posed", ("worlds",), "int", "-", "1: poses were written since the last substep"),
    Field("impulse", ("worlds", "constraints", "block"), "stored", "N s", "impulses of the last kick"),
    Field("kick_before", ("worlds",), "pose", "s", "duration of the last kick"),
    Field(
        "kick_before_last", ("worlds",), "pose", "s", "duration of the second-last kick; 0: none; -1: start with impact"
    ),
    Field("tension_stiffness", ("worlds", "bodies", 3, 3), "stored", "N m", "K, body axes (geometric_stiffness.py)"),
    Field("axis_mode", ("worlds", "axes"), "int", "-", "mode of each axis row (reference/joints/laws.py)"),
    Field("axis_velocity", ("worlds", "axes"), "stored", "m/s", "row velocity in the last drift, with bias"),
    Field("axis_velocity_before", ("worlds", "axes"), "stored", "m/s", "row velocity in the previous drift"),
    Field("angle", ("worlds", "angles"), "pose", "rad", "joint angles, including full rotations"),
    Field("coupling_offset", ("worlds", "couplings"), "pose", "rad", "offset of gears and mimics; NaN: from the pose"),
    Field("limit_now", ("worlds", "ropes", 2), "pose", "m", "current limits of ropes (ropes.py); NaN: as written"),
    Field("limit_rate", ("worlds", "ropes", 2), "pose", "m/s", "rates of rope limits in the last substep"),
    Field("limit_left", ("worlds", "ropes"), "int", "-", "remaining substeps in which rope limits move"),
    Field("sensed_wrench", ("worlds", "joint_sensors", 6), "stored", "N", "wrench of joints with a sensor (N, N m)"),
    Field("joint_slack", ("worlds", "joint_sensors"), "pose", "m", "infinite if the joint has broken, else 0"),
    Field("sensed_pull", ("worlds", "pulls"), "pose", "N s", "impulses along ropes, rods and tendons in the last step"),
    Field("sensed_contact", ("worlds", "contact_sensors", 6), "pose", "N s", "impulses on bodies with a sensor"),
    Field("sensed_time", ("worlds",), "pose", "s", "duration of the kicks of the last step"),
    Field("sensed_substeps", ("worlds",), "int", "-", "completed substeps of the last step"),
    Field("command_before", ("worlds", "controls"), "pose", "-", "commands of the last step"),
    Field("residual", ("worlds",), "stored", "m/s", "maximum row residual of the last solve"),
    Field("not_converged", ("worlds",), "int", "-", "number of substeps in which the solve did not converge"),
    Field("joint_drift_peak", ("worlds",), "pose", "m", "maximum gap of a joint; last bits: constraint"),
    Field("joint_tilt_peak", ("worlds",), "pose", "rad", "maximum error of a locked rotation; last bits: constraint"),
    Field("loop_open", ("worlds",), "int", "-", "consecutive substeps in which a loop was far apart (health.py)"),
    Field("spin_peak", ("worlds",), "pose", "rad", "maximum rotation in a substep of a rotor that is too fast"),
    Field("void_peak", ("worlds",), "pose", "m3", "maximum void in oil; last bits: index of the void"),
    Field("jump_peak", ("worlds",), "pose", "m", "maximum jump of a motion; last bits: its index"),
    Field("contact_residual", ("worlds",), "stored", "-", "maximum change of an impulse in the last sweep, relative"),
    Field("contact_streak", ("worlds",), "int", "-", "consecutive substeps with contact_residual above its limit"),
    Field("inexact", ("worlds",), "int", "-", "bits of the exceeded accuracy limits (reference/accuracy.py)"),
    *CONTACT_STATE_FIELDS,
)

PARAMETER_FIELDS: tuple[Field, ...] = (
    Field("gravity", ("worlds", 3), "pose", "m/s2", "acceleration of free fall, world frame"),
    Field("gravity_scale", ("worlds", "bodies"), "pose", "-", "factor of gravity for a body"),
    Field("mass", ("worlds", "bodies"), "pose", "kg", "mass"),
    Field("inertia", ("worlds", "bodies", 3, 3), "pose", "kg m2", "about the center of mass, body axes"),
    Field("applied_force", ("worlds", "bodies", 3), "pose", "N", "external force at the center of mass, world frame"),
    Field("applied_torque", ("worlds", "bodies", 3), "pose", "N m", "external torque, world frame"),
    Field("limit_lower", ("worlds", "axes"), "pose", "m", "lower limit of an axis (rad on a rotation)"),
    Field("limit_upper", ("worlds", "axes"), "pose", "m", "upper limit of an axis"),
    Field("damping", ("worlds", "axes"), "pose", "N s/m", "viscous damping of an axis"),
    Field("friction", ("worlds", "axes"), "pose", "N", "dry friction of an axis"),
    Field("armature", ("worlds", "axes"), "pose", "kg", "additional inertia along an axis"),
    Field("limit_restitution", ("worlds", "axes"), "pose", "-", "ratio of the speeds after and before an impact"),
    Field("shape_friction", ("worlds", "surfaces"), "pose", "-", "Coulomb's coefficient of a shape"),
    Field("shape_rolling_friction", ("worlds", "surfaces"), "pose", "m", "rolling torque divided by normal force"),
    Field("shape_spinning_friction", ("worlds", "surfaces"), "pose", "m", "spinning torque divided by normal force"),
    Field("shape_restitution", ("worlds", "surfaces"), "pose", "-", "ratio of the speeds after and before an impact"),
)

DERIVED_FIELDS: tuple[Field, ...] = (
    Field("body_gravity", ("worlds", "bodies", 3), "real", "m/s2", "gravity that acts on a body, world frame"),
    Field("inverse_mass", ("worlds", "bodies"), "real", "1/kg", "0 for bodies that impulses do not move"),
    Field("system_inverse_mass", ("worlds", "bodies"), "real", "1/kg", "sum over all bodies that joints connect"),
    Field("inertia", ("worlds", "bodies", 3, 3), "real", "kg m2", "of the parameter, in the simulation's number type"),
    Field("inertia_inverse_body", ("worlds", "bodies", 3, 3), "real", "1/(kg m2)", "inverse inertia, body axes"),
    Field("inertia_largest", ("worlds", "bodies"), "real", "kg m2", "largest principal moment"),
)

# Intermediate results of one substep in one world. Kernels keep the results in shared memory if they fit.
WORK_FIELDS: tuple[Field, ...] = (
    Field("rotation", ("bodies", 3, 3), "pose", "-", "rotation matrices, body to world"),
    Field("step_last", (), "pose", "s", "duration of the previous substep"),
    Field("element_value", ("elements",), "pose", "m", "values of the elements (rad for angles)"),
    Field("coupling_value", ("couplings",), "pose", "rad", "errors of the coupling rows"),
    Field("actuator_term", ("actuator_terms", 8), "pose", "N s", "terms of each actuator in a law (laws.cuh)"),
    Field("actuator_term_force", ("actuator_terms",), "pose", "N", "force of each actuator in the trial kick"),
    Field("inertia_inverse", ("bodies", 3, 3), "real", "1/(kg m2)", "inverse inertia, world frame"),
    Field(
        "inertia_inverse_effective",
        ("bodies", 3, 3),
        "real",
        "1/(kg m2)",
        "inverse inertia that the solver uses, world frame",
    ),
    Field("twist_before", ("bodies", 6), "real", "m/s", "(v, w) before the kick"),
    Field("twist", ("bodies", 6), "real", "m/s", "(v, w) during the solve"),
    Field("twist_kicked", ("bodies", 6), "real", "m/s", "(v, w) after the kick"),
    Field("kept_twist", ("bodies", 6), "real", "m/s", "(v, w) that the guard has stored"),
    Field("momentum_kicked", ("bodies", 3), "real", "kg m2/s", "angular momentum after the kick"),
    Field("midpoint", ("bodies", 3), "real", "rad/s", "angular velocity at the midpoint of the drift"),
    Field("spun", ("bodies",), "int", "-", "1: a body without joints that rotates by a large angle in this substep"),
    Field("rotation_terms", ("bodies", 18), "real", "-", "rotation operators E and T (curvature.cuh)"),
    Field("rotation_angle", ("bodies",), "real", "rad", "rotation in the substep"),
    Field("force", ("bodies", 3), "real", "N", "applied forces"),
    Field("torque", ("bodies", 3), "real", "N m", "applied torques"),
    Field("displacement", ("bodies", 6), "real", "m", "displacement of split impulses and push-outs"),
    Field("element_vectors", ("elements", 14), "real", "m", "u, arms, separation (elements.cuh)"),
    Field("element_bias", ("elements",), "real", "m/s", "curvature bias"),
    Field("jacobian", ("sides", "block", 6), "real", "-", "rows of J by side"),
    Field("mass_jacobian", ("sides", "block", 6), "real", "1/kg", "rows of J M^-1 by side"),
    Field("bias", ("rows",), "real", "m/s", "curvature bias of the rows"),
    Field("diagonal", ("rows",), "real", "1/kg", "diagonal of J M^-1 J^T; 1 for unused rows"),
    Field("gamma", ("rows",), "real", "1/kg", "compliance of the rows"),
    Field("factored_gamma", ("rows",), "real", "1/kg", "compliance at the last factorization"),
    Field("target", ("rows",), "real", "m/s", "right-hand side of the row equations"),
    Field("rhs", ("rows",), "real", "m/s", "right-hand side, and work array of the block solve"),
    Field("delta", ("constraints", "block"), "real", "N s", "result of the block solve; in sweeps x of contact_direct"),
    Field("scale", ("rows",), "real", "-", "row scale of the factor"),
    Field("scaled_diagonal", ("rows",), "real", "-", "diagonal after scaling"),
    Field("solved", ("constraints", "block"), "real", "N s", "impulses of this substep"),
    Field("kept_bias", ("rows",), "real", "m/s", "bias that the guard has stored"),
    Field("kept_impulse", ("constraints", "block"), "real", "N s", "impulses that the guard has stored"),
    Field("mass_blocks", ("blocks", "block", "block"), "real", "1/kg", "J M^-1 J^T"),
    Field("factor_blocks", ("blocks", "block", "block"), "real", "1/kg", "blocks of the factor"),
    Field("lower", ("edges", "block", "block"), "real", "-", "blocks L of the factor"),
    Field("inverse", ("constraints", "block", "block"), "real", "kg", "inverses of the pivots"),
    Field("axis_position", ("axes",), "real", "m", "joint coordinate or length of the axis rows"),
    Field("rate", ("axes",), "real", "m/s", "u-, mean rate in the last drift"),
    Field("rate_old", ("axes",), "real", "m/s", "u--, mean rate in the previous drift"),
    Field("rate_next", ("axes",), "real", "m/s", "u+, rate after the solve"),
    Field("law_impulse", ("axes",), "real", "N s", "P of the law"),
    Field("law_slope", ("axes",), "real", "kg", "D of the law"),
    Field("law_friction", ("axes",), "real", "N s", "maximum impulse of dry friction"),
    Field("clamped_impulse", ("clamps",), "real", "N s", "P of the clamped terms, axis by axis"),
    Field("clamped_slope", ("clamps",), "real", "kg", "D of the clamped terms"),
    Field("clamped_bound", ("clamps",), "real", "N s", "bounds of the clamped terms"),
    Field("coupled_impulse", ("coupled", "block"), "pose", "N s", "P of the coupled laws"),
    Field("coupled_slope", ("coupled", "block", "block"), "pose", "kg", "D of the coupled laws"),
    Field("coupled_gamma", ("coupled", "block", "block"), "real", "1/kg", "compliances D^-1 of the coupled laws"),
    Field("coupled_target", ("coupled", "block"), "real", "m/s", "targets D^-1 P of the coupled laws"),
    Field("velocity_lower", ("axes",), "real", "m/s", "lower velocity bound, from the limits"),
    Field("velocity_upper", ("axes",), "real", "m/s", "upper velocity bound, from the limits"),
    Field("response", ("axes",), "real", "1/kg", "velocity of the row per unit impulse"),
    Field("axis_reaction", ("color_axes", "block"), "real", "-", "impulses of rigid rows per axis row impulse"),
    Field("axis_gamma", ("color_axes",), "real", "1/kg", "compliance of axis rows that join the rigid rows; else 0"),
    Field("axis_motion", ("color_axes", "slots", 6), "real", "1/kg", "motions of bodies per axis row impulse"),
    Field("overflow_change", ("overflow_sides", 6), "real", "m/s", "velocity changes of overflow constraints"),
    Field("loop_gap", (), "pose", "m", "maximum gap in a loop in this substep; last bits: index of the constraint"),
    Field("position_error", (), "real", "rad", "maximum position error of loops; gaps are divided by the usual lever"),
    Field("error_before", (), "real", "rad", "position_error before the last correction; -1: no correction yet"),
    Field("position_rotation", (), "real", "rad^2", "square of the maximum rotation of the correction"),
    Field("load_size", (), "real", "J", "maximum of impulse squared times response, without self-stress"),
    Field("self_stress", (), "real", "J", "maximum of impulse squared times response, for self-stress"),
    Field("worst", (), "real", "m/s", "maximum residual of the rigid rows"),
    Field("wanted_change", (), "real", "N s", "maximum impulse change that solves a swept soft row"),
    Field("greatest_impulse", (), "real", "N s", "maximum impulse of swept rows"),
    Field("worst_change", (), "real", "m/s", "maximum residual that a row can reduce by its own impulse"),
    Field("load_error", (), "real", "m/s", "residual before the first pass"),
    Field("first_error", (), "real", "m/s", "residual before the first refresh"),
    Field("energy", ("constraints",), "pose", "J", "energy of a correction, by parts of the constraints"),
    Field("plain_energy", ("constraints",), "pose", "J", "energy of a correction with diag(A) instead of A"),
    Field("first_energy", (), "pose", "J", "energy of the first refresh's correction"),
    Field("factor_damping", (), "pose", "-", "fraction of the diagonal that the solver adds near singular poses"),
    Field("weak", (), "real", "-", "1: a pivot of the factor is weak"),
    Field("softening", (), "real", "-", "fraction of the diagonal that the solver adds after a weak pivot"),
    Field("residual_now", (), "real", "m/s", "residual of this solve"),
    Field("largest_change", (), "real", "N s", "maximum change of an impulse in this sweep"),
    Field("last_change", (), "real", "N s", "maximum change of an impulse in the previous sweep"),
    Field("contact_residual_now", (), "real", "-", "maximum change in the last sweep per maximum normal impulse"),
    Field("mode", ("axes",), "int", "-", "mode of the axis rows in this substep"),
    Field("wanted_mode", ("axes",), "int", "-", "mode to which an axis row switches"),
    *(
        Field(name, (), "int", "-", doc)
        for name, doc in (
            ("passes_remaining", "remaining passes"),
            ("correcting", "1: the world takes part in this pass"),
            ("closing", "1: the world takes part in this correction of positions"),
            ("stressed", "1: axis rows of a loop would switch their modes"),
            ("since_factor", "passes since the last factorization"),
            ("switches", "number of further factorizations"),
            ("refreshes", "number of refreshes of the curvature bias"),
            ("hold_bias", "1: the next pass keeps the curvature bias"),
            ("spinning", "1: the world has fast rotors and no contacts"),
            ("bias_fits", "1: the curvature bias matches the newest velocities"),
            ("stalled", "1: the guard stopped the passes"),
            ("refactor", "1: factor again"),
            ("softens", "1: factor again with a larger diagonal"),
            ("changed", "1: a mode changed"),
            ("stale", "1: a compliance has changed too much"),
            ("first_axis", "first axis row whose mode changed"),
            ("guard_action", "decision of the guard"),
            ("sweeps", "number of completed sweeps"),
            ("done", "1: the sweeps have converged"),
            ("unconverged", "1: this solve ended before it converged"),
            ("all_in_contact", "1: each mechanism (elimination tree) has a body in contact"),
            ("cause", "code of the first failure (health.cuh)"),
        )
    ),
    *CONTACT_WORK_FIELDS,
)


def state_fields(kinds: Iterable[ActuatorType]) -> tuple[Field, ...]:
    """Return the fields of the state, including the fields of the actuator types ``kinds``."""
    return (*STATE_FIELDS, *(f for kind in kinds for f in kind.state_fields))


def check_fields(kind: ActuatorType, fields: Iterable[Field], sizes: Container[str], first: tuple[str, ...]) -> None:
    """Check the arrays that a custom actuator type declares.

    Args:
        kind: actuator type.
        fields: arrays that the actuator type declares.
        sizes: names of the known dimensions.
        first: leading dimensions that the shape of each array must have.

    Raises:
        ModelError: a dimension or number type is invalid, a name already exists, or a name does not start with the name
            of the actuator type.
    """
    taken = {f.name for f in (*STATE_FIELDS, *PARAMETER_FIELDS, *DERIVED_FIELDS, *WORK_FIELDS)}
    numbers = ("pose", "stored", "int") if first else ("pose", "real", "stored", "int")
    for f in fields:
        element = f"actuator kind '{kind.name}', array '{f.name}'"
        unknown = [d for d in f.dims if isinstance(d, str) and d not in sizes]
        if unknown:
            raise validate.fail(element, f"dimension {unknown[0]!r} is unknown", f"give {kind.name}_count or a number")
        if f.dims[: len(first)] != first or "worlds" in f.dims[len(first) :]:
            rule = f"dimensions {f.dims} {'must start with' if first else 'must not contain'} 'worlds'"
            raise validate.fail(element, rule, "add 'worlds'" if first else "remove 'worlds'")
        if wrong := [d for d in f.dims if not isinstance(d, str | int) or isinstance(d, int) and d < 0]:
            raise validate.fail(element, f"dimension {wrong[0]!r} is no count", f"give {kind.name}_count or 0 or more")
        if f.kind not in numbers:
            raise validate.fail(element, f"number type {f.kind!r} is not valid", f"use one of {', '.join(numbers)}")
        if f.name in taken or not f.name.startswith(f"{kind.name}_"):
            rule = "the name already exists" if f.name in taken else "the name does not start with the name of the kind"
            raise validate.fail(element, rule, f"use another name that starts with {kind.name}_")


def number_type(kind: str, real: np.dtype[np.floating]) -> np.dtype:  # type: ignore[type-arg]
    """Return the NumPy dtype of a number type. ``real`` is the dtype of the number types "real" and "stored"."""
    if kind in ("real", "stored"):
        return np.dtype(real)
    return np.dtype(np.float64) if kind == "pose" else np.dtype(np.int32)


def allocate(fields: tuple[Field, ...], sizes: dict[str, int], real: np.dtype[np.floating]) -> dict[str, Array]:  # type: ignore[type-arg]
    """Return a dict from the names of the fields to arrays of zeros.

    Raises:
        MemoryError: an array does not fit into memory.
    """
    arrays: dict[str, Array] = {}
    for f in fields:
        shape = [sizes[d] if isinstance(d, str) else d for d in f.dims]
        if math.prod(shape) > _MAX_NUMBERS:  # NumPy would raise a ValueError or an OverflowError
            raise MemoryError(f"the array '{f.name}' would have {math.prod(shape):.0e} numbers")
        arrays[f.name] = np.zeros(shape, number_type(f.kind, real))
    return arrays
