"""Reference solutions of hydraulic circuits: a stiff ODE solver over pressures, strokes and valves, without gpusim.

    python tests/reference/circuits/generate.py     writes the CSV files into its folder

The equations (Merritt, Hydraulic Control Systems, 1967; Jelali and Kroll, Hydraulic Servo-systems, 2003):

    C p' = sum of inflows, C = V/beta               nodes; the volumes of chambers go with the stroke
    Q = K a d/(d^2 + p_tr^2)^(1/4)                  orifice at the drop d
    m x'' = S_A p_A - S_B p_B - k x' - load         consumer (J, D_m and torque for a motor)
    s'' + 2 z w s' + w^2 s = w^2 u                  spool
    T y' = y_target - y                             poppets and the load-sensing line

Cases with ``cavitate`` also have a void V in each node (Hopsan, Simscape). At the vapor pressure 0, p' = 0 and V' =
-(sum of inflows), until V is 0 again.

The solver is SciPy's Radau with a relative tolerance of 1e-9.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

HERE = Path(__file__).parent
TANK, BETA, G, TRANSITION = 1e5, 1.5e9, 9.81, 1e4


def root(gain: float, drop: float) -> float:
    return gain * drop / (drop * drop + TRANSITION**2) ** 0.25


def supply(x: float, c1: float) -> float:
    return max(0.0, (min(max(x, -1.0), 1.0) - c1) / (1.0 - c1))


def drain(x: float, c2: float) -> float:
    return max(0.0, (min(max(x, -1.0), 1.0) + c2) / (1.0 + c2))


class Case:
    def __init__(self) -> None:
        self.nodes: list[tuple[str, Callable[[np.ndarray], float], float]] = []
        self.consumers: list[dict[str, Any]] = []
        self.spools: list[tuple[Callable[[float], float], float, float]] = []
        self.lags: list[tuple[str, Callable, float, float]] = []
        self.flows: list[tuple[int, int, Callable]] = []
        self.until, self.columns, self.cavitates = 1.0, [], False

    def node(self, name: str, volume: float, start: float = TANK) -> int:
        self.nodes.append((name, lambda x: volume / BETA, start))
        return len(self.nodes) - 1

    def consumer(
        self,
        name: str,
        mass: float,
        a: float,
        b: float,
        volume_a: float,
        volume_b: float,
        load: float | Callable[[float], float],
        viscous: float = 0.0,
        start: tuple[float, float] = (TANK, TANK),
        turns: bool = False,
        x: float = 0.0,
    ) -> tuple[int, int]:
        k, change = len(self.consumers), 0.0 if turns else 1.0
        self.nodes.append((f"{name}_a", lambda s: (volume_a + change * a * s[k]) / BETA, start[0]))
        self.nodes.append((f"{name}_b", lambda s: (volume_b - change * b * s[k]) / BETA, start[1]))
        at = len(self.nodes) - 2
        self.consumers.append({"mass": mass, "a": a, "b": b, "at": at, "load": load, "viscous": viscous, "x": x})
        self.columns.append(name)
        return at, at + 1

    def flow(self, i: int, j: int, law: Callable) -> None:
        self.flows.append((i, j, law))

    def spool(self, command: Callable[[float], float], frequency: float = 100.0, damping: float = 0.8) -> int:
        self.spools.append((command, frequency, damping))
        return len(self.spools) - 1

    def lag(self, name: str, target: Callable, time: float, start: float) -> int:
        self.lags.append((name, target, time, start))
        return len(self.lags) - 1

    def valve(
        self,
        k: int,
        p: int,
        a: int,
        b: int,
        gain: float,
        c1: float = 0.05,
        c2: float = -0.05,
        compensator: float = np.inf,
    ) -> None:
        def fed(port: int, sign: float) -> Callable:
            def law(q: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
                drop = q[p] - q[port]
                return root(gain * supply(sign * s[k], c1), min(drop, compensator)) if drop > 0.0 else 0.0

            return law

        def drained(port: int, sign: float) -> Callable:
            return lambda q, y, s: root(gain * drain(sign * s[k], c2), q[port] - TANK)

        self.flow(p, a, fed(a, 1.0))
        self.flow(a, -1, drained(a, -1.0))
        self.flow(p, b, fed(b, -1.0))
        self.flow(b, -1, drained(b, 1.0))

    def solve(self, dt: float) -> tuple[list[str], np.ndarray]:
        n, c, v = len(self.nodes), len(self.consumers), len(self.spools)
        end, empty = n + 2 * c + 2 * v + len(self.lags), np.zeros(n, bool)

        def load(t: float, m: dict[str, Any]) -> float:
            return m["load"](t) if callable(m["load"]) else m["load"]

        def rates(t: float, y: np.ndarray) -> np.ndarray:
            p, x, u = y[:n], y[n : n + c], y[n + c : n + 2 * c]
            s, sv, lags = y[n + 2 * c : n + 2 * c + v], y[n + 2 * c + v : n + 2 * c + 2 * v], y[n + 2 * c + 2 * v : end]
            inflow = np.zeros(n + 1)
            for i, j, law in self.flows:
                q = law(p, lags, s)
                inflow[i] -= q
                inflow[j] += q
            force = np.zeros(c)
            for k, m in enumerate(self.consumers):
                at = int(m["at"])
                inflow[at] -= m["a"] * u[k]
                inflow[at + 1] += m["b"] * u[k]
                force[k] = (m["a"] * p[at] - m["b"] * p[at + 1] - m["viscous"] * u[k] - load(t, m)) / m["mass"]
            capacity = np.array([volume(x) for _, volume, _ in self.nodes])
            spools = [w * w * (command(t) - s[k]) - 2 * z * w * sv[k] for k, (command, w, z) in enumerate(self.spools)]
            moved = [(target(p, lags, s) - lags[k]) / time for k, (_, target, time, _) in enumerate(self.lags)]
            rise, open_ = np.where(empty, 0.0, inflow[:n] / capacity), np.where(empty, -inflow[:n], 0.0)
            return np.concatenate([rise, u, force, sv, spools, moved, open_])

        start = np.array(
            [
                *(p for *_, p in self.nodes),
                *(m["x"] for m in self.consumers),
                *[0.0] * (c + 2 * v),
                *(y for *_, y in self.lags),
                *[0.0] * n,
            ]
        )
        scale = np.array(
            [1e5] * n
            + [1e-2] * c
            + [1e-1] * c
            + [1.0] * v
            + [10.0] * v
            + [1e5 if lag[0] == "sense" else 1.0 for lag in self.lags]
            + [1e-6] * n
        )
        times = np.arange(0.0, self.until + 1e-9, dt)

        def ends(i: int) -> Callable[[float, np.ndarray], float]:
            event: Any = lambda t, y: y[end + i] / 1e-6 if empty[i] else y[i] / 1e5  # noqa: E731
            event.terminal, event.direction = True, -1.0
            return event

        events, t, found = [ends(i) for i in range(n)] if self.cavitates else None, 0.0, []
        while t < times[-1]:
            left = times[times >= t] if t else times
            done = solve_ivp(
                rates, (t, times[-1]), start, "Radau", left, events=events, rtol=1e-9, atol=1e-8 * scale, max_step=2e-3
            )
            assert done.success, done.message
            found.append(np.reshape(done.y, (start.size, -1)))
            if done.status == 0:
                break
            i = next(i for i, at in enumerate(done.t_events) if at.size)
            t, start = float(done.t_events[i][0]), done.y_events[i][0]
            start[i] = start[end + i] = 0.0
            empty[i] = not empty[i]
        y = np.concatenate(found, axis=1)
        names = [f"p_{name}" for name, *_ in self.nodes] + [f"x_{name}" for name in self.columns]
        values = [y[:n], y[n : n + c]]
        if self.cavitates:
            names, values = names + [f"v_{name}" for name, *_ in self.nodes], [*values, y[end:]]
        return ["time", *names], np.column_stack([times, np.concatenate(values).T])


def step(at: float, value: float) -> Callable[[float], float]:
    return lambda t: value if t >= at else 0.0


def cut_off(flow: float, pressure: float, band: float) -> Callable[[float], float]:
    return lambda p: flow * min(max((pressure - p) / band, 0.0), 1.0)


def two_on_one_pump() -> Case:
    """Two cylinders lift 1000 and 600 kg. Their pump has 0.6 l/s, a cut-off at 18 MPa, and a relief valve at 12 MPa."""
    c = Case()
    p = c.node("pump", 2e-3)
    for name, mass, command in (("heavy", 1000.0, step(0.2, 0.8)), ("light", 600.0, step(0.4, 0.5))):
        held = (mass * G + 1.2e-3 * 2e5) / 2e-3, 2e5
        a, b = c.consumer(name, mass, 2e-3, 1.2e-3, 1e-4 + 2e-3 * 0.05, 1e-4 + 1.2e-3 * 0.55, mass * G, 200.0, held)
        c.valve(c.spool(command), p, a, b, 3e-7)
    pump = cut_off(6e-4, 1.8e7, 9e5)
    c.flow(-1, p, lambda q, y, s: pump(q[p]))
    c.flow(p, -1, lambda q, y, s: 2e-10 * max(0.0, q[p] - TANK - 1.2e7))
    c.until = 1.5
    return c


def flow_sharing() -> Case:
    c = Case()
    p = c.node("pump", 2e-3)
    ports = []
    for name, mass, command in (("heavy", 1000.0, step(0.2, 0.5)), ("light", 400.0, step(0.2, 0.5))):
        held = (mass * G + 1.2e-3 * 2e5) / 2e-3, 2e5
        a, b = c.consumer(name, mass, 2e-3, 1.2e-3, 1e-4 + 2e-3 * 0.05, 1e-4 + 1.2e-3 * 0.55, mass * G, 200.0, held)
        c.valve(c.spool(command), p, a, b, 3e-7, compensator=6e5)
        ports.append((a, b))

    def load(q: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
        seen = [q[a] for k, (a, b) in enumerate(ports) if supply(s[k], 0.05) > 0.0]
        return max([0.0, *seen, *(q[b] for k, (a, b) in enumerate(ports) if supply(-s[k], 0.05) > 0.0)])

    sense = c.lag("sense", load, 0.02, 0.0)

    def pump(q: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
        top = min(cut_off(8e-4, 2e7, 1e6)(q[p]), 8e-4 * min(max((y[sense] + 1.5e6 - q[p]) / 1e6, 0.0), 1.0))
        return min(top, 4e4 / q[p])

    c.flow(-1, p, pump)
    c.until = 1.2
    return c


def holding_valve() -> Case:
    """A load of 2000 kg goes down on a counterbalance valve, while the pump feeds the rod side."""
    c = Case()
    p = c.node("pump", 2e-3, 1e7)
    a, b = c.consumer(
        "boom",
        2000.0,
        3e-3,
        1.5e-3,
        2e-4 + 3e-3 * 0.45,
        2e-4 + 1.5e-3 * 0.15,
        2000.0 * G,
        500.0,
        (2000.0 * G / 3e-3 + 1e5 * 0.5, 1e5),
    )
    line = c.node("line", 3e-4)
    pump = cut_off(5e-4, 1.5e7, 7.5e5)
    c.flow(-1, p, lambda q, y, s: pump(q[p]))
    c.valve(c.spool(step(0.2, -0.4)), p, line, b, 3e-7)
    opened = c.lag("poppet", lambda q, y, s: min(max((q[a] + 4.0 * q[b] - 9e6) / 4e6, 0.0), 1.0), 0.02, 0.0)
    c.flow(a, line, lambda q, y, s: root(2e-7 * (y[opened] if q[a] > q[line] else 1.0), q[a] - q[line]))
    c.until = 1.5
    return c


def motor_with_relief() -> Case:
    c = Case()
    p, size = c.node("pump", 2e-3), 1e-4 / (2 * np.pi)
    ratio = 20.0
    a, b = c.consumer("swing", 800.0, ratio * size, ratio * size, 2e-4, 2e-4, 1500.0, 30.0, turns=True)
    pump = cut_off(8e-4, 2e7, 1e6)
    c.flow(-1, p, lambda q, y, s: pump(q[p]))
    c.valve(c.spool(lambda t: 0.7 if 0.1 <= t < 1.0 else 0.0), p, a, b, 3e-7)
    for i, j in ((a, b), (b, a)):
        c.flow(i, j, lambda q, y, s, i=i, j=j: 1e-10 * max(0.0, q[i] - q[j] - 8e6))
        c.flow(-1, i, lambda q, y, s, i=i: root(5e-7, TANK - q[i]) if q[i] < TANK else 0.0)
    c.flow(a, b, lambda q, y, s: 2e-12 * (q[a] - q[b]))
    c.until = 2.0
    return c


def pulled_rod() -> Case:
    c = Case()
    c.cavitates, c.until = True, 1.4
    push = lambda t: -15e3 if t < 0.2 else 5e3  # noqa: E731
    _, b = c.consumer("rod", 100.0, 2e-3, 1.2e-3, 1e-4 + 2e-3 * 0.05, 1e-4 + 1.2e-3 * 0.55, push, 2e4)
    c.flow(b, -1, lambda q, y, s: root(2e-6, q[b] - TANK))
    return c


def motor_outruns_pump() -> Case:
    """A heavy wheel on a compensated valve and a load-sensing pump swings faster than the pump delivers oil."""
    c = Case()
    c.cavitates, c.until = True, 2.0
    p = c.node("line", 2e-3)
    a, b = c.consumer("wheel", 2e4, 3e-4, 3e-4, 1e-4, 1e-4, 0.0, turns=True)
    c.valve(c.spool(step(0.0, 0.5)), p, a, b, 3e-7, compensator=6e5)

    def load(q: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
        return max(0.0, q[a] if supply(s[0], 0.05) > 0.0 else 0.0, q[b] if supply(-s[0], 0.05) > 0.0 else 0.0)

    sense = c.lag("sense", load, 0.02, 0.0)

    def pump(q: np.ndarray, y: np.ndarray, s: np.ndarray) -> float:
        top = min(cut_off(1.2e-3, 2.2e7, 1.1e6)(q[p]), 1.2e-3 * min(max((y[sense] + 1.5e6 - q[p]) / 1.1e6, 0.0), 1.0))
        return min(top, 15e3 / q[p])

    c.flow(-1, p, pump)
    return c


def cases() -> dict[str, Case]:
    made = two_on_one_pump, flow_sharing, holding_valve, motor_with_relief, pulled_rod, motor_outruns_pump
    return {f.__name__: f() for f in made}


def main() -> None:
    for name, case in cases().items():
        header, table = case.solve(0.01)
        np.savetxt(HERE / f"{name}.csv", table, "%.10g", ",", header=",".join(header), comments="")
        print(name, table.shape, table[-1])


if __name__ == "__main__":
    main()
