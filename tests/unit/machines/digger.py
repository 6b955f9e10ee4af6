from __future__ import annotations

from dataclasses import replace
from math import radians
from typing import Any

from gpusim import ModelBuilder
from gpusim import machines as m

SPOOL = m.Spool(flow=8e-4)
LINKS = (
    m.Link("boom", 1.6, 140.0, radians(35), (radians(-20), radians(70))),
    m.Link("stick", 0.9, 60.0, radians(-110), (radians(-150), radians(-30))),
)
BUCKET = m.Link("bucket", 0.45, 70.0, radians(-75), (radians(-130), radians(20)))
CYLINDERS = (
    m.ArmCylinder("boom", "base", "boom", ((0.30, -0.35), (0.75, -0.06)), 0.063, 0.036, 0.5, SPOOL),
    m.ArmCylinder("stick", "boom", "stick", ((0.75, 0.22), (-0.28, 0.06)), 0.063, 0.036, 0.5, SPOOL),
    m.ArmCylinder("bucket", "stick", "rocker", ((0.02, 0.16), (0.24, 0.0)), 0.063, 0.036, 0.4, SPOOL),
)


def linkage(b: ModelBuilder, arm: m.BoomArm, bucket: m.Link = BUCKET, **changes: Any) -> None:
    sizes: dict[str, Any] = {"at": 0.72, "ear": (0.02, 0.16), "rocker": 0.24, "link": 0.26}
    m.add_bucket_linkage(b, arm, bucket, **(sizes | changes))


def power(b: ModelBuilder, **changes: Any) -> m.PowerPack:
    return m.add_power_pack(b, **({"flow": 2e-3, "pressure": 2e7, "power": 30e3} | changes))


def digger(
    b: ModelBuilder, base: int = -1, at: Any = (0.55, 0, 0.95), changes: dict[str, dict[str, Any]] | None = None
) -> tuple[m.BoomArm, dict[str, m.Drive]]:
    arm = m.add_boom_arm(b, base, at, LINKS)
    linkage(b, arm)
    given = [replace(c, **(changes or {}).get(c.label, {})) for c in CYLINDERS]
    return arm, m.add_arm_cylinders(b, arm, power(b), given)
