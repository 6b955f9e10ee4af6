"""Generate the C++ headers of the kernels from model/fields.py and from the actuator kinds of a model.

The C++ struct ``Arguments`` contains all sizes, offsets and pointers. The C++ struct ``World`` has an accessor for each
array of one world.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

import numpy as np

from gpusim.actuators import prescribed_motion, refitted_law, strut
from gpusim.actuators.hydraulic import cavitation, circuit, circuit_parts, hydraulic_cylinder, hydraulics
from gpusim.backends import health
from gpusim.backends.kinds import Kinds, check_names, own_file, own_kinds
from gpusim.backends.tables import SIZES, TABLE_TYPES
from gpusim.compiler.coloring import FACTORED
from gpusim.compiler.contact_topology import LARGE, PARTS
from gpusim.compiler.topology import MIDDLE, OUTER
from gpusim.contact import constants as contact
from gpusim.contact.patch import PATCH_NODES
from gpusim.description.actuator_kinds import BEFORE_LAST, LAST, NEXT, ActuatorType
from gpusim.description.contact_fields import CARRIED_FIELDS, PARTNERS, WIDER
from gpusim.description.contact_record import RECORD_LAYOUT
from gpusim.description.shape_kinds import shape_codes
from gpusim.model.coordinates import KINDS
from gpusim.model.euler_angles import LOCKED
from gpusim.model.fields import DERIVED_FIELDS, PARAMETER_FIELDS, STATE_FIELDS, WORK_FIELDS, Field, state_fields
from gpusim.reference import accuracy, limits, rotors
from gpusim.reference.contacts import seams
from gpusim.reference.joints import (
    curvature,
    factor,
    free_rotation,
    geometric_stiffness,
    laws,
    modes,
    prediction,
    ropes,
    wrapping,
)
from gpusim.reference.layout import ROW_GAP
from gpusim.reference.signals import state_reader as now
from gpusim.reference.solve import colored_solve, direct_solve, drift, positions, self_stress, soft_rows
from gpusim.solver.schedule import stages
from gpusim.solver.step import reference_file

# Parameters that the kernels read directly. The kernels read masses and inertias through DERIVED_FIELDS.
READ_PARAMETERS = tuple(f for f in PARAMETER_FIELDS if f.name not in ("mass", "inertia"))
SETTINGS_INT = ("semi_implicit", "iterations", "geometric_stiffness", "substeps", "bounces", "contact_streak_limit")
SETTINGS_DOUBLE = (
    "impulse_tolerance", "contact_margin", "contact_slop", "max_depenetration_speed",
    "joint_drift_limit", "joint_tilt_limit", "loop_gap_limit", "usual_lever",
    "contact_residual_limit", "min_contact_change",
)  # fmt: skip
# If the argument ``steps`` has one of these values, fused.cu runs stage forward or stage pose instead of steps.
FORWARD, POSE = 0, -1
# Gap between slabs in shared memory (bytes), so that the slabs start in different banks.
TILE_GAP = 8
CONTACT_NUMBERS = (
    "SLIP_SHARE", "SLIDING_SHARE", "ROTATION_LIMIT", "PUSH_SHARE", "PUSH_YIELD", "PUSH_YIELD_JOINED", "PUSH_BAND",
    "SOFT_JOINED", "REST_WEIGHTS", "PUSHED_OUT",
    "PUSH_WEIGHTS", "POINT_FLOOR", "POINT_MIN", "TANGENT_FLOOR", "POINT_PASSES", "FRICTION_PASSES", "PATCH_STICK",
    "NO_FORCE", "SOFTEST", "FIRM_MANIFOLDS", "NEW_PASSES", "NEW_AGE", "PASS_SETTLED", "STEADY", "SPRING_DAMPING",
    "NEWTON_PASSES", "NEWTON_HALVINGS", "NEWTON_GROWTH", "NEWTON_MAX_DAMPING", "NEWTON_GAIN", "NEWTON_SLOW",
    "TIRE_DAMPING", "TIRE_FADE", "TIRE_PASSES", "TIRE_STEPS", "TIRE_MIN", "TIRE_FLAT",
)  # fmt: skip
# Patterns for the name of an accessor, and for a comment at the end of a line.
_NAME, _NOTE = re.compile(r"(\w+)\("), re.compile(r"(?<=\S)  // .*$", re.MULTILINE)
C_TYPES = {"pose": "double", "real": "real", "stored": "stored", "int": "int"}


def constants(real: np.dtype[np.floating]) -> dict[str, float]:  # type: ignore[type-arg]
    """Return a dict of the numerical constants that NumPy code and kernels share."""
    return {
        "NEXT": NEXT,
        "LAST": LAST,
        "BEFORE_LAST": BEFORE_LAST,
        "PAPERS_SUBSTEP": hydraulics.PAPERS_SUBSTEP,
        "VOLUME_SYNC": hydraulic_cylinder.VOLUME_SYNC,
        "OIL_ITERATIONS": cavitation.MAX_ITERATIONS,
        "OIL_PRECISION": cavitation.PRECISION,
        "OIL_STIFFNESS_LEFT": cavitation.STIFFNESS_LEFT,
        "OIL_MIN_FILLING": cavitation.MIN_FILLING,
        "OIL_HALVINGS": cavitation.MAX_HALVINGS,
        "OIL_MIN_VOID": cavitation.MIN_VOID,
        "OIL_OVERSHOOT": circuit.OVERSHOOT,
        "OIL_SECANTS": circuit.MAX_SECANTS,
        "OIL_MARGIN": circuit.SECANT_MARGIN,
        "MOTION_JUMP_SPEED": prescribed_motion.JUMP_SPEED,
        "MOTION_SMOOTH_RATE": prescribed_motion.SMOOTH_RATE,
        "MOTION_SMOOTH_WAY": prescribed_motion.SMOOTH_WAY,
        "LAW_ROUNDS": refitted_law.ROUNDS,
        "LAW_KEPT": refitted_law.KEPT,
        "LAW_SWINGING": refitted_law.SWINGING,
        "LAW_MIN_SHARE": refitted_law.MIN_SHARE,
        "LAW_SETTLED": refitted_law.SETTLED,
        "LAW_ROUNDING": refitted_law.ROUNDING,
        "PASSES": direct_solve.PASSES,
        "RELAX_PASSES": direct_solve.RELAX_PASSES,
        "MAX_REFRESHES": direct_solve.MAX_REFRESHES,
        "STALE": direct_solve.STALE,
        "MIN_SLOPE": direct_solve.MIN_SLOPE[real],
        "MIN_NUMBER": float(np.finfo(real).tiny) * 1e6,
        "CAREFUL_AFTER": direct_solve.CAREFUL_AFTER,
        "CONTRACTION": direct_solve.CONTRACTION,
        "DAMPING": direct_solve.DAMPING,
        "FAR_RATIO": direct_solve.FAR_RATIO,
        "MAX_BEND": direct_solve.MAX_BEND,
        "MAX_DAMPING": direct_solve.MAX_DAMPING,
        "LOOSE": direct_solve.LOOSE,
        "RUNAWAY": direct_solve.RUNAWAY,
        "RUNAWAY_DAMPING": direct_solve.RUNAWAY_DAMPING,
        "GAIN": direct_solve.GAIN,
        "ROUNDING": direct_solve.ROUNDING[real],
        "SETTLED": direct_solve.SETTLED[real],
        "LOOPS_SETTLED": direct_solve.LOOPS_SETTLED[real],
        "CONTACTS_SETTLED": direct_solve.CONTACTS_SETTLED,
        "SMOOTH": prediction.SMOOTH,
        "SMALL_CHANGE": prediction.SMALL_CHANGE,
        "SELF_STRESS": self_stress.SELF_STRESS[real],
        "REGULARIZATION": factor.REGULARIZATION[real],
        "WEAK_PIVOT": factor.WEAK_PIVOT[real],
        "SOFTENING": factor.SOFTENING[real],
        "DEAD_BAND": modes.DEAD_BAND[real],
        "REVERSAL_FRACTION": modes.REVERSAL_FRACTION,
        "MAX_DOUBLINGS": modes.MAX_DOUBLINGS,
        "LIMIT_RECOVERY": laws.LIMIT_RECOVERY,
        "LIMIT_SPEED": laws.LIMIT_SPEED,
        "LOOP_SPEED": laws.LOOP_SPEED,
        "LENGTH_SPEED": ropes.LENGTH_SPEED,
        "WRAP_NEWTON": wrapping.MAX_NEWTON,
        "WRAP_SETTLED": wrapping.SETTLED,
        "WRAP_MIN": wrapping.MIN_RADIUS,
        "WRAP_ROUNDING": wrapping.ROUNDING,
        "MIDPOINT_PASSES": curvature.MIDPOINT_PASSES,
        "SLOW_ROTATION": curvature.SLOW_ROTATION,
        "FULL_BIAS_BELOW": curvature.FULL_BIAS_BELOW,
        "MIN_SPIN": rotors.MIN_SPIN,
        "MAX_NUTATION": rotors.MAX_NUTATION,
        "MIN_SWING": rotors.MIN_SWING,
        "ROTOR_PASSES": rotors.PASSES,
        "FREE_ROTATION": free_rotation.FREE_ROTATION,
        "MIN_FREE_ROTATION": free_rotation.MIN_FREE_ROTATION,
        "MAX_FREE_ROTATIONS": free_rotation.MAX_FREE_ROTATIONS,
        "FAST_ROTATION": drift.FAST_ROTATION,
        "GIMBAL_LOCK": LOCKED,
        "STIFFNESS_FACTOR": geometric_stiffness.FACTOR,
        "STIFFNESS_THRESHOLD": geometric_stiffness.THRESHOLD,
        "STIFFNESS_RAMP": geometric_stiffness.RAMP,
        "STIFFNESS_FADE": geometric_stiffness.FADE,
        "SPLIT_FRACTION": positions.SPLIT_FRACTION,
        "CLOSED": positions.CLOSED,
        "CLOSING_RATIO": positions.CLOSING_RATIO,
        "OPEN": positions.OPEN,
        "APART": positions.APART,
        "REFITS": colored_solve.REFITS,
        "POSITION_SWEEPS": colored_solve.POSITION_SWEEPS,
        "COUPLING_LIMIT": soft_rows.COUPLING_LIMIT,
        "MIN_RESPONSE": soft_rows.MIN_RESPONSE[real],
        "MIN_CORRECTION": colored_solve.MIN_CORRECTION,
        "FULL_CORRECTION_BELOW": colored_solve.FULL_CORRECTION_BELOW,
        **seams.CONSTANTS,
        "GREATEST_SPEED": health.GREATEST_SPEED,
        "OPEN_SUBSTEPS": limits.OPEN_SUBSTEPS,
        "GPUSIM_PI": math.pi,
        "PATCH_NODES": PATCH_NODES,
        "PARTS": PARTS,
        "LARGE": LARGE,
        "PARTNERS": PARTNERS,
        "WIDER": WIDER,
        "CARRY_SPRING": now.SPRING,
        "CARRY_SMALL": now.SMALL,
        "CARRY_ROUGH": now.ROUGH,
        **{name: getattr(contact, name)[real] for name in ("CONVERGED", "NEWTON_SETTLED", "NEWTON_DAMPING")},
        **{name: getattr(contact, name) for name in CONTACT_NUMBERS},
        **{k: x for stage in stages() for k, x in getattr(reference_file(stage), "CONSTANTS", {}).items()},
    }


def codes() -> dict[str, int]:
    """Return a dict of the integer codes that host code and kernels share."""
    modes_of_rows = (
        "FREE", "SLIDE_UP", "SLIDE_DOWN", "STICK", "AT_LOWER", "AT_UPPER", "CONTACT_BITS", "CLAMP_UP", "CLAMP_DOWN",
    )  # fmt: skip
    failures = (
        "STARTED", "ACTUATOR", "LINEAR", "ANGULAR", "POSITION", "ORIENTATION", "COMMAND", "JOINT", "INDICES",
    )  # fmt: skip
    return {
        **{name: getattr(laws, name) for name in modes_of_rows},
        **{f"HEALTH_{name}": getattr(health, name) for name in failures},
        "MAX_VARIABLES": health.MAX_VARIABLES,
        **{
            f"INEXACT_{name}": getattr(accuracy, name)
            for name in ("JOINTS", "CONTACTS", "MODES", "VOIDS", "JUMPS", "SPINS")
        },
        "TAG_MASK": accuracy.TAG_MASK,
        "OUTER": OUTER,
        "MIDDLE": MIDDLE,
        "ROW_GAP": ROW_GAP,
        **contact.CODES,
        **{f"OIL_{name}": getattr(circuit_parts, name) for name in circuit_parts.EDGE_KINDS},
        **{f"FIRST_{name.upper()}": first for name, first in hydraulic_cylinder.HydraulicCylinder.voids.items()},
        "MAX_OIL_NODES": circuit.MAX_NODES,
        "MAX_OIL_CONSUMERS": circuit.MAX_CONSUMERS,
        "FACTORED": FACTORED,
        **{kind.upper(): number for kind, number in KINDS.items()},
        **shape_codes(),
        **strut.NUMBERS,
        "FORWARD": FORWARD,
        "POSE": POSE,
        "TILE_GAP": TILE_GAP,
    }


def slab_fields(kinds: Kinds) -> list[Field]:
    """Return the fields of all arrays in a slab (memory block of one world)."""
    fields = list(STATE_FIELDS)
    for kind in kinds:
        fields += [*kind.state_fields, *kind.kernel_fields]
        if kind.variables:
            name, dims = f"{kind.name}_state", (f"{kind.name}_numbers",)
            fields.append(Field(name, dims, "stored", "SI", "actuators' variables"))
        if kind.kernel_scratch:
            fields.append(Field(f"{kind.name}_scratch", (f"{kind.name}_scratches",), "pose", "SI", "of one substep"))
    fields += WORK_FIELDS
    order = ("pose", "real", "stored", "int")
    return [f for kind in order for f in fields if f.kind == kind]


def kept_fields(kinds: Kinds) -> list[Field]:
    """Return the fields of the arrays in a slab that keep their values between steps."""
    names = {f.name for f in state_fields(kinds)} | {f"{k.name}_state" for k in kinds}
    return [f for f in slab_fields(kinds) if f.name in names]


def all_sizes(kinds: Kinds) -> list[str]:
    """Return the names of all sizes, including the sizes of actuator kinds."""
    names = list(SIZES)
    for kind in kinds:
        names += [f"{kind.name}_count", f"{kind.name}_numbers", f"{kind.name}_scratches"]
    return names


def argument_members(kinds: Kinds) -> list[tuple[str, str]]:
    """Return the C type and the name of each member of the C++ struct ``Arguments``."""
    members = [("const int*" if t == "int" else "const double*", name) for name, t in TABLE_TYPES.items()]
    members += [(f"const {C_TYPES[f.kind]}*", f.name) for f in (*READ_PARAMETERS, *DERIVED_FIELDS)]
    members += [(f"{C_TYPES[f.kind]}*", f"kept_{f.name}") for f in kept_fields(kinds)]
    for kind in kinds:
        members += [("const int*", f"{kind.name}_axis"), ("const int*", f"{kind.name}_columns")]
        members += [("const double*", f"{kind.name}_parameters")]
    members += [("const double*", "control"), ("char*", "slab")]
    members += [("int*", "health"), ("int*", "failed"), ("int*", "active"), ("int*", "overflowed"), ("int*", "inexact")]
    members += [("double*", "health_value")]
    members += [("long long", f"stride_{f.name}") for f in (*READ_PARAMETERS, *DERIVED_FIELDS)]
    members += [("long long", f"stride_{kind.name}") for kind in kinds]
    members += [("long long", f"offset_{f.name}") for f in slab_fields(kinds)]
    members += [("long long", "slab_bytes")]
    members += [("double", name) for name in SETTINGS_DOUBLE]
    members += [("int", f"n_{name}") for name in all_sizes(kinds)]
    members += [("int", name) for name in SETTINGS_INT]
    check_names(kinds, [name for _, name in members])
    return members


def codes_header() -> str:
    """Return ``codes.cuh`` with the integer codes, for sources that do not depend on a model."""
    lines = [f"#define {name} {value!r}" for name, value in codes().items()]
    return "\n".join(["// Generated by gpusim/backends/codegen/header.py.", "#pragma once", *lines]) + "\n"


def arguments_header(real: np.dtype[np.floating], kinds: Kinds) -> str:  # type: ignore[type-arg]
    """Return ``world.cuh``: constants, ``Arguments``, and ``World`` with an accessor for each array."""
    out = ["// Generated by gpusim/backends/codegen/header.py.", "#pragma once"]
    out += ['#include "math/platform.cuh"', '#include "sizes.cuh"']
    out += [f"#define {name} {value!r}" for name, value in (constants(real) | codes() | RECORD_LAYOUT).items()]
    out += ["struct Arguments {", *(f"    {t} {name};" for t, name in argument_members(kinds)), "};"]
    world = list(_world(kinds))
    check_names(kinds, [_NAME.findall(line)[0] for line in world if "MEMBER" in line])
    out += world
    return "\n".join(out) + "\n"


def sizes_header(fixed: dict[str, int] | None) -> str:
    """Return ``sizes.cuh`` with macros for sizes and offsets.

    Args:
        fixed: sizes (``n_...``) and offsets (``offset_...``) that become constants, by name. With None, all sizes and
            offsets come from the kernel arguments.
    """
    if fixed is None:
        lines = "#define GPUSIM_SIZE(name) args()->n_##name", "#define GPUSIM_OFFSET(name) args()->offset_##name"
        return "\n".join(["#pragma once", *lines]) + "\n"
    out = ["#pragma once", "#define GPUSIM_SIZE(name) FIXED_n_##name"]
    out += ["#define GPUSIM_OFFSET(name) FIXED_offset_##name"]
    return "\n".join(out + [f"#define FIXED_{name} {value}" for name, value in fixed.items()]) + "\n"


def without_notes(text: str) -> str:
    """Remove the comments from a generated header. Changes of comments then cause no recompilation."""
    return _NOTE.sub("", text)


def _member(kind: str, name: str, arguments: str, value: str, note: str = "") -> str:
    """Return the C++ line of one accessor of ``World``, with a comment."""
    return f"    MEMBER {kind} {name}({arguments}) const {{ return {value}; }}" + (f"  // {note}" if note else "")


def _noted(f: Field) -> str:
    """Return the comment for an array: shape in one world, unit and meaning."""
    return f"({', '.join(str(d) for d in f.dims if d != 'worlds')}) {f.unit}: {f.doc}"


def _world(kinds: Kinds) -> Iterable[str]:
    yield from ("struct World {", "    const Arguments* a;", "    char* base;", "    double h;")
    yield from ("    int id;", "#if defined(GPUSIM_ONE_THREAD)", "    static constexpr int tid = 0, threads = 1;")
    yield from ("#else", "    int tid, threads;", "#endif")
    yield from ("#if GPUSIM_GPU", "    int slab_offset;  // in shared memory, bytes")
    yield from ("    unsigned tile;  // bits of the threads in their warp", "#endif")
    yield "    MEMBER const Arguments* args() const { return in_global(a); }"
    yield "    MEMBER void sync(GPUSIM_CALLER) const { GPUSIM_BARRIER(); }"
    for name in all_sizes(kinds):
        if name == "worlds":  # the number of worlds is never a constant
            continue
        yield _member("int", name, "", f"GPUSIM_SIZE({name})")
    # The joint solver is a constant of the build.
    yield _member("int", "direct", "", "GPUSIM_DIRECT")
    for name in (*SETTINGS_INT, *SETTINGS_DOUBLE):
        yield _member("int" if name in SETTINGS_INT else "double", name, "", f"args()->{name}")
    for name, kind in TABLE_TYPES.items():
        yield _member(f"const {kind}*", name, "", f"in_global(args()->{name})")
    for f in (*READ_PARAMETERS, *DERIVED_FIELDS):
        value = f"in_global(args()->{f.name}) + id * args()->stride_{f.name}"
        yield _member(f"const {C_TYPES[f.kind]}*", f.name, "", value, _noted(f))
    for f in slab_fields(kinds):
        kind = C_TYPES[f.kind]
        value = f"slab_array<{kind}>(GPUSIM_SLAB + GPUSIM_OFFSET({f.name}))"
        yield _member(f"{kind}*", f.name, "", value, _noted(f))
    for f in CARRIED_FIELDS:
        numbers = " * ".join(f"{d}()" if isinstance(d, str) else str(d) for d in f.dims[1:])
        value = f"in_global(args()->kept_{f.name}) + (long long)id * {numbers}"
        yield _member(f"const {C_TYPES[f.kind]}*", f"before_{f.name}", "", value, f"{_noted(f)}; of the last step")
    yield _member("int", "before_count", "", "in_global(args()->kept_pair_count)[id]")
    given = "in_global(args()->control)[(long long)id * controls() + column]"
    value = f"mapped_command({given}, command_map() + 4 * column)"
    yield _member("double", "control", "int column", value, "what the actuator takes")
    for actuator in kinds:
        yield from _actuator_accessors(actuator)
    yield "};"


def _actuator_accessors(kind: ActuatorType) -> Iterable[str]:
    """Yield C++ accessors for the parameters, variables, commands and scratch numbers of an actuator kind."""
    n = f"{kind.name}_count()"
    axis = f"in_global(args()->{kind.name}_axis)"
    yield _member("const int*", f"{kind.name}_axis", "", axis, "axis rows, or bodies that are pushed")
    for at, p in enumerate(kind.parameters):
        value = f"in_global(args()->{kind.name}_parameters)[id * args()->stride_{kind.name} + {at} * {n} + k]"
        yield _member("double", f"{kind.name}_{p.name}", "int k", value, f"{p.unit}: {p.doc}")
    for at, v in enumerate(kind.variables):
        value = f"{kind.name}_state()[{at} * {n} + k]"
        yield _member("stored&", f"{kind.name}_{v.name}", "int k", value, f"{v.unit}: {v.doc}")
    for at, name in enumerate(kind.kernel_scratch):
        yield _member("double&", f"{kind.name}_{name}", "int k", f"{kind.name}_scratch()[{at} * {n} + k]")
    for at, name in enumerate(kind.commands):
        column = f"in_global(args()->{kind.name}_columns)[{at} * {n} + k]"
        yield _member("double", f"{kind.name}_{name}_now", "int k", f"control({column})", "in the coming step")
        yield _member("double", f"{kind.name}_{name}_before", "int k", f"command_before()[{column}]", "in the last one")


def actuators_header(kinds: Kinds) -> str:
    """Return ``kinds.cuh``: includes of all actuator kinds, and the phases that call their functions."""
    own = own_kinds(kinds)
    files = sorted({k.kernel_file for k in kinds if k.kernel_file and k not in own})
    out = ["// Generated by gpusim/backends/codegen/header.py.", "#pragma once"]
    out += ['#include "actuate.cuh"', '#include "joints/coupled_laws.cuh"', '#include "health.cuh"']
    out += [f'#include "actuators/{name}"' for name in files]
    out += [f'#include "{own_file(kind)}"' for kind in own]
    out += _term_phases(kinds) + _coupled_phases(kinds)
    out += _advance_phase(kinds) + _push_phase(kinds) + _copy_state(kinds)
    return "\n".join(out) + "\n"


def _term_phases(kinds: Kinds) -> list[str]:
    """Return the C++ code of the phases that evaluate and relinearize actuator laws."""
    adders = [k for k in kinds if "evaluate" in k.kernel]
    out = ["GPUSIM_PHASE void evaluate_term(const World& w, int i) {"]
    out += ["    ActuatorTerm& own = actuator_term(w, i);", "    clear_term(own);"]
    for kind in adders:
        out.append(f"    if (i < w.{kind.name}_count()) return {kind.name}_evaluate(w, i, own);")
        out.append(f"    i -= w.{kind.name}_count();")
    out += ["}", "GPUSIM_PHASE void relinearize_term(const World& w, int i) {"]
    out += ["    ActuatorTerm& own = actuator_term(w, i);"]
    for kind in adders:
        call = f"{kind.name}_relinearize(w, i, own)" if "relinearize" in kind.kernel else "void()"
        out.append(f"    if (i < w.{kind.name}_count()) return {call};")
        out.append(f"    i -= w.{kind.name}_count();")
    out.append("    (void)own;")
    return [*out, "}"]


def _coupled_phases(kinds: Kinds) -> list[str]:
    """Return the C++ code of the phases that evaluate and relinearize laws that couple several axes."""
    out = ["#if GPUSIM_COUPLED"]
    for function in ("evaluate_coupled", "relinearize_coupled"):
        out += [f"GPUSIM_PHASE void {function}_law(const World& w, int i) {{", "    int k = i;", "    (void)k;"]
        for kind in kinds:
            if kind.coupled:
                call = f"{kind.name}_{function}(w, k, coupled_law(w, i))" if function in kind.kernel else "void()"
                out.append(f"    if (k < w.{kind.name}_count()) return {call}, invert_coupled(w, i);")
                out.append(f"    k -= w.{kind.name}_count();")
        out.append("}")
    return [*out, "#endif"]


def _advance_phase(kinds: Kinds) -> list[str]:
    out = ["GPUSIM_PHASE void advance_actuator(const World& w, int i) {"]
    for kind in kinds:
        call = f"{kind.name}_advance(w, i)" if "advance" in kind.kernel else "void()"
        out.append(f"    if (i < w.{kind.name}_count()) return {call};")
        out.append(f"    i -= w.{kind.name}_count();")
    return [*out, "}"]


def _push_phase(kinds: Kinds) -> list[str]:
    """Return the C++ code of the phase that adds up the actuator forces on each body."""
    out = [
        "GPUSIM_PHASE void push_body(const World& w, int b) {",
        "    double force[3], torque[3];",
        "    copy3(w.applied_force() + 3 * b, force);",
        "    copy3(w.applied_torque() + 3 * b, torque);",
        "    for (int n = w.body_push_start()[b]; n < w.body_push_start()[b + 1]; ++n) {",
        "        int i = w.body_push()[n];",
    ]
    for kind in kinds:
        if "push" in kind.kernel:
            call = f"{{ {kind.name}_push(w, i, force, torque); continue; }}"
            out.append(f"        if (i >= 0 && i < w.{kind.name}_count()) {call}")
        out.append(f"        i -= w.{kind.name}_count();")
    out += ["    }", "    for (int k = 0; k < 3; ++k) {"]
    out += ["        w.force()[3 * b + k] = real(force[k]);", "        w.torque()[3 * b + k] = real(torque[k]);"]
    return [*out, "    }", "}"]


def size_expression(f: Field, world: str = "w.") -> str:
    """Return the number of entries of a field in one world as a C expression."""
    dims = [f"{world}{d}()" if isinstance(d, str) else str(d) for d in f.dims if d != "worlds"]
    return " * ".join(dims) or "1"


def _copy_state(kinds: Kinds) -> list[str]:
    """Return the C++ code of the phases that copy the state between slabs and state arrays."""
    out = []
    for name, left, right in (("load_state", "slab", "kept"), ("store_state", "kept", "slab")):
        out.append(f"GPUSIM_PHASE void {name}(const World& w) {{")
        # Copy only the used pairs.
        out.append(f"    const int pairs = {'w.before_count()' if left == 'slab' else '*w.pair_count()'};")
        for f in kept_fields(kinds):
            slab, own = f"w.{f.name}()", f"in_global(w.args()->kept_{f.name})"
            kept = f"({own} + (long long)w.id * ({size_expression(f)}))"
            here = {"slab": slab, "kept": kept}
            used = size_expression(f).replace("w.pairs()", "pairs")
            out.append(f"    copy_numbers({here[right]}, {here[left]}, {used}, w.tid, w.threads);")
        out.append("}")
    # For a reset, the phase copies the arrays of the reset state.
    out.append("GPUSIM_PHASE void restore_state(const World& w, const Arguments* from) {")
    for f in kept_fields(kinds):
        index = f"(long long)w.id * ({size_expression(f)}) + i"
        loop = f"GPUSIM_ROLLED for (int i = w.tid; i < {size_expression(f)}; i += w.threads)"
        source = f"in_global(in_global(from)->kept_{f.name})"
        out.append(f"    {loop} in_global(w.args()->kept_{f.name})[{index}] = {source}[{index}];")
    out.append("}")
    out.append("GPUSIM_PHASE void check_actuator(const World& w, int i) {")
    out.append("    int number = i;")
    for kind in kinds:
        tests = [
            f"if (!(w.{kind.name}_{v.name}(number) - w.{kind.name}_{v.name}(number) == stored(0))) "
            f"blame(w, HEALTH_ACTUATOR, i * MAX_VARIABLES + {at});"
            for at, v in enumerate(kind.variables)
            if not v.may_be_unset
        ]
        action = f"{{ {' '.join(tests)} return; }}"
        out.append(f"    if (number < w.{kind.name}_count()) {action}")
        out.append(f"    number -= w.{kind.name}_count();")
    return [*out, "}"]
