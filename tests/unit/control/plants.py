from __future__ import annotations

import math

from gpusim import ModelBuilder, Transform
from gpusim.control import Diagram, chain, heavy_chain


def everything() -> Diagram:
    """A diagram with all types of blocks, except Python and kinematics blocks."""
    d = Diagram("all", rate=50.0)
    d.add("input", "stick", lower=-2.0, upper=2.0, dead_zone=0.1, curve=2.0, unit="m")
    d.connect("signal:joint.rail.position", d.add("sum", "error", signs="-+")["a"])
    d.connect("stick", "error.b")
    d.connect("error", d.add("pid", "pid", kp=2.0, ki=1.0, kd=0.1, lower=-1.0, upper=1.0))
    sources = {
        "noise": {"seed": 3, "size": 2},
        "constant": {"value": 0.3}, "timer": {}, "step": {"time": 0.1}, "ramp": {"slope": 0.2, "end": 0.5},
        "sequence": {"times": [0, 0.1, 0.3], "values": [0, 1, -1], "interpolate": True, "repeat": True},
        "sine": {"frequency": 3.0}, "trajectory": {"times": [0, 0.2, 0.5], "points": [[0, 1], [1, 0], [2, 2]]},
    }  # fmt: skip
    for kind, parameters in sources.items():
        d.add(kind, kind, **parameters)
    through = {
        "gain": {"gain": 0.7}, "abs": {}, "sign": {}, "integrator": {"upper": 3.0}, "lowpass": {"time": 0.05},
        "lowpass2": {"frequency": 4.0}, "transfer": {"num": [1.0, 2.0], "den": [1.0, 0.5, 3.0]},
        "delay": {"samples": 3}, "derivative": {"time": 0.02}, "rate_limiter": {"rise": 1.0, "fall": 2.0},
        "limiter": {"lower": -0.5, "upper": 0.5}, "dead_zone": {}, "backlash": {"width": 0.2},
        "quantizer": {"step": 0.1}, "relay": {}, "lookup": {"x": [-1, 0, 2], "y": [0, 1, 5]}, "edge_detector": {},
        "point_to_point": {"duration": 0.1}, "norm": {}, "select_element": {"index": 0},
    }  # fmt: skip
    for kind, parameters in through.items():
        d.add(kind, kind, **parameters)
        d.connect("sine", d.ports(kind)[0][0] and f"{kind}.{d.ports(kind)[0][0]}")
    for name in ("sin", "cos", "tan", "asin", "acos", "atan"):
        d.connect("sine", d.add("trigonometry", name, function=name))
    pairs = {"product": {}, "division": {}, "minmax": {"which": "min"}, "atan2": {}, "mux": {}, "dot": {},
             "lookup2d": {"x": [-1, 1], "y": [-1, 0, 1], "z": [[0, 1], [2, 3], [5, 8]]}, "compare": {}, "logic": {},
             "sr_latch": {}, "sample_hold": {}}  # fmt: skip
    for kind, parameters in pairs.items():
        d.add(kind, kind, **parameters)
        first, second = d.ports(kind)[0][:2]
        d.connect("sine", f"{kind}.{first}")
        d.connect("ramp", f"{kind}.{second}")
    d.connect("sine", d.add("switch", "switch")["on"])
    d.connect("ramp", "switch.a", d.add("select", "select")["index"], "select.a")
    d.connect("timer", "switch.b")
    d.connect("sine", "select.b")
    d.connect("compare", d.add("counter", "counter", modulo=3)["up"])
    transitions = [["rest", "run", "go"], ["run", "rest", 0.07]]
    d.add("state_machine", "machine", states=["rest", "run"], transitions=transitions)
    d.connect("compare", "machine.go")
    d.add("constant", "z", value=[0.0, 0.6, 0.8])
    d.add("constant", "v", value=[1.0, 2.0, 3.0])
    d.connect("v", d.add("project", "along")["in"])
    d.connect("z", "along.direction")
    formula = "a ** 3 - 2 * b if abs(a) > 0.2 and not b > 1 else sqrt(exp(a)) + log(2 + a) ** 0.5 + a % 0.3 + max(a, b)"
    d.connect("sine", d.add("expression", "formula", text=formula)["a"])
    d.connect("ramp", "formula.b")
    inner = Diagram("inner")
    inner.connect(inner.add("inport", "x"), inner.add("gain", "twice", gain=2.0))
    inner.connect("twice", inner.add("outport", "y"))
    d.connect("sine", d.add_subsystem("sub", inner)["x"])
    d.connect("sub.y", d.add("abs", "outside"))
    d.connect("pid", "command:push")
    return d


def arm() -> ModelBuilder:
    b = ModelBuilder(gravity=(0, 0, 0))
    half = math.sqrt(0.5)
    base = b.add_body(5.0, (1, 1, 1), xform=Transform((1, 2, 3), (0, 0, half, half)), label="base", kinematic=True)
    before = base
    for k, axis in enumerate(((0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 2, 3))):
        place, own = Transform((0.1, 0.02 * k, 0.25), (0, half, 0, half)), Transform((0, 0.03, -0.05))
        at = b.bodies[before].xform * place * own.inverse()
        body = b.add_body(1.0, (0.1, 0.1, 0.1), xform=at, label=f"link{k}")
        limits = {"limit_lower": -1.5, "limit_upper": 1.5}
        b.add_joint_revolute(before, body, place, own, axis=axis, label=f"joint{k}", **limits)
        before = body
    at = b.bodies[before].xform * Transform((0, 0, 0.1))
    hand = b.add_body(0.5, (0.1, 0.1, 0.1), xform=at, label="hand")
    b.add_joint_prismatic(before, hand, Transform((0, 0, 0.1)), axis=(0, 0, 1), label="joint5")
    b.add_site(hand, Transform((0.01, 0.02, 0.1)), label="tip")
    return b


def kinematics(b: ModelBuilder) -> Diagram:
    d, links = Diagram("kinematics", rate=40.0), chain(b, "base", "tip")
    d.add("mux", "q", count=6)
    for k, port in enumerate("abcdef"):
        d.connect(f"signal:joint.joint{k}.position", f"q.{port}")
    d.connect("q", d.add("chain", "chain", **links)["q"])
    for kind, name, source in (
        ("to_frame", "tip", "signal:site.tip.position"),
        ("from_frame", "there", "chain.position"),
    ):
        d.connect(source, d.add(kind, name)["in"])
        d.connect("signal:body.base.position", f"{name}.position")
        d.connect("signal:body.base.orientation", f"{name}.orientation")
    d.connect("chain.rotation", d.add("rotate", "turned", transposed=True)["matrix"])
    d.connect("tip", "turned.in")
    d.connect(d.add("constant", "zero", value=[0.0] * 6), d.add("ik", "ik", start=[0.1] * 6, **links)["posture"])
    d.connect(d.add("constant", "target", value=[0.1, 0.2, 0.6]), "ik.target")
    d.connect("q", d.add("inverse_dynamics", "effort", **heavy_chain(b, "base", "tip"))["q"])
    d.connect("ik.out", "effort.acceleration")
    return d


def plant() -> ModelBuilder:
    b = arm()
    body = b.add_body(2.0, (1, 1, 1), label="cart")
    rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail")
    b.add_servo(rail, stiffness=50.0, damping=5.0, label="push")
    b.add_diagram(everything())
    b.add_diagram(kinematics(b))
    return b
