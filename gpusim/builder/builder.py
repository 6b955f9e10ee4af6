"""ModelBuilder, which adds and checks bodies, joints, couplings, actuators, shapes, visuals and sites."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np

from gpusim import validate
from gpusim.builder.anchors import Anchor, end_frame
from gpusim.builder.builder_methods import BuilderMethods
from gpusim.builder.builder_methods import builder_method as builder_method
from gpusim.builder.collision_groups import GroupRules, prefixed_rules
from gpusim.builder.commands import mark_operator_commands
from gpusim.builder.dict_checks import LISTS
from gpusim.builder.dict_format import DictFormat
from gpusim.builder.finalize import finalize
from gpusim.builder.joint_groups import check_solver
from gpusim.description.actuator_kinds import actuator_type
from gpusim.description.elements import Elements
from gpusim.description.joint_kinds import joint_type
from gpusim.description.program import DiagramSpec
from gpusim.description.references import ACTUATOR, BODY, JOINT, SHAPE, check_declared, moved_params
from gpusim.description.shape_kinds import shape_type
from gpusim.description.specs import WORLD, ActuatorSpec, BodySpec, CouplingSpec, JointSpec, PoseSpec
from gpusim.errors import GpusimError, ModelError
from gpusim.model.model import Model
from gpusim.renamed import FixedNames, checks_old_names
from gpusim.transform import Transform
from gpusim.typing import Array, Index, Vector


class ModelBuilder(BuilderMethods, DictFormat, Elements, FixedNames):
    """Builder of a :class:`Model`. The builder collects the bodies, joints, actuators and shapes of one world.

    Args:
        gravity: gravitational acceleration in the world frame (m/s2).
    """

    def __init__(self, gravity: Vector = (0.0, 0.0, -9.81)) -> None:
        self.gravity: Array = validate.numbers("ModelBuilder", "gravity", gravity, 3)
        Elements.__init__(self, [], [], [], [], [], [], [], [], [], [], [], [], [], num_worlds=1)
        self.group_rules: GroupRules = {}
        spaces = "body joint coupling actuator shape visual site sensor pose camera light".split()
        self._labels: dict[str, dict[str, int]] = {space: {} for space in spaces}
        self._complete = True

    element_word: ClassVar[str] = "shape"
    """Word for a shape in error messages."""

    @checks_old_names
    def add_body(
        self,
        mass: float | None = None,
        inertia: Any = None,
        com: Vector | None = None,
        xform: Transform | None = None,
        label: str | None = None,
        linear_velocity: Vector = (0.0, 0.0, 0.0),
        angular_velocity: Vector = (0.0, 0.0, 0.0),
        kinematic: bool = False,
        gravity_scale: float = 1.0,
        conveyor: bool = False,
    ) -> int:
        """Add a rigid body. :meth:`finalize` computes missing mass properties from the shapes of the body.

        Args:
            mass: mass, above zero (kg). Default: density times volume, summed over the body's shapes.
            inertia: inertia about the center of mass, in the axes of the body frame (kg m2). Give 3 numbers (diagonal),
                6 numbers (ixx, iyy, izz, ixy, ixz, iyz) or a 3x3 matrix. Default: inertia of the shapes, scaled to
                ``mass``.
            com: center of mass in the body frame (m). Default: the origin of the body frame if ``inertia`` is given,
                otherwise the center of mass of the shapes.
            xform: pose of the body frame in the world.
            label: unique name, default ``body<index>``.
            linear_velocity: velocity of the center of mass in the world frame (m/s).
            angular_velocity: angular velocity in the world frame (rad/s).
            kinematic: True for a body that moves with given velocities. Forces do not change these velocities.
            gravity_scale: fraction of gravity that acts on the body. For a different value in each world, write the
                signal ``body.<label>.gravity_scale``.
            conveyor: True for a kinematic body that stays at rest while its surface moves, like a belt or a turntable.
                The velocities of the body are then the velocities of the surface.

        Returns:
            The index of the body, for arguments such as ``parent=``, ``child=`` and ``body=``.

        Raises:
            ModelError: a value is invalid. The message names the value.
        """
        name = self._new_label("body", label, len(self.bodies))
        element = f"body '{name}'"
        validate.transform(element, "xform", xform)
        for word, value in (("kinematic", kinematic), ("conveyor", conveyor)):
            validate.flag(element, word, value)
        if conveyor and not kinematic:
            raise validate.fail(element, "is a conveyor that forces move", "add kinematic=True")
        spec = BodySpec(
            label=name,
            **_mass_parameters(element, mass, inertia, com, bool(kinematic)),
            xform=xform or Transform(),
            linear_velocity=validate.numbers(element, "linear_velocity", linear_velocity, 3),
            angular_velocity=validate.numbers(element, "angular_velocity", angular_velocity, 3),
            kinematic=bool(kinematic),
            gravity_scale=validate.number(element, "gravity_scale", gravity_scale),
            conveyor=bool(conveyor),
        )
        return self._adopt("body", spec)

    def add_joint(
        self,
        kind: str,
        parent: int,
        child: int,
        parent_xform: Transform | None = None,
        child_xform: Transform | None = None,
        label: str | None = None,
        solver: str | None = None,
        at: Anchor | None = None,
        **params: Any,
    ) -> int:
        """Add a joint of a registered type. Prefer ``add_joint_<kind>``, which checks the parameters.

        Define the joint by ``parent_xform`` and ``child_xform``, or by one frame ``at`` in the world. With ``at``, all
        joint coordinates are zero at the current poses of the bodies.

        Args:
            kind: registered joint type, such as "revolute".
            parent: body index, -1 for the world.
            child: body index, not the parent.
            parent_xform: joint frame in the body frame of the parent.
            child_xform: joint frame in the body frame of the child.
            label: unique name, default ``joint<index>``.
            solver: "direct" or "colored" (see :meth:`set_joint_solver`). With None, the simulation chooses the solver.
            at: joint frame in the world, instead of ``parent_xform`` and ``child_xform``. If ``at`` is a point (m), the
                joint frame has the world's axes, so ``axis`` is in the world frame.
            params: parameters of the joint type.

        Returns:
            The index of the joint.
        """
        name = self._new_label("joint", label, len(self.joints))
        element = f"joint '{name}'"
        parent, child = self.check_body(element, "parent", parent), self.check_body(element, "child", child)
        if parent == child:
            raise validate.fail(
                element,
                f"parent and child are the same body ({self.body_label(child)})",
                "join two different bodies, or use parent = -1 for the world",
            )
        joint_type(kind)
        validate.transform(element, "parent_xform", parent_xform)
        validate.transform(element, "child_xform", child_xform)
        check_solver(element, solver)
        ends = (
            end_frame(self, element, "parent_xform at", parent, parent_xform, at),
            end_frame(self, element, "child_xform at", child, child_xform, at),
        )
        return self._adopt("joint", JointSpec(kind, name, parent, child, *ends, params, solver))

    def set_joint_solver(self, joints: Iterable[int], solver: str | None) -> None:
        """Choose the solver of the given joints and of all joints that are connected with them.

        Only ``SolverConfig(joint_solver="auto")`` uses this choice.

        Args:
            joints: joint indices. Joints with a common movable body are connected. One joint of each connected group is
                enough.
            solver: "direct" solves all joints of a connected group at once, for arms, loops and suspensions. "colored"
                sweeps over joints and contacts, for long chains on the ground. With None, the simulation chooses the
                solver.

        Raises:
            ModelError: the solver or a joint index is unknown.
        """
        check_solver("ModelBuilder.set_joint_solver", solver)
        if not isinstance(joints, Iterable) or getattr(joints, "ndim", 1) == 0:
            hint = "give a list of indices from add_joint_..."
            raise validate.fail("ModelBuilder.set_joint_solver", f"joints = {joints!r} is not a list", hint)
        for joint in joints:
            index = self.check_index("ModelBuilder.set_joint_solver", "joint", joint, "joint")
            self.joints[index].solver = solver

    def add_coupling(self, spec: CouplingSpec) -> int:
        """Add a checked coupling. ``add_gear``, ``add_mimic`` and ``add_linear_coupling`` call this method."""
        if not isinstance(spec, CouplingSpec):
            rule = f"{spec!r} is not a coupling"
            raise validate.fail("ModelBuilder.add_coupling", rule, "use add_gear, add_mimic or add_linear_coupling")
        spec.label = self._new_label("coupling", spec.label or None, len(self.couplings))
        return self._adopt("coupling", spec)

    def add_actuator(self, kind: str, label: str | None, params: dict[str, Any]) -> int:
        """Add a checked actuator. The builder methods in actuators/ call this method.

        Raises:
            ModelError: the actuator type is unknown, or does not declare a reference to another element.
        """
        type_, params = actuator_type(kind), {k: int(v) if isinstance(v, Index) else v for k, v in params.items()}
        spec = ActuatorSpec(kind, self._new_label("actuator", label, len(self.actuators), prefix=kind), params)
        check_declared(spec.element, type_.references, [p.name for p in type_.parameters], params)
        return self._adopt("actuator", spec)

    def set_operator_commands(self, names: Iterable[str]) -> None:
        """Choose the operator commands. All other commands of existing actuators become internal.

        Operator panels, keys and joysticks offer only operator commands. By default, all commands with an effect are
        operator commands. Inputs of diagrams are always operator commands. Commands that a diagram sets are always
        internal.

        Args:
            names: labels or wildcards of commands, such as ``["boom", "*_drive"]``, or ``[]`` for no operator commands.

        Raises:
            ModelError: ``names`` is not a list of names.
            UnknownNameError: a name matches no command. The message lists similar commands.
        """
        mark_operator_commands(self, names)

    def add_builder(
        self, other: ModelBuilder, xform: Transform | None = None, label_prefix: str = "", parent: int = WORLD
    ) -> None:
        """Copy another builder into this builder. In the copy, ``parent`` replaces the world of ``other``.

        All elements that are attached to the world of ``other`` are attached to ``parent`` in the copy: ends of joints
        and actuators, shapes, visuals, sites, cameras and lights. The copied bodies start with the motion of
        ``parent``. Labels must be unique, so use a different prefix for each copy.

        Args:
            other: builder to copy. ``other`` does not change.
            xform: pose of the world of ``other`` in the frame of ``parent``.
            label_prefix: prefix of all copied labels and collision group names. Copies with different prefixes have
                separate collision groups and rules.
            parent: body index, -1 for the world. If the mass of ``parent`` is computed from its shapes, the copied
                shapes increase this mass.

        Raises:
            ModelError: a body is unknown, a label already exists, or ``parent`` does not support an element of the
                copy.
        """
        where = "ModelBuilder.add_builder"
        if not isinstance(other, ModelBuilder):
            raise ModelError(f"{where}: {other!r} is not a ModelBuilder; give a gpusim.ModelBuilder")
        if other is self:
            raise ModelError(f"{where}: a builder cannot be added to itself; add a copy.deepcopy of it")
        validate.transform(where, "xform", xform)
        if not isinstance(label_prefix, str):
            raise validate.fail(where, f"label_prefix {label_prefix!r} is not text", "give a word, such as 'left_'")
        parent, pose = self.check_body(where, "parent", parent), xform or Transform()
        for shape in other.shapes:
            if shape.body == WORLD:
                self.check_movable(f"{where}: {shape.element}", shape.kind, parent)
        first = {BODY: len(self.bodies), JOINT: len(self.joints)}
        first |= {ACTUATOR: len(self.actuators), SHAPE: len(self.shapes)}
        first_site = len(self.sites)

        def moved(body: int, frame: Transform) -> tuple[int, Transform]:
            """Convert the body and the frame of an element to the body and the frame of its copy."""
            return (parent, pose * frame) if body == WORLD else (body + first[BODY], frame)

        def adopt(space: str, copied: Any) -> None:
            copied.label = self._new_label(space, label_prefix + copied.label, 0)
            self._adopt(space, copied)

        host = None if parent == WORLD else self.bodies[parent]
        start = pose if host is None else host.xform * pose
        for body in [_moved_body(body, start, host) for body in other.bodies]:
            adopt("body", body)
        for joint in other.joints:
            new = copy.deepcopy(joint)
            new.parent, new.parent_xform = moved(joint.parent, joint.parent_xform)
            new.child, new.child_xform = moved(joint.child, joint.child_xform)
            new.params = joint_type(joint.kind).moved(new.params, first[JOINT], first[BODY], parent, pose)
            adopt("joint", new)
        for coupling in other.couplings:
            terms = [(joint + first[JOINT], axis, factor) for joint, axis, factor in coupling.terms]
            adopt("coupling", dataclasses.replace(coupling, terms=terms))
        for actuator in other.actuators:
            params = moved_params(actuator_type(actuator.kind).references, actuator.params, first, pose, parent)
            self.add_actuator(actuator.kind, label_prefix + actuator.label, params)
        for shape in other.shapes:
            on, frame = moved(shape.body, shape.xform)
            params = copy.deepcopy(shape.params)
            group = label_prefix + shape.group if isinstance(shape.group, str) else shape.group
            adopt("shape", dataclasses.replace(shape, body=on, xform=frame, params=params, group=group))
        self.group_rules |= prefixed_rules(other.group_rules, label_prefix)
        for pair in other.pairs:
            a, b = pair.shape_a + first[SHAPE], pair.shape_b + first[SHAPE]
            self.pairs.append(dataclasses.replace(pair, shape_a=a, shape_b=b))
        for diagram in other.diagrams:
            if label_prefix:
                rule = f"label_prefix = {label_prefix!r} would rename its signals and commands"
                raise validate.fail(f"{where}: diagram '{diagram.label}'", rule, "add the diagram to this builder")
            self.add_diagram(diagram)
        for space in ("visual", "site", "camera", "light"):  # visuals share read-only triangles
            for framed in getattr(other, f"{space}s"):
                on, frame = moved(framed.body, framed.xform)
                adopt(space, dataclasses.replace(framed, body=on, xform=frame))
        for sensor in other.sensors:
            adopt("sensor", sensor.moved(first[JOINT], first[BODY], first_site, label_prefix))
        for named in other.poses:
            self.add_pose_spec(named.moved(start, label_prefix))

    def add_diagram(self, diagram: DiagramSpec) -> None:
        """Add a block diagram (:class:`gpusim.control.Diagram`), which sets commands while the simulation runs.

        The operator inputs of the diagram become commands of the model. Diagrams run before steps, in the order of
        their ``add_diagram`` calls.

        Args:
            diagram: diagram to add. You can change the diagram until you call :meth:`finalize`.

        Raises:
            ModelError: ``diagram`` is not a diagram, or has a duplicate label, an open port or an algebraic loop.
        """
        if not callable(getattr(diagram, "compile", None)) or not hasattr(diagram, "operator_inputs"):
            rule = f"{diagram!r} is not a diagram"
            raise validate.fail("ModelBuilder.add_diagram", rule, "give a gpusim.control.Diagram")
        if any(diagram.label == other.label for other in self.diagrams):
            rule = "another diagram has this label"
            raise validate.fail(f"diagram '{diagram.label}'", rule, "give another label")
        diagram.check()
        self.diagrams.append(diagram)

    def add_pose_spec(self, spec: PoseSpec) -> None:
        """Add a checked posture. ``add_pose`` calls this method."""
        if not isinstance(spec, PoseSpec):
            raise validate.fail("ModelBuilder.add_pose_spec", f"{spec!r:.60} is not a posture", "use add_pose")
        self._new_label("pose", spec.label, len(self.poses))
        self._adopt("pose", spec)

    def replicate(self, template: ModelBuilder, num_worlds: int) -> None:
        """Copy ``template`` into this empty builder, for ``num_worlds`` independent worlds.

        All worlds have the same topology. To change poses, velocities and parameters of single worlds, use
        ``sim.write(..., worlds=...)``.

        Raises:
            ModelError: this builder is not empty, or ``num_worlds`` is below 1.
        """
        lists = (self.bodies, self.joints, self.actuators, self.shapes, self.visuals, self.sites, self.diagrams)
        if any((*lists, self.cameras, self.lights, self.group_rules)):
            raise ModelError(
                "ModelBuilder.replicate: this builder is not empty and all worlds share one template; "
                "call it on a new ModelBuilder(), or put everything into the template with add_builder"
            )
        if not isinstance(template, ModelBuilder):
            raise ModelError(f"ModelBuilder.replicate: {template!r} is not a ModelBuilder; give a gpusim.ModelBuilder")
        self.gravity = template.gravity.copy()
        self.add_builder(template)
        self.num_worlds = validate.count("ModelBuilder.replicate", "num_worlds", num_worlds)

    def finalize(self) -> Model:
        """Check the whole model and convert it to arrays.

        Raises:
            ModelError: the model is invalid. The message names the element, the rule and the fix.
        """
        try:
            gravity = validate.numbers("ModelBuilder", "gravity", self.gravity, 3)
            return finalize(self, gravity, self.group_rules)
        except KeyError as error:
            if isinstance(error, GpusimError):
                raise
            rule = f"an element from add_joint or add_actuator lacks {error}"
            raise validate.fail(
                "ModelBuilder.finalize", rule, "use add_joint_<kind>, which checks the parameters"
            ) from error

    # Names and checks for the builder methods in joints/, actuators/ and shapes/.

    def check_body(self, element: str, name: str, index: Any) -> int:
        """Return ``index`` if it is -1 or a body index of this builder. Otherwise, raise a ModelError."""
        if not isinstance(index, int | np.integer) or isinstance(index, bool):
            rule = f"{name} = {validate.shown(index)} is not a body"
            raise validate.fail(element, rule, "give what add_body returned, or -1")
        validate.index_space(element, name, index, "body", "give what add_body returned, or -1")
        if not WORLD <= index < len(self.bodies):
            raise validate.fail(
                element,
                f"{name} = {validate.shown(index)} is unknown: there are {len(self.bodies)} bodies",
                "give what add_body returned, or -1 for the world",
            )
        return int(index)

    def check_index(self, element: str, name: str, index: Any, space: str) -> int:
        """Return ``index`` if it is valid for elements of type ``space`` ("joint", ...).

        Otherwise, raise a ModelError.
        """
        method = f"add_{space}{'' if space == 'site' else '_...'}"
        return validate.index(element, name, index, getattr(self, f"{space}s"), space, method)

    def check_movable(self, element: str, shape_kind: str, body: int) -> None:
        """Raise a ModelError if ``body`` is dynamic and the shape kind must not move (plane, height field)."""
        if not shape_type(shape_kind).movable and body != WORLD and not self.bodies[body].kinematic:
            raise validate.fail(
                element,
                f"a {shape_kind.replace('_', ' ')} cannot move, and forces move body '{self.body_label(body)}'",
                "put it on the world (body = -1) or on a body added with kinematic=True, or use a box or a hull",
            )

    def check_joint(self, element: str, name: str, index: Any, axis: int = 0) -> int:
        """Return ``index`` if the joint ``index`` has a coordinate ``axis``. Otherwise, raise a ModelError."""
        joint = self.joints[self.check_index(element, name, index, "joint")]
        count = len(joint_type(joint.kind).kinds(joint))
        if not isinstance(axis, int | np.integer) or isinstance(axis, bool):
            rule = f"{name}: {validate.shown(axis)} is not a coordinate index of joint '{joint.label}'"
            raise validate.fail(element, rule, f"give axis = 0 to {max(count - 1, 0)}")
        if not 0 <= axis < count:
            raise validate.fail(
                element,
                f"{name}: {joint.kind} joint '{joint.label}' has {count} coordinate{'s' * (count != 1)}, "
                f"no coordinate {validate.shown(axis)}",
                "drive a joint that has one" if count == 0 else f"give axis = 0{f' to {count - 1}' * (count > 1)}",
            )
        return index

    def element(self, space: str, label: str | None, kind: str | None = None) -> str:
        """Return the name of the next element for error messages: ``kind`` (default: ``space``) and label."""
        if not isinstance(label, str | None):
            self._new_label(space, label, 0)
        return f"{kind or space} '{label or f'{kind or space}{len(self._labels[space])}'}'"

    def _adopt(self, space: str, spec: Any) -> int:
        """Store an element with a new label, and return its index."""
        elements: list[Any] = getattr(self, LISTS.get(space, f"{space}s"))
        self._labels[space][spec.label] = len(elements)
        elements.append(spec)
        return Index(len(elements) - 1, space)

    def _new_label(self, space: str, label: str | None, index: int, prefix: str | None = None) -> str:
        if label is None:
            label = f"{prefix or space}{index}"
        if not isinstance(label, str) or not label or "." in label or " " in label or not label.isprintable():
            raise ModelError(
                f"{space}: label {label!r} must be a word without dots, spaces and control letters, since signals are "
                "named by it; give such a label"
            )
        if label in self._labels[space]:
            raise ModelError(f"{space} '{label}': the label is already taken; give every {space} a unique label")
        return label


def _mass_parameters(element: str, mass: Any, inertia: Any, com: Any, kinematic: bool) -> dict[str, Any]:
    """Return the checked mass, inertia and center of mass of a body."""
    if mass is None and inertia is not None:
        raise validate.fail(
            element,
            "has an inertia and no mass",
            "give the mass too, or leave out both (mass and inertia then come from the body's shapes)",
        )
    center = np.full(3, math.nan if inertia is None else 0.0)
    weight = math.nan if mass is None else validate.positive(element, "mass", mass)
    if weight > validate.GREATEST:
        raise validate.fail(element, f"mass = {weight:g} exceeds {validate.GREATEST:g} kg", "check its units")
    tensor = np.full((3, 3), math.nan)
    if inertia is not None:
        tensor = validate.body_inertia(element, inertia, 0.0 if kinematic else weight)
    return {
        "mass": weight,
        "inertia": tensor,
        "com": center if com is None else validate.numbers(element, "com", com, 3),
    }


def _moved_body(body: BodySpec, start: Transform, host: BodySpec | None) -> BodySpec:
    """Return a copy of a body of another builder."""
    new = copy.deepcopy(body)
    new.xform = start * body.xform
    new.linear_velocity = start.rotate(body.linear_velocity)
    new.angular_velocity = start.rotate(body.angular_velocity)
    if host is not None:
        new.linear_velocity += host.linear_velocity
        if np.any(spin := host.angular_velocity):
            arm = new.xform.apply(new.com) - host.xform.apply(host.com)
            if np.isnan(arm).any():
                raise validate.fail(
                    f"ModelBuilder.add_builder: {body.element}",
                    f"starts with the rotation of {host.element}, but one center of mass is not known yet",
                    "give com=... in add_body, or a parent without angular_velocity",
                )
            new.linear_velocity += np.cross(spin, arm)
            new.angular_velocity += spin
    return new
