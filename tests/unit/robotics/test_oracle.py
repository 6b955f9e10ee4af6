from __future__ import annotations

import numpy as np
import pytest

from gpusim import Model
from gpusim.importers import load_urdf
from gpusim.robotics import Tree
from tests.parity.machines import random_machine

from .models import arm, floating_chain
from .oracle import Oracle

pytestmark = pytest.mark.nightly

mujoco = pytest.importorskip("mujoco")
PATHS = {"upkie": ("upkie_description", "URDF_PATH"), "jvrc1": ("jvrc_description", "urdf_path")}


def robot(name: str, fixed_base: bool) -> Model:
    package, attribute = PATHS[name]
    path = getattr(pytest.importorskip(package), attribute)
    builder, _ = load_urdf(path, fixed_base=fixed_base, collisions=False, visuals=False)
    return builder.finalize()


def machine(seed: int) -> Model:
    b = random_machine(seed, curved=False)
    b.actuators.clear()
    for body in b.bodies:
        body.kinematic = False
    return b.finalize()


MODELS = {
    f"{name}{'' if fixed else ' flying'}": lambda n=name, f=fixed: robot(n, f)
    for name in PATHS
    for fixed in (True, False)
}
MODELS |= {f"machine{s}": lambda s=s: machine(s) for s in range(6)}
MODELS |= {"chain": lambda: floating_chain(7).finalize(), "arm": lambda: arm(4).finalize()}


def close(value: np.ndarray, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(value, wanted, rtol=0.0, atol=1e-12 * max(np.abs(wanted).max(), 1e-3))


@pytest.mark.parametrize("name", MODELS)
def test_all_numbers_are_the_oracles(name):
    tree = Tree(MODELS[name]())
    oracle, rng = Oracle(tree), np.random.default_rng(1)
    for _ in range(3):
        q = tree.integrate(tree.start, rng.normal(size=tree.freedoms))[0]
        v, a = rng.normal(size=(2, tree.freedoms))
        oracle.set(q, v)
        poses = tree.pose(q, tree.bodies)[0]
        for body, pose in zip(tree.bodies, poses, strict=True):
            close(pose[:3], oracle.data.body(body).xpos)
            close(tree.jacobian(q, body)[0], oracle.jacobian(body, pose[:3]))
        close(tree.mass_matrix(q)[0], oracle.mass_matrix())
        close(tree.inverse_dynamics(q, v, a)[0], oracle.inverse_dynamics(a))
        close(tree.bias_forces(q, v)[0], oracle.inverse_dynamics(np.zeros(tree.freedoms)))
        close(tree.com(q)[0], oracle.com())
