from __future__ import annotations

from typing import Any

import numpy as np

from gpusim import Transform, rotations
from gpusim.robotics import Tree
from gpusim.robotics.spanning import BALL, PRISMATIC, Node


def _text(values: Any) -> str:
    return " ".join(repr(float(x)) for x in np.ravel(values))


def _wxyz(q: np.ndarray) -> np.ndarray:
    return np.roll(q, 1)


class Oracle:
    def __init__(self, tree: Tree) -> None:
        import mujoco

        self.mujoco, self.tree, self.model = mujoco, tree, tree.model
        children: dict[int, list[int]] = {}
        for i, node in enumerate(tree.forest.nodes):
            assert not node.reverse
            children.setdefault(node.parent, []).append(i)
        bodies = "".join(self._body(i, children) for i in children[-1])
        xml = (
            f'<mujoco><compiler angle="radian" balanceinertia="false" boundmass="0" boundinertia="0"/>'
            f'<option gravity="{_text(tree.model.parameters["gravity"][0])}"><flag contact="disable"/></option>'
            f"<worldbody>{bodies}</worldbody></mujoco>"
        )
        self.mj = mujoco.MjModel.from_xml_string(xml)
        self.data = mujoco.MjData(self.mj)

    def _body(self, i: int, children: dict[int, list[int]]) -> str:
        node, spec = self.tree.forest.nodes[i], self.model.bodies[self.tree.forest.nodes[i].body]
        frame_a, frame_b = self._frames(node)
        place = frame_a * frame_b.inverse()
        joints = "".join(self._joint(node, k, m, frame_b) for k, m in enumerate(node.motions) if node.joint >= 0)
        if node.joint < 0:
            joints, place = f'<freejoint name="{node.at}"/>', Transform()
        moment = spec.inertia
        full = [moment[0, 0], moment[1, 1], moment[2, 2], moment[0, 1], moment[0, 2], moment[1, 2]]
        inertial = f'<inertial pos="{_text(spec.com)}" mass="{spec.mass!r}" fullinertia="{_text(full)}"/>'
        inner = "".join(self._body(c, children) for c in children.get(i, []))
        where = f'pos="{_text(place.position)}" quat="{_text(_wxyz(place.rotation))}"'
        return f'<body name="{spec.label}" {where}>{joints}{inertial}{inner}</body>'

    def _frames(self, node: Node) -> tuple[Transform, Transform]:
        if node.joint < 0:
            return Transform(), Transform()
        joint = self.model.joints[node.joint]
        return joint.parent_xform, joint.child_xform

    def _joint(self, node: Node, k: int, motion: Any, frame_b: Transform) -> str:
        kind = "ball" if motion.kind == BALL else "slide" if motion.kind == PRISMATIC else "hinge"
        armature = self.model.joints[node.joint].params.get("armature", np.zeros(4))[motion.at - node.at]
        axis = "" if motion.kind == BALL else f'axis="{_text(frame_b.rotate(motion.axis))}"'
        where = f'{axis} pos="{_text(frame_b.position)}"'
        return f'<joint name="{motion.at}" type="{kind}" {where} armature="{float(armature)!r}"/>'

    def set(self, q: np.ndarray, v: np.ndarray) -> None:
        self.to = np.zeros((self.mj.nv, self.tree.freedoms))
        for node in self.tree.forest.nodes:
            frame_b = self._frames(node)[1]
            for m in node.motions:
                floats = node.joint < 0
                joint = self.mj.joint(str(node.at if floats else m.at))
                shift = m.at - node.at if floats else 0, m.rate - node.rate if floats else 0
                at, rate = joint.qposadr[0] + shift[0], joint.dofadr[0] + shift[1]
                if m.kind != BALL:
                    self.data.qpos[at] = q[m.at]
                    self.to[rate, m.rate] = 1.0
                    continue
                own = rotations.normalized(q[m.at : m.at + 4])
                turn = rotations.quaternion_product(
                    rotations.quaternion_product(frame_b.rotation, own), frame_b.inverse().rotation
                )
                self.data.qpos[at : at + 4] = _wxyz(turn)
                r = frame_b.matrix() @ rotations.matrix_from_quaternion(own).T
                self.to[rate : rate + 3, m.rate : m.rate + 3] = r
        self.data.qvel[:] = self.to @ v
        self.mujoco.mj_forward(self.mj, self.data)

    def jacobian(self, body: str, place: np.ndarray) -> np.ndarray:
        """Return the Jacobian (6, freedoms) of a point in the world frame."""
        rows = np.zeros((6, self.mj.nv))
        number = self.mj.body(body).id
        self.mujoco.mj_jac(self.mj, self.data, rows[:3], rows[3:], place, number)
        return rows @ self.to

    def mass_matrix(self) -> np.ndarray:
        columns = np.zeros((self.mj.nv, self.mj.nv))
        self.mujoco.mj_mulM(self.mj, self.data, columns[0], np.zeros(self.mj.nv))
        for k, unit in enumerate(np.eye(self.mj.nv)):
            self.mujoco.mj_mulM(self.mj, self.data, columns[k], unit)
        return self.to.T @ columns @ self.to

    def inverse_dynamics(self, a: np.ndarray) -> np.ndarray:
        self.data.qacc[:] = self.to @ a
        self.mujoco.mj_inverse(self.mj, self.data)
        return self.to.T @ self.data.qfrc_inverse

    def com(self) -> np.ndarray:
        total = sum(self.mj.body_mass[1:])
        return np.asarray(self.mj.body_mass[1:] @ self.data.xipos[1:] / total)
