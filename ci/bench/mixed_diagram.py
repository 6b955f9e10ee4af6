"""A diagram of many different blocks with random connections. The diagram drives a mass on a rail."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpusim.builder.builder import ModelBuilder
from gpusim.control import Diagram
from gpusim.model.model import Model

OF_ONE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("gain", {"gain": 0.7}), ("abs", {}), ("integrator", {"lower": -2.0, "upper": 2.0}), ("lowpass", {"time": 0.05}),
    ("lowpass2", {"frequency": 4.0}), ("transfer", {"num": [1.0, 2.0], "den": [1.0, 4.0, 30.0]}),
    ("delay", {"samples": 5}), ("derivative", {"time": 0.1}), ("rate_limiter", {"rise": 3.0}),
    ("limiter", {"lower": -1.5, "upper": 1.5}), ("dead_zone", {}), ("backlash", {"width": 0.2}),
    ("quantizer", {"step": 0.05}), ("relay", {}), ("lookup", {"x": [-2.0, 0.0, 2.0], "y": [-1.0, 0.0, 1.0]}),
    ("edge_detector", {}), ("point_to_point", {"duration": 0.3}),
    ("pid", {"ki": 0.5, "kd": 0.01, "lower": -2.0, "upper": 2.0}),
    ("trigonometry", {"function": "sin"}), ("trigonometry", {"function": "atan"}),
    ("expression", {"text": "exp(-x * x) if abs(x) > 0.2 else 0.5 * x"}),
)  # fmt: skip
OF_TWO: tuple[tuple[str, dict[str, Any]], ...] = (
    ("sum", {"signs": "+-"}), ("product", {}), ("minmax", {"which": "min"}), ("compare", {}), ("logic", {}),
    ("sr_latch", {}), ("sample_hold", {}), ("atan2", {}),
)  # fmt: skip


def mixed_diagram(blocks: int, seed: int = 0) -> Diagram:
    """Return a diagram of ``blocks`` blocks with random connections."""
    rng, d = np.random.default_rng(seed), Diagram("mixed")
    d.add("input", "stick", lower=-2.0, upper=2.0)
    d.add("signal", "place", signal="joint.rail.position")
    d.add("signal", "speed", signal="joint.rail.velocity")
    known = []
    for name in ("stick", "place", "speed"):  # the signals have no units from here on
        d.connect(name, d.add("expression", f"{name}_", text="x"))
        known.append(f"{name}_")
    kinds = [(1, *kind) for kind in OF_ONE] + [(2, *kind) for kind in OF_TWO]
    while len(d.blocks) < blocks - 3:
        count, kind, parameters = kinds[len(known) % len(kinds)]
        name = f"b{len(known)}"
        d.add(kind, name, **parameters)
        for port in [p for p in d.ports(name)[0] if p != "reset" or kind == "sr_latch"][:count]:
            near = known[-12:] if rng.random() < 0.8 else known
            d.connect(str(rng.choice(near)), f"{name}.{port}")
        known.append(name)
    d.add("sum", "all", signs="++++")
    for port, source in zip("abcd", ("stick_", *known[-3:]), strict=True):
        d.connect(source, f"all.{port}")
    d.connect("all", d.add("limiter", "last", lower=-1.0, upper=1.0))
    d.connect("last", "command:push")
    return d


def cart(diagram: Diagram | None) -> Model:
    """Return a model of a 2 kg mass on a rail with a servo, optionally with a diagram."""
    b = ModelBuilder(gravity=(0, 0, 0))
    body = b.add_body(2.0, (1, 1, 1), label="cart")
    rail = b.add_joint_prismatic(-1, body, axis=(1, 0, 0), label="rail")
    b.add_servo(rail, stiffness=50.0, damping=5.0, label="push")
    if diagram is not None:
        b.add_diagram(diagram)
    return b.finalize()
