"""Control of the 6-axis arm: tool path, inverse kinematics, and computed torque or PID.

Computed torque (Paul 1972, Luh 1980) computes the efforts by inverse dynamics for the acceleration

    a = q_d'' + 3 w (q_d' - q') + 3 w^2 (q_d - q) + w^3 integral of (q_d - q)

q are the joint angles. q_d are the desired joint angles. w is the decay rate of the errors. The PID gains are the gains
of computed torque, multiplied by the joint's inertia.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpusim import ModelBuilder, Transform
from gpusim.control import Diagram, chain, heavy_chain
from gpusim.scenes.mechanisms._robot_arm import GEAR, LINKS, NAMES, inertias_at

DECAY_RATE = 20.0
"""Decay rate w of the errors, 1/s."""
MAX_ACCELERATION, FILTER_FREQUENCY = 1.0, 4.0
"""Maximum acceleration along the path (m/s2), and filter frequency of the speed (Hz)."""
APPROACH = 1.0
"""Duration of the motion from home to the path and back, s."""
LEVER, DAMPING = 0.3, 3e-3
"""Inverse kinematics: weight of rotation / weight of translation (m/rad), and damping factor of least squares."""
NO_FILTER = 1e-6
"""Filter time of derivatives, s."""
DRIVE = "max(-1, min(1, max(-limit, min(limit, effort)) / stall + rate / idle))"
"""Expression for motor voltage / maximum voltage: limited effort plus back-EMF."""


@dataclass(frozen=True)
class Path:
    """Closed path in a plane about a center: a square with rounded corners, or a figure eight.

    The home position of the tool is above the path.
    """

    kind: Literal["square", "eight"]
    plane: Transform
    home: Transform
    side: float = 0.24
    corner: float = 0.05

    @property
    def straight(self) -> float:
        """Distance from the center of a side to the start of a corner (m)."""
        return 0.5 * self.side - self.corner

    @property
    def length(self) -> float:
        """Length of the whole path (m)."""
        if self.kind == "square":
            return 8.0 * self.straight + 2.0 * math.pi * self.corner
        phase = np.linspace(0.0, 2.0 * math.pi, 4001)
        return float(np.hypot(*np.diff(self.eight(phase), axis=0).T).sum())

    def eight(self, phase: np.ndarray) -> np.ndarray:
        """Return points (n, 2), m, of the figure eight at phases (n,) from 0 to 2 pi."""
        return 0.5 * self.side * np.stack([np.sin(2.0 * phase), np.sin(phase)], axis=-1)

    def distance(self, points: np.ndarray) -> np.ndarray:
        """Return the distances (m) between the path and points (n, 3) in the world frame."""
        local = (points - np.asarray(self.plane.position)) @ self.plane.matrix()
        if self.kind == "square":
            excess = np.abs(local[:, :2]) - self.straight
            outside = np.hypot(*np.maximum(excess, 0.0).T) + np.minimum(excess.max(axis=1), 0.0)
            return np.asarray(np.hypot(outside - self.corner, local[:, 2]))
        curve = self.eight(np.linspace(0.0, 2.0 * math.pi, 20001))
        flat = [float(np.hypot(*(curve - point).T).min()) for point in local[:, :2]]
        return np.asarray(np.hypot(flat, local[:, 2]))


def arm_control(
    b: ModelBuilder,
    path: Path,
    posture: np.ndarray,
    law: Literal["computed_torque", "pid"],
    load: float,
    rate: float | None,
) -> Diagram:
    """Return the arm's control diagram.

    The inputs are ``start`` (1: follow the path, 0: return home) and ``speed`` along the path (m/s).

    Args:
        b: builder with the arm and its motors.
        path: path of the tool.
        posture: joint angles of the arm at its home position (rad).
        law: control law of the joints.
        load: assumed mass of the load in the control (kg).
        rate: samples per second, or None for one sample per step.
    """
    d = Diagram("arm", rate=rate)
    d.add("input", "start", lower=0.0, upper=1.0, switch=True, keys=("F",))
    d.add("input", "speed", default=0.25, lower=0.0, upper=0.5, unit="m/s", keys=("S", "W"))
    _add_progress(d)
    _add_path(d, path)
    _add_reference(d, chain(b, "base", "tool"), path, posture)
    if law == "computed_torque":
        _add_computed_torque(d, b, load)
    else:
        _add_pid(d, b, posture)
    _add_drives(d)
    return d


def _add_progress(d: Diagram) -> None:
    """Add blocks for the progress (0 to 1) from home to the path, and for the distance traveled along the path."""
    d.connect("start", d.add("compare", "goes", sign=">", value=0.5)["a"])
    d.connect("goes", d.add("point_to_point", "share", duration=APPROACH))
    d.add("expression", "wish", text="goes * done * speed", unit="m/s")
    for port, source in {"goes": "goes", "done": "share.done", "speed": "speed"}.items():
        d.connect(source, f"wish.{port}")
    d.connect("wish", d.add("rate_limiter", "haste", rise=MAX_ACCELERATION))
    d.connect("haste", d.add("lowpass2", "pace", frequency=FILTER_FREQUENCY, damping=1.0))
    d.connect("pace", d.add("integrator", "way", unit="m"))


def _add_path(d: Diagram, path: Path) -> None:
    """Add blocks for the current point of the path, and for the commanded tool position."""
    if path.kind == "square":
        quarter, arc = 0.25 * path.length, 0.5 * math.pi * path.corner
        d.connect("way", d.add("expression", "side", text=f"floor(s / {quarter!r})"))
        d.add("expression", "along", text=f"s - k * {quarter!r}", unit="m").wire(s="way", k="side")
        h, r, half_side = path.straight, path.corner, 0.5 * path.side
        texts = {
            "u": f"s if s < {h!r} else {h!r} + {r!r} * sin((s - {h!r}) / {r!r}) if s < {h + arc!r} else {half_side!r}",
            "v": f"-{half_side!r} if s < {h!r} else {r - half_side!r} - {r!r} * cos((s - {h!r}) / {r!r}) "
            f"if s < {h + arc!r} else s - {2.0 * h + arc!r}",
        }
        for name, text in texts.items():
            d.connect("along", d.add("expression", name, text=text, unit="m"))
        for name, text in {"x": "u * cos(k * pi / 2) - v * sin(k * pi / 2)",
                           "y": "u * sin(k * pi / 2) + v * cos(k * pi / 2)"}.items():  # fmt: skip
            d.add("expression", name, text=text, unit="m").wire(u="u", v="v", k="side")
    else:
        wave_number, size = 2.0 * math.pi / path.length, 0.5 * path.side
        for name, factor in (("x", 2.0), ("y", 1.0)):
            text = f"{size!r} * sin({factor * wave_number!r} * s)"
            d.connect("way", d.add("expression", name, text=text, unit="m"))
    center, axes = path.plane.position, path.plane.matrix().T
    for name, value in (("center", center), ("across", axes[0]), ("aside", axes[1]), ("home", path.home.position)):
        d.add("constant", name, value=[float(x) for x in value])
    point = d.add("expression", "point", text="home + share * (center + x * across + y * aside - home)", unit="m")
    point.wire(**{port: port for port in ("home", "center", "x", "across", "y", "aside")}, share="share.out")


def _add_reference(d: Diagram, links: dict[str, object], path: Path, posture: np.ndarray) -> None:
    """Add the inverse kinematics. Central differences give the desired joint velocities and accelerations."""
    start = [float(x) for x in posture]
    d.add("constant", "rest", value=start)
    d.add("constant", "orientation", value=[float(x) for x in path.home.rotation])
    options = {"start": start, "damping": DAMPING, "posture_gain": 0.0, "lever": LEVER}
    d.add("ik", "ik", **options, **links).wire("point", "rest", "orientation")  # type: ignore[arg-type]
    d.connect("ik.out", d.add("chain", "reached", **links)["q"])  # type: ignore[arg-type]
    d.add("sum", "short", signs="+-").wire("reached.position", "point")
    d.connect("short", d.add("norm", "residual"))
    for name, source, home in (("apart", "ik.out", "rest"), ("off", "point", "home")):
        d.add("sum", name, signs="+-").wire(source, home)
    d.connect("apart", d.add("derivative", "passing", time=NO_FILTER), d.add("delay", "apart1", samples=1))
    d.connect("passing", d.add("derivative", "plan_gain", time=NO_FILTER), d.add("delay", "passed", samples=1))
    d.connect("off", d.add("delay", "off1", samples=1))
    texts = {"plan": "rest + apart1", "plan_rate": "(passing + passed) / 2", "aim": "home + off1"}
    for (name, text), unit in zip(texts.items(), ("rad", "rad/s", "m"), strict=True):
        block = d.add("expression", name, text=text, unit=unit)
        block.wire(*d.ports(name)[0])
    d.add("sum", "away", signs="+-").wire("signal:site.tool.position", "aim")
    d.connect("away", d.add("norm", "miss"))
    for name, quantity in (("q", "position"), ("rate", "velocity")):
        d.add("signal", name, signal=[f"joint.{joint}.{quantity}" for joint in NAMES])
    for name, desired, measured in (("behind", "plan", "q"), ("slow", "plan_rate", "rate")):
        d.add("sum", name, signs="+-").wire(desired, measured)


def _add_computed_torque(d: Diagram, b: ModelBuilder, load: float) -> None:
    """Add blocks for the desired joint accelerations, and for the efforts from inverse dynamics."""
    d.connect(
        "behind", d.add("integrator", "sum", gain=DECAY_RATE**3, initial=[0.0] * len(LINKS), lower=-50.0, upper=50.0)
    )
    law = f"plan_gain + {3.0 * DECAY_RATE!r} * slow + {3.0 * DECAY_RATE**2!r} * behind + sum"
    d.add("expression", "wanted", text=law).wire(plan_gain="plan_gain", slow="slow", behind="behind", sum="sum")
    effort = d.add("inverse_dynamics", "effort", **heavy_chain(b, "base", "tool"))
    effort.wire("q", "rate", "wanted", d.add("constant", "load", value=load, unit="kg"))


def _add_pid(d: Diagram, b: ModelBuilder, posture: np.ndarray) -> None:
    """Add PID control of each joint."""
    inertias, gravity = inertias_at(b, posture)
    d.add("constant", "inertia", value=inertias.tolist())
    d.add("product", "pressing").wire("inertia", "behind")
    d.connect(
        "pressing", d.add("integrator", "sum", gain=DECAY_RATE**3, initial=gravity.tolist(), lower=-150.0, upper=150.0)
    )
    law = f"inertia * ({3.0 * DECAY_RATE!r} * slow + {3.0 * DECAY_RATE**2!r} * behind) + sum"
    d.add("expression", "effort", text=law).wire(inertia="inertia", slow="slow", behind="behind", sum="sum")


def _add_drives(d: Diagram) -> None:
    """Add the motor voltages and, for display, the efforts relative to their limits."""
    values = {
        "limit": [link.limit for link in LINKS],
        "stall": [GEAR * link.motor.stall for link in LINKS],
        "idle": [link.motor.idle / GEAR for link in LINKS],
    }
    voltage = d.add("expression", "voltage", text=DRIVE)
    for name, constants in values.items():
        d.connect(d.add("constant", name, value=constants), voltage[name])
    voltage.wire(effort="effort", rate="rate")
    d.connect("voltage", d.add("command", "motors", command=list(NAMES)))
    d.add("expression", "use", text="abs(effort) / limit", unit="-").wire(effort="effort", limit="limit")
