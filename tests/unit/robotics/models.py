"""Models that the tests of robotics/ share."""

from __future__ import annotations

import numpy as np

from gpusim import Model, ModelBuilder, Transform
from tests.parity.machines import COORDINATES, SEVERAL_AXES, random_frame, random_machine


def floating_chain(seed: int) -> ModelBuilder:
    rng = np.random.default_rng(seed)
    b = ModelBuilder(gravity=(0.3, -0.2, -9.7))
    poses = [random_frame(rng)]
    b.add_body(2.0, rng.uniform(0.7, 1.0, 3) * 0.03, com=rng.normal(size=3) * 0.05, xform=poses[0], label="root")
    for k, kind in enumerate(rng.permutation(list(COORDINATES))):
        a, c = random_frame(rng), random_frame(rng)
        poses.append(poses[-1] * a * c.inverse())
        mass = rng.uniform(0.5, 2.0)
        inertia = rng.uniform(0.7, 1.0, 3) * 0.02 * mass
        child = b.add_body(mass, inertia, com=rng.normal(size=3) * 0.05, xform=poses[-1], label=f"link{k}")
        geared = {"armature": 0.05} if kind in ("revolute", "prismatic") else {}
        getattr(b, f"add_joint_{kind}")(child - 1, child, a, c, label=str(kind), **geared)
    b.add_site(0, random_frame(rng), label="tail")
    b.add_site(len(poses) - 1, random_frame(rng), label="tip")
    return b


def arm(seed: int) -> ModelBuilder:
    rng = np.random.default_rng(seed)
    b = ModelBuilder(gravity=(0.3, -0.2, -9.7))
    pose = Transform()
    kinds = [kind for kind in COORDINATES if kind != "ball"]
    for k, kind in enumerate(rng.permutation(kinds)):
        a, c = random_frame(rng), random_frame(rng)
        pose = pose * a * c.inverse()
        inertia = rng.uniform(0.7, 1.0, 3) * 0.02
        child = b.add_body(1.0, inertia, com=rng.normal(size=3) * 0.05, xform=pose, label=f"link{k}")
        getattr(b, f"add_joint_{kind}")(child - 1, child, a, c, label=str(kind))
    return b


def gimbals(seed: int) -> ModelBuilder:
    rng = np.random.default_rng(seed)
    b = ModelBuilder(gravity=(0.3, -0.2, -9.7))
    poses = [random_frame(rng)]
    b.add_body(2.0, rng.uniform(0.7, 1.0, 3) * 0.03, xform=poses[0], label="root")
    for k, (slides, turns) in enumerate(((0, 3), (2, 3), (1, 2), (3, 1), (0, 3))):
        a, c = random_frame(rng), random_frame(rng)
        poses.append(poses[-1] * a * c.inverse())
        inertia = rng.uniform(0.7, 1.0, 3) * 0.02
        child = b.add_body(1.0, inertia, com=rng.normal(size=3) * 0.05, xform=poses[-1], label=f"link{k}")
        moved, turned = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
        b.add_joint_d6(
            child - 1, child, a, c, linear_axes=moved[:slides], angular_axes=turned[:turns],
            armature=rng.uniform(0.0, 0.1, slides + turns), label=f"joint{k}",
        )  # fmt: skip
    b.add_site(0, random_frame(rng), label="tail")
    b.add_site(len(poses) - 1, random_frame(rng), label="tip")
    return b


def trees() -> dict[str, tuple[Model, str | None]]:
    found: dict[str, tuple[Model, str | None]] = {
        f"machine{s}": (random_machine(s, curved=False).finalize(), None) for s in (*range(8), *SEVERAL_AXES)
    }
    for seed in range(2):
        model = gimbals(seed).finalize()
        found |= {f"gimbals{seed}": (model, "root"), f"gimbals_backwards{seed}": (model, "link4")}
    for seed in range(3):
        model = floating_chain(seed).finalize()
        found[f"chain{seed}"] = model, "root"
        found[f"backwards{seed}"] = model, "link6"
        found[f"middle{seed}"] = model, "link3"
    return found | {f"arm{s}": (arm(s).finalize(), None) for s in range(3)}


def four_bar() -> ModelBuilder:
    """A four-bar: crank (with armature), coupler and rocker. The last joint closes the loop."""
    b = ModelBuilder()
    y = (0.0, 1.0, 0.0)
    for label, x, z in (("crank", 0.0, 0.0), ("coupler", 0.0, 0.2), ("rocker", 0.5, 0.0)):
        com = (0.25, 0, 0.03) if label == "coupler" else (0.01, 0, 0.1)
        b.add_body(1.5, (0.02, 0.021, 0.022), com=com, xform=Transform((x, 0, z)), label=label)
    b.add_joint_revolute(-1, 0, axis=y, armature=0.01, label="drive")
    b.add_joint_revolute(0, 1, Transform((0, 0, 0.2)), axis=y, label="knee")
    b.add_joint_revolute(-1, 2, Transform((0.5, 0, 0)), axis=y, label="pivot")
    b.add_joint_revolute(1, 2, Transform((0.5, 0, 0)), Transform((0, 0, 0.2)), axis=y, armature=0.02, label="closing")
    return b


X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
_WAIST = (("waist_z", Z, 1.0), ("waist_x", X, 0.5), ("torso", Y, 1.0))
# label, way from the joint before, axis, mass, center of mass, lower and upper limit
_LEG = (
    ("hip_z", (0, 0.09, -0.04), Z, 0.8, -0.01, -1.0, 1.0),
    ("hip_x", (0, 0, 0), X, 0.8, -0.01, -0.7, 0.7),
    ("thigh", (0, 0, 0), Y, 4.0, -0.15, -2.0, 1.0),
    ("shin", (0, 0, -0.36), Y, 3.0, -0.15, 0.0, 2.4),
    ("ankle", (0, 0, -0.36), Y, 0.5, -0.01, -1.0, 1.0),
    ("foot", (0, 0, 0), X, 1.2, -0.04, -0.6, 0.6),
)
_ARM = (
    ("shoulder_y", (0, 0.2, 0.36), Y, 0.5, -0.01, -2.5, 2.5),
    ("shoulder_x", (0, 0, 0), X, 0.5, -0.01, -2.5, 2.5),
    ("upper", (0, 0, 0), Z, 1.2, -0.12, -2.5, 2.5),
    ("lower", (0, 0, -0.28), Y, 0.9, -0.11, -2.4, 0.0),
    ("wrist_z", (0, 0, -0.26), Z, 0.2, -0.01, -2.5, 2.5),
    ("wrist_x", (0, 0, 0), X, 0.2, -0.01, -1.2, 1.2),
    ("hand", (0, 0, 0), Y, 0.3, -0.05, -1.2, 1.2),
)
HANDS_AND_FEET = ("l_grip", "r_grip", "l_sole", "r_sole")


def humanoid() -> ModelBuilder:
    b = ModelBuilder()
    b.add_body(8.0, (0.08, 0.06, 0.08), xform=Transform((0, 0, 0.9)), label="pelvis")

    def link(parent, label, way, axis, mass, com, low, high) -> int:
        place = b.bodies[parent].xform.position + np.array(way, float)
        body = b.add_body(mass, (0.002 * mass,) * 3, com=(0, 0, com), xform=Transform(place), label=label)
        b.add_joint_revolute(parent, body, at=tuple(place), axis=axis, limit_lower=low, limit_upper=high, label=label)
        return int(body)

    torso = 0
    for k, (label, axis, limit) in enumerate(_WAIST):
        mass, com = (12.0, 0.2) if label == "torso" else (1.0, 0.01)
        torso = link(torso, label, (0, 0, 0.08 if k == 0 else 0.02), axis, mass, com, -0.5, limit)
    link(torso, "head", (0, 0, 0.42), Z, 3.0, 0.1, -1.0, 1.0)
    for side, sign in (("l", 1.0), ("r", -1.0)):
        for limb, start, tip, site in ((_LEG, 0, (0.03, 0, -0.08), "sole"), (_ARM, torso, (0, 0, -0.09), "grip")):
            body = start
            for label, (x, y, z), *rest in limb:
                body = link(body, f"{side}_{label}", (x, sign * y, z), *rest)
            b.add_site(body, Transform(tip), label=f"{side}_{site}")
    return b


def crouching(tree) -> np.ndarray:
    """A posture of the humanoid with bent knees and elbows, (1, size)."""
    q = tree.start.copy()
    for side in "lr":
        for label, angle in (("thigh", -0.4), ("shin", 0.8), ("ankle", -0.4), ("lower", -0.8), ("shoulder_y", -0.2)):
            q[:, tree.slice(f"{side}_{label}")] = angle
    return q
