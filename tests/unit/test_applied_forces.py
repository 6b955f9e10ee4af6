"""Forces and torques from outside: ``body.<label>.applied_force`` and ``applied_torque``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, ModelError, Simulation, SolverConfig, Transform
from tests.message_snapshot import naming

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]


def floating(backend: str, worlds: int = 2, **options: Any) -> Simulation:
    """A body of 2 kg without gravity."""
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    b.add_body(mass=2.0, inertia=(0.1, 0.2, 0.3), label="rock")
    return Simulation(b.finalize(), worlds, backend, config=SolverConfig(dt=1e-3), **options)


@pytest.mark.slow_numpy
@pytest.mark.parametrize("backend", BACKENDS)
def test_accelerates_its_world_until_written_again(backend: str) -> None:
    sim = floating(backend)
    sim.write("body.rock.applied_force", (4.0, 0.0, -2.0), worlds=1)
    sim.write("body.rock.applied_torque", (0.0, 0.0, 0.6), worlds=1)
    sim.step(500)
    # x = F t^2/(2 m), omega = T t/I
    center = sim.read("body.rock.center_of_mass")
    np.testing.assert_allclose(center[1], np.array([4.0, 0.0, -2.0]) * 0.25 / 4.0, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(center[0], 0.0)
    np.testing.assert_allclose(sim.read("body.rock.angular_velocity")[1], (0.0, 0.0, 0.6 * 0.5 / 0.3), rtol=1e-9)
    sim.write("body.rock.applied_force", (0.0, 0.0, 0.0))
    speed = sim.read("body.rock.linear_velocity")[1]
    sim.step(500)
    # Velocities live at half steps: the old force lasts half a step on.
    np.testing.assert_allclose(sim.read("body.rock.linear_velocity")[1], speed, atol=4.0 / 2.0 * 1e-3)
    np.testing.assert_array_equal(sim.read("body.rock.applied_force"), 0.0)


@pytest.mark.parametrize("launch", ["fused", "staged"])
@pytest.mark.native
def test_same_on_both_launches(launch: str) -> None:
    sims = [floating("numpy"), floating("native", launch=launch)]
    for sim in sims:
        sim.write("body.rock.applied_force", np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]]))
        sim.write("body.rock.applied_torque", (0.2, -0.1, 0.3))
        sim.step(50)
    for name in ("position", "orientation", "linear_velocity", "angular_velocity"):
        np.testing.assert_allclose(*(sim.read(f"body.rock.{name}") for sim in sims), rtol=1e-10, atol=1e-13)


def test_loads_a_joint() -> None:
    b = ModelBuilder()
    arm = b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), xform=Transform((0.0, 0.0, -1.0)), label="arm")
    b.add_joint_fixed(-1, arm, child_xform=Transform((0.0, 0.0, 1.0)), label="hinge")
    sim = Simulation(b.finalize(), backend="numpy", config=gpusim.SolverConfig(dt=1e-3))
    sim.write("body.arm.applied_force", (7.0, 0.0, 0.0))
    sim.step(20)
    reaction = np.asarray(sim.read("joint.hinge.reaction"))[0]
    np.testing.assert_allclose(np.abs(reaction[:3]), (7.0, 0.0, 9.81), atol=1e-6)


def test_bad_numbers() -> None:
    with pytest.raises(ModelError, match=naming("rock.applied_force")):
        floating("numpy").write("body.rock.applied_force", (np.inf, 0.0, 0.0))
