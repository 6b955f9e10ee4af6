"""Conversion of a builder to a Model: checks, elements, constraint rows, constraints and parameters."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable, Set
from dataclasses import fields, replace
from typing import TypeVar

import numpy as np

from gpusim import validate
from gpusim.builder.collision_groups import GroupRules, shapes_with_bits
from gpusim.builder.commands import (
    applied_names,
    command_hints,
    command_names,
    has_delay,
    initial_activation,
    initial_command,
    map_of,
    operator_commands,
)
from gpusim.compiler.contact_topology import check_laws, contact_topology, pairs_with_material
from gpusim.compiler.hubs import find_hubs
from gpusim.compiler.mass import complete_bodies
from gpusim.compiler.ray_sensors import with_shapes
from gpusim.compiler.rows import AXIS_PARAMETERS, Constraint, RowCollector
from gpusim.compiler.topology import Topology
from gpusim.description.actuator_kinds import MAX_CLAMPED, Group, Parameter, actuator_type
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import joint_type
from gpusim.description.operator_names import STOP_BUTTON
from gpusim.description.program import DiagramSpec, OperatorInput
from gpusim.description.references import ACTUATOR
from gpusim.description.specs import ActuatorSpec, JointSpec
from gpusim.description.ui_hints import UiHints
from gpusim.errors import ModelError, unknown_name
from gpusim.meshes.mesh_seams import with_mesh_seams
from gpusim.model.model import Model
from gpusim.typing import Array

_Spec = TypeVar("_Spec", JointSpec, ActuatorSpec)
LENGTH = -1
"""Coordinate index that stands for the length of a rod. This length is not a joint coordinate."""


def finalize(builder: Elements, gravity: Array, group_rules: GroupRules) -> Model:
    """Check the content of a builder, and compile it to a model. ``gravity`` is (3,), m/s2."""
    if not builder.bodies:
        raise validate.fail("ModelBuilder", "there is no body", "add at least one with add_body")
    builder = copy.copy(builder)
    for name in ("joints", "couplings", "pairs", "visuals", "sites", "sensors", "diagrams", "cameras", "lights"):
        setattr(builder, name, list(getattr(builder, name)))
    builder.sensors = [with_shapes(s, builder) for s in builder.sensors]
    builder.shapes = with_mesh_seams(shapes_with_bits(builder.shapes, group_rules))
    builder.bodies = complete_bodies(builder)
    builder.actuators = [actuator_type(s.kind).completed(s, builder.bodies) for s in builder.actuators]
    _check_joints(builder)
    for kind, actuators in _by_kind(builder.actuators).items():
        actuator_type(kind).check_model(actuators, builder)
    return compiled(builder, gravity, frozenset())


def with_axes(model: Model, axes: Iterable[tuple[int, int]]) -> Model:
    """Return a model with additional axis rows for the joint coordinates ``axes``."""
    axes = set(axes)
    joints = list(model.joints)
    for index in (joint for joint, coordinate in axes if coordinate == LENGTH):
        kind = joint_type(joints[index].kind)
        joints[index] = replace(joints[index], params=kind.moving(joints[index].params) or joints[index].params)
    model = replace(model, joints=joints)
    return compiled(model, model.parameters["gravity"][0], {(a.joint, a.coordinate) for a in model.axes} | axes)


def compiled(builder: Elements, gravity: Array, asked: Set[tuple[int, int]]) -> Model:
    """Compile checked elements to a model, with additional axis rows for the joint coordinates ``asked``."""
    specs = _by_kind(builder.actuators)
    collector = RowCollector(builder, asked)
    axes = {kind: [actuator_type(kind).axis(s, collector) for s in group] for kind, group in specs.items()}
    collector.axis_of_actuator = {s.label: a for k, group in specs.items() for s, a in zip(group, axes[k], strict=True)}
    reached = {k: [actuator_type(k).axes(s, collector) for s in group] for k, group in specs.items()}
    collector.collect()
    for kind in sorted(k for k in specs if actuator_type(k).coupled):
        for spec, own in zip(specs[kind], reached[kind], strict=True):
            collector.add_coupled(spec.label, own)
    controls = _controls(builder.actuators)
    given = _add_inputs(builder.diagrams, controls)
    ui_hints = command_hints(builder)
    topology = _topology(builder, collector)
    contact = contact_topology(
        builder.shapes, builder.pairs, builder.bodies, builder.joints, topology.dynamic, topology.articulated
    )
    check_laws(builder.shapes, builder.pairs, contact, topology.dynamic)
    numbers = _numbers(builder.actuators)
    groups = [_group(kind, specs[kind], axes[kind], controls, numbers) for kind in specs]
    for group in groups:
        group.type.check_together({other.type.name: other for other in groups})
    _number_clamped(groups)
    _number_coupled(groups, reached)
    return Model(
        **{f.name: getattr(builder, f.name) for f in fields(Elements)},
        topology=topology,
        contact=contact,
        axes=collector.axes,
        coordinates=collector.coordinates,
        angle_of=collector.angle_of,
        groups=groups,
        controls=controls,
        default_controls=np.concatenate([_default_controls(builder.actuators), given]),
        control_map=_control_map(builder, controls, ui_hints),
        operator_commands=sorted(operator_commands(builder, ui_hints), key=controls.__getitem__),
        parameters=_parameters(builder, gravity, collector),
    )


def _check_joints(builder: Elements) -> None:
    """Check that each joint connects at least one movable body, and run the checks of all joint types."""
    fixed = [b.kinematic for b in builder.bodies]
    for kind, joints in _by_kind(builder.joints).items():
        joint_type(kind).check_model(joints, builder)
    for joint in builder.joints:
        ends = [joint.parent, joint.child]
        if all(e < 0 or fixed[e] for e in ends):
            names = " and ".join(builder.body_label(e) for e in ends)
            raise validate.fail(
                joint.element,
                f"neither {names} can be moved by a force (world or kinematic), so nothing can hold the joint",
                "join a body that is not kinematic",
            )


def _by_kind(specs: list[_Spec]) -> dict[str, list[_Spec]]:
    kinds: dict[str, list[_Spec]] = {}
    for spec in specs:
        kinds.setdefault(spec.kind, []).append(spec)
    return kinds


def _controls(actuators: list[ActuatorSpec]) -> dict[str, int]:
    """Return the column of each command in ``sim.control``, by command label."""
    names = [name for spec in actuators for name in applied_names(spec)]
    names += [name for spec in actuators if has_delay(spec) for name in command_names(spec)]
    return {name: column for column, name in enumerate(names)}


def _default_controls(actuators: list[ActuatorSpec]) -> Array:
    late = [spec for spec in actuators if has_delay(spec)]
    values = [
        first(spec, command)
        for first, specs in ((initial_activation, actuators), (initial_command, late))
        for spec in specs
        for command in actuator_type(spec.kind).commands
    ]
    return np.array(values, dtype=np.float64)


def _control_map(builder: Elements, controls: dict[str, int], ui_hints: dict[str, UiHints]) -> Array:
    """Return minimum, maximum, factor and offset of all applied commands, (4, controls)."""
    # Adding -0.0 keeps the sign of a zero.
    rows = np.repeat([[-np.inf], [np.inf], [1.0], [-0.0]], len(controls), axis=1)
    for label, hints in ui_hints.items():
        if hints.limited:
            rows[:2, controls[label]] = hints.lower, hints.upper
    for spec in builder.actuators:
        for command, label in zip(actuator_type(spec.kind).commands, applied_names(spec), strict=True):
            command_map = map_of(spec, command)
            if command_map is not None:
                ends = actuator_type(spec.kind).ui_hints(builder, spec, command).acting_range(command_map.acting())
                rows[:, controls[label]] = *ends, command_map.factor, command_map.offset or -0.0
    for diagram in builder.diagrams:
        for item in diagram.operator_inputs:
            rows[:2, controls[item.label]] = item.lower, item.upper
    return rows


def _reserve_keys(bound: dict[str, str], element: str, item: OperatorInput) -> None:
    """Reserve the keys and the gamepad axis or button of an operator input. Raise an error for conflicts."""
    part = f"{'button' if item.switch else 'axis'} {item.axis!r}"
    for name in [*(f"key {key!r}" for key in item.keys), *([part] if item.axis else [])]:
        if name in bound:
            rule = f"{name} is bound twice, by {bound[name]} and input '{item.label}'"
            raise validate.fail(element, rule, "keep one of them")
        bound[name] = f"input '{item.label}'"


def _add_inputs(diagrams: list[DiagramSpec], controls: dict[str, int]) -> Array:
    """Add a column to ``controls`` for each operator input of diagrams. Return the default values."""
    driver: dict[str, str] = {}
    bound = {f"button {STOP_BUTTON!r}": "the emergency stop"}
    defaults = []
    for diagram in diagrams:
        diagram.check()
        element = f"diagram '{diagram.label}'"
        for item in diagram.operator_inputs:
            if item.label in controls:
                rule = f"its input '{item.label}' has the label of another command"
                raise validate.fail(element, rule, "give the block another name, or a label")
            controls[item.label] = len(controls)
            _reserve_keys(bound, element, item)
            defaults.append(item.default)
    for diagram in diagrams:
        for label in diagram.driven:
            element = f"diagram '{diagram.label}'"
            if label not in controls:
                raise ModelError(f"{element}: {unknown_name('command', label, controls)}")
            if label in driver:
                rule = f"sets the command '{label}', which diagram '{driver[label]}' also sets"
                raise validate.fail(element, rule, "give it by one of them")
            driver[label] = diagram.label
    return np.array(defaults, dtype=np.float64)


def _numbers(actuators: list[ActuatorSpec]) -> list[int]:
    """Return the index of each actuator within its type."""
    count: Counter[str] = Counter()
    numbers = []
    for spec in actuators:
        numbers.append(count[spec.kind])
        count[spec.kind] += 1
    return numbers


def _group(
    kind: str, specs: list[ActuatorSpec], axes: list[int], controls: dict[str, int], numbers: list[int]
) -> Group:
    kind_type = actuator_type(kind)

    def value(spec: ActuatorSpec, p: Parameter) -> float:
        given = spec.params[p.name] if p.default is None else spec.params.get(p.name, p.default)
        return float(numbers[given] if kind_type.references.get(p.name) == ACTUATOR and given >= 0 else given)

    group = Group(
        type=kind_type,
        specs=specs,
        axis=np.array(axes, dtype=np.int64),
        control={
            command: np.array([controls[applied_names(s)[n]] for s in specs], dtype=np.int64)
            for n, command in enumerate(kind_type.commands)
        },
        params={p.name: np.array([[value(s, p) for s in specs]]) for p in kind_type.parameters},
        state={v.name: np.array([[v.initial(s.params) for s in specs]]) for v in kind_type.variables},
        unique_axes=len(set(axes)) == len(axes),
    )
    try:
        kind_type.check(group)
    except ModelError:
        for k in range(len(specs)):
            kind_type.check(group.alone(k))
        raise
    return group


def _number_clamped(groups: list[Group]) -> None:
    """Assign numbers to the actuators with an effort limit on each axis row, in the order of the kernels."""
    count: Counter[int] = Counter()
    for group in sorted(groups, key=lambda g: g.type.name):
        if not group.type.clamped:
            continue
        group.clamp_index = np.zeros(group.axis.size, np.int64)
        for n, axis in enumerate(group.axis.tolist()):
            group.clamp_index[n] = count[axis]
            count[axis] += 1
            if count[axis] > MAX_CLAMPED:
                raise validate.fail(
                    group.specs[n].element,
                    f"is actuator {count[axis]} with an effort limit on one coordinate; the maximum is {MAX_CLAMPED}",
                    "join some of them into one with the sum of their gains and limits",
                )


def _number_coupled(groups: list[Group], axes: dict[str, list[list[int]]]) -> None:
    """Assign numbers to the actuators with a force law that couples several axis rows."""
    count = 0
    for group in sorted(groups, key=lambda g: g.type.name):
        if group.type.coupled:
            group.axes = [np.array(own, np.int64) for own in axes[group.type.name]]
            group.coupled = count + np.arange(len(group.specs))
            count += len(group.specs)


def _parameters(builder: Elements, gravity: Array, collector: RowCollector) -> dict[str, Array]:
    """Return the parameter arrays of the model for one world (``fields.PARAMETER_FIELDS``)."""
    # The last body is the world, with an arbitrary invertible mass matrix. Kinematic bodies have a spherical inertia,
    # so that a constant angular momentum means a constant angular velocity.
    inertia = np.stack([np.eye(3) if b.kinematic else b.inertia for b in builder.bodies] + [np.eye(3)])
    parameters = {
        "gravity": gravity[None].copy(),
        "gravity_scale": np.array([[b.gravity_scale for b in builder.bodies] + [1.0]]),
        "mass": np.array([[b.mass for b in builder.bodies] + [1.0]]),
        "inertia": inertia[None],
        "applied_force": np.zeros((1, len(inertia), 3)),
        "applied_torque": np.zeros((1, len(inertia), 3)),
    }
    for name in AXIS_PARAMETERS:
        parameters[name] = np.array([[a.params[name] for a in collector.axes]], dtype=np.float64).reshape(1, -1)
    surfaces = [s.material for s in builder.shapes]
    surfaces += [p.material for p in pairs_with_material(builder.pairs) if p.material]
    for name in ("friction", "rolling_friction", "spinning_friction", "restitution"):
        values = [getattr(m, name) for m in surfaces]
        parameters[f"shape_{name}"] = np.array([values], dtype=np.float64).reshape(1, -1)
    return parameters


def _topology(builder: Elements, collector: RowCollector) -> Topology:
    world = len(builder.bodies)
    moving = [{b for b in c.bodies if b >= 0 and not builder.bodies[b].kinematic} for c in collector.constraints]
    hubs = find_hubs(moving, [len(m) < len(set(c.bodies)) for m, c in zip(moving, collector.constraints, strict=True)])
    constraints = [*collector.constraints, *(Constraint("", []) for _ in hubs)]
    count = len(constraints)
    block = max((len(c.rigid) + len(c.axes) + (c.mix >= 0) + len(c.coupled) for c in constraints), default=1)
    block = max(block, 6) if hubs else block
    slots = max((len(c.bodies) for c in constraints), default=2)
    bodies = np.full((count, slots), world, dtype=np.int64)
    used = np.zeros((count, block), dtype=bool)
    rigid: list[tuple[int, int]] = []
    axis_row = np.zeros(len(collector.axes), dtype=np.int64)
    mix_rows: dict[int, int] = {}
    for c, constraint in enumerate(constraints):
        bodies[c, : len(constraint.bodies)] = [world if b < 0 else b for b in constraint.bodies]
        row = c * block
        for element in constraint.rigid:
            rigid.append((collector.flat(element), row))
            row += 1
        for axis in constraint.axes:
            axis_row[axis] = row
            kind, mix = collector.axes[axis].element
            if kind == "mix":
                mix_rows[mix] = row
            row += 1
        for mix in ([constraint.mix] if constraint.mix >= 0 else []) + constraint.coupled:
            mix_rows[mix] = row
            row += 1
        used[c, : row - c * block] = True
    dot, spin, line, angle = collector.tables()
    axis_element = np.array([collector.flat(a.element) for a in collector.axes], dtype=np.int64)
    rigid_array = np.array(rigid, dtype=np.int64).reshape(-1, 2)
    element_bodies = [np.concatenate([getattr(t, k) for t in (dot, spin, line)]) for k in ("body_a", "body_b")]
    plain = axis_element < len(element_bodies[0])
    element_row = np.concatenate([rigid_array[:, 0], axis_element[plain]])
    element_row_index = np.concatenate([rigid_array[:, 1], axis_row[plain]])
    dynamic = np.array([not b.kinematic for b in builder.bodies] + [False])
    return Topology(
        num_bodies=world,
        num_constraints=count,
        block=block,
        slots=slots,
        num_elements=len(element_bodies[0]),
        dot=dot,
        spin=spin,
        line=line,
        wrap=collector.wrap_table(),
        angle=angle,
        coupling=collector.coupling_table(mix_rows, block, bodies),
        element_body_a=element_bodies[0],
        element_body_b=element_bodies[1],
        rigid_element=rigid_array[:, 0],
        rigid_row=rigid_array[:, 1],
        axis_element=axis_element,
        axis_row=axis_row,
        element_row=element_row,
        element_row_index=element_row_index,
        constraint_bodies=bodies,
        constraint_labels=[c.label for c in collector.constraints],
        coupled_constraint=np.array([c for c, x in enumerate(constraints) if x.coupled], dtype=np.int64),
        constraint_joint=np.array([c.joint for c in constraints], dtype=np.int64),
        hub_body=np.array([-1] * len(collector.constraints) + hubs, dtype=np.int64),
        swept=np.zeros(count, dtype=bool),
        row_used=used,
        body_sides=_slots_by_body(bodies, dynamic),
        dynamic=dynamic,
        conveyor=np.array([b.conveyor for b in builder.bodies] + [False]),
    )


def _slots_by_body(bodies: Array, dynamic: Array) -> Array:
    """Return the constraint slots of each body as a table (bodies, n) of indices ``constraint * slots + slot``."""
    count, slots = bodies.shape
    sides: list[list[int]] = [[] for _ in dynamic]
    for c in range(count):
        for s in range(slots):
            if dynamic[bodies[c, s]]:
                sides[bodies[c, s]].append(c * slots + s)
    width = max((len(s) for s in sides), default=0)
    table = np.full((len(sides), width), count * slots, dtype=np.int64)
    for b, own in enumerate(sides):
        table[b, : len(own)] = own
    return table
