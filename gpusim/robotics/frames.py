"""Find frames by name, and compute the posture of a model's initial poses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpusim import rotations, validate
from gpusim.description.config import SolverConfig
from gpusim.description.specs import WORLD
from gpusim.errors import UnknownNameError, unknown_name
from gpusim.model.coordinates import Coordinates
from gpusim.model.model import Model
from gpusim.model.state import State
from gpusim.reference.signals.state_reader import StateReader
from gpusim.robotics.kinematics import Kinematics
from gpusim.robotics.spanning import BALL, Forest
from gpusim.typing import Array


@dataclass(frozen=True)
class Frame:
    """A frame that is fixed in the body of a node.

    Attributes:
        node: index of the node, -1 for the world.
        point: origin (m) in the body frame.
        rotation: rotation matrix (3, 3) in the body frame.
        quaternion: the same rotation as a quaternion (xyzw).
    """

    node: int
    point: Array
    rotation: Array
    quaternion: Array

    def pose(self, k: Kinematics) -> Array:
        """Return the pose (worlds, 7) in the world: position (m), then quaternion (xyzw)."""
        position = k.position_of(self.node, self.point)
        if self.node < 0:
            return np.concatenate([position, np.broadcast_to(self.quaternion, (len(position), 4))], axis=-1)
        body = quaternion_from_matrix(k.rotation[:, self.node])
        return np.concatenate([position, rotations.quaternion_product(body, self.quaternion[None])], axis=-1)


def quaternion_from_matrix(r: Array) -> Array:
    """Convert rotation matrices to unit quaternions xyzw (..., 4) with w >= 0 (Shepperd's method)."""
    xx, yy, zz = r[..., 0, 0], r[..., 1, 1], r[..., 2, 2]
    four = np.stack([1.0 + xx - yy - zz, 1.0 - xx + yy - zz, 1.0 - xx - yy + zz, 1.0 + xx + yy + zz], axis=-1)
    xy, xz, yz = r[..., 1, 0] + r[..., 0, 1], r[..., 0, 2] + r[..., 2, 0], r[..., 2, 1] + r[..., 1, 2]
    wx, wy, wz = r[..., 2, 1] - r[..., 1, 2], r[..., 0, 2] - r[..., 2, 0], r[..., 1, 0] - r[..., 0, 1]
    # Row k is 4 q_k q, where q is the quaternion.
    rows = np.stack(
        [
            np.stack([four[..., 0], xy, xz, wx], axis=-1),
            np.stack([xy, four[..., 1], yz, wy], axis=-1),
            np.stack([xz, yz, four[..., 2], wz], axis=-1),
            np.stack([wx, wy, wz, four[..., 3]], axis=-1),
        ],
        axis=-2,
    )
    chosen = np.take_along_axis(rows, np.argmax(four, axis=-1)[..., None, None], axis=-2)[..., 0, :]
    q = rotations.normalized(chosen)
    return np.asarray(np.where(q[..., 3:] < 0.0, -q, q))


def find_frame(model: Model, nodes: dict[str, int], frame: str) -> Frame:
    """Return the frame named ``frame``, see :meth:`gpusim.robotics.Tree.frame`. ``nodes``: body label -> node."""
    if not isinstance(frame, str):
        raise validate.fail("robotics.Tree", f"frame {frame!r} is not a label", "give the label of a body or site")
    prefix, _, remainder = frame.partition(".")
    sites = {site.label: site for site in model.sites}
    if remainder and prefix in ("body", "site"):
        label, kind = remainder, prefix
    else:
        label, kind = frame, ""
        if frame in sites and frame in model.labels("body"):
            rule = f"frame '{frame}' is a body and a site"
            raise validate.fail("robotics.Tree", rule, f"give 'body.{frame}' or 'site.{frame}'")
    if kind != "body" and label in sites:
        site = sites[label]
        owner = model.body_label(site.body)
        if site.body != WORLD and owner not in nodes:
            raise UnknownNameError(f"site '{label}' is on body '{owner}', which is not in the tree; give another base")
        x = site.xform
        return Frame(nodes.get(owner, -1) if site.body != WORLD else -1, x.position, x.matrix(), x.rotation)
    if kind == "site" or label not in nodes:
        known = sites if kind == "site" else nodes if kind == "body" else [*nodes, *sites]
        raise unknown_name("frame of the tree", label, known)
    return Frame(nodes[label], np.zeros(3), np.eye(3), np.array([0.0, 0.0, 0.0, 1.0]))


def start_posture(model: Model, forest: Forest, table: Coordinates) -> Array:
    """Return the posture (1, size) that matches the initial poses of the model."""
    state = State.initial(model, 1, np.dtype(np.float64), SolverConfig())
    none = np.zeros((1, len(model.controls)))
    now = StateReader(model, table, True, lambda: state, model.parameters, lambda: none)
    out = np.zeros((1, forest.size))
    for node in forest.nodes:
        if node.joint < 0:
            pose = model.bodies[node.body].xform
            out[0, node.at : node.at + 7] = [*pose.position, *pose.rotation]
            continue
        numbers = np.array(table.of_joint[node.joint])
        if any(m.kind == BALL for m in node.motions):
            out[:, node.at : node.at + 4] = now.frame_rotation(numbers[:1])[:, 0]
        elif node.motions:
            out[:, node.at : node.at + len(node.motions)] = now.value(numbers[: len(node.motions)])
    return out
