"""Which launch and which backend a simulation takes unasked, and the reason it gives."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from gpusim import Model, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends.kernel_backend import STAGED_ABOVE, STAGED_ABOVE_A_LEVEL, use_staged


def chains(count: int, links: int) -> Model:
    b = ModelBuilder()
    for c in range(count):
        parent = -1
        for k in range(links):
            at = (0.02 * k, float(c), 0.0)
            link = b.add_body(0.05, (1e-6, 2e-6, 2e-6), com=(0.01, 0.0, 0.0), xform=Transform(at))
            b.add_joint_ball(parent, link, at=at)
            parent = link
    return b.finalize()


def native(model: Model, threads: int = 2, **options: Any) -> Any:
    """The backend, without its build."""
    with mock.patch("gpusim.backends.native_backend.load_library") as library:
        library.return_value.group_bytes.return_value = 64
        return Simulation(model, backend="native", threads=threads, **options).backend


@pytest.mark.native
def test_deep_trees_are_not_launched_level_by_level() -> None:
    """One joint a level leaves nothing to share; a wide model of as many joints has few levels."""
    deep, wide = native(chains(1, 400)), native(chains(100, 5))
    assert deep.layout.size > STAGED_ABOVE and wide.layout.size > STAGED_ABOVE
    assert deep.launch == "fused" and "201 levels of joints" in deep.launch_reason
    assert wide.launch == "staged" and "MiB" in wide.launch_reason


@pytest.mark.native
def test_launches_that_were_right_stay() -> None:
    """Who asks, one thread, small worlds, and the colored solver, which has no tree."""
    deep = chains(1, 600)
    assert native(deep, launch="staged").launch_reason == "launch staged: as asked"
    assert native(deep, threads=1).launch_reason == "launch fused: every thread has a world"
    assert native(chains(1, 5)).launch == "fused"
    assert native(deep, config=SolverConfig(joint_solver="colored")).launch == "staged"
    assert native(chains(1, 5), num_worlds=64).launch_reason.startswith("launch grouped")


def test_the_size_that_depth_asks_for() -> None:
    assert use_staged("auto", STAGED_ABOVE + 1) and not use_staged("auto", STAGED_ABOVE)
    assert not use_staged("auto", 10 * STAGED_ABOVE_A_LEVEL, levels=10)
    assert use_staged("auto", 10 * STAGED_ABOVE_A_LEVEL + 1, levels=10)
    assert use_staged("staged", 0, levels=1000) and not use_staged("fused", 1 << 40)


@pytest.mark.native
def test_contacts_of_a_deep_tree_keep_its_launch() -> None:
    """One block solves joints and contacts together, whatever the depth."""
    b = ModelBuilder()
    b.add_shape_plane(-1)
    parent = -1
    for k in range(60):
        at = (0.2 * k, 0.0, 1.0)
        link = b.add_body(1.0, (1e-3,) * 3, xform=Transform(at))
        b.add_joint_ball(parent, link, at=at)
        b.add_shape_sphere(link, 0.05)
        parent = link
    backend = native(b.finalize())
    assert backend.sizes["levels"] > 20 and backend.layout.size > STAGED_ABOVE
    assert backend.launch == "staged"
