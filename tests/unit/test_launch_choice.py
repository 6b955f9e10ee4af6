from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from gpusim import Model, ModelBuilder, Simulation, SolverConfig, Transform
from gpusim.backends import choose_backend
from gpusim.backends.kernel_backend import STAGED_ABOVE, STAGED_ABOVE_A_LEVEL, use_staged
from gpusim.cli.commands import doctor


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
    with mock.patch("gpusim.backends.native.backend.load_library") as library:
        library.return_value.group_bytes.return_value = 64
        return Simulation(model, backend="native", threads=threads, **options).backend


@pytest.mark.nightly
@pytest.mark.native
def test_deep_trees_are_not_launched_level_by_level() -> None:
    deep, wide = native(chains(1, 400)), native(chains(100, 5))
    assert deep.layout.size > STAGED_ABOVE and wide.layout.size > STAGED_ABOVE
    assert deep.launch == "fused" and "201 levels of joints" in deep.launch_reason
    assert wide.launch == "staged" and "MiB" in wide.launch_reason


@pytest.mark.nightly
@pytest.mark.native
def test_launches_that_were_right_stay() -> None:
    deep = chains(1, 600)
    assert native(deep, launch="staged").launch_reason == "launch staged: as requested"
    assert native(deep, threads=1).launch_reason == "launch fused: every thread has a world"
    assert native(chains(1, 5)).launch == "fused"
    assert native(deep, config=SolverConfig(joint_solver="colored")).launch == "staged"
    assert native(chains(1, 5), num_worlds=64).launch_reason.startswith("launch simd")


def test_the_size_that_depth_asks_for() -> None:
    assert use_staged("auto", STAGED_ABOVE + 1) and not use_staged("auto", STAGED_ABOVE)
    assert not use_staged("auto", 10 * STAGED_ABOVE_A_LEVEL, levels=10)
    assert use_staged("auto", 10 * STAGED_ABOVE_A_LEVEL + 1, levels=10)
    assert use_staged("staged", 0, levels=1000) and not use_staged("fused", 1 << 40)


@pytest.mark.native
def test_contacts_of_a_deep_tree_keep_its_launch() -> None:
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


@pytest.mark.native
@pytest.mark.usefixtures("stand_in")
def test_a_gpu_is_for_many_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSIM_THREADS", "2")
    model = chains(1, 5)
    for worlds, backend in ((1, "native"), (63, "native"), (64, "cuda")):
        name, reason = choose_backend("auto", model, SolverConfig(), worlds)
        assert name == backend and reason.startswith(f"backend {name}: ")
    assert "1 world; a GPU is faster for 64" in choose_backend("auto", model, SolverConfig(), 1)[1]
    assert choose_backend("cuda", model, SolverConfig(), 1)[0] == "cuda"
    assert choose_backend("auto")[0] == "cuda"
    assert Simulation(model).backend_name == "native"


@pytest.mark.native
@pytest.mark.usefixtures("stand_in")
def test_a_gpu_is_for_many_contacts(monkeypatch: pytest.MonkeyPatch) -> None:
    b = ModelBuilder()
    b.add_shape_plane(-1)
    first = [b.add_body(1.0, (0.1,) * 3, xform=Transform((0.0, 0.0, 1.0 + k))) for k in range(2)]
    for body in first:
        b.add_shape_sphere(body, 0.1)
    assert choose_backend("auto", b.finalize(), SolverConfig(), 1)[0] == "native"
    monkeypatch.setattr("gpusim.backends.WIDE_PAIRS", 2)
    assert choose_backend("auto", b.finalize(), SolverConfig(), 1)[0] == "cuda"
    b.add_joint_ball(*first, at=(0.0, 0.0, 1.5))
    direct, colored = (SolverConfig(joint_solver=solver) for solver in ("direct", "colored"))
    assert choose_backend("auto", b.finalize(), direct, 1)[0] == "native"
    assert choose_backend("auto", b.finalize(), colored, 1)[0] == "cuda"


def test_without_a_compiler_a_gpu_takes_few_worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpusim.backends.why_not", lambda name: "no compiler" if name == "native" else "")
    assert choose_backend("auto", chains(1, 2), SolverConfig(), 1)[0] == "cuda"
    monkeypatch.setattr("gpusim.backends.why_not", lambda name: f"no {name}")
    assert choose_backend("auto", chains(1, 2), SolverConfig(), 1)[0] == "numpy"


def test_doctor_reports_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUSIM_THREADS", "4")
    assert doctor._automatic(["cuda", "native", "numpy"]).startswith("'cuda' from 128 worlds on")
    assert doctor._automatic(["native", "numpy"]).startswith("'native'")
