from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from gpusim import EnergyAudit, ModelBuilder, ModelError, Simulation, SolverConfig
from tests.message_snapshot import names, naming

from .circuits import CASES, load, measured, reference

BACKENDS = ["numpy", pytest.param("native", marks=pytest.mark.native)]
KINDS = ["circuit", "element", "papers"]
AREAS = {"area_a": 2e-3, "area_b": 1.2e-3}
SIZE = AREAS | {"stroke_min": 0.0, "stroke_max": 0.5, "length_offset": 0.75}
VOLUMES = {"a": 1e-4, "b": 1e-4 + 1.2e-3 * 0.5}
BULK = 1.5e9

pytestmark = pytest.mark.filterwarnings("ignore:world:UserWarning")


def rod(kind: str, vapor: float = 0.0, opened: bool = False, **numbers: Any) -> ModelBuilder:
    """100 kg on a cylinder with both chambers shut (or B open to the tank), in the middle of its stroke."""
    b = ModelBuilder(gravity=(0, 0, 0))
    body = load(b, "rod", 100.0, 0.0)
    b.add_force(body, (0.0, 0.0, 1.0), label="push")
    if kind != "circuit":
        papers = {"coupling": "papers", "piston_mass": 1.0} if kind == "papers" else {}
        b.add_hydraulic_cylinder(
            -1, body, (0, 0, -1), (0, 0, 0), volume_a=VOLUMES["a"], volume_b=VOLUMES["b"], flow_gain=1e-7,
            overlap_supply=0.05, overlap_drain=-0.05, vapor_pressure=vapor, label="ram",
            **SIZE | papers | numbers,
        )  # fmt: skip
        return b
    c = b.add_hydraulic_circuit(label="oil", vapor_pressure=vapor)
    ram = c.add_cylinder(-1, body, (0, 0, -1), (0, 0, 0), label="ram", **SIZE | numbers)
    if opened:
        c.add_orifice(ram.node_b, c.tank, 2e-6)
    return b


def simulation(b: ModelBuilder, dt: float = 1e-3, backend: str = "numpy", worlds: int = 1, **more: Any) -> Simulation:
    dtype = more.pop("dtype", "float64")
    sim = Simulation(b.finalize(), worlds, backend, dtype, config=SolverConfig(dt=dt, **more))
    sim.control["push"] = 0.0
    return sim


def read(sim: Simulation, name: str, world: int = 0) -> float:
    return float(sim.read(f"cylinder.ram.{name}")[world])


@pytest.mark.nightly
@pytest.mark.parametrize("solver", ["direct", "colored"])
@pytest.mark.parametrize(("backend", "dt"), [("numpy", 1e-2), pytest.param("native", 1e-3, marks=pytest.mark.native)])
def test_a_shut_chamber_holds_its_vapor_pressure_alone(backend: str, solver: str, dt: float) -> None:
    sim = simulation(rod("circuit", 2e4, True, viscous_friction=100.0), dt, backend, joint_solver=solver)
    sim.control["push"] = 70.0
    sim.step(round(0.5 / dt))
    assert read(sim, "pressure_a") == pytest.approx((120.0 - 70.0) / 2e-3, rel=1e-2)
    assert abs(read(sim, "position") - 0.25) < 2e-5 and read(sim, "void_a") == 0.0
    sim.control["push"] = 90.0
    sim.step(round(0.1 / dt))
    assert read(sim, "velocity") == pytest.approx(0.1 * (1.0 - np.exp(-0.1)), rel=0.1)
    sim.control["push"] = 500.0
    sim.step(round(0.7 / dt))
    assert read(sim, "position") == pytest.approx(0.5, abs=1e-5)
    assert read(sim, "pressure_a") == 2e4
    assert read(sim, "void_a") == pytest.approx(2e-3 * 0.25, rel=1e-3)


def oil_balance(sim: Simulation, forces: list[float], steps: int) -> tuple[float, float, float]:
    signs, worst, least, most, before = {"a": 1.0, "b": -1.0}, 0.0, np.inf, 0.0, None
    groups = {g.type.name: g for g in sim.state.groups}
    for force in forces:
        sim.control["push"] = force
        for _ in range(steps):
            speed = float(sim.state.arrays["axis_velocity"][0, 0])
            sim.step()
            oil = float(groups["oil_cylinder" if "oil_cylinder" in groups else "cylinder"].state["oil_stroke"][0, 0])
            now = {port: (read(sim, f"pressure_{port}"), read(sim, f"void_{port}")) for port in "ab"}
            for port, (p, void) in now.items():
                least, most = min(least, p), max(most, void)
                if before is not None:
                    area, (old, gone), stroke = signs[port] * AREAS[f"area_{port}"], before[0][port], before[1]
                    middle = np.clip(stroke + 0.5 * sim.config.dt * speed, SIZE["stroke_min"], SIZE["stroke_max"])
                    compressed = (VOLUMES[port] + area * middle) / BULK * (p - old)
                    worst = max(worst, abs(compressed + area * (oil - stroke) - (void - gone)))
            before = now, oil
    return worst, least, most


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-18), ("float32", 1e-10)])
@pytest.mark.parametrize(("dt", "solver"), [(1e-2, "direct"), (1e-2, "colored")])
@pytest.mark.native
def test_oil_is_neither_lost_nor_made(kind: str, dt: float, solver: str, dtype: str, bound: float) -> None:
    rng = np.random.default_rng(1)
    forces = [float(x) for x in rng.choice([-1.0, 1.0], 12) * 10.0 ** rng.uniform(2.0, 5.0, 12)]
    sim = simulation(rod(kind), dt, "native", dtype=dtype, joint_solver=solver)
    worst, least, most = oil_balance(sim, forces, round(0.1 / dt))
    assert worst < bound
    assert least == 0.0 and most > 5e-6
    assert sim.health().all() and sim.read("sim.not_converged")[0] == 0


@pytest.mark.nightly
def test_a_rod_moves_freely_until_its_void_is_closed() -> None:
    b = rod("circuit")
    next(a for a in b.actuators if a.label == "ram_b").params["fixed"] = 1.0
    sim = simulation(b)
    sim.control["push"] = 1e4
    while read(sim, "position") < 0.35:
        sim.step()
    assert read(sim, "void_a") == pytest.approx(2e-3 * 0.1, rel=0.05) and read(sim, "pressure_a") == 0.0
    sim.control["push"] = -1e4
    void, pressure, speed = [], [], []
    for _ in range(300):
        sim.step()
        void.append(read(sim, "void_a"))
        pressure.append(read(sim, "pressure_a"))
        speed.append(read(sim, "velocity"))
    closed = int(np.argmax(np.array(void) == 0.0))
    assert closed > 50 and max(pressure[:closed]) == 0.0 and max(pressure) > 1e7
    assert np.diff(speed[:closed])[5:-1] == pytest.approx(-(1e4 + 120.0) / 100.0 * 1e-3, rel=1e-6)


@pytest.mark.native
@pytest.mark.parametrize("scheme", ["second_order", "semi_implicit"])
def test_the_element_is_a_circuit_of_one_cylinder(scheme: str) -> None:
    sims = [simulation(rod(kind, viscous_friction=5e3), 1e-3, "native", scheme=scheme) for kind in KINDS[:2]]
    for force in (2e4, -3e4, 1e4):
        for _ in range(200):
            for sim in sims:
                sim.control["push"] = force
                sim.step()
            assert read(sims[0], "position") == pytest.approx(read(sims[1], "position"), abs=2e-4)
            assert read(sims[0], "void_a") == pytest.approx(read(sims[1], "void_a"), abs=4e-7)


@pytest.mark.parametrize("name", ["pulled_rod", "motor_outruns_pump"])
def test_voids_follow_the_reference(name: str) -> None:
    exact, found = reference(name), measured(name, 1e-2)
    for column in (c for c in exact if c.startswith("v_")):
        most = exact[column].max()
        assert np.abs(found[column] - exact[column]).mean() <= 0.04 * most
        assert (most > 0.0) == (column in ("v_rod_a", "v_wheel_a"))


def starved_motor() -> ModelBuilder:
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(mass=10.0, inertia=(50.0,) * 3, label="wheel", angular_velocity=(0, 0, 20.0))
    joint = b.add_joint_revolute(-1, body, axis=(0, 0, 1), label="axle")
    c = b.add_hydraulic_circuit(label="oil")
    motor = c.add_motor(joint, 2e-5, volume=1e-4, label="motor")
    c.add_relief_valve(motor.node_b, 1e5, 1e-8, label="relief")
    c.add_orifice(c.tank, motor.node_a, 1e-8, opening=0.0, label="feed")
    return b


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("backend", "dt"), [("numpy", 0.05), *(pytest.param("native", dt, marks=pytest.mark.native) for dt in (2e-3, 1e-2))]
)
def test_a_motor_does_not_take_more_oil_than_its_inlet_holds(backend: str, dt: float) -> None:
    sim = Simulation(starved_motor().finalize(), backend=backend, config=SolverConfig(dt=dt))
    drained, oil = 0.0, {port: 1e-4 for port in "ab"}
    for _ in range(round(2.0 / dt)):
        sim.step()
        drained += dt * float(sim.read("edge.relief.flow")[0])
    for port in "ab":
        p, void = (float(sim.read(f"node.motor_{port}.{name}")[0]) for name in ("pressure", "void"))
        oil[port] = 1e-4 - void + 1e-4 / BULK * (p - 1e5)
        assert -1e-10 < 1e-4 - void
    assert oil["a"] == pytest.approx(0.0, abs=1e-8)
    assert drained + oil["a"] + oil["b"] == pytest.approx(2e-4, abs=1e-10)
    turning = float(sim.read("joint.axle.velocity")[0])
    assert 10.0 < turning < 20.0
    sim.control["feed"] = 1.0
    sim.step(round(1.0 / dt))
    assert float(sim.read("node.motor_a.void")[0]) < 1.0001e-4 and sim.health().all()


@pytest.mark.nightly
@pytest.mark.native
def test_the_account_of_energy_closes() -> None:
    damped = []
    for dt in (1e-2, 2.5e-3):
        b, commands = CASES["pulled_rod"]()
        sim = Simulation(b.finalize(), backend="native", config=SolverConfig(dt=dt))
        audit = EnergyAudit(sim)
        for k in range(round(1.2 / dt)):
            sim.control["push"] = commands["push"](k * dt)
            audit.step()
        found = audit.balance()
        assert found.relative_error[0] < 1e-6
        damped.append(abs(float(found.works["oil steps"][0] / found.turnover[0])))
    assert damped[0] < 0.01 and damped[1] < 0.5 * damped[0]


@pytest.mark.nightly
@pytest.mark.native
@pytest.mark.parametrize(("kind", "dtype"), [(KINDS[0], "float32"), *((kind, "float64") for kind in KINDS)])
def test_worlds_have_the_bits_that_they_have_alone(kind: str, dtype: str) -> None:
    forces = np.linspace(-6e4, 6e4, 16)
    many = simulation(rod(kind), 5e-3, "native", 16, dtype=dtype)
    for turn in (1.0, -1.0, 0.5):
        many.control["push"] = turn * forces
        many.step(40)
    assert max(many.read("cylinder.ram.void_a").max(), many.read("cylinder.ram.void_b").max()) > 5e-7
    for world in (0, 7, 15):
        alone = simulation(rod(kind), 5e-3, "native", dtype=dtype)
        for turn in (1.0, -1.0, 0.5):
            alone.control["push"] = turn * forces[world]
            alone.step(40)
        for name in ("position", "pressure_a", "pressure_b", "void_a", "void_b"):
            assert read(alone, name) == read(many, name, world), name


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("backend", BACKENDS)
def test_voids_are_kept_reset_and_written(kind: str, backend: str) -> None:
    sim = simulation(rod(kind), 2e-3, backend)
    sim.control["push"] = 2e4
    sim.step(30)
    kept, void = sim.state.copy(), read(sim, "void_a")
    assert void > 1e-6
    sim.step(20)
    later = read(sim, "void_a")
    sim.state.restore(kept)
    sim.invalidate()
    assert read(sim, "void_a") == void
    sim.step(20)
    assert read(sim, "void_a") == later
    name = "node.ram_a.void" if kind == "circuit" else "cylinder.ram.void_a"
    assert sim.signals()[name].unit == "m3"
    sim.reset()
    assert read(sim, "void_a") == 0.0 and sim.health_report() == "all worlds are fine"
    sim.control["push"] = 0.0
    sim.write(name, 1e-4)
    sim.step()
    assert read(sim, "void_a") > 0.9e-4 and read(sim, "pressure_a") == 0.0


@pytest.mark.slow_numpy
@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.parametrize("backend", BACKENDS)
def test_cavitation_is_reported_once(kind: str, backend: str) -> None:
    sim = simulation(rod(kind), 2e-3, backend, 2)
    sim.control["push"] = np.array([100.0, 2e4])
    with warnings.catch_warnings(record=True) as reported:
        warnings.simplefilter("always")
        for _ in range(4):
            sim.step(10)
    words = "node.ram_a.void check valve" if kind == "circuit" else "cylinder.ram.void_a anticavitation_gain"
    assert len(reported) == 1 and names(str(reported[0].message), f"1 {words}")
    assert sim.health_report().startswith("world 1: oil cavitated") and sim.health().all()
    assert sim.status_flags().tolist() == [0, 32]


def test_pressures_below_the_vapor_pressure_are_refused() -> None:
    b = ModelBuilder()
    with pytest.raises(ModelError, match=naming("'oil' vapor_pressure 2000 tank_pressure 1000")):
        b.add_hydraulic_circuit(tank_pressure=1e3, vapor_pressure=2e3, label="oil")
    c = b.add_hydraulic_circuit(vapor_pressure=2e3, label="oil")
    c.add_node(pressure=1e3, label="low")
    c.add_cylinder(-1, load(b, "rod", 1.0, 0.0), (0, 0, -1), (0, 0, 0), **SIZE)
    with pytest.raises(ModelError, match=naming("'low' 1000 vapor_pressure 2000")):
        b.finalize()
    with pytest.raises(ModelError, match=naming("pressure_a 1000 vapor_pressure 2000")):
        rod("element", 2e3, pressure_a=1e3)
    sim = simulation(rod("circuit"))
    with pytest.raises(ModelError):
        sim.write("circuit.oil.vapor_pressure", -1.0)
    sim.write("circuit.oil.vapor_pressure", 5e4)
    sim.control["push"] = 2e4
    sim.step(20)
    assert read(sim, "pressure_a") == 5e4


def test_power_of_a_pump_is_counted_from_the_tank() -> None:
    b, commands = CASES["two_on_one_pump"]()
    sim = Simulation(b.finalize(), config=SolverConfig(dt=2e-3))
    sim.control["v_heavy"] = commands["v_heavy"](1.0)
    sim.step(200)
    flow, pressure = (float(sim.read(name)[0]) for name in ("pump.feed.flow", "node.pump.pressure"))
    assert flow > 1e-4
    assert sim.read("pump.feed.outlet_power")[0] == pytest.approx(flow * (pressure - 1e5), rel=1e-12)


def motor_and_ram() -> ModelBuilder:
    """A cylinder and a motor whose nodes are joined by orifices, without a tank."""
    b = ModelBuilder(gravity=(0, 0, 0))
    c = b.add_hydraulic_circuit(label="oil", vapor_pressure=3e3)
    body = load(b, "rod", 50.0, 0.0)
    b.add_force(body, (0.0, 0.0, 1.0), label="push")
    full = {"pressure": (1e5, 1e5)}
    ram = c.add_cylinder(-1, body, (0, 0, -1), (0, 0, 0), label="ram", **SIZE | full)
    node = c.add_node(volume=1e-4, pressure=1e5, label="node")
    wheel = b.add_body(20.0, (0.5, 0.5, 0.5), label="wheel")
    axle = b.add_joint_revolute(-1, wheel, axis=(0, 1, 0), label="axle")
    motor = c.add_motor(axle, 1e-5, label="motor", **full)
    b.add_joint_force(axle, label="turn")
    for ends in ((ram.node_a, node), (motor.node_a, ram.node_a), (motor.node_b, ram.node_b)):
        c.add_orifice(*ends, 2e-8)
    return b


@pytest.mark.slow_numpy
@pytest.mark.parametrize(
    ("backend", "dt"),
    [("numpy", 5e-3), *(pytest.param("native", dt, marks=pytest.mark.native) for dt in (1e-3, 1e-2))],
)
def test_voids_of_many_nodes_create_no_oil(backend: str, dt: float) -> None:
    sim = simulation(motor_and_ram(), dt, backend)
    nodes = ["ram_a", "ram_b", "node", "motor_a", "motor_b"]

    def state() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        x = read(sim, "position")
        volume = np.array([1e-4 + 2e-3 * x, 1e-4 + 1.2e-3 * (0.5 - x), 1e-4, 1e-4, 1e-4])
        return *(np.array([sim.read(f"node.{n}.{part}")[0] for n in nodes]) for part in ("pressure", "void")), volume

    created, most = 0.0, 0.0
    (p, void, volume) = state()
    for k in range(round(1.0 / dt)):
        sim.control["push"], sim.control["turn"] = 3500.0 * np.sin(14.0 * k * dt + 1.0), 60.0 * np.sin(4.0 * k * dt)
        sim.step()
        before, (p, void, volume) = (p, void, volume), state()
        oil = 0.5 * (volume + before[2] - void - before[1]) * (p - before[0]) / BULK
        created += abs(np.sum(oil + volume - before[2] - void + before[1]))
        most = max(most, void.max())
    assert created < 1e-8 and most > 2e-7 and sim.health().all()


@pytest.mark.parametrize(("kind", "backend"), [("circuit", "numpy"), ("element", "numpy"), ("circuit", "native")])
def test_a_shut_chamber_returns_to_its_pressure(kind: str, backend: str) -> None:
    numbers: dict[str, Any] = {"pressure": 5e6} if kind == "circuit" else {"pressure_a": 5e6, "pressure_b": 5e6}
    b = rod(kind, **numbers)
    b.add_motion(0, label="moved")
    dt, frequency = 1e-2, 2.0 * np.pi
    sim = simulation(b, dt, backend)
    for k in range(300):
        phase = frequency * k * dt
        sim.control["moved"] = 0.02 * (1.0 - np.cos(phase))
        sim.control["moved.velocity"] = 0.02 * frequency * np.sin(phase)
        sim.control["moved.acceleration"] = 0.02 * frequency**2 * np.cos(phase)
        sim.step()
        if k == 49:
            assert read(sim, "pressure_b") > 1.9e8
    assert read(sim, "pressure_b") == pytest.approx(5e6, rel=2e-3)
    assert read(sim, "pressure_a") == pytest.approx(5e6, rel=2e-3)
