from __future__ import annotations

from pathlib import Path

import gpusim
from gpusim.recording.motion import MotionRecorder
from gpusim.scene import load_scene


def record_motion(path: Path | str, steps: int = 50, worlds: tuple[int, ...] = (0,), rate: float = 60.0) -> None:
    scene = load_scene("double_pendulum")
    config = gpusim.SolverConfig(dt=0.01)
    sim = gpusim.Simulation(scene.builder.finalize(), max(worlds) + 1, backend="numpy", config=config)
    for world in worlds:
        sim.write("body.rod1.angular_velocity", (0.0, 1.0 * world, 0.0), worlds=world)
    with MotionRecorder(sim, path, target=scene.name, worlds=worlds, rate=rate) as recorder:
        recorder.sample(0.0)
        for k in range(steps):
            sim.step()
            recorder.sample((k + 1) * 0.01, half_step=0.005)
