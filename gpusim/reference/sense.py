"""What joints with a sensor bear over a kick: the wrench of the child on the parent, in the parent's joint frame.

The rows of the joint's constraint are those of the kick, so that the wrench is the one of the solve; it holds what acts
along the coordinates too: drives, limits, friction. Like a real sensor it stands still on the parent.
"""

from __future__ import annotations

import numpy as np

from gpusim import rotations
from gpusim.reference.work import Work


def sense(w: Work) -> None:
    """Write ``sensed_wrench`` of the state."""
    if not w.state.arrays["sensed_wrench"].size:
        return
    constraint, at = (w.sensors[f"joint_sensor_{name}"] for name in ("constraint", "coordinate"))
    assert w.coordinates is not None
    columns = w.coordinates.columns
    side, body = constraint * w.topology.slots, columns["body_a"][at]
    wrench = np.zeros((w.num_worlds, constraint.size, 6))
    for j in range(w.topology.block):
        wrench += w.solved[:, constraint, j, None].astype(float) * w.jacobian[:, side, j].astype(float)
    kick = w.kick_time[:, :, None].astype(float)
    wrench = np.where(kick > 0.0, wrench / np.where(kick > 0.0, kick, 1.0), 0.0)
    turn = w.rotation[:, body]
    arm = rotations.matvec(turn, columns["arm_a"][at])
    wrench[..., 3:] -= rotations.cross(arm, wrench[..., :3])
    frame = rotations.matrix_from_quaternion(columns["frame_a"][at]).swapaxes(-1, -2)
    for part in (slice(0, 3), slice(3, 6)):
        own = rotations.matvec(frame, rotations.matvec(turn.swapaxes(-1, -2), wrench[..., part]))
        w.state.arrays["sensed_wrench"][..., part] = own
