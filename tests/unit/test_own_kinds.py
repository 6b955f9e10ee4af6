from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from gpusim import GpusimError, Model, ModelBuilder, ModelError, Simulation, SolverConfig
from gpusim.actuators.servo import Servo
from gpusim.backends.codegen.editor_headers import COMMANDS, write_headers
from gpusim.backends.codegen.variants import make_variant
from gpusim.backends.kinds import kinds_of
from gpusim.description.actuator_kinds import (
    _KINDS,
    JOINT_REFERENCES,
    ActuatorType,
    AxisMaker,
    Group,
    Parameter,
    Reading,
    StateVariable,
    register,
)
from gpusim.description.field import Field
from gpusim.description.references import Reference
from gpusim.description.specs import ActuatorSpec
from gpusim.reference.step_buffers import StepBuffers
from gpusim.typing import Array
from tests.message_snapshot import naming

DT, STRENGTH, LAG = 1e-3, 3.0, 3
Register = Callable[[type[ActuatorType]], None]


@pytest.fixture
def known() -> Iterator[Register]:
    names: set[str] = set()

    def add(kind: type[ActuatorType]) -> None:
        register(kind)
        names.add(kind.name)

    yield add
    for name in names:
        _KINDS.forget(name)


def servo_hinge() -> Simulation:
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    arm = b.add_body(mass=1.0, inertia=(0.1, 0.1, 0.1), label="arm")
    hinge = b.add_joint_revolute(-1, arm, label="hinge")
    b.add_servo(hinge, stiffness=20.0, damping=1.0, target=0.5, label="servo")
    return Simulation(b.finalize(), backend="native", config=SolverConfig(dt=1e-3))


def state_bits(sim: Simulation) -> dict[str, bytes]:
    return {name: np.asarray(array).tobytes() for name, array in sim.state.variables().items()}


@pytest.mark.native
def test_a_kind_that_no_actuator_is_of_changes_nothing(known: Register) -> None:
    before = servo_hinge()
    before.step(500)
    rate, decay = np.sqrt(200.0 - 25.0), np.exp(-5.0 * 0.5)
    expected = 0.5 - 0.5 * decay * (np.cos(0.5 * rate) + 5.0 / rate * np.sin(0.5 * rate))
    assert before.read("joint.hinge.position")[0] == pytest.approx(expected, abs=1e-4)

    class Aaa(ActuatorType):
        name: ClassVar[str] = "aaa"
        prefix: ClassVar[str] = "aaa"
        parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("strength", "N", "of nothing"),)

    known(Aaa)
    after = servo_hinge()
    after.step(500)
    assert after.read("joint.hinge.position") == before.read("joint.hinge.position")
    assert state_bits(after) == state_bits(before)


class Shove(ActuatorType):
    """A constant force along a slide."""

    name: ClassVar[str] = "shove"
    prefix: ClassVar[str] = "shove"
    references: ClassVar[Mapping[str, Reference]] = JOINT_REFERENCES
    parameters: ClassVar[tuple[Parameter, ...]] = (Parameter("strength", "N", "the force"),)
    kernel: ClassVar[tuple[str, ...]] = ("evaluate",)
    kernel_source: ClassVar[str] = """
GPUSIM_FN void shove_evaluate(const World& w, int k, ActuatorTerm& own) {
    own.impulse = kick_time(w) * w.shove_strength(k);
}
"""

    def axis(self, spec: ActuatorSpec, maker: AxisMaker) -> int:
        return maker.joint_axis(spec.params["joint"], 0)

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        impulse = np.broadcast_to(work.kick_time * group.params["strength"], (work.num_worlds, len(group.specs)))
        work.add_law(group, impulse, np.zeros_like(impulse))


class Lag(Shove):
    name: ClassVar[str] = "lag"
    prefix: ClassVar[str] = "lag"
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    commands: ClassVar[tuple[str, ...]] = ("wanted",)
    variables: ClassVar[tuple[StateVariable, ...]] = (StateVariable("given", "N s", "impulse of all commands"),)
    readings: ClassVar[tuple[Reading, ...]] = (
        Reading(
            "given", "N s", "impulse of all commands", lambda group, now: group.state["given"], "*out = w.lag_given(i);"
        ),
    )
    state_fields: ClassVar[tuple[Field, ...]] = (
        Field("lag_line", ("worlds", "lag_count", LAG), "stored", "N", "commands on their way"),
    )
    kernel_fields: ClassVar[tuple[Field, ...]] = (Field("lag_out", ("lag_count",), "pose", "N", "of this substep"),)
    kernel: ClassVar[tuple[str, ...]] = ("evaluate", "advance")
    kernel_source: ClassVar[str] = """
GPUSIM_FN void lag_evaluate(const World& w, int k, ActuatorTerm& own) {
    w.lag_out()[k] = w.lag_line()[3 * k];
    own.impulse = kick_time(w) * w.lag_out()[k];
}
GPUSIM_FN void lag_advance(const World& w, int k) {
    stored* line = w.lag_line() + 3 * k;
    line[0] = line[1];
    line[1] = line[2];
    line[2] = stored(w.lag_wanted_now(k));
    w.lag_given(k) = stored(w.lag_given(k) + w.h * w.lag_out()[k]);
}
"""

    def evaluate(self, group: Group, work: StepBuffers, velocity: Array | None) -> None:
        force = work.state.arrays["lag_line"][..., 0]
        work.scratch["lag.out"] = force.copy()
        work.add_law(group, work.kick_time * force, np.zeros_like(force))

    def advance(self, group: Group, work: StepBuffers) -> None:
        line = work.state.arrays["lag_line"]
        line[..., :-1] = line[..., 1:].copy()
        line[..., -1] = work.command_now(group, "wanted")
        group.state["given"] = group.state["given"] + work.h * work.scratch["lag.out"]


def slide(kind: type[ActuatorType] | str, **params: float) -> Model:
    """A mass of 1 kg on a slide, with one actuator."""
    b = ModelBuilder(gravity=(0.0, 0.0, 0.0))
    mover = b.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0), label="mover")
    joint = b.add_joint_prismatic(-1, mover, label="slide")
    b.add_actuator(kind if isinstance(kind, str) else kind.name, "own", {"joint": joint, **params})
    return b.finalize()


def simulate(model: Model, backend: str = "native", **options: Any) -> Simulation:
    return Simulation(model, 2, backend=backend, config=SolverConfig(dt=DT), **options)


@pytest.mark.nightly
@pytest.mark.parametrize("backend", ["numpy", pytest.param("native", marks=pytest.mark.native)])
def test_models_with_kinds_of_their_own_run_side_by_side(known: Register, backend: str) -> None:
    """Closed form: x = F t^2/2."""
    known(Shove)
    shoved = simulate(slide(Shove, strength=STRENGTH), backend)
    known(Lag)
    lagged = simulate(slide(Lag), backend)
    lagged.control["own"] = [STRENGTH, -STRENGTH]
    for _ in range(10):
        shoved.step(2)
        lagged.step(2)
    n, far = 20, STRENGTH * DT * DT
    np.testing.assert_allclose(shoved.read("joint.slide.position"), far * n * n / 2, rtol=1e-12)
    sums = far * (n - LAG) * (n - LAG + 1) / 2
    np.testing.assert_allclose(lagged.read("joint.slide.position"), [sums, -sums], rtol=1e-12)
    state = lagged.state.variables()
    np.testing.assert_allclose(state["lag.given"][:, 0], np.array([1, -1]) * STRENGTH * DT * (n - LAG), rtol=1e-12)
    assert np.array_equal(state["lag_line"], [[[STRENGTH] * LAG], [[-STRENGTH] * LAG]])
    lagged.reset(np.array([False, True]))
    assert np.array_equal(lagged.state.arrays["lag_line"][:, 0, 0], [STRENGTH, 0.0])


def variant_of(model: Model) -> Any:
    return make_variant("fused.cu", np.dtype("f8"), np.dtype("f8"), True, kinds=kinds_of(model))


def test_another_text_is_another_build(known: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    known(Shove)
    plain, first = slide("servo", axis=0, **SERVO), slide(Shove, strength=1.0)

    class Stronger(Shove):
        kernel_source: ClassVar[str] = Shove.kernel_source.replace("strength(k)", "strength(k) * 2.0")

    known(Stronger)
    second = slide(Stronger, strength=1.0)
    digests = {variant_of(model).digest for model in (plain, first, second, first, plain)}
    assert len(digests) == 3
    assert variant_of(plain).digest == make_variant("fused.cu", np.dtype("f8"), np.dtype("f8"), True).digest
    before = variant_of(first).digest
    monkeypatch.setattr(Shove, "parameters", (*Shove.parameters, Parameter("more", "N", "of it")))
    assert variant_of(first).digest != before


SERVO = {"stiffness": 1.0, "damping": 1.0, "effort_limit": 1.0, "follows_velocity": 0.0, "target": 0.0}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"kernel": (), "kernel_source": ""}, "backend"),
    ({"nonlinear": True}, "'bad' 'kernel'"),
    ({"kernel_source": "// nothing"}, "bad_evaluate kernel_source"),
    ({"kernel_source": "nowhere.cuh"}, "'nowhere.cuh'"),
    ({"commands": ("all of it",)}, "'bad'"),
    ({"variables": tuple(StateVariable(f"v{k}", "-", "") for k in range(17))}, "17"),
    ({"variables": (StateVariable("strength", "-", ""),)}, "name 'bad_strength'"),
    ({"name": "limit", "parameters": (Parameter("lower", "m", ""),)}, "name 'limit_lower'"),
    ({"kernel_fields": (Field("bad_x", ("no_size",), "real", "-", ""),)}, "'no_size'"),
    ({"kernel_fields": (Field("bad_x", ("worlds",), "real", "-", ""),)}, "'worlds'"),
    ({"state_fields": (Field("bad_x", ("bad_count",), "stored", "-", ""),)}, "'worlds'"),
    ({"state_fields": (Field("bad_x", ("worlds",), "real", "-", ""),)}, "'real'"),
    (
        {"state_fields": (Field("impulse", ("worlds",), "pose", "-", ""),)},
        "name",
    ),
    ({"state_fields": Lag.state_fields}, "'lag_count'"),
    ({"state_fields": (Field("lag_x", ("worlds",), "pose", "-", ""),)}, "actuator kind 'bad' 'lag_x'"),
]


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("changes", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_one_error_says_what_a_kind_lacks(known: Register, changes: dict[str, Any], message: str) -> None:
    text = Shove.kernel_source.replace("shove", changes.get("name", "bad"))
    bad = type("Bad", (Shove,), {"name": "bad", "kernel_source": text, "__module__": __name__} | changes)
    known(bad)
    params = {p.name: 1.0 for p in bad.parameters}
    with pytest.raises(ModelError, match=naming(message)):
        simulate(slide(bad, **params))


def test_a_wrong_array_is_no_lack_of_memory(known: Register) -> None:
    array = Field("bare_x", ("worlds", -3), "pose", "-", "")
    known(type("Bare", (Shove,), {"name": "bare", "kernel": (), "kernel_source": "", "state_fields": (array,)}))
    with pytest.raises(ModelError, match=naming("actuator kind 'bare' 'bare_x' -3")) as error:
        simulate(slide("bare", strength=STRENGTH), "numpy")
    assert "memory" not in str(error.value)


def test_without_kernel_text_numpy_runs(known: Register) -> None:
    known(type("Bare", (Shove,), {"name": "bare", "kernel": (), "kernel_source": ""}))
    sim = simulate(slide("bare", strength=STRENGTH), "numpy")
    sim.step(20)
    np.testing.assert_allclose(sim.read("joint.slide.position"), STRENGTH * DT * DT * 200, rtol=1e-12)


@pytest.mark.native
def test_a_package_kind_under_another_name_needs_kernels_of_that_name(known: Register) -> None:
    known(type("Twin", (Servo,), {"name": "twin"}))
    with pytest.raises(ModelError, match=naming("'twin' twin_evaluate")):
        simulate(slide("twin", axis=0, **SERVO))


@pytest.mark.nightly
@pytest.mark.messages_vary
@pytest.mark.native
def test_a_fault_in_the_text_is_reported_by_kind_and_line(known: Register) -> None:
    known(type("Torn", (Shove,), {"name": "torn", "kernel_source": "\nGPUSIM_FN void torn_evaluate(int) { oops }\n"}))
    with pytest.raises(GpusimError, match=naming("torn.cuh 2")):
        simulate(slide("torn", strength=1.0))


def test_kinds_of_one_text(known: Register) -> None:
    text = Shove.kernel_source + Shove.kernel_source.replace("shove", "pull")
    known(type("Push", (Shove,), {"kernel_source": text}))
    known(type("Pull", (Shove,), {"name": "pull", "kernel_source": text}))
    b = ModelBuilder()
    joint = b.add_joint_prismatic(-1, b.add_body(mass=1.0, inertia=(1.0, 1.0, 1.0)))
    for kind in ("shove", "pull"):
        b.add_actuator(kind, None, {"joint": joint, "strength": 1.0})
    generated = variant_of(b.finalize()).generated
    assert [generated[f"own/{kind}.cuh"] for kind in ("pull", "shove")] == [text, ""]


def test_headers_of_a_model(known: Register, tmp_path: Path) -> None:
    known(Lag)
    model = slide(Lag)
    files = write_headers(tmp_path, model)
    assert {str(file.relative_to(tmp_path)) for file in files} == {
        COMMANDS, "world.cuh", "kinds.cuh", "sizes.cuh", "order.cuh", "entries.cuh", "kept.cuh", "quantities.cuh",
        "ray_shapes.cuh", "own/lag.cuh",
    }  # fmt: skip
    world = (tmp_path / "world.cuh").read_text(encoding="utf-8")
    assert re.search(r"stored\* lag_line\(\).*// \(lag_count, 3\) N: commands on their way", world)
    assert re.search(r"real\* jacobian\(\).*// \(sides, block, 6\) -: rows of J by side", world)
    assert re.search(r"stored& lag_given\(int k\).*// N s: impulse of all commands", world)
    compiled = variant_of(model).generated
    assert "rows of J by side" not in compiled["world.cuh"]
    assert [line.split("  // ")[0] for line in world.splitlines()] == compiled["world.cuh"].splitlines()
    assert (tmp_path / "own" / "lag.cuh").read_text(encoding="utf-8") == Lag.kernel_source
