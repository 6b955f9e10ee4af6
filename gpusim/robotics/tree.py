"""Class ``Tree``: kinematics and dynamics of a model in joint coordinates. A tree needs no simulation."""

from __future__ import annotations

import builtins
import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpusim import rotations, validate
from gpusim.arrays import on_host
from gpusim.errors import unknown_name
from gpusim.model.coordinates import axis_inertia, coordinates
from gpusim.model.model import Model
from gpusim.renamed import NamesMoved
from gpusim.robotics import loops
from gpusim.robotics.dynamics import Bodies, Inertias
from gpusim.robotics.elements import Element, evaluate
from gpusim.robotics.frames import Frame, find_frame, start_posture
from gpusim.robotics.kinematics import Kinematics, Masks, Motion, cross
from gpusim.robotics.spanning import BALL, spanning_forest
from gpusim.typing import Array, Vector

if TYPE_CHECKING:
    from gpusim.signals.observe import Observation
    from gpusim.simulation import Simulation

_FREE = ("x", "y", "z", "qx", "qy", "qz", "qw")
_PARAMETERS = ("mass", "inertia", "gravity", "gravity_scale")
"""Parameters of the model that affect the dynamics."""
_RATES = ("vx", "vy", "vz", "wx", "wy", "wz")


class Tree(NamesMoved):
    """The joints of a model as a kinematic tree. All methods are pure functions of postures, batched over worlds.

    A posture ``q`` (worlds, size) contains ``joint.<label>.position`` of each joint that carries a body. A ball joint
    has a quaternion (xyzw, any nonzero length). For each floating body, the posture contains the pose of the body
    frame: position (3) and quaternion (4). Velocities ``v`` (worlds, freedoms) contain ``joint.<label>.velocity``. A
    ball joint has three velocities, in the parent's joint frame. A floating body has the velocity of its frame's origin
    and its angular velocity, in the world frame. Generalized forces are conjugate to the velocities. A posture (size,)
    describes one world. Units are SI, and vectors are in the world frame.

    Each joint of the tree *carries* one body: the joint adds the body to the tree. All other joints may close loops,
    see :meth:`loops`.

    Args:
        model: a finalized model.
        base: label of a body. With ``base``, the tree contains only ``base`` and the bodies that joints connect to
            ``base``. By default, the tree contains all bodies of the model. If connected bodies are not joined to the
            world or to a kinematic body, one of the bodies floats.

    Attributes:
        carriers: labels of the joints that carry bodies and of the floating bodies, in the order of the columns.
            :meth:`slice` and :meth:`rate_slice` accept these labels.
        names: one name for each number in a posture. Examples: ``"<joint>"`` (joint with one number), ``"<joint>_0"``
            (joint with several numbers), ``"<joint>_qx"`` (ball joint), ``"<body>_x"`` (floating body).
        rates: names of the velocities. Jacobian columns, mass matrix rows and columns, and forces have the same names
            as the velocities. Examples: ``"<joint>"``, ``"<joint>_0"`` ..., ``"<joint>_wx"`` ..., ``"<body>_vx"`` ....
        size, freedoms: lengths of ``names`` and ``rates``.
        bodies: labels of the tree's bodies, parents before children.
        start: posture (1, size) of the model's initial poses.
        lower, upper: limits (freedoms,) of the coordinate that belongs to each velocity, infinite without a limit.

    Raises:
        UnknownNameError: the model has no body with the label ``base``.
    """

    def __init__(self, model: Model, base: str | None = None) -> None:
        if not isinstance(model, Model):
            raise validate.fail(
                "robotics.Tree", f"{model!r} is not a model", "give what ModelBuilder.finalize returned"
            )
        self.model = model
        self.forest = spanning_forest(model, base)
        self.masks = Masks(self.forest)
        self.size, self.freedoms = self.forest.size, self.forest.freedoms
        self.bodies = [model.bodies[node.body].label for node in self.forest.nodes]
        self._nodes = {label: i for i, label in enumerate(self.bodies)}
        self._scalars = loops.scalar_coordinates(self.forest)
        self._table = coordinates(model)
        self.carriers = [self._carrier_label(i) for i in range(len(self.forest.nodes))]
        self.names, self.rates = self._names(), self._rate_names()
        self.lower, self.upper = self._limits()
        self.start: Array = start_posture(model, self.forest, self._table)
        self.locked = self._locked_elements()
        self.inertias = self._inertias(model.parameters)
        inertia = axis_inertia(model, model.parameters["armature"], [g.type.inertia(g) for g in model.groups])
        self._set_axis_inertia(inertia)
        self._observed: dict[str, tuple[Simulation, Observation]] = {}
        balls = [m.at for node in self.forest.nodes for m in node.motions if m.kind == BALL]
        self._quaternions = np.array(balls, np.int64)[:, None] + np.arange(4)

    # Structure.

    def slice(self, label: str) -> builtins.slice:
        """Return the columns of a joint or floating body in postures and in ``names``.

        Raises:
            UnknownNameError: ``carriers`` does not contain the label.
        """
        node = self.forest.nodes[self._carried_by(label)]
        return builtins.slice(node.at, node.at + sum(4 if m.kind == BALL else 1 for m in node.motions))

    def rate_slice(self, label: str) -> builtins.slice:
        """Return the columns of a joint or floating body in velocities, forces, Jacobians, mass matrix and ``rates``.

        Raises:
            UnknownNameError: ``carriers`` does not contain the label.
        """
        node = self.forest.nodes[self._carried_by(label)]
        return builtins.slice(node.rate, node.rate + sum(m.freedoms for m in node.motions))

    def _carried_by(self, label: str) -> int:
        known = {carrier: i for i, carrier in enumerate(self.carriers)}
        if not isinstance(label, str) or label not in known:
            raise unknown_name("joint of the tree", str(label), known)
        return known[label]

    def _carrier_label(self, i: int) -> str:
        joint = self.forest.nodes[i].joint
        return self.bodies[i] if joint < 0 else self.model.joints[joint].label

    def _names(self) -> list[str]:
        found = []
        for i, node in enumerate(self.forest.nodes):
            label = self._carrier_label(i)
            if node.joint < 0:
                parts = list(_FREE)
            elif any(m.kind == BALL for m in node.motions):
                parts = list(_FREE[3:])
            else:
                parts = [str(k) for k in range(len(node.motions))]
            found += [label] if len(parts) == 1 else [f"{label}_{part}" for part in parts]
        return found

    def _rate_names(self) -> list[str]:
        found = []
        for i, node in enumerate(self.forest.nodes):
            label, count = self._carrier_label(i), sum(m.freedoms for m in node.motions)
            ball = any(m.kind == BALL for m in node.motions)
            parts = list(_RATES[6 - count :]) if ball else [str(k) for k in range(count)]
            found += [label] if count == 1 else [f"{label}_{part}" for part in parts]
        return found

    def _limits(self) -> tuple[Array, Array]:
        lower, upper = np.full(self.freedoms, -np.inf), np.full(self.freedoms, np.inf)
        for (joint, k), (_, rate) in self._scalars.items():
            params = self.model.joints[joint].params
            if "limit_lower" in params:
                lower[rate], upper[rate] = params["limit_lower"][k], params["limit_upper"][k]
        return lower, upper

    def _locked_elements(self) -> list[Element]:
        found = loops.closing_elements(self.model, self.forest)
        for total, offset in loops.couplings(self.model, self.forest, self._scalars):
            initial = float(self.start[0, total.at] @ total.factor)
            found.append(replace(total, offset=initial if offset is None else offset))
        return found

    def _inertias(self, parameters: Mapping[str, Array]) -> Inertias:
        bodies = [node.body for node in self.forest.nodes]
        is_dynamic = np.array([not node.is_kinematic for node in self.forest.nodes], float)
        com = np.array([self.model.bodies[b].com for b in bodies])
        return Inertias(
            parameters["mass"][:, bodies] * is_dynamic,
            com,
            parameters["inertia"][:, bodies] * is_dynamic[:, None, None],
            np.asarray(parameters["gravity"]),
            parameters["gravity_scale"][:, bodies],
        )

    def _set_axis_inertia(self, inertia: Array) -> None:
        self._reflected = loops.reflected(self.model, self.forest, self._scalars, self._table, inertia)
        self._own_inertia = inertia[:, self._reflected.axes]

    def with_parameters(self, sim: Simulation) -> Tree:
        """Return a copy of the tree with the current masses, inertias, armatures and gravity of a simulation."""
        validate.simulation("robotics.Tree", sim)
        if len(sim.model.bodies) != len(self.model.bodies):
            raise validate.fail(
                "Tree.with_parameters", "the simulation runs another model", "give a simulation of this model"
            )
        found = copy.copy(self)
        found.inertias = self._inertias({k: np.array(sim.runtime.parameter(k)) for k in _PARAMETERS})
        armature = np.array(sim.runtime.parameter("armature"))
        if len(sim.model.axes) != len(self.model.axes):  # a write of a parameter has added an axis row
            found.model, found._table = sim.model, coordinates(sim.model)
        rotors = [g.type.inertia(g) for g in sim.runtime.now.groups]
        found._set_axis_inertia(axis_inertia(found.model, armature, rotors))
        return found

    # Postures of simulations.

    def posture(self, sim: Simulation) -> Array:
        """Return a simulation's current posture (num_worlds, size). Angles are not wrapped to one rotation."""
        names = []
        for i, node in enumerate(self.forest.nodes):
            if node.joint < 0:
                names += [f"body.{self.bodies[i]}.position", f"body.{self.bodies[i]}.orientation"]
            elif node.motions:
                names.append(f"joint.{self._carrier_label(i)}.position")
        return self._observe(sim, "posture", names)

    def velocity(self, sim: Simulation) -> Array:
        """Return a simulation's current velocities (num_worlds, freedoms)."""
        names, floating = [], []
        for i, node in enumerate(self.forest.nodes):
            if node.joint < 0:
                names += [f"body.{self.bodies[i]}.linear_velocity", f"body.{self.bodies[i]}.angular_velocity"]
                floating.append(i)
            elif node.motions:
                names.append(f"joint.{self._carrier_label(i)}.velocity")
        v = self._observe(sim, "velocity", names)
        if floating:
            q = self.posture(sim)
            for i in floating:  # convert the velocity of the center of mass to the frame's origin
                node = self.forest.nodes[i]
                r = rotations.matrix_from_quaternion(q[:, node.at + 3 : node.at + 7])
                arm = r @ self.inertias.com[i]
                v[:, node.rate : node.rate + 3] -= cross(v[:, node.rate + 3 : node.rate + 6], arm)
        return v

    def _observe(self, sim: Simulation, what: str, names: list[str]) -> Array:
        validate.simulation("robotics.Tree", sim)
        if not names:
            return np.zeros((sim.num_worlds, 0))
        cached = self._observed.get(what)
        if cached is None or cached[0] is not sim:
            cached = self._observed[what] = (sim, sim.observe(names))
        return np.array(on_host(cached[1].read()), np.float64)

    # Kinematics.

    def at(self, q: Any) -> Kinematics:
        """Return the poses and Jacobian columns of all bodies."""
        return Kinematics(self.forest, self.masks, self.postures(q))

    def postures(self, q: Any) -> Array:
        """Convert a user's postures to (worlds, size)."""
        q = self._posture_rows(q)
        return np.broadcast_to(q, (self._worlds, self.size)) if q.shape[0] == 1 != self._worlds else q

    def _posture_rows(self, q: Any) -> Array:
        """Convert a user's postures to (worlds, size), and check that no quaternion is zero."""
        q = self._rows("posture", q, self.size)
        if not q[:, self._quaternions].any(axis=2).all():
            rule = "a posture has the quaternion (0, 0, 0, 0)"
            raise validate.fail("robotics.Tree", rule, "give unit quaternions (xyzw), as in tree.start")
        return q

    def frame(self, frame: str) -> Frame:
        """Return a frame by the label of a body or site, or by ``"body.<label>"`` or ``"site.<label>"``.

        Raises:
            UnknownNameError: the frame does not exist, or the body of the frame is not in the tree.
            ModelError: both a body and a site have this label.
        """
        return find_frame(self.model, self._nodes, frame)

    def pose(self, q: Any, frames: str | Sequence[str]) -> Array:
        """Return world poses (position, xyzw quaternion), (worlds, 7) for one frame or (worlds, n, 7) for a list."""
        k = self.at(q)
        if isinstance(frames, str):
            return self.frame(frames).pose(k)
        if not isinstance(frames, list | tuple) or not frames:
            rule = f"frames = {validate.shown(frames)} is not a list of labels"
            raise validate.fail("Tree.pose", rule, "give the labels of bodies or sites")
        return np.stack([self.frame(f).pose(k) for f in frames], axis=1)

    def jacobian(self, q: Any, frame: str, point: Vector = (0.0, 0.0, 0.0)) -> Array:
        """Return the Jacobian (worlds, 6, freedoms) of a point that is fixed in a frame.

        ``J v`` is the point's velocity, followed by the frame's angular velocity, in the world frame.

        Args:
            q: postures.
            frame: label of a body or a site.
            point: position (3,) (m) in the frame.
        """
        k, fixed = self.at(q), self.frame(frame)
        local = fixed.point + fixed.rotation @ validate.numbers("Tree.jacobian", "point", point, 3)
        return k.jacobian(fixed.node, k.position_of(fixed.node, local))

    def integrate(self, q: Any, change: Any) -> Array:
        """Return the postures (worlds, size) after constant velocities have acted for 1 s.

        ``change`` contains the velocities (worlds, freedoms). The three velocities of a ball joint form a rotation
        vector.
        """
        q, change = self._broadcast(q, change)
        out = np.array(q)
        for node in self.forest.nodes:
            for m in node.motions:
                if m.kind != BALL:
                    out[:, m.at] += change[:, m.rate]
                    continue
                rotation = rotations.quaternion_from_rotation_vector(change[:, m.rate : m.rate + 3])
                unit = rotations.normalized(q[:, m.at : m.at + 4])
                out[:, m.at : m.at + 4] = rotations.normalized(rotations.quaternion_product(rotation, unit))
        return out

    def difference(self, start: Any, end: Any) -> Array:
        """Return the velocities (worlds, freedoms) that move ``start`` to ``end`` in 1 s, see :meth:`integrate`."""
        a, b = self._posture_rows(start), self._posture_rows(end)
        if a.shape[0] != b.shape[0] and 1 not in (a.shape[0], b.shape[0]):
            rule = f"there are {a.shape[0]} start postures and {b.shape[0]} end postures"
            raise validate.fail("robotics.Tree", rule, "give equal numbers, or one of them")
        a, b = np.broadcast_arrays(a, b)
        out = np.zeros((a.shape[0], self.freedoms))
        for node in self.forest.nodes:
            for m in node.motions:
                if m.kind != BALL:
                    out[:, m.rate] = b[:, m.at] - a[:, m.at]
                    continue
                p, n = (rotations.normalized(x[:, m.at : m.at + 4]) for x in (a, b))
                rotation = rotations.quaternion_product(n, rotations.quaternion_conjugate(p))
                out[:, m.rate : m.rate + 3] = rotations.rotation_vector_from_quaternion(rotation)
        return out

    # Center of mass and dynamics.

    def com(self, q: Any) -> Array:
        """Return the center of mass (worlds, 3) (m). Kinematic bodies count as massless."""
        return Bodies(self.at(q), self.inertias).com

    def com_velocity(self, q: Any, v: Any) -> Array:
        """Return the velocity (worlds, 3) (m/s) of the center of mass."""
        bodies, motion = self._moving(q, v)
        return bodies.com_velocity(motion)

    def com_jacobian(self, q: Any) -> Array:
        """Return J (worlds, 3, freedoms), where ``J v`` is the velocity of the center of mass."""
        return Bodies(self.at(q), self.inertias).com_jacobian()

    def centroidal(self, q: Any, v: Any) -> Array:
        """Return linear momentum (N s) and angular momentum (N m s) about the center of mass, (worlds, 6)."""
        bodies, motion = self._moving(q, v)
        return bodies.momentum(motion)

    def contact_wrench(self, q: Any, v: Any, a: Any) -> tuple[Array, Array, Array]:
        """Return the center of mass, the external force (N), and its moment (N m) about the center of mass.

        Each array is (worlds, 3). To cause the accelerations ``a``, the force and the moment must act in addition to
        gravity.
        """
        bodies, motion = self._moving(q, v)
        wrench = bodies.outer_wrench(motion, self._rows("acceleration", a, self.freedoms))
        return bodies.com, wrench[:, :3], wrench[:, 3:]

    def mass_matrix(self, q: Any) -> Array:
        """Return the mass matrix M (worlds, freedoms, freedoms), with the inertias of armatures, rotors and pistons.

        The kinetic energy is v M v / 2.
        """
        k = self.at(q)
        m = Bodies(k, self.inertias).mass_matrix()
        if self._reflected.elements:
            rows = evaluate(self._reflected.elements, k)[1]
            m = m + np.matmul(rows.swapaxes(-1, -2), self._own_inertia[..., None] * rows)
            m = 0.5 * (m + m.swapaxes(-1, -2))
        return m

    def inverse_dynamics(
        self, q: Any, v: Any, a: Any, external: Mapping[str, Any] | None = None, gravity: Any = None
    ) -> Array:
        """Return the generalized forces (worlds, freedoms) that the accelerations ``a`` require under gravity.

        The forces do not include the loads of joints that close loops.

        Args:
            q: postures. A single ``q``, ``v`` or ``a`` applies to all worlds.
            v: velocities.
            a: accelerations (worlds, freedoms).
            external: dict from a frame to its external load, (6,) or (worlds, 6): force (N) at the origin and torque (N
                m), in world axes.
            gravity: gravitational acceleration (3,) (m/s2). Default: the model's gravity.
        """
        q, v = self._broadcast(q, v)
        a = self._rows("acceleration", a, self.freedoms)
        worlds = max(q.shape[0], a.shape[0])
        q, v, a = (np.broadcast_to(x, (worlds, x.shape[1])) for x in (q, v, a))
        bodies, motion = self._moving(q, v)
        k = bodies.k
        wrenches = self._wrenches(k, {} if external is None else external)
        g = self.inertias.gravity if gravity is None else validate.numbers("Tree", "gravity", gravity, 3)[None]
        tau = bodies.inverse_dynamics(motion, a, g, wrenches)
        if self._reflected.elements:
            _, rows, drift = evaluate(self._reflected.elements, k, motion)
            force = self._own_inertia * (rotations.matvec(rows, a) + drift)
            tau = tau + rotations.matvec(rows.swapaxes(-1, -2), force)
        return tau

    def _wrenches(self, k: Kinematics, external: Mapping[str, Any]) -> Array:
        if not isinstance(external, Mapping):
            rule = f"external = {validate.shown(external)} is not a dict"
            raise validate.fail("Tree.inverse_dynamics", rule, "give loads by frame")
        worlds = k.posture.shape[0]
        total = np.zeros((worlds, len(self.forest.nodes), 6))
        for frame, value in external.items():
            fixed = self.frame(frame)
            wrench = np.broadcast_to(self._rows(f"external['{frame}']", value, 6), (worlds, 6))
            if fixed.node >= 0:
                arm = k.position_of(fixed.node, fixed.point) - k.reference
                total[:, fixed.node, :3] += wrench[:, :3]
                total[:, fixed.node, 3:] += wrench[:, 3:] + cross(arm, wrench[:, :3])
        return total

    def bias_forces(self, q: Any, v: Any, gravity: Any = None) -> Array:
        """Return the generalized forces (worlds, freedoms) for zero acceleration: gravity, Coriolis, centrifugal."""
        return self.inverse_dynamics(q, v, np.zeros(self.freedoms), gravity=gravity)

    def gravity_torques(self, q: Any) -> Array:
        """Return the generalized forces (worlds, freedoms) that hold the posture at rest."""
        return self.inverse_dynamics(q, np.zeros(self.freedoms), np.zeros(self.freedoms))

    # Loops.

    @property
    def loop_rows(self) -> int:
        """Return the number of constraint rows of :meth:`loops`."""
        return len(self.locked)

    def loops(self, q: Any, v: Any = None) -> tuple[Array, Array, Array]:
        """Return residuals, Jacobian and drifts of the n constraint rows of loop joints and couplings.

        Residuals of joints are in m (positions) or are sines of angles. Residuals of couplings are in m or rad. The
        shapes are (worlds, n) for residuals and drifts, and (worlds, n, freedoms) for the Jacobian J. The first time
        derivative of a residual is ``J v``, and the second is ``J a + drift``. Without ``v``, drifts are zero.
        """
        if v is None:
            return evaluate(self.locked, self.at(q))
        bodies, motion = self._moving(q, v)
        return evaluate(self.locked, bodies.k, motion)

    # Conversion of user arrays.

    def _moving(self, q: Any, v: Any) -> tuple[Bodies, Motion]:
        q, v = self._broadcast(q, v)
        k = self.at(q)
        return Bodies(k, self.inertias), Motion(k, v)

    @property
    def _worlds(self) -> int:
        """Return the number of worlds for which the tree has parameters, or 1."""
        return int(max(self.inertias.mass.shape[0], self._own_inertia.shape[0], self.inertias.gravity.shape[0]))

    def _broadcast(self, q: Any, v: Any) -> tuple[Array, Array]:
        """Broadcast postures and velocities to the same number of worlds."""
        q, v = self._posture_rows(q), self._rows("velocity", v, self.freedoms)
        worlds = max(q.shape[0], v.shape[0], self._worlds)
        try:
            return np.broadcast_to(q, (worlds, self.size)), np.broadcast_to(v, (worlds, self.freedoms))
        except ValueError:
            rule = f"there are {q.shape[0]} postures and {v.shape[0]} velocities"
            raise validate.fail("robotics.Tree", rule, "give equal numbers, or one of them") from None

    def _rows(self, what: str, value: Any, count: int) -> Array:
        """Convert a user's array to (worlds, count)."""
        given = validate.array(f"robotics.Tree: {what}", on_host(value))
        if given.ndim == 1:
            given = given[None]
        if given.ndim != 2 or given.shape[1] != count:
            rule = f"{what} has shape {np.shape(value)}"
            raise validate.fail("robotics.Tree", rule, f"give (worlds, {count}) or ({count},)")
        return given
