"""Models that the tests of robotics/ share."""

from __future__ import annotations

import numpy as np

from gpusim import Model, ModelBuilder, Transform
from tests.parity.machines import COORDINATES, random_frame, random_machine


def floating_chain(seed: int) -> ModelBuilder:
    """A free body and a chain of every kind of joint on it, in random order, with a site on each end."""
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
    """A chain on the world by every joint whose rates are those of its coordinates."""
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


def trees() -> dict[str, tuple[Model, str | None]]:
    """Models and bases by name: random machines with loops, chains that are walked from either end."""
    found: dict[str, tuple[Model, str | None]] = {f"machine{s}": (random_machine(s).finalize(), None) for s in range(8)}
    for seed in range(3):
        model = floating_chain(seed).finalize()
        found[f"chain{seed}"] = model, "root"
        found[f"backwards{seed}"] = model, "link6"
        found[f"middle{seed}"] = model, "link3"
    return found | {f"arm{s}": (arm(s).finalize(), None) for s in range(3)}


def four_bar() -> ModelBuilder:
    """Crank (with armature), coupler and rocker in the plane across y; the last joint closes the loop."""
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
