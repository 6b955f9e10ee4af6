from __future__ import annotations

import contextlib
import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpusim
from gpusim import ModelBuilder, SolverConfig
from gpusim.errors import GpusimError
from tests.message_snapshot import naming

WRONG: list[Any] = [
    None, "text", b"x", [], [1, 2], [None], [[1], [1, 2]], np.ones(3), np.array(2.0), np.array("a"), {}, {1}, object(),
    1e308, -1e308, float("nan"), 1.5, True, 2 + 1j, -5, 99, lambda: 0,
]  # fmt: skip
GIVEN: dict[str, Any] = {
    "parent": 0, "child": 1, "body": 0, "body_a": 0, "body_b": 1, "joint": 0, "joint_a": 0, "joint_b": 1, "leader": 1,
    "kind": "sphere", "params": {"radius": 0.1}, "half_extents": (1, 1, 1), "semi_axes": (1, 1, 1),
    "exponents": (1, 1), "edge_radius": 0.01, "vertices": np.eye(4, 3), "heights": np.zeros((3, 3)), "spacing": (1, 1),
    "shape_a": 0, "shape_b": 1, "force": (1, 0, 0), "torque": (1, 0, 0), "num_worlds": 2, "label": None,
    "command": "push", "names": ["push"], "group_a": "a", "group_b": "b", "collide": True, "joints": [0],
    "solver": "direct",
}  # fmt: skip

SIZE = 7


def machine() -> ModelBuilder:
    """Two bodies with a shape each, on two hinges."""
    b = ModelBuilder()
    for name in ("one", "two"):
        b.add_shape_sphere(b.add_body(1.0, (1.0, 1.0, 1.0), label=name), 0.1)
    b.add_joint_revolute(-1, 0, label="first")
    b.add_joint_revolute(0, 1, label="second")
    b.add_servo(0, stiffness=1.0, label="push")
    return b


def calls() -> Iterator[tuple[str, str, Any]]:
    for method in sorted(n for n in dir(ModelBuilder) if n.startswith(("add_", "exclude_", "replicate", "set_"))):
        values = [*WRONG, 10**400, [10**400] * 3]  # more digits than a float has
        yield from ((method, parameter.name, value) for parameter in parameters(method) for value in values)


def parameters(method: str) -> list[inspect.Parameter]:
    known = list(inspect.signature(getattr(ModelBuilder, method)).parameters.values())[1:]
    return [p for p in known if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]


def refused(what: str, call: Callable[[], Any]) -> str | None:
    try:
        call()
    except GpusimError as error:
        return None if str(error) else f"{what}: an error without a message"
    except Exception as error:
        return f"{what}: {type(error).__name__}: {error}"
    return None


@pytest.mark.nightly
def test_the_builder_refuses_in_its_own_words() -> None:
    found: list[str | None] = []
    b = machine()
    for method, name, value in calls():
        needed = [p.name for p in parameters(method) if p.default is p.empty]
        given = {p: GIVEN.get(p, 1.0) for p in needed} | {name: value}
        call = getattr(b, method)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(refused(f"{method}({name}={value!r})", lambda call=call, given=given: call(**given)))
        b = b if sum(map(len, b._labels.values())) == SIZE and not b.pairs and b.num_worlds == 1 else machine()
    assert not any(found), "\n".join(filter(None, found))


def test_signals_refuse_in_their_own_words() -> None:
    sim = gpusim.Simulation(machine().finalize(), backend="numpy")
    names = [n for n in sim.signals() if n.startswith(("body.one.", "joint.first.", "sim.gravity", "shape.shape0."))]
    found = []
    with np.errstate(all="ignore"):
        for name in names:
            for value in WRONG:
                with contextlib.suppress(KeyError):
                    text = refused(f"{name} = {value!r}", lambda name=name, value=value: sim.write(name, value))
                    found += [text] if text else []
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["backend", "dtype", "launch", "num_worlds", "config", "threads", "device", "fast"])
def test_simulations_refuse_in_their_own_words(name: str) -> None:
    model = machine().finalize()
    calls = {repr(v): (lambda v=v: gpusim.Simulation(model, **{"backend": "numpy", name: v})) for v in WRONG}
    found = [text for value, call in calls.items() if (text := refused(f"{name}={value}", call))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", ["dt", "substeps", "iterations", "joint_solver", "scheme", "max_colors", "max_pairs"])
def test_settings_refuse_in_their_own_words(name: str) -> None:
    found = [refused(f"{name}={v!r}", lambda v=v: SolverConfig(**{name: v})) for v in WRONG]
    assert not any(found), "\n".join(filter(None, found))


METHODS: dict[str, dict[str, Any]] = {
    "assemble": {}, "command": {"names": "push"}, "contacts": {}, "linearize": {"states": "joint.*.position"},
    "observe": {"names": "sim.time"}, "override": {"values": {"push": 1.0}}, "project_velocities": {}, "release": {},
    "reset": {}, "rollout": {"steps": 1, "record": "sim.time"}, "step": {},
    "write_state": {"values": {"joint.first.position": 0.1}},
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", METHODS)
def test_methods_of_a_simulation_refuse_in_their_own_words(method: str) -> None:
    sim = gpusim.Simulation(machine().finalize(), 2, backend="numpy")
    found = []
    for name in inspect.signature(getattr(sim, method)).parameters:
        for v in [*WRONG, np.array("push"), {"push": "x"}, {5: 1.0}]:
            given = METHODS[method] | {name: v}
            text = refused(f"{name}={v!r}", lambda given=given: getattr(sim, method)(**given))
            found += [text] if text else []
    assert not found, "\n".join(found)


def test_files_refuse_in_their_own_words(tmp_path: Path) -> None:
    sim = gpusim.Simulation(machine().finalize(), backend="numpy")
    found = [refused(f"load({v!r})", lambda v=v: gpusim.Simulation.load(v)) for v in WRONG if not isinstance(v, str)]
    for name in ("signals", "rate", "worlds", "dtype"):
        for v in WRONG:
            given = {"signals": "sim.time", name: v}
            path = tmp_path / f"{name}.npz"
            found.append(refused(f"{name}={v!r}", lambda g=given, p=path: gpusim.record(sim, p, **g).close()))
    assert not any(found), "\n".join(filter(None, found))


@pytest.mark.parametrize("ratio", [1e308, -1e308, 1e-308, 0.0, 2e9])
def test_ratios_have_a_size(ratio: float) -> None:
    b = machine()
    for call in (
        lambda: b.add_gear(0, 1, ratio),
        lambda: b.add_mimic(1, 0, multiplier=ratio),
        lambda: b.add_dc_motor(0, 1.0, 1.0, 1.0, gear_ratio=ratio),
    ):
        with pytest.raises(gpusim.ModelError, match=naming("1e-09 1e+09")):
            call()
