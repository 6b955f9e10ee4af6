from __future__ import annotations

from pathlib import Path

import gpusim
from gpusim import ModelBuilder, Simulation, Transform
from gpusim.control import Diagram
from gpusim.scene import Camera, Scene
from gpusim.viewer.operator import Operator
from gpusim.viewer.panel import PanelState
from gpusim.viewer.window.session import Session
from gpusim.viewer.window.sources import Live


def follower() -> Diagram:
    d = Diagram("cart", rate=50.0)
    d.add("input", "wish", lower=-0.5, upper=0.5, unit="m", keys=("J", "L"), axis="left_x", dead_zone=0.2)
    d.add("input", "hold", lower=0.0, upper=1.0, switch=True, keys=("H",))
    d.add("input", "stiff", default=20.0, lower=0.0, upper=40.0)
    d.connect("wish", d.add("sum", "error", signs="+-")["a"])
    d.connect("signal:joint.rail.position", "error.b")
    lamp = Diagram("lamp")
    lamp.connect(lamp.add("inport", "x"), lamp.add("abs", "size"))
    lamp.connect("size", lamp.add("compare", "far", value=0.1)["a"])
    lamp.connect("far", lamp.add("outport", "out"))
    d.connect("error", d.add("product", "law")["a"], d.add_subsystem("lamp", lamp)["x"])
    d.connect("stiff", "law.b")
    d.connect("hold", d.add("switch", "choice")["on"])
    d.connect(0.0, "choice.a")
    d.connect("law", d.add("gain", "less", gain=0.5, unit="1/m"))
    d.connect("less", "choice.b")
    d.connect("choice", "command:push")
    return d


def cart(num_worlds: int = 1, *diagrams: Diagram) -> Simulation:
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(2.0, (1, 1, 1), xform=Transform((0, 0, 0.5)), label="cart")
    b.add_shape_box(body, (0.3, 0.2, 0.2))
    rail = b.add_joint_prismatic(-1, body, parent_xform=Transform((0, 0, 0.5)), axis=(1, 0, 0), label="rail")
    for label in ("push", "free"):
        b.add_servo(rail, stiffness=50.0, damping=5.0, label=label)
    for d in diagrams or (follower(),):
        b.add_diagram(d)
    return Simulation(b.finalize(), num_worlds, backend="numpy", config=gpusim.SolverConfig(dt=0.01))


def panel_state(folder: Path | None = None, num_worlds: int = 1) -> PanelState:
    sim = cart(num_worlds)
    camera = Camera((1.5, -3.0, 1.5), (0.0, 0.0, 0.5))
    scene = Scene("cart", "a cart", ModelBuilder(), sim.config, 1.0, camera=camera)
    live = Live(sim, scene)
    operator = live.operator = Operator(sim)
    made = PanelState(Session(live, paused=True), operator)
    if folder is not None:
        made.record_path = folder / "operator.jsonl"
    return made
